package workspace

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"toritsugi/internal/sandbox"
)

// A model looks at its work with git inside the sandbox, and cannot write the
// branch, the configuration or the way to them.
func TestGitInsideTheSandbox(t *testing.T) {
	t.Parallel()
	box, err := sandbox.Detect(t.Context())
	if err != nil {
		t.Skipf("bubblewrap does not work here: %v", err)
	}
	w := create(t, newRepo(t, "日本 語"))
	r, err := box.Runner(sandbox.Spec{Workspace: w.Tree(), GitDir: w.GitDir(), Cache: filepath.Join(t.TempDir(), "cache")})
	if err != nil {
		t.Fatal(err)
	}
	run := func(script string) (string, int) {
		var out bytes.Buffer
		exit, err := r.Run(t.Context(), sandbox.Command{Script: script, Output: &out})
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out.String())
		}
		return out.String(), exit.Code
	}
	if out, code := run("echo more >> README.md; echo x > new; git status --porcelain && git diff --stat && git log --oneline | wc -l"); code != 0 ||
		out != " M README.md\n?? new\n README.md | 1 +\n 1 file changed, 1 insertion(+)\n1\n" {
		t.Errorf("%d: %q", code, out)
	}
	for _, script := range []string{"git add new", "git config a.b c", "rm .git", "rm -rf '" + w.GitDir() + "/refs'", "ls '" + w.dir + "/workspace.json'"} {
		if out, code := run(script); code == 0 {
			t.Errorf("%s: allowed\n%s", script, out)
		}
	}
	id := commit(t, w, "from outside")
	if out, code := run("git log -1 --format=%H; git status --porcelain"); code != 0 || out != id+"\n" {
		t.Errorf("%d: %q", code, out)
	}
}

// walls is where git runs in tests: confined where this machine can.
func walls() Box { return Box{Shell: shell()} }

var shell = sync.OnceValue(func() func(sandbox.Spec) (sandbox.Runner, error) {
	box, err := sandbox.Detect(context.Background())
	if err != nil {
		return bare
	}
	return box.Runner
})

func bare(spec sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(spec), nil }

// The program of the tests is the helper of its sandboxes.
func TestMain(m *testing.M) {
	sandbox.Helper(os.Args)
	os.Exit(m.Run())
}
