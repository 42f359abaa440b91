package conversation

import (
	"context"

	"toritsugi/internal/channel"
	"toritsugi/internal/routing"
)

// Handle implements channel.Handler.
func (e *Engine) Handle(ctx context.Context, m channel.Message) error { return nil }

// Commands implements channel.Handler.
func (e *Engine) Commands() []channel.Command {
	known := routing.Commands()
	all := make([]channel.Command, len(known))
	for i, k := range known {
		all[i] = channel.Command{Name: k.Name, Args: k.Args, Help: e.Lang.T(k.Help)}
	}
	return all
}

// Finish tells the people of a session what became of a job.
func (e *Engine) Finish(ctx context.Context, f Finished) error { return nil }

// Post shows p to the people of a session, and keeps it: a request for an approval, what
// was decided, how far a job is.
func (e *Engine) Post(ctx context.Context, p channel.Post) error { return nil }
