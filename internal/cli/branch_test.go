package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// What an earlier run of the issue owes is delivered first, and its branch is
// not the new run's.
func TestANewRunBesideAnUndeliveredBranch(t *testing.T) {
	t.Parallel()
	model := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 0 {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "write_file", Arguments: `{"path":"a.txt","content":"a\n"}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h := newHouse(t, model.URL, "")
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", filepath.Join(h.dir, "repo")}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if p := h.start(h.args...); p.code() != 0 {
		t.Fatal(p.out.String())
	}
	// As if it had been killed between its end and the delivery.
	first := git("for-each-ref", "--format=%(refname:short)", "refs/heads/tori")
	git("branch", "-D", first)
	for _, f := range []string{"house.db", "house.db-wal", "house.db-shm"} {
		_ = os.Remove(filepath.Join(h.base(), f))
	}
	h.tori(0, "reindex")
	if p := h.start(h.args...); p.code() != 0 {
		t.Fatal(p.out.String())
	}
	if got, want := git("for-each-ref", "--format=%(refname:short)", "refs/heads/tori"), first+"\n"+first+"-2"; got != want {
		t.Errorf("branches %q, want %q", got, want)
	}
}
