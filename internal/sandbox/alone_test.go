package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Kernels with an older Landlock are stood in for by using less of this one's.
func TestOlderLandlock(t *testing.T) {
	t.Parallel()
	for _, abi := range []int{1, 2, 3, 4, 5} {
		t.Run(fmt.Sprint(abi), func(t *testing.T) {
			t.Parallel()
			s := boxOf(t, KindLandlock)
			if abi >= s.abi {
				t.Skip("the kernel's is not newer")
			}
			s.abi = abi
			for name, p := range outcomes(t, s, s.Runner, []string{"read-data", "write-data", "truncate-data", "chmod-data", "signal", "signal-group", "signal-thread",
				"signal-queued", "signal-by-descriptor", "signal-by-owner", "signal-by-socket", "signal-daemon", "signal-helper", "trace", "trace-helper", "abstract-socket", "tcp-loopback",
				"udp-loopback", "unix-socket", "limits-of-process", "survivor-session", "survivor-double-fork"}) {
				if p.Outcome == OutcomeEscaped || p.Outcome == "" {
					t.Errorf("%s: %s", name, p.Detail)
				}
			}
			r, err := s.Runner(newSpec(t))
			if err != nil {
				t.Fatal(err)
			}
			if out, exit := sh(t, r, "sleep 1000 & kill %1 && wait %1; (sleep 1000 & kill $! ); kill -0 $$ && echo done"); !strings.Contains(out, "done") {
				t.Errorf("a command cannot end its own: %+v %s", exit, out)
			}
		})
	}
}

// What others remove meanwhile does not hide what a command writes.
func TestDiskLimitBesideRemovals(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, s *Sandbox) {
		neighbour := filepath.Join(t.TempDir(), "neighbour")
		f, err := os.Create(neighbour)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, 400<<20), f.Close()); err != nil {
			t.Fatal(err)
		}
		runner := func(spec Spec) (Runner, error) {
			time.AfterFunc(100*time.Millisecond, func() { _ = os.Remove(neighbour) })
			return s.Runner(spec)
		}
		if p := outcomes(t, s, runner, []string{"disk-filler"})["disk-filler"]; p.Outcome != OutcomeContained {
			t.Errorf("%s: %s", p.Outcome, p.Detail)
		}
	})
}

// What Landlock does not know of is decided file by file.
func TestChangesOfMode(t *testing.T) {
	t.Parallel()
	s := boxOf(t, KindLandlock)
	spec := newSpec(t)
	outside := filepath.Join(filepath.Dir(spec.Workspace), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := s.Runner(spec)
	if err != nil {
		t.Fatal(err)
	}
	out, exit := sh(t, r, `set -e
mkdir -p d/e; touch d/e/f; chmod 755 d/e/f; test -x d/e/f; (cd d && chmod 700 e/f)
ln -s e/f d/l; chmod 640 d/l; test "$(stat -c %a d/e/f)" = 640
touch -d 2001-02-03 d/e/f; test "$(stat -c %Y d/e/f)" = "$(date -d 2001-02-03 +%s)"
touch -h -d 2001-02-03 d/l; cp -p d/e/f copy; test "$(stat -c %a copy)" = 640
chown $(id -u):$(id -g) copy; install -m 711 copy copy2; test "$(stat -c %a copy2)" = 711
tar cf a.tar d; mkdir x; tar xf a.tar -C x; chmod 600 "$TMPDIR" && chmod 700 "$TMPDIR"; mv d/e/f moved; echo good`)
	if exit.Code != 0 || !strings.HasSuffix(out, "good\n") {
		t.Errorf("%+v\n%s", exit, out)
	}
	for _, script := range []string{"chmod 777 '" + outside + "'", "ln -s '" + outside + "' o; chmod 777 o", "chmod 777 ..", "touch -d 2001-01-01 '" + outside + "'",
		"chmod 4755 copy", "chmod 777 /proc/self/cwd/../outside", "chmod 755 no-such-file", "chmod 777 /usr", "chown 1 copy", "cd ..; chmod 777 outside"} {
		if out, exit := sh(t, r, script); exit.Code == 0 {
			t.Errorf("%s: done\n%s", script, out)
		}
	}
	if st, err := os.Stat(outside); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
}

func TestHide(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, s *Sandbox) {
		spec := newSpec(t)
		shown := filepath.Join(filepath.Dir(spec.Workspace), "shown")
		for _, f := range []string{"a/open", "a/secret/key", "a/secret/given/x", "b/key", "token"} {
			p := filepath.Join(shown, f)
			if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(f), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		spec.ReadOnly = []string{shown, filepath.Join(shown, "a/secret/given")}
		spec.Hide = []string{filepath.Join(shown, "a/secret"), filepath.Join(shown, "token"), "/no/such/path"}
		r, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		out, exit := sh(t, r, "cd '"+shown+"'; cat a/open b/key; echo; cat a/secret/given/x; for f in a/secret/key token; do cat $f && echo seen $f; done; ls a/secret; echo x >a/secret/new && echo written")
		if !strings.Contains(out, "a/openb/key\n") || strings.Contains(out, "seen a") || strings.Contains(out, "\nkey") || strings.Contains(out, "\ntoken") || strings.Contains(out, "written") {
			t.Errorf("%+v\n%s", exit, out)
		}
		if !strings.Contains(out, "a/secret/given/x") {
			t.Errorf("%+v: what is given inside is not seen\n%s", exit, out)
		}
	})
}

func TestWatcher(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	writeAll(t, filepath.Join(proc, "10"), map[string]string{"stat": "10 (a) b) S 1 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 5 0 100 0", "status": "VmRSS:\t400 kB\n"})
	writeAll(t, filepath.Join(proc, "10/task/10"), map[string]string{"children": "11 12 "})
	writeAll(t, filepath.Join(proc, "11"), map[string]string{"stat": "11 (x) S 10 1 1 0 -1 0 0 0 0 0 100 0 0 0 20 0 1 0 5 0 50 0",
		"io": "write_bytes: 1000\ncancelled_write_bytes: 200\n", "status": "VmRSS:\t 200 kB\nVmPTE:\t 3 kB\nVmSwap:\t 8 kB\n", "smaps_rollup": "Rss: 10 kB\nPss:    4 kB\nSwapPss: 1 kB\n"})
	writeAll(t, filepath.Join(proc, "11/task/11"), map[string]string{"children": "10"}) // a circle ends
	writeAll(t, filepath.Join(proc, "12"), map[string]string{"stat": "nonsense"})
	w := &watcher{sum: &SharedUsage{}, proc: proc, root: 10, limits: Limits{Processes: 5}}
	all := w.tree()
	if len(all) != 2 || all[0].own+all[0].waited != 10*clockTick {
		t.Errorf("%+v", all)
	}
	if got := w.written(all); got != 800 {
		t.Errorf("written %d", got)
	}
	all[1].memory, all[1].tables = w.memoryOf(all[1])
	if all[1].memory != 208<<10 {
		t.Errorf("%+v", all[1])
	}
	if got := w.exact(all[1:]); got != 8<<10 { // with the tables
		t.Errorf("exact %d", got)
	}
	writeAll(t, filepath.Join(proc, "11"), map[string]string{"maps": "7f00-9f00 rw-s 0 00:01 77 /dev/zero (deleted)\na000-b000 rw-s 1000 00:01 77 /dev/zero (deleted)\nc000-d000 r--p 0 08:01 5 /bin/x\n"})
	for kib, want := range map[int]int64{0: 0, 8: 8 << 10, 9: 0x2000} {
		writeAll(t, proc, map[string]string{"meminfo": fmt.Sprintf("Shmem: %d kB\n", kib)})
		if got := w.apart(all); got != want {
			t.Errorf("%d KiB are shared: %d, want %d", kib, got, want)
		}
	}
	for want, l := range map[string]Limits{"": {Processes: 1}, limitProcesses: {}, limitCPU: {Processes: 5, CPU: clockTick}, limitMemory: {Processes: 5, Memory: 4096}, limitMachine: {Processes: 5, CPU: time.Hour}} {
		w.limits = l
		free := map[bool]string{true: "1", false: "900000"}[want == limitMachine]
		writeAll(t, proc, map[string]string{"meminfo": "MemTotal: 1000000 kB\nMemAvailable: " + free + " kB\n"})
		if got := w.look(); got != want {
			t.Errorf("%+v: %q, want %q", l, got, want)
		}
	}
}

// A setting of the machine is not taken for one of the sandbox.
func TestAtLeast(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]bool{"6.14.0": true, "6.14-rc1": true, "7.0.1": true, "6.8.0-45-generic": false, "5.15.0": false, "6": false, "": false} {
		if got := atLeast(release, 6, 14); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}

func TestCountFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 20 {
		writeAll(t, filepath.Join(dir, fmt.Sprint(i%3)), map[string]string{fmt.Sprint("f", i): ""})
	}
	if err := os.Symlink("/", filepath.Join(dir, "root")); err != nil {
		t.Fatal(err)
	}
	c := fileCount{dirs: []string{dir, "/no/such"}, files: 0, bytes: 1 << 40, sum: &SharedUsage{}}
	if n, _ := c.count(t.Context(), 1<<40); n != 24 {
		t.Errorf("%d files", n)
	}
	if n, _ := c.count(t.Context(), 5); n != 6 {
		t.Errorf("%d files of many", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	walk(ctx, []string{dir}, func(int, os.DirEntry) bool { cancel(); return true })
	if n, _ := c.count(ctx, 1<<40); n >= 24 {
		t.Errorf("%d files were counted when nobody waited any more", n)
	}
}

// What lies so deep that no path leads there counts as well.
func TestCensusOfADeepTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_PATH, 0)
	for range 20 { // more than 4096 bytes of path
		name := strings.Repeat("d", 249)
		if err == nil {
			err = unix.Mkdirat(at, name, 0o700)
		}
		var next int
		if err == nil {
			next, err = unix.Openat(at, name, unix.O_PATH, 0)
		}
		_ = unix.Close(at)
		at = next
	}
	var fd int
	if err == nil {
		fd, err = unix.Openat(at, "big", unix.O_CREAT|unix.O_WRONLY, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = unix.Write(fd, make([]byte, 1<<20))
	if err := errors.Join(err, unix.Close(fd), unix.Close(at)); err != nil {
		t.Fatal(err)
	}
	c := fileCount{dirs: []string{dir}, bytes: 1 << 40}
	if n, size := c.count(t.Context(), 1<<40); n != 21 || size < 1<<20 {
		t.Errorf("%d files of %d bytes", n, size)
	}
}

func TestLimitsRefused(t *testing.T) {
	t.Parallel()
	for _, l := range []Limits{{CPU: -1}, {Memory: -1}, {Processes: -1}, {FileSize: -1}, {OpenFiles: -1}, {Disk: -1}, {NewFiles: -1}, {Output: -1}} {
		spec := newSpec(t)
		spec.Limits = l
		if _, err := spec.check(); err == nil {
			t.Errorf("%+v", l)
		}
	}
}

// To put a file back takes one step, whatever lies in its place: a command fills a
// directory faster than anybody empties it, and is not ended meanwhile.
func TestPutBackOverADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, ".git")
	for range 2 {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		writeAll(t, path, map[string]string{"config": "x"})
		if err := putBack(path, []byte("gitdir: /g\n")); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "gitdir: /g\n" {
			t.Fatalf("%q, %v", b, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".git-*", "config")); len(left) != 2 {
		t.Errorf("%q: what was in the way was walked through", left)
	}
}
