package contextstore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// processRole names, in the environment, what this test binary does instead of
// testing: processes that are killed must be real ones.
const processRole = "TORI_TEST_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func(base string) error{"owner": ownerProcess, "worker": workerProcess}
	if role, ok := roles[os.Getenv(processRole)]; ok {
		if err := role(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func process(t *testing.T, role, base string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], base)
	cmd.Env = append(os.Environ(), processRole+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

// ownerProcess claims the one queued context, starts a child that inherits its
// work.lock, says so, and waits to be killed.
func ownerProcess(base string) error {
	ctx := context.Background()
	s, err := Open(ctx, Options{BaseDir: base, Redact: func(s string) string { return s }})
	if err != nil {
		return err
	}
	queued, err := filepath.Glob(filepath.Join(base, DirQueued, "*"))
	if err != nil || len(queued) != 1 {
		return fmt.Errorf("%v %v", queued, err)
	}
	c, _, err := s.Claim(ctx, filepath.Base(queued[0]))
	if err != nil {
		return err
	}
	child := exec.Command("sleep", "1000")
	child.ExtraFiles = []*os.File{c.WorkLock()}
	if err := child.Start(); err != nil {
		return err
	}
	fmt.Println(child.Process.Pid)
	select {}
}

func TestAnOrphanedChildKeepsTheNextOwnerOut(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	s := open(t, Options{})
	id, err := s.Enqueue(t.Context(), Metadata{TaskKey: key})
	if err != nil {
		t.Fatal(err)
	}
	owner, out := process(t, "owner", s.BaseDir)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	if _, _, err := s.Claim(t.Context(), id); !errors.Is(err, ErrBusy) {
		t.Fatalf("claimed from a live owner: %v", err)
	}
	if killed, err := s.EndOrphans(t.Context(), id, 0); !errors.Is(err, ErrBusy) {
		t.Fatalf("ended %v of a live owner: %v", killed, err)
	}
	// Slow is not dead, whatever its heartbeat says.
	if err := unix.Kill(owner.Process.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Claim(t.Context(), id); !errors.Is(err, ErrBusy) {
		t.Fatalf("claimed from a stopped owner: %v", err)
	}
	// Nor does one lose its run to whoever removes its lock files.
	for _, name := range []string{LockFile, workLock} {
		path := filepath.Join(s.BaseDir, DirRunning, id, name)
		if err := kernel.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Claim(t.Context(), id); !errors.Is(err, ErrBusy) {
		t.Fatalf("claimed from an owner without lock files: %v", err)
	}
	for _, name := range []string{LockFile, workLock} {
		path := filepath.Join(s.BaseDir, DirRunning, id, name)
		if err := kernel.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	_ = owner.Process.Kill()
	_ = owner.Wait()
	var orphans *OrphansError
	if _, _, err := s.Claim(t.Context(), id); !errors.As(err, &orphans) || !slices.Equal(orphans.PIDs, []int{child}) {
		t.Fatalf("claimed beside the child %d: %v", child, err)
	}
	killed, err := s.EndOrphans(t.Context(), id, 0)
	if err != nil || !slices.Equal(killed, []int{child}) {
		t.Fatal(killed, err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if c.State().Generation != 2 {
		t.Errorf("generation %d", c.State().Generation)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed}); err != nil {
		t.Error(err)
	}
}

// What a dead owner left is ended and removed; a stop that it was asked for stays.
func TestUnlock(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	s := open(t, Options{})
	id, err := s.Enqueue(t.Context(), Metadata{TaskKey: key})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := s.Unlock(t.Context(), id, 0); err != nil || f.Left || f.Status != task.Queued {
		t.Fatal(f, err)
	}
	owner, out := process(t, "owner", s.BaseDir)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	if _, err := s.Control(t.Context(), id, Stop, "ken"); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Unlock(t.Context(), id, 0); !errors.Is(err, ErrBusy) || len(f.PIDs) > 0 {
		t.Fatalf("freed %+v of a live owner: %v", f, err)
	}
	_ = owner.Process.Kill()
	_ = owner.Wait()
	f, err := s.Unlock(t.Context(), id, 0)
	if err != nil || !f.Left || f.Status != task.Running || f.Gone() == nil || f.Gone().ProcessID != owner.Process.Pid || !slices.Equal(f.PIDs, []int{child}) {
		t.Fatalf("%+v, %v", f, err)
	}
	if q, ok := s.Pending(id); !ok || q.Action != Stop || locked(filepath.Join(s.BaseDir, DirRunning, id)) {
		t.Errorf("%+v", q)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.Stopped}); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Unlock(t.Context(), id, 0); err != nil || f.Left || f.Status != task.Stopped {
		t.Error(f, err)
	}
}

// workerProcess works on whatever it can claim until nothing is left: each task
// is a few turns, sometimes a pause, and an end that owes the world an effect.
func workerProcess(base string) error {
	ctx := context.Background()
	s, err := Open(ctx, Options{BaseDir: base, Redact: func(s string) string { return s }})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for {
		var left []string
		err := Walk(base, liveDirs, func(dir string) error { left = append(left, filepath.Base(dir)); return nil })
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return deliverAll(ctx, s)
		}
		rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		for _, id := range left[:min(len(left), 10)] {
			if err := workOn(ctx, s, id); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
	}
}

func workOn(ctx context.Context, s *Store, id string) error {
	c, _, err := s.Claim(ctx, id)
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrEnded) || errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	// A call that a killed owner left open is closed by the next one.
	last, err := c.MessageLog().Last()
	if err != nil {
		return err
	}
	if last != nil && len(last.ToolCalls) > 0 {
		if _, err := c.Append(Message{Role: "tool", ToolCallID: last.ToolCalls[0].ID, Content: "interrupted"}, Message{Role: "user", Content: "on"}); err != nil {
			return err
		}
	}
	for c.LastSeq() < 9 {
		n := c.LastSeq() + 1
		if _, err := c.Append(Message{Role: "assistant", Content: fmt.Sprintf("answer %d", n), ToolCalls: []ToolCall{{ID: redact.Opaque(fmt.Sprint(n)), Name: "t", Arguments: "{}"}}}); err != nil {
			return err
		}
		if err := c.AppendTools(ToolRun{Tool: "t", Args: json.RawMessage("{}"), Result: "r", Status: "success", CallID: redact.Opaque(fmt.Sprint(n))}); err != nil {
			return err
		}
		if _, err := c.Append(Message{Role: "tool", ToolCallID: redact.Opaque(fmt.Sprint(n)), Content: "r"}, Message{Role: "user", Content: "on"}); err != nil {
			return err
		}
		if err := c.TurnDone(ctx); err != nil {
			return err
		}
		if rand.IntN(6) == 0 {
			return c.Transition(ctx, task.Outcome{Status: task.Paused, Reason: "a pause"})
		}
	}
	err = c.Transition(ctx, task.Outcome{Status: task.Completed, Summary: "done"},
		Effect{Key: id + ".mark", Kind: "mark", Data: json.RawMessage(`{}`)})
	if err != nil {
		return err
	}
	return deliver(ctx, s, id)
}

// deliver leaves a line for each effect, once: the file of its key is the marker.
func deliver(ctx context.Context, s *Store, id string) error {
	effects, err := s.Undelivered(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range effects {
		f, err := os.OpenFile(filepath.Join(s.BaseDir, "effects", e.Key), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			_ = f.Close()
		} else if !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := s.Acknowledge(ctx, id, e, "made"); err != nil {
			return err
		}
	}
	return nil
}

func deliverAll(ctx context.Context, s *Store) error {
	ids, err := s.WithUndelivered(ctx)
	for _, id := range ids {
		err = errors.Join(err, deliver(ctx, s, id))
	}
	return err
}

// TestManyProcessesManyKills lets several processes work on one base directory
// while they are killed at random moments. TORI_SOAK=PROCESSESxTASKS sets the
// size.
func TestManyProcessesManyKills(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	processes, tasks := 4, 24
	if n, err := fmt.Sscanf(os.Getenv("TORI_SOAK"), "%dx%d", &processes, &tasks); os.Getenv("TORI_SOAK") != "" && (n != 2 || err != nil) {
		t.Fatal("TORI_SOAK: PROCESSESxTASKS, as in 10x200")
	}
	s := open(t, Options{})
	if err := os.Mkdir(filepath.Join(s.BaseDir, "effects"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range tasks {
		k := key
		k.ID = fmt.Sprint(i)
		if _, err := s.Enqueue(t.Context(), Metadata{TaskKey: k}); err != nil {
			t.Fatal(err)
		}
	}
	var kills sync.Map
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			for n := 0; ; n++ {
				cmd := exec.Command(os.Args[0], s.BaseDir)
				cmd.Env = append(os.Environ(), processRole+"=worker")
				var stderr strings.Builder
				cmd.Stderr = &stderr
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				// Half of the kills come while a process starts or soon after.
				kill := time.AfterFunc(time.Duration(rand.IntN(400))*time.Millisecond, func() { _ = cmd.Process.Kill() })
				if n > 40 {
					kill.Stop() // a slow machine comes to its end too
				}
				err := cmd.Wait()
				kill.Stop()
				if err == nil {
					return
				}
				if cmd.ProcessState.ExitCode() != -1 {
					t.Errorf("worker: %v: %s", err, stderr.String())
					return
				}
				kills.Store([2]int{i, n}, true)
			}
		})
	}
	all.Wait()
	killed := 0
	kills.Range(func(any, any) bool { killed++; return true })
	t.Logf("%d processes, %d tasks, %d kills", processes, tasks, killed)
	checkAllEnded(t, s, tasks)
}

// checkAllEnded asserts that every task ended once, with all it had said, and
// that what it owed was delivered once.
func checkAllEnded(t *testing.T, s *Store, tasks int) {
	t.Helper()
	ended := 0
	err := walk(s.BaseDir, func(dir string) error {
		v, err := ReadView(dir)
		if err != nil {
			return err
		}
		if v.Status() != task.Completed || v.State.Phase != "" || filepath.Base(filepath.Dir(dir)) != DirCompleted {
			t.Errorf("%s is %s %q", dir, v.Status(), v.State.Phase)
		}
		var seq int64
		err = v.Tail(Messages, -1, func(b []byte) error {
			m, err := DecodeMessage(b)
			if seq++; err != nil || m.Seq != seq {
				t.Errorf("%s: message %d where %d was expected: %v", dir, m.Seq, seq, err)
			}
			return nil
		})
		if seq < 9 {
			t.Errorf("%s: %d messages", dir, seq)
		}
		finals := 0
		err = errors.Join(err, v.Tail(Summaries, -1, func(b []byte) error {
			if sum, err := DecodeSummary(b); err == nil && sum.Final {
				finals++
			}
			return nil
		}))
		if finals != 1 {
			t.Errorf("%s: %d final summaries", dir, finals)
		}
		ended++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if ended != tasks {
		t.Errorf("%d of %d tasks", ended, tasks)
	}
	made, err := os.ReadDir(filepath.Join(s.BaseDir, "effects"))
	if err != nil || len(made) != tasks {
		t.Errorf("%d effects of %d tasks: %v", len(made), tasks, err)
	}
	if left, err := s.WithUndelivered(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("undelivered: %v %v", left, err)
	}
	r, err := CheckBase(t.Context(), s.BaseDir, false)
	if err != nil || r.Found > 0 || r.Contexts != int64(tasks) {
		t.Errorf("check: %+v %v", r, err)
	}
	listing := func() (ids []string) {
		l, err := List(t.Context(), s.BaseDir, Viewer{Admin: true}, Filter{Limit: 1000})
		if err != nil {
			t.Error(err)
		}
		for _, v := range l.Views {
			ids = append(ids, fmt.Sprint(v.Metadata.UUID, v.Status(), v.State.CompletedAt, v.State.LLMCallCount, v.State.TotalTokensUsed, v.State.Generation))
		}
		return ids
	}
	before, said := indexed(t, s.BaseDir), listing()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, ReindexBase(t.Context(), s.BaseDir))
	if d := cmp.Diff(before, indexed(t, s.BaseDir), sameRow); d != "" || !slices.Equal(said, listing()) {
		t.Errorf("reindex changed an answer: %s", d)
	}
}

// A backup that has work.lock open shares nothing with the dead owner.
func TestWhoOnlyReadsWorkLockIsNotEnded(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	s := open(t, Options{})
	id, err := s.Enqueue(t.Context(), Metadata{TaskKey: key})
	if err != nil {
		t.Fatal(err)
	}
	owner, out := process(t, "owner", s.BaseDir)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(s.BaseDir, DirRunning, id, workLock))
	if err != nil {
		t.Fatal(err)
	}
	reader := exec.Command("sleep", "1000")
	reader.Stdin = f
	if err := errors.Join(reader.Start(), f.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Process.Kill(); _ = reader.Wait() })
	_ = owner.Process.Kill()
	_ = owner.Wait()
	killed, err := s.EndOrphans(t.Context(), id, 0)
	if err != nil || len(killed) != 1 || strconv.Itoa(killed[0]) != strings.TrimSpace(line) {
		t.Errorf("ended %v, want the child %s and not the reader %d: %v", killed, line, reader.Process.Pid, err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
