package dispatch

import (
	"context"
	"slices"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// bySign is the message of an answer that was given by a sign: of several at one question
// the first counts.
const bySign = "reaction"

// signed takes a 👍 or 👎 of somebody who may ask for work, at the comment with a question
// that leaves two choices, for the answer, and lets the run go on. Nobody is notified of
// signs, so that they are looked for.
func (i *Intake) signed(ctx context.Context, w *Watch, r contextstore.Row) error {
	host, ok := w.Host.Tracker.(forge.Reactions)
	v, err := i.Store.View(r.UUID)
	if err != nil || !ok || v.Status() != task.AwaitingApproval {
		return nil //nolint:nilerr // it moved on meanwhile
	}
	q, ok, err := dialogue.Pending(v.Dir)
	choices := dialogue.Choices(i.Lang, q)
	if err != nil || !ok || choices == nil {
		return err
	}
	said, _, err := w.Host.Comments(ctx, r.Key)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(said, func(c forge.Comment) bool { return c.Marker == delivery.QuestionKey(r.UUID, q.ID) })
	if at < 0 {
		return nil // it is not delivered yet
	}
	signs, err := host.Reactions(ctx, r.Key, said[at].ID)
	if err != nil {
		return err
	}
	for _, s := range signs {
		if s.Sign != forge.Yes && s.Sign != forge.No || s.By.Bot {
			continue
		}
		if may, err := w.may(ctx, r.Key, s.By); err != nil || !may {
			if err != nil {
				return err
			}
			continue
		}
		text := choices[0]
		if s.Sign == forge.No {
			text = choices[1]
		}
		if _, _, err := dialogue.Answer(i.Store, r.UUID, dialogue.Reply{Question: q.ID, By: s.By.Login, Text: text, At: contextstore.Time{Time: s.At}, Message: bySign}); err != nil {
			return err
		}
		return i.answered(ctx, w, r.Key, v, forge.Comment{Author: s.By})
	}
	return nil
}
