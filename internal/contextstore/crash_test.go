package contextstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
)

var errStopped = disktest.ErrStopped

// bounds say what a crash may leave: what was promised last, at most what
// the step under way would have promised, and in both only what a life without
// a crash wrote.
type bounds struct {
	floor, ceil promise
	ref         map[string][]byte // the logs of the uninterrupted life; nil does not compare
	powerCut    bool
	brief       bool // go on for one message only, not to the end
}

// TestCrashMatrix leads a context through a life and ends that life at each
// call, fails each call, and cuts the power at each moment (PROTOCOL "One
// seam"). Whatever is left must be mended by the next owner without a loss.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	t.Run("stops", func(t *testing.T) { t.Parallel(); m.stops(t) })
	t.Run("failures", func(t *testing.T) { t.Parallel(); m.failures(t) })
	t.Run("power cuts", func(t *testing.T) { t.Parallel(); m.powerCuts(t) })
	t.Run("stops, then power cuts", func(t *testing.T) { t.Parallel(); m.cutsAfterRepair(t) })
}

// matrix is an uninterrupted life to compare the others with.
type matrix struct {
	steps    []step
	promises []promise // of each step
	rec      *disktest.Recorder
	calls    int
	ref      map[string][]byte
	empty    map[string][]byte // databases without rows, by name
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{steps: wholeLife()}
	var err error
	if m.empty, err = emptyDatabases(t); err != nil {
		t.Fatal(err)
	}
	base := scratch(t)
	if m.rec, err = disktest.NewRecorder(base); err != nil {
		t.Fatal(err)
	}
	count := &disktest.Stopper{}
	l := newLife(base, m.rec.Watch(&disk.FS{Before: count.Before}))
	l.ack = func(p promise) {
		m.promises = append(m.promises, p)
		m.rec.Ack(p.step, p)
	}
	if _, err := l.run(t.Context(), m.steps, 0); err != nil {
		t.Fatal(err)
	}
	l.die()
	m.calls = count.Calls()
	m.ref = logsOf(t, base, l.uuid)
	if len(m.ref[Messages]) == 0 || len(m.ref[Summaries]) == 0 || m.calls < 100 {
		t.Fatalf("the life is too quiet: %d calls", m.calls)
	}
	t.Logf("%d steps, %d calls found by instrumentation, %d entries of trace", len(m.steps), m.calls, m.rec.Len())
	return m
}

// around is the bounds of a crash in the step of that number.
func (m *matrix) around(step int) bounds {
	b := bounds{ref: m.ref, ceil: m.promises[min(step, len(m.promises)-1)]}
	if step > 0 {
		b.floor = m.promises[step-1]
	}
	return b
}

// stops ends the program at each of its calls, and in the middle of those that
// write. Half of the times the next one finds the index as it was left.
func (m *matrix) stops(t *testing.T) {
	var runs, broken atomic.Int64
	each(2*m.calls, func(i int) {
		s := &disktest.Stopper{At: 1 + i/2, Torn: i%2 == 1}
		base := scratch(t)
		l := newLife(base, &disk.FS{Before: s.Before, Flush: disktest.NoFlush})
		failed, err := l.run(t.Context(), m.steps, 0)
		l.die()
		if s.Torn && s.Hit().Bytes < 2 {
			return
		}
		runs.Add(1)
		if !errors.Is(err, errStopped) {
			broken.Add(1)
			t.Errorf("stop at call %d (%v): the program went on: %v", s.At, s.Hit(), err)
			return
		}
		if s.At%2 == 0 {
			dropIndex(base)
		}
		if err := verify(t.Context(), base, m.around(failed)); err != nil {
			broken.Add(1)
			t.Errorf("stop at call %d (%v, torn %v) in %q: %v", s.At, s.Hit(), s.Torn, m.steps[failed].name, err)
		}
	})
	t.Logf("%d stops, %d losses", runs.Load(), broken.Load())
}

// failures makes each call fail once. The program takes the step again, as it
// would after a passing fault; where that fails too it dies, or closes the
// context in good order.
func (m *matrix) failures(t *testing.T) {
	for name, f := range map[string]struct {
		err    error
		short  bool
		gently []bool
	}{
		"EIO":          {err: syscall.EIO, gently: []bool{true, false}},
		"ENOSPC":       {err: syscall.ENOSPC, gently: []bool{false}},
		"ENOSPC short": {err: syscall.ENOSPC, short: true, gently: []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs, survived, broken atomic.Int64
			each(m.calls, func(i int) {
				for _, gently := range f.gently {
					fail := &disktest.Failer{At: i + 1, Err: f.err, Short: f.short}
					whole, err := m.failure(t, fail, gently)
					if whole {
						survived.Add(1)
					}
					if runs.Add(1); err != nil {
						broken.Add(1)
						t.Errorf("call %d (%v) fails, closed gently: %v: %v", i+1, fail.Hit(), gently, err)
					}
				}
			})
			t.Logf("%d failures, of which the program overcame %d, %d losses", runs.Load(), survived.Load(), broken.Load())
		})
	}
}

func (m *matrix) failure(t *testing.T, f *disktest.Failer, gently bool) (whole bool, err error) {
	base := scratch(t)
	m.seed(t, base, f.At)
	l := newLife(base, &disk.FS{Before: f.Before, Flush: disktest.NoFlush})
	defer l.die()
	var last promise
	l.ack = func(p promise) { last = p }
	at, err := l.run(t.Context(), m.steps, 0)
	if err == nil {
		at = len(m.steps)
	} else if !gently {
		at, err = l.run(t.Context(), m.steps, at)
	}
	switch {
	case f.Hit().Kind == "":
		return false, errors.New("the call was not made")
	case err == nil:
		if err := alike(m.ref, logsOf(t, base, l.uuid)); err != nil {
			return true, err
		}
		l.die()
		return true, verify(t.Context(), base, bounds{floor: last, ceil: last})
	}
	if gently && l.ctx != nil {
		_ = l.ctx.Close() // which may fail as well: then it was as if it had died
	}
	l.die()
	b := m.around(at)
	b.floor = last
	if !gently {
		b.ref = nil // the second attempt is at another time
	}
	if verr := verify(t.Context(), base, b); verr != nil {
		return false, fmt.Errorf("%w, then: %w", err, verr)
	}
	return false, nil
}

// powerCuts cuts the power at each moment of the life.
func (m *matrix) powerCuts(t *testing.T) {
	var states []disktest.State
	n, err := m.rec.PowerCuts(0, func(s disktest.State) { states = append(states, s) })
	if err != nil {
		t.Fatal(err)
	}
	var broken atomic.Int64
	each(len(states), func(i int) {
		if err := m.cutHere(t, states[i], m.ref, i); err != nil {
			broken.Add(1)
			t.Errorf("power cut %s: %v", states[i].How, err)
		}
	})
	t.Logf("%d moments, %d power-cut states, %d after de-duplication, %d losses", n.Moments, n.States, n.Checked, broken.Load())
}

// cutHere puts a state on a disk and lets the next owner find it.
func (m *matrix) cutHere(t *testing.T, s disktest.State, ref map[string][]byte, i int) error {
	b := bounds{ref: ref, powerCut: true, brief: i%3 > 0}
	if len(s.Acks) > 0 {
		b.floor = s.Acks[len(s.Acks)-1].Value.(promise)
	}
	b.ceil = b.floor
	if len(s.Next) > 0 {
		b.ceil = s.Next[0].Value.(promise)
	}
	base := scratch(t)
	defer func() { _ = os.RemoveAll(base) }()
	if err := s.Materialize(base); err != nil {
		return err
	}
	// The lock file is not synced: there may be none, or any part of one.
	if dirs := contextDirs(base); i/3%3 > 0 && len(dirs) == 1 {
		left := [][]byte{[]byte(`{"process_id":1,"host`), make([]byte, 40)}[i/3%3-1]
		if err := os.WriteFile(filepath.Join(dirs[0], LockFile), left, 0o600); err != nil {
			return err
		}
	}
	m.seed(t, base, i)
	return verify(t.Context(), base, b)
}

// cutsAfterRepair ends the program at each of its calls, lets another one mend
// what it left and take it over, and cuts the power then: what was only in the
// page cache when the new owner read it must have been made durable.
func (m *matrix) cutsAfterRepair(t *testing.T) {
	type kase struct {
		disktest.State
		ref map[string][]byte
		at  string
	}
	var mu sync.Mutex
	var states []kase
	var total disktest.Cuts
	each(m.calls, func(i int) {
		s := &disktest.Stopper{At: i + 1, Torn: i%2 == 1}
		base := scratch(t)
		rec, err := disktest.NewRecorder(base)
		if err != nil {
			t.Error(err)
			return
		}
		m.seed(t, base, i)
		l := newLife(base, rec.Watch(&disk.FS{Before: s.Before}))
		_, _ = l.run(t.Context(), m.steps, 0)
		l.die()
		found, n, err := takeOver(t.Context(), l, rec)
		if err != nil {
			t.Errorf("stop at call %d (%v), then: %v", s.At, s.Hit(), err)
			return
		}
		ref := logsOf(t, base, l.uuid)
		mu.Lock()
		defer mu.Unlock()
		total.States += n.States
		for _, f := range found {
			states = append(states, kase{f, ref, fmt.Sprintf("stop at call %d (%v)", s.At, s.Hit())})
		}
	})
	var broken atomic.Int64
	each(len(states), func(i int) {
		if err := m.cutHere(t, states[i].State, states[i].ref, i); err != nil {
			broken.Add(1)
			t.Errorf("%s, power cut %s: %v", states[i].at, states[i].How, err)
		}
	})
	t.Logf("%d stops, %d power-cut states after the repair, %d after de-duplication, %d losses", m.calls, total.States, len(states), broken.Load())
}

// takeOver is the next owner's life. It returns what a power cut makes of the
// moments after the claim, the first message and the end.
func takeOver(ctx context.Context, dead *life, rec *disktest.Recorder) (states []disktest.State, n disktest.Cuts, err error) {
	l := newLife(dead.base, rec.Watch(&disk.FS{}))
	defer func() {
		l.die()
		dead.uuid = l.uuid
	}()
	l.clock.Store(dead.clock.Load() + 1000)
	l.uuids = 100
	l.ack = func(p promise) { rec.Ack(p.step, p) }
	if err := l.take(ctx, opening); err != nil {
		return nil, n, err
	}
	if dirs := contextDirs(l.base); len(dirs) == 1 {
		l.uuid = filepath.Base(dirs[0])
	} else if err := l.take(ctx, enqueuing); err != nil {
		return nil, n, err
	}
	steps := afterlife()
	for i, s := range steps {
		err := l.take(ctx, s)
		if errors.Is(err, ErrEnded) {
			p, perr := promised(l.base, l.uuid)
			if perr != nil {
				return nil, n, perr
			}
			l.ack(p)
		} else if err != nil {
			return nil, n, err
		}
		if i > 1 && i < len(steps)-1 {
			continue
		}
		c, cerr := rec.PowerCuts(rec.Len(), func(s disktest.State) { states = append(states, s) })
		n.States += c.States
		if cerr != nil || errors.Is(err, ErrEnded) {
			return states, n, cerr
		}
	}
	return states, n, nil
}

var stamps = regexp.MustCompile(`"timestamp":"[^"]*"`)

// alike compares logs but for the time of day.
func alike(want, got map[string][]byte) error {
	for name, w := range want {
		if g := got[name]; !bytes.Equal(stamps.ReplaceAll(w, nil), stamps.ReplaceAll(g, nil)) {
			return fmt.Errorf("%s is\n%s\nnot\n%s", name, g, w)
		}
	}
	return nil
}

// contextDirs are the directories of all contexts, wherever they lie.
func contextDirs(base string) []string {
	dirs, _ := filepath.Glob(filepath.Join(base, "*", "[0-9a-f]*"))
	return dirs
}

// readLogs is the content of the logs in dir, and of what was cut off them.
func readLogs(dir string) map[string][]byte {
	logs := map[string][]byte{}
	for _, glob := range []string{"*.jsonl", "*.cut"} {
		names, _ := filepath.Glob(filepath.Join(dir, glob))
		for _, f := range names {
			logs[filepath.Base(f)], _ = readFile(f)
		}
	}
	return logs
}

func logsOf(t *testing.T, base, uuid string) map[string][]byte {
	dir, err := FindDir(base, uuid)
	if err != nil {
		t.Error(err)
		return nil
	}
	return readLogs(dir)
}

// scratch is a directory in memory where there is such a thing: the model, not
// the kernel, says what is durable, and thousands of small files are quicker.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "crash-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// emptyDatabases makes the databases once, so that not each of some thousand
// stores must.
func emptyDatabases(t *testing.T) (map[string][]byte, error) {
	base := scratch(t)
	l := newLife(base, &disk.FS{})
	err := l.take(t.Context(), opening)
	l.die()
	dbs := map[string][]byte{}
	names, gerr := filepath.Glob(filepath.Join(base, "*.db"))
	for _, n := range names {
		b, rerr := readFile(n)
		err = errors.Join(err, rerr)
		dbs[filepath.Base(n)] = b
	}
	return dbs, errors.Join(err, gerr)
}

// seed decides on the index of a base directory: of 25 stores one makes its
// own, six find an empty one, and the others must do without, which is quick:
// nothing of what is checked may depend on it.
func (m *matrix) seed(t *testing.T, base string, i int) {
	t.Helper()
	for name, b := range m.empty {
		path := filepath.Join(base, name)
		var err error
		switch {
		case i%25 == 0:
		case i%4 > 0 && name == "tasks.db":
			err = os.Mkdir(path, 0o700) // no database can be opened there
		default:
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func dropIndex(base string) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(filepath.Join(base, "tasks.db"+suffix))
	}
}

// each calls f for 0 to n-1 on all processors.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
