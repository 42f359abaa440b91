package dialogue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
)

// commentsFile holds which comments a run was told, and in which edition.
const commentsFile contextstore.Records[edition] = "heard.jsonl"

// edition is a line of commentsFile.
type edition struct {
	ID     string    `json:"id"`
	Edited time.Time `json:"edited"`
}

// Begin has it on record from the beginning of a run which comments it was told, also
// where these are none: its heirs know then what is new.
func (d *Dialogue) Begin() error { return commentsFile.Create(d.run.Store, d.run.Ledger.Dir()) }

// note records that a comment, as it stands, was told or need not be.
func (d *Dialogue) note(c forge.Comment) error {
	if at, ok := d.known[c.ID]; ok && at.Equal(c.Edited) {
		return nil
	}
	if d.known == nil {
		d.known = map[string]time.Time{}
	}
	d.known[c.ID] = c.Edited
	return commentsFile.Append(d.run.Store, d.run.Ledger.Dir(), edition{c.ID, c.Edited}, false)
}

// readComments reads the commentsFile of a context; nil where there is none. The
// comment of a torn line is told again.
func readComments(dir string) (map[string]time.Time, error) {
	known := map[string]time.Time{}
	there, err := commentsFile.Each(dir, func(e edition) { known[e.ID] = e.Edited })
	if err != nil {
		return nil, fmt.Errorf("read what was heard: %w", err)
	}
	if !there {
		return nil, nil
	}
	return known, nil
}

// WasTold reports whether the run of a context was told a comment in an edition
// that is as new.
func WasTold(dir, id string, edited time.Time) (bool, error) {
	known, err := readComments(dir)
	at, ok := known[id]
	return ok && !edited.After(at), err
}

// Thread is what was said about a task before a run begins.
type Thread struct {
	Remarks []Remark
	Left    int // comments that the forge holds and were not read
	Omitted int // comments that nobody vouches for and were left out
	Earlier int // comments that the run which is inherited from was told
}

// Thread reads what was said until now; before is what an earlier run was told, and
// notes are the comments of an issue in a folder.
func (d *Dialogue) Thread(ctx context.Context, notes []folder.Comment, before *Earlier) (t Thread, err error) {
	if d.run.Host == nil {
		for _, c := range folder.People(notes) {
			if err := d.note(ofFolder(c)); err != nil {
				return t, err
			}
			if before.covers(ofFolder(c)) {
				t.Earlier++
				continue
			}
			t.Remarks = append(t.Remarks, Remark{Author: c.Author, Text: c.Body})
		}
		return t, nil
	}
	asked := d.run.Order.Act.At
	comments, left, err := d.run.Host.Comments(ctx, d.run.Ledger.Metadata().TaskKey)
	if err != nil {
		return t, err
	}
	t.Left = left
	for _, c := range comments {
		m, err := d.remark(ctx, c)
		if err == nil {
			err = d.note(c)
		}
		if err != nil {
			return t, err
		}
		if m == nil {
			continue
		}
		if before.covers(c) {
			t.Earlier++
			continue
		}
		if late := c.Created.After(asked) || c.Edited.After(asked); late && !m.Untrusted && !d.run.Here() {
			m.Untrusted, m.Why = true, "written or edited after the work was asked for"
		}
		if m.Untrusted && d.run.Host.Omit {
			t.Omitted++
			continue
		}
		t.Remarks = append(t.Remarks, *m)
	}
	return t, nil
}

// CaughtUp says that the run has just read all that was said until now.
func (d *Dialogue) CaughtUp() { d.caughtUp = true }

// Earlier tells what an earlier run had been told, so that only what was said
// since is new (inherit §4.3.2).
type Earlier struct {
	ended time.Time
	known map[string]time.Time // by id of the comment, in which edition; nil where that is not on record
}

// ToldEarlier reads what the run that is inherited from was told; nil where
// nothing is inherited.
func ToldEarlier(in *memory.Inherited) *Earlier {
	if in == nil {
		return nil
	}
	e := &Earlier{ended: in.CompletedAt.Time}
	if in.View.Dir == "" || in.View.Metadata.TaskKey != in.Key {
		return e
	}
	if known, err := readComments(in.View.Dir); err == nil { // else the time tells
		e.known = known
	}
	return e
}

// covers reports whether a comment was said to the earlier run, or before its
// end. A comment made while that run ended is new where its record shows that
// nobody read it; so the clocks of forge and house need not agree.
func (e *Earlier) covers(c forge.Comment) bool {
	if e == nil {
		return false
	}
	if e.known != nil {
		at, ok := e.known[c.ID]
		return ok && !c.Edited.After(at)
	}
	return !c.Created.IsZero() && e.past(c.Created) && e.past(c.Edited) // one without a date may be new
}

// past reports whether a time, known to the second, was before the end.
func (e *Earlier) past(at time.Time) bool { return at.Before(e.ended.Truncate(time.Second)) }

// ofFolder is a comment of a folder as one of a forge.
func ofFolder(c folder.Comment) forge.Comment {
	return forge.Comment{ID: c.ID(), Body: c.Body, Author: forge.Person{Login: c.Author}, Created: c.Time, Edited: c.Time}
}

// maxStrangers is how many comments that nobody vouches for an owner tells its
// run while it works.
const maxStrangers = 50

// deafTime is how long a run goes on without asking what was said, after the
// forge did not answer.
const deafTime = time.Minute

// postpone puts off reading comments: the work needs no forge, and the comments are
// there when it answers again.
func (d *Dialogue) postpone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.run.Log.Warn("What was said cannot be heard yet: " + err.Error())
	d.deafUntil = d.run.Now().Add(deafTime)
	return nil
}

// New is what people have said since the run last looked, for the model. Comments
// that were handed out are noted the next time: a kill in between tells them twice,
// never not at all.
func (d *Dialogue) New(ctx context.Context) ([]contextstore.Message, error) {
	if d.run.Host == nil && d.Asking == nil && d.run.Order.Issue == "" {
		return nil, nil // nobody can say anything
	}
	for _, c := range d.telling {
		if err := d.note(c); err != nil {
			return nil, err
		}
	}
	d.telling = nil
	key := d.run.Ledger.Metadata().TaskKey
	if d.Signals != nil {
		d.inbox = append(d.inbox, d.Signals(key)...)
	}
	if d.run.Now().Before(d.deafUntil) {
		return nil, nil
	}
	if !d.caughtUp && d.run.Host != nil { // what was said while nobody worked on it
		missed, _, err := d.run.Host.Comments(ctx, key)
		if err != nil {
			return nil, d.postpone(ctx, err)
		}
		d.caughtUp = true
		d.inbox = append(d.inbox, missed...)
	}
	if d.run.Host == nil && d.run.Order.Issue != "" {
		d.ear.Issue = d.run.Order.Issue
		all, err := d.ear.Listen()
		if err != nil {
			return nil, d.postpone(ctx, err)
		}
		for _, c := range folder.People(all) {
			d.inbox = append(d.inbox, ofFolder(c))
		}
	}
	d.inbox = editions(d.inbox)
	var said []Remark
	var telling []forge.Comment
	for _, c := range d.inbox {
		at, before := d.known[c.ID]
		if before && !c.Edited.After(at) {
			continue
		}
		m, err := d.remark(ctx, c)
		if err != nil {
			return nil, d.postpone(ctx, err) // it stays in the inbox
		}
		telling = append(telling, c)
		if m == nil || m.Untrusted && (d.run.Host.Omit || d.strangers >= maxStrangers) { // only a forge has strangers
			continue
		}
		if m.Untrusted {
			d.strangers++
		} else {
			d.Objection = true
		}
		if before {
			m.Where = strings.TrimPrefix(m.Where+", edited", ", ")
		}
		said = append(said, *m)
	}
	d.inbox, d.telling, d.toldAfter = nil, telling, d.run.Ledger.LastSeq()
	if len(said) == 0 {
		return nil, nil
	}
	d.run.Log.Info("Heard while running", "comments", len(said))
	return messages(said, d.MaxBytes), nil
}

// Close notes, at the end of an owner's work, what it told last: the next owner, or
// the next run, need not tell it again. What stands in no message yet was not told.
func (d *Dialogue) Close() error {
	if d.run.Ledger.LastSeq() == d.toldAfter {
		return nil
	}
	var err error
	for _, c := range d.telling {
		err = errors.Join(err, d.note(c))
	}
	d.telling = nil
	return err
}

// editions leaves of each comment the newest edition, at the place of the first:
// one may have come by two ways.
func editions(all []forge.Comment) []forge.Comment {
	var kept []forge.Comment
	at := map[string]int{}
	for _, c := range all {
		n, ok := at[c.ID]
		switch {
		case !ok:
			at[c.ID] = len(kept)
			kept = append(kept, c)
		case c.Edited.After(kept[n].Edited):
			kept[n] = c
		}
	}
	return kept
}

// Late are the addresses of what people who count said between the model's last look
// and the end of the run, for the comment on it: they learn that nobody acted on it.
// A paused or queued run reads it when it goes on.
func (d *Dialogue) Late(ctx context.Context, end task.Status) (urls []string) {
	if d.run.Host == nil || d.Signals == nil || !end.Final() {
		return nil
	}
	for _, c := range append(d.inbox, d.Signals(d.run.Ledger.Metadata().TaskKey)...) {
		if at, before := d.known[c.ID]; before && !c.Edited.After(at) {
			continue
		}
		m, err := d.remark(ctx, c)
		if err != nil {
			d.run.Log.Warn("Who said something too late cannot be asked for: " + err.Error())
			continue
		}
		if m != nil && !m.Untrusted && c.URL != "" && !d.followedUp(ctx, c, end) {
			urls = append(urls, c.URL)
		}
	}
	d.inbox = nil
	return urls
}

// followedUp reports whether a comment that came too late for the run begins
// another one by itself: who stopped the run wanted no more of it.
func (d *Dialogue) followedUp(ctx context.Context, c forge.Comment, end task.Status) bool {
	it, read := d.run.Seen()
	if !d.run.Host.FollowUp || !c.WantsChanges() || end == task.Stopped || !read || it.Pull == nil || it.Pull.Marker == "" {
		return false
	}
	self, err := d.run.Host.Self(ctx)
	return err == nil && it.Author.ID == self.ID
}
