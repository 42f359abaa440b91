package tool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/tool"
)

func TestNamesThatDoNotPrint(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"a\nb": "needle 1\n", "caf\xe9": "needle 2\n", "tab\t.go": "needle 3\n", `"q"`: "needle 4\n", "-n": "needle 5\n", "日本 語": "needle 6\n", "x\x1b[31m": "needle 7\n"}, nil)
	c := conversation{w: w}
	c.call("list_files", `{}`)
	c.call("grep", `{"pattern":"needle"}`)
	c.call("glob", `{"pattern":"*b"}`)
	for _, p := range []string{`a\nb`, `\"a\\nb\"`, `\"caf\\xe9\"`, `\"q\"`, `\"tab\\t.go\"`, `-n`, `日本 語`, `\"nothing\"`, `\"a\\x00\"`} {
		c.call("read_file", `{"path":"`+p+`"}`)
	}
	c.call("edit_file", `{"path":"\"caf\\xe9\"","old_text":"needle 2","new_text":"found"}`)
	if w.get("caf\xe9") != "found\n" {
		t.Error("the file with a name in Latin-1 was not edited")
	}
	golden(t, "names.golden", c.b.String())
}

// hostile makes what no project has, and somebody else's does.
func hostile(t *testing.T) *workspace {
	t.Helper()
	w := newWorkspace(t, map[string]string{"plain": "needle\n", "dir/plain": "needle\n", "dir/deep/x": "needle\n"}, nil)
	for link, target := range map[string]string{"loop": "loop", "dir/up": "..", "dir/deep/again": "../../dir", "a-ring": "b-ring", "b-ring": "a-ring",
		"environ": "/proc/self/environ", "fd": "/proc/self/fd", "mem": "/proc/self/mem", "dangling": "nowhere", "passwd": "/etc/passwd", "zero": "/dev/zero", ".gitignore": "/etc/passwd"} {
		if err := os.Symlink(target, filepath.Join(w.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, pipe := range []string{"pipe", "dir/pipe"} {
		if err := syscall.Mkfifo(filepath.Join(w.dir, pipe), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(w.dir, "socket")}); err != nil {
		t.Fatal(err)
	}
	// Where the test may not make a device there is none, and that is told.
	if err := unix.Mknod(filepath.Join(w.dir, "device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err != nil {
		t.Logf("no device: %v", err)
	}
	return w
}

func TestHostileTree(t *testing.T) {
	t.Parallel()
	w := hostile(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if got := w.call("grep", obj{"pattern": ".", "ignored": true}); got.Text != "dir/deep/x\n1: needle\ndir/plain\n1: needle\nplain\n1: needle\n[3 matching lines in 3 files searched]\n" {
			t.Errorf("grep:\n%s", got.Text)
		}
		list := w.call("list_files", obj{}).Text
		for _, want := range []string{"a-ring (link)\n", "dir/deep/again (link)\n", "dir/pipe (no regular file)\n", "dir/up (link)\n", "environ (link)\n", "socket (no regular file)\n"} {
			if !strings.Contains(list, want) {
				t.Errorf("not listed: %q", want)
			}
		}
		for _, p := range []string{"loop", "a-ring", "environ", "fd", "fd/0", "mem", "passwd", "zero", "pipe", "dir/pipe", "socket", "device", "dir/up/environ"} {
			for name, args := range map[string]obj{
				"read_file": {"path": p}, "write_file": {"path": p + "/x", "content": "x"}, "edit_file": {"path": p, "old_text": "a", "new_text": "b"},
				"grep": {"path": p, "pattern": "."}, "list_files": {"path": p}, "glob": {"path": p, "pattern": "*"},
			} {
				if res := w.call(name, args); !res.IsError || strings.Contains(res.Text, "root:") || strings.Contains(res.Text, "PATH=") {
					t.Errorf("%s %s: %s", name, p, res.Text)
				}
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatal("a tool waits for a pipe or a device")
	}
}

// A file that is written to while it is read gives what it had, and an end.
func TestGrowingFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"log": strings.Repeat("line\n", 1000)}, nil)
	f, err := os.OpenFile(filepath.Join(w.dir, "log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		block := strings.Repeat("line\n", 10_000)
		for n := 0; n < 64<<20; n += len(block) {
			select {
			case <-stop:
				return
			default:
				_, _ = f.WriteString(block)
			}
		}
	}()
	for range 5 {
		if res := w.call("read_file", obj{"path": "log", "end_line": 2}); res.IsError || !strings.HasPrefix(res.Text, "log: lines 1-2 of ") {
			t.Error(res.Text)
		}
		if res := w.call("grep", obj{"pattern": "lime"}); res.IsError || !strings.HasPrefix(res.Text, "No line matches lime in 1 file searched.") {
			t.Error(res.Text)
		}
	}
	close(stop)
	<-stopped
	_ = f.Close()
}

func TestManyFilesInADirectory(t *testing.T) {
	t.Parallel()
	const n = 100_000
	// In memory, where there is such a place: the disk would take most of the time.
	dir, err := os.MkdirTemp("/dev/shm", "tori-test-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	reg, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root})...)
	if err != nil {
		t.Fatal(err)
	}
	w := &workspace{t: t, dir: dir, reg: reg}
	top, err := root.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = top.Close() }()
	for i := range n {
		if err := unix.Mknodat(int(top.Fd()), fmt.Sprintf("f%06d", i), unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.put(fmt.Sprintf("f%06d", n-1), "needle\n", 0o600)
	for name, c := range map[string]struct {
		args obj
		want string
	}{
		"list_files": {obj{"limit": 1}, fmt.Sprintf("f000000\n[%d more files of %d; narrow it with path, pattern or depth]\n", n-1, n)},
		"glob":       {obj{"pattern": "*99", "limit": 1}, fmt.Sprintf("f000099\n[%d more files of %d; narrow it with path, pattern or depth]\n", n/100-1, n/100)},
		"grep":       {obj{"pattern": "needle"}, fmt.Sprintf("f%06d\n1: needle\n[1 matching line in %d files searched]\n", n-1, n)},
	} {
		if got := w.call(name, c.args).Text; got != c.want {
			t.Errorf("%s: %.300s", name, got)
		}
	}
	if res := w.call("read_file", obj{"path": "g"}); !res.IsError {
		t.Error(res.Text)
	}
}

// Without permission a tool says so and goes on. The test runs itself as
// nobody, since root may read everything.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("TOOL_TEST_NOBODY"); dir != "" {
		noPermission(t, dir)
		return
	}
	if os.Getuid() != 0 {
		noPermission(t, locked(t))
		return
	}
	dir := locked(t)
	for p := dir; p != "/"; p = filepath.Dir(p) { // nobody has to get there
		st, err := os.Stat(p)
		if err == nil && st.Mode().Perm()&0o055 != 0o055 { // what others may enter is not ours to change
			err = os.Chmod(p, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestNoPermission$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{"TOOL_TEST_NOBODY=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func locked(t *testing.T) string {
	w := newWorkspace(t, map[string]string{"open": "needle\n", "closed": "needle\n", "dir/x": "needle\n", "seen/x": "needle\n"}, nil)
	for name, mode := range map[string]os.FileMode{"closed": 0, "dir": 0, "seen": 0o555} {
		if err := os.Chmod(filepath.Join(w.dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"open", "seen/x"} {
		if err := os.Chmod(filepath.Join(w.dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.dir, "dir"), 0o755) })
	return w.dir
}

func noPermission(t *testing.T, dir string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	reg, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root})...)
	if err != nil {
		t.Fatal(err)
	}
	w := &workspace{t: t, dir: dir, reg: reg}
	for _, c := range []struct {
		name string
		args obj
		want string
	}{
		{"read_file", obj{"path": "closed"}, "Permission denied for closed."},
		{"read_file", obj{"path": "dir/x"}, "Permission denied for dir/x."},
		{"list_files", obj{"path": "dir"}, "Permission denied for dir."},
		{"list_files", obj{}, "closed\nopen\nseen/x\n[1 directory could not be read]\n"},
		{"grep", obj{"pattern": "needle"}, "open\n1: needle\nseen/x\n1: needle\n[2 matching lines in 2 files searched]\n[not everything was searched: 1 directory could not be read; 1 file could not be read]\n"},
		{"grep", obj{"pattern": "needle", "path": "closed"}, "Permission denied for closed."},
		{"write_file", obj{"path": "seen/y", "content": "x"}, "Permission denied for seen/y."},
		{"edit_file", obj{"path": "seen/x", "old_text": "needle", "new_text": "x"}, "Permission denied for seen/x."},
	} {
		if got := w.call(c.name, c.args).Text; got != c.want {
			t.Errorf("%s %v: %q", c.name, c.args, got)
		}
	}
}

// A walk and a search end with the context, and hand no half of an answer out.
func TestWalksEndWithTheContext(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, tree, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, args := range map[string]string{"grep": `{"pattern":"x"}`, "glob": `{"pattern":"x"}`, "list_files": `{}`} {
		if res, err := w.reg.Call(ctx, name, args); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

// Lines that are longer than what is searched are told, not passed over.
func TestGrepLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<20)
	w := newWorkspace(t, map[string]string{"a": "early" + long + "late\nneedle\n", "b": long + "\r\nneedle", "nul": "text\n" + strings.Repeat("y", 9000) + "\x00needle\n"}, nil)
	for pattern, want := range map[string]string{
		"early":   "a\n1: early" + strings.Repeat("x", 295) + " [line cut, 3145737 bytes long]\n[1 matching line in 3 files searched]\n",
		"late":    "No line matches late in 3 files searched.\n",
		"needle":  "a\n2: needle\nb\n2: needle\nnul\n2: ...",
		"^needle": "a\n2: needle\nb\n2: needle\n[2 matching lines in 3 files searched]\n",
		"a\nb":    "No line matches a\nb in 3 files searched. The pattern has a line break, and each line is searched by itself.\n",
	} {
		got := w.call("grep", obj{"pattern": pattern}).Text
		gap := "[not everything was searched: 2 files with more than 1048576 bytes in a line or 1073741824 in all]\n"
		if !strings.HasPrefix(got, want) || pattern != "early" && !strings.HasSuffix(got, gap) {
			t.Errorf("%q: %.600q", pattern, got)
		}
	}
}

func TestGrepOutputs(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"a": "x\nx\ny\n", "b/c": "x", "d": "y\r\nx\r\n", ".ignore": "no\n", "no": "x\n", "b/no": "x\n", "b/.ignore": "!no\n"}, nil)
	c := conversation{w: w}
	for _, args := range []string{
		`{"pattern":"x","output":"files"}`, `{"pattern":"x","output":"count"}`, `{"pattern":"x","output":"files","limit":2}`, `{"pattern":"x$","output":"count","path":"d"}`,
		`{"pattern":"z","output":"count"}`, `{"pattern":"x","output":"lines"}`, `{"pattern":"x","ignored":true,"output":"files"}`, `{"pattern":"x","path":"no"}`,
		`{"pattern":"X","ignore_case":true,"output":"count","glob":"[ad]"}`,
	} {
		c.call("grep", args)
	}
	golden(t, "grep_outputs.golden", c.b.String())
}

// What the tools hold open is let go.
func TestNoDescriptorIsLeft(t *testing.T) {
	w := hostile(t)
	sh := &fakeShell{run: prints(strings.Repeat("x", 100_000), tool.ShellExit{})}
	v := newWorkspace(t, nil, func(e *tool.Env) { e.Shell, e.Limits.SpillDir, e.Jobs = sh, t.TempDir(), tool.NewJobs() })
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	all := func() {
		for _, name := range []string{"grep", "glob", "list_files"} {
			w.call(name, obj{"pattern": "needle"})
		}
		w.call("list_files", obj{})
		for _, p := range []string{"plain", "loop", "pipe", "device", "nothing", "dir"} {
			w.call("read_file", obj{"path": p})
			w.call("edit_file", obj{"path": p, "old_text": "needle", "new_text": "needle2"})
			w.call("write_file", obj{"path": p, "content": "needle\n"})
		}
		v.call("shell", obj{"command": "x"})
		v.call("read_output", obj{"id": "output-000001"})
	}
	all()
	before := count()
	for range 5 {
		all()
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}

// Patterns of ignore files that are made to take forever are given up, which is
// told, and end with the context.
func TestHostileIgnoreFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, nil)
	rules := strings.Repeat(strings.Repeat("a*", 40)+"b\n", 800)
	dir := ""
	for range 4 {
		dir += "d/"
		w.put(dir+".gitignore", rules+strings.Repeat("# more\n", 10_000), 0o600)
		for i := range 100 {
			w.put(fmt.Sprintf("%s%s%03d", dir, strings.Repeat("a", 100), i), "x\n", 0o600)
		}
	}
	start := time.Now()
	for name, args := range map[string]obj{"list_files": {"limit": 5}, "grep": {"pattern": "nothing"}} {
		got := w.call(name, args).Text
		for _, want := range []string{"of 1 ignore file only the first 65536 bytes hold", "take too long, and not everything they name was left out"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %.2000s", name, got)
			}
		}
	}
	t.Logf("two walks took %v", time.Since(start))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if res, err := w.reg.Call(ctx, "list_files", `{}`); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", res, err)
	}
}

// An expression and the part of a line it is matched with are bounded, so that
// a search ends with the context.
func TestHostileExpressions(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"long": strings.Repeat("a", 3<<20)}, nil)
	huge := strings.Repeat("(?:a|.)*", 9000) + "b"
	for name, args := range map[string]obj{"grep": {"pattern": huge}, "list_files": {"pattern": strings.Repeat("{a,*}", 2000)}} {
		if res := w.call(name, args); !res.IsError || !strings.Contains(res.Text, "The pattern is too large: it takes ") {
			t.Errorf("%s: %.300s", name, res.Text)
		}
	}
	large := strings.Repeat("(?:[^é]?[^à])*", 380) + "é"
	start := time.Now()
	got := w.call("grep", obj{"pattern": large}).Text
	if !strings.Contains(got, "[not everything was searched: 1 file with more than 13131 bytes in a line") {
		t.Errorf("%.100s ... %s", got, got[max(0, len(got)-300):])
	}
	t.Logf("a large expression took %v", time.Since(start))
	w.put("lines", strings.Repeat(strings.Repeat("ab", 2000)+"\n", 10_000), 0o600)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start = time.Now()
	if res, err := w.reg.Call(ctx, "grep", `{"pattern":"`+strings.TrimSuffix(large, "é")+`[éè]","path":"lines"}`); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", res, err)
	}
	t.Logf("a search with an end of 50 ms took %v", time.Since(start))
}
