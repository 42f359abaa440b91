package cli

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/conversation"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
)

// chatHouse is a house whose roles are all played by one server: whoever is offered the
// tool propose is a coder.
func chatHouse(t *testing.T, deliver string, chat llmtest.Handler) *house {
	t.Helper()
	if _, err := sandbox.Detect(t.Context()); err != nil {
		t.Skip("chats need a sandbox: ", err)
	}
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if strings.Contains(strings.Join(r.Tools, " "), "propose") {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "call_propose", Name: "propose", Arguments: `{"plan":"Say goodbye.","patch":"--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-hello\n+goodbye\n",` +
				`"risk":{"destructive":false,"rollback_possible":true},"need_approval":false}`}}}
		}
		return chat(r)
	})
	h := newHouse(t, server.URL, `"test -f README.md"`)
	h.config = h.write("config.yaml", fmt.Sprintf("language: en\nchecks: [\"test -f README.md\"]\nllm:\n  provider: openai\n  max_retries: 0\n  openai: {base_url: %q, model: m, api_key: key-for-a-test}\n"+
		"routing: {classifier: {enabled: false}, llm: {chat_provider: openai, chat_model: m, coder_provider: openai, coder_model: m, coder2_provider: openai, coder2_model: m}}\nchat: {deliver: %s}\n", server.URL, deliver))
	h.args = []string{"chat", "--repo", filepath.Join(h.dir, "repo"), "--config", h.config, "--base-dir", h.base()}
	return h
}

// once has one message answered, and returns what was printed and the exit code.
func (h *house) once(text string) (string, int) {
	p := h.start(append(h.args, "-m", text)...)
	code := p.code()
	return p.out.String(), code
}

// sound asserts that tori check finds no damage.
func (h *house) sound() {
	h.t.Helper()
	p := h.start("check", "--config", h.config, "--base-dir", h.base())
	if code := p.code(); code != exitOK {
		h.t.Errorf("tori check: %d\n%s", code, p.out.String())
	}
}

// said are the entries of the one session.
func (h *house) said() (all []conversation.Entry) {
	h.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(h.base(), "sessions", "terminal*"))
	if err != nil || len(dirs) != 1 {
		h.t.Fatalf("%q, %v", dirs, err)
	}
	if err := conversation.Lines(dirs[0], func(e conversation.Entry) bool { all = append(all, e); return true }); err != nil {
		h.t.Fatal(err)
	}
	return all
}

// tori chat is killed when a message has reached the model, in the middle of an answer, and
// at random moments before and after. Each message is there once at the most, and is either
// answered once or said to be without an answer.
func TestChatKilledInAnswers(t *testing.T) {
	skipShort(t, "processes, one after the other")
	t.Parallel()
	reached := make(chan struct{}, 100)
	h := chatHouse(t, "branch", func(r *llmtest.Request) llmtest.Answer {
		reached <- struct{}{}
		last := *r.Messages[len(r.Messages)-1].Content
		last = last[strings.LastIndex(last, "\n")+1:] // behind what was not answered
		if strings.Contains(last, "stall") {
			return llmtest.Answer{Text: strings.Repeat("This goes on. ", 100), Stall: 3000}
		}
		return llmtest.Answer{Text: "You said: " + last}
	})
	const kills = 9
	for i := range kills {
		text := fmt.Sprintf("question %d", i)
		if i%3 == 0 {
			text += ", stall"
		}
		p := h.start(append(h.args, "-m", text)...)
		var after time.Duration
		if i%3 < 2 {
			<-reached // in the middle of the answer, or around its end
			after = rand.N(30 * time.Millisecond)
		} else {
			after = rand.N(600 * time.Millisecond) // anywhere from its start on
		}
		<-time.After(after)
		_ = p.Process.Kill()
		p.code()
	}
	if out, code := h.once("the last one"); code != exitOK || !strings.Contains(out, "You said: the last one\n") {
		t.Errorf("%d: %s", code, out)
	}
	h.sound()
	asked, ends := map[string]string{}, map[string][]string{}
	for _, e := range h.said() {
		if e.Role == llm.RoleUser {
			if asked[e.Content] != "" {
				t.Errorf("%q is there twice", e.Content)
			}
			asked[e.Content] = e.ID
		} else if e.Final {
			ends[e.ReplyTo] = append(ends[e.ReplyTo], e.Content)
		}
	}
	for text, id := range asked {
		if len(ends[id]) != 1 || ends[id][0] != "You said: "+text && !strings.HasPrefix(ends[id][0], "No answer to your last message was kept") {
			t.Errorf("%q: %q", text, ends[id])
		}
	}
	if len(asked) < 1+2*kills/3 {
		t.Errorf("%d messages", len(asked))
	}
}

var approve = regexp.MustCompile(`/approve \S+ \S+`)

// tori chat is killed once a granted proposal has so many lines of its application on disk.
// The next one applies it, exactly once, and says so.
func TestChatKilledInApplying(t *testing.T) {
	skipShort(t, "processes, killed")
	t.Parallel()
	for _, deliver := range []string{"worktree", "branch"} {
		for lines := range 9 {
			t.Run(fmt.Sprint(deliver, " ", lines), func(t *testing.T) {
				t.Parallel()
				h := chatHouse(t, deliver, func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "As I said."} })
				out, code := h.once("/code2 say goodbye")
				granted := approve.FindString(out)
				if code != exitWaiting || granted == "" {
					t.Fatalf("%d: %s", code, out)
				}
				p := h.start(append(h.args, "-m", granted)...)
				h.until("the grant, and the lines", func() bool {
					return h.count("approvals.jsonl", "approval.granted") == 1 && h.count("application.jsonl", `"step"`) >= lines
				})
				_ = p.Process.Kill()
				p.code()
				ended := h.only().Status().Final()
				if !ended {
					h.goOn("Applied")
					h.sound() // else nobody was there to clear up
				}
				h.applied(deliver, !ended)
			})
		}
	}
}

// count counts the lines of a file of the one run that hold a text.
func (h *house) count(file, text string) int {
	dirs, _ := filepath.Glob(filepath.Join(h.base(), "*", "*", file)) // it may be moving
	for _, path := range dirs {
		b, _ := readFile(path)
		return bytes.Count(b, []byte(text))
	}
	return 0
}

// goOn has tori chat go on in a terminal until that shows a text.
func (h *house) goOn(want string) {
	h.t.Helper()
	master, slave := pty(h.t)
	defer func() {
		_ = slave.Close()
		_ = master.Close()
	}()
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		h.t.Fatal(err)
	}
	shown := watchOutput(master)
	p := exec.CommandContext(h.t.Context(), "tori", h.args...)
	p.Stdin, p.Stdout, p.Stderr = slave, slave, slave
	p.Env = append(os.Environ(), "TERM=xterm-256color", "XDG_STATE_HOME="+filepath.Join(h.dir, "state"))
	if err := p.Start(); err != nil {
		h.t.Fatal(err)
	}
	if !shown.until(want) {
		h.t.Errorf("%q is not in %q", want, shown.text())
	}
	if _, err := io.WriteString(master, "\x04"); err != nil {
		h.t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		h.t.Error(err)
	}
}

// applied asserts that the change was made once, and said once.
func (h *house) applied(deliver string, said bool) {
	h.t.Helper()
	readme, err := readFile(filepath.Join(h.dir, "repo", "README.md"))
	if err != nil {
		h.t.Fatal(err)
	}
	want := "goodbye\n"
	if deliver == "branch" {
		want = "hello\n"
		log, err := exec.CommandContext(h.t.Context(), "git", "-C", filepath.Join(h.dir, "repo"), "log", "--topo-order", "--format=%s", "--all").CombinedOutput()
		if err != nil || string(log) != "say goodbye\nstart\n" {
			h.t.Errorf("git log: %v\n%s", err, log)
		}
	}
	if string(readme) != want {
		h.t.Errorf("README.md is %q", readme)
	}
	if n := h.count("application.jsonl", `"step":"delivered"`); n != 1 || h.only().Status() != task.Completed {
		h.t.Errorf("%d times delivered, %s", n, h.only().Status())
	}
	told := 0
	for _, e := range h.said() {
		if strings.HasPrefix(e.Content, "Applied") {
			told++
		}
	}
	if told > 1 || said && told != 1 {
		h.t.Errorf("said %d times", told)
	}
}

// A rollback is told to the conversation that had asked for the job, and whom it asks next reads
// of it.
func TestRollbackIsTold(t *testing.T) {
	skipShort(t, "processes, one after the other")
	t.Parallel()
	var asked strings.Builder
	h := chatHouse(t, "worktree", func(r *llmtest.Request) llmtest.Answer {
		asked.Reset()
		for _, m := range r.Messages {
			if m.Content != nil {
				asked.WriteString(*m.Content + "\n")
			}
		}
		return llmtest.Answer{Text: "As I said."}
	})
	out, _ := h.once("/code2 say goodbye")
	granted := approve.FindString(out)
	if out, code := h.once(granted); code != exitOK || strings.Count(out, "Approved: say goodbye") != 1 || strings.Count(out, "Applied, not committed: say goodbye") != 1 {
		t.Fatalf("%d: %s", code, out)
	}
	job := strings.Fields(granted)[1]
	p := h.start("rollback", job, "--config", h.config, "--base-dir", h.base())
	if code := p.code(); code != exitOK {
		t.Fatalf("%d: %s", code, p.out.String())
	}
	if out, code := h.once("what now?"); code != exitOK || !strings.Contains(asked.String(), "Taken back: say goodbye (job "+job+"), by ") {
		t.Errorf("%d: %s\nasked %s", code, out, asked.String())
	}
	told := 0
	for _, e := range h.said() {
		told += strings.Count(e.Content, "Taken back: ")
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
