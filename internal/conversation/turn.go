package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/routing"
	"toritsugi/internal/telemetry"
)

// turn is the answer to one message.
type turn struct {
	e     *Engine
	x     session
	l     *turnQueue
	m     channel.Message
	entry Entry   // of the message
	posts []Entry // that answer it already
	id    string  // "terminal:hanako:1a2b#12"
	code  string  // the text for coders: secrets are masked, what only looks like numbers of people is not

	decision routing.Decision
	before   time.Duration // that deciding took
	route    routing.Route // of the answer: what it declares
	handed   bool          // Chat has handed it over once
	mayHand  bool          // Chat may hand it over in the next leg
	items    []Item
	found    found         // by the latest leg of RESEARCH
	cited    []string      // sources of what Chat writes from
	said     []llm.Message // of this turn, to Chat and by it
	overlay  bool          // the work overlay was part of it
	legs     int
	shown    *shown // what was streamed
	stop     routing.StopReason
	failure  error  // of a leg, for final.route
	job      string // that the turn tells of, "" for none
	ended    string // without a proposal, in the program's words, "" where it did not
	events   []any  // that are not written yet
	heard    heard  // of what was said before
	answered bool   // nothing more is owed to the message
	span     *telemetry.Span

	mu   sync.Mutex
	loop *routing.Loop
}

// traced begins the span of the turn, which ended ends.
func (t *turn) traced(ctx context.Context) (_ context.Context, ended func()) {
	ctx, t.span = telemetry.StartTurn(ctx, t.x.ID, t.id)
	t.span.Text("tori.channel", string(t.x.kind))
	t.span.Text("tori.job", t.job) // which ends the tori.task.key of its run
	return ctx, func() { t.span.End(cmp.Or(ctx.Err(), t.failure)) }
}

// run decides who answers and has them do so.
func (t *turn) run(ctx context.Context) {
	e := t.e
	s, err := t.x.state()
	if err != nil {
		t.broken(ctx, err)
		return
	}
	began := e.Now()
	denied, err := t.x.denied(t.entry.Seq)
	if err != nil {
		t.broken(ctx, err)
		return
	}
	ask := t.classify
	policy := routing.Policy{LocalOnly: s.LocalOnly, CloudRoutes: e.Cloud}
	t.loop = routing.NewLoop(e.Limits, e.Now, policy, routing.Chat, t.entry.Content, denied) // the classifier's time is the turn's
	deciding, span := telemetry.Start(ctx, "routing", "")
	d := e.Router.Decide(deciding, routing.Input{Channel: t.x.kind, Text: t.entry.Content, LocalOnly: s.LocalOnly, ToChat: e.ToChat[t.x.kind], Denied: denied, Ask: ask})
	span.Text("tori.route", string(d.PrimaryRoute))
	span.Text("tori.source", string(d.Source))
	span.End(ctx.Err())
	if ctx.Err() != nil {
		t.decision.PrimaryRoute, t.route = routing.Chat, routing.Chat // nobody else had begun
		t.interrupted(ctx)
		t.over(ctx)
		return
	}
	t.decision, t.route, t.before = d, cmp.Or(d.Coder, d.PrimaryRoute), e.Now().Sub(began)
	limits := e.Limits
	limits.Max = max(t.loop.Left(), time.Millisecond)
	t.loop = routing.NewLoop(limits, e.Now, policy, d.PrimaryRoute, d.Text, denied)
	t.decided(ctx, &s)
	t.say(llm.RoleUser, d.Text)
	switch {
	case d.Held == routing.HeldLocal:
		t.refuse(ctx, d.Wanted)
	case d.Held == routing.HeldBare:
		t.frame("bare", map[string]string{"{route}": string(d.Wanted)})
		t.final(ctx)
	case d.PrimaryRoute.Coding():
		t.coder(ctx, t.route, d.Text, t.rest())
	case d.PrimaryRoute == routing.Chat:
		t.chat(ctx, &s)
	default:
		t.workers(ctx, d.PrimaryRoute, d.Text)
	}
	t.over(ctx)
}

// rest is what is to be done by a coder: the message without its command, as it was
// before numbers were masked.
func (t *turn) rest() string {
	if c, ok := routing.ParseCommand(t.code).(routing.ToRoute); ok {
		return c.Rest
	}
	return t.code
}

// decided puts the decision on record.
func (t *turn) decided(ctx context.Context, s *State) {
	e, d := t.e, &t.decision
	at := e.Now().UTC()
	t.event(ctx, d.Event(at, t.x.ID, t.id))
	if c := d.Classified; c != nil && c.Error.Failure() {
		raw := shortSummary(c.Raw)
		t.event(ctx, classifierError{routing.EventClassifierError, at, t.x.ID, t.id, string(c.Error), raw})
	}
	if d.Source == routing.FromCommand && d.Held == "" && s.PrevRoute != nil && !same(*s.PrevRoute, t.route) {
		t.event(ctx, routing.OverrideEvent{Event: routing.EventOverride, At: at, SessionID: t.x.ID, TurnID: s.PrevTurn, From: *s.PrevRoute, To: t.route, By: routing.ByCommand})
	}
}

// chat has Chat answer, or hand over.
func (t *turn) chat(ctx context.Context, s *State) {
	if t.decision.Held == routing.HeldEntry {
		t.frame("hint", map[string]string{"{route}": string(t.decision.Wanted)})
	}
	t.refer(ctx, s)
	t.workOverlay(s)
	t.mayHand = true
	answer, err := t.ask(ctx)
	if err != nil {
		t.unanswered(ctx, err)
		return
	}
	d, _, found := routing.ParseDelegation(answer)
	if found && strings.TrimSpace(d.Task) == "" {
		t.say(llm.RoleAssistant, answer)
		t.frame("task", nil)
		if answer, err = t.ask(ctx); err != nil {
			t.unanswered(ctx, err)
			return
		}
		d, _, found = routing.ParseDelegation(answer)
	}
	if found && strings.TrimSpace(d.Task) != "" {
		t.say(llm.RoleAssistant, answer)
		t.delegate(ctx, d)
		return
	}
	t.proposed(ctx, answer)
}

// delegate hands a task over to a route, and has Chat write from what comes of it.
func (t *turn) delegate(ctx context.Context, d routing.Delegation) {
	t.handed = true
	route := d.Route
	if route == routing.Code {
		route = routing.Coder(d.Task)
	}
	if t.x.kind == channel.LINE { // where Chat is the only way in (route §2.6)
		t.route = route
	}
	if route.Coding() {
		t.coder(ctx, route, d.Task, d.Task)
		return
	}
	alias := t.e.Alias(ctx, models.Worker)
	t.tell(ctx, Entry{Kind: channel.Notice, Content: t.e.prompts.notice("start", alias, d.Task)})
	t.workers(ctx, route, d.Task)
}

// workers has workers work until the loop ends, and Chat write from what they found.
func (t *turn) workers(ctx context.Context, route routing.Route, task string) {
	if t.legwork(ctx, route, task) {
		return
	}
	if t.handed && t.failure == nil && ctx.Err() == nil {
		t.tell(ctx, Entry{Kind: channel.Notice, Content: t.e.prompts.notice("done", t.e.Alias(ctx, models.Worker), task)})
	}
	t.final(ctx)
}

// legwork runs the loop of workers; it reports whether the turn ended in it, as a job.
func (t *turn) legwork(ctx context.Context, route routing.Route, task string) (over bool) {
	var former json.RawMessage
	for {
		if ctx.Err() != nil {
			return false
		}
		t.clock(func(l *routing.Loop) { t.stop = l.Begin(route, task+"\x00"+string(former)) })
		if t.stop != "" {
			return false
		}
		t.record(ctx)
		out, err := t.leg(ctx, route, task, former)
		if err != nil {
			t.failed(ctx, route, err)
			return false
		}
		t.event(ctx, t.e.success(t.id, t.x.ID, route, out))
		var next routing.Next
		t.clock(func(l *routing.Loop) { next = l.Worked(out.Loop()) })
		t.stop = next.Stop
		if out.Result != nil || next.From == "" { // else it says where to go, and somebody goes there
			it := ofOutput(route, task, out)
			if route == routing.Research {
				it.Looked, it.Sources = t.found.looked, t.found.cited
			}
			t.items = append(t.items, it)
		}
		if route == routing.Analyze && out.Result != nil {
			t.keep(ctx, task, out)
		}
		if next.From != "" {
			t.rerouted(ctx, next)
		}
		switch {
		case next.Stop != "":
			return false
		case next.Route.Coding():
			t.coder(ctx, t.route, task, task)
			return true
		case next.Route == routing.Chat:
			return false
		}
		former = nil
		if next.Route == route {
			former = out.Result
		}
		route = next.Route
	}
}

// rerouted notes that the turn goes over to another route.
func (t *turn) rerouted(ctx context.Context, n routing.Next) {
	t.event(ctx, routing.OverrideEvent{Event: routing.EventOverride, At: t.e.Now().UTC(), SessionID: t.x.ID, TurnID: t.id, From: n.From, To: n.Route, By: routing.ByReroute})
	t.route = n.Route
	if n.Route == routing.Code {
		t.route = routing.Coder(t.decision.Text)
	}
}

// leg is one leg of a worker.
func (t *turn) leg(ctx context.Context, route routing.Route, task string, former json.RawMessage) (contract.Output, error) {
	in, err := t.input(route, task, former)
	if err != nil {
		return contract.Output{}, err
	}
	return t.work(ctx, route, in)
}

// failed notes that a leg gave nothing. Chat is told no more than that, in short.
func (t *turn) failed(ctx context.Context, route routing.Route, err error) {
	t.failure = err
	t.clock(func(l *routing.Loop) { t.stop = l.Failed(err) })
	if ctx.Err() != nil {
		return
	}
	t.event(ctx, t.e.failure(t.id, t.x.ID, route, err))
}

// refuse has Chat say that nothing is coded while local, and how that is lifted; where
// Chat is down too, the fixed text says so (spec/chat §3).
func (t *turn) refuse(ctx context.Context, route routing.Route) {
	_, why := t.allowed(route, false)
	if why == nil {
		why = routing.Policy{LocalOnly: true}.Leg(route, false)
	}
	t.failure, t.route, t.mayHand = why, routing.Chat, false
	t.clock(func(l *routing.Loop) { l.Done() })
	t.stop = routing.StopDone
	t.frame("refused", nil)
	answer, err := t.ask(ctx)
	if err == nil {
		if _, rest, found := routing.ParseDelegation(answer); found {
			answer = rest
		}
		_, answer, _ = routing.ParseProposal(answer)
	}
	switch {
	case ctx.Err() != nil:
		t.interrupted(ctx)
	case err != nil || strings.TrimSpace(answer) == "":
		t.tell(ctx, Entry{Kind: channel.Answer, Content: t.e.Lang.Error(why), Route: t.route, Final: true, Failed: true})
	default:
		t.finish(ctx, answer)
	}
}

// final has Chat write what the user reads, from what there is, and say what stopped the
// turn where that is not that it is done.
func (t *turn) final(ctx context.Context) {
	if ctx.Err() != nil {
		t.interrupted(ctx)
		return
	}
	t.mayHand = false
	t.material(ctx)
	answer, err := t.ask(ctx)
	if err != nil {
		t.unanswered(ctx, err)
		return
	}
	t.proposed(ctx, answer)
}

// proposed follows what an answer of Chat's proposes, once in a turn, or shows the answer.
func (t *turn) proposed(ctx context.Context, answer string) {
	p, _, ok := routing.ParseProposal(answer)
	if !ok || t.job != "" || t.stop != "" && t.stop != routing.StopDone { // a job's report: its input is over
		t.finish(ctx, answer)
		return
	}
	var next routing.Next
	t.clock(func(l *routing.Loop) { next = l.Proposed(p) })
	if next.Route == "" || next.Route == routing.Chat {
		t.finish(ctx, answer)
		return
	}
	t.say(llm.RoleAssistant, answer)
	t.rerouted(ctx, next)
	t.stop = ""
	if next.Route.Coding() {
		t.coder(ctx, t.route, t.decision.Text, t.rest())
		return
	}
	t.workers(ctx, next.Route, t.decision.Text)
}

// finish shows an answer, which is Chat's last but for one: where it hands over once more,
// or holds nothing for the user, it is asked for words.
func (t *turn) finish(ctx context.Context, answer string) {
	text, again := t.plain(answer)
	if again {
		t.e.Log.Warn("Chat hands over again, or says nothing; it is asked for words", "session_id", t.x.ID, "turn_id", t.id)
		if answer != "" {
			t.say(llm.RoleAssistant, answer)
		}
		t.frame("again", nil)
		t.mayHand = false
		answer, err := t.ask(ctx)
		if err != nil {
			t.unanswered(ctx, err)
			return
		}
		if text, _ = t.plain(answer); text == "" {
			t.unanswered(ctx, errEmpty)
			return
		}
	}
	t.show(ctx, text)
}

// errEmpty: Chat had nothing to say.
var errEmpty = errors.New("the chat model gave no text")

// plain is what of an answer is the user's.
func (t *turn) plain(answer string) (text string, again bool) {
	_, text, found := routing.ParseDelegation(answer)
	_, text, _ = routing.ParseProposal(text)
	text = strings.TrimSpace(text)
	return text, found || text == ""
}

// show shows the text of the turn, with its declaration, and settles what follows.
func (t *turn) show(ctx context.Context, text string) {
	s, err := t.x.state()
	if err != nil {
		t.broken(ctx, err)
		return
	}
	text = t.withSources(text)
	t.tell(ctx, Entry{Kind: channel.Answer, Declared: t.declaration(&s), Content: text, Route: t.route, Job: t.job, Final: true, Failed: t.job != "" && t.failure != nil})
	if t.stop == "" {
		t.stop = routing.StopDone
		t.clock(func(l *routing.Loop) { l.Done() })
	}
	if t.overlay || s.PrevRoute == nil || *s.PrevRoute != t.route || len(s.Unsaid) > 0 { // else it changes nothing
		t.settle(ctx)
	}
}

// settle keeps what an answer changes of the session.
func (t *turn) settle(ctx context.Context) {
	route := t.route
	err := t.x.update(context.WithoutCancel(ctx), func(s *State) bool {
		changed := s.PrevRoute == nil || *s.PrevRoute != route || len(s.Unsaid) > 0
		s.PrevRoute, s.Unsaid = &route, nil
		if t.overlay && s.OverlayLeft > 0 {
			s.OverlayLeft--
			changed = true
		}
		if s.OverlayLeft == 0 && s.Overlay != "" {
			s.Overlay, changed = "", true
		}
		if changed {
			s.PrevTurn = t.id
		}
		return changed
	})
	if err != nil {
		t.e.Log.Error(err.Error())
	}
}

// declaration is the line that an answer begins with, "" for none: where its route is
// another one than that of the answer before, and not CHAT (spec/chat §8).
func (t *turn) declaration(s *State) string {
	if t.route == routing.Chat || s.PrevRoute != nil && same(*s.PrevRoute, t.route) {
		return ""
	}
	return t.e.Lang.T("conversation.declare_" + strings.ToLower(string(t.route)))
}

// same reports whether two routes are declared alike: CODE2 as CODE.
func same(a, b routing.Route) bool {
	plain := func(r routing.Route) routing.Route {
		if r == routing.Code2 {
			return routing.Code
		}
		return r
	}
	return plain(a) == plain(b)
}

// over puts on record how the turn went.
func (t *turn) over(ctx context.Context) {
	e := t.e
	var r routing.Report
	t.clock(func(l *routing.Loop) { r = l.Report() })
	stop := cmp.Or(t.stop, r.Stop, routing.StopInternal)
	t.span.Text("tori.route", string(t.route))
	t.span.Text("tori.stop", string(stop))
	t.event(ctx, stopped{eventStop, e.Now().UTC(), t.x.ID, t.id, stop, r.Loops, (r.Elapsed + t.before).Milliseconds(), t.route})
	f := finalRoute{Event: eventFinal, At: e.Now().UTC(), SessionID: t.x.ID, TurnID: t.id, InitialRoute: t.decision.PrimaryRoute, FinalRoute: t.route,
		RerouteUsed: r.Rerouted, WorkerCalls: r.WorkerCalls}
	if t.failure != nil {
		why := shortSummary(t.failure.Error())
		f.ErrorReason = &why
	}
	t.event(ctx, f)
}

// interrupted keeps what Chat had said when the turn was stopped.
func (t *turn) interrupted(ctx context.Context) {
	why := context.Cause(ctx)
	t.failure, t.stop = why, routing.StopInternal
	late := context.WithoutCancel(ctx)
	said := ""
	if t.shown != nil {
		said = strings.TrimSpace(strings.TrimPrefix(t.shown.text(), t.shown.lead))
	}
	_, streams := t.e.channel(t.x.kind).(channel.Streamer)
	switch {
	case errors.Is(why, errWithdrawn), errors.Is(why, errRevised): // there is no such message any more
	case said != "" && (streams || errors.Is(why, errStopped)): // else the message comes again
		t.tell(late, Entry{Kind: channel.Answer, Declared: strings.TrimSpace(t.shown.lead), Content: said, Route: t.route, Job: t.job, Cut: true, Final: true})
	case errors.Is(why, errStopped):
		t.tell(late, Entry{Kind: channel.Notice, Content: t.e.Lang.Error(errStopped), Final: true})
	case errors.Is(why, channel.ErrStopped):
		n := Entry{Role: roleAssistant, ReplyTo: t.m.ID, Kind: channel.Notice, Content: t.e.Lang.Error(errStopped), Final: true}
		if _, err := t.e.append(late, t.x, n); err != nil {
			t.e.Log.Error(err.Error(), "session_id", t.x.ID)
		}
	}
}

// unanswered tells the user by a fixed text that Chat cannot answer. What workers found is
// kept for its next answer.
func (t *turn) unanswered(ctx context.Context, err error) {
	if ctx.Err() != nil {
		t.interrupted(ctx)
		return
	}
	t.failure = err
	switch {
	case t.stop != "" && t.stop != routing.StopDone:
	case errors.Is(err, context.DeadlineExceeded):
		t.stop = routing.StopTime
	default:
		t.stop = routing.StopInternal
	}
	var refused *i18n.Error
	text := t.e.Lang.T("conversation.chat_down")
	if errors.Is(err, context.DeadlineExceeded) {
		if text = t.e.Lang.T("conversation.time_over", int(t.e.Limits.Max.Seconds())); len(t.items) > 0 {
			text += "\n" + t.e.Lang.T("conversation.time_over_kept")
		}
	} else if e := new(llm.Error); !errors.As(err, &e) && errors.As(err, &refused) { // a setting: who reads it can do something
		text += "\n" + t.e.Lang.Error(refused)
	} else if t.x.kind == channel.Terminal { // who sits there can mend it
		text += "\n" + t.e.Lang.T("conversation.chat_down_here")
	}
	if t.ended != "" { // nobody else tells it
		text = t.ended + "\n" + text
	}
	t.e.Log.Error("Chat cannot answer: "+err.Error(), "session_id", t.x.ID)
	items := t.items
	uerr := t.x.update(ctx, func(s *State) bool {
		for _, it := range items {
			it.Text, _ = contract.Shortened(it.Text, maxItem)
			it.Diff, _ = contract.Shortened(it.Diff, maxDiff)
			s.Unsaid = append(s.Unsaid, it)
		}
		s.Unsaid = s.Unsaid[max(0, len(s.Unsaid)-maxUnsaid):]
		return len(items) > 0
	})
	if uerr != nil {
		t.e.Log.Error(uerr.Error())
	}
	t.tell(ctx, Entry{Kind: channel.Notice, Content: text, Final: true, Failed: true})
}

// broken tells the user that the session itself cannot be read or written.
func (t *turn) broken(ctx context.Context, err error) {
	t.failure, t.stop = err, routing.StopInternal
	t.e.Log.Error(err.Error())
	t.tell(ctx, Entry{Kind: channel.Notice, Content: t.e.Lang.T("conversation.broken", err), Final: true, Failed: true})
}

// keep stores what ANALYZE structured.
func (t *turn) keep(ctx context.Context, task string, o contract.Output) {
	var result struct {
		DataType string `json:"data_type"`
	}
	_ = json.Unmarshal(o.Result, &result) // it was read by its schema
	err := t.e.analyses.Add(ctx, Analysis{Session: t.x.ID, Message: t.m.ID, User: t.m.User, Title: t.e.Strict(title(task)), DataType: result.DataType,
		Record: json.RawMessage(t.e.Strict(string(o.Result))), Source: sourceHash(task), Created: t.e.Now()})
	if err != nil {
		t.e.Log.Error(fmt.Sprintf("An analysis of %s is not kept: %v", t.x.ID, err))
	}
	if k, err := t.x.seen(t.m.ID); err == nil && k.withdrawn { // meanwhile
		if err := t.e.analyses.Withdraw(context.WithoutCancel(ctx), t.x.ID, t.m.ID); err != nil {
			t.e.Log.Error("An analysis of a withdrawn message is still there: "+err.Error(), "session_id", t.x.ID)
		}
	}
}
