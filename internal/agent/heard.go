package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// trust tells whose words count. It asks the forge once for each person.
type trust struct {
	host *Host
	repo forge.Repo
	seen map[int64]forge.Permission
}

func (r *run) trust() *trust {
	if r.trusted == nil {
		r.trusted = &trust{r.Host, forge.RepoOf(r.ledger.Metadata().TaskKey), map[int64]forge.Permission{}}
	}
	return r.trusted
}

// may reports whether a person may ask for work in the repository. Where the
// forge cannot be asked, the error says so and nobody may.
func (t *trust) may(ctx context.Context, p forge.Person) (bool, error) {
	if p.ID == 0 && t.host.Source() != "folder" || p.Bot {
		return false, nil
	}
	have, ok := t.seen[p.ID]
	if !ok {
		var err error
		if have, err = t.host.Permission(ctx, t.repo, p); err != nil {
			return false, err
		}
		t.seen[p.ID] = have
	}
	return have >= t.host.Least, nil
}

// hosted reads what is asked for at the forge and what was said about it, as
// the model is to see it; before is what an earlier run has heard.
func (r *run) hosted(ctx context.Context, before *heardBefore) (m matter, err error) {
	it, err := r.item(ctx)
	if err != nil {
		return m, err
	}
	ask := r.job.Ask
	key := r.ledger.Metadata().TaskKey
	m = matter{id: "#" + it.Key.ID + " of " + forge.RepoOf(key).String(), title: broker.Visible(it.Title), body: broker.Visible(it.Body), author: it.Author.Login, labels: r.foreign(it.Labels)}
	if it.Pull != nil {
		m.pull = it.Pull
	}
	if m.outsider, err = r.outsider(ctx, it.Author); err != nil {
		return m, err
	}
	if m.outsider {
		if err := r.stranger("the author of " + it.Key.ID); err != nil {
			return m, err
		}
	}
	by := it.Author.Login
	if m.changed = m.outsider && ask.Text != "" && ask.Text != TextOf(it); ask.EditedBy != "" {
		m.changed, by = true, ask.EditedBy
		if err := r.stranger("@" + by); err != nil {
			return m, err
		}
	}
	if m.changed && r.Host.Omit {
		return m, &taskError{i18n.E("agent.changed", ref(key), by)}
	}
	m.again = r.place.There && it.Pull == nil
	comments, left, err := r.Host.Comments(ctx, key)
	if err != nil {
		return m, err
	}
	m.left = left
	for _, c := range comments {
		h, err := r.heard(ctx, c)
		if err != nil {
			return m, err
		}
		if err := r.note(c); err != nil {
			return m, err
		}
		if h == nil {
			continue
		}
		if before.covers(c) {
			m.earlier++
			continue
		}
		if late := c.Created.After(ask.At) || c.Edited.After(ask.At); late && !h.untrusted {
			h.untrusted, h.why = true, "written or edited after the work was asked for"
		}
		if h.untrusted && r.Host.Omit {
			m.omitted++
			continue
		}
		m.remarks = append(m.remarks, *h)
	}
	if it.Pull != nil {
		runs, err := r.Host.CheckRuns(ctx, forge.RepoOf(key), it.Pull.Head.Commit)
		if err != nil && !forge.Is(err, forge.Forbidden) && !forge.Is(err, forge.NotFound) {
			return m, err
		}
		if m.ci = runs; forge.Is(err, forge.Forbidden) {
			m.ciUnread = true
			r.log.Warn("Not all checks of the pull request may be read: " + err.Error())
		}
		if slices.ContainsFunc(runs, func(c forge.CheckRun) bool { return c.State == forge.CheckFailed }) {
			if err := r.stranger("the failed checks of " + it.Key.ID); err != nil { // whoever wrote what they ran
				return m, err
			}
		}
	}
	return m, nil
}

// outsider reports whether a person may not ask for work in the repository.
func (r *run) outsider(ctx context.Context, p forge.Person) (bool, error) {
	may, err := r.trust().may(ctx, p)
	return !may, err
}

// stranger tells the broker that the run reads what a stranger wrote.
func (r *run) stranger(who string) error {
	return r.door.Report(broker.Fact{Leg: broker.Untrusted, What: broker.StrangerText, Detail: who})
}

// heard is a comment as the model is to see it; nil for one that says nothing to
// it: our own, those of bots, those that only give a command.
func (r *run) heard(ctx context.Context, c forge.Comment) (*remark, error) {
	if r.Host == nil || strings.HasPrefix(c.ID, localAnswer) { // whoever can write there may ask for work
		text := strings.TrimSpace(broker.Visible(c.Body))
		if text == "" {
			return nil, nil
		}
		return &remark{author: c.Author.Login, text: text}, nil
	}
	if c.Marker != "" || c.Author.Bot {
		return nil, nil
	}
	self, err := r.Host.Self(ctx)
	if err != nil {
		return nil, err
	}
	if c.Author.ID == self.ID && c.Author.ID != 0 {
		return nil, nil
	}
	text := strings.TrimSpace(broker.Visible(c.Body))
	if _, rest, is := Command(text); is {
		text = rest
	}
	if text == "" && (c.Kind != forge.Review || c.Verdict == forge.Commented) {
		return nil, nil
	}
	h := &remark{author: c.Author.Login, text: text, where: where(c)}
	if h.untrusted, err = r.outsider(ctx, c.Author); err != nil {
		return nil, err
	}
	if h.untrusted {
		h.why = "by somebody who may not ask for work here"
		if err := r.stranger("@" + c.Author.Login); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// where says what a comment is about.
func where(c forge.Comment) string {
	switch c.Kind {
	case forge.Review:
		return "review: " + strings.ReplaceAll(c.Verdict, "_", " ")
	case forge.Line:
		if c.Line > 0 {
			return fmt.Sprintf("on %s:%d", c.Path, c.Line)
		}
		return "on " + c.Path
	}
	return ""
}

// foreign are the labels that are not ours.
func (r *run) foreign(labels []string) (rest []string) {
	for _, l := range labels {
		if !r.Host.Labels.ours(l) {
			rest = append(rest, l)
		}
	}
	return rest
}

// ours reports whether a label is one of those that show how a task stands.
func (l Labels) ours(name string) bool {
	if strings.EqualFold(name, l.Trigger) {
		return true
	}
	for _, own := range l.Status {
		if strings.EqualFold(name, own) {
			return true
		}
	}
	return false
}

// The commands that comments give.
const (
	CommandStop   = "stop"
	CommandPause  = "pause"
	CommandResume = "resume"
	CommandRetry  = "retry"
)

// Command reads the command that a comment begins with, a line "/stop", "/pause",
// "/resume" or "/retry", and returns what follows that line.
func Command(body string) (command, rest string, ok bool) {
	first, rest, _ := strings.Cut(strings.TrimSpace(body), "\n")
	name, _ := strings.CutPrefix(strings.TrimSpace(first), "/")
	switch name {
	case CommandStop, CommandPause, CommandResume, CommandRetry:
		return name, strings.TrimSpace(rest), strings.HasPrefix(strings.TrimSpace(first), "/")
	}
	return "", body, false
}

// ref names a task for people: owner/repo#12.
func ref(k task.Key) string { return k.Owner + "/" + k.Repo + "#" + k.ID }

// unreachable tells that the forge cannot be asked now, and may be later.
func unreachable(err error) bool {
	var e *forge.Error
	return errors.As(err, &e) && e.Kind.Passing()
}

// later tells that what a run on a forge needs at its start cannot be had now,
// for a reason that passes or that an administrator mends.
func later(err error) bool {
	return silent(err) || barred(err) || errors.As(err, new(*owedError))
}

// silent reports that the forge answers nobody now, or refuses our login.
func silent(err error) bool {
	return unreachable(err) || forge.Is(err, forge.Unauthorized) || workspace.Unreachable(err) || workspace.Denied(err)
}

// barred reports that the forge answers, and refuses what was asked of it until
// somebody changes our permissions there.
func barred(err error) bool {
	return forge.Is(err, forge.Forbidden) || forge.Is(err, forge.NotFound) || workspace.Barred(err)
}

// heardFile holds which comments a run has heard, and in which edition.
const heardFile = "heard.jsonl"

// hears has it on record from the beginning of a run which comments it heard, also
// where these are none: its heirs know then what is news.
func (r *run) hears() error {
	f, err := r.Store.FS.OpenAppend(filepath.Join(r.ledger.Dir(), heardFile))
	if err != nil {
		return err
	}
	return f.Close()
}

// note records that a comment, as it stands, was told or need not be.
func (r *run) note(c forge.Comment) error {
	if at, ok := r.known[c.ID]; ok && at.Equal(c.Edited) {
		return nil
	}
	if r.known == nil {
		r.known = map[string]time.Time{}
	}
	r.known[c.ID] = c.Edited
	return r.appendTo(heardFile, noted{c.ID, c.Edited})
}

// appendTo appends v as a line to a file of the context that the agent keeps.
func (r *run) appendTo(name string, v any) error { return r.appendLine(name, v, false) }

// putDown is appendTo for what must survive a power cut.
func (r *run) putDown(name string, v any) error { return r.appendLine(name, v, true) }

func (r *run) appendLine(name string, v any, durable bool) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return appendLine(r.Store.FS, filepath.Join(r.ledger.Dir(), name), raw, durable)
}

// appendLine appends a line to a file. A torn line before it gets its line end first,
// so that only the torn line is lost.
func appendLine(d *disk.FS, path string, line []byte, durable bool) error {
	f, err := d.OpenAppend(path)
	if err != nil {
		return err
	}
	if torn(path, f.Size()) {
		line = append([]byte{'\n'}, line...)
	}
	if _, err = f.Append(append(line, '\n')); err == nil && durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// torn reports whether a file of so many bytes does not end in a line.
func torn(path string, size int64) bool {
	if size == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	last := make([]byte, 1)
	_, err = f.ReadAt(last, size-1)
	return err == nil && last[0] != '\n'
}

// noted is a line of heardFile.
type noted struct {
	ID     string    `json:"id"`
	Edited time.Time `json:"edited"`
}

// readHeard reads which comments earlier owners heard. A torn line is passed over:
// its comment is told again.
func (r *run) readHeard() (err error) {
	r.known, err = readNoted(r.ledger.Dir())
	return err
}

// readNoted reads the heardFile of a context; nil where there is none.
func readNoted(dir string) (map[string]time.Time, error) {
	raw, err := disk.Read(filepath.Join(dir, heardFile), disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was heard: %w", err)
	}
	known := map[string]time.Time{}
	for line := range strings.Lines(string(raw)) {
		var n noted
		if json.Unmarshal([]byte(line), &n) == nil {
			known[n.ID] = n.Edited
		}
	}
	return known, nil
}

// Heard reports whether the run of a context has heard a comment in an edition
// that is as new.
func Heard(dir, id string, edited time.Time) (bool, error) {
	known, err := readNoted(dir)
	at, ok := known[id]
	return ok && !edited.After(at), err
}

// maxStrangers is how many comments that nobody vouches for an owner tells its
// run while it works.
const maxStrangers = 50

// deafTime is how long a run goes on without asking what was said, after the
// forge did not answer.
const deafTime = time.Minute

// deaf puts off reading comments: the work needs no forge, and the comments are
// there when it answers again.
func (r *run) deaf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.log.Warn("What was said cannot be heard yet: " + err.Error())
	r.deafUntil = r.Now().Add(deafTime)
	return nil
}

// heardOf is what there is to tell the model between two turns: of the base, and
// what people have said.
func (r *run) heardOf(ctx context.Context) ([]contextstore.Message, error) {
	all, err := r.baseNews(ctx)
	if err != nil || r.Host == nil && r.Asking == nil && r.job.Issue == "" {
		return all, err
	}
	said, err := r.news(ctx)
	return append(all, said...), err
}

// news is what people have said since the run last looked, for the model.
// Comments that were handed out are noted the next time: a kill in between
// tells them twice, never not at all.
func (r *run) news(ctx context.Context) ([]contextstore.Message, error) {
	for _, c := range r.telling {
		if err := r.note(c); err != nil {
			return nil, err
		}
	}
	r.telling = nil
	key := r.ledger.Metadata().TaskKey
	if r.Signals != nil {
		r.inbox = append(r.inbox, r.Signals(key)...)
	}
	if r.Now().Before(r.deafUntil) {
		return nil, nil
	}
	if !r.caughtUp && r.Host != nil { // what was said while nobody worked on it
		missed, _, err := r.Host.Comments(ctx, key)
		if err != nil {
			return nil, r.deaf(ctx, err)
		}
		r.caughtUp = true
		r.inbox = append(r.inbox, missed...)
	}
	if r.Host == nil && r.job.Issue != "" {
		r.ear.Issue = r.job.Issue
		all, err := r.ear.Listen()
		if err != nil {
			return nil, r.deaf(ctx, err)
		}
		for _, c := range folder.People(all) {
			r.inbox = append(r.inbox, ofNote(c))
		}
	}
	r.inbox = editions(r.inbox)
	var said []remark
	var telling []forge.Comment
	for _, c := range r.inbox {
		at, before := r.known[c.ID]
		if before && !c.Edited.After(at) {
			continue
		}
		h, err := r.heard(ctx, c)
		if err != nil {
			return nil, r.deaf(ctx, err) // it stays in the inbox
		}
		telling = append(telling, c)
		if h == nil || h.untrusted && (r.Host.Omit || r.strangers >= maxStrangers) { // only a forge has strangers
			continue
		}
		if h.untrusted {
			r.strangers++
		} else {
			r.weighty = true
		}
		if before {
			h.where = strings.TrimPrefix(h.where+", edited", ", ")
		}
		said = append(said, *h)
	}
	r.inbox, r.telling, r.toldAfter = nil, telling, r.ledger.LastSeq()
	if len(said) == 0 {
		return nil, nil
	}
	r.log.Info("Heard while running", "comments", len(said))
	return newsMessages(said, r.maxText()), nil
}

// toldLast notes, at the end of an owner's work, what it told last: the next owner, or
// the next run, need not tell it again. What stands in no message yet was not told.
func (r *run) toldLast() error {
	if r.ledger.LastSeq() == r.toldAfter {
		return nil
	}
	var err error
	for _, c := range r.telling {
		err = errors.Join(err, r.note(c))
	}
	r.telling = nil
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
