package tool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"toritsugi/internal/tool"
)

var tree = map[string]string{
	"main.go":            "package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n",
	"a.b":                "x\n",
	"a/b.go":             "package a\n",
	"cmd/x/main_test.go": "package main\n\n// Hello again, HELLO.\n",
	"cmd/x/data.json":    "{}\n",
	"docs/日本.md":         "こんにちは hello\n",
	".git/config":        "hello\n",
	"sub/.git":           "gitdir: hello\n",
	"bin/tool":           "hello\x00\n",
	".gitignore":         "bin\n",
}

func TestListFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, tree, nil)
	if err := os.Symlink("cmd", filepath.Join(w.dir, "link")); err != nil {
		t.Fatal(err)
	}
	c := conversation{w: w}
	for _, args := range []string{
		`{}`, `{"path":"cmd"}`, `{"path":"link"}`, `{"path":"/workspace/cmd/x"}`, `{"path":"main.go"}`, `{"path":"nowhere"}`,
		`{"ignored":true}`, `{"depth":1}`, `{"path":"bin"}`, `{"path":"cmd","depth":1}`, `{"limit":2}`, `{"path":"cmd","limit":1}`, `{"depth":0}`,
	} {
		c.call("list_files", args)
	}
	for _, args := range []string{
		`{"pattern":"*.go"}`, `{"pattern":"cmd/**/*.go"}`, `{"pattern":"*/*.go"}`, `{"path":"cmd","pattern":"x/*.{go,md}"}`, `{"pattern":"*.py"}`, `{"pattern":"[a"}`,
		`{"pattern":"{a"}`, `{"pattern":"tool"}`, `{"pattern":"tool","ignored":true}`, `{"pattern":""}`, `{"pattern":"*","limit":1}`, `{"pattern":"link"}`, `{}`,
	} {
		c.call("glob", args)
	}
	golden(t, "list_files.golden", c.b.String())
}

func TestGlobs(t *testing.T) {
	t.Parallel()
	files := []string{"a.go", "b.txt", "x/a.go", "x/y/a.go", "x/y/c.go", "[z].go", "日.go"}
	w := newWorkspace(t, nil, nil)
	for _, f := range files {
		w.put(f, "", 0o600)
	}
	for pattern, want := range map[string]string{
		"*.go":      "[z].go a.go x/a.go x/y/a.go x/y/c.go 日.go",
		"./*.go":    "[z].go a.go x/a.go x/y/a.go x/y/c.go 日.go",
		"**/a.go":   "a.go x/a.go x/y/a.go",
		"x/**":      "x/a.go x/y/a.go x/y/c.go",
		"x/*":       "x/a.go",
		"x/**/a.go": "x/a.go x/y/a.go",
		"?.go":      "a.go x/a.go x/y/a.go x/y/c.go 日.go",
		"[b-c].*":   "b.txt x/y/c.go",
		"[!a].go":   "x/y/c.go 日.go",
		`\[z\].go`:  "[z].go",
		"[]z[]?.go": "",
		"{a,c}.go":  "a.go x/a.go x/y/a.go x/y/c.go",
		"a.g":       "",
	} {
		got := strings.Join(strings.Fields(w.call("glob", obj{"pattern": pattern}).Text), " ")
		if want == "" {
			want = "No file below . matches " + pattern + "."
		}
		if got != want {
			t.Errorf("%s gave %s, want %s", pattern, got, want)
		}
	}
}

func TestGrep(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, tree, nil)
	w.put("many.txt", strings.Repeat("match\nother\n", 5), 0o600)
	w.put("wide.js", strings.Repeat("x", 1000)+"needle"+strings.Repeat("y", 1000)+"\r\n", 0o600)
	c := conversation{w: w}
	for _, args := range []string{
		`{"pattern":"hello"}`,
		`{"pattern":"hello","ignore_case":true,"glob":"*.go"}`,
		`{"pattern":"func","path":"main.go","context":1}`,
		`{"pattern":"^package","context":10,"path":"cmd"}`,
		`{"pattern":"match","limit":2}`,
		`{"pattern":"match","path":"many.txt","context":1,"limit":3}`,
		`{"pattern":"needle"}`,
		`{"pattern":"y$"}`,
		`{"pattern":"nothing like it"}`,
		`{"pattern":"foo(bar"}`,
		`{"pattern":"(?=x)"}`,
		`{"pattern":""}`,
		`{"pattern":"x","glob":"[a"}`,
		`{"pattern":"x","path":"nowhere"}`,
	} {
		c.call("grep", args)
	}
	golden(t, "grep.golden", c.b.String())
}

func TestGrepGroups(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"f": "1\n2\nX3\n4\n5\n6\n7\nX8\nX9\n10\n11\n"}, nil)
	got := w.call("grep", obj{"pattern": "X", "context": 1}).Text
	want := "f\n2- 2\n3: X3\n4- 4\n--\n7- 7\n8: X8\n9: X9\n10- 10\n[3 matching lines in 1 file searched]\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestGrepIsBoundedAndStopsWithTheContext(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, func(e *tool.Env) { e.Limits.MaxOutput = 2000 })
	for i := range 200 {
		w.put(fmt.Sprintf("d/%03d", i), strings.Repeat("match match\n", 50), 0o600)
	}
	first := w.call("grep", obj{"pattern": "match", "limit": 1000, "context": 10})
	if len(first.Text) > 2000 || !strings.Contains(first.Text, "there are more") || strings.Contains(first.Text, "cut here") {
		t.Errorf("%d bytes: %s", len(first.Text), first.Text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.reg.Call(ctx, "grep", `{"pattern":"x"}`); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Read-only tools give the same answers at the same time as alone.
func TestReadOnlyToolsRunTogether(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, tree, nil)
	calls := [][2]string{{"grep", `{"pattern":"hello"}`}, {"list_files", `{}`}, {"read_file", `{"path":"main.go"}`}}
	var alone []string
	for _, c := range calls {
		alone = append(alone, w.call(c[0], c[1]).Text)
	}
	var wg sync.WaitGroup
	for range 8 {
		for i, c := range calls {
			wg.Go(func() {
				if res, err := w.reg.Call(t.Context(), c[0], c[1]); err != nil || res.Text != alone[i] {
					t.Errorf("%s: %v %s", c[0], err, res.Text)
				}
			})
		}
	}
	wg.Wait()
	names := []string{}
	for _, d := range w.reg.Definitions() {
		if d.ReadOnly {
			names = append(names, d.Name)
		}
	}
	if !slices.Equal(names, []string{"grep", "list_files", "read_file"}) {
		t.Errorf("read only: %v", names)
	}
}

// What is found, and which files are looked at, is what ripgrep finds.
func TestGrepAgreesWithRipgrep(t *testing.T) {
	t.Parallel()
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not installed")
	}
	w := newWorkspace(t, nil, func(e *tool.Env) { e.Limits.MaxOutput = 100_000 })
	bigTree(t, w.dir, 700)
	for _, pattern := range []string{"handle", `^\s+return.*nil`, `(?i)\bFUNC\b.*[0-9]`, `range$`, "."} {
		cmd := exec.Command(rg, "--no-config", "--hidden", "--glob", "!.git", "-c", "-e", pattern, ".")
		cmd.Dir = w.dir
		out, _ := cmd.Output() // 1 where nothing is found
		want := strings.Fields(strings.NewReplacer("./", "", ":", ":_").Replace(string(out)))
		slices.Sort(want)
		got := w.call("grep", obj{"pattern": pattern, "output": "count", "limit": 1000}).Text
		got, _, _ = strings.Cut(got, "[")
		if strings.HasPrefix(got, "No line") {
			got = ""
		}
		lines := strings.Fields(strings.ReplaceAll(got, ": ", ":_"))
		slices.Sort(lines)
		if !slices.Equal(lines, want) {
			t.Errorf("%s: %d files with ripgrep, %d with grep", pattern, len(want), len(lines))
		}
	}
}

// A search that is stopped says how many lines match where.
func TestStoppedSearchCounts(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("d/f%02d.txt", i)] = strings.Repeat("match\n", i+1)
	}
	w := newWorkspace(t, files, nil)
	res := w.call("grep", obj{"pattern": "match", "limit": 3})
	if want := "[stopped after 3 matching lines, there are more; narrow it with path, glob or pattern]\n[matching lines: 465 in 30 files: d/f29.txt 30, d/f28.txt 29, "; !strings.Contains(res.Text, want) || !strings.HasSuffix(res.Text, "d/f10.txt 11, ...]\n") {
		t.Error(res.Text)
	}
	if res := w.call("grep", obj{"pattern": "match"}); strings.Count(res.Text, "[matching lines") != 1 {
		t.Error(res.Text)
	}
	if res := w.call("grep", obj{"pattern": "match", "path": "d/f00.txt"}); strings.Contains(res.Text, "[matching lines") {
		t.Error(res.Text)
	}
}
