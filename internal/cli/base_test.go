package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// standing is a check that stands still on the base until it is let on, and fails
// there.
const standing = `': > waiting; until test -e go-on || test -e good; do sleep 0.02; done; test -e good'`

// letOn lets a standing check on.
func (h *house) letOn() {
	h.t.Helper()
	h.await("workspaces/*/apart/tree/waiting")
	trees, err := filepath.Glob(filepath.Join(h.base(), "workspaces/*/apart/tree"))
	if err != nil || len(trees) != 1 {
		h.t.Fatal(trees, err)
	}
	if err := os.WriteFile(filepath.Join(trees[0], "go-on"), nil, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// recorded counts the checks of the base that have ended.
func (h *house) recorded() (n int) {
	v := h.only()
	if err := v.Tail(contextstore.Checks, -1, func(b []byte) error { n += strings.Count(string(b), `"round":0,`); return nil }); err != nil {
		h.t.Error(err)
	}
	return n
}

// awaitBase waits until a check of the base has ended.
func (h *house) awaitBase() {
	for end := time.Now().Add(4 * time.Minute); h.recorded() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Error("no check of the base ends")
			return
		}
	}
}

// newBeside is a house whose check stands still on the base.
func newBeside(t *testing.T, model, check string) *house {
	t.Helper()
	h := newHouse(t, model, check)
	f, err := os.OpenFile(h.config, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("planning: {enabled: false}\n")
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return h
}

// news counts how often a request tells of the base.
func news(r *llmtest.Request) int {
	return strings.Count(string(r.Body), "Checks, run before any change")
}

// The model is asked before the checks of the base have ended, and hears of what
// failed there once, between two of its turns.
func TestChecksOfTheBaseRunBeside(t *testing.T) {
	t.Parallel()
	var h *house
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch r.Turn() {
		case 0:
			if n := h.recorded(); n != 0 || news(r) != 0 {
				t.Errorf("%d checks have ended before the first call", n)
			}
			h.letOn()
			h.awaitBase()
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "1", Name: "shell", Arguments: `{"command":"ls; echo x > good"}`}}}
		case 1:
			if news(r) != 1 {
				t.Errorf("what failed on the base is told %d times", news(r))
			}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h = newBeside(t, server.URL, standing)
	p := h.start(h.args...)
	if code := p.code(); code != 0 || !strings.Contains(p.out.String(), "completed: checks passed") {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	llmtest.CheckPrefix(t, server.Requests())
	if n := h.recorded(); n != 1 {
		t.Errorf("the check ran %d times on the base", n)
	}
	if left, _ := filepath.Glob(filepath.Join(h.base(), "workspaces/*/apart")); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

// A run that was killed while the checks of the base were under way runs them when
// it is taken up, before its own are judged; one that was told of them is not told
// again.
func TestKilledBesideTheChecksOfTheBase(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	var h *house
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch r.Turn() {
		case 0:
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "1", Name: "shell", Arguments: `{"command":"echo x > good; touch began; sleep 60"}`}}}
		case 1: // by the second owner
			h.letOn()
			h.awaitBase()
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "2", Name: "shell", Arguments: `{"command":"rm began; touch again; sleep 60"}`}}}
		}
		if news(r) != 1 {
			t.Errorf("what failed on the base is told %d times", news(r))
		}
		if r.Turn() == 2 {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "3", Name: "shell", Arguments: `{"command":"rm -f again; touch last; sleep 60"}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h = newBeside(t, server.URL, standing)
	p := h.start(h.args...)
	for _, at := range []string{"began", "again", "last"} {
		h.await("workspaces/*/tree/" + at)
		_ = p.Process.Kill()
		_ = p.Wait()
		trees, _ := filepath.Glob(filepath.Join(h.base(), "workspaces/*/apart/tree"))
		for _, tree := range trees { // of the check that was killed
			_ = os.Remove(filepath.Join(tree, "waiting"))
		}
		p = h.start(append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
	}
	if code := p.code(); code != 0 || !strings.Contains(p.out.String(), "completed: checks passed") {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	llmtest.CheckPrefix(t, server.Requests())
	if n := h.recorded(); n != 1 {
		t.Errorf("the check ran %d times on the base", n)
	}
}

// Work that is done before the base is known waits for it.
func TestTheBaseIsAwaited(t *testing.T) {
	t.Parallel()
	var h *house
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 0 {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "1", Name: "shell", Arguments: `{"command":"echo x > other"}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h = newBeside(t, server.URL, strings.Replace(standing, "|| test -e good;", "|| test -e other;", 1))
	p := h.start(h.args...)
	h.await("workspaces/*/tree/other")
	h.letOn()
	if code := p.code(); code != 0 || !strings.Contains(p.out.String(), "unverified: ") || !strings.Contains(p.out.String(), "failed before the change and still fails") {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	if got := len(server.Requests()); got != 2 {
		t.Errorf("%d requests: what was red sends nobody back", got)
	}
}

// A pause ends the checks of the base with everything else.
func TestPauseBesideTheChecksOfTheBase(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, func(*llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Calls: []llm.ToolCall{{ID: "1", Name: "shell", Arguments: `{"command":"touch began; sleep 60"}`}}}
	})
	h := newBeside(t, server.URL, standing)
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	h.await("workspaces/*/apart/tree/waiting")
	_ = p.Process.Signal(os.Interrupt)
	if code := p.code(); code != exitPaused {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	if n := h.recorded(); n != 0 {
		t.Errorf("%d checks have ended", n)
	}
}

// What a check said of a base is not asked again while nothing changed that it may
// depend on, and only where it passed.
func TestTheBaseIsKnownFromAnEarlierRun(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 0 {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "1", Name: "shell", Arguments: `{"command":"echo x > good"}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h := newBeside(t, server.URL, "'test -f README.md', 'test -f good'")
	run := func() string {
		t.Helper()
		p := h.start(h.args...)
		if code := p.code(); code != 0 {
			t.Fatalf("exit code %d:\n%s", code, p.out.String())
		}
		return p.out.String()
	}
	const cached, failed = "Check passed: test -f README.md round=0 cached=", "Check failed: test -f good round=0 exit=1"
	if out := run(); strings.Contains(out, cached) || !strings.Contains(out, failed) {
		t.Error(out)
	}
	if out := run(); !strings.Contains(out, cached) || !strings.Contains(out, failed) {
		t.Error(out)
	}
	kept, err := filepath.Glob(filepath.Join(h.base(), "setup/*/*/results/*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	for path, mode := range map[string]os.FileMode{kept[0]: 0o600, filepath.Dir(kept[0]): 0o700} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	// One that is damaged, or of another commit, is none.
	if err := os.WriteFile(kept[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := run(); strings.Contains(out, cached) {
		t.Error(out)
	}
	if out := run(); !strings.Contains(out, cached) {
		t.Error(out)
	}
	cmd := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(h.dir, "repo"), "-c", "user.name=k", "-c", "user.email=k@example.com", "commit", "-q", "--allow-empty", "-m", "more")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out := run(); strings.Contains(out, cached) {
		t.Error(out)
	}
}
