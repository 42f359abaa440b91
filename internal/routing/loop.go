package routing

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// StopReason is why a turn ended (spec/chat §5).
type StopReason string

// The reasons.
const (
	StopDone     StopReason = "done"
	StopLoops    StopReason = "max_loops"
	StopTime     StopReason = "max_millis"
	StopFailed   StopReason = "worker_fail"
	StopConfirm  StopReason = "need_user_confirmation"
	StopInternal StopReason = "error"
)

// Risks of a worker's answer.
const (
	RiskLow    = "low"
	RiskMedium = "medium"
	RiskHigh   = "high"
)

// Limits of a loop.
type Limits struct {
	MaxLoops             int           // legs of workers in a turn: loop.max_loops
	Max                  time.Duration // of the whole turn: loop.max_millis
	ConfirmBelow         float64       // loop.confirm_below
	AutoReroute          bool          // loop.allow_auto_reroute_once
	ChatReroute          bool          // loop.allow_chat_propose_reroute_once
	MinConfidence        float64       // of Chat's proposal: routing.classifier.min_confidence
	MinConfidenceForCode float64       // likewise for coding
}

// Result is what of a worker's answer (WorkerOutput) the loop goes by.
type Result struct {
	NeedsNextLoop  bool
	Confidence     float64
	Risk           string // RiskLow, RiskMedium or RiskHigh
	Questions      []string
	Fit            *bool // nil was not said
	SuggestedRoute string
}

// Next is what follows a leg: another one of Route where Stop is "", else the end.
type Next struct {
	Stop  StopReason
	Route Route
	// From is the route that a reroute left, "" where there was none: a route.override.
	From Route
}

// Loop rules the legs of one turn. It makes no call and has no clock of its own; it is
// for one goroutine.
type Loop struct {
	l        Limits
	now      func() time.Time
	policy   Policy
	text     string
	denied   bool
	began    time.Time
	warming  time.Duration // that does not count
	warm     time.Time     // since when a model is being started; zero where none is
	route    Route
	legs     map[leg]bool
	loops    int
	calls    int
	rerouted bool
	stop     StopReason
}

// leg is a route with its input.
type leg struct {
	route Route
	input string
}

// NewLoop begins a turn about text at now(); route is its decision's, denied as in Input.
func NewLoop(l Limits, now func() time.Time, policy Policy, route Route, text string, denied bool) *Loop {
	return &Loop{l: l, now: now, policy: policy, text: text, denied: denied, began: now(), route: route, legs: map[leg]bool{}}
}

// Begin is asked before each leg of a worker, a coder or a delegation. input is all that
// the leg is asked, so that the same is not done twice: the same route again gets the
// former result with it. The answer is "" where the leg may begin; StopDone where the
// route had this input already; StopLoops or StopTime.
func (l *Loop) Begin(route Route, input string) StopReason {
	this := leg{route, input}
	switch {
	case l.stop != "":
	case l.Left() <= 0, !route.Coding() && l.ForWork() <= 0: // a coder has its own time
		l.stop = StopTime
	case l.legs[this]:
		l.stop = StopDone
	case l.loops >= l.l.MaxLoops:
		l.stop = StopLoops
	default:
		l.legs[this] = true
		l.loops++
		l.route = route
	}
	return l.stop
}

// Left is what is left of the turn's time, at least 0.
func (l *Loop) Left() time.Duration {
	now := l.now()
	spent := now.Sub(l.began) - l.warming
	if !l.warm.IsZero() {
		spent -= now.Sub(l.warm)
	}
	return max(0, l.l.Max-spent)
}

// ForWork is what is left for workers: a third of the turn's time is Chat's, since what was
// found out is worth nothing before it is told.
func (l *Loop) ForWork() time.Duration { return max(0, l.Left()-l.l.Max/3) }

// Warming says that a model is being started or loaded, which does not count, or (false)
// that it is ready.
func (l *Loop) Warming(on bool) {
	switch now := l.now(); {
	case on && l.warm.IsZero():
		l.warm = now
	case !on && !l.warm.IsZero():
		l.warming, l.warm = l.warming+now.Sub(l.warm), time.Time{}
	}
}

// Worked says what follows the answer of the leg that Begin allowed: text is the message,
// and a suggestion that the policy forbids is not followed.
func (l *Loop) Worked(r Result) Next {
	l.calls++
	next, from := Route(""), Route("")
	if r.NeedsNextLoop {
		next = l.route
	}
	if s, ok := ParseRoute(r.SuggestedRoute); ok && r.Fit != nil && !*r.Fit && l.l.AutoReroute && l.may(s) {
		next, from = s, l.route
	}
	switch {
	case r.Risk == RiskHigh,
		len(r.Questions) > 0 && !r.NeedsNextLoop && from == "",
		next != "" && r.Confidence < l.l.ConfirmBelow && (next.Coding() || r.Risk != RiskLow):
		return l.end(StopConfirm)
	case next != "" && !next.Coding() && l.ForWork() <= 0, next != "" && l.Left() <= 0:
		return l.end(StopTime)
	case next == "":
		return l.end(StopDone)
	case l.loops >= l.l.MaxLoops:
		return l.end(StopLoops)
	}
	l.rerouted = l.rerouted || from != ""
	return Next{Route: next, From: from}
}

// Proposed says what follows Chat's proposal of another route: a leg of it where it is
// adopted, else StopDone. Text is what there is of evidence: the turn's message.
func (l *Loop) Proposed(p Proposal) Next {
	least := l.l.MinConfidence
	if p.Route.Coding() {
		least = l.l.MinConfidenceForCode
	}
	switch {
	case !p.Next || !l.l.ChatReroute || p.Confidence < least || !l.may(p.Route), p.Route.Coding() && !l.denied && !StrongEvidence(l.text):
		return l.end(StopDone)
	case l.Left() <= 0, !p.Route.Coding() && l.ForWork() <= 0:
		return l.end(StopTime)
	case l.loops >= l.l.MaxLoops:
		return l.end(StopLoops)
	}
	l.rerouted, l.stop = true, "" // the worker before it was done
	return Next{Route: p.Route, From: l.route}
}

// may reports whether the turn may go over to route.
func (l *Loop) may(route Route) bool {
	return !l.rerouted && route != l.route && l.policy.Leg(route, false) == nil
}

// Failed ends the turn by the error of a leg: StopTime where its time ran out, else StopFailed.
func (l *Loop) Failed(err error) StopReason {
	l.calls++
	l.stop = StopFailed
	if errors.Is(err, context.DeadlineExceeded) && l.ForWork() <= 0 {
		l.stop = StopTime
	}
	return l.stop
}

// Done ends the turn where nothing else did: Chat has answered, or a job was accepted.
func (l *Loop) Done() {
	l.stop = cmp.Or(l.stop, StopDone)
}

func (l *Loop) end(why StopReason) Next {
	l.stop = why
	return Next{Stop: why}
}

// Report is how a turn went, for loop.stop and final.route.
type Report struct {
	Stop        StopReason
	Loops       int
	Elapsed     time.Duration // without the time that models took to start
	FinalRoute  Route
	Rerouted    bool
	WorkerCalls int // that ended, well or not
}

// Report tells how the turn went.
func (l *Loop) Report() Report {
	return Report{l.stop, l.loops, l.l.Max - l.Left(), l.route, l.rerouted, l.calls}
}
