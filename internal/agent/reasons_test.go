package agent

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/confined"
	"toritsugi/internal/turn"
)

type named struct{ llm.Client }

func (named) Provider() string { return "script" }
func (named) Model() string    { return "m.yaml" }

// Git looks at the tree of a run that ended for as long as it takes, unless somebody stops it,
// before or while it does: then for a few seconds.
func TestLastLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, while error // of the work; of the process
		bounded       bool
	}{"nobody": {}, "time is up": {before: ErrOverTime}, "paused": {before: PauseFor("ken"), bounded: true}, "stopped while it looks": {while: context.Canceled, bounded: true},
		"time is up, and stopped": {ErrOverTime, context.Canceled, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				process, interrupt := context.WithCancelCause(context.Background())
				working, end := context.WithCancelCause(process)
				defer interrupt(nil)
				if c.before != nil {
					end(c.before)
				}
				look, done := lastLook(working, process)
				time.Sleep(time.Second)
				if c.while != nil {
					interrupt(c.while)
				}
				time.Sleep(lastLookTime - 2*time.Second)
				if look.Err() != nil {
					t.Error("it has no time")
				}
				time.Sleep(time.Hour)
				if (look.Err() != nil) != c.bounded {
					t.Errorf("ended: %t", look.Err() != nil)
				}
				done()
				end(nil)
				synctest.Wait()
			})
		})
	}
}

// The reason of each end of a run is in the language of who reads it, whole.
func TestAReasonIsInOneLanguage(t *testing.T) {
	t.Parallel()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "folder", Type: "issue", ID: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	checks := []contextstore.CheckRun{{Command: "make test", ExitCode: 1}}
	caused := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
		cancel(cause)
		return ctx
	}
	live := t.Context()
	for name, end := range map[string]struct {
		ctx  context.Context
		err  error
		want task.Status
	}{
		"done":                    {live, nil, task.Completed},
		"the time is up":          {caused(ErrOverTime), context.Canceled, task.Failed},
		"the process ends":        {caused(ErrShutdown), context.Canceled, task.Queued},
		"somebody pauses":         {caused(PauseFor("Άννα")), context.Canceled, task.Paused},
		"somebody stops":          {caused(&requestError{contextstore.Request{Action: contextstore.Stop, By: "Άννα"}}), context.Canceled, task.Stopped},
		"people merge the draft":  {caused(&requestError{contextstore.Request{Action: contextstore.Stop, By: "dispatch.merged"}}), context.Canceled, task.Stopped},
		"Ctrl-C":                  {caused(context.Canceled), context.Canceled, task.Paused},
		"a day":                   {live, &contextstore.DayError{Key: "budget.day.max_turns", Limit: "3", Taken: "2", Held: "1", Needs: "1", Until: time.Unix(0, 0)}, task.Paused},
		"a question of ours":      {live, &tool.WaitError{For: i18n.Recorded("unsure", i18n.Recorded("do_retry"), "λόγος")}, task.AwaitingApproval},
		"a question of the model": {live, &tool.WaitError{For: "ποιο;"}, task.AwaitingApproval},
		"checks":                  {live, &checksError{"agent.checks_failed", checks}, task.Failed},
		"nothing done":            {live, &checksError{"agent.nothing_done", checks}, task.Failed},
		"open points":             {live, &openPointsError{[]string{i18n.Recorded("unread"), i18n.Recorded("failed", "α", i18n.Recorded("no_result")), i18n.Recorded("unmet", "κ")}}, task.Failed},
		"limits that are spent":   {live, &planning.StuckError{Spent: "loop, total_spent"}, task.Failed},
		"a loop":                  {live, fmt.Errorf("lead: %w", &planning.StuckError{Loop: turn.Circle{Kind: turn.LoopCycle, Tools: []string{"shell", "read_file"}}}), task.Failed},
		"a loop without a plan":   {live, &turn.CircleError{Circle: turn.Circle{Kind: turn.LoopRepeat, Tools: []string{"shell"}}}, task.Failed},
		"a setup": {live, &checkrun.SetupError{Run: checks[0], Refused: func(l i18n.Lang) string {
			return confined.Refusal(l, sandbox.Refusal{Address: "δ:443", Reason: i18n.E("sandbox.not_listed")}, "workspace.registries")
		}}, task.Failed},
		"a budget":                  {live, &turn.BudgetError{Key: turn.KeyTurns, Limit: "3", Taken: "3"}, task.Failed},
		"a budget, before its end":  {live, &turn.BudgetError{Key: turn.KeyTokens, Limit: "3", Taken: "2", Next: "2"}, task.Failed},
		"a window":                  {live, &memory.TooSmallError{Tokens: 9, Limit: 8}, task.Failed},
		"a window that is refused":  {live, &memory.TooSmallError{Tokens: 9, Refused: true}, task.Failed},
		"answers that are cut off":  {live, turn.ErrCutOff, task.Failed},
		"answers of nothing":        {live, turn.ErrNonsense, task.Failed},
		"no model":                  {live, &llm.Error{Kind: llm.KindRateLimited, Status: 429}, task.Failed},
		"a forge that refuses":      {live, &delivery.PermissionError{Err: i18n.E("agent.disk", syscall.ENOSPC)}, task.Paused},
		"a disk":                    {live, syscall.ENOSPC, task.Paused},
		"a fault of the task":       {live, &delivery.TaskError{Err: i18n.E("agent.secret_in_patch", "api_key")}, task.Failed},
		"what is wrapped":           {live, fmt.Errorf("open workspace: %w", i18n.E("workspace.not_found", "/x")), task.Failed},
		"repositories are left out": {live, nil, task.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
				r := &run{Agent: &Agent{Store: s, Client: named{}, Lang: l, Delivery: &delivery.Service{}}, ledger: c, out: &delivery.Run{Host: &delivery.Host{}}}
				if strings.HasPrefix(name, "repositories") {
					r.verify.left.All, r.verify.left.Paths = 5, []string{"a/b", "c/d", "e/f"}
					r.verify.judged.Open = []string{i18n.Recorded("unread")}
				}
				o := r.causeOf(end.ctx, end.err).outcome(l)
				if o.Status != end.want || o.Reason == "" && end.want != task.Queued {
					t.Errorf("%s: %q", o.Status, o.Reason)
				}
				text := regexp.MustCompile("`[^`]*`|\\S*[/_.][\\w/_.-]+|\\bUTC\\b|\\bno space left on device\\b|\\bAPI\\b|\\bHTTP\\b|\\b(git|shell|setup)\\b").ReplaceAllString(o.Reason, " ")
				if l == i18n.Japanese && regexp.MustCompile(`[A-Za-z]{2,}`).MatchString(text) || l == i18n.English && strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }) {
					t.Errorf("%s: %s", l, o.Reason)
				}
			}
		})
	}
}
