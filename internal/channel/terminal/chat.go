package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// Start says how a conversation begins.
type Start struct {
	Message string // that is sent at once
	Once    bool   // it ends with the answer to Message, and nothing is typed
}

// Result is how a conversation that was begun with Once ended.
type Result struct {
	Failed  bool // the message was not taken, or not answered
	Stopped bool // by a key
	Waiting bool // a proposal waits for its approval
}

// chat is a conversation on a terminal, below which one types: a tea.Model. What was
// said goes into the scrollback; what may still change stands below it.
type chat struct {
	t      *Terminal
	ctx    context.Context
	send   func(tea.Msg)
	start  Start
	result Result
	colour bool

	width, height int
	session       string
	title         string // of the session, for people

	focus   focus
	ed      editor
	draft   string // of the editor, while something else is asked for
	history *history
	menu    menu
	files   []string
	pastes  map[string]string // by what stands in the editor for it
	note    string            // to be read until the next key
	armed   time.Time         // when Ctrl-C was pressed last
	picker  *picker

	turn    *turn
	queue   []outgoing
	pending []proposal
	chosen  proposal // that is decided about
	jobs    []job

	replyTo string // what the answer that is being written answers
	said    string // what of it is in the scrollback
	tail    string // what follows

	out      []string // rows on their way to the scrollback
	printing bool
	quitting bool
	ticks    int
}

type focus int

const (
	composing focus = iota
	deciding
	reasoning // why a proposal is denied
	changing  // what is to be otherwise in it
	picking
)

// turn is a message that is being answered.
type turn struct {
	id      string
	stop    context.CancelCauseFunc
	since   time.Time
	stopped bool
}

// outgoing is a message that waits until the turn has ended; text is as it was typed.
type outgoing struct {
	session, text string
	pastes        map[string]string
}

type proposal struct {
	session string
	*channel.Approval
}

type job struct{ id, text string }

type (
	postMsg struct {
		post channel.Post
		took chan<- struct{}
	}
	streamMsg  struct{ session, replyTo, delta string }
	handledMsg struct {
		message channel.Message
		err     error
	}
	filesMsg    []string
	sessionsMsg struct {
		all []channel.Session
		err error
	}
	historyMsg struct {
		session string
		said    []channel.Said
		err     error
	}
	printedMsg struct{}
	tickMsg    struct{}
)

const (
	tickEvery = 200 * time.Millisecond
	// firstDrawn is more than tea takes to draw its first view, three frames.
	firstDrawn = 50 * time.Millisecond
	// leaveWithin is how soon a second Ctrl-C leaves.
	leaveWithin = 2 * time.Second
	// retold is how much of a session is shown again.
	retold = 12
)

// Chat converses until the person leaves, or with start.Once until the answer is there.
// A cancelled ctx ends it; what Handle does then is waited for.
func (t *Terminal) Chat(ctx context.Context, h channel.Handler, start Start) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer t.turns.Wait()
	defer cancel()
	t.handler = h
	c := &chat{t: t, ctx: ctx, start: start, session: t.opt.Session, title: t.opt.Name, history: openHistory(t.opt.History, t.opt.Mask), pastes: map[string]string{},
		colour: colorprofile.Detect(t.opt.Out, t.opt.Environ) > colorprofile.ASCII && !noColour(t.opt.Environ)}
	opts := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(t.opt.In), tea.WithOutput(t.opt.Out), tea.WithEnvironment(t.opt.Environ), tea.WithoutSignalHandler()}
	if t.opt.Width > 0 {
		opts = append(opts, tea.WithWindowSize(t.opt.Width, t.opt.Height))
	}
	p := tea.NewProgram(c, opts...)
	c.send = p.Send
	var opening sync.WaitGroup
	opening.Go(func() { _ = t.open(ctx, &window{p, ctx}) }) // it fails where the chat has ended
	_, err := p.Run()
	t.close()
	cancel()
	opening.Wait()
	if errors.Is(err, tea.ErrProgramKilled) && errors.Is(err, context.Canceled) {
		err = context.Canceled
	}
	return c.result, err
}

// noColour reports whether NO_COLOR asks for none, whatever else asks for some.
func noColour(environ []string) bool {
	return slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, "NO_COLOR=") && kv != "NO_COLOR=" })
}

// window is the face of a chat.
type window struct {
	p   *tea.Program
	ctx context.Context
}

func (w *window) post(ctx context.Context, p channel.Post) error {
	took := make(chan struct{})
	w.p.Send(postMsg{p, took})
	select {
	case <-took:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

func (w *window) stream(session, replyTo, delta string) {
	w.p.Send(streamMsg{session, replyTo, delta})
}

// Init implements tea.Model.
func (c *chat) Init() tea.Cmd {
	// Until it has drawn something, tea takes its view to be as high as the screen, and
	// would push away what stands above.
	c.printing = true
	cmds := []tea.Cmd{tea.Tick(firstDrawn, func(time.Time) tea.Msg { return printedMsg{} })}
	if !c.start.Once && c.t.opt.Files != nil {
		cmds = append(cmds, func() tea.Msg {
			files, _ := c.t.opt.Files(c.ctx) // without it nothing is completed
			return filesMsg(files)
		})
	}
	if !c.start.Once {
		cmds = append(cmds, c.retell(c.session))
	}
	return tea.Batch(cmds...)
}

func tick() tea.Cmd { return tea.Tick(tickEvery, func(time.Time) tea.Msg { return tickMsg{} }) }

// list asks for the sessions of this repository.
func (c *chat) list() tea.Msg {
	all, err := c.t.sessions(c.ctx, c.t.handler, c.session)
	return sessionsMsg{all, err}
}

func (c *chat) retell(session string) tea.Cmd {
	return func() tea.Msg {
		said, err := c.t.handler.History(c.ctx, session, retold)
		return historyMsg{session, said, err}
	}
}

// Update implements tea.Model.
func (c *chat) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	idle := c.turn == nil
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		first := c.width == 0
		if c.width, c.height = msg.Width, msg.Height; first && c.start.Message != "" {
			c.submit(outgoing{session: c.session, text: c.start.Message})
		}
	case tea.KeyPressMsg:
		cmd = c.key(msg)
	case tea.PasteMsg:
		c.paste(msg.Content)
	case postMsg:
		c.post(msg.post)
		close(msg.took)
	case streamMsg:
		c.stream(msg)
	case handledMsg:
		c.handled(msg)
	case filesMsg:
		c.files = slices.DeleteFunc(slices.Clone(msg), func(name string) bool { return channel.Clean(name) != name || strings.Contains(name, "\n") }) // nobody can type it
	case sessionsMsg:
		c.sessions(msg)
	case historyMsg:
		c.retold(msg)
	case printedMsg:
		c.printing = false
	case tickMsg:
		if c.ticks++; c.turn != nil {
			cmd = tick()
		}
	}
	if idle && c.turn != nil {
		cmd = tea.Batch(cmd, tick())
	}
	if c.start.Once && c.turn == nil && len(c.jobs) == 0 && len(c.queue) == 0 {
		if _, handled := msg.(handledMsg); handled || c.ticks > 0 {
			c.quitting, c.result.Waiting = true, len(c.pending) > 0
		}
	}
	return c, tea.Batch(cmd, c.flush())
}

// flush brings rows into the scrollback, a few at a time: what tea inserts above its
// view must fit on the screen beside it. The order is kept by waiting for each.
func (c *chat) flush() tea.Cmd {
	switch {
	case c.printing || c.width == 0:
		return nil
	case len(c.out) > 0:
		n := min(len(c.out), max(c.height-c.most(), 1))
		rows := strings.Join(c.out[:n], "\n")
		c.out, c.printing = c.out[n:], true
		return tea.Sequence(tea.Println(rows), func() tea.Msg { return printedMsg{} })
	case c.quitting:
		return tea.Quit
	}
	return nil
}

// most is how many rows the view takes at most.
func (c *chat) most() int { return max(c.height-max(c.height/3, 3), 1) }

// columns is how wide a row is at most: terminals differ in what they do at the edge.
func (c *chat) columns() int { return max(c.width-1, 8) }

func (c *chat) print(rows ...line) {
	for _, r := range rows {
		c.out = append(c.out, r.paint(c.colour))
	}
}

func (c *chat) tell(key string, args ...any) {
	c.print(wrap(styled(faint, channel.Clean(c.t.opt.Lang.T(key, args...))), plain("  "), plain("  "), c.columns())...)
}

// complain shows an error.
func (c *chat) complain(err error) {
	text := channel.Clean(c.t.opt.Mask(c.t.opt.Lang.Error(err)))
	c.print(wrap(styled(red, text), plain("  "), plain("  "), c.columns())...)
}

// post shows what was said.
func (c *chat) post(p channel.Post) {
	if p.Job != "" {
		c.job(p)
	}
	switch p.Kind {
	case channel.Progress:
		return
	case channel.Request:
		if p.Approval != nil {
			c.drop(p.Approval.Job)
			c.pending = append(c.pending, proposal{p.SessionID, p.Approval})
		}
	case channel.Decided:
		c.drop(p.Job)
	case channel.Answer:
		if p.ReplyTo != "" && p.ReplyTo == c.replyTo && p.SessionID == c.session {
			c.finish(p.Text)
			return
		}
	}
	c.result.Failed = c.result.Failed || p.Failed && c.turn != nil && p.ReplyTo == c.turn.id
	if p.SessionID != c.session {
		c.print(nil)
		c.tell("terminal.elsewhere", c.name(p.SessionID))
	} else if p.Kind != channel.Notice {
		c.print(nil)
	}
	c.print(show(c.t.opt.Lang, p, c.columns())...)
}

// job keeps how far a job is.
func (c *chat) job(p channel.Post) {
	at := slices.IndexFunc(c.jobs, func(j job) bool { return j.id == p.Job })
	over := p.Text == ""
	switch {
	case p.Kind == channel.Request && at >= 0: // it is not over: Chat has yet to tell of it
		c.jobs[at].text = ""
	case p.Kind != channel.Progress:
	case at < 0 && !over:
		c.jobs = append(c.jobs, job{p.Job, p.Text})
	case at >= 0 && over:
		c.jobs = slices.Delete(c.jobs, at, at+1)
	case at >= 0:
		c.jobs[at].text = p.Text
	}
}

// drop forgets a proposal that waits no longer. Who is deciding about it, or about one
// that has changed since, is not left to decide about the next.
func (c *chat) drop(job string) {
	c.pending = slices.DeleteFunc(c.pending, func(p proposal) bool { return p.Job == job })
	if (c.focus == deciding || c.focus == reasoning || c.focus == changing) && c.chosen.Job == job {
		c.back()
		c.note = c.t.opt.Lang.T("terminal.no_longer")
	}
}

// latest is the proposal that was shown last, of those that wait.
func (c *chat) latest() proposal { return c.pending[len(c.pending)-1] }

// at is where the proposal that is chosen stands among those that wait.
func (c *chat) at() int {
	return slices.IndexFunc(c.pending, func(p proposal) bool { return p.Job == c.chosen.Job })
}

// choose turns to the proposal that is by so many away from the one that is chosen.
func (c *chat) choose(by int) {
	c.chosen = c.pending[(c.at()+by+len(c.pending))%len(c.pending)]
}

// stream adds to the answer that is being written.
func (c *chat) stream(m streamMsg) {
	if m.session != c.session {
		return
	}
	if m.replyTo != c.replyTo || m.delta == "" {
		if c.said != "" {
			c.tell("terminal.anew")
		}
		c.replyTo, c.said, c.tail = m.replyTo, "", ""
	}
	if c.tail += m.delta; c.said == "" {
		c.tail = strings.TrimLeft(c.tail, "\n")
	}
	if n := settled(c.tail); n > 0 {
		c.answer(c.tail[:n])
		c.said, c.tail = c.said+c.tail[:n], c.tail[n:]
	}
}

func (c *chat) answer(text string) {
	if rows := markdown(text, c.columns()); len(rows) > 0 {
		c.print(nil)
		c.print(rows...)
	}
}

// finish puts the whole of an answer in the place of what was seen of it.
func (c *chat) finish(text string) {
	rest, begun := strings.CutPrefix(strings.TrimLeft(text, "\n"), c.said)
	if !begun {
		c.tell("terminal.anew")
	}
	c.replyTo, c.said, c.tail = "", "", ""
	c.answer(rest)
}

// handled ends a turn, and begins the next one.
func (c *chat) handled(m handledMsg) {
	if m.err != nil && !errors.Is(m.err, context.Canceled) {
		c.complain(m.err)
		c.result.Failed = true
	}
	if c.turn == nil || c.turn.id != m.message.ID {
		return
	}
	if c.replyTo != "" { // no post has said how it ended
		c.answer(c.tail)
		c.replyTo, c.said, c.tail = "", "", ""
	}
	if c.turn.stopped {
		c.tell("terminal.stopped")
	}
	if c.turn = nil; len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.submit(next)
	}
}

// submit sends a message: now, or when the turn has ended.
func (c *chat) submit(o outgoing) {
	text, files := expanded(o)
	atOnce := channel.AtOnce(c.t.handler.Commands(), text)
	if c.turn != nil && !atOnce {
		c.queue = append(c.queue, o)
		return
	}
	found, notes := c.t.attachments(text)
	m := c.t.message(o.session, text)
	m.Attachments = slices.Concat(files, found)
	c.print(nil)
	c.print(said(o.text, c.columns())...)
	for _, a := range m.Attachments {
		c.tell("terminal.attached", a.Name, i18n.Bytes(int64(len(a.Content))))
	}
	for _, n := range notes {
		c.print(wrap(styled(yellow, channel.Clean(n)), plain("  "), plain("  "), c.columns())...)
	}
	ctx, stop := context.WithCancelCause(c.ctx)
	if !atOnce {
		c.turn = &turn{id: m.ID, stop: stop, since: c.t.opt.Now()}
	}
	c.handle(ctx, stop, m)
}

// handle has a message answered; the answers come as posts.
func (c *chat) handle(ctx context.Context, stop context.CancelCauseFunc, m channel.Message) {
	c.t.turns.Go(func() {
		defer stop(nil)
		c.send(handledMsg{m, c.t.handler.Handle(ctx, m)})
	})
}

// decide sends what was decided about the proposal at hand.
func (c *chat) decide(grant bool, reason string) {
	p := c.chosen
	m := c.t.message(p.session, "")
	m.Decision = &channel.Decision{Job: p.Job, Hash: p.Hash, Grant: grant, Reason: reason}
	c.back()
	c.drop(p.Job)
	ctx, stop := context.WithCancelCause(c.ctx)
	c.handle(ctx, stop, m)
}

// sessions shows the sessions to pick one from.
func (c *chat) sessions(m sessionsMsg) {
	switch {
	case m.err != nil:
		c.complain(m.err)
	case len(m.all) == 0:
		c.note = c.t.opt.Lang.T("terminal.no_sessions")
	default:
		c.focus, c.picker = picking, &picker{all: m.all}
	}
}

// retold shows what was said in a session before.
func (c *chat) retold(m historyMsg) {
	if m.err != nil {
		c.complain(m.err)
		return
	}
	c.session = m.session
	c.print(nil)
	c.print(fit(line{{bold, "tori"}, {faint, "  " + c.title}, {faint, "  " + c.name(m.session)}}, c.columns()))
	for _, s := range m.said {
		if s.Post == nil {
			c.print(nil)
			c.print(said(s.Text, c.columns())...)
			continue
		}
		c.t.mu.Lock()
		_, again := c.t.shown.Get(s.Post.Key)
		c.t.shown.Put(s.Post.Key, true)
		c.t.mu.Unlock()
		if (!again || s.Post.Key == "") && s.Post.Kind != channel.Progress {
			c.post(*s.Post)
		}
	}
}

// name is a session's name for people.
func (c *chat) name(id string) string {
	if parts := strings.SplitN(id, ":", 4); len(parts) == 4 {
		return parts[3]
	}
	return c.t.opt.Lang.T("terminal.unnamed")
}

// named is the id of the session of that name beside this one.
func named(session, name string) string {
	return strings.Join(append(strings.SplitN(session, ":", 4)[:3], name), ":")
}

// expanded puts what was pasted in the place of what stands for it; what is too long
// for that goes as a file.
func expanded(o outgoing) (text string, files []channel.Attachment) {
	text = o.text
	for mark, content := range o.pastes {
		switch {
		case !strings.Contains(text, mark):
		case len(text)+len(content) <= maxText:
			text = strings.ReplaceAll(text, mark, content)
		default:
			files = append(files, channel.Attachment{Name: fmt.Sprintf("pasted-%d.txt", len(files)+1), MediaType: "text/plain; charset=utf-8", Content: []byte(content)})
		}
	}
	return text, files
}
