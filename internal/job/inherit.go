package job

import (
	"context"
	"slices"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/memory"
	"toritsugi/internal/order"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
)

// inherit looks for what earlier jobs of the conversation left that were about the same
// repository. Only data comes over: an approval of theirs is none of this one's.
func (p *proposing) inherit(ctx context.Context) (*memory.Inherited, error) {
	r := p.r
	rules := r.Inheritance
	if most := r.Window / 4; rules.MaxTokens == 0 || rules.MaxTokens > most {
		rules.MaxTokens = most
	}
	past := conversation{r.Store, *p.o.Chat}
	h := &memory.InheritanceReader{Inheritance: rules, Past: past, Of: func(v contextstore.View, _ task.Key) bool { return past.has(v) }, Clean: r.clean, Now: r.Now, Log: r.Log}
	if p.history != nil {
		h.Plans = func(ctx context.Context, runs []memory.Ancestor) (memory.Sections, []memory.Ancestor) {
			o := r.Planning.Inherit
			o.File, o.Hands = rules.HistoryOf, proposeName
			o.Warn = func(uuid string, err error) {
				r.Log.Warn("The planning of an earlier job is not wholly read", "earlier", uuid, "error", r.Store.Redact(err.Error()))
			}
			earlier, used := planning.ReadEarlierRuns(ctx, runs, o)
			p.earlier = earlier
			return earlier.Sections(), used
		}
	}
	in, err := h.Find(ctx, p.c.Metadata().TaskKey)
	if in == nil {
		p.earlier = nil
	} else if p.earlier != nil { // its plan was for another request
		p.earlier.Hidden = true
	}
	return in, err
}

// clean masks secrets and data of people.
func (r *Runner) clean(s string) string {
	s = r.Store.Redact(s)
	if r.Strict != nil {
		s = r.Strict(s)
	}
	return s
}

// conversation knows the jobs of a conversation on one repository that ended: memory.Past.
type conversation struct {
	store *contextstore.Store
	chat  order.Chat
}

// maxLooked is how many jobs of a channel's conversation are looked at, the latest first.
const maxLooked = 50

// has reports whether a run is such a job. Its repository is the order's: the key names a
// directory (spec/chat §1).
func (c conversation) has(v contextstore.View) bool {
	o, err := order.Parse(v.Metadata)
	return err == nil && o.Chat != nil && o.Chat.Session == c.chat.Session && o.Chat.Repository == c.chat.Repository && o.Chat.Job != c.chat.Job
}

// LastEnded implements memory.Past.
func (c conversation) LastEnded(ctx context.Context, k task.Key, since time.Time) (contextstore.View, bool, error) {
	all, err := c.Ended(ctx, k, since, 1)
	if len(all) == 0 {
		return contextstore.View{}, false, err
	}
	return all[0], true, err
}

// Ended implements memory.Past.
func (c conversation) Ended(ctx context.Context, k task.Key, since time.Time, most int) (all []contextstore.View, err error) {
	l, err := contextstore.List(ctx, c.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{Source: k.Source, Owner: k.Owner, Type: k.Type, Limit: maxLooked})
	if err != nil {
		return nil, err
	}
	for _, v := range l.Views {
		if st := v.Status(); st != task.Completed && st != task.Stopped || v.State.CompletedAt.Before(since) {
			continue
		}
		if v, err := c.store.View(v.Metadata.UUID); err == nil && c.has(v) { // of what has ended the list tells less
			all = append(all, v)
		}
	}
	slices.SortStableFunc(all, func(a, b contextstore.View) int { return b.State.CompletedAt.Compare(a.State.CompletedAt.Time) })
	return all[:min(len(all), most)], nil
}
