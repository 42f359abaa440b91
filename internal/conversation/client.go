package conversation

import (
	"context"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/routing"
)

// allowed is the one place that says whether a leg may run: what the session has set is
// read as the leg begins, so that /local holds for the next leg of a turn that goes on.
func (t *turn) allowed(route routing.Route, inCloud bool) (State, error) {
	s, err := t.x.state()
	if err != nil {
		return s, err
	}
	return s, routing.Policy{LocalOnly: s.LocalOnly, CloudRoutes: t.e.Cloud}.Leg(route, inCloud)
}

// client makes the client of a leg.
func (t *turn) client(ctx context.Context, u models.Use) (llm.Client, models.Spec, State, error) {
	route := routing.Route(u.Route)
	s, err := t.allowed(route, false)
	if err != nil {
		return nil, models.Spec{}, s, err
	}
	u.LocalOnly, u.Who = s.LocalOnly, "tori chat "+t.id
	c, spec, err := t.e.Models.Client(ctx, u)
	if err == nil && spec.Cloud {
		s, err = t.allowed(route, true)
	}
	if spec.Context <= 0 {
		spec.Context = leastContext
	}
	return c, spec, s, err
}

// leastContext is the window of a model that does not tell of one, in tokens.
const leastContext = 8192

// slow is after how long the user is told that a model is being loaded, and loadedFor how
// long a model that answered is taken for loaded without asking.
const (
	slow      = 5 * time.Second
	loadedFor = time.Minute
)

// warms notices that the model of a leg has yet to be loaded: that time does not count,
// and the user is told of it. ready is to be called when the first of its answer has come,
// and, with false, when the call is over.
func (t *turn) warms(ctx context.Context, spec *models.Spec) (ready func(answers bool)) {
	e, name := t.e, spec.Name()
	e.mu.Lock()
	lately := e.Now().Sub(e.answered[name]) < loadedFor
	e.mu.Unlock()
	note := func(answers bool) {
		if answers {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.answered[name] = e.Now()
		}
	}
	if lately || e.Models.Loaded(ctx, spec) {
		return note
	}
	t.clock(func(l *routing.Loop) { l.Warming(true) })
	told := time.AfterFunc(slow, func() {
		t.tell(ctx, Entry{Kind: channel.Notice, Content: e.Lang.T("conversation.loading", spec.Name())})
	})
	over := sync.OnceFunc(func() {
		told.Stop()
		t.clock(func(l *routing.Loop) { l.Warming(false) })
	})
	return func(answers bool) {
		over()
		note(answers)
	}
}

// clock uses the turn's loop, which is not for several goroutines.
func (t *turn) clock(f func(*routing.Loop)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loop != nil {
		f(t.loop)
	}
}

// limited returns a context that ends when the turn's time is over, or, where it reserves, the
// part of it that is not Chat's; with least, what is left is that at the least: what was found
// out is still to be told. Its cause is then context.DeadlineExceeded.
func (t *turn) limited(ctx context.Context, least time.Duration, reserves bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	began := t.e.Now()
	left := func() time.Duration {
		l := time.Duration(0)
		t.clock(func(loop *routing.Loop) {
			if l = loop.Left(); reserves {
				l = loop.ForWork()
			}
		})
		return max(l, least-t.e.Now().Sub(began))
	}
	var mu sync.Mutex
	var timer *time.Timer
	check := func() {
		mu.Lock()
		defer mu.Unlock()
		if l := left(); l > 0 {
			timer.Reset(l)
			return
		}
		cancel(context.DeadlineExceeded)
	}
	mu.Lock()
	timer = time.AfterFunc(left(), check)
	mu.Unlock()
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// cause is why a call failed: what ended its context, where that is why.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// classify is the leg of the classifier (routing.Ask).
func (t *turn) classify(ctx context.Context, system, user string) (string, error) {
	zero := 0.0
	c, spec, _, err := t.client(ctx, models.Use{Role: models.Worker, Route: string(routing.Classify), Temperature: &zero})
	if err != nil {
		return "", err
	}
	ctx, cancel := t.limited(ctx, 0, true)
	defer cancel()
	ready := t.warms(ctx, &spec)
	defer ready(false)
	conv := c.Open(llm.Settings{})
	conv.Append(llm.Message{Role: llm.RoleSystem, Content: system})
	conv.Append(llm.Message{Role: llm.RoleUser, Content: fitting(t.e.Lang, user, spec.Context/2)})
	reply, err := conv.Send(llm.LimitAnswer(ctx, routing.ClassifierTokens), func(string) { ready(true) })
	if err != nil {
		return "", cause(ctx, err)
	}
	return reply.Message.Content, nil
}

// Alias is what people call who fills a role.
func (e *Engine) Alias(ctx context.Context, role string) string {
	spec, err := e.Models.Spec(ctx, models.Use{Role: role, Route: string(routing.Chat)})
	if err != nil || spec.Alias == "" {
		return role
	}
	return spec.Alias
}

// tokens is about how many tokens a text takes: four ASCII characters or one other.
func tokens(s string) int {
	ascii, wide := 0, 0
	for i := range len(s) {
		switch {
		case s[i] < 0x80:
			ascii++
		case s[i] >= 0xC0:
			wide++
		}
	}
	return (ascii+3)/4 + wide
}

// fitting is a text in at most so many tokens, with a note of what was left out.
func fitting(lang i18n.Lang, s string, most int) string {
	if len(s) <= most || tokens(s) <= most {
		return s
	}
	count, end := 0, 0 // quarters of a token
	for i, r := range s {
		if r < 0x80 {
			count++
		} else {
			count += 4
		}
		if count > 4*most {
			break
		}
		end = i
	}
	left := len([]rune(s[end:]))
	return s[:end] + "\n" + lang.T("conversation.cut", left)
}
