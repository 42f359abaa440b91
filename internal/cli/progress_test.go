package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// The one comment on GitHub has the history while the run goes on, folded, and keeps
// it when it says how the run ended; nothing that the model says opens or closes
// anything in it.
func TestHistoryInTheComment(t *testing.T) {
	t.Parallel()
	w := newTown(t, "planning: {progress_comment: {interval_seconds: 5}}\n")
	w.env = []string{"TORI_PLANNING_ENABLED=true"}
	answers := planned()
	answers[4].Text = `{"task_id":"one","status":"done","summary":"1","comment":"One </details> <!-- is there"}`
	seen := make(chan struct{})
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 6 {
			<-seen
		}
		return answers[min(r.Turn(), len(answers)-1)]
	})
	release := func() { close(seen) }
	t.Cleanup(func() {
		if release != nil {
			release()
		}
	})
	w.asks(server.URL)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	d := w.start()
	ours := ""
	w.until(d, "the comment tells what was done", func() bool {
		if _, all := w.shown(n); len(all) == 1 {
			ours = all[0]
		}
		return strings.Contains(ours, "no ink")
	})
	check := func(what string, folds int, wants ...string) {
		t.Helper()
		for _, want := range append(wants, "<summary>History (", "▶️ Work: one", "🔧 **shell** `cat nothing-there` → error", "📝 The plan is revised (changes: 1): a step more",
			"One &lt;/details> &lt;!-- is there", "🏁 **two** failed: no ink") {
			if !strings.Contains(ours, want) {
				t.Errorf("%s: %q is missing in\n%s", what, want, ours)
			}
		}
		if strings.Count(ours, "<details>") != folds || strings.Count(ours, "</details>") != folds || strings.Contains(ours, "<!-- is") {
			t.Errorf("%s:\n%s", what, ours)
		}
	}
	check("in between", 1, "**In progress**", "- [x] **one**: Write 1", "6 model calls, 7 tool calls")
	release()
	release = nil
	w.until(d, "it is over", func() bool { return w.labels(n) != "coding agent processing" })
	_, all := w.shown(n)
	if len(all) != 1 {
		t.Fatalf("%d comments", len(all))
	}
	ours = all[0]
	check("at the end", 3, "🔁 Planned anew: try the same again (level 1): there is ink now", "🏁 **two** done: 2", "🔎 Verification passed")
	w.end(d)
}

// A run that is paused and taken up goes on with the history that it had, in the
// file beside the issue, which says how the run stands when nobody works on it. One
// that is refused before it goes on changes nothing in it but that.
func TestHistoryOfARunThatIsTakenUp(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	answers := planned()
	reached, stalls := make(chan struct{}, 1), true
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 6 && stalls {
			stalls = false
			reached <- struct{}{}
			return llmtest.Answer{Text: "never comes", Stall: llmtest.StallAtOnce}
		}
		return answers[min(r.Turn(), len(answers)-1)]
	})
	h := newHouse(t, server.URL, "test -f README.md")
	h.env = []string{"TORI_PLANNING_ENABLED=true"}
	p := h.start(h.args...)
	<-reached
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.code(); code != exitPaused {
		t.Fatalf("%d\n%s", code, p.out.String())
	}
	file := filepath.Join(h.dir, "issue.progress.md")
	read := func() string {
		t.Helper()
		b, err := readFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	history := func(text string) string {
		_, list, _ := strings.Cut(text, "</summary>\n\n")
		list, _, ok := strings.Cut(list, "\n\n</details>")
		if !ok {
			t.Errorf("no history in\n%s", text)
		}
		return list
	}
	paused := read()
	if !strings.Contains(paused, "Paused") || !strings.Contains(paused, "- [x] **one**: Write 1") || !strings.Contains(history(paused), "🏁 **two** failed: no ink") {
		t.Errorf("%s", paused)
	}
	before := history(paused)
	again := append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base(), "--config", h.config}, h.bare...)
	repo := filepath.Join(h.dir, "repo")
	if err := os.Rename(repo, repo+".away"); err != nil {
		t.Fatal(err)
	}
	p = h.start(again...)
	p.code()
	refused := read()
	_, plan, _ := strings.Cut(paused, "\n✅ ")
	if _, got, _ := strings.Cut(refused, "\n✅ "); refused == paused || plan == "" || got != plan || !strings.Contains(refused, "Paused") || !strings.Contains(refused, "open workspace") {
		t.Errorf("%s\n-- paused with\n%s\n%s", refused, paused, p.out.String())
	}
	if err := os.Rename(repo+".away", repo); err != nil {
		t.Fatal(err)
	}
	p = h.start(again...)
	code := p.code()
	after := read()
	if code != exitOK && code != exitFailed || !strings.HasPrefix(history(after), before) || len(history(after)) < len(before)+100 {
		t.Errorf("exit code %d\n%s\n-- paused with\n%s\n%s", code, after, before, p.out.String())
	}
	for _, want := range []string{"🔁 Planned anew: try the same again", "🔎 Verification passed"} {
		if !strings.Contains(after, want) {
			t.Errorf("%q is missing in\n%s", want, after)
		}
	}
}

// On a terminal a run is watched while it goes on, and leaves its log and its last
// words on it, and nothing of the view; Ctrl-C, too.
func TestRunOnATerminal(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for _, interrupted := range []bool{false, true} {
		reached := make(chan struct{}, 1)
		server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
			if r.Turn() == 1 {
				reached <- struct{}{}
				if interrupted {
					return llmtest.Answer{Text: "never comes", Stall: llmtest.StallAtOnce}
				}
			}
			if r.Turn() == 0 {
				return llmtest.Answer{Text: "I look.", Calls: []llm.ToolCall{{ID: "1", Name: "read_file", Arguments: `{"path":"README.md"}`}}}
			}
			return llmtest.Answer{Text: "It is as it should be."}
		})
		h := newHouse(t, server.URL, "test -f README.md")
		master, slave := pty(t)
		if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "tori", h.args...)
		cmd.Stdout, cmd.Stderr = slave, slave
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(h.dir, "state"), "TERM=xterm", "LANG=C.UTF-8")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = slave.Close()
		s := newScreen(t, 80, 24)
		drawn := make(chan struct{})
		go func() { // until nobody has the terminal open any more, which is EIO
			_, _ = io.Copy(s, master)
			close(drawn)
		}()
		<-reached
		if interrupted {
			_ = cmd.Process.Signal(syscall.SIGINT)
		}
		err := cmd.Wait()
		<-drawn
		_ = master.Close()
		var ee *exec.ExitError
		if err != nil && !errors.As(err, &ee) {
			t.Fatal(err)
		}
		s.mu.Lock()
		raw := s.raw.String()
		s.mu.Unlock()
		got := s.String()
		want, last := []string{"Task started", "LLM call #1", "Tool execution: read_file"}, "completed: "
		if interrupted {
			want, last = append(want, "Pausing"), "paused: "
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%q is missing on\n%s", w, got)
			}
		}
		lines := strings.Split(got, "\n")
		if !strings.HasPrefix(lines[len(lines)-1], last) {
			t.Errorf("the last line of\n%s", got)
		}
		if !strings.Contains(raw, " calls, ") || strings.Contains(got, " calls, ") {
			t.Errorf("the view was drawn: %t, and is still there:\n%s", strings.Contains(raw, " calls, "), got)
		}
	}
}

// A run that is taken up while the day has no room left says so in its one comment,
// which keeps plan and history.
func TestACommentKeepsThePlanOfARunThatIsRefused(t *testing.T) {
	t.Parallel()
	oneDay(t)
	answers := planned()
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer { return answers[min(r.Turn(), len(answers)-1)] })
	w := newTown(t, "budget: {day: {max_turns: 6}}\n")
	w.env = []string{"TORI_PLANNING_ENABLED=true"}
	w.asks(server.URL)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	for _, what := range []string{"paused", "refused"} {
		log := w.once()
		labels, ours := w.shown(n)
		if len(ours) != 1 || labels != "coding agent paused" {
			t.Fatalf("%s: %s %q\n%s", what, labels, ours, log)
		}
		for _, want := range []string{"the budget of the day is used up", "- [x] **one**: Write 1", "<summary>History (", "🏁 **two** failed: no ink"} {
			if !strings.Contains(ours[0], want) {
				t.Errorf("%s: %q is missing in\n%s", what, want, ours[0])
			}
		}
		w.repo.Label(n, "coding agent", "hanako")
	}
}
