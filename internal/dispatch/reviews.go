package dispatch

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"toritsugi/internal/dialogue"
	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// reviewsMark is the mark of the reviews of a repository that asked for changes
// while a run had not ended: it may end without having read them.
const reviewsMark = "reviews"

// mostReviews bounds what is remembered of one repository; the oldest go first.
const mostReviews = 100

// review is one that a run may end without having read them.
type review struct {
	Item string       `json:"item"`
	ID   string       `json:"id"`
	By   forge.Person `json:"by"`
	At   time.Time    `json:"at"`
}

// proposed is a pull request.
func proposed(w *Watch, r forge.Repo, number string) task.Key {
	return task.Key{Source: w.Host.Source(), Owner: r.Owner, Repo: r.Name, Type: task.TypeProposed(w.Host.Source()), ID: number}
}

func reviewsOf(w *Watch, r forge.Repo) (scope string) {
	return w.Host.Source() + "/" + lower(r).String()
}

func (i *Intake) reviews(ctx context.Context, w *Watch, r forge.Repo) (all []review, err error) {
	mark, err := i.Store.Mark(ctx, reviewsOf(w, r), reviewsMark)
	if err == nil && mark != "" && json.Unmarshal([]byte(mark), &all) != nil {
		i.Log.Warn("What is remembered of reviews cannot be read", "repository", r.String())
	}
	return all, err
}

func (i *Intake) setReviews(ctx context.Context, w *Watch, r forge.Repo, all []review) error {
	raw, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return i.Store.SetMark(ctx, reviewsOf(w, r), reviewsMark, string(raw))
}

// remember keeps a review by somebody who may ask, durably and before it is
// taken for handled.
func (i *Intake) remember(ctx context.Context, w *Watch, r forge.Repo, k task.Key, c forge.Comment) error {
	if !w.FollowUp || !c.WantsChanges() {
		return nil
	}
	if may, err := w.may(ctx, k, c.Author); err != nil || !may {
		return err
	}
	all, err := i.reviews(ctx, w, r)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(missed review) bool { return missed.ID == c.ID })
	all = append(all, review{c.Item, c.ID, c.Author, c.Edited})
	return i.setReviews(ctx, w, r, all[max(0, len(all)-mostReviews):])
}

// followMissed follows up the reviews whose runs have ended without hearing them, as
// if they had come right after. What cannot be told now is looked at again; the
// error is about more than one of them.
func (i *Intake) followMissed(ctx context.Context, w *Watch, r forge.Repo) error {
	all, err := i.reviews(ctx, w, r)
	if err != nil || len(all) == 0 {
		return err
	}
	var left []review
	var t trouble
	for _, missed := range all {
		over, err := i.followOne(ctx, w, proposed(w, r, missed.Item), missed)
		if !over {
			left = append(left, missed)
		}
		if t.ends(err) {
			// What was followed up already is followed up again, which begins nothing twice.
			return err
		}
		if err != nil {
			i.Log.Warn("A review cannot be followed up: "+err.Error(), "repository", r.String(), "item", missed.Item, "review", missed.ID, "again", !over)
		}
	}
	if len(left) == len(all) {
		return nil
	}
	return i.setReviews(ctx, w, r, left)
}

// followOne follows one review up where it is time to; over tells that there is
// nothing more to be done about it.
func (i *Intake) followOne(ctx context.Context, w *Watch, k task.Key, missed review) (over bool, err error) {
	last, ok, err := i.latest(ctx, k)
	switch {
	case err != nil:
		return !kept(err, i.clock(w).Sub(missed.At)), err
	case !ok || last.Status() == task.Stopped: // who stopped it wanted no more of it
		return true, nil
	case !last.Status().Final():
		return false, nil
	}
	heard, err := dialogue.WasTold(last.Dir, missed.ID, missed.At)
	if err != nil {
		err = &unreadable{err}
		return !kept(err, i.clock(w).Sub(missed.At)), err
	}
	if heard {
		return true, nil
	}
	err = i.followUp(ctx, w, k, forge.Comment{ID: missed.ID, Author: missed.By, Edited: missed.At})
	return err == nil || !passing(err) && !atLarge(err), err
}
