package endpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"toritsugi/internal/disk"
)

// A copy of the test program plays another process; what it does is in its
// environment.
func TestMain(m *testing.M) {
	switch os.Getenv("SLOTS_TEST") {
	case "hold":
		holdUntilTold()
	case "loop":
		loop()
	default:
		os.Exit(m.Run())
	}
}

func helperSlots() *Slots {
	limit := 1
	if os.Getenv("SLOTS_LIMIT") == "2" {
		limit = 2
	}
	s, err := OpenSlots(&disk.FS{}, os.Getenv("SLOTS_DIR"), "http://127.0.0.1:1/v1", limit, nil)
	if err != nil {
		panic(err)
	}
	return s
}

// holdUntilTold says "waiting" and "held", and ends when its input does.
func holdUntilTold() {
	slot, err := helperSlots().Acquire(context.Background(), PriorityCoder, "helper", func(int, time.Duration) { fmt.Println("waiting") })
	if err != nil {
		panic(err)
	}
	fmt.Println("held")
	_, _ = io.Copy(io.Discard, os.Stdin)
	slot.Release()
}

// loop takes and frees a slot again and again, and notes both in a file.
func loop() {
	log, err := os.OpenFile(filepath.Join(os.Getenv("SLOTS_DIR"), "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	s := helperSlots()
	for i := range 15 {
		slot, err := s.Acquire(context.Background(), Priority(i%3), "helper", nil)
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintln(log, "+")
		_, _ = fmt.Fprintln(log, "-")
		slot.Release()
	}
}

type helper struct {
	cmd   *exec.Cmd
	in    io.Closer
	lines *bufio.Scanner
}

func start(t *testing.T, mode, dir string, env ...string) *helper {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(append(os.Environ(), "SLOTS_TEST="+mode, "SLOTS_DIR="+dir), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &helper{cmd, in, bufio.NewScanner(out)}
}

func (h *helper) expect(t *testing.T, line string) {
	t.Helper()
	if !h.lines.Scan() || h.lines.Text() != line {
		t.Fatalf("got %q, %v; want %q", h.lines.Text(), h.lines.Err(), line)
	}
}

// TestDeathFreesTheSlot: with real processes, kill -9 of a holder passes its
// slot on by priority, and kill -9 of one who waits leaves no hole in the line.
func TestDeathFreesTheSlot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	holder := start(t, "hold", dir)
	holder.expect(t, "held")
	doomed := start(t, "hold", dir)
	doomed.expect(t, "waiting")
	coder := start(t, "hold", dir)
	coder.expect(t, "waiting")

	s := slots(t, dir, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	got, inLine := make(chan *Slot, 1), make(chan int, 1)
	go func() {
		slot, err := s.Acquire(ctx, PriorityChat, "chat", func(ahead int, _ time.Duration) { inLine <- ahead })
		if err != nil {
			t.Error(err)
		}
		got <- slot
	}()
	if ahead := <-inLine; ahead != 0 {
		t.Errorf("%d are before chat", ahead)
	}
	queues, err := Queues(dir)
	if err != nil || len(queues) != 1 || queues[0].Endpoint != "http://127.0.0.1:1/v1" {
		t.Fatal(queues, err)
	}
	var pids []int
	for _, p := range queues[0].Parties {
		pids = append(pids, p.PID)
		if p.Holding != (p.PID == holder.cmd.Process.Pid) || p.Since.IsZero() {
			t.Errorf("%+v", p)
		}
	}
	if want := []int{holder.cmd.Process.Pid, os.Getpid(), doomed.cmd.Process.Pid, coder.cmd.Process.Pid}; !slices.Equal(pids, want) {
		t.Errorf("there are %v, want %v", pids, want)
	}
	for _, h := range []*helper{doomed, holder} {
		if err := h.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = h.cmd.Wait()
	}
	slot := <-got
	if slot == nil {
		t.Fatal("the dead holder's slot did not come free")
	}
	slot.Release()
	coder.expect(t, "held")
	_ = coder.in.Close()
	_ = coder.cmd.Wait()
	if q, err := Queues(dir); err != nil || len(q[0].Parties) != 0 {
		t.Errorf("still there: %+v, %v", q, err)
	}
}

// TestProcessesShareTheSlots: there are never more calls at once than slots.
func TestProcessesShareTheSlots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []*helper
	for range 4 {
		all = append(all, start(t, "loop", dir, "SLOTS_LIMIT=2"))
	}
	for _, h := range all {
		if err := h.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	inside, most, calls := 0, 0, 0
	for line := range strings.Lines(string(log)) {
		if line == "+\n" {
			inside++
			calls++
		} else {
			inside--
		}
		most = max(most, inside)
	}
	if most > 2 || calls != 4*15 || inside != 0 {
		t.Errorf("%d calls, at most %d at once, %d left", calls, most, inside)
	}
}

// step of a scenario: someone comes (n is the priority), or the n-th of those
// who hold or wait leaves.
type step struct {
	what string
	n    int
}

type comer struct {
	priority Priority
	slots    *Slots
	cancel   context.CancelFunc
	slot     atomic.Pointer[Slot]
	done     chan struct{}
}

// TestOrderOfTheLine: whoever comes, leaves and gives up, in any order and by
// any process, the slots are always held by those who come first by priority
// and then by arrival, and are never left free while someone waits.
func TestOrderOfTheLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		limit := rapid.IntRange(1, 3).Draw(r, "slots")
		var steps []step
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			steps = append(steps, step{rapid.SampledFrom([]string{"come", "come", "release", "give up"}).Draw(r, "what"), rapid.IntRange(0, 5).Draw(r, "n")})
		}
		var wrong string
		synctest.Test(t, func(t *testing.T) { wrong = play(t, limit, steps) })
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}

func play(t *testing.T, limit int, steps []step) (wrong string) {
	dir := t.TempDir()
	ours := []*Slots{slots(t, dir, limit), slots(t, dir, limit)} // as of two processes
	var holding, waiting []*comer
	settle := func() {
		time.Sleep(4 * pollRest)
		synctest.Wait()
		slices.SortStableFunc(waiting, func(a, b *comer) int { return int(b.priority - a.priority) })
		for len(holding) < limit && len(waiting) > 0 {
			holding, waiting = append(holding, waiting[0]), waiting[1:]
		}
		for _, c := range holding {
			if c.slot.Load() == nil {
				wrong = fmt.Sprintf("one of priority %d should hold a slot", c.priority)
			}
		}
		for _, c := range waiting {
			if c.slot.Load() != nil {
				wrong = fmt.Sprintf("one of priority %d should wait", c.priority)
			}
		}
		q, err := Queues(dir)
		if err != nil || len(q) != 1 || len(q[0].Parties) != len(holding)+len(waiting) {
			wrong = fmt.Sprintf("%d hold, %d wait, but seen is %+v, %v", len(holding), len(waiting), q, err)
		}
	}
	leave := func(list *[]*comer, n int, how func(*comer)) {
		if len(*list) > 0 {
			c := (*list)[n%len(*list)]
			*list = slices.DeleteFunc(*list, func(x *comer) bool { return x == c })
			how(c)
			<-c.done
		}
	}
	release := func(c *comer) { c.slot.Load().Release() }
	for i, s := range steps {
		switch s.what {
		case "come":
			ctx, cancel := context.WithCancel(t.Context())
			c := &comer{priority: Priority(s.n % 3), slots: ours[i%2], cancel: cancel, done: make(chan struct{})}
			go func() {
				defer close(c.done)
				slot, err := c.slots.Acquire(ctx, c.priority, "test", nil)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				c.slot.Store(slot)
			}()
			synctest.Wait() // it stands in line
			waiting = append(waiting, c)
		case "release":
			leave(&holding, s.n, release)
		default:
			leave(&waiting, s.n, func(c *comer) { c.cancel() })
		}
		if settle(); wrong != "" {
			break
		}
	}
	for _, c := range append(holding, waiting...) {
		c.cancel()
		if <-c.done; c.slot.Load() != nil {
			c.slot.Load().Release()
		}
	}
	return wrong
}

func TestOpenSlots(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{-1, 0, maxLimit + 1} {
		if _, err := OpenSlots(&disk.FS{}, t.TempDir(), "x", limit, nil); err == nil {
			t.Errorf("limit %d", limit)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSlots(&disk.FS{}, file, "x", 1, nil); err == nil {
		t.Error("a directory that is a file")
	}
	s := slots(t, t.TempDir(), 1)
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), 0, "x", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its file: %v", err)
	}
	if q, err := Queues(filepath.Join(t.TempDir(), "none")); err != nil || q != nil {
		t.Errorf("%v, %v", q, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Acquire(ended, 0, "x", nil); err != context.Canceled {
		t.Error(err)
	}
}

// TestRecords: any name of any length is shown as far as there is room, and
// what lies in the file from before, or is no record, harms nobody.
func TestRecords(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"", "coder1 of run 550e8400", strings.Repeat("長い名前", 500), "\xff\x00\"" + strings.Repeat("\x01", 300), strings.Repeat("🦊", 80)} {
		dir := t.TempDir()
		s, err := OpenSlots(&disk.FS{}, dir, "http://h/"+who, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path+"x", []byte("not ours"), 0o600); err != nil {
			t.Fatal(err)
		}
		slot, err := s.Acquire(t.Context(), 99, who, nil)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Queues(dir)
		if err != nil || len(q) != 1 || len(q[0].Parties) != 1 {
			t.Fatalf("%q: %+v, %v", who, q, err)
		}
		p := q[0].Parties[0]
		if !utf8.ValidString(p.Who) || !strings.HasPrefix(strings.ToValidUTF8(who, "\uFFFD"), p.Who) || len(who) > 0 && p.Who == "" || p.Priority != PriorityChat || !strings.HasPrefix(q[0].Endpoint, "http://h/") {
			t.Errorf("%q is shown as %+v", who, q)
		}
		if err := os.WriteFile(s.path, []byte(strings.Repeat("garbage\n", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
		if q, err := Queues(dir); err != nil || len(q) != 1 || len(q[0].Parties) != 0 {
			t.Errorf("garbage: %+v, %v", q, err)
		}
		slot.Release()
	}
}
