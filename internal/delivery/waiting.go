package delivery

import (
	"context"
	"strconv"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
)

// startsMark counts how often a run could not begin.
const startsMark = "starts"

// tellAfter is the failed start at which people are told: the first may be a
// passing trouble.
const tellAfter = 2

// Waiting says on the item of a run that cannot begin why it does not; the
// caller has claimed the run, and puts it back into the queue. The comment is the
// run's one comment, so that what comes of it takes its place.
func (s *Service) Waiting(ctx context.Context, c *contextstore.Context, reason string) error {
	m := c.Metadata()
	h := s.Hosts[m.TaskKey.Source]
	if h == nil || reason == "" {
		return nil
	}
	mark, err := s.Store.Mark(ctx, m.UUID, startsMark)
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(mark) // what cannot be read counts for none
	if n++; n <= tellAfter {
		if err := s.Store.SetMark(ctx, m.UUID, startsMark, strconv.Itoa(n)); err != nil {
			return err
		}
	}
	if n < tellAfter {
		return nil
	}
	p, _, err := readPlace(c.Dir())
	if err != nil {
		return err
	}
	b, err := s.Rules.broker(m, p, c.Effects())
	if err != nil {
		return err
	}
	text, _, err := s.Rules.Filter.Clean(broker.Markdown, s.Lang.T("agent.comment_waits", s.Public(reason), m.UUID, contextstore.Short(m.UUID))+"\n")
	if err != nil {
		return err
	}
	v, err := b.Judge(ctx, comment(m, "progress", text))
	if err != nil || v.Decision != broker.Allow {
		return err
	}
	_, err = h.Post(ctx, m.TaskKey.Item(), m.UUID, text)
	return err
}
