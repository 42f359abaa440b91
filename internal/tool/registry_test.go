package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"toritsugi/internal/disk"
	"toritsugi/internal/tool"
)

// fake is a tool whose call is a function.
type fake struct {
	def  tool.Definition
	call func(ctx context.Context, args json.RawMessage) (tool.Result, error)
}

func (f fake) Definition() tool.Definition { return f.def }
func (f fake) Call(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	return f.call(ctx, args)
}

const anything = `{"type":"object"}`

func named(name, schema string) fake {
	return fake{tool.Definition{Name: name, Schema: json.RawMessage(schema)}, func(_ context.Context, args json.RawMessage) (tool.Result, error) {
		return tool.Text(string(args)), nil
	}}
}

func saying(text string) fake {
	f := named("say", anything)
	f.call = func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Text(text), nil }
	return f
}

func registry(t *testing.T, limit tool.Limits, tools ...tool.Tool) *tool.Registry {
	t.Helper()
	r, err := tool.NewRegistry(limit, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNewRegistryRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limit tool.Limits
		tools []tool.Tool
		want  string
	}{
		"duplicate":     {tools: []tool.Tool{named("a", anything), named("b", anything), named("a", anything)}, want: "two tools are named a"},
		"bad name":      {tools: []tool.Tool{named("a b", anything)}, want: `"a b" is no valid name`},
		"no name":       {tools: []tool.Tool{named("", anything)}, want: `"" is no valid name`},
		"no schema":     {tools: []tool.Tool{named("a", "")}, want: "schema of a"},
		"not an object": {tools: []tool.Tool{named("a", `{"type":"string"}`)}, want: `type must be "object"`},
		"bad schema":    {tools: []tool.Tool{named("a", `{"type":"object","properties":{"x":{"pattern":"("}}}`)}, want: "schema of a"},
		"tiny output":   {limit: tool.Limits{MaxOutput: 10}, want: "MaxOutput is 10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tool.NewRegistry(tc.limit, tc.tools...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestRegistryOrder(t *testing.T) {
	t.Parallel()
	ro := named("b", `{ "type": "object" }`)
	ro.def.ReadOnly = true
	r := registry(t, tool.Limits{}, named("c", anything), ro, named("a", anything))
	var names []string
	for _, d := range r.Definitions() {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, ""); got != "abc" {
		t.Errorf("order %s", got)
	}
	if got := string(r.Definitions()[1].Schema); got != anything {
		t.Errorf("schema %s is not compact", got)
	}
	if !r.ReadOnly("b") || r.ReadOnly("a") || r.ReadOnly("x") {
		t.Error("ReadOnly is wrong")
	}
}

func TestRegistryTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, nil)
	c := conversation{w: w}
	c.call("read_files", `{"path":"a"}`)
	c.call("delete_everything_now", `{}`)
	c.call("read_file", `{"path": "a.go", start_line: 3}`)
	c.call("read_file", `{"path": "a.go"`)
	c.call("read_file", `["a.go"]`)
	c.call("read_file", `null`)
	c.call("read_file", ``)
	c.call("read_file", `{"path": 3}`)
	c.call("read_file", `{"file": "a.go"}`)
	c.call("read_file", `{"path": "a.go", "start_line": 0}`)
	c.call("grep", `{"pattern": "x", "limit": "ten"}`)
	c.call("grep", `{"limit": "ten", "output": 7, "context": [1, 2], "globs": 1}`)
	c.call("write_file", `{"paht": "a", "append": true}`)
	c.call("write_file", `{"path": "a", "content": "package a`)
	c.call("write_file", "{\"path\":\"a\",\"content\":\"\xff\"}")
	golden(t, "registry.golden", strings.ToValidUTF8(c.b.String(), `\xff`))
}

func TestRegistryEmptyArguments(t *testing.T) {
	t.Parallel()
	r := registry(t, tool.Limits{}, named("echo", anything))
	for _, raw := range []string{"", "  \n", "{}"} {
		res, err := r.Call(t.Context(), "echo", raw)
		if err != nil || res.IsError || res.Text != "{}" {
			t.Errorf("%q gave %+v, %v", raw, res, err)
		}
	}
}

func TestRegistryPanic(t *testing.T) {
	t.Parallel()
	f := named("broken", anything)
	f.call = func(context.Context, json.RawMessage) (tool.Result, error) { panic("no such thing") }
	r := registry(t, tool.Limits{}, f)
	res, err := r.Call(t.Context(), "broken", "")
	if err != nil || !res.IsError || !strings.Contains(res.Text, "broken crashed: no such thing") {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestRegistryErrorsOnlyWhereTheContextEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	failing, stopping := named("failing", anything), named("stopping", anything)
	failing.call = func(context.Context, json.RawMessage) (tool.Result, error) {
		return tool.Result{}, errors.New("out of paper")
	}
	stopping.call = func(ctx context.Context, _ json.RawMessage) (tool.Result, error) {
		cancel()
		return tool.Result{}, ctx.Err()
	}
	r := registry(t, tool.Limits{}, failing, stopping)
	res, err := r.Call(ctx, "failing", "")
	if err != nil || !res.IsError || !strings.Contains(res.Text, "out of paper") {
		t.Errorf("a failing tool gave %+v, %v", res, err)
	}
	for range 2 { // ends during the call, and was ended before it
		if _, err := r.Call(ctx, "stopping", ""); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	}
}

func TestOutputIsCutAndSpilled(t *testing.T) {
	t.Parallel()
	full := "first line\n" + strings.Repeat("0123456789\n", 1000) + "last line\n"
	dir := filepath.Join(t.TempDir(), "outputs")
	r := registry(t, tool.Limits{MaxOutput: 2000, SpillDir: dir}, saying(full))
	for _, name := range []string{"output-000001.txt", "output-000002.txt"} {
		res, err := r.Call(t.Context(), "say", "")
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Text) > 2000 || !strings.HasPrefix(res.Text, "first line\n") || !strings.HasSuffix(res.Text, "last line\n") || !strings.Contains(res.Text, "recall has all of it as "+strings.TrimSuffix(name, ".txt")+" ...") || strings.Contains(res.Text, dir) {
			t.Errorf("cut to\n%s", res.Text)
		}
		if name == "output-000001.txt" {
			golden(t, "cut.golden", res.Text)
		}
		f, err := tool.OpenSpill(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		if err != nil || string(got) != full {
			t.Errorf("%s holds %d bytes, want %d (%v)", name, len(got), len(full), err)
		}
		if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
		_ = f.Close()
	}
	// After a restart the numbers go on.
	r = registry(t, tool.Limits{MaxOutput: 2000, SpillDir: dir}, saying(full))
	res, _ := r.Call(t.Context(), "say", "")
	if !strings.Contains(res.Text, "output-000003 ") {
		t.Errorf("after a restart: %s", res.Text[:200])
	}
}

func TestOutputThatCannotBeSpilled(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": "it was not kept", blocked: "it could not be kept"} {
		r := registry(t, tool.Limits{MaxOutput: 1024, SpillDir: dir}, saying(strings.Repeat("x", 5000)))
		res, err := r.Call(t.Context(), "say", "")
		if err != nil || !strings.Contains(res.Text, want) || len(res.Text) > 1024 {
			t.Errorf("dir %q gave %+v, %v", dir, res, err)
		}
	}
}

// What a result names is on the disk; where that fails the result says so and
// nothing is left.
func TestSpillIsSyncedBeforeItIsNamed(t *testing.T) {
	t.Parallel()
	for _, fails := range []disk.Kind{"", disk.Append, disk.Sync} {
		dir := t.TempDir()
		var calls []disk.Kind
		fs := &disk.FS{Before: func(op disk.Op) error {
			calls = append(calls, op.Kind)
			if op.Kind == fails {
				return syscall.EIO
			}
			return nil
		}}
		r := registry(t, tool.Limits{MaxOutput: 1024, SpillDir: dir, Disk: fs}, saying(strings.Repeat("x", 5000)))
		res, err := r.Call(t.Context(), "say", "")
		if err != nil {
			t.Fatal(err)
		}
		named, left := strings.Contains(res.Text, "output-000001"), len(globbed(t, dir))
		switch fails {
		case "":
			if !named || left != 1 || calls[len(calls)-1] != disk.Sync || fs.Counts().Syncs == 0 {
				t.Errorf("named %v, %d files, calls %v", named, left, calls)
			}
		default:
			if named || left != 0 || !strings.Contains(res.Text, "it could not be kept") {
				t.Errorf("%s fails: named %v, %d files", fails, named, left)
			}
		}
	}
}

func globbed(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestSpillIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := registry(t, tool.Limits{MaxOutput: 1024, SpillDir: dir, MaxSpill: 3000}, saying(strings.Repeat("x", 5000)))
	res, _ := r.Call(t.Context(), "say", "")
	info, err := os.Stat(filepath.Join(dir, "output-000001.txt"))
	if err != nil || info.Size() != 3000 || !strings.Contains(res.Text, "recall has the first 3000 bytes as output-000001 ") {
		t.Errorf("%v, %v: %s", info, err, res.Text)
	}
}

// All outputs of a run together take no more room than they may, also after a
// restart.
func TestSpillsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	limits := tool.Limits{MaxOutput: 1024, SpillDir: dir, MaxSpillAll: 12_000}
	var texts []string
	for range 2 {
		r := registry(t, limits, saying(strings.Repeat("x", 5000)))
		for range 2 {
			res, _ := r.Call(t.Context(), "say", "")
			texts = append(texts, res.Text)
		}
	}
	for i, want := range []string{"all of it as output-000001 ", "all of it as output-000002 ", "the first 2000 bytes as output-000003 ", "it could not be kept"} {
		if !strings.Contains(texts[i], want) {
			t.Errorf("output %d: %s", i+1, texts[i])
		}
	}
}

func TestReadOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorkspace(t, nil, func(e *tool.Env) { e.Limits.SpillDir, e.Limits.MaxOutput = dir, 4000 })
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	b.WriteString(strings.Repeat("x", 3000) + "needle" + strings.Repeat("y", 3000) + "\n")
	for name, text := range map[string]string{"output-000007.txt": b.String(), "output-000008.txt": "bad \xff\n", "state.json": "secret"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("state.json", filepath.Join(dir, "output-000009.txt")); err != nil {
		t.Fatal(err)
	}
	c := conversation{w: w}
	for _, args := range []string{
		`{"id":"output-000007","from_line":998,"limit":2}`, `{"id":"output-000007.txt","pattern":"9[0-3]$","from_line":900}`, `{"id":"output-000007","pattern":"line","limit":1}`,
		`{"id":"output-000007","from_line":1001}`, `{"id":"output-000007","pattern":"needle"}`, `{"id":"output-000007","from_line":1002}`, `{"id":"output-000007","pattern":"nothing"}`,
		`{"id":"output-000008"}`, `{"id":"output-000009"}`, `{"id":"output-000001"}`, `{"id":"../state.json"}`, `{"id":"state.json"}`, `{"id":"output-000007","pattern":"("}`,
	} {
		c.call("read_output", args)
	}
	golden(t, "read_output.golden", c.b.String())
	if res := w.call("read_output", obj{"id": "output-000007", "limit": 2000}); len(res.Text) > 4000 || !strings.HasSuffix(res.Text, "more; continue with from_line=279]\n") {
		t.Errorf("%d bytes, %s", len(res.Text), res.Text[len(res.Text)-200:])
	}
}

func TestOpenSpillOnlyOpensOutputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "state.json", "../output-000001.txt", "output-000001.txt", "output-1.txt"} {
		if _, err := tool.OpenSpill(dir, name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("OpenSpill %q: %v", name, err)
		}
	}
}

// upper is a filter that holds a line back until it is whole, as a redactor does.
type upper struct {
	w    io.Writer
	held []byte
}

func (u *upper) Write(p []byte) (int, error) {
	u.held = append(u.held, p...)
	if i := bytes.LastIndexByte(u.held, '\n'); i >= 0 {
		if _, err := u.w.Write(bytes.ReplaceAll(u.held[:i+1], []byte("secret"), []byte("[GONE]"))); err != nil {
			return 0, err
		}
		u.held = append([]byte{}, u.held[i+1:]...)
	}
	return len(p), nil
}

func (u *upper) Close() error { _, err := u.w.Write(u.held); return err }

func TestFilterStandsBeforeCutAndSpill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := registry(t, tool.Limits{MaxOutput: 1024, SpillDir: dir, Filter: func(w io.Writer) io.WriteCloser { return &upper{w: w} }},
		saying(strings.Repeat("a secret word\n", 500)+"end"))
	res, _ := r.Call(t.Context(), "say", "")
	spilled, err := os.ReadFile(filepath.Join(dir, "output-000001.txt"))
	if err != nil || bytes.Contains(spilled, []byte("secret")) || !bytes.HasSuffix(spilled, []byte("end")) {
		t.Errorf("the spill file holds %.60s… (%v)", spilled, err)
	}
	if strings.Contains(res.Text, "secret") || !strings.HasSuffix(res.Text, "[GONE] word\nend") {
		t.Errorf("the result is %s", res.Text)
	}
}

// Whatever a tool says, the result is bounded, valid UTF-8 and without NULs;
// what fits is not changed.
func TestOutputLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 1, 20), rapid.Map(rapid.StringN(1, 20, -1), func(s string) []byte { return []byte(s) }), rapid.Just([]byte("line\n")))
		one := rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces")
		text := strings.Repeat(string(bytes.Join(one, nil)), rapid.IntRange(1, 30).Draw(t, "times"))
		r, err := tool.NewRegistry(tool.Limits{MaxOutput: 1024}, saying(text))
		if err != nil {
			t.Fatal(err)
		}
		res, err := r.Call(context.Background(), "say", "")
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Text) > 1024 || !utf8.ValidString(res.Text) || strings.Contains(res.Text, "\x00") {
			t.Fatalf("%d bytes, valid %v", len(res.Text), utf8.ValidString(res.Text))
		}
		if len(text) <= 1024 && utf8.ValidString(text) && !strings.Contains(text, "\x00") && res.Text != text {
			t.Fatalf("changed to %q", res.Text)
		}
	})
}
