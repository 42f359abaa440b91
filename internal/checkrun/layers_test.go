package checkrun

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/sandbox"
	"toritsugi/internal/workspace"
)

// TestMain lets the test binary be the helper that some kinds of sandbox are.
func TestMain(m *testing.M) {
	sandbox.Helper(os.Args)
	os.Exit(m.Run())
}

// In every kind of sandbox of this machine: go upon the layers takes from the
// base's what was built there, cannot write to it, and never sees what the
// model's steps made of their own.
func TestGoUponLayers(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	w := goWorkspace(t)
	var boxes []*sandbox.Sandbox
	for _, kind := range []string{sandbox.KindBwrap, sandbox.KindNamespaces, sandbox.KindLandlock} {
		if box, err := sandbox.Choose(t.Context(), sandbox.Options{Prefer: kind}); err == nil {
			boxes = append(boxes, box)
		}
	}
	if boxes == nil {
		t.Skip("no sandbox here")
	}
	run := func(box *sandbox.Sandbox, l workspace.Layer, script string) (string, int) {
		t.Helper()
		c, err := w.Caches(t.Context(), l)
		if err != nil || c.Cold != nil {
			t.Fatal(err, c.Cold)
		}
		r, err := box.Runner(sandbox.Spec{Workspace: w.Tree(), GitDir: w.GitDir(), Cache: c.Dir, ReadOnly: c.ReadOnly, Scratch: filepath.Join(filepath.Dir(w.Tree()), "scratch")})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		exit, err := r.Run(t.Context(), sandbox.Command{Script: script, Output: &out, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err, out.String())
		}
		return out.String(), exit.Code
	}
	// -v names what is not taken from the cache.
	if out, code := run(boxes[0], workspace.LayerBase, "go build -v -o /dev/null . && go run ."); code != 0 || !strings.Contains(out, "runtime\n") || !strings.HasSuffix(out, "right\n") {
		t.Fatalf("%d: %s", code, out)
	}
	if err := w.SealBase(t.Context()); err != nil {
		t.Fatal(err)
	}
	base := filepath.Dir(w.Tree()) + "/cache/base"
	for _, box := range boxes {
		t.Run(box.Kind(), func(t *testing.T) {
			write(t, filepath.Join(w.Tree(), "m.go"), right)
			if out, code := run(box, workspace.LayerSteps, "go build -v -o /dev/null ."); code != 0 || out != "" {
				t.Errorf("the steps build anew: %d: %s", code, out)
			}
			// The program is wrong now, and the model spoils all that it reaches:
			// its own cache, through its links, and the base's itself.
			write(t, filepath.Join(w.Tree(), "m.go"), strings.Replace(right, "right", "wrong", 1))
			out, code := run(box, workspace.LayerSteps, `cd "$GOCACHE" && for f in */*-d; do echo poisoned > $f; done 2>/dev/null; rm -rf "`+base+`/go-build"; touch "`+base+`/x"; rm -rf "$GOCACHE"; ls "`+base+`"`)
			if code != 0 || strings.Contains(out, "\nx\n") || !strings.Contains(out, "go-build\n") {
				t.Errorf("the base's was written to: %d: %s", code, out)
			}
			out, code = run(box, workspace.LayerCheck, "go vet . && go build -v -o /dev/null . && go run . && go build -v -o /dev/null .")
			if code != 0 || strings.Count(out, "m\n") != 1 || strings.Contains(out, "runtime") || !strings.HasSuffix(out, "wrong\n") {
				t.Errorf("%d: %s", code, out)
			}
			if err := w.DropCaches(workspace.LayerSteps); err != nil {
				t.Fatal(err)
			}
		})
	}
}

const right = "package main\n\nfunc main() { println(\"right\") }\n"

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// goWorkspace is a workspace of a module with one program.
func goWorkspace(t *testing.T) *workspace.Workspace {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "repo/go.mod"), "module m\n\ngo 1.24\n")
	write(t, filepath.Join(dir, "repo/m.go"), right)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=ken", "-c", "user.email=ken@example.com", "commit", "-q", "-m", "start"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = filepath.Join(dir, "repo")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	src, err := workspace.Inspect(t.Context(), filepath.Join(dir, "repo"), workspace.InspectOptions{NoStatus: true})
	if err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Create(t.Context(), workspace.CreateOptions{Box: workspace.Box{Shell: func(s sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(s), nil }}, Source: src, Dir: filepath.Join(dir, "workspace"), Branch: "work"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}
