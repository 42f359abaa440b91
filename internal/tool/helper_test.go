package tool_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/memory"
	"toritsugi/internal/tool"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), rewrite with -update:\n%s", name, diff)
	}
}

// workspace is a directory with the built-in tools on it.
type workspace struct {
	t   *testing.T
	dir string
	reg *tool.Registry
}

// newWorkspace makes the files and the tools; set changes what they act on.
func newWorkspace(t *testing.T, files map[string]string, set func(*tool.Env)) *workspace {
	t.Helper()
	w := &workspace{t: t, dir: t.TempDir()}
	for name, content := range files {
		w.put(name, content, 0o644)
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	env := tool.Env{Root: root, Dir: "/workspace"}
	if set != nil {
		set(&env)
	}
	tools := tool.Builtins(env)
	if env.Limits.SpillDir != "" {
		tools = append(tools, &memory.Recall{Record: noRecord{}, SpillDir: env.Limits.SpillDir, MaxOutput: env.Limits.MaxOutput})
	}
	w.reg, err = tool.NewRegistry(env.Limits, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// noRecord is the record of a run that said nothing.
type noRecord struct{}

func (noRecord) Range(int64, int64, func(contextstore.Message, []byte) bool) error { return nil }
func (noRecord) Tail(int, func(contextstore.Message, []byte) bool) error           { return nil }

func (w *workspace) put(name, content string, mode os.FileMode) {
	w.t.Helper()
	file := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workspace) get(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// call calls a tool with args, a map or JSON text.
func (w *workspace) call(name string, args any) tool.Result {
	w.t.Helper()
	raw, ok := args.(string)
	if !ok {
		b, err := json.Marshal(args)
		if err != nil {
			w.t.Fatal(err)
		}
		raw = string(b)
	}
	res, err := w.reg.Call(context.Background(), name, raw)
	if err != nil {
		w.t.Fatalf("%s %s: %v", name, raw, err)
	}
	return res
}

// conversation renders calls and their results for a golden file.
type conversation struct {
	w *workspace
	b strings.Builder
}

func (c *conversation) call(name, args string) {
	c.w.t.Helper()
	res := c.w.call(name, args)
	mark := "<"
	if res.IsError {
		mark = "< error"
	}
	c.b.WriteString("> " + name + " " + args + "\n" + mark + "\n" + strings.TrimSuffix(res.Text, "\n") + "\n\n")
}

type obj = map[string]any

// allocated returns how many bytes f allocates in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a test's heap
}

// masks finds tokens like [EMAIL].
func masks(s string) (string, bool) {
	for _, token := range []string{"[EMAIL]", "[API_KEY]"} {
		if strings.Contains(s, token) {
			return token, true
		}
	}
	return "", false
}
