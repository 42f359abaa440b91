package conversation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/disk"
	"toritsugi/internal/routing"
)

// The files of a session's directory.
const (
	messagesFile = "messages.jsonl"
	eventsFile   = "events.jsonl"
	stateFile    = "session.json"
	legsDir      = "legs"
)

// Entry is a line of a session's messages.jsonl: a message of a person, or a post.
type Entry struct {
	Seq       int64             `json:"seq"`  // from 1
	Role      string            `json:"role"` // user, assistant, withdrawn or revised
	Content   string            `json:"content"`
	Timestamp contextstore.Time `json:"timestamp"`

	// Of a message.
	ID       string            `json:"id,omitempty"`
	User     string            `json:"user,omitempty"`
	Files    []File            `json:"files,omitempty"`
	Decision *channel.Decision `json:"decision,omitempty"`
	Control  bool              `json:"control,omitempty"` // a command, or what answers one: no model sees it

	// Of a post.
	ReplyTo  string            `json:"reply_to,omitempty"`
	Key      string            `json:"key,omitempty"` // where it is not made of the number
	Kind     channel.PostKind  `json:"kind,omitempty"`
	Route    routing.Route     `json:"route,omitempty"`
	Job      string            `json:"job_id,omitempty"`
	Approval *channel.Approval `json:"approval,omitempty"`
	Question *channel.Question `json:"question,omitempty"`
	Final    bool              `json:"final,omitempty"`    // nothing more is owed to the message
	Cut      bool              `json:"cut,omitempty"`      // the turn was stopped in the middle of it
	Declared string            `json:"declared,omitempty"` // the line above Content that tells the route (spec/chat §8): no model sees it
	Failed   bool              `json:"failed,omitempty"`   // the message has no other answer, or the job that it began came to nothing
}

// File is an attachment of a message; what was in it is not kept.
type File struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
}

// said reports whether a model sees the entry as part of what was said.
func (e *Entry) said() bool {
	if strings.TrimSpace(e.text()) == "" {
		return false
	}
	return e.Kind == channel.Decided || !e.Control && e.Decision == nil && (e.Role == roleUser || e.Kind == channel.Answer)
}

// text is what a model sees of the entry: without the command that sent it to a route.
func (n *Entry) text() string {
	if n.Role == roleUser {
		if c, ok := routing.ParseCommand(n.Content).(routing.ToRoute); ok && c.Rest != "" {
			return c.Rest
		}
	}
	if n.Kind == channel.Decided { // the program's words, which no model is to take for its own
		return notice(n.Content)
	}
	if n.Role == roleAssistant {
		return unnoticed(n.Content)
	}
	return n.Content
}

const (
	roleUser      = contextstore.SessionUser
	roleAssistant = contextstore.SessionAssistant
	roleWithdrawn = contextstore.SessionWithdrawn
	roleRevised   = contextstore.SessionRevised
)

// State is a session's session.json: what holds for it beyond its messages.
type State struct {
	ID      string            `json:"session_id"`
	Channel channel.Kind      `json:"channel"`
	Created contextstore.Time `json:"created_at"`
	Title   string            `json:"title"` // the beginning of its first message
	Users   []string          `json:"users"`

	LocalOnly   bool           `json:"local_only"`
	Repository  string         `json:"repository,omitempty"`
	PrevRoute   *routing.Route `json:"prev_primary_route"` // of the last answer
	PrevTurn    string         `json:"prev_turn_id,omitempty"`
	OverlayLeft int            `json:"work_overlay_turns_left"`
	Overlay     string         `json:"work_overlay_directive,omitempty"`

	ShortMemory string `json:"short_memory"`
	MemorySeq   int64  `json:"memory_seq"` // the last message that it tells of
	CutSeq      int64  `json:"cut_seq"`    // the last message of an earlier day

	// Unsaid is what workers found that Chat could not tell, Unposted are the posts
	// that the channel has not taken.
	Unsaid    []Item  `json:"unsaid,omitempty"`
	Unposted  []int64 `json:"unposted,omitempty"`
	Withdrawn int     `json:"withdrawn,omitempty"` // messages that were taken back
}

// The most of the lists in a State.
const (
	maxUsers    = 64
	maxUnsaid   = 8
	maxUnposted = 100
	maxTitle    = 80 // characters
)

// session is a conversation on the disk.
type session struct {
	*contextstore.Session
	kind channel.Kind
}

// open is the session of an id; nothing is read.
func (e *Engine) open(id string, kind channel.Kind) session {
	return session{e.Store.Session(id, e.Strict), kind}
}

// state reads what holds for the session now.
func (x session) state() (State, error) {
	s := State{ID: x.ID, Channel: x.kind}
	_, err := contextstore.ReadSession(x.Dir, stateFile, &s)
	return s, err
}

// update changes what holds for the session: f gets it as it is now, whoever wrote it,
// and reports whether it is to be written.
func (x session) update(ctx context.Context, f func(*State) bool) error {
	return x.Write(ctx, func(w *contextstore.SessionWriter) error {
		s, err := x.state()
		if err != nil || !f(&s) {
			return err
		}
		return w.Replace(stateFile, s)
	})
}

// append writes an entry as the last of the session and returns it as it was written.
// The first one makes the session. What is said without anybody asking counts as not shown
// first: nobody would have it said again where the program ends before it is.
func (e *Engine) append(ctx context.Context, x session, n Entry) (Entry, error) {
	err := x.Write(ctx, func(w *contextstore.SessionWriter) error {
		last, err := x.last()
		if err != nil {
			return err
		}
		n.Seq, n.Timestamp = last.Seq+1, contextstore.Time{Time: e.Now()}
		if n.Role != roleAssistant {
			n.Content = routing.Keepable(n.Content)
		}
		n.Content = e.Strict(n.Content)
		if n.Role != roleAssistant {
			if err := e.know(w, x, n); err != nil {
				return err
			}
		} else if ctx.Value(byItself{}) != nil {
			s, err := x.state()
			if err != nil {
				return err
			}
			if s.unposted(n.Seq) {
				if err := w.Replace(stateFile, s); err != nil {
					return err
				}
				e.owes(ctx, x, true)
			}
		}
		return w.Append(messagesFile, n)
	})
	return n, err
}

// unposted notes that a post is not shown, and reports whether that is new.
func (s *State) unposted(seq int64) bool {
	if slices.Contains(s.Unposted, seq) || len(s.Unposted) >= maxUnposted {
		return false
	}
	s.Unposted = append(s.Unposted, seq)
	return true
}

// know notes in the session's state what an entry of a person shows of it.
func (e *Engine) know(w *contextstore.SessionWriter, x session, n Entry) error {
	s, err := x.state()
	if err != nil {
		return err
	}
	changed := s.Created.IsZero()
	if changed {
		s.Created = n.Timestamp
	}
	if s.Title == "" && n.Role == roleUser && !n.Control && n.Content != "" {
		s.Title, changed = title(n.Content), true
	}
	if n.Role == roleWithdrawn {
		s.forget(x, n.ID)
		changed = true
	}
	if n.User != "" && !slices.Contains(s.Users, n.User) && len(s.Users) < maxUsers {
		s.Users, changed = append(s.Users, n.User), true
	}
	if !changed {
		return nil
	}
	return w.Replace(stateFile, s)
}

// title is the first line of a text, shortened.
func title(text string) string {
	return contract.Headline(strings.TrimSpace(text), maxTitle)
}

// last is the latest entry, a zero one where there is none.
func (x session) last() (n Entry, err error) {
	return last(x.Dir)
}

func last(dir string) (n Entry, err error) {
	err = back(dir, func(at Entry) bool { n = at; return false })
	return n, err
}

// back calls f with the entries, latest first, until f returns false. A line that is none
// is passed over.
func (x session) back(f func(Entry) bool) error {
	return back(x.Dir, f)
}

func back(dir string, f func(Entry) bool) error {
	return contextstore.SessionBack(dir, messagesFile, func(line []byte) bool {
		var n Entry
		if json.Unmarshal(line, &n) != nil || n.Seq < 1 {
			return true
		}
		return f(n)
	})
}

// recent is back of the latest keptBack entries.
func (x session) recent(f func(Entry) bool) error {
	looked := 0
	return x.back(func(n Entry) bool {
		looked++
		return f(n) && looked < keptBack
	})
}

// denied reports whether a proposal was denied between the message before and that of a number.
func (x session) denied(seq int64) (denied bool, err error) {
	err = x.recent(func(n Entry) bool {
		if n.Seq >= seq {
			return true
		}
		denied = n.Kind == channel.Decided && n.Approval != nil && n.Approval.Status == "denied"
		return !denied && (n.Role != roleUser || n.Control)
	})
	return denied, err
}

// since returns the entries behind a number as they are now, the oldest first, at most most
// of them.
func (x session) since(seq int64, most int) (all []Entry, err error) {
	err = x.current(func(n Entry) bool {
		if n.Seq <= seq || len(all) >= most {
			return false
		}
		all = append(all, n)
		return true
	})
	slices.Reverse(all)
	return all, err
}

// How many entries are looked through: for a message that came twice, which vendors send
// again within minutes, and at each turn; and for a post that was kept already.
const (
	seenBack = 100
	keptBack = 1000
)

// known is what a session's log has of a message.
type known struct {
	message *Entry  // nil where it is new
	posts   []Entry // that answer it, the oldest first
	changed         // what became of it, which may be known before it came
}

// answered reports whether nothing more is owed to the message.
func (k known) answered() bool {
	return slices.ContainsFunc(k.posts, func(n Entry) bool { return n.Final })
}

// seen looks a message up in the log.
func (x session) seen(id string) (k known, err error) {
	if id == "" {
		return k, nil
	}
	named, err := json.Marshal(id)
	if err != nil {
		return k, err
	}
	n := 0
	err = contextstore.SessionBack(x.Dir, messagesFile, func(line []byte) bool {
		var at Entry
		if n++; bytes.Contains(line, named) && json.Unmarshal(line, &at) == nil { // few lines are worth reading
			switch {
			case at.ReplyTo == id:
				k.posts = append(k.posts, at)
			case at.ID == id && at.Role == roleUser:
				k.message = &at
			case at.ID == id && at.Role == roleWithdrawn:
				k.withdrawn = true
			case at.ID == id && at.Role == roleRevised && k.seq == 0:
				k.seq, k.text = at.Seq, at.Content
			}
		}
		return k.message == nil && n < seenBack
	})
	slices.Reverse(k.posts)
	if k.message == nil {
		k.posts = nil
	}
	return k, err
}

// day is the session's day that a time belongs to.
func (e *Engine) day(t time.Time) string {
	return t.In(e.Zone).Add(-e.Cutover).Format(time.DateOnly)
}

// turnOver ends the session's day where the latest message is of an earlier one: what was
// said is forgotten, what was set stays.
func (e *Engine) turnOver(ctx context.Context, x session) error {
	last, err := x.last()
	if err != nil || last.Seq == 0 || e.day(last.Timestamp.Time) == e.day(e.Now()) {
		return err
	}
	return x.update(ctx, func(s *State) bool {
		if s.CutSeq == last.Seq {
			return false
		}
		s.CutSeq, s.MemorySeq, s.ShortMemory, s.Unsaid = last.Seq, last.Seq, "", nil
		return true
	})
}

// Untold shows what the channel of a session did not take, and returns the jobs of which its
// log has the begin and not how they ended, the oldest first.
func (e *Engine) Untold(ctx context.Context, sessionID string) (jobs []string, err error) {
	x := e.open(sessionID, kindOf(sessionID))
	e.postAgain(ctx, x)
	over := map[string]bool{}
	err = x.recent(func(n Entry) bool {
		switch {
		case n.Job == "" || n.Role != roleAssistant:
		case n.Key == n.Job+"/over", n.Kind == channel.Decided && n.Approval != nil && n.Approval.Status == "denied":
			over[n.Job] = true
		case !over[n.Job]:
			if jobs = append(jobs, n.Job); len(jobs) > maxUntold {
				return false
			}
			over[n.Job] = true
		}
		return true
	})
	slices.Reverse(jobs)
	return jobs, err
}

// LastOf is what was said last of a job to a session, as far as its log is looked through; a
// zero Post where nothing was.
func (e *Engine) LastOf(sessionID, job string) (p channel.Post, err error) {
	err = e.open(sessionID, kindOf(sessionID)).recent(func(n Entry) bool {
		if n.Job == job && n.Role == roleAssistant {
			p = n.post(sessionID)
		}
		return p.Job == ""
	})
	return p, err
}

// maxUntold is how many jobs of a session are looked at when it is opened.
const maxUntold = 20

// History implements channel.Handler. Where the program ended in the middle of a turn, and
// nobody is in one, it says so from here on.
func (e *Engine) History(ctx context.Context, sessionID string, n int) ([]channel.Said, error) {
	x := e.open(sessionID, kindOf(sessionID))
	if last, err := x.last(); err == nil && last.Seq > 0 {
		if release, err := x.Turn(ctx, time.Millisecond); err == nil {
			e.cutShort(ctx, x)
			release()
		}
	}
	var all []channel.Said
	err := x.current(func(at Entry) bool {
		if len(all) >= n {
			return false
		}
		all = append(all, at.shown(x.ID))
		return true
	})
	slices.Reverse(all)
	if e.Opened != nil {
		e.Opened(sessionID)
	}
	return all, err
}

// shown is an entry as a channel shows it.
func (n *Entry) shown(id string) channel.Said {
	s := channel.Said{At: n.Timestamp.Time, User: n.User, Text: n.Shown()}
	if n.Role == roleAssistant {
		p := n.post(id)
		s.User, s.Post = "", &p
	}
	return s
}

// Sessions implements channel.Handler.
func (e *Engine) Sessions(_ context.Context, kind channel.Kind, user string) ([]channel.Session, error) {
	prefix := string(kind) + ":"
	if kind == channel.Terminal { // where the id names whose session it is
		prefix = user + ":"
	}
	all, err := list(e.Store.BaseDir, filepath.Base(e.Store.Session(prefix, e.Strict).Dir), func(s *State) bool {
		return s.Channel == kind && slices.Contains(s.Users, user)
	})
	out := make([]channel.Session, len(all))
	for i, s := range all {
		out[i] = channel.Session{ID: s.ID, Title: s.Title, Last: s.Last}
	}
	return out, err
}

// Known reports whether anything was said in a session.
func (e *Engine) Known(sessionID string) bool {
	known, err := contextstore.ReadSession(e.open(sessionID, kindOf(sessionID)).Dir, stateFile, &State{})
	return known && err == nil
}

// Recent lists the sessions of some channels in which something was said since a time.
func (e *Engine) Recent(since time.Time, kinds ...channel.Kind) (all []string, err error) {
	err = contextstore.EachSession(e.Store.BaseDir, func(dir string) error {
		st, err := disk.Stat(filepath.Join(dir, messagesFile))
		var s State
		if err != nil || st.ModTime().Before(since) {
			return nil //nolint:nilerr // nothing was said in it
		}
		if ok, err := contextstore.ReadSession(dir, stateFile, &s); err == nil && ok && slices.Contains(kinds, s.Channel) {
			all = append(all, s.ID)
		}
		return nil
	})
	return all, err
}

// Summary is a session as it is listed.
type Summary struct {
	State
	Dir      string    `json:"-"`
	Last     time.Time `json:"last"` // when something was said last
	Messages int       `json:"messages"`
}

// List returns the sessions below a base directory that want takes, the latest first. A
// session that cannot be read is left out.
func List(base string, want func(*State) bool) ([]Summary, error) { return list(base, "", want) }

// list is List of the sessions whose directories' names begin with prefix.
func list(base, prefix string, want func(*State) bool) ([]Summary, error) {
	var all []Summary
	err := contextstore.EachSession(base, func(dir string) error {
		s := Summary{Dir: dir}
		if !strings.HasPrefix(filepath.Base(dir), prefix) {
			return nil
		}
		if ok, err := contextstore.ReadSession(dir, stateFile, &s.State); err != nil || !ok || !want(&s.State) {
			return nil //nolint:nilerr // the others are listed
		}
		if last, err := last(dir); err == nil {
			s.Last, s.Messages = last.Timestamp.Time, int(last.Seq)
		}
		all = append(all, s)
		return nil
	})
	slices.SortFunc(all, func(a, b Summary) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.ID, b.ID)) })
	return all, err
}

// Shown is the entry as people read it: below the line that declares its route.
func (n *Entry) Shown() string {
	if n.Declared == "" {
		return n.Content
	}
	return n.Declared + "\n" + n.Content
}

// Lines calls f with the entries of a session's directory, oldest first.
func Lines(dir string, f func(Entry) bool) error {
	return contextstore.SessionLines(dir, messagesFile, func(line []byte) bool {
		var n Entry
		if json.Unmarshal(line, &n) != nil || n.Seq < 1 {
			return true
		}
		return f(n)
	})
}

// kindOf is the channel that a session id names.
func kindOf(id string) channel.Kind {
	kind, _, _ := strings.Cut(id, ":")
	return channel.Kind(kind)
}

// Clean removes the sessions in which nothing was said for as long as they are kept, and
// what ANALYZE kept for as long. A session that somebody speaks in is left alone.
func (e *Engine) Clean(ctx context.Context) (removed int, err error) {
	if e.Retention <= 0 {
		return 0, nil
	}
	before := e.Now().Add(-e.Retention)
	err = contextstore.EachSession(e.Store.BaseDir, func(dir string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var s State
		if ok, err := contextstore.ReadSession(dir, stateFile, &s); err != nil || !ok {
			return nil //nolint:nilerr // what cannot be read is no business of this one
		}
		if last, err := last(dir); err != nil || !last.Timestamp.Before(before) {
			return nil //nolint:nilerr // likewise
		}
		x := e.open(s.ID, s.Channel)
		if x.Dir != filepath.Clean(dir) {
			return nil
		}
		release, err := x.Turn(ctx, time.Millisecond)
		if err != nil {
			return nil //nolint:nilerr // it is in use
		}
		defer release()
		if err := x.Write(ctx, func(w *contextstore.SessionWriter) error {
			e.owes(ctx, x, false)
			return w.Remove()
		}); err != nil {
			return err
		}
		removed++
		return nil
	})
	if err != nil {
		return removed, err
	}
	return removed, e.analyses.Forget(ctx, before)
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
