package endpoint

import (
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// EventKind is what happened.
type EventKind string

// The kinds of events.
const (
	Waiting  EventKind = "waiting"  // for a slot: when the wait begins, and now and then
	Opened   EventKind = "opened"   // the breaker: the endpoint is left alone for a while
	Closed   EventKind = "closed"   // the breaker: the endpoint works again
	Moved    EventKind = "moved"    // another model answers from now on
	Declined EventKind = "declined" // no other model answers, though there may be one
)

// Event is something that a log should say.
type Event struct {
	Kind   EventKind
	From   llm.Client    // the model concerned
	To     llm.Client    // Moved: the one that answers now
	Ahead  int           // Waiting: how many stand before
	Waited time.Duration // Waiting: so far
	Until  time.Time     // Opened: no call before
	Err    error         // Opened, Moved, Declined: because of it
}

// Text says it in l.
func (e Event) Text(l i18n.Lang) string {
	name := func(c llm.Client) string { return c.Provider() + " " + c.Model() }
	switch e.Kind {
	case Waiting:
		return l.T("endpoint.waiting", name(e.From), e.Waited.Round(time.Second).String(), e.Ahead)
	case Opened:
		return l.T("endpoint.opened", name(e.From), e.Err, e.Until.UTC().Format(time.RFC3339))
	case Closed:
		return l.T("endpoint.closed", name(e.From))
	case Moved:
		return l.T("endpoint.moved", name(e.From), e.Err, name(e.To))
	default:
		return l.T("endpoint.declined", name(e.From), e.Err)
	}
}
