package tool_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"toritsugi/internal/tool"
)

func TestDescriptions(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, func(e *tool.Env) {
		e.Shell, e.Git, e.Jobs, e.Limits.SpillDir = &fakeShell{}, fakeGit{}, tool.NewJobs(), t.TempDir()
	})
	var b strings.Builder
	for _, d := range w.reg.Definitions() {
		fmt.Fprintf(&b, "# %s (read only: %v)\n%s\n%s\n\n", d.Name, d.ReadOnly, d.Description, d.Schema)
	}
	golden(t, "descriptions.golden", b.String())
	// Every request carries them: about 3,000 tokens, of which a small local
	// window has 8,000.
	if b.Len() > 12_000 {
		t.Errorf("the pages and schemas have %d bytes", b.Len())
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{
		"src/a.go":   "package a\n\nfunc A() {}\n",
		"no-end":     "one\ntwo",
		"empty":      "",
		"dos.txt":    "one\r\ntwo\r\n",
		"sjis.txt":   "\x93\xfa\x96\x7b\n",
		"bin":        "\x7fELF\x00\x01",
		"long-line":  strings.Repeat("あ", 1000) + "\nnext\n",
		"long-file":  strings.Repeat("0123456789\n", 5000),
		"blank-ends": "\n\n",
	}, func(e *tool.Env) { e.Limits.MaxOutput = 1024 })
	if err := syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := conversation{w: w}
	for _, args := range []string{
		`{"path":"src/a.go"}`,
		`{"path":"/workspace/src/a.go","start_line":3.0}`,
		`{"path":"src/a.go","start_line":2,"end_line":99}`,
		`{"path":"src/a.go","start_line":4}`,
		`{"path":"src/a.go","start_line":3,"end_line":2}`,
		`{"path":"src/b.go"}`,
		`{"path":"scr/a.go"}`,
		`{"path":"src/a.go/b"}`,
		`{"path":"src"}`,
		`{"path":"no-end"}`,
		`{"path":"empty"}`,
		`{"path":"dos.txt"}`,
		`{"path":"sjis.txt"}`,
		`{"path":"bin"}`,
		`{"path":"pipe"}`,
		`{"path":"blank-ends"}`,
		`{"path":"long-file","start_line":4950}`,
	} {
		c.call("read_file", args)
	}
	golden(t, "read_file.golden", c.b.String())
}

func TestReadFileCutsLongLines(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"a": strings.Repeat("あ", 1000) + "\nnext\n"}, nil)
	res := w.call("read_file", obj{"path": "a"})
	want := "a: 2 lines\n" + strings.Repeat("あ", 666) + " [line cut, 3000 bytes long]\nnext\n"
	if res.Text != want {
		t.Errorf("got %s", res.Text)
	}
}

// A file larger than memory should be is streamed: only what is shown is kept.
// Not parallel: it measures the memory of the process.
func TestReadFileStreams(t *testing.T) {
	w := newWorkspace(t, nil, nil)
	f, err := os.Create(filepath.Join(w.dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	block := []byte(strings.Repeat(strings.Repeat("x", 1023)+"\n", 1024))
	for range 60 {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got := allocated(func() {
		if res := w.call("read_file", obj{"path": "big", "start_line": 61440}); !strings.HasPrefix(res.Text, "big: lines 61440-61440 of 61440\n") {
			t.Error(res.Text)
		}
	})
	if got > 8<<20 {
		t.Errorf("reading a file of 60 MiB took %d bytes of memory", got)
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"README": "old\n", ".git/config": "x", "docs/tokens.md": "[EMAIL] stands for a@example.com\n"},
		func(e *tool.Env) { e.Masks = masks })
	if err := os.Symlink(".git", filepath.Join(w.dir, "innocent")); err != nil {
		t.Fatal(err)
	}
	c := conversation{w: w}
	for _, args := range []string{
		`{"path":"a/b/c.txt","content":"one\ntwo"}`,
		`{"path":"README","content":"new\n"}`,
		`{"path":"README","content":""}`,
		`{"path":"a","content":"x"}`,
		`{"path":"README/x","content":"x"}`,
		`{"path":".","content":"x"}`,
		`{"path":"","content":"x"}`,
		`{"path":"../x","content":"x"}`,
		`{"path":"/etc/passwd","content":"x"}`,
		`{"path":"a\u0000b","content":"x"}`,
		`{"path":".git/hooks/pre-commit","content":"x"}`,
		`{"path":"sub/.GIT/config","content":"x"}`,
		`{"path":".git ./config","content":"x"}`,
		`{"path":"innocent/config","content":"x"}`,
		`{"path":"contact.txt","content":"write to [EMAIL]\n"}`,
		`{"path":"docs/tokens.md","content":"[EMAIL] stands for [EMAIL]\n"}`,
		`{"path":"docs/tokens.md","content":"[EMAIL] stands for a mail address\n"}`,
	} {
		c.call("write_file", args)
	}
	golden(t, "write_file.golden", c.b.String())
	for name, want := range map[string]string{"a/b/c.txt": "one\ntwo", "README": "", ".git/config": "x", "docs/tokens.md": "[EMAIL] stands for a mail address\n"} {
		if got := w.get(name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(w.dir, "*", "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestWritesKeepModeAndLinks(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, nil)
	w.put("run.sh", "echo 1\n", 0o755)
	w.put("read-only", "1\n", 0o444)
	if err := os.Symlink("run.sh", filepath.Join(w.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file string
		mode os.FileMode
	}{{"run.sh", 0o755}, {"read-only", 0o444}} {
		for _, call := range []struct {
			tool string
			args obj
		}{
			{"edit_file", obj{"path": tc.file, "old_text": "1", "new_text": "2"}},
			{"write_file", obj{"path": tc.file, "content": "3\n"}},
		} {
			if res := w.call(call.tool, call.args); res.IsError {
				t.Fatal(res.Text)
			}
			if info, err := os.Stat(filepath.Join(w.dir, tc.file)); err != nil || info.Mode() != tc.mode {
				t.Errorf("%s after %s: mode %v, %v", tc.file, call.tool, info.Mode(), err)
			}
		}
	}
	if res := w.call("write_file", obj{"path": "link", "content": "through\n"}); res.IsError {
		t.Fatal(res.Text)
	}
	if info, err := os.Lstat(filepath.Join(w.dir, "link")); err != nil || info.Mode()&os.ModeSymlink == 0 || w.get("run.sh") != "through\n" {
		t.Errorf("the link is %v (%v), its target holds %q", info.Mode(), err, w.get("run.sh"))
	}
}

// A temporary file that a killed process left is stepped over.
func TestWriteAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{".tori-write-0.tmp": "left"}, nil)
	if res := w.call("write_file", obj{"path": "a", "content": "x"}); res.IsError || w.get("a") != "x" {
		t.Error(res.Text)
	}
}

// No path that a model can write reaches a file outside, for reading or writing.
func TestPathsStayInside(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t, map[string]string{"in/file": "token\n"}, nil)
	for link, target := range map[string]string{"abs": secret, "absdir": outside, "in/up": "../../", "loop": "loop", "in/rel": "../../" + filepath.Base(outside) + "/secret"} {
		if err := os.Symlink(target, filepath.Join(w.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	up, err := filepath.Rel(w.dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{secret, up, "in/../" + up, "abs", "absdir/secret", "in/up/x", "in/rel", "loop", "..", "/", "/workspace/../x", "/workspace-2/x", "in/../../x"} {
		for name, args := range map[string]obj{
			"read_file":  {"path": p},
			"write_file": {"path": p, "content": "gone"},
			"edit_file":  {"path": p, "old_text": "token", "new_text": "gone"},
			"list_files": {"path": p},
			"glob":       {"path": p, "pattern": "*"},
			"grep":       {"path": p, "pattern": "token"},
		} {
			if res := w.call(name, args); !res.IsError || strings.Contains(res.Text, "token") {
				t.Errorf("%s %s: %s", name, p, res.Text)
			}
		}
	}
	if got, err := os.ReadFile(secret); err != nil || string(got) != "token" {
		t.Errorf("the file outside holds %q, %v", got, err)
	}
	if res := w.call("grep", obj{"pattern": "token"}); strings.Count(res.Text, "token") != 1 {
		t.Errorf("search: %s", res.Text)
	}
}

func FuzzPath(f *testing.F) {
	for _, p := range []string{"a", "../a", "in/../../a", "/etc/passwd", "/workspace/a", ".git/x", ".GIT", "a\x00", "in//./x", "~", `..\a`, "out/x"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "w")
		if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..", filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		reg, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root, Dir: "/workspace"})...)
		if err != nil {
			t.Fatal(err)
		}
		w := &workspace{t: t, dir: dir, reg: reg}
		w.call("write_file", obj{"path": p, "content": "x"})
		for _, d := range []string{parent, filepath.Join(dir, ".git")} {
			entries, err := os.ReadDir(d)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Name() != "w" {
					t.Fatalf("%q made %s in %s", p, e.Name(), d)
				}
			}
		}
	})
}

// Models call the workspace /workspace or /, wherever it is.
func TestPathsFromTheRoot(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"src/a.go": "package src\n", "etc/x": "x\n"}, func(e *tool.Env) { e.Dir = "/srv/run" })
	for path, want := range map[string]string{
		"/workspace/src/a.go": "src/a.go: 1 line", "/src/a.go": "src/a.go: 1 line", "/srv/run/src/a.go": "src/a.go: 1 line", "/workspace//etc/../etc/x": "etc/x: 1 line",
		"/workspace/src/b.go": "There is no file or directory src/b.go", "/etc/passwd.d/x": "outside of the workspace", "/proc/self/environ": "outside of the workspace",
		"/workspace/../etc/hosts": "There is no file or directory etc/hosts", "/workspace/../../srv/x": "outside of the workspace",
	} {
		if res := w.call("read_file", obj{"path": path}); !strings.Contains(res.Text, want) {
			t.Errorf("%s: %s", path, res.Text)
		}
	}
	for path, want := range map[string]string{"/workspace/new.txt": "new.txt", "/src/new.go": "src/new.go", "/workspace/a/b/c": "a/b/c"} {
		if res := w.call("write_file", obj{"path": path, "content": "x"}); res.IsError || w.get(want) != "x" {
			t.Errorf("%s: %s", path, res.Text)
		}
	}
	for _, path := range []string{"/tmp/new.txt", "/other.txt"} {
		if res := w.call("write_file", obj{"path": path, "content": "x"}); !res.IsError {
			t.Errorf("%s: %s", path, res.Text)
		}
	}
	if res := w.call("list_files", obj{"path": "/workspace"}); res.IsError || !strings.Contains(res.Text, "src/a.go") {
		t.Errorf("/workspace: %s", res.Text)
	}
}
