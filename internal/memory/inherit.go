package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Inheritance are the settings of context_inheritance (inherit §5).
type Inheritance struct {
	Enabled     bool
	Expiry      time.Duration // since the end of the run that is inherited from
	MaxTokens   int           // of what is inherited; 0 is no limit
	FollowLinks bool          // from the run on an issue to that on its pull request
	// History is where the planning history of a run lies, absolute or relative
	// to the run's directory; nil for planning/{uuid}.jsonl there.
	History func(uuid string) string
}

// HistoryOf is where the planning history of a run lies; see History.
func (i Inheritance) HistoryOf(uuid string) string {
	if i.History == nil {
		return filepath.Join("planning", uuid+".jsonl")
	}
	return i.History(uuid)
}

// Past knows the runs that ended. A *contextstore.Store is one.
type Past interface {
	LastEnded(ctx context.Context, k task.Key, since time.Time) (contextstore.View, bool, error)
	// Ended returns those that LastEnded would return one after the other.
	Ended(ctx context.Context, k task.Key, since time.Time, most int) ([]contextstore.View, error)
}

// Ancestor is a run that may be inherited from.
type Ancestor struct {
	contextstore.View
	Words func(string) string // takes secrets and the names of people out of its texts
}

// MaxAncestors is how many runs of a task are looked at.
const MaxAncestors = 20

// InheritanceReader looks for what a run takes over from an earlier one of the same task. Past,
// Clean, Now and Log must be set.
type InheritanceReader struct {
	Inheritance
	Past  Past
	Clean func(string) string // masks secrets, and data of people
	Now   func() time.Time
	Log   *slog.Logger
	Lang  i18n.Lang // of what is said of it where it is of another task, see Of
	// Told gives what a run left as it is told in place of its final summary, "" for that;
	// nil tells that of each run.
	Told func(contextstore.View) string
	// Plans gives what planning mode adds to the final summary (inherit §10.8), out
	// of at most MaxAncestors runs of one task, the one whose summary is taken over
	// first, then the others, the latest first; used says which of them it took
	// anything from. nil carries the summary alone.
	Plans func(ctx context.Context, runs []Ancestor) (s Sections, used []Ancestor)
	// Of reports whether a run is of the task of a key; nil where it must have that key.
	Of func(v contextstore.View, k task.Key) bool
	// Linked reports whether the run found for a further key is the one that the
	// link means; nil for every one.
	Linked func(contextstore.View) bool
	// Wait passes the time before the database is asked again; nil waits for real.
	Wait func(ctx context.Context, d time.Duration) error
}

// Inherited is what a run takes over: data with its provenance, and no authority.
// Approvals, grants and secrets of the earlier run are not among it.
type Inherited struct {
	UUID        string            `json:"uuid"`
	Key         task.Key          `json:"task_key"`
	Status      task.Status       `json:"status"` // completed or stopped
	CompletedAt contextstore.Time `json:"completed_at"`
	Tokens      int               `json:"tokens"`             // of Content
	Session     bool              `json:"session,omitempty"`  // it is another task of the same conversation
	LeftOut     []string          `json:"left_out,omitempty"` // what there was no room for
	Plans       []string          `json:"plans,omitempty"`    // the runs whose planning is taken over

	lang i18n.Lang

	// Other says that it is no past of the run: one that is like it.
	Other bool `json:"-"`
	// Content is the assistant message that goes before the request.
	Content string `json:"-"`
	// Facts are what the earlier run had come into touch with: whoever reads
	// what it left is in touch with it, too.
	Facts []Fact            `json:"-"`
	View  contextstore.View `json:"-"`
}

// Fact is something that a run had come into touch with, in the words of
// effects.jsonl.
type Fact struct{ Leg, What, Detail string }

// databaseTries is how often the database is asked where it cannot be reached
// (inherit §7.3), databasePause the time in between.
const (
	databaseTries = 3
	databasePause = 200 * time.Millisecond
)

// Find returns what a run of the first key inherits, or nil. Where runs of
// several keys ended, the latest counts (further keys are those of a link that is
// followed); only that one is looked at. Whatever is wrong with it is logged, and
// the run is one without a past (inherit §7); the error is ctx's alone.
func (h *InheritanceReader) Find(ctx context.Context, keys ...task.Key) (*Inherited, error) {
	if !h.Enabled || len(keys) == 0 {
		return nil, nil
	}
	since := h.Now().Add(-h.Expiry)
	var last contextstore.View
	found := false
	for i, k := range keys {
		v, ok, err := h.ask(ctx, k, since)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			h.unusable(v, err)
			return nil, nil
		}
		h.Log.Debug("Looked for an earlier run", "task", k.String(), "since", contextstore.Time{Time: since}.String(), "found", ok)
		if ok && i > 0 && h.Linked != nil && !h.Linked(v) {
			h.filtered(v, "nothing links it to this task")
			continue
		}
		if ok && !h.own(v, k, since) {
			return nil, nil
		}
		if ok && (!found || v.State.CompletedAt.After(last.State.CompletedAt.Time)) {
			last, found = v, true
		}
	}
	if !found {
		return nil, nil
	}
	var runs []Ancestor
	if h.Plans != nil {
		runs = h.ancestors(ctx, last, since, last.Metadata.TaskKey != keys[0])
	}
	in := h.from(ctx, last, runs)
	return in, ctx.Err()
}

// ancestors are the runs of the task that a run is of, it first.
func (h *InheritanceReader) ancestors(ctx context.Context, last contextstore.View, since time.Time, linked bool) (runs []Ancestor) {
	add := func(v contextstore.View) { runs = append(runs, Ancestor{v, h.words(v.Metadata)}) }
	add(last)
	k := last.Metadata.TaskKey
	all, err := h.Past.Ended(ctx, k, since, MaxAncestors)
	if err != nil {
		h.Log.Warn("Of the earlier runs the last one alone is known", "error", err)
	}
	for _, v := range all {
		if v.Metadata.UUID == last.Metadata.UUID || linked && h.Linked != nil && !h.Linked(v) || !h.own(v, k, since) {
			continue
		}
		add(v)
	}
	return runs
}

// ask queries the database, again where it cannot be reached.
func (h *InheritanceReader) ask(ctx context.Context, k task.Key, since time.Time) (v contextstore.View, ok bool, err error) {
	for n := 1; ; n++ {
		v, ok, err = h.Past.LastEnded(ctx, k, since)
		if !errors.Is(err, contextstore.ErrUnreachable) || n == databaseTries {
			return v, ok, err
		}
		h.Log.Warn("The database cannot be reached; it is asked again", "error", err, "attempt", n)
		if err := h.wait(ctx); err != nil {
			return v, false, err
		}
	}
}

func (h *InheritanceReader) wait(ctx context.Context) error {
	if h.Wait != nil {
		return h.Wait(ctx, databasePause)
	}
	t := time.NewTimer(databasePause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// unusable logs why there is no past (inherit §9.1).
func (h *InheritanceReader) unusable(v contextstore.View, err error) {
	var path *os.PathError
	switch {
	case errors.Is(err, contextstore.ErrUnreachable):
		h.Log.Error("The database cannot be reached: the run begins without what earlier ones left", "error", err)
	case errors.Is(err, contextstore.ErrNotFound), errors.As(err, &path), errors.Is(err, contextstore.ErrDamaged), v.Dir != "":
		h.Log.Warn("An earlier run cannot be read and is passed over: the run begins without it", "earlier", v.Metadata.UUID, "error", err)
	default:
		h.Log.Error("Earlier runs cannot be looked for: the run begins without them", "error", err)
	}
}

// own reports whether the files of a run say that it may be inherited from by
// runs of a key: what names it may be behind, or wrong.
func (h *InheritanceReader) own(v contextstore.View, k task.Key, since time.Time) bool {
	st, at := v.Status(), v.State.CompletedAt
	var why string
	switch {
	case h.Of != nil && !h.Of(v, k), h.Of == nil && v.Metadata.TaskKey != k:
		why = "it is of another task, " + v.Metadata.TaskKey.String()
	case st != task.Completed && st != task.Stopped:
		why = "it is " + string(st)
	case at.IsZero():
		why = "nothing says when it ended"
	case at.Before(since):
		why = "it has expired"
	}
	h.filtered(v, why)
	if why != "" {
		h.Log.Warn("An earlier run is passed over: "+why, "earlier", v.Metadata.UUID)
	}
	return why == ""
}

// filtered logs what the filter made of an earlier run; why is "" where it is
// taken (inherit §9.1).
func (h *InheritanceReader) filtered(v contextstore.View, why string) {
	h.Log.Debug("Filtered the earlier runs", "earlier", v.Metadata.UUID, "status", string(v.Status()), "completed_at", v.State.CompletedAt.String(), "taken", why == "", "why_not", why)
}

// from reads what a run left, and what runs did of their planning.
func (h *InheritanceReader) from(ctx context.Context, v contextstore.View, runs []Ancestor) *Inherited {
	s, err := v.LastFinal()
	if err != nil {
		h.unusable(v, err)
		return nil
	}
	in := &Inherited{UUID: v.Metadata.UUID, Key: v.Metadata.TaskKey, Status: v.Status(), CompletedAt: v.State.CompletedAt, Session: h.Of != nil, lang: h.Lang, View: v}
	parts := Parts{}
	if s != nil {
		told := s.Summary
		if h.Told != nil {
			told = cmp.Or(h.Told(v), told)
		}
		parts.Final = h.words(v.Metadata)(told)
	}
	if parts.Final == "" {
		h.Log.Warn("An earlier run left no final summary: the run begins without it", "earlier", in.UUID)
		return nil
	}
	in.Facts = facts(v)
	if len(runs) > 0 {
		var used []Ancestor
		parts.Sections, used = h.Plans(ctx, runs)
		for _, a := range used {
			in.Plans = append(in.Plans, a.Metadata.UUID)
			if a.Metadata.UUID != v.Metadata.UUID {
				in.add(facts(a.View))
			}
		}
	}
	if !in.write(parts, h.MaxTokens) {
		h.Log.Warn("What an earlier run left does not fit into context_inheritance.max_inherited_tokens", "earlier", in.UUID, "limit", h.MaxTokens)
		return nil
	}
	h.Log.Info("What an earlier run left is taken over", "earlier", in.UUID, "ended", in.CompletedAt.String(), "tokens", in.Tokens, "left_out", in.LeftOut)
	return in
}

// Tainted reports whether text that nobody vouches for went into the earlier run.
func (in *Inherited) Tainted() bool {
	return slices.ContainsFunc(in.Facts, func(f Fact) bool { return f.Leg == untrusted })
}

const untrusted = "untrusted"

// add takes over what another run had come into touch with.
func (in *Inherited) add(all []Fact) {
	for _, f := range all {
		if !slices.Contains(in.Facts, f) && (len(in.Facts) < maxFacts || f.Leg == untrusted && !in.Tainted()) {
			in.Facts = append(in.Facts, f)
		}
	}
}

// facts are what a run had come into touch with that its summary may carry: text
// of strangers, and what strangers must not get. Where that cannot be told any
// more, or not all of it, the worst is assumed.
func facts(v contextstore.View) (all []Fact) {
	lines, seen := 0, map[Fact]bool{}
	err := v.Effects(func(r contextstore.EffectRecord) bool {
		f := Fact{r.Leg, r.Fact, r.Detail}
		if lines++; r.Type == contextstore.EffectFact && f.Leg != "outward" && !seen[f] && len(all) < maxFacts {
			seen[f] = true
			all = append(all, f)
		}
		return true
	})
	if err == nil && lines == 0 { // it touched nothing, unless its logs were dropped since
		_, err = disk.Stat(filepath.Join(v.Dir, contextstore.Messages))
	}
	if err != nil {
		all = append(all, Fact{untrusted, "stranger_text", "what it read is not on record any more"})
	}
	return all
}

// maxFacts is how many facts of an earlier run are carried over; those beyond
// say nothing new.
const maxFacts = 32

// people are those whose names metadata.json holds.
func people(m contextstore.Metadata) []string {
	var run struct {
		Ask struct {
			By struct {
				Login string `json:"login"`
			} `json:"by"`
		} `json:"ask"`
	}
	_ = json.Unmarshal(m.Run, &run) // one that cannot be read names nobody
	return []string{m.User, run.Ask.By.Login}
}
