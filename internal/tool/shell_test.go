package tool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/tool"
)

// fakeShell says what it is told to and remembers how it was called.
type fakeShell struct {
	run     func(ctx context.Context, out io.Writer) (tool.ShellExit, error)
	script  string
	input   string
	dir     string
	timeout time.Duration
}

func (f *fakeShell) Run(ctx context.Context, script, input, dir string, timeout time.Duration, out io.Writer) (tool.ShellExit, error) {
	f.script, f.input, f.dir, f.timeout = script, input, dir, timeout
	return f.run(ctx, out)
}

func prints(text string, exit tool.ShellExit) func(context.Context, io.Writer) (tool.ShellExit, error) {
	return func(_ context.Context, out io.Writer) (tool.ShellExit, error) {
		_, err := io.WriteString(out, text)
		return exit, err
	}
}

// The model is told what commands may reach.
func TestShellTellsOfTheNetwork(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for want, hosts := range map[string][]string{
		". No network, no input; cd":                                nil,
		". Network only to db.corp:5432, 10.0.0.5:80; no input; cd": {"db.corp:5432", "10.0.0.5:80"},
		"x.example, x.example and 3 more; no input; cd and":         slices.Repeat([]string{"x.example"}, 23),
	} {
		for _, d := range tool.Builtins(tool.Env{Root: root, Shell: &fakeShell{}, Hosts: hosts}) {
			if d := d.Definition(); d.Name == "shell" && (!strings.Contains(d.Description, want) || strings.Contains(d.Help, "no network even") != (hosts == nil)) {
				t.Errorf("%s\n%s", d.Description, d.Help)
			}
		}
	}
}

func TestShell(t *testing.T) {
	t.Parallel()
	sh := &fakeShell{}
	w := newWorkspace(t, map[string]string{"sub/f": "x"}, func(e *tool.Env) { e.Shell, e.Git = sh, fakeGit{} })
	for name, tc := range map[string]struct {
		text    string
		exit    tool.ShellExit
		args    string
		want    string
		isError bool
	}{
		"success":           {"ok\n", tool.ShellExit{}, `{"command":"make"}`, "ok\n[exit code 0]", false},
		"no output":         {"", tool.ShellExit{}, `{"command":"true"}`, "[exit code 0]", false},
		"no line end":       {"ok", tool.ShellExit{}, `{"command":"printf ok"}`, "ok\n[exit code 0]", false},
		"a diff of nothing": {"", tool.ShellExit{}, `{"command":"cd sub && git -C . diff --stat | cat"}`, "[exit code 0; git in a shell compares with the last commit, which may hold your change already: git diff with the branch that you began from (git branch lists it) shows all]", false},
		"a clean status":    {"On branch x\nnothing to commit, working tree clean\n", tool.ShellExit{}, `{"command":"git status"}`, "On branch x\nnothing to commit, working tree clean\n[exit code 0; git in a shell compares with the last commit, which may hold your change already: git diff with the branch that you began from (git branch lists it) shows all]", false},
		"a diff":            {"+x\n", tool.ShellExit{}, `{"command":"git diff"}`, "+x\n[exit code 0]", false},
		"no diff of git":    {"", tool.ShellExit{}, `{"command":"diff a b"}`, "[exit code 0]", false},
		"no /workspace":     {"sh: 1: cd: can't cd to /workspace\n", tool.ShellExit{Code: 2}, `{"command":"cd /workspace"}`, "sh: 1: cd: can't cd to /workspace\n[exit code 2; the workspace has another name here, and commands begin in it: use relative paths]", true},
		"in no such":        {"cat: /workspace/a.py: No such file or directory\n", tool.ShellExit{Code: 1}, `{"command":"cat /workspace/a.py"}`, "cat: /workspace/a.py: No such file or directory\n[exit code 1; the workspace has another name here, and commands begin in it: use relative paths]", true},
		"failure":           {"FAIL\n", tool.ShellExit{Code: 2}, `{"command":"make"}`, "FAIL\n[exit code 2]", true},
		"timeout":           {"...\n", tool.ShellExit{Code: -1, TimedOut: true, Signal: "SIGKILL"}, `{"command":"sleep 99","timeout_seconds":5}`, "...\n[timed out: stopped after 5 seconds. Give a larger timeout_seconds (at most 600), run less at once, or set background]", true},
		"longest":           {"", tool.ShellExit{Code: -1, TimedOut: true}, `{"command":"sleep 999","timeout_seconds":600}`, "[timed out: stopped after 600 seconds. Run less at once]", true},
		"limit":             {"...\n", tool.ShellExit{Code: 137, Limit: "memory limit of 2 GiB", Signal: "SIGKILL"}, `{"command":"x"}`, "...\n[killed: memory limit of 2 GiB]", true},
		"memory":            {"", tool.ShellExit{Code: -1, Signal: "SIGKILL"}, `{"command":"x"}`, "[killed by SIGKILL: maybe it needed more memory than the sandbox has]", true},
		"crash":             {"", tool.ShellExit{Code: -1, Signal: "SIGSEGV"}, `{"command":"x"}`, "[killed by SIGSEGV]", true},
		"not UTF-8":         {"\xff\x00\n", tool.ShellExit{}, `{"command":"x"}`, "\uFFFD\uFFFD\n[exit code 0]", false},
		"empty":             {"", tool.ShellExit{}, `{"command":" "}`, "The command is empty.", true},
		"bad dir":           {"", tool.ShellExit{}, `{"command":"x","dir":"../x"}`, `../x leads out of the workspace. Use a path relative to the workspace, without "..".`, true},
		"dir is a file":     {"", tool.ShellExit{}, `{"command":"x","dir":"sub/f"}`, "sub/f is a file of 1 bytes, not a directory. Use read_file to see it.", true},
	} {
		t.Run(name, func(t *testing.T) {
			sh.run = prints(tc.text, tc.exit)
			if res := w.call("shell", tc.args); res.Text != tc.want || res.IsError != tc.isError {
				t.Errorf("got %+v", res)
			}
		})
	}
	sh.run = prints("", tool.ShellExit{})
	w.call("shell", `{"command":"cd x\nls","dir":"/workspace/sub"}`)
	if !strings.HasSuffix(sh.script, "eval 'cd x\nls'") || sh.dir != "sub" || sh.timeout != 120*time.Second {
		t.Errorf("ran %+v", sh)
	}
	if res := w.call("shell", `{"command":"x","timeout_seconds":601}`); res.IsError || !strings.Contains(res.Text, "; 600 was used") || sh.timeout != 600*time.Second {
		t.Errorf("a timeout of 601 s: %s", res.Text)
	}
}

// A command that prints much more than memory should hold is captured whole on
// the disk and in part in memory.
// Not parallel: it measures the memory of the process.
func TestShellOutputIsStreamed(t *testing.T) {
	dir := t.TempDir()
	line := []byte(strings.Repeat("x", 99) + "\n")
	const lines = 300_000
	var held int64
	sh := &fakeShell{run: func(_ context.Context, out io.Writer) (tool.ShellExit, error) {
		for range lines {
			if _, err := out.Write(line); err != nil {
				return tool.ShellExit{}, err
			}
		}
		held = heap() - held
		_, err := io.WriteString(out, "the end")
		return tool.ShellExit{Code: 1}, err
	}}
	w := newWorkspace(t, nil, func(e *tool.Env) { e.Shell, e.Limits.SpillDir = sh, dir })
	held = heap()
	res := w.call("shell", `{"command":"x"}`)
	if held > 4<<20 {
		t.Errorf("of an output of %d bytes %d are held in memory", lines*100, held)
	}
	if len(res.Text) > tool.DefaultMaxOutput || !strings.HasSuffix(res.Text, "the end\n[exit code 1]") || strings.Count(res.Text, "cut here") != 1 || !strings.Contains(res.Text, "output-000001 ...]") {
		t.Errorf("%d bytes, the end is %s", len(res.Text), res.Text[max(0, len(res.Text)-300):])
	}
	info, err := os.Stat(filepath.Join(dir, "output-000001.txt"))
	if err != nil || info.Size() != lines*100+7 {
		t.Errorf("spilled %v, %v", info, err)
	}
}

// A command that ended with the task, or could not be run, leaves no file.
func TestShellDiscards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	much := strings.Repeat("x", 100_000)
	sh := &fakeShell{run: func(_ context.Context, out io.Writer) (tool.ShellExit, error) {
		_, _ = io.WriteString(out, much)
		return tool.ShellExit{}, errors.New("no sandbox")
	}}
	w := newWorkspace(t, nil, func(e *tool.Env) { e.Shell, e.Limits.SpillDir = sh, dir })
	if res := w.call("shell", `{"command":"x"}`); !res.IsError || res.Text != "The command could not be run: no sandbox." {
		t.Errorf("got %+v", res)
	}
	sh.run = func(ctx context.Context, out io.Writer) (tool.ShellExit, error) {
		_, _ = io.WriteString(out, much)
		cancel()
		return tool.ShellExit{}, ctx.Err()
	}
	if _, err := w.reg.Call(ctx, "shell", `{"command":"x"}`); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	sh.run = func(_ context.Context, out io.Writer) (tool.ShellExit, error) {
		_, _ = io.WriteString(out, much)
		panic("broken")
	}
	if res := w.call("shell", `{"command":"x"}`); !res.IsError || !strings.Contains(res.Text, "crashed") {
		t.Errorf("got %+v", res)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// fakeGit answers with what it was asked.
type fakeGit struct {
	status string
	err    error
}

func (g fakeGit) StatusText(context.Context) (string, error) { return g.status, g.err }
func (g fakeGit) DiffText(_ context.Context, path string, stat bool, max int) (string, error) {
	if path == "same" || max != tool.DefaultMaxOutput {
		return "", g.err
	}
	if stat {
		return "stat of " + path, g.err
	}
	return "diff of " + path, g.err
}

func TestGit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		git        fakeGit
		name, args string
		want       tool.Result
	}{
		{fakeGit{}, "git_status", "", tool.Text("Nothing is changed.")},
		{fakeGit{status: "M a"}, "git_status", "{}", tool.Text("M a")},
		{fakeGit{err: errors.New("exit 128")}, "git_status", "{}", tool.Failf("The status cannot be read: exit 128.")},
		{fakeGit{}, "git_diff", "", tool.Text("diff of ")},
		{fakeGit{}, "git_diff", `{"path":"/workspace/a","stat":true}`, tool.Text("stat of a")},
		{fakeGit{}, "git_diff", `{"path":"same"}`, tool.Text("There are no changes in same.")},
		{fakeGit{err: errors.New("exit 128")}, "git_diff", "{}", tool.Failf("The changes cannot be read: exit 128.")},
		{fakeGit{}, "git_diff", `{"path":"../x"}`, tool.Failf(`../x leads out of the workspace. Use a path relative to the workspace, without "..".`)},
	} {
		w := newWorkspace(t, nil, func(e *tool.Env) { e.Git = tc.git })
		got := w.call(tc.name, tc.args)
		if got.Args = nil; !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s %s gave %+v", tc.name, tc.args, got)
		}
	}
}

// A command is judged for where it is to run, in the background as well, and
// what is judged unfit does not run.
func TestShellJudges(t *testing.T) {
	t.Parallel()
	var judged []string
	sh := &fakeShell{run: prints("ran\n", tool.ShellExit{})}
	jobs := tool.NewJobs()
	t.Cleanup(jobs.Close)
	w := newWorkspace(t, map[string]string{"sub/f": "x"}, func(e *tool.Env) {
		e.Shell, e.Jobs = sh, jobs
		e.Judge = func(_ context.Context, command, dir string) string {
			judged = append(judged, command+" in "+dir)
			if dir == "sub" {
				return "Not run: " + command
			}
			return ""
		}
	})
	if res := w.call("shell", `{"command":"a"}`); res.IsError || sh.script == "" {
		t.Errorf("got %+v", res)
	}
	sh.script = ""
	for _, args := range []string{`{"command":"b","dir":"sub"}`, `{"command":"b","dir":"/workspace/sub","background":true}`} {
		if res := w.call("shell", args); !res.IsError || res.Text != "Not run: b" || sh.script != "" {
			t.Errorf("%s gave %+v, ran %q", args, res, sh.script)
		}
	}
	if want := []string{"a in .", "b in sub", "b in sub"}; !reflect.DeepEqual(judged, want) {
		t.Errorf("judged %q", judged)
	}
	if res := w.call("shell_job", `{"action":"list"}`); res.Text != "There are no jobs." {
		t.Error(res.Text)
	}
}

func (fakeGit) LogText(_ context.Context, revision, path string, n int, patch bool, _ int) (string, error) {
	return fmt.Sprintf("log %q %q %d %v", revision, path, n, patch), nil
}

func (fakeGit) BlameText(_ context.Context, path string, from, to, _ int) (string, error) {
	return fmt.Sprintf("blame %s %d %d", path, from, to), nil
}

func (fakeGit) FileText(_ context.Context, revision, path string, _ int) (string, error) {
	if path == "gone" {
		return "", errors.New("path 'gone' does not exist in 'HEAD'")
	}
	return "one\ntwo " + revision + "\nthree\n", nil
}

func TestGitHistory(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"a.go": "x\ny\n"}, func(e *tool.Env) { e.Git = fakeGit{} })
	for _, c := range []struct{ name, args, want string }{
		{"git", `{"command":"log"}`, `log "" "" 20 false`},
		{"git", `{"command":"log","path":"a.go","n":"3","rev":"HEAD~2"}`, `log "HEAD~2" "a.go" 3 false`},
		{"git_log", `{"revision":"a1b2","patch":true}`, `log "a1b2" "" 1 true`},
		{"git", `{"command":"show","revision":"a1b2"}`, `log "a1b2" "" 1 true`},
		{"git", `{"command":"show","path":"a.go"}`, "a.go at HEAD: 3 lines\none\ntwo HEAD\nthree\n"},
		{"git", `{"command":"show","path":"a.go","revision":"v1","start_line":2,"end_line":2}`, "a.go at v1: lines 2-2 of 3\ntwo v1\n"},
		{"git", `{"command":"show","path":"gone"}`, "gone at HEAD cannot be read: path 'gone' does not exist in 'HEAD'."},
		{"git", `{"command":"show","revision":"a..b"}`, `"a..b" is not the name of a commit.`},
		{"git", `{"command":"blame","path":"a.go"}`, "blame a.go 1 2"},
		{"git", `{"command":"blame"}`, "blame needs path"},
		{"git_blame", `{"path":"a.go","start_line":2}`, "blame a.go 2 2"},
		{"git", `{"command":"stash"}`, `command must be "status"|"diff"|"log"|"blame"|"show", not "stash"`},
	} {
		if res := w.call(c.name, c.args); !strings.HasPrefix(res.Text, c.want) && !strings.Contains(res.Text, "not valid: "+c.want) {
			t.Errorf("%s %s: %s", c.name, c.args, res.Text)
		}
	}
}
