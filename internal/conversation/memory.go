package conversation

import (
	"context"
	"strings"
	"time"

	"toritsugi/internal/contract"
	"toritsugi/internal/llm"
	"toritsugi/internal/routing"
)

// The short memory (spec/chat §8): after how many texts it is renewed, how long it may
// be, in characters, and how long its call may take.
const (
	renewAfter = 20
	maxMemory  = 1200
)

// remember renews the short memory where much was said since: the older part of it goes
// into the memory, the latest turns stay as they are. It is a leg of Chat as any other, in
// the turn's time (spec/chat §5): where none is left, a later turn does it.
func (t *turn) remember(ctx context.Context) {
	e, left := t.e, time.Duration(0)
	t.clock(func(l *routing.Loop) { left = l.Left() })
	if left <= 0 {
		return
	}
	s, err := t.x.state()
	if err != nil {
		return
	}
	all, err := t.past(&s)
	if err != nil {
		return
	}
	size := 0
	for _, n := range all {
		size += tokens(n.Content)
	}
	limit := t.room(ctx) // half of the window, which three quarters of it are one and a half of
	if len(all) <= renewAfter && size <= limit+limit/2 {
		return
	}
	keep := min(2*e.RecentTurns, len(all)/2)
	older := all[:len(all)-keep]
	text, err := t.summary(ctx, &s, older)
	if err != nil || text == "" {
		if err != nil && ctx.Err() == nil {
			e.Log.Warn("The short memory is not renewed: "+err.Error(), "session_id", t.x.ID)
		}
		return
	}
	to := older[len(older)-1].Seq
	err = t.x.update(ctx, func(now *State) bool {
		if now.MemorySeq != s.MemorySeq || now.CutSeq != s.CutSeq || now.Withdrawn != s.Withdrawn {
			return false // another process was first, or what it tells of is to be forgotten
		}
		now.ShortMemory, now.MemorySeq = text, to
		return true
	})
	if err != nil {
		e.Log.Error(err.Error())
	}
}

// summary asks Chat's model for the short memory of a session, with what it was before.
func (t *turn) summary(ctx context.Context, s *State, older []Entry) (string, error) {
	ctx, cancel := t.limited(ctx, 0, false)
	defer cancel()
	ctx, cancel = context.WithTimeout(llm.LimitAnswer(llm.Aside(ctx), maxMemory), grace)
	defer cancel()
	c, spec, _, err := t.client(ctx, useChat)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, n := range older {
		b.WriteString(n.Role + ": " + n.text() + "\n\n")
	}
	conv := c.Open(llm.Settings{})
	conv.Append(llm.Message{Role: llm.RoleSystem, Content: t.e.prompts.text("turn/memory.md")})
	asked := llm.Tagged("messages", fitting(t.e.Lang, b.String(), spec.Context/2))
	if s.ShortMemory != "" {
		asked = llm.Tagged("summary", s.ShortMemory) + "\n" + asked
	}
	conv.Append(llm.Message{Role: llm.RoleUser, Content: asked})
	reply, err := conv.Send(ctx, nil)
	if err != nil {
		return "", err
	}
	short, _ := contract.Shortened(strings.TrimSpace(reply.Message.Content), maxMemory)
	return t.e.Strict(short), nil
}
