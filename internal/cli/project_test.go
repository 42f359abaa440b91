package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// checksOf are the checks that were run in the newest run of a town.
func (w *town) checksOf() string {
	w.t.Helper()
	all := runs(w.t, filepath.Join(w.dir, "base"))
	b, err := readFile(filepath.Join(all[len(all)-1].Dir, "checks.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// Rules and checks are those of the branch that work is for: what the head of a
// pull request makes of them, or an earlier run, judges and tells nothing.
func TestRulesAndChecksOfTheBaseBranch(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	text, err := readFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.config, strings.Replace(string(text), "checks: [sh check.sh]\n", "", 1))
	w.repo.Commit("main", "hanako", "Rules", map[string]string{"AGENTS.md": "RULES OF MAIN\n```tori-checks\ngrep -q 42 answer.txt\n```\n"})
	w.repo.Commit("feature", "hanako", "Mine", map[string]string{"AGENTS.md": "RULES OF THE HEAD\n```tori-checks\necho head\n```\n", "CLAUDE.md": "MORE OF THE HEAD\n", "go.mod": "module x\n", "Makefile": "test:\n\techo head\n"})
	p := w.repo.OpenPull("hanako", "feature", "main", "Mine", "Take it.")
	write(t, filepath.Join(w.dir, "script.yaml"), "- calls: [{tool: write_file, args: {path: answer.txt, content: \"42\\n\"}}]\n- say: Mended.\n")
	w.repo.Label(p, "coding agent", "hanako")
	log := w.once()
	all := runs(t, filepath.Join(w.dir, "base"))
	system := first(t, all[0], 1)[0].Content
	if !strings.Contains(system, "RULES OF MAIN") || strings.Contains(system, "OF THE HEAD") || strings.Contains(system, "Makefile") {
		t.Errorf("%s\n%s", system, log)
	}
	if c := w.checksOf(); !strings.Contains(c, `"command":"grep -q 42 answer.txt"`) || strings.Contains(c, "echo head") || strings.Contains(c, "go test") || strings.Contains(c, "make") {
		t.Errorf("%s\n%s", c, log)
	}

	// What a run changes does not judge the next one on its branch.
	n := w.repo.OpenIssue("hanako", "Rules", "Other rules.")
	write(t, filepath.Join(w.dir, "script.yaml"), "- calls: [{tool: write_file, args: {path: AGENTS.md, content: \"RULES OF A MODEL\\n```tori-checks\\necho model\\n```\\n\"}}, {tool: write_file, args: {path: answer.txt, content: \"42\\n\"}}]\n- say: Changed.\n")
	w.repo.Label(n, "coding agent", "hanako")
	w.once()
	write(t, filepath.Join(w.dir, "script.yaml"), "- calls: [{tool: write_file, args: {path: why.txt, content: because}}]\n- say: Said why.\n")
	w.repo.Comment(n, "hanako", "Say why, too.")
	w.repo.Label(n, "coding agent", "hanako")
	log = w.once()
	if all = runs(t, filepath.Join(w.dir, "base")); len(all) != 3 {
		t.Fatalf("%d runs\n%s", len(all), log)
	}
	system = first(t, all[2], 1)[0].Content
	if c := w.checksOf(); !strings.Contains(system, "RULES OF MAIN") || strings.Contains(system, "OF A MODEL") || !strings.Contains(c, `"command":"grep -q 42 answer.txt"`) || strings.Contains(c, "echo model") {
		t.Errorf("%s\n%s\n%s", system, c, log)
	}
}

// commit commits all that is in the repository.
func (h *house) commit(message string) {
	h.t.Helper()
	for _, a := range [][]string{{"add", "."}, {"-c", "user.name=k", "-c", "user.email=k@example.com", "commit", "-q", "-m", message}} {
		cmd := exec.CommandContext(h.t.Context(), "git", a...)
		cmd.Dir = filepath.Join(h.dir, "repo")
		if out, err := cmd.CombinedOutput(); err != nil {
			h.t.Fatalf("git %v: %v\n%s", a, err, out)
		}
	}
}

// A run that goes on sends what it began with, to the byte, and is judged by the
// same checks, whatever became of the tree and of the branch meanwhile.
func TestTheProjectStaysAsItWas(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var systems []string
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		mu.Lock()
		defer mu.Unlock()
		var messages []json.RawMessage
		if err := json.Unmarshal(r.Raw, &messages); err != nil {
			t.Error(err)
		}
		systems = append(systems, string(messages[0]))
		switch len(systems) {
		case 1:
			args, _ := json.Marshal(map[string]string{"command": "printf 'NEW RULES' > AGENTS.md; echo x > Makefile; mkdir -p bin; echo module y > go.mod"})
			return llmtest.Answer{Text: "I change them.", Calls: []llm.ToolCall{{ID: "call_1", Name: "shell", Arguments: string(args)}}}
		case 2:
			return llmtest.Answer{Status: 401, ErrorText: "not now"}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h := newHouse(t, server.URL, "")
	text, err := readFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	h.write("config.yaml", strings.Replace(string(text), "checks: []\n", "", 1))
	h.write("repo/AGENTS.md", "FIRST RULES\n```tori-checks\ntest -f README.md\n```\n")
	h.commit("rules")
	p := h.start(h.args...)
	if code := p.code(); code != exitPaused {
		t.Fatalf("exit code %d\n%s", code, p.out.String())
	}
	h.write("repo/AGENTS.md", "LATER RULES\n```tori-checks\nfalse\n```\n")
	h.commit("other rules")
	p = h.start(append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
	if code := p.code(); code != exitOK || !strings.Contains(p.out.String(), "checks passed: `test -f README.md`") {
		t.Fatalf("exit code %d\n%s", code, p.out.String())
	}
	mu.Lock()
	defer mu.Unlock()
	if len(systems) < 3 || !strings.Contains(systems[0], "FIRST RULES") {
		t.Fatalf("%q", systems)
	}
	for _, s := range systems[1:] {
		if s != systems[0] {
			t.Errorf("the first message changed:\n%s\n%s", systems[0], s)
		}
	}
}
