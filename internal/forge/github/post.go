package github

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"
)

// markerEnd is our marker: the last line of a text, so that one that is quoted in
// the text is none.
var (
	markerEnd  = lazyregexp.New(`(?:^|\n)<!-- tori:([0-9A-Za-z._-]+) -->\s*$`)
	markerName = lazyregexp.New(`^[0-9A-Za-z._-]+$`)
)

func mark(body, marker string) string {
	return strings.TrimRight(lf(body), " \t\n") + "\n\n<!-- tori:" + marker + " -->"
}

// unmark takes our marker off a text; "" where there is none.
func unmark(body string) (text, marker string) {
	body = lf(body)
	m := markerEnd().FindStringSubmatchIndex(body)
	if m == nil {
		return body, ""
	}
	return strings.TrimRight(body[:m[0]], " \t\n"), body[m[2]:m[3]]
}

func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// same reports whether GitHub holds what we would write.
func same(a, b string) bool {
	return strings.TrimRight(lf(a), " \t\n") == strings.TrimRight(lf(b), " \t\n")
}

// memory is what is known of our comments on an item. It only spares requests:
// what it says is looked at before it is believed.
type memory struct {
	ids   map[string]int64 // by marker
	until time.Time        // every comment last changed before that was looked at
}

// mostRemembered bounds the items that are remembered.
const mostRemembered = 2000

func (f *Forge) memory(item string) *memory {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.items[item]
	if m == nil {
		for other := range f.items {
			if len(f.items) < mostRemembered {
				break
			}
			delete(f.items, other) // any: it only costs to look again
		}
		m = &memory{ids: map[string]int64{}}
		f.items[item] = m
	}
	return m
}

// Post implements forge.Tracker. Where an answer is lost the comment may be there
// or not: it is looked for before it is written again.
func (f *Forge) Post(ctx context.Context, k task.Key, marker, body string) (forge.Comment, error) {
	d, n, err := f.on(ctx, k, "github.do_post")
	if err != nil {
		return forge.Comment{}, err
	}
	if !markerName().MatchString(marker) {
		return forge.Comment{}, d.failed(forge.Invalid, 0, i18n.E("github.said_marker", marker), i18n.E("github.advice_invalid"), nil)
	}
	self, err := f.Self(ctx)
	if err != nil {
		return forge.Comment{}, err
	}
	item := strings.ToLower(k.String())
	unlock, err := f.posts.lock(ctx, item)
	if err != nil {
		return forge.Comment{}, d.explain(ctx, err)
	}
	defer unlock()
	p := &posting{f: f, d: d, self: self, repo: forge.RepoOf(k), n: n, marker: marker, text: mark(body, marker), m: f.memory(item)}
	g, err := p.put(ctx)
	if err != nil {
		return forge.Comment{}, err
	}
	c := note(self, g)
	c.Item = k.ID
	return c, nil
}

// posting is one comment that is to be there.
type posting struct {
	f      *Forge
	d      *call
	self   forge.Person
	repo   forge.Repo
	n      int
	marker string
	text   string
	m      *memory // held
}

// postTries is how often a comment is sent whose answer was lost each time.
const postTries = 3

func (p *posting) put(ctx context.Context) (*github.IssueComment, error) {
	for try := 1; ; try++ {
		g, err := p.find(ctx)
		if err != nil {
			return nil, err
		}
		if g != nil && same(g.GetBody(), p.text) {
			return g, nil
		}
		var out github.IssueComment
		if g != nil {
			_, err = p.d.send(ctx, http.MethodPatch, below(p.repo, "issues", "comments", g.GetID()), &github.IssueComment{Body: &p.text}, &out)
			if forge.Is(err, forge.NotFound) && try < postTries { // it was deleted since
				delete(p.m.ids, p.marker)
				continue
			}
		} else {
			_, err = p.d.send(ctx, http.MethodPost, below(p.repo, "issues", p.n, "comments"), &github.IssueComment{Body: &p.text}, &out)
		}
		if err == nil {
			p.m.ids[p.marker] = out.GetID()
			return &out, nil
		}
		if !forge.Is(err, forge.Unavailable) || try == postTries {
			return nil, err
		}
		p.f.log.Debug("The answer to a comment was lost; looking whether it is there", "repository", p.repo.String(), "item", p.n)
		if serr := sleep(ctx, p.f.delay<<try); serr != nil {
			return nil, p.d.explain(ctx, serr)
		}
	}
}

// find returns our comment with the marker, or nil. It reads what changed since
// the last look, since one whose answer was lost may come late, and asks for what
// is remembered by its number where it did not change.
func (p *posting) find(ctx context.Context) (*github.IssueComment, error) {
	until := p.m.until
	var q = query()
	if !until.IsZero() {
		q = query("since", stamp(until.Add(-time.Second)))
	}
	ours := map[int64]*github.IssueComment{}
	_, err := backward(ctx, p.d, below(p.repo, "issues", p.n, "comments"), q, func(page []*github.IssueComment) bool {
		for _, g := range page {
			if at := g.GetUpdatedAt().Time; at.After(until) {
				until = at
			}
			c := note(p.self, g)
			if c.Marker == p.marker {
				ours[g.GetID()] = g
			}
			if old := p.m.ids[c.Marker]; c.Marker != "" && (old == 0 || g.GetID() < old) {
				p.m.ids[c.Marker] = g.GetID()
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	p.m.until = until
	first := p.m.ids[p.marker]
	g := ours[first]
	if g == nil && first != 0 {
		if g, err = p.remembered(ctx, first); err != nil {
			return nil, err
		}
		if g == nil && len(ours) > 0 { // it was deleted, another one was not
			first = slices.Min(slices.Collect(maps.Keys(ours)))
			p.m.ids[p.marker], g = first, ours[first]
		}
	}
	for id := range ours {
		if id == first {
			continue
		}
		// Two of them were written when answers were lost and late.
		if _, err := p.d.send(ctx, http.MethodDelete, below(p.repo, "issues", "comments", id), nil, nil); err != nil && !forge.Is(err, forge.NotFound) {
			return nil, err
		}
	}
	return g, nil
}

// remembered is our comment by its number, or nil where it was deleted.
func (p *posting) remembered(ctx context.Context, id int64) (*github.IssueComment, error) {
	var g github.IssueComment
	_, err := p.d.get(ctx, below(p.repo, "issues", "comments", id), nil, &g)
	if forge.Is(err, forge.NotFound) || forge.Is(err, forge.Gone) {
		delete(p.m.ids, p.marker)
		return nil, nil
	}
	return &g, err
}

// locks are locks by name.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	free  chan struct{} // holds one
	users int
}

// lock waits for the lock of a name, or for the end of ctx.
func (l *locks) lock(ctx context.Context, name string) (unlock func(), err error) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	h := l.held[name]
	if h == nil {
		h = &lock{free: make(chan struct{}, 1)}
		h.free <- struct{}{}
		l.held[name] = h
	}
	h.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(l.held, name)
		}
	}
	select {
	case <-h.free:
		return func() { h.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
