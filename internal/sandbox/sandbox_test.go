package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
)

// TestMain lets the test binary be the daemon that is killed.
func TestMain(m *testing.M) {
	Helper(os.Args)
	if ws := os.Getenv("SANDBOX_TEST_DAEMON"); ws != "" {
		daemon(ws, os.Getenv("SANDBOX_TEST_KIND"))
		return
	}
	if ws := os.Getenv("SANDBOX_TEST_REPLACED"); ws != "" {
		replaced(ws, os.Getenv("SANDBOX_TEST_KIND"))
		return
	}
	if os.Getenv(apartVariable) != "" {
		if err := furnish(); err != nil {
			fmt.Println("apart:", err)
			os.Exit(1)
		}
	}
	if order := os.Getenv(hiddenVariable); order != "" {
		actHidden(order)
		return
	}
	os.Exit(m.Run())
}

// daemon runs a command that says when it began and never ends.
func daemon(ws, kind string) {
	ctx := context.Background()
	spec := Spec{Workspace: ws}
	r := Unconfined(spec)
	if kind != KindNone {
		s, err := Choose(ctx, Options{Prefer: kind})
		if err == nil {
			r, err = s.Runner(spec)
		}
		if err != nil {
			fmt.Println("daemon:", err)
			os.Exit(1)
		}
	}
	script := "exec 9>>alive; flock -s 9; "
	if kind != KindNone { // walls hold what has left the group as well
		script += "setsid sh -c 'trap \"\" HUP TERM; echo up; while :; do sleep 1000; done' & "
	} else {
		script += "echo up; "
	}
	_, err := r.Run(ctx, Command{Script: script + "exec sleep 1000", Output: os.Stdout})
	fmt.Println("daemon:", err)
}

// replaced runs a command when the file of this program is no more.
func replaced(ws, kind string) {
	exe, err := os.Executable()
	if err == nil {
		err = os.Remove(exe)
	}
	var s *Sandbox
	if err == nil {
		s, err = Choose(context.Background(), Options{Prefer: kind})
	}
	var r Runner
	if err == nil {
		r, err = s.Runner(Spec{Workspace: ws})
	}
	if err == nil {
		_, err = r.Run(context.Background(), Command{Script: "echo through", Output: os.Stdout})
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		fmt.Println(err)
	}
}

// A program whose file was replaced by an update still confines what it runs.
func TestReplacedProgram(t *testing.T) {
	t.Parallel()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{KindBwrap, KindNamespaces, KindLandlock} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			boxOf(t, kind) // skips where there is none
			exe := filepath.Join(t.TempDir(), "program")
			syscall.ForkLock.RLock() // a child that is begun meanwhile would have it open for writing, and nobody could run it
			err := os.WriteFile(exe, self, 0o700)
			syscall.ForkLock.RUnlock()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "SANDBOX_TEST_REPLACED="+t.TempDir(), "SANDBOX_TEST_KIND="+kind)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "through\n" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func box(t *testing.T) *Sandbox {
	t.Helper()
	return boxOf(t, KindBwrap)
}

func boxOf(t *testing.T, kind string) *Sandbox {
	t.Helper()
	s, err := Choose(t.Context(), Options{Prefer: kind})
	if err != nil {
		t.Skipf("%s does not work here: %v", kind, err)
	}
	return s
}

// walls are the kinds that need no engine.
func walls() []string { return []string{KindBwrap, KindNamespaces, KindLandlock} }

// boxes runs f with every kind of wall.
func boxes(t *testing.T, f func(t *testing.T, s *Sandbox)) {
	for _, kind := range walls() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, boxOf(t, kind))
		})
	}
}

// kinds runs f with both runners: what holds for any command holds for both.
func kinds(t *testing.T, f func(t *testing.T, make func(Spec) Runner)) {
	boxes(t, func(t *testing.T, s *Sandbox) {
		f(t, func(spec Spec) Runner {
			r, err := s.Runner(spec)
			if err != nil {
				t.Fatal(err)
			}
			return r
		})
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		f(t, Unconfined)
	})
}

func newSpec(t *testing.T) Spec {
	t.Helper()
	dir := t.TempDir()
	spec := Spec{Workspace: filepath.Join(dir, "作業 space"), Cache: filepath.Join(dir, "cache")}
	if err := os.Mkdir(spec.Workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	return spec
}

func sh(t *testing.T, r Runner, script string) (string, Exit) {
	t.Helper()
	var out bytes.Buffer
	exit, err := r.Run(t.Context(), Command{Script: script, Output: &out, Timeout: time.Minute})
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out.String())
	}
	return out.String(), exit
}

// Nobody makes the directory for temporary files beforehand, and no command
// leaves anything that fails the next.
func TestScratchIsMade(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		spec := newSpec(t)
		spec.Scratch = filepath.Join(t.TempDir(), "not", "yet")
		r := make(spec)
		for range 2 {
			out, exit := sh(t, r, `f=$(mktemp "$TMPDIR/x.XXXXXX") && echo text > "$f" && cat "$f" && echo more > "$HOME/y" && cat "$HOME/y"`)
			if out != "text\nmore\n" || exit.Code != 0 {
				t.Errorf("got %q %+v", out, exit)
			}
		}
	})
}

func TestExit(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		r := make(newSpec(t))
		for _, c := range []struct {
			script, out, signal string
			code                int
		}{
			{"echo out; echo err >&2", "out\nerr\n", "", 0},
			{"exit 7", "", "", 7},
			{"exit 1", "", "", 1},
			{"no-such-program 2>/dev/null", "", "", 127},
			{"kill -KILL $$", "", "SIGKILL", 137},
			{"kill -SEGV $$", "", "SIGSEGV", 139},
			{"cat; echo $?", "0\n", "", 0},
			{"printf '%s' \"it's \\\"quoted\\\"\"; # 日本語", `it's "quoted"`, "", 0},
			{"ulimit -c", "0\n", "", 0},
			{"", "", "", 0},
		} {
			out, exit := sh(t, r, c.script)
			if out != c.out || exit.Code != c.code || exit.Signal != c.signal || exit.TimedOut {
				t.Errorf("%q: got %q %+v", c.script, out, exit)
			}
			if exit.Duration <= 0 {
				t.Errorf("%q: duration %v", c.script, exit.Duration)
			}
		}
	})
}

func TestDir(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		spec := newSpec(t)
		r := make(spec)
		if err := os.MkdirAll(filepath.Join(spec.Workspace, "a b/-c"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc", filepath.Join(spec.Workspace, "out")); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"a b/-c", filepath.Join(spec.Workspace, "a b", "-c")} {
			var out bytes.Buffer
			if _, err := r.Run(t.Context(), Command{Script: "pwd", Dir: dir, Output: &out}); err != nil {
				t.Fatal(err)
			}
			if got, want := out.String(), filepath.Join(spec.Workspace, "a b/-c")+"\n"; got != want {
				t.Errorf("pwd in %q: %q, want %q", dir, got, want)
			}
		}
		for _, dir := range []string{"..", "/etc", "out", "missing", spec.Workspace + "x"} {
			_, err := r.Run(t.Context(), Command{Script: "pwd", Dir: dir})
			if de := (*DirError)(nil); !errors.As(err, &de) {
				t.Errorf("dir %q: %v, want DirError", dir, err)
			}
		}
	})
}

// Models call the workspace /workspace, and find it there.
func TestWorkspaceByItsUsualName(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, s *Sandbox) {
		spec := newSpec(t)
		r, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		out, exit := sh(t, r, "cd /workspace && echo 1 >a && cat /workspace/a && pwd -P")
		if s.Kind() == KindLandlock {
			if _, err := os.Stat(Tree); err != nil && exit.Code == 0 {
				t.Errorf("%s: %q", Tree, out)
			}
			return
		}
		if want := "1\n" + spec.Workspace + "\n"; exit.Code != 0 || out != want {
			t.Errorf("%+v, %q; want %q", exit, out, want)
		}
		if out, exit := sh(t, r, "rm /workspace"); exit.Code == 0 {
			t.Errorf("it is the command's to remove: %s", out)
		}
		if _, err := os.Lstat(filepath.Join(spec.Workspace, "a")); err != nil {
			t.Error(err)
		}
	})
}

func TestConfinedReach(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, s *Sandbox) {
		if s.Kind() == KindLandlock {
			t.Skip("it has no /tmp, no loopback and no /proc of its own")
		}
		spec := newSpec(t)
		base := filepath.Dir(spec.Workspace)
		secret := filepath.Join(base, "secret")
		if err := os.WriteFile(secret, []byte("canary"), 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		spec.Env = map[string]string{"MINE": "a\nb"}
		r, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Confined() {
			t.Error("not confined")
		}
		home, err := os.UserHomeDir()
		if err != nil || home == "/" {
			home = "/root"
		}
		known := `-e '\.' -e '\.\.' -e go` // and what languages are installed in there (decision 049)
		for _, dir := range s.tools.read {
			if rest, below := strings.CutPrefix(dir, home+"/"); below {
				first, _, _ := strings.Cut(rest, "/")
				known += " -e '" + regexp.QuoteMeta(first) + "'"
			}
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for name, script := range map[string]string{
			"loopback of the machine": "exec 3<>/dev/tcp/127.0.0.1/" + port,
			"outside":                 "exec 3<>/dev/tcp/192.0.2.1/80",
			"read secret":             "cat '" + secret + "'",
			"list base":               "ls '" + base + "' | grep secret",
			"read shadow":             "cat /etc/shadow",
			"read private keys":       "ls /etc/ssl/private",
			"list home":               "ls -a '" + home + "' | grep -v -x " + known,
			"list /home":              "ls /home",
			"write root":              "echo x > /new",
			"write /usr":              "echo x > /usr/new",
			"write /etc":              "echo x > /etc/passwd",
			"write /dev":              "echo x > /dev/new",
			"mount":                   "mount -t tmpfs none /tmp",
			"become someone":          "setpriv --reuid 1 true",
			"kill outside":            fmt.Sprintf("kill -0 %d", os.Getpid()+1<<20),
			"see the daemon":          "grep -l sandbox.test /proc/[0-9]*/comm",
			"host sockets":            "ls /run/dbus /var/run/docker.sock",
		} {
			if out, exit := sh(t, r, script); exit.Code == 0 {
				t.Errorf("%s: allowed\n%s", name, out)
			}
		}
		for name, script := range map[string]string{
			"workspace": "echo x > f && cat f", "tmp": "echo x > /tmp/f && echo x > $HOME/f", "shm": "echo x > /dev/shm/f",
			"cache": "mkdir -p $GOCACHE $XDG_CACHE_HOME && echo x > $GOCACHE/f", "null": "echo > /dev/null",
			"own loopback": "command -v python3 >/dev/null || exit 0; python3 -c 'import socket as s; l=s.create_server((\"127.0.0.1\",0)); s.create_connection(l.getsockname())'",
			"no caps":      "grep -q 'CapEff:.0000000000000000' /proc/self/status && grep -q 'NoNewPrivs:.1' /proc/self/status",
			"own session":  "! (echo > /dev/tty) 2>/dev/null",
		} {
			if out, exit := sh(t, r, script); exit.Code != 0 {
				t.Errorf("%s: refused\n%s", name, out)
			}
		}
		if got, err := os.ReadFile(filepath.Join(spec.Workspace, "f")); err != nil || string(got) != "x\n" {
			t.Errorf("file of the workspace: %q, %v", got, err)
		}
		// The way to the workspace may be made of temporary directories; what is
		// written there never leaves the sandbox.
		_, _ = sh(t, r, "echo x > '"+base+"/new'; echo x > '"+base+"/../new'")
		for _, p := range []string{base + "/new", filepath.Dir(base) + "/new"} {
			if _, err := os.Stat(p); err == nil {
				t.Errorf("%s was written from inside", p)
			}
		}
		// What is temporary belongs to the commands of one Runner.
		if out, _ := sh(t, r, "cat /tmp/f"); out != "x\n" {
			t.Errorf("a file in /tmp is gone with its command: %q", out)
		}
		other, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		if out, exit := sh(t, other, "ls -A /tmp $HOME /dev/shm"); exit.Code != 0 || strings.Contains(out, "f\n") {
			t.Errorf("temporary files of another Runner:\n%s", out)
		}
	})
}

// Not parallel: it sets a variable of the daemon.
func TestEnvironment(t *testing.T) {
	t.Setenv("TORI_CANARY", "canary-value")
	t.Setenv("GITHUB_TOKEN", "canary-value")
	t.Run("kinds", func(t *testing.T) {
		for _, kind := range append(walls(), KindNone) {
			spec := newSpec(t)
			spec.Env = map[string]string{"MINE": "a\nb=c", "TERM": "mine"}
			r := Unconfined(spec)
			if kind != KindNone {
				var err error
				if r, err = boxOf(t, kind).Runner(spec); err != nil {
					t.Fatal(err)
				}
			}
			out, _ := sh(t, r, "env; cat /proc/self/environ")
			if kind != KindNone {
				more, _ := sh(t, r, "cat /proc/*/environ /proc/*/cmdline; ls /proc")
				out += more
			}
			if strings.Contains(out, "canary") || strings.Contains(out, "SANDBOX_TEST") {
				t.Errorf("%s: the daemon's environment is seen:\n%s", kind, out)
			}
			for _, want := range []string{"LANG=C.UTF-8", "TERM=mine", "MINE=a\nb=c", "GOPROXY=off", "GOCACHE=" + spec.Cache} {
				if !strings.Contains(out, want) {
					t.Errorf("%s: no %q in\n%s", kind, want, out)
				}
			}
		}
	})
}

func TestDescriptors(t *testing.T) {
	t.Parallel()
	leak, err := unix.Dup(0) // without close-on-exec, as inherited from a parent
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(leak) }()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		out, _ := sh(t, make(newSpec(t)), "for i in $(seq 0 64); do readlink /proc/self/fd/$i; done")
		for _, target := range strings.Fields(out) {
			if target != "/dev/null" && !strings.HasPrefix(target, "pipe:") && !strings.HasPrefix(target, "/proc/") {
				t.Errorf("descriptor %s in\n%s", target, out)
			}
		}
		if n := strings.Count(out, "pipe:"); n != 2 {
			t.Errorf("%d pipes, want stdout and stderr:\n%s", n, out)
		}
	})
}

func TestGitReadOnly(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, s *Sandbox) {
		if s.Kind() == KindLandlock {
			t.Skip("the .git file is put back afterwards")
		}
		spec := newSpec(t)
		spec.GitDir = filepath.Join(filepath.Dir(spec.Workspace), "git dir")
		for _, args := range [][]string{
			{"init", "-q", "--separate-git-dir", spec.GitDir, spec.Workspace},
			{"-C", spec.Workspace, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"},
		} {
			cmd := exec.Command("git", args...)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
		r, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		if out, exit := sh(t, r, "echo x > new && git status --porcelain"); exit.Code != 0 || out != "?? new\n" {
			t.Errorf("git status: %+v\n%s", exit, out)
		}
		for _, script := range []string{
			"git config core.hooksPath /tmp", "git commit --allow-empty -m x", "rm -f .git; test ! -e .git",
			"echo gitdir: /tmp > .git", "mv .git old", "touch '" + spec.GitDir + "/hooks/pre-commit'",
		} {
			if out, exit := sh(t, r, script); exit.Code == 0 {
				t.Errorf("%s: allowed\n%s", script, out)
			}
		}
	})
}

func TestGoOffline(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, s *Sandbox) {
		if s.tools.goRoot == "" {
			t.Skip("no go on this machine")
		}
		spec := newSpec(t)
		spec.MemoryMB = 2048
		src := "package x\nimport (\"testing\"; \"github.com/google/uuid\")\nfunc TestX(t *testing.T) { _ = uuid.New(); t.Log(t.TempDir()) }\n"
		mod := "module x\n\ngo 1.26\n\nrequire github.com/google/uuid v1.6.0\n"
		sum, err := os.ReadFile("../../go.sum")
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"x_test.go": src, "go.mod": mod, "go.sum": string(sum)} {
			if err := os.WriteFile(filepath.Join(spec.Workspace, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// The build cache of this test spares compiling the standard library.
		out, err := exec.Command(filepath.Join(s.tools.goRoot, "bin", "go"), "env", "GOCACHE").Output()
		if err != nil {
			t.Fatal(err)
		}
		spec.Cache = strings.TrimSpace(string(out))
		if _, err := os.Stat(spec.Cache); err != nil {
			t.Skipf("no build cache: %v", err)
		}
		spec.Env = map[string]string{"GOCACHE": spec.Cache}
		r, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		if out, exit := sh(t, r, "go test ./..."); exit.Code != 0 || !strings.Contains(out, "ok ") {
			t.Errorf("go test: %+v\n%s", exit, out)
		}
	})
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("needs perl")
	}
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		spec := newSpec(t)
		spec.MemoryMB = 64
		r := make(spec)
		if out, exit := sh(t, r, "perl -e '$x = \"a\" x (8<<20); print length $x'"); exit.Code != 0 {
			t.Errorf("8 MiB of 64: %+v %s", exit, out)
		}
		if out, exit := sh(t, r, "perl -e '$x = \"a\" x (256<<20); print length $x'"); exit.Code == 0 {
			t.Errorf("256 MiB of 64 were given: %s", out)
		}
	})
}

func TestBigOutput(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		r := make(newSpec(t))
		var n counter
		if _, err := r.Run(t.Context(), Command{Script: "head -c 50000000 /dev/zero", Output: &n}); err != nil {
			t.Fatal(err)
		}
		if n != 50_000_000 {
			t.Errorf("%d bytes", n)
		}
		full := errors.New("disk full")
		pr, pw := io.Pipe()
		_ = pr.CloseWithError(full)
		if _, err := r.Run(t.Context(), Command{Script: "yes | head -c 1000000", Output: pw}); !errors.Is(err, full) {
			t.Errorf("a failing writer: %v", err)
		}
	})
}

type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// flocked reports whether a process still holds the lock on path: commands
// hold one through a descriptor that all their children inherit.
func flocked(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

func TestTimeoutKillsTree(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		spec := newSpec(t)
		r := make(spec)
		for name, script := range map[string]string{
			"polite":   "exec 9>>alive; flock -s 9; sleep 1000 & sleep 1000",
			"stubborn": "exec 9>>alive; flock -s 9; trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & sleep 1000; sleep 1000",
		} {
			var out bytes.Buffer
			exit, err := r.Run(t.Context(), Command{Script: script, Timeout: 200 * time.Millisecond, Output: &out})
			if err != nil || !exit.TimedOut || exit.Code == 0 {
				t.Errorf("%s: %+v, %v", name, exit, err)
			}
			if exit.Duration > 8*time.Second {
				t.Errorf("%s: took %v", name, exit.Duration)
			}
			if flocked(t, filepath.Join(spec.Workspace, "alive")) {
				t.Errorf("%s: a process lives on", name)
			}
		}
		// A command that uses its grace to tidy up has still timed out.
		exit, err := r.Run(t.Context(), Command{Script: "trap 'touch tidy; exit 0' TERM; while :; do sleep 0.01; done", Timeout: time.Second})
		if err != nil || !exit.TimedOut {
			t.Errorf("tidy: %+v, %v", exit, err)
		}
		if _, err := os.Stat(filepath.Join(spec.Workspace, "tidy")); err != nil {
			t.Error("no time to tidy up after SIGTERM")
		}
	})
}

func TestBackgroundEndsWithCommand(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		spec := newSpec(t)
		r := make(spec)
		exit, err := r.Run(t.Context(), Command{Script: "exec 9>>alive; flock -s 9; sleep 1000 & echo hi"})
		if err != nil || exit.Code != 0 || exit.Duration > time.Second {
			t.Errorf("%+v, %v", exit, err)
		}
		if flocked(t, filepath.Join(spec.Workspace, "alive")) {
			t.Error("the background process lives on")
		}
	})
	boxes(t, func(t *testing.T, s *Sandbox) {
		spec := newSpec(t)
		r, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Run(t.Context(), Command{Script: "exec 9>>alive; flock -s 9; setsid nohup sleep 1000 & sleep 0.05; echo hi"}); err != nil {
			t.Error(err)
		}
		if flocked(t, filepath.Join(spec.Workspace, "alive")) {
			t.Error("the daemonised process lives on")
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		spec := newSpec(t)
		r := make(spec)
		ctx, cancel := context.WithCancel(t.Context())
		out := writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })
		_, err := r.Run(ctx, Command{Script: "exec 9>>alive; flock -s 9; trap 'exit 0' TERM; echo up; sleep 1000 & wait", Output: out})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if flocked(t, filepath.Join(spec.Workspace, "alive")) {
			t.Error("a process lives on")
		}
		if _, err := r.Run(ctx, Command{Script: "touch ran"}); !errors.Is(err, context.Canceled) {
			t.Errorf("after cancel: %v", err)
		}
		if _, err := os.Stat(filepath.Join(spec.Workspace, "ran")); err == nil {
			t.Error("a command ran after cancel")
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestDiesWithDaemon(t *testing.T) {
	t.Parallel()
	for _, kind := range append(walls(), KindNone) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if kind != KindNone {
				boxOf(t, kind)
			}
			ws := newSpec(t).Workspace
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "SANDBOX_TEST_DAEMON="+ws, "SANDBOX_TEST_KIND="+kind)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(stdout).ReadString('\n')
			if line != "up\n" {
				t.Fatalf("daemon: %q, %v", line, err)
			}
			if !flocked(t, filepath.Join(ws, "alive")) {
				t.Fatal("the command holds no lock: the test proves nothing")
			}
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			// The kernel kills the rest on its own; the lock is free when it is done.
			f, err := os.OpenFile(filepath.Join(ws, "alive"), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			free := make(chan error, 1)
			go func() { free <- unix.Flock(int(f.Fd()), unix.LOCK_EX) }()
			select {
			case err := <-free:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the command outlives the daemon")
			}
		})
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		spec := newSpec(t)
		path := filepath.Join(filepath.Dir(spec.Workspace), "work.lock")
		hold, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(hold.Fd()), unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		spec.Hold = hold
		r := make(spec)
		// Our descriptor goes while the command runs; the lock must stay.
		held := false
		out := writerFunc(func(b []byte) (int, error) {
			_ = hold.Close()
			held = flocked(t, path)
			return len(b), nil
		})
		if _, err := r.Run(t.Context(), Command{Script: "echo up; sleep 0.3", Output: out}); err != nil {
			t.Fatal(err)
		}
		if !held {
			t.Error("the lock was free while the command ran")
		}
		if flocked(t, path) {
			t.Error("the lock is held after the command")
		}
	})
}

// What a command sees of other processes leads to no descriptor that it was
// not given, least of all to the lock of the task.
func TestHoldOutOfReach(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, s *Sandbox) {
		spec := newSpec(t)
		path := filepath.Join(filepath.Dir(spec.Workspace), "work.lock")
		if err := os.WriteFile(path, []byte("lock"), 0o600); err != nil {
			t.Fatal(err)
		}
		hold, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = hold.Close() }()
		if err := unix.Flock(int(hold.Fd()), unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		spec.Hold = hold
		r, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		out, _ := sh(t, r, `sleep 5 & for f in /proc/[0-9]*/fd/*; do
			case $(readlink "$f") in *work.lock*) echo "seen: $f"; esac
			[ -f "$f" ] && { chmod 777 "$f"; echo x > "$f"; flock -u 9 9<>"$f"; } 2>/dev/null
		done; true`)
		if strings.Contains(out, "seen") {
			t.Error(out)
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "lock" || st.Mode().Perm() != 0o600 {
			t.Errorf("the lock was changed: %q, %v, %v", got, st.Mode(), err)
		}
		if !flocked(t, path) {
			t.Error("the lock was let go")
		}
	})
}

// Everything that runs stands still from Suspend to resume.
func TestRest(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{KindBwrap, KindNamespaces} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			spec := newSpec(t)
			r, err := boxOf(t, kind).Runner(spec)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			p, err := r.Start(t.Context(), Command{Script: `trap "" TERM HUP; echo up; while :; do echo x >> busy; (setsid sh -c 'echo y >> busy' &); sleep 0.005; done`})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(p.Stdout, make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			size := func() int64 {
				st, err := os.Stat(filepath.Join(spec.Workspace, "busy"))
				if err != nil {
					return 0
				}
				return st.Size()
			}
			for range 20 {
				resume, err := r.Suspend(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				before := size()
				for range 50 {
					runtime.Gosched()
				}
				if out, exit := sh(t, Unconfined(spec), "sleep 0.05"); exit.Code != 0 {
					t.Error(out)
				}
				if after := size(); after != before {
					t.Fatalf("it wrote %d bytes while it rested", after-before)
				}
				resume()
			}
			before := size()
			for size() == before {
				runtime.Gosched() // it goes on, or the test times out
			}
			p.Kill()
			if _, err := p.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Memory is counted of all commands together, of several Runners and of files in
// memory; who takes the most of it is ended.
func TestMemoryTogether(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("needs perl")
	}
	kinds(t, func(t *testing.T, of func(Spec) Runner) {
		spec := newSpec(t)
		spec.Limits.Memory, spec.Usage = 160<<20, &SharedUsage{}
		one, two := of(spec), of(spec)
		var ended []Exit
		var processes []*Process
		for i, r := range []Runner{one, two, one, two} {
			// Each alone may: the last and largest is too much.
			p, err := r.Start(t.Context(), Command{Script: fmt.Sprintf("exec perl -e '$x = \"a\" x (%d<<20); $| = 1; print \"up\"; sleep 100'", 8+i), Output: nil})
			if err != nil {
				t.Fatal(err)
			}
			processes = append(processes, p)
			if i < 3 {
				if _, err := io.ReadFull(p.Stdout, make([]byte, 2)); err != nil {
					t.Fatal(err)
				}
			}
			go func() { _, _ = io.Copy(io.Discard, p.Stderr) }()
		}
		big, err := one.Start(t.Context(), Command{Script: "exec perl -e '$x = \"a\" x (60<<20); sleep 100'", Output: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		exit, err := big.Wait()
		if err != nil || exit.Limit != "memory" {
			t.Errorf("the largest: %+v, %v", exit, err)
		}
		for _, p := range processes {
			p.Kill()
			exit, _ := p.Wait()
			ended = append(ended, exit)
		}
		for i, e := range ended {
			if e.Limit != "" {
				t.Errorf("command %d was ended by %s", i, e.Limit)
			}
		}
	})
}

// What commands leave on the disk counts for the next ones.
func TestDiskTogether(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, make func(Spec) Runner) {
		spec := newSpec(t)
		spec.Limits.Disk, spec.Usage = 64<<20, &SharedUsage{}
		r := make(spec)
		if out, exit := sh(t, r, "head -c 40000000 /dev/zero > big-0"); exit.Code != 0 {
			t.Fatalf("%+v\n%s", exit, out)
		}
		if out, exit := sh(t, r, "head -c 40000000 /dev/zero > big-1; sleep 10"); exit.Limit != "disk" {
			t.Errorf("80 MB of 64 MiB: %+v\n%s", exit, out)
		}
		if out, exit := sh(t, r, "rm big-*; sleep 1"); exit.Code != 0 {
			t.Errorf("tidied up: %+v\n%s", exit, out)
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, s *Sandbox) {
		ok := newSpec(t)
		for name, change := range map[string]func(*Spec){
			"no workspace":       func(s *Spec) { s.Workspace = "" },
			"relative workspace": func(s *Spec) { s.Workspace = "x" },
			"missing workspace":  func(s *Spec) { s.Workspace += "x" },
			"whole disk":         func(s *Spec) { s.Workspace = "/" },
			"whole disk to read": func(s *Spec) { s.ReadOnly = []string{"/usr/.."} },
			"relative cache":     func(s *Spec) { s.Cache = "x" },
			"NUL":                func(s *Spec) { s.GitDir = "/a\x00--bind" },
			"variable":           func(s *Spec) { s.Env = map[string]string{"A=B": "c"} },
			"variable's value":   func(s *Spec) { s.Env = map[string]string{"A": "\x00--bind"} },
			"memory":             func(s *Spec) { s.MemoryMB = -1 },
		} {
			spec := ok
			change(&spec)
			if _, err := s.Runner(spec); err == nil {
				t.Errorf("%s: accepted", name)
			}
			if _, err := Unconfined(spec).Run(t.Context(), Command{Script: ":"}); err == nil {
				t.Errorf("%s: run unconfined", name)
			}
		}
		r, err := s.Runner(ok)
		if err != nil {
			t.Fatal(err)
		}
		for _, script := range []string{"a\x00b", strings.Repeat("x", maxScript)} {
			if _, err := r.Run(t.Context(), Command{Script: script}); err == nil {
				t.Errorf("script of %d bytes: accepted", len(script))
			}
		}
		if out, exit := sh(t, r, ": "+strings.Repeat("x", maxScript-3)); exit.Code != 0 {
			t.Errorf("longest script: %+v %s", exit, out)
		}
		// A sandbox that cannot be built is an error and not a failed command.
		gone := ok
		gone.GitDir = filepath.Join(ok.Cache, "missing")
		if r, err = s.Runner(gone); err != nil {
			t.Fatal(err)
		}
		if exit, err := r.Run(t.Context(), Command{Script: "true"}); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("mount of a missing directory: %+v, %v", exit, err)
		}
	})
}

func TestDetectFailures(t *testing.T) {
	t.Parallel()
	fake := filepath.Join(t.TempDir(), "bwrap")
	disktest.Program(t, fake, "#!/bin/sh\necho bwrap: No permissions to create new namespace >&2\nexit 1\n")
	_, err := detectAt(t.Context(), fake)
	var e *i18n.Error
	if !errors.As(err, &e) || e.Key != "sandbox.broken" || !strings.Contains(err.Error(), "No permissions") || !strings.Contains(err.Error(), "bubblewrap") {
		t.Errorf("broken bwrap: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := detectAt(ctx, fake); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMountOrder(t *testing.T) {
	t.Parallel()
	s := &Sandbox{}
	got := s.bwrapMounts(s.taskMounts(Spec{Workspace: "/b/tree", GitDir: "/b/tree/git", Cache: "/b/cache", ReadOnly: []string{"/b", "/b/tree/sub"}}), 0)
	want := []string{
		"--ro-bind-try", "/b", "/b", "--bind", "/b/cache", "/b/cache", "--bind", "/b/tree", "/b/tree",
		"--ro-bind", "/b/tree/git", "/b/tree/git", "--ro-bind-try", "/b/tree/sub", "/b/tree/sub",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// Languages that a user installed below the home, by whatever shim, and the package
// caches of which tools take a read-only one are there for commands; nothing beside them is.
func TestToolchainsOfAHome(t *testing.T) {
	home := t.TempDir()
	script := func(name, text string) {
		p := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("shims/rustc", "echo "+home+"/.rustup/toolchains/stable")
	script(".rustup/toolchains/stable/bin/cargo", "echo it is cargo")
	script("shims/python3", "echo "+home+"/.local") // where everything else is, too
	script(".local/bin/python3", "echo it is python")
	script("shims/node", "exit 1")
	script(".m2/repository/a.pom", "")
	script(".m2/settings.xml", "secret")
	script(".gradle/caches/modules-2/a", "")
	script(".gradle/gradle.properties", "secret")
	t.Setenv("HOME", home)
	t.Setenv("PATH", filepath.Join(home, "shims")+":"+os.Getenv("PATH"))
	boxes(t, func(t *testing.T, s *Sandbox) {
		spec := newSpec(t)
		spec.Hide = []string{home}
		r, err := s.Runner(spec)
		if err != nil {
			t.Fatal(err)
		}
		out, exit := sh(t, r, `cargo && ls "${MAVEN_ARGS#*tail=}" && ls "$GRADLE_RO_DEP_CACHE/modules-2"`)
		if exit.Code != 0 || out != "it is cargo\na.pom\na\n" {
			t.Errorf("%+v\n%s", exit, out)
		}
		if out, _ := sh(t, r, "cat "+home+"/.m2/settings.xml "+home+"/.gradle/gradle.properties "+home+"/.local/bin/python3 "+home+"/shims/rustc 2>/dev/null; echo $PATH"); strings.Contains(out, "secret") || strings.Contains(out, "it is") || strings.Contains(out, "#!") || strings.Contains(out, ".local") {
			t.Error(out)
		}
	})
}
