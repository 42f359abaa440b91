package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/memory"
	"toritsugi/internal/task"
)

// runs are all runs of a base directory, oldest first.
func runs(t *testing.T, base string) []contextstore.View {
	t.Helper()
	l, err := list(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(l.Views)
	return l.Views
}

// first are the first messages of a run.
func first(t *testing.T, v contextstore.View, n int) (all []contextstore.Message) {
	t.Helper()
	l, err := v.MessageLog()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := l.Range(1, int64(n), func(m contextstore.Message, _ []byte) bool { all = append(all, m); return true }); err != nil || len(all) != n {
		t.Fatalf("%d messages: %v", len(all), err)
	}
	return all
}

// lastSummary is the last line of summaries.jsonl.
func lastSummary(t *testing.T, v contextstore.View) contextstore.Summary {
	t.Helper()
	s, err := v.LastFinal()
	if err != nil || s == nil {
		t.Fatalf("%v %v", s, err)
	}
	return *s
}

// An issue that is asked for again: the second run has the first one's summary,
// the issue, and of the comments what is new; people are told, and who spoke is
// not carried along. A stranger's word in the first run stays one in the second.
func TestASecondRunOfAnIssue(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Comment(n, "hanako", "OLD WISH")
	w.repo.Comment(n, "stranger", "OLD GOSSIP")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	w.repo.Comment(n, "hanako", "NEW WISH")
	w.repo.Comment(n, "hanako", "/retry")
	log += w.once()
	all := runs(t, filepath.Join(w.dir, "base"))
	if len(all) != 2 || all[0].Status() != task.Completed || all[1].Status() != task.Completed {
		t.Fatalf("%d runs\n%s", len(all), log)
	}
	msgs := first(t, all[1], 3)
	past, request := msgs[1], msgs[2]
	if past.Role != llm.RoleAssistant || !strings.HasPrefix(past.Content, memory.InheritedPrefix+"Task: The answer is wrong (#"+fmt.Sprint(n)+")\nOutcome: completed. ") ||
		!strings.Contains(past.Content, "The answer is 42 now") || !strings.Contains(past.Content, "Text that nobody vouches for went into it.") || strings.Contains(past.Content, "hanako") {
		t.Errorf("%+v", past)
	}
	if request.Role != llm.RoleUser || !strings.Contains(request.Content, "It says 41.") || !strings.Contains(request.Content, "NEW WISH") ||
		strings.Contains(request.Content, "OLD") || !strings.Contains(request.Content, "2 comments that the earlier run was told") {
		t.Error(request.Content)
	}
	var facts, grants []byte
	for name, to := range map[string]*[]byte{"effects.jsonl": &facts, "approvals.jsonl": &grants} {
		b, err := readFile(filepath.Join(all[1].Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		*to = b
	}
	if !strings.Contains(string(facts), `"fact":"stranger_text","detail":"run `+all[0].Metadata.UUID[:8]+`: @stranger"`) {
		t.Errorf("%s", facts)
	}
	if strings.Contains(string(grants), all[0].Metadata.UUID) || strings.Count(string(grants), "\n") != 1 {
		t.Errorf("%s", grants)
	}
	_, ours := w.shown(n)
	if len(ours) != 2 || strings.Contains(ours[0], "taken over") || !strings.Contains(ours[1], "📋 **An earlier context was taken over**\n\n- From: #"+all[0].Metadata.UUID[:8]) {
		t.Errorf("%d comments: %s", len(ours), strings.Join(ours, "\n---\n"))
	}
	// The review of the pull request is another task; it has no past but by a link.
	if len(w.repo.Pulls()) == 0 {
		t.Fatalf("%d pull requests\n%s", len(w.repo.Pulls()), log)
	}
	p := w.repo.Pulls()[0].Number
	w.repo.Review(p, "hanako", "CHANGES_REQUESTED", "Say why.")
	log = w.once()
	all = runs(t, filepath.Join(w.dir, "base"))
	if len(all) != 3 || all[2].Metadata.TaskKey.Type != "pull_request" || first(t, all[2], 2)[1].Role != llm.RoleUser {
		t.Fatalf("%d runs\n%s", len(all), log)
	}
}

// On the branch of the pull request that an earlier run opened, its plan goes on:
// what it had done, and the model says is done, is not done again.
func TestAPlanGoesOnOnItsBranch(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	once := func(script string) string {
		t.Helper()
		write(t, filepath.Join(w.dir, "script.yaml"), script)
		cmd := w.serve("--once")
		cmd.Env = append(cmd.Env, "TORI_PLANNING_ENABLED=true")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	plan := func(subtasks, more string) string {
		return `- say: '{"phase":"planning","goal_understanding":{"main_objective":"42","success_criteria":["it is 42"],"constraints":[]},"task_decomposition":{"reasoning":"r","subtasks":[` + subtasks + `]},"action_plan":{"execution_order":[],"actions":[]}` + more + "}'\n"
	}
	const (
		answer   = `{"id":"answer","description":"Write 42 into answer.txt","dependencies":[],"complexity":"low"}`
		verified = `- say: '{"phase":"verification","verification_passed":true,"criteria":[{"criterion":"it is 42","met":true,"evidence":"answer.txt:1"}],"issues_found":[],"placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":0.9}'` + "\n"
	)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := once(plan(answer, "") + `- calls: [{tool: write_file, args: {path: answer.txt, content: "42"}}]
- say: '{"task_id":"answer","status":"done","summary":"answer.txt says 42"}'
` + verified)
	w.repo.Comment(n, "hanako", "Say why, too.")
	w.repo.Comment(n, "hanako", "/retry")
	log += once(plan(answer+`,{"id":"why","description":"Say why in why.txt","dependencies":["answer"],"complexity":"low"}`, `,"previous_plan":{"applicability":"continue","done":["answer","why"]}`) +
		`- calls: [{tool: write_file, args: {path: why.txt, content: "because"}}]
- say: '{"task_id":"why","status":"done","summary":"why.txt says why"}'
` + verified)
	all := runs(t, filepath.Join(w.dir, "base"))
	if len(all) != 2 || all[1].Status() != task.Completed {
		t.Fatalf("%d runs\n%s", len(all), log)
	}
	msgs := first(t, all[1], 6)
	if past := msgs[1].Content; !strings.Contains(past, "Write 42 into answer.txt → answer.txt says 42") {
		t.Error(past)
	}
	if ask := msgs[3].Content; !strings.Contains(ask, "The files hold what that run committed") {
		t.Error(ask)
	}
	if work := msgs[5]; work.Kind != "subtask/why" || !strings.Contains(work.Content, "subtask 2 of 2: Say why in why.txt") {
		t.Errorf("%s: %s", work.Kind, work.Content)
	}
}

// With context_inheritance.follow_links, work on a pull request has the summary of
// the issue's run that made it, and of no other issue that it names.
func TestAPullRequestInheritsFromItsIssue(t *testing.T) {
	t.Parallel()
	w := newTown(t, "context_inheritance: {follow_links: true}\n")
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	if len(w.repo.Pulls()) != 1 {
		t.Fatal(log)
	}
	p := w.repo.Pulls()[0]
	write(t, filepath.Join(w.dir, "script.yaml"), "- calls: [{tool: write_file, args: {path: why.txt, content: because}}]\n- say: Said why.\n")
	w.repo.Review(p.Number, "hanako", "CHANGES_REQUESTED", "Say why.")
	log = w.once()
	all := runs(t, filepath.Join(w.dir, "base"))
	if len(all) != 2 {
		t.Fatal(log)
	}
	msgs := first(t, all[1], 3)
	if !strings.HasPrefix(msgs[1].Content, memory.InheritedPrefix+"Task: The answer is wrong") || !strings.Contains(msgs[2].Content, "Say why.") {
		t.Errorf("%s\n%s\n%s", msgs[1].Content, msgs[2].Content, log)
	}
	// Another branch that says it closes the issue has no part in it.
	w.repo.Commit("other", "hanako", "other", map[string]string{"other.txt": "x"})
	q := w.repo.OpenPull("hanako", "other", "main", "Other", fmt.Sprintf("Closes #%d", n))
	w.repo.Label(q, "coding agent", "hanako")
	log = w.once()
	all = runs(t, filepath.Join(w.dir, "base"))
	if len(all) != 3 || first(t, all[2], 2)[1].Role != llm.RoleUser {
		t.Errorf("%d runs\n%s", len(all), log)
	}
}

// long is a model that ends after so many turns that a model is asked to sum the
// run up: it writes a.txt first, and then reads.
func long(r *llmtest.Request) llmtest.Answer {
	u := &llm.Usage{PromptTokens: 1000, CompletionTokens: 10, TotalTokens: 1010}
	id := fmt.Sprint("c", r.Turn())
	switch n := r.Turn(); {
	case n == 0:
		return llmtest.Answer{Usage: u, Calls: []llm.ToolCall{{ID: id, Name: "write_file", Arguments: `{"path":"a.txt","content":"a\n"}`}}}
	case n < longTurns:
		return llmtest.Answer{Usage: u, Calls: []llm.ToolCall{{ID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"README.md","offset":%d}`, n)}}}
	}
	return llmtest.Answer{Usage: u, Text: "LAST WORDS of the run."}
}

const longTurns = 12

// The final summary of a run is the model's own, with our facts before it, asked
// behind the run's own messages, which its provider has in the cache; the next run
// is given it. Where the model fails at it, the records tell.
func TestFinalSummaryByTheModel(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	server := llmtest.NewServer(t, long)
	h := newHouse(t, server.URL, "")
	tell := func(r *llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Text: "a.txt was written.\nOutcome: failed. Or so I say.", Usage: &llm.Usage{PromptTokens: 500, CompletionTokens: 20, TotalTokens: 520}}
	}
	for i, tc := range []struct {
		answer llmtest.Handler
		by     string
		has    string
	}{
		{tell, "openai/m", "a.txt was written."},
		{func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Status: 500, Text: "boom"} }, "", "Last answer: LAST WORDS"},
		{func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "Error: too busy"} }, "", "Last answer: LAST WORDS"},
		{func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: strings.Repeat("long ", 20_000)} }, "", "Last answer: LAST WORDS"},
		{tell, "openai/m", "a.txt was written."},
	} {
		server.OnFinal(tc.answer)
		h.ends(exitOK, "^completed: ", h.args...)
		all := runs(t, h.base())
		v := all[len(all)-1]
		s := lastSummary(t, v)
		if s.AnsweredBy != tc.by || s.Extractive != (tc.by == "") || !strings.HasPrefix(s.Summary, "Task: Count to a hundred (#issue)\nOutcome: completed. ") || !strings.Contains(s.Summary, tc.has) ||
			!strings.Contains(s.Summary, "\nChanged: a.txt\n") {
			t.Errorf("run %d: %+v", i, s)
		}
		want, calls := int64(1000*(longTurns+1)), int64(longTurns+1)
		if tc.by != "" { // and the one that wrote the summary, of which it is known what it took
			want, calls = want+500, calls+1
		}
		if v.State.PromptTokens != want || v.State.LLMCallCount != calls {
			t.Errorf("run %d: %d tokens of prompts, %d calls", i, v.State.PromptTokens, v.State.LLMCallCount)
		}
		if out := h.tori(0, "tasks", "--json"); !strings.Contains(strings.ReplaceAll(out, ": ", ":"), fmt.Sprintf(`"llm_call_count":%d`, calls)) {
			t.Errorf("run %d: the row does not count it: %s", i, out)
		}
		llmtest.CheckPrefix(t, []llmtest.Request{server.Requests()[(i+1)*(longTurns+1)-1], server.Finals()[i]})
		if i == 0 {
			continue
		}
		before := lastSummary(t, all[len(all)-2])
		if past := first(t, v, 2)[1].Content; !strings.HasPrefix(past, memory.InheritedPrefix+strings.TrimSpace(before.Summary)+"\n\n[Left by run ") {
			t.Errorf("run %d: %s", i, past)
		}
	}
	finals := server.Finals()
	if all := server.Requests(); len(finals) != 5 || len(finals[0].Tools) != len(all[0].Tools) || finals[0].Limit == 0 {
		t.Errorf("%d requests, %d tools", len(finals), len(finals[0].Tools))
	}
	for _, r := range server.Requests() {
		for _, m := range r.Messages {
			if m.Content != nil && strings.Contains(*m.Content, llmtest.FinalQuestion) {
				t.Fatal("the question is part of a run")
			}
		}
	}
}

// A summarizer of its own is asked, and no other in its place.
func TestSummarizerRole(t *testing.T) {
	t.Parallel()
	worker := llmtest.NewServer(t, long)
	own := llmtest.NewServer(t, nil)
	own.OnFinal(func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "Nothing was to be done."} })
	h := newHouse(t, worker.URL, "")
	h.settings(fmt.Sprintf("provider: openai, openai: {base_url: %q, model: m, api_key: key-for-a-test}, vllm: {base_url: %q, model: small}", worker.URL, own.URL),
		"checks: []\nrouting: {llm: {summarizer_provider: vllm, summarizer_model: small}}")
	h.ends(exitOK, "^completed: ", h.args...)
	if s := lastSummary(t, h.only()); s.AnsweredBy != "vllm/small" || !strings.Contains(s.Summary, "Nothing was to be done.") {
		t.Errorf("%+v", s)
	}
	if len(own.Finals()) != 1 || len(worker.Finals()) != 0 || len(own.Requests()) != 0 {
		t.Errorf("%d, %d", len(own.Finals()), len(worker.Finals()))
	}
}

// A run that used up its budget asks no model for a summary.
func TestNoSummaryBeyondTheBudget(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, llmtest.Loop(100, "read_file", `{"path":"README.md"}`, "Done."))
	h := newHouse(t, server.URL, "")
	h.settings(fmt.Sprintf("provider: openai, openai: {base_url: %q, model: m, api_key: key-for-a-test}", server.URL), "checks: []\nbudget: {max_turns: 2}")
	h.ends(exitFailed, "^failed: ", h.args...)
	if s := lastSummary(t, h.only()); !s.Extractive || !strings.HasPrefix(s.Summary, "Task: Count to a hundred (#issue)\nOutcome: failed. ") {
		t.Errorf("%+v", s)
	}
	if len(server.Finals()) != 0 {
		t.Error("asked all the same")
	}
}

// A run that is done asks no model for a summary that its budget is not thought to
// have room for.
func TestNoSummaryThatDoesNotFit(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	oneDay(t)
	for budget, finals := range map[string]int{"max_tokens: 75000": 0, "day: {max_tokens: 75000}": 0, "max_tokens: 90000": 1} {
		t.Run(budget, func(t *testing.T) {
			t.Parallel()
			server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
				a := long(r)
				if a.Usage = (&llm.Usage{PromptTokens: 4500, CompletionTokens: 10}); r.Turn() == longTurns {
					a.Usage.PromptTokens = 16_000
				}
				return a
			})
			h := newHouse(t, server.URL, "")
			h.spends(server, budget)
			h.ends(exitOK, "^completed", h.args...)
			if s := lastSummary(t, h.only()); s.Extractive != (finals == 0) || len(server.Finals()) != finals {
				t.Errorf("asked %d times: %+v", len(server.Finals()), s)
			}
		})
	}
}

// Ctrl-C while the model writes the final summary: nobody waits for it, and the
// run ends as it had ended.
func TestInterruptedAtTheFinalSummary(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, long)
	asked := make(chan struct{}, 1)
	server.OnFinal(func(*llmtest.Request) llmtest.Answer {
		asked <- struct{}{}
		return llmtest.Answer{Stall: llmtest.StallAtOnce}
	})
	h := newHouse(t, server.URL, "")
	p := h.start(h.args...)
	<-asked
	_ = p.Process.Signal(os.Interrupt)
	if code := p.code(); code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	if s := lastSummary(t, h.only()); !s.Extractive || !strings.Contains(s.Summary, "Outcome: completed. ") || !strings.Contains(s.Summary, "LAST WORDS") {
		t.Errorf("%+v", s)
	}
	if strings.Contains(h.tori(exitUsage, "run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()), "delivered") || len(server.Finals()) != 1 {
		t.Error("it is owed")
	}
}

// Of a short run nobody asks a model for a summary.
func TestAShortRunSpeaksForItself(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "LAST WORDS."} })
	h := newHouse(t, server.URL, "")
	h.ends(exitOK, "^completed: ", h.args...)
	if s := lastSummary(t, h.only()); !s.Extractive || !strings.Contains(s.Summary, "Last answer: LAST WORDS.") || len(server.Finals()) != 0 {
		t.Errorf("%d asked, %+v", len(server.Finals()), s)
	}
}

// branches are those of a house's repository.
func branches(t *testing.T, h *house) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(h.dir, "repo"), "branch", "--list").CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return string(out)
}

// A kill of a run that has a past, right after its first messages, leaves one that
// goes on with it, and tells people of it once.
func TestKilledWithAPast(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	var stalls atomic.Bool
	reached := make(chan struct{}, 1)
	server := llmtest.NewServer(t, func(*llmtest.Request) llmtest.Answer {
		if stalls.Load() {
			reached <- struct{}{}
			return llmtest.Answer{Stall: llmtest.StallAtOnce}
		}
		return llmtest.Answer{Text: "LAST WORDS."}
	})
	h := newHouse(t, server.URL, "")
	h.ends(exitOK, "^completed: ", h.args...) // the past
	stalls.Store(true)
	p := h.start(h.args...)
	<-reached
	_ = p.Process.Kill()
	_ = p.Wait()
	stalls.Store(false)
	all := runs(t, h.base())
	h.ends(exitOK, "^completed: ", append([]string{"run", "--resume", all[1].Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
	v := runs(t, h.base())[1]
	if msgs := first(t, v, 4); msgs[1].Role != llm.RoleAssistant || msgs[2].Role != llm.RoleUser || msgs[3].Content != "LAST WORDS." {
		t.Errorf("%+v", msgs)
	}
	comments, err := readFile(filepath.Join(h.dir, "issue.comments.md"))
	if err != nil || strings.Count(string(comments), "From: #"+all[0].Metadata.UUID[:8]) != 1 { // told by the later owner, too
		t.Errorf("%s %v", comments, err)
	}
	var in memory.Inherited
	raw, err := readFile(filepath.Join(v.Dir, "inherited.json"))
	if err != nil || json.Unmarshal(raw, &in) != nil || in.UUID != all[0].Metadata.UUID || in.Tokens == 0 {
		t.Errorf("%s %v", raw, err)
	}
	h.tori(0, "check")
}

// A kill while the model writes the final summary: the run is over, its branch and
// its comment are there, who inherits meanwhile has what the records tell, and the
// summary is made when the run is opened again, once.
func TestKilledAtTheFinalSummary(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	server := llmtest.NewServer(t, long)
	asked := make(chan struct{}, 1)
	stall := func(*llmtest.Request) llmtest.Answer {
		asked <- struct{}{}
		return llmtest.Answer{Stall: llmtest.StallAtOnce}
	}
	server.OnFinal(stall)
	h := newHouse(t, server.URL, "")
	p := h.start(h.args...)
	<-asked
	v := h.only()
	comments, err := readFile(filepath.Join(h.dir, "issue.comments.md"))
	if err != nil || v.Status() != task.Completed || !strings.Contains(string(comments), v.Metadata.UUID[:8]) || !strings.Contains(branches(t, h), "tori/") {
		t.Errorf("not delivered before: %s %v", comments, err)
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	if s := lastSummary(t, v); !s.Extractive || !strings.Contains(s.Summary, "LAST WORDS") {
		t.Errorf("%+v", s)
	}
	server.OnFinal(nil)
	again := append([]string{"run", "--resume", v.Metadata.UUID, "--base-dir", h.base()}, h.bare...)
	h.ends(exitOK, "^completed: ", again...)
	if s := lastSummary(t, h.only()); s.Extractive || s.AnsweredBy != "openai/m" || !strings.HasPrefix(s.Summary, "Task: Count to a hundred (#issue)\nOutcome: completed. ") {
		t.Errorf("%+v", s)
	}
	h.tori(exitUsage, again...)
	raw, err := readFile(filepath.Join(h.only().Dir, "summaries.jsonl"))
	if err != nil || strings.Count(string(raw), `"final":true`) != 2 || strings.Count(string(raw), `"extractive":true`) != 1 || len(server.Finals()) != 2 {
		t.Errorf("%d asked: %s %v", len(server.Finals()), raw, err)
	}
	h.tori(0, "check")
	// The next run takes over what the records tell, where that is all there is, and
	// does away with what the dead one owed.
	server.OnFinal(stall)
	p = h.start(h.args...)
	<-asked
	_ = p.Process.Kill()
	_ = p.Wait()
	server.OnFinal(nil)
	h.ends(exitOK, "^completed: ", h.args...)
	all := runs(t, h.base())
	if past := first(t, all[2], 2)[1].Content; !strings.Contains(past, "LAST WORDS") || !lastSummary(t, all[1]).Extractive || lastSummary(t, all[2]).Extractive {
		t.Errorf("%s\n%+v\n%+v", past, lastSummary(t, all[1]), lastSummary(t, all[2]))
	}
	h.tori(0, "check")
}

// A run that nobody works on any more is stopped: what it leaves to the next one
// tells what was done, although no model writes it, and what it had inherited.
func TestStoppedWithoutAnOwner(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	gate, reached := make(chan struct{}), make(chan struct{})
	var stalls atomic.Bool
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch {
		case r.Turn() == 0:
			return llmtest.Answer{Text: "I write a.txt first.", Calls: []llm.ToolCall{{ID: fmt.Sprint("c", r.Number), Name: "write_file", Arguments: `{"path":"a.txt","content":"a\n"}`}}}
		case stalls.Load():
			close(reached)
			<-gate
		}
		return llmtest.Answer{Text: "LAST WORDS."}
	})
	h := newHouse(t, server.URL, "")
	h.ends(exitOK, "^completed: ", h.args...)
	stalls.Store(true)
	p := h.start(h.args...)
	<-reached
	_ = p.Process.Kill()
	_ = p.Wait()
	close(gate)
	stalls.Store(false)
	v := runs(t, h.base())[1]
	h.tori(0, "stop", v.Metadata.UUID)
	s := lastSummary(t, runs(t, h.base())[1])
	if !s.Extractive || s.AnsweredBy != "" {
		t.Errorf("%+v", s)
	}
	for _, part := range []string{"Outcome: stopped. ", "Files that calls changed since: a.txt", "> I write a.txt first.", "> > I write a.txt first."} {
		if !strings.Contains(s.Summary, part) {
			t.Errorf("%q is missing in %s", part, s.Summary)
		}
	}
	h.ends(exitOK, "^completed: ", h.args...)
	if past := first(t, runs(t, h.base())[2], 2)[1].Content; !strings.Contains(past, "> I write a.txt first.") {
		t.Errorf("inherited: %s", past)
	}
}

// Under serve the pull request and the comment are there before a model is asked
// for the final summary; a process that is killed meanwhile owes it, and the next
// one has it made, once.
func TestServeSumsUpAfterDelivery(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		a := long(r)
		if r.Turn() == 0 {
			a.Calls[0].Arguments = `{"path":"answer.txt","content":"42\n"}`
		}
		return a
	})
	asked := make(chan struct{}, 1)
	server.OnFinal(func(*llmtest.Request) llmtest.Answer {
		asked <- struct{}{}
		return llmtest.Answer{Stall: llmtest.StallAtOnce}
	})
	w := newTown(t, "planning: {enabled: false}\n")
	w.asks(server.URL)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	cmd := w.serve("--once")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if _, ours := w.shown(n); len(w.repo.Pulls()) != 1 || len(ours) != 1 || !strings.Contains(ours[0], "LAST WORDS") {
		t.Errorf("%d pull requests, %q", len(w.repo.Pulls()), ours)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	v := runs(t, filepath.Join(w.dir, "base"))[0]
	if s := lastSummary(t, v); v.Status() != task.Completed || !s.Extractive {
		t.Errorf("%s: %+v", v.Status(), s)
	}
	server.OnFinal(nil)
	log := w.once() + w.once()
	if s := lastSummary(t, runs(t, filepath.Join(w.dir, "base"))[0]); s.Extractive || len(server.Finals()) != 2 {
		t.Errorf("asked %d times: %+v\n%s", len(server.Finals()), s, log)
	}
}
