package cli

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// spends sets the budget of a house.
func (h *house) spends(server *llmtest.Server, budget string) {
	h.t.Helper()
	h.settings(fmt.Sprintf("provider: openai, openai: {base_url: %q, model: m, api_key: key-for-a-test}", server.URL), "checks: []\nbudget: {"+budget+"}")
}

// again are the arguments of a run that takes up the only one.
func (h *house) again() []string {
	return append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()}, h.bare...)
}

// days is what house.db has of all days: turns and tokens, what is held of them,
// and how many rows there are.
func days(t *testing.T, base string) (turns, tokens, held, rows int64) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(base, "house.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.QueryRowContext(t.Context(), `SELECT (SELECT coalesce(sum(turns),0) FROM day_budgets), (SELECT coalesce(sum(tokens),0) FROM day_budgets),
		(SELECT coalesce(sum(held_turns+held_tokens),0) FROM day_runs), (SELECT count(*) FROM day_runs)+(SELECT count(*) FROM day_budgets)`).Scan(&turns, &tokens, &held, &rows)
	if err != nil {
		t.Fatal(err)
	}
	return turns, tokens, held, rows
}

// oneDay skips a test that would see two days: its processes have the real clock.
func oneDay(t *testing.T) {
	t.Helper()
	if now := time.Now(); contextstore.DayOf(now) != contextstore.DayOf(now.Add(5*time.Minute)) {
		t.Skip("the day is about to end")
	}
}

func shells(n int, command string) llmtest.Answer {
	return llmtest.Answer{Calls: []llm.ToolCall{{ID: fmt.Sprint("call_", n), Name: "shell", Arguments: fmt.Sprintf(`{"command":%q}`, command)}}}
}

const twoParts = `{"phase":"planning","goal_understanding":{"main_objective":"It is counted","success_criteria":["count.txt says 2"],"constraints":[]},"task_decomposition":{"reasoning":"r","subtasks":[{"id":"one","description":"Write 1","dependencies":[]},{"id":"two","description":"Write 2","dependencies":["one"]}]},"action_plan":{"execution_order":[],"actions":[]}}`

// A run that a plan leads writes its handover with the last call of its budget.
// Killed while the model writes it, or as the call beside it has no result yet, it
// goes on to the same end and asks for it once.
func TestTheLastCallIsAHandover(t *testing.T) {
	t.Parallel()
	stalls := make(chan struct{}, 1)
	answered := 0
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch n := r.Turn(); n {
		case 0:
			return llmtest.Answer{Text: twoParts}
		case 1:
			return shells(1, "printf 1 > count.txt")
		case 2:
			return llmtest.Answer{Text: `{"task_id":"one","status":"done","summary":"count.txt says 1"}`}
		case 3:
			if answered++; answered == 1 {
				stalls <- struct{}{}
				return llmtest.Answer{Text: "never comes", Stall: llmtest.StallAtOnce}
			}
			a := shells(2, "printf 9 > count.txt")
			a.Text = "One is written, two is not."
			return a
		}
		return llmtest.Answer{Text: "too many"}
	})
	h := newHouse(t, server.URL, "")
	h.env = []string{"TORI_PLANNING_ENABLED=true"}
	h.spends(server, "max_turns: 4")
	p := h.start(h.args...)
	<-stalls
	_ = p.Process.Signal(syscall.SIGKILL)
	_ = p.code()
	h.ends(exitFailed, `^failed: the budget is used up: 4 of 4 \(budget.max_turns\)`, h.again()...)
	v := h.only()
	summary := lastSummary(t, v).Summary
	comments, err := readFile(filepath.Join(h.dir, "issue.comments.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{summary, string(comments)} {
		if !strings.Contains(text, "One is written, two is not.") || !strings.Contains(text, "4 of 4 (budget.max_turns)") || strings.Contains(text, "too many") {
			t.Errorf("told:\n%s", text)
		}
	}
	if strings.Contains(string(comments), "put together from the records") {
		t.Errorf("a handover is put together beside the model's:\n%s", comments)
	}
	asked, refused := 0, 0
	err = v.Tail(contextstore.Messages, -1, func(line []byte) error {
		m, err := contextstore.DecodeMessage(line)
		if m.Kind == "handover/turns" {
			asked++
		}
		if m.Role == "tool" && strings.HasPrefix(m.Content, "Not run: the budget is used up") {
			refused++
		}
		return err
	})
	if err != nil || asked != 1 || refused != 1 {
		t.Errorf("%d handovers asked for, %d calls refused: %v", asked, refused, err)
	}
}

// Where no call fits any more the handover is put together from the plan; in a run
// without one, from what the model said last.
func TestAHandoverWithoutAModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		planned, budget string
		answers         []llmtest.Answer
		want            []string
	}{
		"planned": {"true", "max_tokens: 60000", []llmtest.Answer{{Text: twoParts}, shells(1, "printf 1 > count.txt"), {Text: `{"task_id":"one","status":"done","summary":"count.txt says 1"}`,
			Usage: &llm.Usage{PromptTokens: 59_000, CompletionTokens: 10}}},
			[]string{"goal: It is counted", "done: one: count.txt says 1", "not done: two: Write 2", "budget.max_tokens"}},
		"plain": {"false", "max_turns: 2", []llmtest.Answer{{Text: "I look first.", Calls: shells(1, "true").Calls}, shells(2, "true")},
			[]string{"The model said last:", "I look first.", "2 of 2 (budget.max_turns)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
				if r.Turn() < len(c.answers) {
					return c.answers[r.Turn()]
				}
				return llmtest.Answer{Text: "too many"}
			})
			h := newHouse(t, server.URL, "")
			h.env = []string{"TORI_PLANNING_ENABLED=" + c.planned}
			h.spends(server, c.budget)
			h.ends(exitFailed, "^failed: the budget ", h.args...)
			comments, err := readFile(filepath.Join(h.dir, "issue.comments.md"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(comments), "put together from the records") != (c.planned == "true") {
				t.Errorf("what heads nothing:\n%s", comments)
			}
			summary := lastSummary(t, h.only()).Summary
			for i, want := range c.want {
				if !strings.Contains(string(comments), want) {
					t.Errorf("no %q in the comment:\n%s", want, comments)
				}
				if i > 0 && !strings.Contains(summary, want) {
					t.Errorf("no %q in the summary:\n%s", want, summary)
				}
			}
			if n := h.only().State.LLMCallCount; n != int64(len(c.answers)) || strings.Contains(summary, "too many") {
				t.Errorf("%d calls; %s", n, summary)
			}
		})
	}
}

// A limit of the day pauses the run, says so in the language of its reader, and
// leaves it as it is until there is room.
func TestALimitOfTheDayPausesARun(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	oneDay(t)
	server := llmtest.NewServer(t, llmtest.Loop(4, "read_file", `{"path":"README.md"}`, "Done."))
	h := newHouse(t, server.URL, "")
	h.env = []string{"USER=ken", "LANG=C.UTF-8"}
	h.spends(server, "user_day: {max_turns: 7}")
	other := append([]string{"run", "--repo", filepath.Join(h.dir, "repo"), "--message", "Look.", "--config", h.config, "--base-dir", h.base()}, h.bare...)
	h.ends(exitOK, "^completed: ", h.args...)
	if turns, _, held, _ := days(t, h.base()); turns != 5 || held != 0 {
		t.Fatalf("%d turns, %d held", turns, held)
	}
	const reason = `^paused: the budget of the day is used up: 7 of 7 \(budget.user_day.max_turns\); the day ends at 20..-..-.. 00:00 UTC$`
	h.ends(exitPaused, reason, other...)
	views, err := list(t.Context(), h.base())
	if err != nil || len(views.Views) != 2 {
		t.Fatal(views, err)
	}
	paused := views.Views[0]
	if paused.Status() != task.Paused {
		paused = views.Views[1]
	}
	resume := append([]string{"run", "--resume", paused.Metadata.UUID, "--base-dir", h.base()}, h.bare...)
	h.ends(exitPaused, reason, resume...)
	h.env[1] = "LANG=ja_JP.UTF-8"
	h.ends(exitPaused, `1 日の予算を使い切りました: 7 / 7（budget.user_day.max_turns）。この日は 20..-..-.. 00:00 UTC に終わります`, resume...)
	if turns, _, _, _ := days(t, h.base()); turns != 7 {
		t.Errorf("%d turns", turns)
	}
	h.env[1] = "LANG=C.UTF-8"
	h.spends(server, "user_day: {max_turns: 100}, day: {max_turns: 100}")
	h.ends(exitOK, "^completed: ", resume...)
	if turns, _, held, _ := days(t, h.base()); turns != 10 || held != 0 {
		t.Errorf("%d turns, %d held", turns, held)
	}
}

// Killed between calls and their settlement, again and again, each call counts
// once; without limits nothing is written.
func TestKilledBeforeWhatItTookIsSettled(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, limited := range map[string]bool{"limited": true, "unlimited": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const turns, kills = 12, 3
			reached := make(chan struct{}, kills)
			loop := llmtest.Loop(turns, "read_file", `{"path":"README.md"}`, "Done.")
			killed := map[int]bool{}
			server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
				if n := r.Turn(); n%4 == 2 && !killed[n] {
					killed[n] = true
					reached <- struct{}{}
					return llmtest.Answer{Text: "never comes", Stall: llmtest.StallAtOnce}
				}
				a := loop(r)
				a.Usage = &llm.Usage{PromptTokens: 100, CompletionTokens: 10}
				return a
			})
			h := newHouse(t, server.URL, "")
			budget := "max_turns: 100"
			if limited {
				budget = "user_day: {max_turns: 10000, max_tokens: 100000000}"
			}
			h.spends(server, budget)
			p := h.start(h.args...)
			for range kills {
				<-reached
				_ = p.Process.Signal(syscall.SIGKILL)
				_ = p.code()
				p = h.start(h.again()...)
			}
			if code := p.code(); code != exitOK {
				t.Fatalf("exit code %d:\n%s", code, p.out.String())
			}
			s := h.only().State
			calls, tokens, held, rows := days(t, h.base())
			if limited && (calls != s.LLMCallCount || calls != turns+1 || tokens != s.TotalTokensUsed || held != 0) {
				t.Errorf("%d calls and %d tokens count for the day, %d are held; the run took %d and %d", calls, tokens, held, s.LLMCallCount, s.TotalTokensUsed)
			}
			if !limited && rows != 0 {
				t.Errorf("%d rows", rows)
			}
		})
	}
}

// What a dead run holds is free when somebody stops it, and what it took counts.
func TestADeadRunThatIsStopped(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 1)
	loop := llmtest.Loop(100, "read_file", `{"path":"README.md"}`, "Done.")
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 3 {
			reached <- struct{}{}
			return llmtest.Answer{Text: "never comes", Stall: llmtest.StallAtOnce}
		}
		return loop(r)
	})
	h := newHouse(t, server.URL, "")
	h.spends(server, "day: {max_turns: 10000}")
	p := h.start(h.args...)
	<-reached
	_ = p.Process.Signal(syscall.SIGKILL)
	_ = p.code()
	if turns, _, held, _ := days(t, h.base()); turns != 0 || held == 0 {
		t.Fatalf("%d turns, %d held by a dead run", turns, held)
	}
	p = h.start("stop", h.only().Metadata.UUID, "--base-dir", h.base(), "--config", h.config)
	code := p.code()
	if turns, _, held, _ := days(t, h.base()); turns != 3 || held != 0 || code != exitOK || h.only().Status() != task.Stopped {
		t.Errorf("exit code %d, %s, %d turns, %d held\n%s", code, h.only().Status(), turns, held, p.out.String())
	}
}

// On a forge the comment says why a run is paused, and a daemon takes it up again
// when the limit leaves room: here, because it is another one.
func TestServeTakesUpWhatADayPaused(t *testing.T) {
	t.Parallel()
	oneDay(t)
	w := newTown(t, "budget: {day: {max_turns: 2}}\n")
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	for range 2 { // it is not taken up while nothing has changed
		log := w.once()
		labels, ours := w.shown(n)
		if len(ours) != 1 || labels != "coding agent paused" || !strings.Contains(ours[0], "the budget of the day is used up: 2 of 2 (budget.day.max_turns); the day ends at") ||
			!strings.Contains(ours[0], "the run goes on by itself after that") {
			t.Fatalf("%s %q\n%s", labels, ours, log)
		}
	}
	w.env = []string{"TORI_BUDGET_DAY_MAX_TURNS=50"}
	log := w.once()
	if labels, ours := w.shown(n); len(w.repo.Pulls()) != 1 || len(ours) != 1 || !strings.Contains(ours[0], "Completed") {
		t.Fatalf("%s %q\n%s", labels, ours, log)
	}
}

// A run whose context a server keeps is found by its base directory, too.
func TestResumeOnAServer(t *testing.T) {
	skipShort(t, "it runs three times")
	t.Parallel()
	oneDay(t)
	server := llmtest.NewServer(t, llmtest.Loop(4, "read_file", `{"path":"README.md"}`, "Done."))
	h := newHouse(t, server.URL, "")
	keepers.Store(h.base(), pgtest.URL(t))
	h.env = append([]string{"USER=ken", "LANG=C.UTF-8"}, ledgerEnv(h.base())...)
	h.spends(server, "user_day: {max_turns: 2}")
	h.ends(exitPaused, "^paused: the budget of the day", h.args...)
	if err := openLedger(t.Context(), h.base()); err != nil {
		t.Fatal(err)
	}
	h.ends(exitPaused, "^paused: the budget of the day", h.again()...)
	h.spends(server, "")
	h.ends(exitOK, "^completed: ", h.again()...)
}
