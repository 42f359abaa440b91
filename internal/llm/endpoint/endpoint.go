// Package endpoint limits the calls to a model's server: how many at once from this machine
// and in which order (slots), none for a while after failures (breaker), another model
// instead (fallback). It makes no call of its own and writes only the files of slots.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// Member is one model that a client may use.
type Member struct {
	Client  llm.Client
	Slots   *Slots   // nil is no limit; shared by the clients of one endpoint
	Breaker *Breaker // nil never opens; shared by the clients of one endpoint
}

// Config says which models answer, and how their endpoints are treated.
type Config struct {
	// Members are the model that was configured and, in order, those that
	// answer where it cannot.
	Members  []Member
	Priority Priority
	Who      string // shown to those who wait: role and run
	// Explicit says that somebody asked for this very model: no other ever
	// answers in its place, and its error is returned.
	Explicit bool
	// OnEvent, if set, is told what is not seen otherwise. It is called on the
	// goroutine of Send.
	OnEvent func(Event)
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// New returns a client that uses the members as cfg says. It fails where there
// are none. Provider and Model are those of the first.
func New(cfg Config) (llm.Client, error) {
	if len(cfg.Members) == 0 {
		return nil, errors.New("endpoint: no member")
	}
	if cfg.OnEvent == nil {
		cfg.OnEvent = func(Event) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &client{cfg}, nil
}

type client struct{ Config }

func (c *client) Provider() string { return c.Members[0].Client.Provider() }
func (c *client) Model() string    { return c.Members[0].Client.Model() }

// Open starts a conversation, which is an llm.Refillable. Without OnMove it keeps
// its messages until the first answer, and can move, or take another form, so long.
func (c *client) Open(set llm.Settings) llm.Conversation {
	v := &conversation{client: c, set: set}
	v.open()
	return v
}

type conversation struct {
	client *client
	set    llm.Settings
	at     int // the member that answers
	inner  llm.Conversation
	held   int // messages since the last Reset
	refill func() error
	kept   []llm.Message // of those held, where nothing refills; all of them until the first answer
	undone bool          // a refill failed: what is held is not all
}

func (v *conversation) Append(m llm.Message) {
	if v.refill == nil && len(v.kept) == v.held {
		v.kept = append(v.kept, m)
	}
	v.inner.Append(m)
	v.held++
}

func (v *conversation) Reset() {
	v.inner.Reset()
	v.held, v.kept, v.undone = 0, nil, false
}

func (v *conversation) Serialized() []byte { return v.inner.Serialized() }

// Client is the member that answers at present.
func (v *conversation) Client() llm.Client { return v.member().Client }
func (v *conversation) member() *Member    { return &v.client.Members[v.at] }

func (v *conversation) OnMove(refill func() error) { v.refill, v.kept = refill, nil }

// open begins a conversation of the member that answers now, which may have to
// begin anew as well.
func (v *conversation) open() {
	v.inner = v.Client().Open(v.set)
	if r, ok := v.inner.(llm.Refillable); ok {
		r.OnMove(v.resend)
	}
}

// resend appends the messages resend.
func (v *conversation) resend() error {
	kept := v.kept
	if v.refill == nil && len(kept) < v.held {
		return errors.New("its messages are not kept any more")
	}
	v.Reset()
	if v.refill != nil {
		return v.refill()
	}
	for _, m := range kept {
		v.Append(m)
	}
	return nil
}

// Send asks the member that answers at present and, where that cannot, each of
// the others once, in order. If none can, the error is that of the first asked
// and says what became of the others.
func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if v.undone {
		if err := v.fill(); err != nil {
			return nil, err
		}
	}
	var first *llm.Error
	for asked := 1; ; asked++ {
		reply, err := v.ask(ctx, onText)
		var e *llm.Error
		if err == nil && v.at > 0 && reply.By == "" {
			reply.By = v.Client().Provider() + "/" + v.Client().Model()
		}
		if err == nil {
			v.kept = nil
		}
		if err == nil || !errors.As(err, &e) {
			return reply, err
		}
		if first == nil {
			first = e
		} else {
			first = also(first, e)
		}
		if !movable(e.Kind) || asked == len(v.client.Members) {
			return nil, first
		}
		moved, err := v.move(e, len(v.client.Members)-asked)
		if err != nil {
			return nil, err
		}
		if moved == 0 {
			return nil, first
		}
		asked += moved - 1
	}
}

// movable reports whether another model may do what this one cannot, and
// waiting a little would not help.
func movable(k llm.ErrorKind) bool {
	switch k {
	case llm.KindAuth, llm.KindNotFound, llm.KindUnreachable, llm.KindQuota, llm.KindSuspended, llm.KindForbidden:
		return true
	}
	return false
}

// also is the first error with what a further one says.
func also(first, e *llm.Error) *llm.Error {
	both := *first
	both.Message += "; then " + e.Error()
	both.Err = errors.Join(first.Err, e)
	return &both
}

// move goes to the next member whose breaker lets calls through, of the left
// ones that were not asked yet. It returns how many places it went, 0 where it
// stays. Where the refill fails, the next Send begins with another.
func (v *conversation) move(because *llm.Error, left int) (int, error) {
	c := v.client
	event := Event{Kind: Declined, From: v.Client(), Err: because}
	if c.Explicit || v.refill == nil && len(v.kept) < v.held {
		c.OnEvent(event)
		return 0, nil
	}
	for places := 1; places <= left; places++ {
		next := (v.at + places) % len(c.Members)
		if m := &c.Members[next]; m.Breaker != nil && m.Breaker.refusal() != nil {
			continue
		}
		v.at = next
		event.Kind, event.To = Moved, v.Client()
		c.OnEvent(event)
		v.open()
		if v.held == 0 {
			return places, nil
		}
		return places, v.fill()
	}
	c.OnEvent(event)
	return 0, nil
}

// fill asks for the messages again.
func (v *conversation) fill() error {
	err := v.resend()
	if err == nil && v.held == 0 {
		err = errors.New("nothing was appended again")
	}
	if v.undone = err != nil; v.undone {
		return fmt.Errorf("refill the conversation for %s %s: %w", v.Client().Provider(), v.Client().Model(), err)
	}
	return nil
}

// ask makes one call of the member that answers at present: when its turn has
// come, and if its breaker lets it.
func (v *conversation) ask(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	c, m := v.client, v.member()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.Breaker != nil {
		if r := m.Breaker.refusal(); r != nil { // no use to wait in line for it
			return nil, c.suspended(m, r)
		}
	}
	if m.Slots != nil {
		slot, err := m.Slots.Acquire(ctx, c.Priority, c.Who, func(ahead int, waited time.Duration) {
			c.OnEvent(Event{Kind: Waiting, From: m.Client, Ahead: ahead, Waited: waited})
		})
		if err != nil {
			if ended := ctx.Err(); ended != nil {
				return nil, ended
			}
			return nil, &llm.Error{Kind: llm.KindUnreachable, Provider: m.Client.Provider(), Endpoint: m.Slots.Endpoint(), Message: err.Error(), Err: err}
		}
		defer slot.Release()
	}
	if m.Breaker == nil {
		return v.inner.Send(ctx, onText)
	}
	done, r := m.Breaker.begin()
	if r != nil {
		return nil, c.suspended(m, r)
	}
	returned := false
	defer func() {
		if !returned { // onText panics: a trial call must not stay open
			done(context.Canceled)
		}
	}()
	reply, err := v.inner.Send(ctx, onText)
	returned = true
	told := err
	if err != nil && llm.IsAside(ctx) {
		told = context.Canceled // nothing is learned
	}
	switch done(told) {
	case Opened:
		c.OnEvent(Event{Kind: Opened, From: m.Client, Until: m.Breaker.OpenUntil(), Err: err})
	case Closed:
		c.OnEvent(Event{Kind: Closed, From: m.Client})
	}
	return reply, err
}

// suspended is the error of a call that was not made.
func (c *client) suspended(m *Member, r *refusal) *llm.Error {
	name := m.Client.Provider() + " " + m.Client.Model()
	err := i18n.E("endpoint.probing", name, r.failures, r.last)
	if !r.until.IsZero() {
		err = i18n.E("endpoint.suspended", name, r.failures, r.last, r.until.UTC().Format(time.RFC3339))
	}
	e := &llm.Error{Kind: llm.KindSuspended, Provider: m.Client.Provider(), Message: err.Error(), Err: err}
	if !r.until.IsZero() {
		e.RetryAfter = max(r.until.Sub(c.Now()), 0)
	}
	var last *llm.Error
	if errors.As(r.last, &last) {
		e.Endpoint = last.Endpoint
	}
	return e
}
