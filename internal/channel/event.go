package channel

import (
	"context"
	"encoding/json"
	"time"
)

// Event is what a vendor sent, as it waits in the inbox: its sender was told that it came,
// and it is worked on once, whatever happens to the program.
type Event struct {
	Channel Kind
	// ID is the vendor's id of the event, unique within its channel: one that is known is
	// not taken again.
	ID string
	// Queue is what the order is kept within: events of one queue are worked on one after
	// another, as they came; those of "" at once, as an event that takes back another
	// one is.
	Queue string
	// Body is the event as the vendor sent it, verified, of at most MaxEvent bytes.
	Body       json.RawMessage
	ReceivedAt time.Time
}

// KeepIDs is for how long an Inbox knows the id of an event that was worked on, at least.
const KeepIDs = 7 * 24 * time.Hour

// Inbox keeps events until they have been worked on.
type Inbox interface {
	// Put returns when every event is on the disk. Those whose ids are known change
	// nothing. Its error means that the vendor has to send them again.
	Put(ctx context.Context, events ...Event) error
}

// EventHandler is a Handler for who can take back or change what was said.
type EventHandler interface {
	Handler
	// Withdraw forgets a message that its author took back: one that waits is not
	// answered, a turn that answers it is stopped, and the session marks it; no model is
	// sent it any more. A message that is yet to come is not answered when it comes.
	Withdraw(ctx context.Context, sessionID, messageID string) error
	// Revise puts m in the place of the message with its ID: one that waits is answered
	// as it is now, a turn that answers it begins anew. One that was answered stays.
	Revise(ctx context.Context, m Message) error
}

// Receiver is a Channel whose vendor sends events.
type Receiver interface {
	Channel
	// Receive works on an event from the inbox: it hands the handler what was said, and
	// returns when the turn has ended. What nobody is to be answered for is nil. With an
	// error the event stays in the inbox and is tried again later.
	Receive(ctx context.Context, e Event, h EventHandler) error
}
