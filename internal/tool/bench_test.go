package tool_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool"
)

// bigTree makes a tree of about n source files of 0.2 to 8 KiB, eight levels
// deep at most, with ignored parts and a few binary files.
func bigTree(tb testing.TB, dir string, n int) {
	tb.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("func return if err nil string int context error package import type struct interface map range for go defer select case handler request response server client user token value index buffer")
	var b bytes.Buffer
	for i := range n {
		b.Reset()
		for size := 200 + r.IntN(1000)*r.IntN(8); b.Len() < size; {
			b.WriteString(strings.Repeat("\t", r.IntN(4)))
			for range 2 + r.IntN(8) {
				b.WriteString(words[r.IntN(len(words))])
				b.WriteByte(" .,()="[r.IntN(6)])
			}
			b.WriteByte('\n')
		}
		if i%5000 == 77 {
			fmt.Fprintf(&b, "func handleNeedle%d(w http.ResponseWriter) {\n", i)
		}
		if i%200 == 0 {
			b.WriteByte(0)
		}
		sub := fmt.Sprintf("m%02d/p%02d/d%02d", i%37, i/37%29, i/37/29%8)
		if i%10 == 3 {
			sub += "/build/out"
		}
		file := filepath.Join(dir, sub, fmt.Sprintf("file_%d.go", i))
		if i%97 == 5 {
			file += ".log"
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	rules := "*.log\nnode_modules/\n/dist\n.cache\n*.tmp\n*.[oa]\n/vendor/**/testdata\n.DS_Store\n*~\ncoverage*\n"
	for name, text := range map[string]string{".gitignore": rules, "m03/.gitignore": "build/\n!keep.log\n", "m05/p01/.ignore": "d0*\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil { // ripgrep honours .gitignore in repositories only
		tb.Fatal(err)
	}
}

// BenchmarkGrep searches a tree of 100,000 files, and has ripgrep do the same
// where it is installed. TORI_BENCH_TREE names a directory to keep the tree in.
func BenchmarkGrep(b *testing.B) {
	dir := os.Getenv("TORI_BENCH_TREE")
	if dir == "" {
		dir = b.TempDir()
	}
	if _, err := os.Stat(filepath.Join(dir, ".gitignore")); err != nil {
		bigTree(b, dir, 100_000)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	reg, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root})...)
	if err != nil {
		b.Fatal(err)
	}
	rg, _ := exec.LookPath("rg")
	for _, c := range []struct {
		name, pattern string
		flags         []string
		args          string
	}{
		{"literal", "handleNeedle", nil, ""},
		{"regex", `func\s+handle\w+\(w http\.`, nil, ""},
		{"regex-no-literal", `[a-z]+[0-9]{3,}\([a-z] `, nil, ""},
		{"ignore-case", "HANDLENEEDLE", []string{"-i"}, `,"ignore_case":true`},
		{"nothing", "there is no such text", nil, ""},
		{"count", "interface.*struct.*token", []string{"-c"}, `,"output":"count","limit":1000`},
		{"often", "return", []string{"-l"}, `,"output":"files","limit":1000`},
	} {
		b.Run(c.name+"/ours", func(b *testing.B) {
			for b.Loop() {
				res, err := reg.Call(b.Context(), "grep", fmt.Sprintf(`{"pattern":%q%s}`, c.pattern, c.args))
				if err != nil || res.IsError {
					b.Fatal(err, res.Text)
				}
			}
		})
		if rg == "" {
			continue
		}
		b.Run(c.name+"/ripgrep", func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command(rg, append(c.flags, "--no-config", "--hidden", "--glob", "!.git", "--sort", "none", "-e", c.pattern, ".")...)
				cmd.Dir = dir
				_, _ = cmd.Output() // 1 where nothing is found
			}
		})
	}
}

// BenchmarkCall is what a call costs besides the work itself.
func BenchmarkCall(b *testing.B) {
	dir := b.TempDir()
	for name, text := range map[string]string{"a.go": "package a\n\nfunc A() {}\n", "b/c.txt": "one\ntwo\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	reg, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root})...)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range [][2]string{
		{"read_file", `{"path":"a.go"}`}, {"grep", `{"pattern":"func"}`}, {"list_files", `{}`}, {"glob", `{"pattern":"*.go"}`},
		{"edit_file", `{"path":"b/c.txt","old_text":"three","new_text":"3"}`}, {"unknown", `{}`},
	} {
		b.Run(c[0], func(b *testing.B) {
			for b.Loop() {
				if _, err := reg.Call(b.Context(), c[0], c[1]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWrite is a change of the disk: a new file, and one that is replaced,
// beside what the file system takes for the same.
func BenchmarkWrite(b *testing.B) {
	dir := b.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	reg, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root})...)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, path string }{{"new", "new-%d"}, {"replace", "one"}} {
		name := func(i int, of string) string {
			if strings.Contains(c.path, "%") {
				return of + fmt.Sprintf(c.path, i)
			}
			return of + c.path
		}
		b.Run(c.name+"/tool", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := reg.Call(b.Context(), "write_file", fmt.Sprintf(`{"path":%q,"content":"x\n"}`, name(i, "t"))); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/rename", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				tmp := filepath.Join(dir, "tmp")
				if err := os.WriteFile(tmp, []byte("x\n"), 0o600); err != nil {
					b.Fatal(err)
				}
				if err := os.Rename(tmp, filepath.Join(dir, name(i, "r"))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkShell is what a session adds to a command.
func BenchmarkShell(b *testing.B) {
	dir := b.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	bare := realShell{sandbox.Unconfined(sandbox.Spec{Workspace: dir, Scratch: b.TempDir()})}
	reg, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root, Shell: bare})...)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			if _, err := reg.Call(b.Context(), "shell", `{"command":"true"}`); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if _, err := bare.Run(b.Context(), "true", "", ".", time.Minute, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
}
