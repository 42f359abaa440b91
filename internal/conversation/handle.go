package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contract"
	"toritsugi/internal/routing"
)

// Handle implements channel.Handler. Commands are carried out at once, also while a turn
// of the session goes on; all else waits for its turn.
func (e *Engine) Handle(ctx context.Context, m channel.Message) error {
	if err := conforms(m); err != nil {
		return err
	}
	x := e.open(m.SessionID, m.Channel)
	m.UserText = strings.ToValidUTF8(m.UserText, "\uFFFD")
	for {
		k, err := x.seen(m.ID)
		if err != nil || k.withdrawn {
			return err
		}
		if k.seq > 0 {
			m.UserText = k.text
		}
		if err := e.hear(ctx, x, m, k); !errors.Is(err, errRevised) {
			return err
		}
	}
}

// hear handles a message as it was when k was known of it; errRevised where it was changed
// since.
func (e *Engine) hear(ctx context.Context, x session, m channel.Message, k known) error {
	switch {
	case m.Decision != nil:
		return e.control(ctx, x, m, k, nil)
	case m.Question != "":
		return e.control(ctx, x, m, k, answerTo{})
	}
	cmd := routing.ParseCommand(m.UserText)
	if cmd == nil {
		cmd = e.ordered(ctx, x, m, k)
	}
	switch c := cmd.(type) {
	case nil, routing.ToRoute:
		m.UserText = routing.Keepable(m.UserText) // a code that was said in a way that links nobody
	case routing.Local:
		return e.local(ctx, x, m, k, c)
	default:
		return e.control(ctx, x, m, k, cmd)
	}
	return e.answer(ctx, x, m, k.seq)
}

// local carries /local or /cloud out, at once and once, and handles the text behind it.
func (e *Engine) local(ctx context.Context, x session, m channel.Message, k known, c routing.Local) error {
	for next, more := routing.ParseCommand(c.Rest).(routing.Local); more; next, more = routing.ParseCommand(c.Rest).(routing.Local) {
		c = next // of several the last one holds
	}
	if c.Rest == "" {
		return e.control(ctx, x, m, k, c)
	}
	if k.message == nil {
		if err := e.setLocal(ctx, x, c.On); err != nil {
			return err
		}
		e.tell(ctx, x, Entry{Kind: channel.Notice, Content: e.localText(c.On), ReplyTo: m.ID, Control: true})
	}
	m.UserText = c.Rest
	return e.hear(ctx, x, m, k)
}

// conforms reports what of a message breaks its contract (route §4.1), which a channel
// keeps.
func conforms(m channel.Message) error {
	m.UserText, _ = contract.Shortened(m.UserText, 100) // any text is one
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return routing.InputMessage().Check(raw)
}

// answer takes a turn for a message as it was after its revision of a number, 0 for none;
// errRevised where it was changed since.
func (e *Engine) answer(ctx context.Context, x session, m channel.Message, revision int64) error {
	ctx, l, leave, err := e.enter(ctx, x, m.ID)
	if err != nil {
		return err
	}
	defer leave()
	if err := e.turnOver(ctx, x); err != nil {
		return err
	}
	k, err := x.seen(m.ID)
	if err != nil || k.withdrawn {
		return err
	}
	if k.answered() {
		for _, n := range k.posts { // it may have been killed before the channel had them
			e.post(ctx, x, n)
		}
		return nil
	}
	if k.seq > revision {
		return errRevised
	}
	was := k.message
	if was == nil {
		if n, cut := e.cutShort(ctx, x); cut {
			e.post(ctx, x, n)
		}
		n, err := e.append(ctx, x, entryOf(m))
		if err != nil {
			return err
		}
		was = &n
	} else if n, begun := e.begun(ctx, x, m.ID); begun {
		e.tell(ctx, x, n)
		return nil
	}
	e.postAgain(ctx, x)
	if x.kind != channel.Terminal { // an attempt that was cut short may have been killed before its channel had them
		for _, n := range k.posts {
			e.post(ctx, x, n)
		}
	}
	was.Content = e.Strict(m.UserText) // it may have been changed since it was written
	t := &turn{e: e, x: x, l: l, m: m, entry: *was, posts: k.posts, id: fmt.Sprintf("%s#%d", x.ID, was.Seq), code: e.Redact(m.UserText)}
	ctx, ended := t.traced(ctx)
	defer ended()
	t.run(ctx)
	t.record(ctx)
	switch {
	case ctx.Err() == nil:
		t.remember(ctx)
	case errors.Is(context.Cause(ctx), errRevised) && !t.answered:
		return errRevised
	}
	return nil
}

// cutShort keeps that the latest message was not answered, where the program ended in the
// middle of that; cut says that there is such an entry, which is still to be shown. The
// caller has the session's turn.
func (e *Engine) cutShort(ctx context.Context, x session) (n Entry, cut bool) {
	answered, looked := map[string]bool{}, 0
	var last Entry
	if err := x.current(func(at Entry) bool {
		answered[at.ReplyTo] = answered[at.ReplyTo] || at.Final
		if at.Role == roleUser && !at.Control {
			last = at
		}
		looked++
		return last.Seq == 0 && looked < seenBack
	}); err != nil || last.ID == "" || answered[last.ID] {
		return n, false
	}
	n, begun := e.begun(ctx, x, last.ID)
	if !begun {
		n = Entry{Kind: channel.Notice, Content: e.Lang.T("conversation.cut_short"), ReplyTo: last.ID, Control: true, Final: true, Failed: true}
	}
	n.Role = roleAssistant
	n, err := e.append(ctx, x, n)
	if err != nil {
		e.Log.Error(err.Error(), "session_id", x.ID)
	}
	return n, err == nil
}

// begun is what is said of the job that a message began before the program ended.
func (e *Engine) begun(ctx context.Context, x session, message string) (n Entry, begun bool) {
	if e.Jobs == nil {
		return n, false
	}
	all, err := e.Jobs.List(ctx, x.ID)
	if err != nil {
		e.Log.Warn("The jobs cannot be listed: " + err.Error())
	}
	i := slices.IndexFunc(all, func(j Running) bool { return j.ReplyTo == message })
	if i < 0 {
		return n, false
	}
	return Entry{Kind: channel.Notice, Content: e.Lang.T("conversation.job", all[i].ID), ReplyTo: message, Job: all[i].ID, Final: true}, true
}

// entryOf is a message as it is stored.
func entryOf(m channel.Message) Entry {
	n := Entry{Role: roleUser, Content: m.UserText, ID: m.ID, User: m.User, Decision: m.Decision}
	for _, a := range m.Attachments {
		n.Files = append(n.Files, File{a.Name, a.MediaType, len(a.Content)})
	}
	return n
}

// tell is Engine.tell in answer to the message at hand. It is told though the turn was
// stopped.
func (t *turn) tell(ctx context.Context, n Entry) {
	n.ReplyTo = t.m.ID
	t.answered = t.answered || n.Final
	if n.Kind == channel.Notice && !n.Final { // an attempt that was cut short may have told it
		text := t.e.Strict(n.Content)
		if i := slices.IndexFunc(t.posts, func(p Entry) bool { return p.Kind == n.Kind && p.Content == text }); i >= 0 {
			t.e.post(context.WithoutCancel(ctx), t.x, t.posts[i])
			return
		}
	}
	t.e.tell(context.WithoutCancel(ctx), t.x, n)
}

// tell keeps a post and shows it to the people of a session. What cannot be kept is shown
// all the same: nobody is to wait for an answer that there is.
func (e *Engine) tell(ctx context.Context, x session, n Entry) {
	n.Role = roleAssistant
	written, err := e.append(ctx, x, n)
	if err != nil {
		e.Log.Error("A post is not on record: "+err.Error(), "session_id", x.ID)
		n.Content, n.Key = e.Strict(n.Content), x.ID+"/lost/"+n.ReplyTo+"/"+string(n.Kind)
		written = n
	}
	e.post(ctx, x, written)
}

// post shows what is on record. What the channel does not take, and what is said where it is
// not, is shown with the next message of the session, or by PostOwing of who has the channel.
func (e *Engine) post(ctx context.Context, x session, n Entry) {
	leave, err := e.postings.Enter(ctx, x.ID) // an earlier one is shown before, however often that takes
	if err == nil {
		defer leave()
	}
	if c := e.channel(x.kind); err == nil && c != nil && !e.held(ctx, x, n) && !e.behind(ctx, x, n) {
		err = show(ctx, c, n.post(x.ID))
		if err == nil {
			if ctx.Value(byItself{}) != nil {
				e.posted(ctx, x, n.Seq)
			}
			return
		}
		e.Log.Warn("The channel did not take a post, it is tried again later: "+err.Error(), "session_id", x.ID)
	}
	if n.Seq == 0 {
		return
	}
	e.tried(x.ID, true) // what is new is soon shown again, whatever else is not taken
	ctx = context.WithoutCancel(ctx)
	err = x.update(ctx, func(s *State) bool {
		if !s.unposted(n.Seq) {
			if !slices.Contains(s.Unposted, n.Seq) {
				e.Log.Error(fmt.Sprintf("A post is not shown any more: %d wait for the channel", maxUnposted), "session_id", x.ID, "seq", n.Seq)
			}
			return false
		}
		e.owes(ctx, x, true)
		return true
	})
	if err != nil {
		e.Log.Error(err.Error())
	}
}

// ShowJob shows what was said of a job to a session since a time, where another process may
// have shown it to somebody else who looks at the session. A channel shows no post twice.
func (e *Engine) ShowJob(ctx context.Context, sessionID, job string, since time.Time) {
	x := e.open(sessionID, kindOf(sessionID))
	c := e.channel(x.kind)
	if c == nil {
		return
	}
	var all []Entry
	err := x.back(func(n Entry) bool {
		if n.Timestamp.Before(since) {
			return false
		}
		if n.Job == job && n.Role == roleAssistant {
			all = append(all, n)
		}
		return true
	})
	for _, n := range slices.Backward(all) {
		if perr := c.Post(ctx, n.post(x.ID)); perr != nil {
			err = errors.Join(err, perr)
		}
	}
	if err != nil && ctx.Err() == nil {
		e.Log.Warn("Not all that was said of a job is shown: "+err.Error(), "session_id", x.ID)
	}
}

// post is an entry as it goes to a channel.
func (n *Entry) post(id string) channel.Post {
	key := n.Key
	if key == "" {
		key = id + "/" + strconv.FormatInt(n.Seq, 10)
	}
	return channel.Post{SessionID: id, ReplyTo: n.ReplyTo, Key: key, Kind: n.Kind, Text: n.Shown(), Job: n.Job, Approval: n.Approval, Question: n.Question, Failed: n.Failed}
}

// Post shows p to the people of a session and keeps it, but for progress: a request for
// an approval, what was decided. One whose Key is on record already is not said twice.
func (e *Engine) Post(ctx context.Context, p channel.Post) error {
	x := e.open(p.SessionID, kindOf(p.SessionID))
	if p.Kind == channel.Progress {
		if c := e.channel(x.kind); c != nil {
			p.Text = e.Strict(p.Text)
			return show(ctx, c, p)
		}
		return nil
	}
	n := Entry{Role: roleAssistant, Kind: p.Kind, Content: p.Text, ReplyTo: p.ReplyTo, Key: p.Key, Job: p.Job, Approval: p.Approval, Question: p.Question, Control: true}
	if p.Key != "" {
		known, err := e.Said(p.SessionID, p.Key)
		if err != nil || known { // what the channel did not take is shown with the next message
			return err
		}
	}
	ctx = context.WithValue(ctx, byItself{}, true)
	n, err := e.append(ctx, x, n)
	if err == nil {
		e.post(ctx, x, n)
	}
	return err
}

// Said reports whether a Post of a key is on record in a session.
func (e *Engine) Said(sessionID, key string) (known bool, err error) {
	err = e.open(sessionID, kindOf(sessionID)).recent(func(at Entry) bool {
		known = known || at.Key == key
		return !known
	})
	return known, err
}

// errDecided is the cause of a report on a job that somebody decided about meanwhile.
var errDecided = errors.New("the proposal was decided about")

// Decided ends the report on a job that Chat is writing: it would say that it waits.
func (e *Engine) Decided(sessionID, job string) { e.stopTurn(sessionID, job, errDecided) }

// Finish tells the people of a session what became of a job: Chat writes it. A job that was
// told of already, or decided about, is not told of again.
func (e *Engine) Finish(ctx context.Context, f Finished) error {
	x := e.open(f.SessionID, kindOf(f.SessionID))
	ctx, l, leave, err := e.enter(ctx, x, f.ID)
	if err != nil {
		return err
	}
	defer leave()
	ctx = context.WithValue(ctx, byItself{}, true)
	told, user := false, ""
	var notices []Entry // which an attempt that was cut short told
	if err := x.recent(func(n Entry) bool {
		told = told || n.Job == f.ID && (n.Kind == channel.Answer || n.Kind == channel.Decided)
		if n.Job == f.ID && n.Kind == channel.Notice {
			notices = append(notices, n)
		}
		if n.ID != "" && n.ID == f.ReplyTo {
			user = n.User
		}
		return !told && user == ""
	}); err != nil || told {
		return err
	}
	if f.Stopped {
		e.tell(ctx, x, Entry{Kind: channel.Answer, Content: e.Lang.T("conversation.job_stopped", f.ID), ReplyTo: f.ReplyTo, Job: f.ID, Final: true})
		return nil
	}
	last, err := x.last()
	if err != nil {
		return err
	}
	s, err := x.state()
	if err != nil {
		return err
	}
	t := &turn{e: e, x: x, l: l, m: channel.Message{ID: f.ReplyTo, User: user, SessionID: x.ID, Channel: x.kind}, entry: Entry{Seq: last.Seq + 1},
		id: x.ID + "#" + f.ID, route: routing.Chat, job: f.ID, handed: true, posts: notices}
	if s.PrevRoute != nil {
		t.route = *s.PrevRoute // its declaration stands with the job
	}
	t.decision.PrimaryRoute = f.Route
	t.loop = routing.NewLoop(e.Limits, e.Now, routing.Policy{LocalOnly: s.LocalOnly, CloudRoutes: e.Cloud}, f.Route, f.Title, false)
	ctx, ended := t.traced(ctx)
	defer ended()
	t.frame(f.frame(), map[string]string{"{job}": f.ID, "{title}": f.Title})
	t.result(ctx, f)
	t.final(ctx)
	t.over(ctx)
	t.record(ctx)
	return nil
}

// frame names the text by which Chat is told of a job.
func (f Finished) frame() string {
	switch c := f.Proposal; {
	case c == nil:
		return "job_failed"
	case c.NeedApproval:
		return "job"
	case c.Patch == "":
		return "job_nothing"
	}
	return "job_granted"
}

// result takes in what a job came to.
func (t *turn) result(ctx context.Context, f Finished) {
	e := t.e
	role, err := routing.CoderRole(f.Route, e.Set)
	if err != nil {
		role = ""
	}
	if f.Proposal == nil {
		if f.Err == nil {
			f.Err = errors.New("no proposal")
		}
		t.failed(ctx, f.Route, f.Err)
		why := e.Strict(e.Lang.Error(f.Err))
		t.items = append(t.items, Item{Route: f.Route, Task: f.Title, Text: why})
		t.ended = e.Lang.T("conversation.job_failed", f.Title, why)
		return
	}
	c := *f.Proposal
	c.JobID = f.ID
	out, err := c.Output()
	if err != nil {
		t.failed(ctx, f.Route, err)
		return
	}
	t.event(ctx, planned{eventPlan, e.Now().UTC(), t.x.ID, f.ID, shortSummary(c.Plan)})
	t.event(ctx, e.success(t.id, t.x.ID, f.Route, out))
	t.clock(func(l *routing.Loop) { l.Done() })
	t.stop = routing.StopDone
	t.items = append(t.items, ofCoder(f.Route, f.Title, c))
	t.tell(ctx, Entry{Kind: channel.Notice, Content: e.prompts.notice("done", e.Alias(ctx, role), f.Title), Job: f.ID})
}

// Commands implements channel.Handler.
func (e *Engine) Commands() []channel.Command {
	known := routing.Commands()
	all := make([]channel.Command, len(known))
	for i, k := range known {
		_, answered := routing.ParseCommand(k.Name).(routing.ToRoute) // by a turn
		all[i] = channel.Command{Name: k.Name, Args: k.Args, Help: e.Lang.T(k.Help), AtOnce: !answered}
	}
	return all
}

// shortSummary is a text as an event holds it.
func shortSummary(text string) string {
	short, _ := contract.Shortened(strings.TrimSpace(text), maxSummary)
	return short
}
