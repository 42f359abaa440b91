package conversation

import (
	"context"
	"errors"

	"toritsugi/internal/channel"
)

// changed is what became of a message since it was said.
type changed struct {
	withdrawn bool
	seq       int64  // of its latest revision, 0 for none
	text      string // what it is since
}

// Why a turn ends whose message is not what it was.
var (
	errWithdrawn = errors.New("the message was taken back")
	errRevised   = errors.New("the message was changed")

	errNoID = errors.New("a message without an id cannot be taken back or changed")
)

// Withdraw implements channel.EventHandler. Jobs that the message began are stopped, too:
// their coders are sent it.
func (e *Engine) Withdraw(ctx context.Context, sessionID, messageID string) error {
	if messageID == "" {
		return errNoID
	}
	x := e.open(sessionID, kindOf(sessionID))
	k, err := x.seen(messageID)
	if err != nil {
		return err
	}
	if !k.withdrawn {
		if _, err := e.append(ctx, x, Entry{Role: roleWithdrawn, ID: messageID}); err != nil {
			return err
		}
	}
	e.stopTurn(x.ID, messageID, errWithdrawn)
	if err := e.analyses.Withdraw(ctx, x.ID, messageID); err != nil {
		return err
	}
	if e.Jobs == nil {
		return nil
	}
	all, err := e.Jobs.List(ctx, x.ID)
	if err != nil {
		return err
	}
	by := ""
	if k.message != nil {
		by = k.message.User
	}
	for _, j := range all {
		if j.ReplyTo == messageID {
			err = errors.Join(err, e.Jobs.Stop(ctx, x.ID, j.ID, by))
		}
	}
	return err
}

// forget has the session's state tell nothing of a message. What is remembered is told anew by
// what was said, without it.
func (s *State) forget(x session, message string) {
	var m Entry
	_ = x.recent(func(n Entry) bool { // a log that cannot be read is forgotten
		if n.Role == roleUser && n.ID == message {
			m = n
		}
		return m.Seq == 0
	})
	s.Withdrawn++
	s.Unsaid = nil
	if m.Seq <= s.MemorySeq {
		s.ShortMemory, s.MemorySeq = "", s.CutSeq
	}
	if m.Seq > 0 && s.Title == title(m.Content) {
		s.Title = ""
	}
}

// Revise implements channel.EventHandler.
func (e *Engine) Revise(ctx context.Context, m channel.Message) error {
	if m.ID == "" {
		return errNoID
	}
	if err := conforms(m); err != nil {
		return err
	}
	x := e.open(m.SessionID, m.Channel)
	k, err := x.seen(m.ID)
	text := e.Strict(m.UserText)
	switch {
	case err != nil:
		return err
	case k.withdrawn, k.seq > 0 && k.text == text, k.seq == 0 && k.message != nil && k.message.Content == text, k.answered():
		return nil
	}
	if _, err := e.append(ctx, x, Entry{Role: roleRevised, ID: m.ID, User: m.User, Content: m.UserText}); err != nil {
		return err
	}
	e.stopTurn(x.ID, m.ID, errRevised)
	return nil
}

// current calls f with the entries as they are now, latest first, until f returns false:
// without messages that were taken back and what answers them, changed ones as they were
// answered. The log keeps what was said.
func (x session) current(f func(Entry) bool) error {
	withdrawn, revised := map[string]bool{}, map[string]string{}
	return x.back(func(n Entry) bool {
		switch n.Role {
		case roleWithdrawn:
			withdrawn[n.ID] = true
			return true
		case roleRevised:
			if _, later := revised[n.ID]; !later {
				revised[n.ID] = n.Content
			}
			return true
		case roleAssistant:
			if withdrawn[n.ReplyTo] && n.Job == "" {
				return true
			}
			if n.Final { // a change that came later changed nothing
				delete(revised, n.ReplyTo)
			}
		case roleUser:
			if withdrawn[n.ID] {
				return true
			}
			if text, ok := revised[n.ID]; ok {
				n.Content = text
			}
		}
		return f(n)
	})
}
