package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/order"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
	"toritsugi/internal/workspace"
)

// Each row of the table of ends: its causes, and how the run ends by them, before a
// model was called and after that.
func TestEnds(t *testing.T) {
	t.Parallel()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	owned := func(id string) *contextstore.Context {
		uuid, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "folder", Type: "issue", ID: id}})
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := s.Claim(t.Context(), uuid)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	fresh, worked := owned("1"), owned("2")
	worked.Spent(&contextstore.Usage{Prompt: 1})
	if fresh.State().LLMCallCount != 0 || worked.State().LLMCallCount != 1 {
		t.Fatal(fresh.State(), worked.State())
	}
	down := &forge.Error{Kind: forge.Unavailable, Err: errors.New("503")}
	asked := func(do contextstore.Action) error {
		return &requestError{contextstore.Request{Action: do, By: "ken"}}
	}
	over := &turn.BudgetError{Key: turn.KeyTime, Limit: "1m", Taken: "1m"}
	spent := &turn.BudgetError{Key: turn.KeyTurns, Limit: "3", Taken: "3"}
	red := []contextstore.CheckRun{{Command: "make test", ExitCode: 1}}
	hosted, forGood, timed := func(r *run) { r.out.Order.Act = &order.Act{} }, func(r *run) { r.StopAsked = func() bool { return true } }, true
	covered := map[string]bool{}
	for _, c := range []struct {
		row          string
		ctx, err     error
		with         func(*run)
		first, later task.Status // before a model was called, and after that
		timed        bool
		reason       string // a part of it
	}{
		{"the work is done", nil, nil, nil, task.Completed, task.Completed, false, "no change"},
		{"the work goes on at the draft", nil, nil, func(r *run) { r.left = true }, task.Completed, task.Completed, false, "task of the draft"},
		{"the work is done", ErrOverTime, nil, nil, task.Completed, task.Completed, false, "no change"}, // just before its time was up
		{"its time is used up", ErrOverTime, errors.New("killed"), nil, task.Failed, task.Failed, timed, "budget.max_minutes"},
		{"people took its branch or draft away", nil, &delivery.EndedError{Err: i18n.E("delivery.branch_deleted", "fix")}, nil, task.Stopped, task.Stopped, false, "branch fix was deleted"},
		{"the process shuts down", ErrShutdown, context.Canceled, nil, task.Queued, task.Queued, false, ""},
		{"a stop was requested", asked(contextstore.Stop), context.Canceled, forGood, task.Stopped, task.Stopped, false, "ken"},
		{"a pause was requested", asked(contextstore.Pause), context.Canceled, forGood, task.Paused, task.Paused, false, "ken"},
		{"interrupted for good", context.Canceled, context.Canceled, forGood, task.Stopped, task.Stopped, false, "stopped"},
		{"interrupted", context.Canceled, context.Canceled, nil, task.Paused, task.Paused, false, "paused on request"},
		{"interrupted", context.Canceled, &checksError{"agent.checks_failed", red}, nil, task.Paused, task.Paused, false, "paused on request"},
		{"a day's budget is used up", nil, &contextstore.DayError{Key: "budget.day.max_turns", Limit: "3", Taken: "3"}, hosted, task.Paused, task.Paused, false, "budget.day.max_turns"},
		{"the forge cannot be had at the start", nil, fmt.Errorf("open workspace: %w", down), hosted, task.Queued, task.Queued, false, "503"},
		{"an answer cannot be read now", nil, &tool.WaitError{For: "which?", Cause: down}, nil, task.Queued, task.Queued, false, "503"},
		{"people owe an answer", nil, &tool.WaitError{For: "which?"}, nil, task.AwaitingApproval, task.AwaitingApproval, false, "which?"},
		{"people owe an answer", nil, &tool.WaitError{For: "which?", Cause: errors.New("unreadable")}, nil, task.AwaitingApproval, task.AwaitingApproval, false, "; unreadable"},
		{"people must agree to the change", nil, &waitError{approval.Job{Proposal: approval.Proposal{Job: "20260304-120000-00000001"}}}, nil, task.AwaitingApproval, task.AwaitingApproval, false, "20260304-120000-00000001"},
		{"people denied the change", nil, &approval.DecidedError{Job: approval.Job{State: approval.State{Status: approval.Denied, Approver: "github:7"}}}, nil, task.Stopped, task.Stopped, false, "github:7"},
		{"checks fail", nil, &checksError{"agent.checks_failed", red}, nil, task.Failed, task.Failed, false, "`make test`"},
		{"points stay open", nil, &openPointsError{[]string{"no tests"}}, nil, task.Failed, task.Failed, false, "no tests"},
		{"the plan is stuck", nil, &planning.StuckError{Spent: "total_spent"}, nil, task.Failed, task.Failed, false, ""},
		{"the calls go round in circles", nil, &turn.CircleError{Circle: turn.Circle{Kind: turn.LoopRepeat, Tools: []string{"shell"}}}, nil, task.Failed, task.Failed, false, ""},
		{"the setup fails", nil, &checkrun.SetupError{Run: red[0]}, nil, task.Failed, task.Failed, false, "make test"},
		{"a budget is used up", nil, spent, nil, task.Failed, task.Failed, false, turn.KeyTurns},
		{"a budget is used up", nil, fmt.Errorf("turn: %w", over), nil, task.Failed, task.Failed, timed, turn.KeyTime},
		{"the window is too small", nil, &memory.TooSmallError{Tokens: 9, Limit: 8}, nil, task.Failed, task.Paused, false, "9"},
		{"the window is too small", nil, &memory.TooSmallError{Tokens: 9, Refused: true}, nil, task.Failed, task.Paused, false, "script/m.yaml"},
		{"answers are cut off", nil, turn.ErrCutOff, nil, task.Failed, task.Failed, false, "script/m.yaml"},
		{"answers are no answers", nil, turn.ErrNonsense, nil, task.Failed, task.Failed, false, "script/m.yaml"},
		{"the script has ended", nil, &llm.Error{Kind: llm.KindScriptEnded}, nil, task.Failed, task.Failed, false, "script/m.yaml"},
		{"the model cannot be had", nil, &llm.Error{Kind: llm.KindRateLimited, Status: 429}, nil, task.Failed, task.Paused, false, "script/m.yaml"},
		{"the forge does not let it push", nil, &delivery.PermissionError{Err: errors.New("403")}, nil, task.Paused, task.Paused, false, "403"},
		{"the disk fails", nil, fmt.Errorf("append: %w", syscall.ENOSPC), nil, task.Paused, task.Paused, false, "no space"},
		{"the task itself is at fault", nil, &delivery.TaskError{Err: errors.New("a secret")}, nil, task.Failed, task.Failed, false, "a secret"},
		{"anything else", nil, errors.New("the repository moved"), nil, task.Failed, task.Paused, false, "moved"},
		{"anything else", nil, down, nil, task.Failed, task.Paused, false, "503"}, // no forge is asked for a folder
		{"anything else", nil, down, func(r *run) { hosted(r); r.out.Workspace = &workspace.Workspace{}; r.ledger = worked }, task.Paused, task.Paused, false, "503"},
	} {
		for ledger, want := range map[*contextstore.Context]task.Status{fresh: c.first, worked: c.later} {
			r := &run{Agent: &Agent{Store: s, Client: named{}, Limits: Limits{Run: turn.Budget{Time: time.Minute}}}, ledger: ledger, out: &delivery.Run{Host: &delivery.Host{}}}
			if c.with != nil {
				c.with(r)
			}
			by := cause{r, c.err, c.ctx}
			covered[c.row] = true
			if row := endOf(by).name; row != c.row {
				t.Errorf("%v, %v: %q, not %q", c.ctx, c.err, row, c.row)
			}
			if o := by.outcome(i18n.English); o.Status != want || o.TimedOut != c.timed || !strings.Contains(o.Reason, c.reason) || o.Reason == "" && want != task.Queued {
				t.Errorf("%s, after %d calls: %+v, not %s", c.row, ledger.State().LLMCallCount, o, want)
			}
		}
	}
	for _, e := range endRules {
		if !covered[e.name] {
			t.Errorf("%q is not tested", e.name)
		}
	}
}
