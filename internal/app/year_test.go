package app

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/memory"
	"toritsugi/internal/ops"
	"toritsugi/internal/task"
)

// yearSize is how long a simulated year is, and what the settings keep for how many days.
type yearSize struct {
	nights, month      int // days of a month: figures are printed by the month
	runs               int
	backups            int // every so many nights there is one, and in each of the last as many as are kept
	gzip, slim, delete int
}

// The year of make test is two weeks of a house that forgets nine times as quickly. TORI_YEAR=50000x7
// is a whole one of so many runs, by the settings that are in force where nothing is set, in which
// every seventh night has a backup.
func sizeOfYear(t *testing.T) yearSize {
	t.Helper()
	n := os.Getenv("TORI_YEAR")
	if n == "" {
		return yearSize{nights: 14, month: 2, runs: 70, backups: 1, gzip: 1, slim: 4, delete: 10}
	}
	s := yearSize{nights: 365, month: 30, gzip: 7, slim: 30, delete: 90}
	if got, err := fmt.Sscanf(n, "%dx%d", &s.runs, &s.backups); got != 2 || err != nil || s.runs < s.nights || s.backups < 1 {
		t.Fatalf("TORI_YEAR=%q is not RUNSxNIGHTS: at least 365 runs, and a backup each so many nights", n)
	}
	return s
}

// yearClock is the time of the year. Goroutines of the store read it, too.
type yearClock struct{ ns atomic.Int64 }

func (c *yearClock) now() time.Time       { return time.Unix(0, c.ns.Load()).UTC() }
func (c *yearClock) set(t time.Time)      { c.ns.Store(t.UnixNano()) }
func (c *yearClock) pass(d time.Duration) { c.ns.Add(int64(d)) }

// year is a house to which the runs of a year come, and what is known of them.
type year struct {
	*system
	t      *testing.T
	size   yearSize
	config string
	place  string // of the backups
	clock  yearClock
	prose  *prose
	rules  string // system prompt
	search *search.DB
	house  *sql.DB // house.db, without syncs

	runs  []yearRun // that ended, in that order
	gone  int       // so many of them are too old
	live  map[string]string
	lists map[int]string // what was listed when a generation was made
	month yearMonth
}

// yearRun is a run that ended.
type yearRun struct {
	uuid, word string
	key        task.Key
	ended      time.Time
	status     task.Status
	kept       bool
}

// yearMonth are the figures of a month.
type yearMonth struct {
	nights, runs, live int
	backups            int                      // nights with one
	took               map[string]time.Duration // by step, and "runs" for their making
	disk               map[string]int64         // bytes as du counts them, at the end
	wrote              map[bool]int64           // bytes, by the backups with their tests (true), and by the other steps
	rss                int64
}

func (y *year) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

func newYear(t *testing.T, size yearSize) *year {
	t.Helper()
	dir := t.TempDir()
	y := &year{t: t, size: size, config: filepath.Join(dir, "config.yaml"), place: filepath.Join(dir, "backups"), live: map[string]string{}, lists: map[int]string{}}
	rnd := rand.New(rand.NewPCG(2026, 1))
	y.prose = newProse(rnd)
	y.rules = y.prose.output(4000)
	y.clock.set(time.Date(2027, 1, 1, 8, 0, 0, 0, time.UTC))
	y.must(os.WriteFile(y.config, fmt.Appendf(nil, "language: en\nsandbox: {mode: none}\nbackup: {dir: %s}\ncontext_inheritance: {context_expiry_days: %d}\n"+
		"context_storage: {base_dir: %s, durability: os, retention: {gzip_days: %d, slim_days: %d}}\n",
		y.place, size.delete, filepath.Join(dir, "base"), size.gzip, size.slim), 0o600))
	s, _, err := atBase(y.environment(), RunOptions{Config: y.config, Confined: true, Quiet: true})
	y.must(err)
	y.system = s
	s.fs.Flush = disktest.NoFlush
	s.fs.Trace = func(e disk.Event) { // objects of backups are as old as the clock says
		if e.Kind == disk.Renamed && strings.HasPrefix(e.To, y.place) {
			if err := os.Chtimes(e.To, y.clock.now(), y.clock.now()); err != nil {
				t.Error(err)
			}
		}
	}
	y.must(s.open(t.Context()))
	s.store.Heartbeat = days(10_000) // it goes by the real clock, and would change what nobody works on
	t.Cleanup(func() { _ = s.store.Close() })
	y.search, err = search.Open(t.Context(), s.searchOptions(s.store.BaseDir))
	y.must(err)
	t.Cleanup(func() { _ = y.search.Close() })
	y.house, err = sql.Open("sqlite", "file:"+filepath.Join(s.store.BaseDir, contextstore.HouseDBFile)+"?_pragma=busy_timeout(10000)&_pragma=synchronous(OFF)&_txlock=immediate")
	y.must(err)
	t.Cleanup(func() { _ = y.house.Close() })
	return y
}

func (y *year) environment() Env {
	return Env{Getenv: func(string) string { return "" }, Environ: []string{}, Log: io.Discard, Lang: i18n.English, Now: y.clock.now, Notice: func(string, ...any) {}}
}

// stay begins runs that do not end in the year: one that is worked on, one that waits, one that is paused.
func (y *year) stay() {
	for i, status := range []task.Status{task.Running, task.Paused, task.AwaitingApproval} {
		c, err := y.begin(y.key(-1-i), "stays")
		y.must(err)
		y.must(y.work(c, "stays", 3))
		if status != task.Running {
			y.must(c.Transition(y.t.Context(), task.Outcome{Status: status, Reason: "for somebody"}))
		} else {
			y.t.Cleanup(func() { _ = c.Close() })
		}
		y.live[c.UUID()] = ""
	}
	uuid, err := y.store.Enqueue(y.t.Context(), contextstore.Metadata{TaskKey: y.key(-9), Title: "it waits", Run: []byte("{}")})
	y.must(err)
	y.live[uuid] = ""
	for uuid := range y.live {
		y.live[uuid] = y.whole(uuid)
	}
}

// whole is what a run's directory has, but for what tells that its owner lives.
func (y *year) whole(uuid string) string {
	dir, err := contextstore.FindDir(y.store.BaseDir, uuid)
	y.must(err)
	h := sha256.New()
	y.must(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == contextstore.LockFile {
			return err
		}
		raw, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(raw), raw)
		return err
	}))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// key is that of an item: some are asked for again.
func (y *year) key(n int) task.Key {
	repo := y.prose.rnd.IntN(60)
	return task.Key{Source: "github", Owner: fmt.Sprint("owner", repo%12), Repo: fmt.Sprint("repo", repo), Type: "issue", ID: strconv.Itoa(n)}
}

// day has so many runs come, one after the other.
func (y *year) day(n int) {
	began := time.Now()
	for range n {
		word := fmt.Sprintf("case%dq", len(y.runs))
		key := y.key(len(y.runs))
		if again := len(y.runs) - 1 - y.prose.rnd.IntN(40); len(y.runs)%5 == 4 && again >= 0 {
			key = y.runs[again].key
		}
		c, err := y.begin(key, word)
		y.must(err)
		y.must(y.work(c, word, y.prose.size(14, 0.8, 2, 183)))
		y.clock.pass(time.Second)
		r := yearRun{uuid: c.UUID(), word: word, key: key, ended: y.clock.now(), kept: len(y.runs)%(y.size.runs/10) == 3}
		o := y.outcome(word)
		r.status = o.Status
		y.must(y.end(c, o))
		if r.kept {
			_, err := y.store.Keep(y.t.Context(), r.uuid, "keeper", false)
			y.must(err)
		}
		y.runs = append(y.runs, r)
	}
	y.month.runs += n
	y.month.took["runs"] += time.Since(began)
}

// night does the work of a night, as tori maintain does, and looks at what it did.
func (y *year) night(i int) {
	y.inherits()
	n := &night{system: y.system, all: true}
	steps, list := n.steps(), ""
	if i%y.size.backups == 0 || i >= y.size.nights-y.cfg.Backup.Generations {
		list = y.listed(y.store.BaseDir) // the backup comes first
	} else {
		steps = slices.DeleteFunc(steps, func(s step) bool { return s.name == "backup" })
	}
	began, wrote := time.Now(), y.fs.Counts().Bytes
	y.must(n.do(y.t.Context(), steps, true, func(s NightStep) {
		if s.Err != nil {
			y.t.Fatalf("night %d, %s: %v", i, s.Name, s.Err)
		}
		if s.Name == "backup" {
			number, ok := s.Did[1].(int)
			if !ok {
				y.t.Fatalf("night %d: %v", i, s.Did)
			}
			y.lists[number] = list
			y.month.backups++
			delete(y.lists, number-y.cfg.Backup.Generations)
		}
		y.month.took[s.Name] += time.Since(began)
		y.month.wrote[s.Name == "backup"] += y.fs.Counts().Bytes - wrote
		began, wrote = time.Now(), y.fs.Counts().Bytes
	}))
	y.month.nights++
	y.inherits()
	y.look(i)
}

// days is a number of days.
func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// inherits has the items of runs that are almost, and just, too old asked for again.
func (y *year) inherits() {
	h := &memory.InheritanceReader{Inheritance: y.inheritance(), Past: y.store, Clean: y.redact.String, Now: y.clock.now, Log: y.log}
	last := map[task.Key]int{}
	for i := y.gone; i < len(y.runs); i++ {
		if y.runs[i].status != task.Failed {
			last[y.runs[i].key] = i
		}
	}
	asked := map[bool]int{}
	for i := max(0, y.gone-20); i < len(y.runs); i++ {
		r := y.runs[i]
		age := y.clock.now().Sub(r.ended)
		if age < days(y.size.delete-1) {
			break
		}
		old := age > days(y.size.delete)
		if at, ok := last[r.key]; r.status == task.Failed || asked[old] == 3 || ok && at != i {
			continue
		}
		asked[old]++
		in, err := h.Find(y.t.Context(), r.key)
		y.must(err)
		if old != (in == nil) || in != nil && (in.UUID != r.uuid || !strings.Contains(in.Content, r.word)) {
			y.t.Errorf("of run %s, which ended %v ago, there is inherited: %v", r.uuid, age, in != nil)
		}
	}
	if len(y.runs) > y.gone && y.gone > 20 && asked[false]+asked[true] == 0 {
		y.t.Error("nothing was there to be inherited, or not")
	}
}

// look looks at each run: it has what its age says, and who has not ended is as they were.
func (y *year) look(night int) {
	now := y.clock.now()
	there := map[string]bool{}
	y.must(contextstore.Walk(y.store.BaseDir, []string{contextstore.DirCompleted}, func(dir string) error { there[filepath.Base(dir)] = true; return nil }))
	for i := max(0, y.gone-200); i < len(y.runs); i++ {
		r := y.runs[i]
		age := now.Sub(r.ended)
		want, got := "plain", y.form(r.uuid)
		switch {
		case r.kept:
		case age >= days(y.size.delete):
			want = "gone"
			y.gone = max(y.gone, i+1)
		case age >= days(y.size.slim):
			want = "slim"
		case age >= days(y.size.gzip):
			want = "gzip"
		}
		if got != want {
			y.t.Fatalf("night %d: run %s, which ended %v ago, is %s, not %s", night, r.uuid, age, got, want)
		}
		delete(there, r.uuid)
	}
	for _, r := range y.runs[:max(0, y.gone-200)] {
		if r.kept {
			if got := y.form(r.uuid); got != "plain" {
				y.t.Errorf("a kept run is %s", got)
			}
			delete(there, r.uuid)
		}
	}
	if len(there) > 0 {
		y.t.Fatalf("night %d: %d runs are there that should be gone", night, len(there))
	}
	for uuid, was := range y.live {
		if is := y.whole(uuid); is != was {
			y.t.Fatalf("night %d: run %s, which has not ended, was changed", night, uuid)
		}
	}
}

// form is what of a run is there.
func (y *year) form(uuid string) string {
	dir := filepath.Join(y.store.BaseDir, contextstore.DirCompleted, uuid)
	has := func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil }
	switch all := has(contextstore.MetadataFile) && has(contextstore.StateFile) && has(contextstore.Summaries); {
	case !has("."):
		return "gone"
	case !all:
		return "half gone"
	case contextstore.Slimmed(dir):
		for _, name := range []string{contextstore.Messages, contextstore.Tools, contextstore.Window} {
			if has(name) || has(name+".gz") {
				return "slim with " + name
			}
		}
		return "slim"
	case has(contextstore.Messages) && has(contextstore.Tools) && !has(contextstore.Messages+".gz") && !has(contextstore.Tools+".gz"):
		return "plain"
	case has(contextstore.Messages+".gz") && has(contextstore.Tools+".gz") && !has(contextstore.Messages) && !has(contextstore.Tools):
		return "gzip"
	}
	return "half compressed"
}

// listed is the listing of a base directory's ended runs, as a hash.
func (y *year) listed(base string) string {
	h := sha256.New()
	total := 0
	for _, status := range []task.Status{task.Completed, task.Stopped, task.Failed} {
		l, err := contextstore.List(y.t.Context(), base, contextstore.Viewer{Admin: true}, contextstore.Filter{Status: status, Limit: 1_000_000})
		y.must(err)
		total += l.Total
		if l.Scanned || len(l.Damaged) > 0 {
			y.t.Errorf("%s: no index, or damage %q", base, l.Damaged)
		}
		for _, v := range l.Views {
			fmt.Fprintln(h, v.Metadata.UUID, v.Metadata.TaskKey, v.Metadata.Title, v.Metadata.User, v.Status(), v.Metadata.CreatedAt, v.State.CompletedAt, v.State.TotalTokensUsed, v.State.LLMCallCount, v.State.ToolCallCount)
		}
	}
	return fmt.Sprintf("%d runs, %x", total, h.Sum(nil)[:8])
}

// restores restores each generation by tori restore: what comes back is sound, and listed as it was.
func (y *year) restores() {
	all, _, err := Backups(y.t.Context(), y.environment(), BackupOptions{Config: y.config})
	y.must(err)
	if len(all) != y.cfg.Backup.Generations {
		y.t.Errorf("%d generations", len(all))
	}
	for _, g := range all {
		began := time.Now()
		dir := filepath.Join(y.t.TempDir(), "restored")
		done, _, _, err := Restore(y.t.Context(), y.environment(), RestoreOptions{BackupOptions: BackupOptions{Config: y.config}, Generation: &g.Number, To: dir}, nil)
		y.must(err)
		r, err := fsck.Check(y.t.Context(), dir, fsck.Options{Now: y.clock.now})
		y.must(err)
		list := y.listed(dir)
		if r.Found > 0 || r.Contexts != done.Runs || list != y.lists[g.Number] || list == "" {
			y.t.Errorf("generation %d: %d runs, tori check finds %d in %d (%v), listed %s, not %s", g.Number, done.Runs, r.Found, r.Contexts, r.Findings, list, y.lists[g.Number])
		}
		y.must(os.RemoveAll(dir))
		y.t.Logf("generation %d of %s: %d runs restored, checked and listed in %v", g.Number, g.MadeAt.Format(time.DateOnly), done.Runs, time.Since(began).Round(time.Millisecond))
	}
}

// asks has the house asked as people do, and tells how long that took, the middle of nine.
func (y *year) asks() {
	y.must(y.search.CatchUp(y.t.Context(), nil))
	ctx, base, who := y.t.Context(), y.store.BaseDir, contextstore.Viewer{Admin: true}
	young, old := y.runs[len(y.runs)-1], y.runs[max(0, y.gone-1)]
	find := func(word string, in string) func() (int, error) {
		return func() (int, error) {
			return ops.Search(ctx, io.Discard, base, ops.SearchOptions{Words: strings.Fields(word), Filter: search.Filter{In: in, Limit: 20}, Lang: i18n.English, Viewer: who, Width: 120})
		}
	}
	common := y.prose.word()
	for _, q := range []struct {
		name string
		ask  func() (int, error)
		want int // found, -1 for any
	}{
		{"tori tasks", func() (int, error) {
			return 0, ops.Tasks(ctx, io.Discard, base, ops.TasksOptions{Limit: 50, Width: 120, Lang: i18n.English, Now: y.clock.now(), Viewer: who})
		}, 0},
		{"tori tasks --status failed", func() (int, error) {
			return 0, ops.Tasks(ctx, io.Discard, base, ops.TasksOptions{Status: "failed", Limit: 50, Width: 120, Lang: i18n.English, Now: y.clock.now(), Viewer: who})
		}, 0},
		{"tori stats", func() (int, error) {
			r, err := ops.ReadStats(ctx, base, ops.StatsOptions{Lang: i18n.English, Now: y.clock.now(), Viewer: who})
			return int(r.Total), err
		}, -1},
		{"tori search, a word of one run", find(young.word, ""), 1},
		{"tori search, a word of a run that is gone", find(old.word, ""), map[bool]int{true: 0, false: 1}[y.gone > 0 && !old.kept]},
		{"tori search, a frequent word", find(common, ""), 20},
		{"tori search, two words of tools", find(common+" "+y.prose.word(), "tools"), -1},
		{"tori search, Japanese", find("一覧が空", ""), 20},
	} {
		var took []time.Duration
		for range 9 {
			began := time.Now()
			n, err := q.ask()
			y.must(err)
			if q.want >= 0 && n != q.want {
				y.t.Errorf("%s: %d, not %d", q.name, n, q.want)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		y.t.Logf("%-44s %6.1f ms", q.name, float64(took[4].Microseconds())/1000)
	}
}

// du is what lies below a path, in bytes of the disk.
func du(path string) (n int64) {
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went meanwhile
		}
		if st, err := e.Info(); err == nil {
			if s, ok := st.Sys().(*syscall.Stat_t); ok {
				n += s.Blocks * 512
			}
		}
		return nil
	})
	return n
}

func newMonth() yearMonth {
	return yearMonth{took: map[string]time.Duration{}, wrote: map[bool]int64{}}
}

// closeMonth prints the figures of a month and begins the next.
func (y *year) closeMonth(number int) yearMonth {
	m := y.month
	base := y.store.BaseDir
	m.disk = map[string]int64{"base": du(base), "completed": du(filepath.Join(base, contextstore.DirCompleted)), "search.db": du(filepath.Join(base, search.File)), "tasks.db": du(filepath.Join(base, index.File)), "house.db": du(filepath.Join(base, contextstore.HouseDBFile)), "backups": du(y.place)}
	entries, err := os.ReadDir(filepath.Join(base, contextstore.DirCompleted))
	y.must(err)
	m.live, m.rss = len(entries), peakMemory()
	total, steps := time.Duration(0), ""
	for _, name := range nightSteps() {
		nights := m.nights
		if name == "backup" {
			nights = m.backups
		}
		took := m.took[name] / time.Duration(max(nights, 1))
		total += took
		steps += fmt.Sprintf(" %s %v", name, took.Round(time.Millisecond))
	}
	const mb = 1e6
	m.wrote[true] /= int64(max(m.backups, 1))
	m.wrote[false] /= int64(max(m.nights, 1))
	y.t.Logf("month %2d: %d runs (%.1f ms each), %d there; a night with a backup %v; a backup and its test write %.1f MB, the rest of a night %.1f MB; disk %.0f MB (completed %.0f, search.db %.0f, tasks.db %.0f, house.db %.0f), backups %.0f MB; peak memory %d MiB\n   %s",
		number, m.runs, float64((m.took["runs"]/time.Duration(max(m.runs, 1))).Microseconds())/1000, m.live, total.Round(time.Millisecond), float64(m.wrote[true])/mb, float64(m.wrote[false])/mb,
		float64(m.disk["base"])/mb, float64(m.disk["completed"])/mb, float64(m.disk["search.db"])/mb, float64(m.disk["tasks.db"])/mb, float64(m.disk["house.db"])/mb, float64(m.disk["backups"])/mb, m.rss>>20, steps)
	y.month = newMonth()
	return m
}

// peakMemory is the most that the process took since it was asked last, in bytes.
func peakMemory() int64 {
	raw, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	kb := int64(0)
	_, _ = fmt.Sscan(rest, &kb)
	runtime.GC()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200)
	return kb << 10
}

// A year of a house that looks after itself: every run has what the settings say of its age, what may
// be inherited is inherited to the last day, the disk and what a night writes stay as they are once the
// first runs are gone, each generation of the backups comes back whole, and nothing is left behind.
func TestYear(t *testing.T) {
	if testing.Short() {
		t.Skip("two weeks of backups take some seconds")
	}
	t.Parallel()
	size := sizeOfYear(t)
	y := newYear(t, size)
	y.month = newMonth()
	start := y.clock.now()
	y.stay()
	var steady []yearMonth // months in which as much goes as comes
	peak := int64(0)
	for i := range size.nights {
		y.clock.set(start.Add(days(i)))
		y.day(size.runs*(i+1)/size.nights - size.runs*i/size.nights)
		y.clock.set(start.Add(days(i) + 19*time.Hour))
		y.night(i)
		if (i+1)%size.month == 0 {
			m := y.closeMonth((i + 1) / size.month)
			peak = max(peak, m.disk["base"])
			if i >= size.delete+size.month {
				steady = append(steady, m)
			}
		}
	}
	y.bounds(peak, steady)
	y.asks()
	y.restores()
	y.leftBehind()
}

// bounds holds the disk against the 5 GB a month of store-v2 §12.4, and the last month against the first
// one in which as much goes as comes: nothing grows with what there was.
func (y *year) bounds(peak int64, steady []yearMonth) {
	if most := 64<<20 + int64(5e9)*int64(y.size.runs)/50_000; peak > min(most, 5e9) {
		y.t.Errorf("the base directory takes %d bytes, at most %d", peak, most)
	}
	if y.size.nights < 365 {
		return // a month of a few runs is not like another
	}
	first, last := steady[0], steady[len(steady)-1]
	// Of backups as much goes as comes once there are as many as are kept.
	full := steady[min(max(y.cfg.Backup.Generations*y.size.backups-y.size.delete, 0)/y.size.month, len(steady)-1)]
	for name, most := range map[string]float64{"base": 1.2, "completed": 1.2, "search.db": 1.5, "tasks.db": 1.5, "house.db": 1.5, "backups": 1.2} {
		then := first.disk[name]
		if name == "backups" {
			then = full.disk[name]
		}
		if now := last.disk[name]; float64(now) > float64(then)*most {
			y.t.Errorf("%s grew from %d to %d bytes", name, then, now)
		}
	}
	for backup, then := range first.wrote {
		if now := last.wrote[backup]; float64(now) > 1.3*float64(then) {
			y.t.Errorf("a night wrote %d bytes, and writes %d (the backup: %v)", then, now, backup)
		}
	}
}

// leftBehind looks for what no run and no backup needs.
func (y *year) leftBehind() {
	y.must(errors.Join(y.house.Close(), y.search.Close(), y.store.Close()))
	names, err := os.ReadDir(y.store.BaseDir)
	y.must(err)
	for _, e := range names {
		if strings.HasPrefix(e.Name(), ".") && e.IsDir() || strings.HasPrefix(e.Name(), contextstore.RemovedPrefix) {
			y.t.Errorf("%s is left", e.Name())
		}
	}
	all, _, err := VerifyBackups(context.WithoutCancel(y.t.Context()), y.environment(), BackupOptions{Config: y.config}, nil)
	y.must(err)
	for _, v := range all {
		if v.Why != nil {
			y.t.Errorf("generation %d: %v", v.Number, v.Why)
		}
	}
	r, err := fsck.Check(y.t.Context(), y.store.BaseDir, fsck.Options{Now: y.clock.now})
	y.must(err)
	for _, f := range r.Findings {
		if !f.Note {
			y.t.Errorf("%+v", f)
		}
	}
}
