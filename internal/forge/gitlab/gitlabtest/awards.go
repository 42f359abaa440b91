package gitlabtest

import (
	"net/http"
	"strconv"
	"time"
)

// award is an emoji on an item or a note.
type award struct {
	id   int64
	by   *user
	name string
	at   time.Time
}

// awarded is what an emoji of the path is on: the item, or the note; nil where there is none.
func (c *call) awarded(i *item) (on *[]*award, kind string, id int64) {
	if of := c.r.PathValue("note_id"); of != "" {
		id, _ = strconv.ParseInt(of, 10, 64)
		n := i.note(id)
		if n == nil {
			return nil, "", 0
		}
		return &n.awards, "Note", id
	}
	kind = "Issue"
	if i.kind == merges {
		kind = "MergeRequest"
	}
	return &i.awards, kind, i.id
}

func awards(c *call, i *item) (int, any) {
	on, kind, id := c.awarded(i)
	if on == nil {
		return refuse(http.StatusNotFound, "404 Not found")
	}
	if c.r.Method == http.MethodPost {
		name, _ := c.text("name")
		a, is := c.s.award(on, c.user, name)
		if is {
			return refuse(http.StatusNotFound, "404 Award Emoji Name has already been taken Not Found")
		}
		return http.StatusCreated, c.s.awardOn(a, kind, id)
	}
	wires := []object{}
	for _, a := range *on {
		wires = append(wires, c.s.awardOn(a, kind, id))
	}
	return paged(c, wires)
}

func (s *Server) award(on *[]*award, by *user, name string) (a *award, is bool) {
	for _, a := range *on {
		if a.by == by && a.name == name {
			return a, true
		}
	}
	a = &award{s.id(), by, name, s.now()}
	*on = append(*on, a)
	return a, false
}

func (s *Server) awardOn(a *award, kind string, id int64) object {
	return object{"id": a.id, "name": a.name, "user": s.basic(a.by), "created_at": a.at, "updated_at": a.at, "awardable_id": id, "awardable_type": kind, "url": nil}
}

// Award puts an emoji on a note.
func (p *Project) Award(n string, note int64, by, name string) {
	p.on(n, func(i *item) { p.s.award(&i.note(note).awards, p.s.must(by), name) })
}
