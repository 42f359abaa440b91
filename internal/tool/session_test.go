package tool_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool"
)

// realShell runs commands for real, without a wall.
type realShell struct{ runner sandbox.Runner }

func (s realShell) Run(ctx context.Context, script, input, dir string, timeout time.Duration, out io.Writer) (tool.ShellExit, error) {
	e, err := s.runner.Run(ctx, sandbox.Command{Script: script, Input: input, Dir: dir, Timeout: timeout, Output: out})
	return tool.ShellExit{Code: e.Code, TimedOut: e.TimedOut, Signal: e.Signal}, err
}

// newShell is a workspace with a real shell.
func newShell(t *testing.T, set func(*tool.Env)) *workspace {
	t.Helper()
	return newWorkspace(t, map[string]string{"sub/f": "x"}, func(e *tool.Env) {
		e.Shell = realShell{sandbox.Unconfined(sandbox.Spec{Workspace: e.Root.Name(), Scratch: t.TempDir()})}
		e.Dir, e.Jobs = e.Root.Name(), tool.NewJobs()
		t.Cleanup(func() { e.Jobs.Close() })
		if set != nil {
			set(e)
		}
		jobs := e.Jobs
		t.Cleanup(func() { jobs.Close() })
	})
}

func (w *workspace) shell(command string) string {
	w.t.Helper()
	return w.call("shell", obj{"command": command}).Text
}

func TestSession(t *testing.T) {
	t.Parallel()
	w := newShell(t, nil)
	for _, c := range []struct{ command, want string }{
		{"pwd | sed s,.*/,,; echo $0 | sed s,.*/,,", filepath.Base(w.dir) + "\nbash\n[exit code 0]"},
		{"cd sub; export A='it'\\''s \"$HOME\n2\" \\\\ é'; B=2; export C=3", "[exit code 0; now in sub]"},
		{`printf '%s|%s|%s\n' "$A" "$B" "$C"; ls`, "it's \"$HOME\n2\" \\\\ é||3\nf\n[exit code 0; now in sub]"},
		{"unset C; cd ..; exit 3", "[exit code 3]"},
		{"(exit 4) | cat", "[exit code 4]"},
		{`echo "${C-gone}"`, "gone\n[exit code 0]"},
		{"unset PATH; unset A; export D=4", "[exit code 0]"},
		{`echo "$D"; ls`, "4\nbash: line 1: ls: No such file or directory\n[exit code 127]"},
		{"export PATH=/usr/bin:/bin", "[exit code 0]"},
		{"cd /tmp", "[exit code 0; /tmp is outside of the workspace; the next command runs in the workspace]"},
		{"mkdir x; cd x; rmdir ../x", "[exit code 0; the directory x is gone; the next command runs in the workspace]"},
		{"set -eu; export E=5; cd sub; false; echo no", "[exit code 1; now in sub]"},
		{"echo $E; cd ..", "5\n[exit code 0]"},
		{"exec >out 2>&1; export F=6; echo hidden", "[exit code 0]"},
		{"echo $F; cat out; rm out", "6\nhidden\n[exit code 0]"},
		{"exec 9>lock; export G=7; echo x >&9", "[exit code 0]"},
		{"echo $G; cat lock; rm lock", "7\nx\n[exit code 0]"},
		{"(cd sub; export H=8); echo \"${H-none}\"", "none\n[exit code 0]"},
		{"trap 'echo bye' EXIT; export I=9", "bye\n[exit code 0]"},
		{"echo \"${I-a trap of its own hides what it leaves}\"", "a trap of its own hides what it leaves\n[exit code 0]"},
		{"if then", "bash: eval: line 1: syntax error near unexpected token `then'\nbash: eval: line 1: `if then'\n[exit code 2]"},
		{"cat <<EOF\na $E\nEOF", "a 5\n[exit code 0]"},
		{"# a comment", "[exit code 0]"},
		{"set -x; cd sub", "++ cd sub\n[exit code 0; now in sub]"},
		{"cd ..; cat", "[exit code 0]"}, // it reads, and there is no input
		{"printf 'a\\0b\\0'", "a\ufffdb\ufffd\n[exit code 0]"},
		{"export BIG=$(head -c 30000 /dev/zero | tr '\\0' x)", "[exit code 0; the exported variables are longer than 24576 bytes and are not kept]"},
		{"echo ${#BIG} $E", "0 5\n[exit code 0]"},
		{"kill -9 $$", "[killed by SIGKILL: maybe it needed more memory than the sandbox has]"},
		{"echo $E", "5\n[exit code 0]"},
	} {
		if got := strings.ReplaceAll(w.shell(c.command), "/bin/bash:", "bash:"); got != c.want {
			t.Errorf("%s\ngave %q\nwant %q", c.command, got, c.want)
		}
	}
	if got := w.call("shell", obj{"command": "pwd | sed s,.*/,,", "dir": "sub"}).Text; got != "sub\n[exit code 0; now in sub]" {
		t.Errorf("with dir: %s", got)
	}
}

// Marks of one call mean nothing in another, and a report that does not end
// hides nothing of what came before.
func TestSessionOfAShellWithoutBash(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"sub/f": ""}, func(e *tool.Env) {
		e.Dir, e.Shell = e.Root.Name(), dash{realShell{sandbox.Unconfined(sandbox.Spec{Workspace: e.Root.Name(), Scratch: t.TempDir()})}}
	})
	for _, c := range []struct{ command, want string }{
		{"cd sub; export A=\"it's\" B=\"$(printf '1\\n\\201')\"", "[exit code 0; now in sub]"},
		{"echo $A; echo \"$B\" | wc -c; cd ..; exit 2", "it's\n4\n[exit code 2]"},
		{"if (set -o pipefail) 2>/dev/null; then (exit 4) | cat; else exit 4; fi", "[exit code 4]"}, // dash knows it since 0.5.13
	} {
		if got := w.shell(c.command); got != c.want {
			t.Errorf("%s gave %q, want %q", c.command, got, c.want)
		}
	}
}

// dash runs its scripts with /bin/sh.
type dash struct{ tool.Shell }

func (d dash) Run(ctx context.Context, script, input, dir string, timeout time.Duration, out io.Writer) (tool.ShellExit, error) {
	return d.Shell.Run(ctx, "exec /bin/sh -c '"+strings.ReplaceAll(script, "'", `'\''`)+"'", input, dir, timeout, out)
}

func TestJobs(t *testing.T) {
	t.Parallel()
	w := newShell(t, func(e *tool.Env) { e.Limits.SpillDir = t.TempDir() })
	job := func(args obj) string { return w.call("shell_job", args).Text }
	if got := job(obj{"action": "list"}); got != "There are no jobs." {
		t.Error(got)
	}
	if got := job(obj{"id": 1}); got != "There is no job 1: none was started since the run began or went on. Jobs end with the run." {
		t.Error(got)
	}
	w.shell("export WHO=you; cd sub; mkfifo gate")
	start := w.call("shell", obj{"command": "echo hello $WHO; cat gate; cd /; export WHO=me; exit 4", "background": true})
	if start.Text != `Started job 1. See its output with shell_job {"id": 1}.` {
		t.Error(start.Text)
	}
	if got := w.shell("echo $WHO; echo opened > gate"); !strings.HasPrefix(got, "you\n[exit code 0; now in sub]") {
		t.Error(got)
	}
	if got := job(obj{"id": 1, "action": "wait"}); got != "hello you\nopened\n[job 1 ended: exit code 4; this is the end of 17 bytes]" {
		t.Error(got)
	}
	if got := job(obj{"id": 1, "offset": 6}); got != "you\nopened\n[job 1 ended: exit code 4; this is the end of 17 bytes]" {
		t.Error(got)
	}
	if got := job(obj{"id": 1, "offset": 99}); got != "[job 1 ended: exit code 4; this is the end of 17 bytes]" {
		t.Error(got)
	}
	w.call("shell", obj{"command": "trap '' TERM; echo ready; sleep 1000; sleep 1000", "background": true})
	if got := w.call("shell_job", obj{"id": 2, "action": "wait", "wait_seconds": 1}).Text; got != "ready\n[job 2 running; 6 bytes so far, continue with offset=6]" {
		t.Error(got)
	}
	if got := job(obj{"action": "list"}); got != "1\tended: exit code 4\techo hello $WHO; cat gate; cd /; export WHO=me; exit 4\n2\trunning\ttrap '' TERM; echo ready; sleep 1000; sleep 1000\n" {
		t.Error(got)
	}
	if got := job(obj{"id": 2, "action": "kill"}); got != "ready\n[job 2 ended: stopped; this is the end of 6 bytes]" {
		t.Error(got)
	}
	if got := job(obj{"id": 9}); got != "There is no job 9; the last is 2. See shell_job with action list." {
		t.Error(got)
	}
	if got := job(obj{}); !strings.HasPrefix(got, "id is missing") {
		t.Error(got)
	}
}

// That a job ended is told with the next command, once.
func TestJobsAreAnnounced(t *testing.T) {
	t.Parallel()
	w := newShell(t, nil)
	w.shell("mkfifo done")
	w.call("shell", obj{"command": "exec 5<>done; false", "background": true})
	var got string
	for got = w.shell("true"); got == "[exit code 0]"; got = w.shell("true") {
		time.Sleep(time.Millisecond)
	}
	if got != "[exit code 0]\n[job 1 ended: exit code 1]" {
		t.Error(got)
	}
	if got := w.shell("true"); got != "[exit code 0]" {
		t.Error(got)
	}
}

func TestJobsAreFew(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	sh := &fakeShell{run: func(ctx context.Context, _ io.Writer) (tool.ShellExit, error) {
		select {
		case <-release:
			return tool.ShellExit{}, nil
		case <-ctx.Done():
			return tool.ShellExit{}, ctx.Err()
		}
	}}
	jobs := tool.NewJobs()
	w := newWorkspace(t, nil, func(e *tool.Env) { e.Shell, e.Jobs = lockedShell{sh, new(sync.Mutex)}, jobs })
	for i := range 9 {
		res := w.call("shell", obj{"command": "x", "background": true})
		if res.IsError != (i == 8) {
			t.Errorf("job %d: %s", i+1, res.Text)
		}
	}
	if n := jobs.Stop(); n != 8 {
		t.Errorf("%d were stopped", n)
	}
	if res := w.call("shell_job", obj{"id": 3}); res.Text != "[job 3 ended: stopped; it printed nothing]" || !res.IsError {
		t.Error(res.Text)
	}
	w.call("shell", obj{"command": "x", "background": true})
	jobs.Close()
	if res := w.call("shell", obj{"command": "x", "background": true}); res.Text != "The run is ending; no job can be started." {
		t.Error(res.Text)
	}
}

// lockedShell lets several use a fake one.
type lockedShell struct {
	sh *fakeShell
	mu *sync.Mutex
}

func (l lockedShell) Run(ctx context.Context, _, _, _ string, _ time.Duration, out io.Writer) (tool.ShellExit, error) {
	return l.sh.run(ctx, out)
}

// A job that prints without end is stopped, and what is kept of it is bounded
// and said.
func TestJobOutputIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newShell(t, func(e *tool.Env) {
		e.Limits.SpillDir, e.Limits.MaxSpill, e.Limits.MaxPrint = dir, 100_000, 5_000_000
	})
	w.call("shell", obj{"command": "seq 1 100000000", "background": true})
	res := w.call("shell_job", obj{"id": 1, "action": "wait"})
	if !strings.HasPrefix(res.Text, "1\n2\n3\n") || !strings.Contains(res.Text, "[job 1 ended: stopped: it printed too much. Send the output to a file, or print less; ") || !strings.Contains(res.Text, "of 5000000 bytes are left, continue with offset=") {
		t.Error(res.Text[max(0, len(res.Text)-300):])
	}
	res = w.call("shell_job", obj{"id": 1, "offset": 100_000})
	if !strings.HasPrefix(res.Text, "[bytes 100000 to ") || len(res.Text) > tool.DefaultMaxOutput {
		t.Errorf("%d bytes: %.200s", len(res.Text), res.Text)
	}
	res = w.call("shell_job", obj{"id": 1, "offset": 4_999_990})
	if !strings.Contains(res.Text, "this is the end of 5000000 bytes; recall has it as output-000001]") {
		t.Error(res.Text)
	}
	res = w.call("read_output", obj{"id": "output-000001", "from_line": 17000, "limit": 1})
	if !strings.HasPrefix(res.Text, "17000\t17000\n[1 line of output-000001 shown, ") {
		t.Error(res.Text)
	}
	res = w.call("shell", obj{"command": "yes"})
	if !strings.HasSuffix(res.Text, "[stopped: it printed too much. Send the output to a file, or print less]") || !res.IsError || !strings.Contains(res.Text, "recall has the first 100000 bytes as output-000002 ...]") {
		t.Error(res.Text[max(0, len(res.Text)-300):])
	}
}

// Whatever a command does to stay, nothing of it is left once its result is
// there, and the result says what happened.
func TestStubbornCommands(t *testing.T) {
	t.Parallel()
	w := newShell(t, nil)
	for _, c := range []struct{ command, want string }{
		{"sleep 1234 & echo started", "started\n[exit code 0]"},
		{"trap '' TERM; while :; do sleep 1; done", "[timed out: stopped after 1 seconds. Give a larger timeout_seconds (at most 600), run less at once, or set background]"},
		{"read x; echo \"got $?\"", "got 1\n[exit code 0]"},
		{"nohup sleep 1235 >/dev/null 2>&1 & disown; echo x", "x\n[exit code 0]"},
	} {
		if got := w.call("shell", obj{"command": c.command, "timeout_seconds": 1}).Text; got != c.want {
			t.Errorf("%s gave %q", c.command, got)
		}
	}
	for _, arg := range []string{"1234", "1235"} {
		if pid := processWith(t, "sleep\x00"+arg); pid != "" {
			t.Errorf("sleep %s is alive as %s", arg, pid)
		}
	}
}

// In the sandbox not even what leaves its session stays.
func TestDaemonsEndInTheSandbox(t *testing.T) {
	t.Parallel()
	box, err := sandbox.Detect(t.Context())
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	runner, err := box.Runner(sandbox.Spec{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	jobs := tool.NewJobs()
	t.Cleanup(jobs.Close)
	reg, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root, Shell: realShell{runner}, Jobs: jobs})...)
	if err != nil {
		t.Fatal(err)
	}
	w := &workspace{t: t, dir: dir, reg: reg}
	if got := w.shell("mkdir sub; cd sub; export A=1; setsid sh -c 'setsid sleep 1236 >/dev/null 2>&1 &' & sleep 0.2; echo x"); got != "x\n[exit code 0; now in sub]" {
		t.Error(got)
	}
	if got := w.shell("echo $A; ps ax 2>/dev/null | grep -c '[s]leep 1236'; pwd | sed s,.*/,,"); got != "1\n0\nsub\n[exit code 0; now in sub]" {
		t.Error(got)
	}
	w.call("shell", obj{"command": "setsid setsid sleep 1236", "background": true})
	jobs.Close()
	if pid := processWith(t, "sleep\x001236"); pid != "" {
		t.Errorf("sleep is alive as %s", pid)
	}
}

// processWith returns the process whose command line begins like this.
func processWith(t *testing.T, cmdline string) string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if b, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(b), cmdline+"\x00") {
			return filepath.Base(filepath.Dir(file))
		}
	}
	return ""
}

// The output reaches the reader without the marks however it arrives.
func TestReportsAreTakenOut(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 7, 100_000} {
		sh := &fakeShell{}
		w := newWorkspace(t, map[string]string{"sub/f": ""}, func(e *tool.Env) { e.Shell, e.Dir = sh, "/ws" })
		sh.run = func(_ context.Context, out io.Writer) (tool.ShellExit, error) {
			mark := sh.script[strings.Index(sh.script, "tori:"):][:29]
			text := "\x00" + mark + "<A=1\x00\x00" + mark + ">one\x00two \x00tori:\n\x00" + mark + "<" + "/ws/sub\x00A=1\x00B=" + strings.Repeat("é", 50) + "\x00\x00" + mark + ">end\x00"
			for len(text) > 0 {
				n := min(size, len(text))
				if _, err := io.WriteString(out, text[:n]); err != nil {
					return tool.ShellExit{}, err
				}
				text = text[n:]
			}
			return tool.ShellExit{}, nil
		}
		want := "one\ufffdtwo \ufffdtori:\nend\ufffd\n[exit code 0; now in sub]"
		if got := w.shell("export x"); got != want {
			t.Errorf("in pieces of %d: %q", size, got)
		}
		if w.shell("y"); sh.input != fmt.Sprintf("export B='%s'\n", strings.Repeat("é", 50)) || strings.Contains(sh.script, "é") {
			t.Errorf("the next script is %.100s, and reads %q", sh.script, sh.input)
		}
	}
}

// A job that crashes is one that could not be run, and no more.
func TestJobPanics(t *testing.T) {
	t.Parallel()
	sh := &fakeShell{run: func(context.Context, io.Writer) (tool.ShellExit, error) { panic("broken") }}
	jobs := tool.NewJobs()
	t.Cleanup(jobs.Close)
	w := newWorkspace(t, nil, func(e *tool.Env) { e.Shell, e.Jobs = lockedShell{sh, new(sync.Mutex)}, jobs })
	w.call("shell", obj{"command": "x", "background": true})
	if res := w.call("shell_job", obj{"id": 1, "action": "wait"}); !res.IsError || !strings.Contains(res.Text, "it crashed: broken") {
		t.Error(res.Text)
	}
}

// TestSecretsOfASession are not among the arguments of its processes, which
// everybody on the machine can read.
func TestSecretsOfASession(t *testing.T) {
	t.Parallel()
	w := newShell(t, nil)
	const secret = "lantern-4471-orchid"
	w.shell("export A_TOKEN=" + secret[:9] + "-orchid-'\n'x")
	// Its own arguments and those of everything above it, as any user sees them.
	look := `p=$$; while [ "$p" -gt 1 ]; do tr '\0' ' ' </proc/$p/cmdline; set -- $(cut -d')' -f2 /proc/$p/stat); p=$2; done | grep -c l[a]ntern; printf %s "$A_TOKEN" | tail -c 3`
	for _, background := range []bool{false, true} {
		got := w.call("shell", obj{"command": look, "background": background}).Text
		if background {
			got = w.call("shell_job", obj{"id": 1, "action": "wait"}).Text
		}
		if !strings.Contains(got, "0\n-\nx") {
			t.Errorf("background %t: %s", background, got)
		}
	}
}

// limitedShell is a shell whose commands all go too far.
type limitedShell struct{}

func (limitedShell) Run(context.Context, string, string, string, time.Duration, io.Writer) (tool.ShellExit, error) {
	return tool.ShellExit{Code: 137, Signal: "SIGKILL", Limit: "limit of 64 processes at once"}, nil
}

// Which limit ended a job is said wherever its end is.
func TestJobSaysItsLimit(t *testing.T) {
	t.Parallel()
	w := newShell(t, func(e *tool.Env) { e.Shell = limitedShell{} })
	w.call("shell", obj{"command": "x", "background": true})
	const said = "killed: limit of 64 processes at once"
	if res := w.call("shell_job", obj{"id": 1, "action": "wait"}); !res.IsError || !strings.Contains(res.Text, "[job 1 ended: "+said+";") {
		t.Errorf("%+v", res)
	}
	if got := w.call("shell_job", obj{"action": "list"}).Text; !strings.Contains(got, "1\tended: "+said+"\t") {
		t.Error(got)
	}
}

// What a command prints is shown as a terminal would have it, and a failure within
// a pipe is one.
func TestOutputAsItIsRead(t *testing.T) {
	t.Parallel()
	w := newShell(t, nil)
	for _, c := range []struct{ command, want string }{
		{`printf '\033[31mred\033[0m and \033]0;title\007plain\n'`, "red and plain\n[exit code 0]"},
		{`printf '10%%\r50%%\r100%%\ndone\n'`, "100%\ndone\n[exit code 0]"},
		{`printf 'a\r\nb\r\n'`, "a\r\nb\r\n[exit code 0]"},
		{`printf '\033[1m'; printf 'cut'; printf '\033[0m'`, "cut\n[exit code 0]"},
		{"(exit 3) | cat", "[exit code 3]"},
		{"false | true || echo caught", "caught\n[exit code 0]"},
		{"seq 100000 | head -n 1", "1\n[exit code 0; a command in the pipe had more to say than was read]"},
		{"yes | head -n 1; true", "y\n[exit code 0]"},
	} {
		if got := w.shell(c.command); got != c.want {
			t.Errorf("%s\ngave %q\nwant %q", c.command, got, c.want)
		}
	}
}

// A long output of tests that fail is told by what failed; the whole can be
// recalled.
func TestOutputOfTests(t *testing.T) {
	t.Parallel()
	recorded, err := os.ReadFile("../checks/testdata/go-verbose.txt")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("=== RUN   TestFine\n--- PASS: TestFine (0.00s)\n", 400) + string(recorded)
	w := newShell(t, func(e *tool.Env) { e.Limits.SpillDir = t.TempDir() })
	w.put("out", long, 0o644)
	res := w.call("shell", obj{"command": "cat out; exit 1"})
	if !res.IsError || len(res.Text) > 9000 || !strings.Contains(res.Text, "go test: ") || !strings.Contains(res.Text, "; recall has all of it as output-000001]\n[exit code 1]") {
		t.Errorf("%d bytes: %s", len(res.Text), res.Text)
	}
	if res := w.call("shell", obj{"command": "cat out"}); !strings.HasPrefix(res.Text, "=== RUN") {
		t.Errorf("of a command that did not fail: %.200s", res.Text)
	}
	w.put("out", string(recorded[:min(len(recorded), 2000)]), 0o644)
	if res := w.call("shell", obj{"command": "cat out; exit 1"}); strings.Contains(res.Text, "shortened") {
		t.Errorf("a short one: %s", res.Text)
	}
}

// Where git cannot write, the model is told how to compare instead.
func TestGitThatCannotWrite(t *testing.T) {
	t.Parallel()
	sh := &fakeShell{}
	w := newWorkspace(t, nil, func(e *tool.Env) { e.Shell = sh })
	for said, want := range map[string]bool{
		"fatal: Unable to create '/run/1/git/index.lock': Read-only file system\n":                  true,
		"error: insufficient permission for adding an object to repository database .git/objects\n": true,
		"fatal: cannot lock ref 'HEAD': Unable to create '/x/.git/HEAD.lock': Permission denied\n":  true,
		"open /usr/x: Read-only file system\n":                                                      false,
	} {
		sh.run = prints(said, tool.ShellExit{Code: 128})
		if res := w.call("shell", obj{"command": "git stash"}); strings.Contains(res.Text, `use git diff HEAD`) != want {
			t.Errorf("%s", res.Text)
		}
	}
}
