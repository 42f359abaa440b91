package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
)

// Every limit has a name in both languages, and says how much it allows.
func TestBound(t *testing.T) {
	t.Parallel()
	l := Limits{CPU: 90 * time.Second, Memory: 2 << 30, Processes: 64, Disk: 1536 << 20, NewFiles: 4000, Output: 1 << 10, FileSize: 5}
	for limit, want := range map[string]string{
		limitCPU: "processor time limit of 1m30s", limitMemory: "memory limit of 2 GiB", limitProcesses: "limit of 64 processes at once",
		limitDisk: "limit of 1.5 GiB written to disk", limitFiles: "limit of 4000 new files, or the last that the disk has", limitOutput: "output limit of 1 KiB",
		limitFileSize: "limit of 5 bytes for one file", limitSpace: "the disk is nearly full",
		limitMachine: "the memory of the machine is nearly all taken",
	} {
		var args []any
		if b := l.bound(limit); b != "" {
			args = append(args, b)
		}
		if got := i18n.English.T("limit."+limit, args...); got != want {
			t.Errorf("%s: %q", limit, got)
		}
		if i18n.Japanese.T("limit."+limit, args...) == i18n.English.T("limit."+limit, args...) {
			t.Errorf("%s is not translated", limit)
		}
	}
}

// What ended a command is told with how much it was allowed, for limits that are
// watched and those that the kernel keeps.
func TestExitTellsTheLimit(t *testing.T) {
	t.Parallel()
	for script, c := range map[string]struct {
		limits Limits
		want   string
	}{
		"exec head -c 8000000 /dev/zero >big":            {Limits{FileSize: 1 << 20}, limitFileSize + " 1 MiB"},
		"head -c 9000000 /dev/zero; sleep 60":            {Limits{Output: 2 << 20}, limitOutput + " 2 MiB"},
		"while :; do :; done":                            {Limits{CPU: time.Second}, limitCPU + " 1s"},
		"for i in 1 2 3 4 5 6; do sleep 60 & done; wait": {Limits{Processes: 3}, limitProcesses + " 3"},
		"kill -9 $$": {Limits{}, " "},
		"exit 3":     {Limits{}, " "},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			e, err := Unconfined(Spec{Workspace: t.TempDir(), Limits: c.limits}).Run(t.Context(), Command{Script: script, Timeout: 20 * time.Second})
			if got := e.Limit + " " + e.Bound; err != nil || got != c.want {
				t.Errorf("%q, %+v, %v", got, e, err)
			}
		})
	}
}

// The kernel keeps the same of each process in every kind.
func TestSameLimits(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, of func(Spec) Runner) {
		spec := newSpec(t)
		spec.Limits = Limits{CPU: 90 * time.Second, FileSize: 64 << 20, OpenFiles: 99, Memory: 512 << 20}
		r := of(spec)
		for _, limit := range [][2]string{{"-c", "0"}, {"-f", "65536"}, {"-d", "524288"}, {"-n", "99"}, {"-S -t", "90"}, {"-H -t", "91"}} {
			if out, _ := sh(t, r, "ulimit "+limit[0]); out != limit[1]+"\n" {
				t.Errorf("%s: %q, want %s", limit[0], out, limit[1])
			}
		}
		spec.Limits = Limits{}
		if out, _ := sh(t, of(spec), "ulimit -S -n"); out != "1024\n" {
			t.Errorf("%q descriptors by default", out)
		}
		if out, _ := sh(t, of(spec), "ulimit -H -n"); out != "4096\n" {
			t.Errorf("%q descriptors at most", out)
		}
	})
}

// When memory is short the kernel chooses a command and not the daemon.
func TestFirstToBeEnded(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, of func(Spec) Runner) {
		spec := newSpec(t)
		p, err := of(spec).Start(t.Context(), Command{Script: "echo up; exec tail -f /dev/null '" + spec.Workspace + "'", Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Kill()
		if _, err := io.ReadFull(p.Stdout, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		found := 0
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range all {
			b, _ := os.ReadFile(file)
			if !bytes.Contains(b, []byte("'"+spec.Workspace+"'")) && !bytes.HasSuffix(b, []byte("\x00"+spec.Workspace+"\x00")) {
				continue
			}
			found++
			if score, err := os.ReadFile(filepath.Join(filepath.Dir(file), "oom_score_adj")); err != nil || string(score) != oomScore+"\n" {
				t.Errorf("%q: %q, %v", b, score, err)
			}
		}
		if found == 0 {
			t.Error("the command is not in the list of processes")
		}
	})
}

// What a command is given to read is memory of nobody: it must not grow.
func TestInputCannotBeWritten(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		var out bytes.Buffer
		exit, err := make(newSpec(t)).Run(t.Context(), Command{Script: `cat && { dd if=/dev/zero bs=1024 count=1 >&0; } 2>/dev/null || echo refused`, Input: "given\n", Output: &out, Timeout: time.Minute})
		if err != nil || exit.Code != 0 || out.String() != "given\nrefused\n" {
			t.Errorf("%+v, %v: %s", exit, err, out.String())
		}
	})
}

// Who writes past every figure of a process still leaves the last part of the disk
// to others: space that fell since the first command is taken by somebody.
func TestTheLastOfTheDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root makes a disk")
	}
	if !apart(t) {
		return
	}
	boxes(t, func(t *testing.T, s *Sandbox) {
		spec := newSpec(t)
		// What is written to a file system in memory is in no figure of a process.
		if err := unix.Mount("tmpfs", spec.Workspace, "tmpfs", 0, "size=512m"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(spec.Workspace, unix.MNT_DETACH) })
		spec.Usage = &SharedUsage{}
		r, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		if out, exit := sh(t, r, "head -c 200m /dev/zero >a; sleep 0.3"); exit.Code != 0 {
			t.Errorf("with more than the reserve left: %+v\n%s", exit, out)
		}
		if out, exit := sh(t, r, "for i in 1 2 3 4; do head -c 25m /dev/zero >b$i; done; sleep 10"); exit.Limit != limitSpace {
			t.Errorf("the last of it: %+v\n%s", exit, out)
		}
		if out, exit := sh(t, r, "rm a b*; sleep 0.3"); exit.Code != 0 {
			t.Errorf("tidied up: %+v\n%s", exit, out)
		}
	})
}

// Names of files end before the disk does: the last of them are kept as well, and
// files count since the first command of a run, however many commands make them.
// Not parallel: it takes long, and the machine is watched meanwhile for what others do.
func TestTheLastFiles(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes a disk")
	}
	if !apart(t) {
		return
	}
	boxes(t, func(t *testing.T, s *Sandbox) {
		spec := newSpec(t)
		if err := unix.Mount("tmpfs", spec.Workspace, "tmpfs", 0, "nr_inodes=16000"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(spec.Workspace, unix.MNT_DETACH) })
		make := func(name string, n int) string {
			return fmt.Sprintf("sleep 0.8; mkdir %[1]s && seq -f %[1]s/%%.0f %[2]d | xargs touch; sleep 1.5", name, n)
		}
		for i, c := range []struct {
			script string
			limit  string
		}{{make("a", 15000), ""}, {make("b", 900), limitFiles}, {"rm -r a b; sleep 0.3", ""}, {make("c", 3000), ""}, {make("d", 3000), limitFiles}, {"rm -r d; sleep 2", ""}, {make("e", 500), ""}} {
			if i == 0 || i == 3 {
				spec.Usage = &SharedUsage{}
			}
			if i == 3 {
				spec.Limits.NewFiles = 4000
			}
			r, err := s.Runner(spec)
			if err != nil {
				t.Fatal(err)
			}
			if out, exit := sh(t, r, c.script); exit.Limit != c.limit {
				t.Errorf("%s: %+v\n%s", c.script, exit, out)
			}
			_ = r.Close()
		}
	})
}

// Of commands that take too much together as many end at once as bring the rest
// below the limit, the largest first; what lies in files counts and does not end.
func TestWhoEndsForMemory(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]int{400: 0, 373: 0, 372: 1, 310: 1, 250: 2, 100: 4, 10: 5} {
		sum, ended := &SharedUsage{}, 0
		sum.put("files", 40)
		all := map[*watcher]int64{{}: 100, {}: 90, {}: 80, {}: 60, {}: 3}
		for range 2 {
			ended = 0
			for w, n := range all {
				if sum.put(w, n) > limit {
					ended++
				}
			}
		}
		if ended != want {
			t.Errorf("%d end for %d, want %d", ended, limit, want)
		}
	}
}

// Processor time counts whoever waits for it, and once.
func TestSpent(t *testing.T) {
	t.Parallel()
	at := func(pid int, begun string, own, waited time.Duration) seen {
		return seen{life: life{pid, begun}, own: own, waited: waited}
	}
	w := &watcher{}
	for i, look := range []struct {
		all  []seen
		want time.Duration
	}{
		{[]seen{at(1, "a", 1, 0), at(2, "b", 5, 0), at(3, "c", 7, 0)}, 13},
		{[]seen{at(1, "a", 1, 0), at(3, "c", 8, 0)}, 14},                  // 2 has ended
		{[]seen{at(1, "a", 1, 6), at(3, "c", 8, 0)}, 15},                  // and was waited for
		{[]seen{at(1, "a", 1, 6)}, 14},                                    // 3 is missed by a walk
		{[]seen{at(1, "a", 1, 6), at(3, "c", 9, 0)}, 16},                  // and is there
		{[]seen{at(1, "a", 2, 6), at(3, "d", 4, 0)}, 2 + 5 + 9 + 4},       // another of its number: nobody waited
		{[]seen{at(1, "a", 2, 6), at(3, "d", 4, 0)}, 2 + 5 + 9 + 4},       // once
		{[]seen{at(1, "a", 2, 6), at(3, "d", 4, 90)}, 2 + 6 + 4 + 90},     // short ones, which nobody saw
		{[]seen{at(1, "a", 2, 6), at(3, "d", 100, 90)}, 2 + 6 + 100 + 90}, // the larger sum
	} {
		if got := w.spent(look.all); got != look.want {
			t.Errorf("look %d: %d, want %d", i, got, look.want)
		}
	}
	if len(w.last) != 2 {
		t.Errorf("%d processes are kept", len(w.last))
	}
}
