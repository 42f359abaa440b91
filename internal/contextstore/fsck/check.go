// Package fsck checks a base directory, every file of every context and its row, mends what
// can be mended without loss, and makes the index anew. It reads each byte once and holds one
// line in memory; what a live process owns is never touched.
package fsck

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Options say what Check does besides looking.
type Options struct {
	// Repair mends what can be mended without loss.
	Repair bool
	// Rows compares the rows of the index with the directories, and finds the locks that a repair
	// which was killed left behind. It looks at nothing else: no log is read.
	Rows bool
	FS   *disk.FS         // nil for a new one
	Now  func() time.Time // nil for time.Now
	// Found hears of each finding when its context is done with; may be nil.
	Found func(Finding)
	// Progress is told after each context and each MiB read; may be nil.
	Progress func(Progress)
	// StateLockTimeout is how long to wait for another process that changes a
	// state.json; 0 means 5 s (store-v2 §5.3).
	StateLockTimeout time.Duration
	// Plans is where the histories of planning lie, if not in their contexts
	// (planning.history.directory, absolute).
	Plans string
}

// Progress is how far a check or a reindex is.
type Progress struct {
	Contexts int64
	Bytes    int64 // read of the logs
}

// Finding is one thing that is not as it should be.
type Finding struct {
	UUID   string // "" where it belongs to no context
	Path   string // of the context or file, from the base directory
	File   string // within the context, "" for the directory itself
	Line   int64  // from 1; 0 where it has no place in the file
	Byte   int64  // offset of that line
	Kind   string // a word for programs: torn, gap, half_done …
	Args   []any  // of the text
	Action string // what mends it, a word for programs; "" where nothing does without loss
	Mended bool
	Err    error // why it could not be mended
	Note   bool  // no damage, but worth knowing

	about []any    // arguments of the action's text
	lost  []string // keys that it cannot restore
	mend  func() error
}

// What says what was found.
func (f *Finding) What(l i18n.Lang) string { return l.T("check.found."+f.Kind, f.Args...) }

// Does says what mends it, "" where nothing does without loss.
func (f *Finding) Does(l i18n.Lang) string {
	if f.Action == "" {
		return ""
	}
	does := l.T("check.do."+f.Action, f.about...)
	if len(f.lost) > 0 {
		does += l.T("check.lost", strings.Join(f.lost, ", "))
	}
	return does
}

// maxKept is how many findings a report holds; all are told to Found.
const maxKept = 1000

// Report is the result of Check.
type Report struct {
	Progress
	InUse    int64 // contexts of live processes, looked at as far as nothing changes there
	NotKnown int64 // contexts of a newer format, not looked at
	Found    int64 // findings that are damage
	Mended   int64
	Left     int64 // damage that is there still
	Findings []Finding
}

// Check looks at every context below base, its files and its row, and reports
// what is not as it should be. With Repair it mends what can be mended without
// loss; the rest, and whatever a live process owns, is never touched. It reads
// each byte once and holds one line in memory. Without Repair it writes nothing
// and works on a read-only disk. Its error is that of ctx or of reading base
// itself; damage is in the report.
func Check(ctx context.Context, base string, o Options) (Report, error) {
	base, err := filepath.Abs(base)
	if err != nil {
		return Report{}, err
	}
	if _, err := os.Stat(base); err != nil {
		return Report{}, i18n.E("contextstore.no_base", base, err)
	}
	c := &checker{ctx: ctx, base: base, opt: o, fs: o.FS, now: o.Now, live: map[uint64]uuid.UUID{}, maxLine: maxCheckedLine}
	if c.fs == nil {
		c.fs = &disk.FS{}
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.opt.StateLockTimeout == 0 {
		c.opt.StateLockTimeout = contextstore.StateLockTimeout
	}
	c.edition = contextstore.EditionOf(ctx, base)
	if c.edition != 0 {
		return c.ancestor()
	}
	if !o.Rows {
		c.baseFiles() // before the index is opened, whose side files get its rights
	}
	if err := contextstore.VerifyHouseDB(ctx, base); err != nil && ctx.Err() == nil {
		c.tell(&Finding{Path: contextstore.HouseDBFile, Kind: "house_unreadable", Args: []any{err}})
	}
	if !o.Rows {
		c.searchable()
	}
	c.openRows()
	defer c.closeRows()
	if err := c.statusDirs(); err != nil {
		return c.report, err
	}
	if !o.Rows {
		if err := c.sessions(); err != nil && c.ctx.Err() == nil {
			return c.report, err
		}
	}
	err = c.strayRows()
	if err == nil {
		err = c.wholeIndex()
	}
	if err != nil && ctx.Err() == nil {
		c.tell(&Finding{Path: index.File, Kind: "rows_unreadable", Args: []any{err}})
	}
	return c.report, ctx.Err()
}

// searchable finds that search.db cannot be used. It can be deleted at any time.
func (c *checker) searchable() {
	err := search.Verify(c.ctx, c.base)
	if err == nil || c.ctx.Err() != nil {
		return
	}
	f := &Finding{Path: search.File, Kind: "search_unreadable", Args: []any{err}}
	if errors.Is(err, database.ErrLacks) || errors.Is(err, database.ErrBroken) {
		f.Action = "unsearch"
		f.mend = func() error {
			for _, end := range []string{"", "-wal", "-shm"} {
				if err := c.fs.Remove(filepath.Join(c.base, search.File+end)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	c.fix(f)
}

// Imported says what is wrong with the run that contextstore.Store.Import put together in a base
// directory of its own. Images are in no record.
func Imported(ctx context.Context, base string) error {
	r, err := Check(ctx, base, Options{})
	return cmp.Or(err, r.lacks("contextstore.import_findings"))
}

// Whole says what of a run is lost or damaged, as Imported does of its record. It writes nothing.
func Whole(ctx context.Context, base, id, plans string) error {
	base, err := filepath.Abs(base)
	if err != nil || contextstore.EditionOf(ctx, base) != 0 {
		return err // of an ancestor's tree nobody promised that it is whole
	}
	c := &checker{ctx: ctx, base: base, opt: Options{Plans: plans}, fs: &disk.FS{}, now: time.Now, uid: -1, live: map[uint64]uuid.UUID{}, maxLine: maxCheckedLine}
	for _, d := range c.places(id) {
		c.context(d, id)
	}
	return cmp.Or(ctx.Err(), c.report.lacks("contextstore.export_findings"))
}

// lacks is the first finding, in the text of key, that is about what files say: not about who may
// read them, what can be removed, or a line that was never written whole.
func (r Report) lacks(key string) error {
	for _, f := range r.Findings {
		if !f.Note && f.Kind != "image_missing" && f.Kind != "owner" && f.Kind != "torn" && f.Action != "mode" && f.Action != "remove" {
			return i18n.E(key, cmp.Or(f.File, filepath.Base(f.Path)), f.Line, i18n.E("check.found."+f.Kind, f.Args...))
		}
	}
	return nil
}

// checker is one run of Check.
type checker struct {
	ctx     context.Context //nolint:containedctx // of the one call that the checker lives for
	base    string
	opt     Options
	fs      *disk.FS
	now     func() time.Time
	uid     int // owner of the status directory at hand, and so of everything in it
	rows    *rows
	marks   []string // runs that the index could not be told of, before the check
	lacking bool     // the index knew, before the check, that it does not hold every run
	ended   int      // runs in completed/
	rowless int      // contexts that have no row, nor got one
	report  Report
	live    map[uint64]uuid.UUID // hash of a live run's key -> its uuid
	maxLine int
	told    int64 // bytes at the last word of progress

	edition int // of an ancestor's tree, else 0
	look    contextstore.Looker
	open    int64 // files in an ancestor's tree that others may use
}

// tell counts a finding and hands it on.
func (c *checker) tell(f *Finding) {
	switch {
	case f.Note:
	case f.Mended:
		c.report.Found++
		c.report.Mended++
	default:
		c.report.Found++
		c.report.Left++
	}
	if len(c.report.Findings) < maxKept {
		c.report.Findings = append(c.report.Findings, *f)
	}
	if c.opt.Found != nil {
		c.opt.Found(*f)
	}
}

// fix mends a finding that belongs to no context.
func (c *checker) fix(f *Finding) {
	if c.opt.Repair && f.mend != nil {
		f.Err = f.mend()
		f.Mended = f.Err == nil
	}
	c.tell(f)
}

// counted counts what is read of r and tells of progress.
func (c *checker) counted(r io.Reader) io.Reader { return countedReader{c, r} }

type countedReader struct {
	c *checker
	r io.Reader
}

func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.c.read(int64(n))
	return n, err
}

func (c *checker) read(bytes int64) {
	c.report.Bytes += bytes
	if c.report.Bytes-c.told >= 1<<20 {
		c.told = c.report.Bytes
		c.progress()
	}
}

func (c *checker) progress() {
	if c.opt.Progress != nil {
		c.opt.Progress(c.report.Progress)
	}
}

func (c *checker) statusDirs() error {
	for _, d := range contextstore.StatusDirs {
		if err := c.statusDir(d); err != nil {
			return err
		}
	}
	return nil
}

// statusDir checks what lies in one status directory.
func (c *checker) statusDir(d string) error {
	dir := filepath.Join(c.base, d)
	st, err := disk.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.uid = disk.OwnerOf(st)
	return disk.Entries(dir, func(e os.DirEntry) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		c.entry(d, e)
		return nil
	})
}

func (c *checker) entry(d string, e os.DirEntry) {
	rel := filepath.Join(d, e.Name())
	run := isUUID(e.Name()) && e.IsDir()
	switch {
	case !run && c.opt.Rows:
	case strings.HasPrefix(e.Name(), ".tmp-") && d == contextstore.DirQueued && e.IsDir():
		c.unfinished(rel)
	case !run:
		c.tell(&Finding{Path: rel, Kind: "foreign"})
	default:
		if d == contextstore.DirCompleted {
			c.ended++
		}
		c.context(d, e.Name())
		c.report.Contexts++
		c.progress()
	}
}

// isUUID reports whether a name is a uuid as we write it.
func isUUID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}

// places lists the status directories that a uuid lies in. One that is moved
// at this moment may seem to lie in two: what is the same twice is so.
func (c *checker) places(id string) (all []string) {
	for range looks {
		before := all
		all = nil
		for _, d := range contextstore.StatusDirs {
			if st, err := disk.Lstat(filepath.Join(c.base, d, id)); err == nil && st.IsDir() {
				all = append(all, d)
			}
		}
		if len(all) < 2 || slices.Equal(all, before) {
			break
		}
	}
	return all
}

// looks is how often a context that changes while it is looked at is looked at
// again before it is left to whoever changes it.
const looks = 3

// context checks one context and mends it if that was asked for.
func (c *checker) context(d, id string) {
	var i *inspection
	var places []string
	for n := 0; ; n++ {
		places = c.places(id)
		if !slices.Contains(places, d) {
			return // it was moved since the directory was read: it is found where it lies now, or ended
		}
		i = c.inspect(d, id, nil)
		if len(i.found) == 0 || c.ctx.Err() != nil {
			break
		}
		if !i.moved() {
			if !c.opt.Repair || !i.mendable() {
				break
			}
			if mended := c.repair(i); mended != nil {
				i = mended
				break
			}
		}
		if n == looks {
			return // whoever changes it sees to it
		}
	}
	if c.ctx.Err() != nil {
		return
	}
	if len(places) > 1 && d == places[0] {
		i.find("", spot{}, "twice", strings.Join(places, ", "))
	}
	if c.rows != nil && !i.hasRow && !i.newer && i.meta.UUID == i.uuid {
		c.rowless++
	}
	if i.held {
		c.report.InUse++
	}
	if i.newer {
		c.report.NotKnown++
	}
	for _, f := range i.found {
		c.tell(f)
	}
}

// keyHash is a short form of a task key.
func keyHash(k string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(k))
	return h.Sum64()
}
