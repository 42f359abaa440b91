package job

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/contract"
	"toritsugi/internal/llm"
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
	h := &memory.InheritanceReader{Inheritance: rules, Past: past, Of: func(v contextstore.View, _ task.Key) bool { return past.has(v) }, Lang: r.Lang, Told: p.told, Clean: r.clean, Now: r.Now, Log: r.Log}
	if p.history != nil {
		h.Plans = func(ctx context.Context, runs []memory.Ancestor) (memory.Sections, []memory.Ancestor) {
			o := r.Planning.Inherit
			o.File, o.Hands, o.Lang = rules.HistoryOf, proposeName, r.Lang
			o.Refused = func(dir string) bool {
				j, err := approval.Read(dir)
				return err == nil && !j.State.Status.Approved()
			}
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

// told is what an earlier job left, in the language of the conversation; "" where it proposed
// nothing. Why it was denied is not said again where the request does.
func (p *proposing) told(v contextstore.View) string {
	j, err := approval.Read(v.Dir)
	if err != nil {
		return ""
	}
	l, end := p.r.Lang, ""
	switch s := j.State; {
	case s.Status.Approved():
		if end, err = Applied(v, j, l); err != nil {
			return ""
		}
	case s.Status == approval.Denied:
		if s.Approver != approval.System && s.Reason != "" && strings.Contains(p.input().UserText, s.Reason) {
			end = l.T("approval.left_denied_why")
		}
	case !j.Grantable():
		end = l.T("job.no_patch")
	case v.State.Error != nil:
		end = *v.State.Error
	}
	return j.Left(l, end)
}

// input is what the coder is given.
func (p *proposing) input() (in contract.Input) {
	_ = json.Unmarshal([]byte(p.o.Chat.Request), &in) // what cannot be read is given as it is
	return in
}

// request is what the coder is given behind the record of an earlier job, without what that
// tells: what was asked for then where its title is the whole of it, and how people were told
// of its end.
func (p *proposing) request(earlier contextstore.View) string {
	in := p.input()
	j, err := approval.Read(earlier.Dir)
	if err != nil || in.UserText == "" {
		return p.o.Chat.Request
	}
	in.Context.RecentTurns = slices.DeleteFunc(in.Context.RecentTurns, func(t contract.Turn) bool {
		return t.Role == llm.RoleUser && t.Text == j.Title || strings.HasPrefix(t.Text, "<notice>") && strings.Contains(t.Text, j.Job)
	})
	raw, err := jsonl.Marshal(in)
	if err != nil {
		return p.o.Chat.Request
	}
	return string(raw)
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
