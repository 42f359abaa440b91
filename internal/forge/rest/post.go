package rest

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// Posts makes sure that each of our comments is there once. It is safe for concurrent use.
type Posts struct {
	Turns channel.Turns // by item, and by what else is made once
	delay time.Duration
	log   *slog.Logger

	mu    sync.Mutex
	items map[string]*memory // what is known of our comments, by item
}

// NewPosts returns one that speaks over the wire.
func NewPosts(w *Wire) *Posts {
	return &Posts{delay: w.RetryDelay, log: w.Log, items: map[string]*memory{}}
}

// memory is what is known of our comments on an item. It only spares requests:
// what it says is looked at before it is believed.
type memory struct {
	ids   map[string]string // by marker
	until time.Time         // every comment last changed before that was looked at
}

// mostRemembered bounds the items that are remembered.
const mostRemembered = 2000

func (p *Posts) memory(item string) *memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.items[item]
	if m == nil {
		for other := range p.items {
			if len(p.items) < mostRemembered {
				break
			}
			delete(p.items, other) // any: it only costs to look again
		}
		m = &memory{ids: map[string]string{}}
		p.items[item] = m
	}
	return m
}

// Post is forge.Tracker's. Where an answer is lost the comment may be there or not: it is
// looked for before it is written again.
func (p *Posts) Post(ctx context.Context, d *Call, k task.Key, notes Notes, marker, body string) (forge.Comment, error) {
	if !IsMarker(marker) {
		return forge.Comment{}, d.BadMarker(marker)
	}
	item := strings.ToLower(k.String())
	leave, err := p.Turns.Enter(ctx, item)
	if err != nil {
		return forge.Comment{}, d.Explain(ctx, err)
	}
	defer leave()
	x := &posting{Posts: p, d: d, notes: notes, marker: marker, text: Mark(body, marker), m: p.memory(item)}
	c, err := x.put(ctx)
	if err != nil {
		return forge.Comment{}, err
	}
	c.Item = k.ID
	return c, nil
}

// posting is one comment that is to be there.
type posting struct {
	*Posts
	d      *Call
	notes  Notes
	marker string
	text   string
	m      *memory // held
}

// Tries is how often a comment or a pull request is sent whose answer was lost each time.
const Tries = 3

func (p *posting) put(ctx context.Context) (forge.Comment, error) {
	for try := 1; ; try++ {
		c, found, err := p.find(ctx)
		if err != nil {
			return forge.Comment{}, err
		}
		if found && Same(Mark(c.Body, c.Marker), p.text) {
			return c, nil
		}
		if found {
			c, err = p.notes.Edit(ctx, c.ID, p.text)
			if forge.Is(err, forge.NotFound) && try < Tries { // it was deleted since
				delete(p.m.ids, p.marker)
				continue
			}
		} else {
			c, err = p.notes.Add(ctx, p.text)
		}
		if err == nil {
			p.m.ids[p.marker] = c.ID
			return c, nil
		}
		if !forge.Is(err, forge.Unavailable) || try == Tries {
			return forge.Comment{}, err
		}
		p.log.Debug("The answer to a comment was lost; looking whether it is there", "repository", p.d.Repo, "doing", p.d.What.Error())
		if serr := Sleep(ctx, p.delay<<try); serr != nil {
			return forge.Comment{}, p.d.Explain(ctx, serr)
		}
	}
}

// find returns our comment with the marker. It reads what changed since the last look,
// since one whose answer was lost may come late, and asks for what is remembered by its
// number where it did not change.
func (p *posting) find(ctx context.Context) (c forge.Comment, found bool, err error) {
	until := p.m.until
	var since time.Time
	if !until.IsZero() {
		since = until.Add(-time.Second)
	}
	all, err := p.notes.Changed(ctx, since)
	if err != nil {
		return c, false, err
	}
	ours := map[string]forge.Comment{}
	for _, c := range all {
		if c.Edited.After(until) {
			until = c.Edited
		}
		if c.Marker == p.marker {
			ours[c.ID] = c
		}
		if old := p.m.ids[c.Marker]; c.Marker != "" && (old == "" || number(c.ID) < number(old)) {
			p.m.ids[c.Marker] = c.ID
		}
	}
	p.m.until = until
	first := p.m.ids[p.marker]
	c, found = ours[first]
	if !found && first != "" {
		switch c, err = p.notes.Note(ctx, first); {
		case err == nil:
			found = true
		case !forge.Is(err, forge.NotFound) && !forge.Is(err, forge.Gone):
			return c, false, err
		default:
			delete(p.m.ids, p.marker)
			for id, other := range ours { // it was deleted, another one was not
				if !found || number(id) < number(first) {
					first, c, found = id, other, true
					p.m.ids[p.marker] = id
				}
			}
		}
	}
	for id := range ours {
		if id == first {
			continue
		}
		// Two of them were written when answers were lost and late.
		if err := p.notes.Delete(ctx, id); err != nil && !forge.Is(err, forge.NotFound) {
			return c, false, err
		}
	}
	return c, found, nil
}

// number is the one in a comment's id.
func number(id string) int64 {
	_, n, _ := strings.Cut(id, "/")
	v, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
