package dialogue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
)

// commentsFile holds which comments a run was told, and in which edition.
const commentsFile contextstore.Records[edition] = "heard.jsonl"

// edition is a line of commentsFile.
type edition struct {
	ID     string    `json:"id"`
	Edited time.Time `json:"edited"`
	Thread string    `json:"thread,omitempty"` // that may be answered
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
		d.known = editionsTold{}
	}
	d.known[c.ID] = c.Edited
	return commentsFile.Append(d.run.Store, d.run.Ledger.Dir(), edition{c.ID, c.Edited, d.threads[c.ID]}, false)
}

// editionsTold are the comments that a run was told, by id, each with the time of its
// edition.
type editionsTold map[string]time.Time

// has reports whether a comment was told: before tells in any edition, and now in this
// one or a later one.
func (k editionsTold) has(c forge.Comment) (before, now bool) {
	at, before := k[c.ID]
	if before {
		return true, !c.Edited.After(at)
	}
	before = k.hasFormer(c)
	return before, before
}

// hasFormer is has for what runs of tori run were told before comments of a file were
// numbered: their ids were hashes of author, time and text, where a comment without a
// heading had neither of the first.
func (k editionsTold) hasFormer(c forge.Comment) bool {
	if !strings.HasPrefix(c.ID, string(forge.Note)+"/") {
		return false
	}
	for _, head := range []string{c.Author.Login + "\x00" + c.Created.UTC().Format(time.RFC3339), "\x00" + time.Time{}.Format(time.RFC3339)} {
		sum := sha256.Sum256([]byte(head + "\x00" + c.Body))
		if _, ok := k["note-"+hex.EncodeToString(sum[:12])]; ok {
			return true
		}
	}
	return false
}

// readComments reads the commentsFile of a context; nil where there is none. The
// comment of a torn line is told again.
func readComments(dir string) (editionsTold, error) {
	known := editionsTold{}
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

// Thread reads what was said until now; before is what an earlier run was told.
func (d *Dialogue) Thread(ctx context.Context, before *Earlier) (t Thread, err error) {
	comments, left, err := d.comments(ctx)
	if err != nil {
		return t, err
	}
	t.Left = left
	for _, c := range comments {
		m, err := d.remark(ctx, c)
		if err != nil {
			return t, err
		}
		if m != nil && !m.Untrusted && d.late(c) {
			m.Untrusted, m.Why = true, "written or edited after the work was asked for"
		}
		switch {
		case m == nil:
		case before.covers(c):
			t.Earlier++
		case m.Untrusted && d.run.Host.Omit:
			t.Omitted++
		default:
			d.mayAnswer(c, m)
			t.Remarks = append(t.Remarks, *m)
		}
		if err := d.note(c); err != nil {
			return t, err
		}
	}
	return t, nil
}

// comments lists what was said about the task, the oldest first: on its item, and on the issue
// that its draft was opened for.
func (d *Dialogue) comments(ctx context.Context) (all []forge.Comment, cut int, err error) {
	items := d.run.Order.Items(d.run.Ledger.Metadata().TaskKey)
	for _, k := range items {
		said, left, err := d.run.Host.Comments(ctx, k.Item())
		if err != nil {
			return nil, 0, err
		}
		all, cut = append(all, said...), cut+left
	}
	if len(items) > 1 {
		slices.SortStableFunc(all, func(a, b forge.Comment) int { return a.Created.Compare(b.Created) })
	}
	return all, cut, nil
}

// late reports whether a comment on a forge came, or was edited, after the work was asked
// for.
func (d *Dialogue) late(c forge.Comment) bool {
	if d.run.Here() {
		return false
	}
	asked := d.run.Order.Act.At
	return c.Created.After(asked) || c.Edited.After(asked)
}

// CaughtUp says that the run has just read all that was said until now.
func (d *Dialogue) CaughtUp() { d.caughtUp = true }

// Earlier tells what an earlier run had been told, so that only what was said
// since is new (inherit §4.3.2).
type Earlier struct {
	ended time.Time
	known editionsTold // nil where that is not on record
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
		_, now := e.known.has(c)
		return now
	}
	return !c.Created.IsZero() && e.past(c.Created) && e.past(c.Edited) // one without a date may be new
}

// past reports whether a time, known to the second, was before the end.
func (e *Earlier) past(at time.Time) bool { return at.Before(e.ended.Truncate(time.Second)) }

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

// Heard is what people have said since the run last looked, for the model. Comments
// that were handed out are noted the next time: a kill in between tells them twice,
// never not at all.
func (d *Dialogue) Heard(ctx context.Context) ([]contextstore.Message, error) {
	for _, c := range d.telling {
		if err := d.note(c); err != nil {
			return nil, err
		}
	}
	d.telling = nil
	if d.Signals != nil {
		d.inbox = append(d.inbox, d.Signals(d.run.Ledger.Metadata().TaskKey)...)
	}
	if d.run.Now().Before(d.deafUntil) {
		return nil, nil
	}
	if err := d.catchUp(ctx); err != nil {
		return nil, d.postpone(ctx, err)
	}
	said, err := d.judge(ctx)
	if err != nil {
		return nil, d.postpone(ctx, err)
	}
	if len(said) == 0 {
		return nil, nil
	}
	d.run.Log.Info("Heard while running", "comments", len(said))
	return messages(said, d.MaxBytes), nil
}

// catchUp reads what was said while nobody worked on the run; where nobody hands out what
// is said, and it stands in a file, what was said since the last look.
func (d *Dialogue) catchUp(ctx context.Context) error {
	if d.caughtUp && (d.Signals != nil || !d.run.Here()) {
		return nil
	}
	missed, _, err := d.comments(ctx)
	if err == nil {
		d.caughtUp = true
		d.inbox = append(d.inbox, missed...)
	}
	return err
}

// judge empties the inbox: what of it the model is to be told. After an error it is full
// as before.
func (d *Dialogue) judge(ctx context.Context) (said []Remark, err error) {
	d.inbox = editions(d.inbox)
	var telling []forge.Comment
	for _, c := range d.inbox {
		before, now := d.known.has(c)
		if now {
			continue
		}
		m, err := d.remark(ctx, c)
		if err != nil {
			return nil, err
		}
		telling = append(telling, c)
		if m == nil || m.Untrusted && (d.run.Host.Omit || d.strangers >= maxStrangers) {
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
		d.mayAnswer(c, m)
		said = append(said, *m)
	}
	d.inbox, d.telling, d.toldAfter = nil, telling, d.run.Ledger.LastSeq()
	return said, nil
}

// Close notes, at the end of an owner's work, what it told last: the next owner, or
// the next run, need not tell it again. What stands in no message yet was not told.
func (d *Dialogue) Close() error {
	if d.run.Ledger.LastSeq() == d.toldAfter {
		for _, c := range d.telling {
			delete(d.threads, c.ID)
		}
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
	if d.Signals == nil || !end.Final() {
		return nil
	}
	for _, c := range append(d.inbox, d.Signals(d.run.Ledger.Metadata().TaskKey)...) {
		if _, now := d.known.has(c); now {
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
