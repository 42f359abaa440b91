package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// wording is the words of a life in one language.
type wording struct {
	lang, title, question, answer, wants, remark string
	asks, waits, completed                       string // what people read of us
	proposal                                     map[bool]string
	foreign                                      *regexp.Regexp // what stands in no text in it
}

var wordings = []wording{
	{lang: "en", title: "The answer is wrong", question: "Which number?", answer: "Take 42.", wants: "Say why.", remark: "Why 42?",
		asks: "A question before the work can go on", waits: "Waiting for an answer", completed: "✅ **Completed**",
		proposal: map[bool]string{true: "Merge request: ", false: "Pull request: "}, foreign: regexp.MustCompile(`[\p{Hiragana}\p{Katakana}\p{Han}]`)},
	{lang: "ja", title: "答えが違う", question: "どの数ですか。", answer: "42 です。", wants: "理由も書いてください。", remark: "なぜ 42 ですか。",
		asks: "作業を続ける前に確認があります", waits: "回答を待っています", completed: "✅ **完了しました**",
		proposal: map[bool]string{true: "マージリクエスト: ", false: "プルリクエスト: "}, foreign: regexp.MustCompile(`[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}`)},
}

// planOf is a plan of one step, its calls, and a verification that passes.
func planOf(goal string, calls ...string) string {
	s := `- say: '{"phase":"planning","goal_understanding":{"main_objective":"` + goal + `","success_criteria":["` + goal + `"],"constraints":[]},"task_decomposition":{"reasoning":"r","subtasks":[{"id":"write","description":"` + goal + `","dependencies":[]}]},"action_plan":{"execution_order":[],"actions":[]}}'` + "\n"
	for _, c := range calls {
		s += "- calls: [" + c + "]\n"
	}
	return s + `- say: '{"task_id":"write","status":"done","summary":"` + goal + `"}'` + "\n" +
		`- say: '{"phase":"verification","verification_passed":true,"criteria":[{"criterion":"` + goal + `","met":true,"evidence":"answer.txt:1"}],"issues_found":[],"placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":0.9}'` + "\n"
}

// One whole life at each forge: a label, a plan, a question, an answer, a draft that becomes
// ready, a review with a remark on a line, the follow-up on the draft's branch, done. What
// people read is in their language, and in the forge's own words.
func TestAWholeLifeAtEachForge(t *testing.T) {
	t.Parallel()
	// How the forge tells us that something happened: we look.
	polling := func(w *town) string { return w.look() }
	for _, c := range []struct {
		source, owner string
		comes         func(w *town) (log string)
	}{{"github", "acme", polling}, {"gitlab", "acme/tools", polling}, {"gitea", "acme", polling}} {
		for _, l := range wordings {
			t.Run(c.source+" "+l.lang, func(t *testing.T) {
				t.Parallel()
				w, all := newHomes(t, "language: "+l.lang+"\n", c.owner, c.source)
				w.env = append(w.env, "TORI_PLANNING_ENABLED=true")
				wholeLife(t, w, all[0], l, c.comes)
			})
		}
	}
}

func wholeLife(t *testing.T, w *town, h home, l wording, comes func(*town) string) {
	script := filepath.Join(w.dir, "script.yaml")
	write(t, script, planOf(l.title, fmt.Sprintf(`{tool: ask_user, args: {question: %q, assumption: "42"}}`, l.question), `{tool: write_file, args: {path: answer.txt, content: "42\n"}}`))
	n := h.open(l.title, "41 → 42")
	h.label(n, "coding agent")
	log := comes(w)
	ours := h.said(n)
	if h.labels(n) != "coding agent waiting" || len(ours) != 2 || !strings.Contains(ours[0], l.waits) || !strings.Contains(ours[1], l.asks) || !strings.Contains(ours[1], l.question) {
		t.Fatalf("labels %q, comments %q\n%s", h.labels(n), ours, log)
	}
	w.later(time.Minute)
	h.say(n, l.answer)
	log = comes(w)
	_, isGitLab := h.(*gitLabHome)
	ours = h.said(n)
	if h.labels(n) != "coding agent done" || len(ours) != 3 || !strings.Contains(ours[0], l.completed) || !strings.Contains(ours[0], l.proposal[isGitLab]+"http") || !strings.Contains(ours[0], l.answer) {
		t.Fatalf("labels %q, comments %q\n%s", h.labels(n), ours, log)
	}
	pulls := h.pulls()
	if len(pulls) != 1 || countBranches(t, h) != 2 {
		t.Fatalf("%+v\n%s", pulls, log)
	}
	p := pulls[0]
	if p.draft || p.title != l.title || !strings.HasPrefix(p.body, "Closes "+n+"\n") || strings.Join(p.reviewers, " ") != "hanako" || inBranch(h, p.head, "answer.txt") != "42" {
		t.Errorf("%+v\n%s", p, log)
	}
	w.later(time.Minute)
	write(t, script, planOf(l.remark, `{tool: write_file, args: {path: why.txt, content: because}}`))
	h.review(p.item, l.wants, "answer.txt", 1, l.remark)
	log = comes(w)
	if h.labels(p.item) != "coding agent done" || len(h.pulls()) != 1 || countBranches(t, h) != 2 || inBranch(h, p.head, "why.txt") != "because" {
		t.Errorf("labels %q, comments %q, %+v\n%s", h.labels(p.item), h.said(p.item), h.pulls(), log)
	}
	if c := w.conversations(); !strings.Contains(c, l.remark) || !strings.Contains(c, l.wants) || !strings.Contains(c, "answer.txt:1") {
		t.Errorf("the review did not reach the run\n%s", log)
	}
	comes(w) // nothing is left to do
	about := h.said(p.item)
	ours = slices.DeleteFunc(append(h.said(n), about...), func(s string) bool { return s == l.answer || s == l.wants || s == l.remark })
	if len(ours) != 3 || len(w.runs()) != 2 {
		t.Errorf("%d comments %q, %d runs", len(ours), ours, len(w.runs()))
	}
	commits, err := h.git("log", "--format=%B", "main.."+p.head)
	if err != nil {
		t.Error(err)
	}
	wrong := regexp.MustCompile(`(?i)merge request|マージリクエスト|![0-9]`)
	if isGitLab {
		wrong = regexp.MustCompile(`(?i)pull request|プルリクエスト|/pull/|\bPR\b`)
	}
	for _, text := range append(ours, h.pulls()[0].title, h.pulls()[0].body, commits) {
		if found := wrong.FindString(text); found != "" {
			t.Errorf("%q is not this forge's word:\n%s", found, text)
		}
		if found := l.foreign.FindString(text); found != "" {
			t.Errorf("%q is not of this language:\n%s", found, text)
		}
	}
	if last, err := h.git("log", "-1", "--format=%B", p.head); err != nil || isGitLab && strings.Contains(last, "#") || strings.Contains(last, "Issue:") == isGitLab {
		t.Errorf("the follow-up's commit names %s as an issue: %v\n%s", p.item, err, last)
	}
	w.sound()
}
