package contextstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/contextstore/jsonl"
)

// View is a context seen from outside: read-only, without lock or index, also
// on a read-only disk.
type View struct {
	Dir      string
	Metadata Metadata
	State    State
	Owner    Owner
	Held     bool // a live process owns it now
	Edition  int  // StoreV2 or StoreV3 of what an ancestor wrote, else 0
}

// Status is the task's status; a missing or damaged state.json is answered by
// where the directory lies and, of a run that is over, by its final summary.
func (v View) Status() task.Status {
	if v.State.TaskStatus.Valid() {
		return v.State.TaskStatus
	}
	switch v.State.Status { // a tree of store-v2 has no more than this
	case "completed":
		return task.Completed
	case "failed", Timeout:
		return task.Failed
	case Completing:
		if filepath.Base(filepath.Dir(v.Dir)) == DirCompleted { // that word alone was left to write (store-v2 §4.4)
			return task.Completed
		}
	}
	switch filepath.Base(filepath.Dir(v.Dir)) {
	case DirQueued:
		return task.Queued
	case DirPaused:
		return task.Paused
	case DirCompleted:
		return endOf(v.Dir)
	}
	return task.Running
}

// outcome is how a final summary says what became of the run.
var outcome = lazyregexp.New(`(?m)^Outcome: ([a-z]+)\.`)

// endOf is how a run in completed/ ended, as its final summary tells it: that
// was written before the transition. Where it tells nothing, failed.
func endOf(dir string) task.Status {
	if f, err := lastSummary(dir, func(s Summary) bool { return s.Final }); err == nil && f != nil {
		switch {
		case f.Outcome == Unverified:
			return task.Completed
		case task.Status(f.Outcome).Final():
			return task.Status(f.Outcome)
		}
		if m := outcome().FindStringSubmatch(f.Summary); m != nil && task.Status(m[1]).Final() {
			return task.Status(m[1])
		}
	}
	return task.Failed
}

// Interrupted reports that the run is marked running but nobody runs it. Of an ancestor's nobody
// can tell.
func (v View) Interrupted() bool { return v.Status() == task.Running && !v.Held && v.Edition == 0 }

// Stale reports that a process owns the context and has not shown itself for
// longer than after, and for how long: an alert, not a reason to take the
// context away. An after of 0 is never.
func (v View) Stale(now time.Time, after time.Duration) (age time.Duration, stale bool) {
	if !v.Held || after <= 0 {
		return 0, false
	}
	age = v.Owner.Silent(now)
	return age, age > after
}

// ReadView reads one context directory. A damaged state.json is not an error.
func ReadView(dir string) (View, error) {
	var l Looker
	v, err := l.View(dir)
	return v, errors.Join(err, l.Close())
}

// Find opens the view of the context whose uuid begins with prefix. Not found,
// or more than one: an error that says so and lists the candidates. A context
// that the viewer may not see is not found.
func Find(base, prefix string, who Viewer) (View, error) {
	prefix, err := Beginning(prefix)
	if err != nil {
		return View{}, err
	}
	var found []string
	err = walk(base, func(dir string) error {
		if strings.HasPrefix(filepath.Base(dir), prefix) && who.maySeeDir(dir) {
			found = append(found, dir)
		}
		if len(found) > 5 {
			return io.EOF
		}
		return nil
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return View{}, err
	}
	switch len(found) {
	case 0:
		return View{}, i18n.E("contextstore.not_found", prefix, base).Of(ErrNotFound)
	case 1:
		return ReadView(found[0])
	}
	names := make([]string, len(found))
	for i, d := range found {
		names[i] = filepath.Base(d)
	}
	return View{}, i18n.E("contextstore.ambiguous", prefix, strings.Join(names, ", "))
}

// Beginning is the beginning of a uuid as people give it.
func Beginning(given string) (string, error) {
	prefix := strings.ToLower(strings.TrimSpace(given))
	if prefix == "" || strings.ContainsAny(prefix, `/\.`) {
		return "", i18n.E("contextstore.bad_uuid", prefix)
	}
	return prefix, nil
}

// walk calls f for each context directory, reading directories piece by piece.
func walk(base string, f func(dir string) error) error { return Walk(base, StatusDirs, f) }

// Walk calls f for each context in some of the status directories of a base directory,
// with its directory, until f returns an error.
func Walk(base string, dirs []string, f func(dir string) error) error {
	if _, err := os.Stat(base); err != nil {
		return i18n.E("contextstore.no_base", base, err)
	}
	for _, d := range dirs {
		if err := eachDir(filepath.Join(base, d), f); err != nil {
			return err
		}
	}
	return nil
}

// eachDir calls f with each directory in dir but hidden ones, until f returns an error. A
// missing dir has none.
func eachDir(dir string, f func(dir string) error) error {
	_, err := disk.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return disk.Entries(dir, func(e os.DirEntry) error {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			return nil
		}
		return f(filepath.Join(dir, e.Name()))
	})
}

// Listing is the newest contexts that match, newest first, and how many matched.
type Listing struct {
	Views   []View
	Total   int      // of all, where no more than status and user is asked for
	Damaged []string // directories whose metadata cannot be read, at most a few
	Scanned bool     // the directories were read for it, not the index
}

// List returns the newest contexts that the filter takes, of those that the
// viewer may see. It asks tasks.db where that holds every context; what has not
// ended is read from its directory nonetheless. Else it reads all directories:
// slower, and the same. Memory is bounded by the limit, not by how many there are.
func List(ctx context.Context, base string, who Viewer, f Filter) (Listing, error) {
	if f.Limit == 0 {
		f.Limit = index.DefaultLimit
	}
	if who.Admin { // names are compared by case there
		if l, err := listRows(ctx, base, f); err == nil {
			return l, nil
		}
	}
	return scan(base, f.Limit, who, func(v View) bool { return takes(f, v) })
}

// takes reports whether the filter takes a context, as the index would.
func takes(f Filter, v View) bool {
	k, same := v.Metadata.TaskKey, func(want, have string) bool { return want == "" || want == have }
	return same(string(f.Status), string(v.Status())) && same(f.User, v.Metadata.User) && same(f.Source, k.Source) && same(f.Owner, k.Owner) &&
		same(f.Repo, k.Repo) && same(f.Type, k.Type) && same(f.ID, k.ID) &&
		(f.Since.IsZero() || !v.Metadata.CreatedAt.Before(f.Since))
}

// scanBatch is how many more contexts than it returns scan holds at once.
const scanBatch = 256

// scan returns the newest limit contexts for which keep is true.
func scan(base string, limit int, who Viewer, keep func(View) bool) (Listing, error) {
	out := Listing{Scanned: true, Views: []View{}}
	newest := func() {
		slices.SortFunc(out.Views, func(a, b View) int { return b.Metadata.CreatedAt.Compare(a.Metadata.CreatedAt.Time) })
		out.Views = out.Views[:min(len(out.Views), max(limit, 0))]
	}
	var l Looker
	err := walk(base, func(dir string) error {
		v, err := l.View(dir)
		if err != nil {
			if who.Admin && len(out.Damaged) < 10 { // whose it is nobody can tell
				out.Damaged = append(out.Damaged, fmt.Sprintf("%s: %v", dir, err))
			}
			return nil
		}
		if !who.MaySee(v.Metadata) || !keep(v) {
			return nil
		}
		out.Total++
		if out.Views = append(out.Views, v); len(out.Views)-limit >= scanBatch {
			newest()
		}
		return nil
	})
	newest()
	return out, errors.Join(err, l.Close())
}

// Tail calls f with the last n whole lines of a log, oldest of them first. A
// missing log reads as empty (store-v3 §11.2). It reads back from the end only
// as far as it must and holds n lines in memory; n < 0 streams the whole log. A
// compressed one is read from its beginning.
func (v View) Tail(log string, n int, f func(line []byte) error) error {
	h, err := disk.OpenPlain(filepath.Join(v.Dir, log))
	if errors.Is(err, os.ErrNotExist) {
		return v.tailGz(log, n, f)
	}
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	var ferr error
	if n < 0 {
		err = jsonl.Each(h, func(_ int64, b []byte) bool { ferr = f(b); return ferr == nil })
		return errors.Join(err, ferr)
	}
	st, err := h.Stat()
	if err != nil || n == 0 {
		return err
	}
	start, left := st.Size(), n
	// Find where the last n lines begin, then stream them forward.
	err = jsonl.Back(h, st.Size(), func(at int64, _ []byte) bool {
		start = at
		left--
		return left > 0
	})
	if err != nil {
		return err
	}
	err = jsonl.Each(io.NewSectionReader(h, start, st.Size()-start), func(_ int64, b []byte) bool { ferr = f(b); return ferr == nil })
	return errors.Join(err, ferr)
}

// tailGz is Tail of a log that retention compressed (store-v2 §7.2).
func (v View) tailGz(log string, n int, f func(line []byte) error) error {
	r, _, err := OpenLog(v.Dir, log)
	if r == nil || err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	var last [][]byte
	var ferr error
	err = jsonl.Each(r, func(_ int64, b []byte) bool {
		switch {
		case n < 0:
			ferr = f(b)
		case n > 0:
			if len(last) == n {
				last = last[1:]
			}
			last = append(last, bytes.Clone(b))
		}
		return ferr == nil
	})
	for _, b := range last {
		if ferr == nil {
			ferr = f(b)
		}
	}
	return errors.Join(err, ferr)
}

// Last returns the sequence number of the last line of a log, 0 for none.
func (v View) Last(log string, seq func(line []byte) int64) (n int64, err error) {
	err = v.Tail(log, 1, func(b []byte) error { n = seq(b); return nil })
	return n, err
}

// OpenLog opens a log of a context, or its compressed form, for reading.
// A missing one, and one that is no plain file, is nil.
func OpenLog(dir, name string) (r io.ReadCloser, gz bool, err error) {
	for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, name+".gz")} { // the first may go meanwhile
		gz = path != filepath.Join(dir, name)
		st, err := disk.Lstat(path)
		if err == nil && !st.Mode().IsRegular() {
			return nil, false, nil
		}
		var f disk.Plain
		if err == nil {
			f, err = disk.OpenPlain(path)
		}
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil || !gz:
			return f, false, err
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, true, errors.Join(err, f.Close())
		}
		return struct {
			io.Reader
			io.Closer
		}{z, f}, true, nil
	}
	return nil, false, nil
}
