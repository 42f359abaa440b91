package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/forge"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// commentsMark is the mark of how far the comments of a repository were read.
const commentsMark = "comments"

const (
	// firstLook is how far before the first look at a repository comments are read.
	firstLook = 10 * time.Minute
	// firstEvent is the same where an event of an item led there: its job may have waited.
	firstEvent = time.Hour
	// overlap is how far the mark trails behind the forge's clock. A forge has
	// several lists, read one after the other, and may show what was said a
	// moment late: what one list did not show yet is older than what the next
	// one shows.
	overlap = time.Minute
	// markStep is how far the mark moves at least where nothing was said: as
	// long as the same is asked for the forge can answer that nothing changed,
	// which it does not count. It is to be many looks long.
	markStep = time.Hour
)

// bookmark is how far the comments of a repository were read: all that was last
// edited before until, and of what
// came later these comments, in these editions. A command is not to be carried
// out twice.
type bookmark struct {
	until    time.Time
	editions map[string]time.Time // by id
}

// parseBookmark reads a mark: a time, and "id@edition" for each comment. Ids
// without an edition are of that very time.
func parseBookmark(mark string) (h bookmark, ok bool) {
	parts := strings.Fields(mark)
	if len(parts) == 0 {
		return h, false
	}
	at, err := time.Parse(time.RFC3339Nano, parts[0])
	h = bookmark{at, map[string]time.Time{}}
	for _, p := range parts[1:] {
		edited := at
		if n := strings.LastIndexByte(p, '@'); n >= 0 {
			if ns, err := strconv.ParseInt(p[n+1:], 10, 64); err == nil {
				p, edited = p[:n], time.Unix(0, ns)
			}
		}
		h.editions[p] = edited
	}
	return h, err == nil
}

func (h bookmark) String() string {
	parts := []string{h.until.UTC().Format(time.RFC3339Nano)}
	for _, id := range slices.Sorted(maps.Keys(h.editions)) {
		parts = append(parts, id+"@"+strconv.FormatInt(h.editions[id].UnixNano(), 10))
	}
	return strings.Join(parts, " ")
}

// has reports whether a comment, in this edition, was handled.
func (h bookmark) has(c forge.Comment) bool {
	edited, ok := h.editions[c.ID]
	return c.Edited.Before(h.until) || ok && !c.Edited.After(edited)
}

// add notes that a comment was handled.
func (h *bookmark) add(c forge.Comment) {
	if h.editions == nil {
		h.editions = map[string]time.Time{}
	}
	h.editions[c.ID] = c.Edited
}

// move notes that everything before a time was handled; a bookmark never moves back.
func (h *bookmark) move(until time.Time) {
	if until = until.Truncate(time.Second); !until.After(h.until) {
		return
	}
	h.until = until
	maps.DeleteFunc(h.editions, func(_ string, edited time.Time) bool { return edited.Before(until) })
}

// clock is the forge's time, as comments are dated by it, where it tells.
func (i *Intake) clock(w *Watch) time.Time {
	if c, ok := w.Host.Tracker.(forge.Clock); ok {
		return c.ServerTime()
	}
	return i.Now()
}

// comments reads what was said in a repository since the last look: commands
// are carried out, the rest goes to the runs. The mark moves once all is done, so
// that a kill repeats and loses nothing; each step can be done again. all tells that
// nothing is left for the next look.
func (i *Intake) comments(ctx context.Context, w *Watch, r forge.Repo) (all bool, err error) {
	scope := w.Host.Source() + "/" + lower(r).String()
	if w.Only.ID != "" { // what is said elsewhere is not read
		scope += w.Only.Number()
	}
	mark, err := i.Store.Mark(ctx, scope, commentsMark)
	if err != nil {
		return false, err
	}
	at := i.clock(w) // before the first list is read
	now, ok := parseBookmark(mark)
	switch {
	case ok:
	case w.Only.ID != "":
		now.until = at.Add(-firstEvent).Truncate(time.Second)
	default:
		// What was said before the first look is read with the item itself.
		return false, i.Store.SetMark(ctx, scope, commentsMark, bookmark{until: at.Add(-firstLook).Truncate(time.Second)}.String())
	}
	if now.until.After(at) {
		now.until = at.Add(-overlap).Truncate(time.Second) // a clock was wrong
	}
	said, err := w.Host.CommentsSince(ctx, r, now.until)
	if err != nil {
		return false, err
	}
	until := at.Add(-overlap)
	if n := len(said); n >= forge.MaxComments {
		until = earlier(until, said[n-1].Edited) // there may be more
	}
	moved, left, err := i.handleAll(ctx, w, r, said, &now)
	if !left.IsZero() {
		until = earlier(until, left)
	}
	all = left.IsZero() && len(said) < forge.MaxComments
	if !moved && until.Sub(now.until) < markStep {
		return all, err
	}
	now.move(until)
	return all, errors.Join(err, i.Store.SetMark(ctx, scope, commentsMark, now.String()))
}

// handleAll does what comments ask for and notes those that are done with. One
// that cannot be handled now is left, with what follows it on its item; left is the
// time of the first, and where it tells of the forge rather than of the one
// comment that is an error.
func (i *Intake) handleAll(ctx context.Context, w *Watch, r forge.Repo, said []forge.Comment, now *bookmark) (moved bool, left time.Time, err error) {
	var t trouble
	behind := map[string]bool{} // items
	for _, c := range said {
		if now.has(c) || behind[c.ItemType+c.Item] || w.passes(c.ItemType, c.Item) {
			continue
		}
		err := i.handle(ctx, w, r, c)
		switch ends := t.ends(err); {
		case ends || passing(err) || kept(err, i.clock(w).Sub(c.Edited)):
			behind[c.ItemType+c.Item] = true
			if left.IsZero() {
				left = c.Edited
			}
			if ends {
				return moved, left, err
			}
			i.Log.Warn("A comment cannot be heard yet: "+err.Error(), "repository", r.String(), "item", c.Item, "comment", c.ID, "by", c.Author.Login)
			continue
		case err != nil:
			i.Log.Warn("A comment is passed over: "+err.Error(), "repository", r.String(), "item", c.Item, "comment", c.ID, "by", c.Author.Login)
		}
		now.add(c)
		moved = true
	}
	return moved, left, nil
}

// keepFor is how long a comment on a run that cannot be read waits for somebody
// to mend that.
const keepFor = time.Hour

// kept reports whether a comment that is so old waits because of an error.
func kept(err error, age time.Duration) bool {
	return errors.As(err, new(*unreadable)) && age < keepFor
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// handle does what one comment asks for.
func (i *Intake) handle(ctx context.Context, w *Watch, r forge.Repo, c forge.Comment) error {
	if c.Marker != "" || c.Author.Bot || c.Author.ID == w.self.ID && c.Author.ID != 0 {
		return nil // ourselves, and other programs
	}
	if w.Host.Labels.Review != "" && c.ItemType != task.TypeIssue && dialogue.AsksReview(c.Body, w.self.Login) {
		return i.review(ctx, w, r, c)
	}
	key, last, ok, err := i.about(ctx, w, r, c)
	if err != nil {
		return err
	}
	if ok && !w.serves(i.Store, key.Source, last.Metadata.UUID) {
		return nil // tori run hears it itself
	}
	command, _, is := dialogue.Command(c.Body)
	if is && (!ok || last.Status().Final()) { // it may be meant for a review
		of := proposed(w, r, c.Item).Review()
		v, found, err := i.latest(ctx, of)
		if err != nil {
			return err
		}
		if found && !v.Status().Final() && c.ItemType != task.TypeIssue {
			key, last, ok = of, v, true
		}
	}
	switch {
	case is && ok:
		return i.command(ctx, w, key, last, c, command)
	case is && command == dialogue.CommandStop:
		may, err := w.may(ctx, key, c.Author)
		if err != nil || !may {
			return err
		}
		return i.stopBefore(ctx, key, c)
	case is:
		return nil // on something that never was a task
	case ok && !last.Status().Final():
		if err := i.remember(ctx, w, r, key, c); err != nil {
			return err
		}
		switch last.Status() {
		case task.Running:
			return i.Mailbox.put(ctx, last.Metadata.TaskKey, c)
		case task.AwaitingApproval:
			return i.answered(ctx, w, key, last, c)
		}
		return nil // a run that is taken up reads what was said meanwhile from the item
	case w.FollowUp && c.WantsChanges():
		return i.followUp(ctx, w, key, c)
	}
	return nil
}

// answered lets a run go on that waits for an answer, when somebody who may ask
// for work says something: whether that is an answer the run finds out.
func (i *Intake) answered(ctx context.Context, w *Watch, k task.Key, last contextstore.View, c forge.Comment) error {
	may, err := w.may(ctx, k, c.Author)
	if err != nil || !may {
		return err
	}
	_, err = i.Store.Control(ctx, last.Metadata.UUID, contextstore.Resume, w.called(c.Author))
	if errors.Is(err, task.ErrIllegalTransition) {
		return nil // it goes on already
	}
	if err == nil {
		i.Log.Info("An answer; the run goes on", "task", k.String(), "by", c.Author.Login)
		i.Wake()
	}
	return err
}

// about finds the task that a comment is about, and its newest run. A note need
// not say whether it is on an issue or a pull request.
func (i *Intake) about(ctx context.Context, w *Watch, r forge.Repo, c forge.Comment) (k task.Key, last contextstore.View, ok bool, err error) {
	k = task.Key{Source: w.Host.Source(), Owner: r.Owner, Repo: r.Name, ID: c.Item}
	for _, k.Type = range []string{task.TypeIssue, task.TypeProposed(k.Source)} {
		if k.Type == task.TypeIssue && c.Kind != forge.Note || c.ItemType != "" && c.ItemType != k.Type {
			continue
		}
		if last, ok, err = i.latest(ctx, k); ok || err != nil {
			return k, last, ok, err
		}
	}
	return k, last, false, nil
}

// command carries out what a comment commands. One by somebody who may not is
// passed over: an answer would let strangers make us talk.
func (i *Intake) command(ctx context.Context, w *Watch, k task.Key, last contextstore.View, c forge.Comment, name string) error {
	may, err := w.may(ctx, k, c.Author)
	if err != nil {
		return err
	}
	if !may {
		i.Log.Warn("Command of somebody who may not give any", "task", k.String(), "by", c.Author.Login, "command", name)
		return nil
	}
	switch name {
	case dialogue.CommandRetry:
		return i.retry(ctx, w, k, last, c)
	case dialogue.CommandApprove, dialogue.CommandDeny:
		return i.decide(ctx, w, k, last, c)
	}
	if since := begun(last); c.Edited.Before(since.Truncate(time.Second)) {
		return nil // it was meant for an earlier run
	}
	do := map[string]contextstore.Action{dialogue.CommandStop: contextstore.Stop, dialogue.CommandPause: contextstore.Pause, dialogue.CommandResume: contextstore.Resume}[name]
	a, err := i.Store.Control(ctx, last.Metadata.UUID, do, w.called(c.Author))
	if errors.Is(err, task.ErrIllegalTransition) {
		i.Log.Info("Command that comes too late", "task", k.String(), "by", c.Author.Login, "command", name, "status", last.Status())
		if do == contextstore.Stop {
			return i.stopBefore(ctx, k, c)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if do == contextstore.Pause && w.StayPaused != nil {
		if err := w.StayPaused(ctx, last.Metadata.UUID); err != nil {
			return err // a person's word counts for more
		}
	}
	if do == contextstore.Stop && a.Asked && k.Type == task.TypeIssue { // it may leave its work to a draft's task before it sees that
		if err := i.stopBefore(ctx, k, c); err != nil {
			return err
		}
	}
	i.Log.Info("Command carried out", "task", k.String(), "by", c.Author.Login, "command", name, "status", a.Status)
	i.Wake()
	return nil
}

// stopMark is until when what was asked for on an item is no longer wanted.
const stopMark = "stop"

// stopBefore remembers a /stop that finds nothing to stop: what was asked for
// before it and is not begun yet is not begun at all.
func (i *Intake) stopBefore(ctx context.Context, k task.Key, c forge.Comment) error {
	return i.Store.SetMark(ctx, k.String(), stopMark, c.Edited.UTC().Format(time.RFC3339))
}

// stopped reports whether an act was taken back by a later /stop.
func (i *Intake) stopped(ctx context.Context, a candidate) (bool, error) {
	mark, err := i.Store.Mark(ctx, a.key.String(), stopMark)
	if err != nil || mark == "" {
		return false, err
	}
	at, err := time.Parse(time.RFC3339, mark)
	return err == nil && a.act.At.Before(at), nil
}

// begun is when a run was asked for, by the clock that its comments go by.
func begun(v contextstore.View) time.Time {
	job, err := order.Parse(v.Metadata)
	if err != nil || job.Act == nil || job.Act.At.IsZero() {
		return v.Metadata.CreatedAt.Time
	}
	return job.Act.At
}

// retry begins a run anew that has ended.
func (i *Intake) retry(ctx context.Context, w *Watch, k task.Key, last contextstore.View, c forge.Comment) error {
	if !last.Status().Final() {
		return nil
	}
	it, err := w.Host.Item(ctx, k)
	if err != nil || !it.Open {
		return err
	}
	_, err = i.consider(ctx, w, candidate{k, it, order.Act{By: c.Author, At: c.Edited, Event: c.ID, How: order.ByComment}})
	return err
}

// followUp begins a run on a pull request of ours that a reviewer wants changed.
// The account may be a person's, who opens others: ours bear the marker.
func (i *Intake) followUp(ctx context.Context, w *Watch, k task.Key, c forge.Comment) error {
	it, err := w.Host.Item(ctx, k)
	if err != nil || !it.Open || it.Pull == nil || it.Pull.Marker == "" || it.Author.ID != w.self.ID {
		return err
	}
	_, err = i.consider(ctx, w, candidate{k, it, order.Act{By: c.Author, At: c.Edited, Event: c.ID, How: order.ByReview}})
	return err
}

// review begins a review that a comment asks for.
func (i *Intake) review(ctx context.Context, w *Watch, r forge.Repo, c forge.Comment) error {
	k := proposed(w, r, c.Item)
	it, err := w.Host.Item(ctx, k)
	if forge.Is(err, forge.NotFound) { // an issue
		return nil
	}
	if err != nil || !it.Open || it.Pull == nil {
		return err
	}
	_, err = i.consider(ctx, w, candidate{k.Review(), it, order.Act{By: c.Author, At: c.Edited, Event: c.ID, How: order.ByComment}})
	return err
}
