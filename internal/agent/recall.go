package agent

import (
	"context"
	"strings"

	"toritsugi/internal/memory"
	"toritsugi/internal/task"
)

// standIns returns the first token in s that stands for text which the model was
// not shown: a mask, or the stub of what left its window. A model may copy one
// out of what it sees; it is never written to a file (DESIGN §2 law 7).
func (r *run) standIns(s string) (token string, ok bool) {
	if r.Masking.Masks != nil {
		token, ok = r.Masking.Masks(s)
	}
	if stub, found := memory.FindStub(s); found && (!ok || strings.Index(s, stub) < strings.Index(s, token)) {
		return stub, true
	}
	return token, ok
}

// summaries opens the model that summarises what leaves the window, once; nil
// where there is none: a script answers the run itself.
func (r *run) summaries() func(context.Context) (memory.Summarizer, error) {
	if r.Window.Summarizer == nil || r.Scripted {
		return nil
	}
	var opened *memory.Summarizer
	return func(ctx context.Context) (memory.Summarizer, error) {
		if opened == nil {
			client, window, err := r.Window.Summarizer(ctx)
			if err != nil {
				return memory.Summarizer{}, err
			}
			s := memory.ByModel(client, window)
			opened = &s
		}
		return *opened, nil
	}
}

// earlier is what can be recalled of the run that was inherited from.
func (r *run) earlier() []memory.Source {
	in := r.past.from.Load()
	if in == nil {
		return nil
	}
	key, rules := r.ledger.Metadata().TaskKey, r.Inheritance
	rules.FollowLinks = rules.FollowLinks || r.out.Order.For != nil || key.Type == task.TypeIssue
	e, err := memory.OpenEarlier(*in, key, rules, r.Store.View, r.strictly)
	if err != nil {
		r.log.Warn("What the earlier run left cannot be recalled", "earlier", in.UUID, "error", err)
		return nil
	}
	return []memory.Source{e.Recall}
}
