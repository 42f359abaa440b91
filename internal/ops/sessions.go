package ops

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/conversation"
	"toritsugi/internal/i18n"
)

// SessionsOptions say how conversations are printed, and to whom.
type SessionsOptions struct {
	JSON bool // one object a line
	Last int  // entries of one conversation, the latest; negative for all
	Lang i18n.Lang
	User string // of the viewer in channels, "terminal:hanako"
	All  bool   // the viewer sees those of others, too
}

// sees reports whether the viewer may see a conversation.
func (o SessionsOptions) sees(s *conversation.State) bool {
	return o.All || slices.Contains(s.Users, o.User)
}

// Sessions lists the conversations below base that the viewer may see, the latest first.
func Sessions(w io.Writer, base string, o SessionsOptions) error {
	all, err := conversation.List(base, o.sees)
	if err != nil {
		return err
	}
	p := &printer{w: w}
	if !o.JSON {
		p.printf("%-16s %5s  %-36s %s\n", "LAST", "LINES", "SESSION", "TITLE")
	}
	for _, s := range all {
		if o.JSON {
			p.json(s)
			continue
		}
		p.printf("%-16s %5d  %-36s %s\n", stamp(contextstore.Time{Time: s.Last})[:16], s.Messages, fit(s.ID, 36), fit(s.Title, 40))
	}
	if len(all) == 0 && !o.JSON {
		p.printf("%s\n", o.Lang.T("ops.looked_in", clean(base)))
	}
	return p.err
}

// FindSession returns the conversation of an id, or the only one whose id, or a part of it
// between colons, begins with it, or whose id ends with it, among those that the viewer may
// see. The error is an i18n error.
func FindSession(base, id string, o SessionsOptions) (conversation.Summary, error) {
	all, err := conversation.List(base, o.sees)
	if err != nil {
		return conversation.Summary{}, err
	}
	var found []conversation.Summary
	for _, s := range all {
		if s.ID == id {
			return s, nil
		}
		if id != "" && (strings.Contains(":"+s.ID, ":"+id) || strings.HasSuffix(s.ID, id)) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return conversation.Summary{}, i18n.E("ops.no_session", id, base)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i := range found {
		names[i] = found[i].ID
	}
	return conversation.Summary{}, i18n.E("ops.sessions_like", id, strings.Join(names, ", "))
}

// Session prints a conversation: what holds for it, and what was said.
func Session(w io.Writer, s conversation.Summary, o SessionsOptions) error {
	p := &printer{w: w}
	if !o.JSON {
		p.printf("%s\n%s\n\n", s.ID, fit(s.Title, 100))
		if s.ShortMemory != "" {
			p.printf("%s\n%s\n\n", o.Lang.T("ops.short_memory", s.MemorySeq), s.ShortMemory)
		}
	}
	n := 0
	err := conversation.Lines(s.Dir, func(e conversation.Entry) bool {
		n++
		if o.Last >= 0 && n <= s.Messages-o.Last {
			return true
		}
		if o.JSON {
			p.json(e)
			return p.err == nil
		}
		who := e.User
		switch e.Role {
		case contextstore.SessionUser:
		case contextstore.SessionWithdrawn, contextstore.SessionRevised: // what became of a message
			who = e.Role + " " + e.ID
		default:
			who = strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.Route))
		}
		p.printf("%d  %s  %s\n%s\n\n", e.Seq, stamp(e.Timestamp), who, e.Shown())
		return p.err == nil
	})
	return cmp.Or(err, p.err)
}

// Analyses prints records of ANALYZE, a line each, or whole as objects.
func Analyses(w io.Writer, all []conversation.Analysis, o SessionsOptions) error {
	p := &printer{w: w}
	if !o.JSON {
		p.printf("%6s  %-16s %-6s %-20s %s\n", "ID", "CREATED", "DATA", "USER", "TITLE")
	}
	for _, a := range all {
		if o.JSON {
			p.json(a)
			continue
		}
		p.printf("%6d  %-16s %-6s %-20s %s\n", a.ID, a.Created.UTC().Format(time.DateTime)[:16], a.DataType, fit(a.User, 20), fit(a.Title, 60))
	}
	return p.err
}
