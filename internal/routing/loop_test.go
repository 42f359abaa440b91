package routing

import (
	"context"
	"fmt"
	"testing"
	"time"
)

var loopLimits = Limits{MaxLoops: 3, Max: 90 * time.Second, ConfirmBelow: 0.6, AutoReroute: true, ChatReroute: true, MinConfidence: 0.6, MinConfidenceForCode: 0.8}

// clock is a clock that tests move.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func begun(t *testing.T, limits Limits, p Policy, route Route, text string) (*Loop, *clock) {
	t.Helper()
	c := &clock{time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	l := NewLoop(limits, c.now, p, route, text, false)
	if why := l.Begin(route, text); why != "" {
		t.Fatal(why)
	}
	return l, c
}

// What follows a worker's answer.
func TestWorked(t *testing.T) {
	t.Parallel()
	no := false
	yes := true
	for _, tc := range []struct {
		name   string
		policy Policy
		route  Route
		r      Result
		want   Next
	}{
		{"done", Policy{}, Plan, Result{Confidence: 0.9, Risk: RiskLow}, Next{Stop: StopDone}},
		{"unsure but at its end", Policy{}, Plan, Result{Confidence: 0.1, Risk: RiskMedium}, Next{Stop: StopDone}},
		{"again", Policy{}, Plan, Result{NeedsNextLoop: true, Confidence: 0.9, Risk: RiskLow}, Next{Route: Plan}},
		{"high risk", Policy{}, Ops, Result{NeedsNextLoop: true, Confidence: 1, Risk: RiskHigh}, Next{Stop: StopConfirm}},
		{"questions", Policy{}, Plan, Result{Confidence: 1, Risk: RiskLow, Questions: []string{"?"}}, Next{Stop: StopConfirm}},
		{"questions on the way", Policy{}, Plan, Result{NeedsNextLoop: true, Confidence: 1, Risk: RiskLow, Questions: []string{"?"}}, Next{Route: Plan}},
		{"unsure, low risk", Policy{}, Plan, Result{NeedsNextLoop: true, Confidence: 0.59, Risk: RiskLow}, Next{Route: Plan}},
		{"unsure, medium risk", Policy{}, Plan, Result{NeedsNextLoop: true, Confidence: 0.59, Risk: RiskMedium}, Next{Stop: StopConfirm}},
		{"sure enough", Policy{}, Plan, Result{NeedsNextLoop: true, Confidence: 0.6, Risk: RiskMedium}, Next{Route: Plan}},
		{"reroute", Policy{}, Plan, Result{NeedsNextLoop: true, Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "ops"}, Next{Route: Ops, From: Plan}},
		{"reroute at its end", Policy{}, Plan, Result{Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "OPS"}, Next{Route: Ops, From: Plan}},
		{"reroute to itself", Policy{}, Plan, Result{Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "PLAN"}, Next{Stop: StopDone}},
		{"reroute to nowhere", Policy{}, Plan, Result{Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "FISH"}, Next{Stop: StopDone}},
		{"it fits", Policy{}, Plan, Result{Confidence: 0.9, Risk: RiskLow, Fit: &yes, SuggestedRoute: "OPS"}, Next{Stop: StopDone}},
		{"fit not said", Policy{}, Plan, Result{Confidence: 0.9, Risk: RiskLow, SuggestedRoute: "OPS"}, Next{Stop: StopDone}},
		{"reroute to code", Policy{}, Plan, Result{Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "CODE"}, Next{Route: Code, From: Plan}},
		{"unsure reroute to code", Policy{}, Plan, Result{Confidence: 0.5, Risk: RiskLow, Fit: &no, SuggestedRoute: "CODE2"}, Next{Stop: StopConfirm}},
		{"reroute to code while local", Policy{LocalOnly: true}, Plan, Result{Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "CODE"}, Next{Stop: StopDone}},
	} {
		l, _ := begun(t, loopLimits, tc.policy, tc.route, "x")
		if got := l.Worked(tc.r); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}

	off := loopLimits
	off.AutoReroute = false
	l, _ := begun(t, off, Policy{}, Plan, "x")
	if got := l.Worked(Result{Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "OPS"}); got.Stop != StopDone {
		t.Errorf("switched off: %+v", got)
	}
}

// One reroute a message, whoever suggests it.
func TestRerouteOnce(t *testing.T) {
	t.Parallel()
	no := false
	l, _ := begun(t, loopLimits, Policy{}, Plan, "x")
	if got := l.Worked(Result{Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "OPS"}); got.Route != Ops {
		t.Fatalf("%+v", got)
	}
	if why := l.Begin(Ops, "x"); why != "" {
		t.Fatal(why)
	}
	if got := l.Worked(Result{Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "RESEARCH"}); got.Stop != StopDone {
		t.Errorf("a second one: %+v", got)
	}
	l, _ = begun(t, loopLimits, Policy{}, Plan, "x")
	l.Worked(Result{Confidence: 0.9, Risk: RiskLow, Fit: &no, SuggestedRoute: "OPS"})
	l.Begin(Ops, "x")
	if got := l.Proposed(Proposal{true, Research, "", 1}); got.Stop != StopDone {
		t.Errorf("of Chat, behind a worker's: %+v", got)
	}
	if r := l.Report(); !r.Rerouted || r.FinalRoute != Ops || r.Loops != 2 || r.WorkerCalls != 1 {
		t.Errorf("%+v", r)
	}
}

// Chat's proposal is adopted by confidence and evidence, never against local only.
func TestProposed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text   string
		p      Proposal
		policy Policy
		denied bool
		want   Next
	}{
		{"x", Proposal{true, Ops, "", 0.6}, Policy{}, false, Next{Route: Ops, From: Chat}},
		{"x", Proposal{true, Ops, "", 0.59}, Policy{}, false, Next{Stop: StopDone}},
		{"x", Proposal{false, Ops, "", 1}, Policy{}, false, Next{Stop: StopDone}},
		{"x", Proposal{true, Chat, "", 1}, Policy{}, false, Next{Stop: StopDone}},
		{"main.go", Proposal{true, Code, "", 0.8}, Policy{}, false, Next{Route: Code, From: Chat}},
		{"main.go", Proposal{true, Code3, "", 0.79}, Policy{}, false, Next{Stop: StopDone}},
		{"直して", Proposal{true, Code, "", 1}, Policy{}, false, Next{Stop: StopDone}},
		{"main.go", Proposal{true, Code, "", 1}, Policy{LocalOnly: true}, false, Next{Stop: StopDone}},
		{"x", Proposal{true, Ops, "", 1}, Policy{LocalOnly: true}, false, Next{Route: Ops, From: Chat}},
		{"直して", Proposal{true, Code, "", 0.8}, Policy{}, true, Next{Route: Code, From: Chat}},
	} {
		l := NewLoop(loopLimits, (&clock{}).now, tc.policy, Chat, tc.text, tc.denied)
		if got := l.Proposed(tc.p); got != tc.want {
			t.Errorf("%q %+v: %+v, want %+v", tc.text, tc.p, got, tc.want)
		}
	}
	off := loopLimits
	off.ChatReroute = false
	if got := NewLoop(off, (&clock{}).now, Policy{}, Chat, "x", false).Proposed(Proposal{true, Ops, "", 1}); got.Stop != StopDone {
		t.Errorf("switched off: %+v", got)
	}
}

// A turn ends whatever its workers say: by their number, by time, or where nothing is new.
func TestLoopEnds(t *testing.T) {
	t.Parallel()
	l, _ := begun(t, loopLimits, Policy{}, Plan, "x")
	for i := 1; ; i++ {
		n := l.Worked(Result{NeedsNextLoop: true, Confidence: 1, Risk: RiskLow})
		if n.Stop != "" {
			if n.Stop != StopLoops || i != 3 {
				t.Errorf("after %d: %+v", i, n)
			}
			break
		}
		if why := l.Begin(n.Route, fmt.Sprint("x", i)); why != "" {
			t.Fatal(why)
		}
	}
	if r := l.Report(); r.Loops != 3 || r.Stop != StopLoops || r.WorkerCalls != 3 {
		t.Errorf("%+v", r)
	}

	l, _ = begun(t, loopLimits, Policy{}, Plan, "x")
	if why := l.Begin(Plan, "x"); why != StopDone {
		t.Errorf("the same again: %q", why)
	}

	l, c := begun(t, loopLimits, Policy{}, Plan, "x")
	c.Time = c.Add(89 * time.Second)
	if l.Left() != time.Second {
		t.Errorf("%s left", l.Left())
	}
	c.Time = c.Add(time.Second)
	if n := l.Worked(Result{NeedsNextLoop: true, Confidence: 1, Risk: RiskLow}); n.Stop != StopTime || l.Left() != 0 {
		t.Errorf("%+v, %s left", n, l.Left())
	}
	if why := l.Begin(Ops, "y"); why != StopTime {
		t.Errorf("behind the end: %q", why)
	}
	if l.Done(); l.Report().Stop != StopTime {
		t.Errorf("%+v", l.Report())
	}
}

// The time that models take to start does not count.
func TestWarmingDoesNotCount(t *testing.T) {
	t.Parallel()
	l, c := begun(t, loopLimits, Policy{}, Plan, "x")
	l.Warming(true)
	c.Time = c.Add(10 * time.Minute)
	if l.Left() != loopLimits.Max {
		t.Errorf("%s left while it warms", l.Left())
	}
	l.Warming(true) // of another leg meanwhile
	c.Time = c.Add(time.Minute)
	l.Warming(false)
	l.Warming(false)
	c.Time = c.Add(30 * time.Second)
	if l.Left() != time.Minute || l.Report().Elapsed != 30*time.Second {
		t.Errorf("%s left, %+v", l.Left(), l.Report())
	}
}

func TestFailed(t *testing.T) {
	t.Parallel()
	l, c := begun(t, loopLimits, Policy{}, Plan, "x")
	if why := l.Failed(context.DeadlineExceeded); why != StopFailed {
		t.Errorf("its own timeout: %s", why)
	}
	c.Time = c.Add(2 * time.Minute)
	if why := l.Failed(fmt.Errorf("call: %w", context.DeadlineExceeded)); why != StopTime {
		t.Errorf("the turn's: %s", why)
	}
}
