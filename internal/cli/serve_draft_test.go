package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
)

const draftFirst = "issue_to_mr: {enabled: true}\n"

// The life of an issue whose draft is opened at once: the question is put at the draft, the
// answer given on the issue, and a review of the draft is followed up.
func TestALifeByTheDraft(t *testing.T) {
	t.Parallel()
	for source, owner := range map[string]string{"github": "acme", "gitlab": "acme/tools", "gitea": "acme"} {
		for _, l := range wordings {
			t.Run(source+" "+l.lang, func(t *testing.T) {
				t.Parallel()
				w, all := newHomes(t, draftFirst+"language: "+l.lang+"\n", owner, source)
				w.env = append(w.env, "TORI_PLANNING_ENABLED=true")
				lifeByTheDraft(t, w, all[0], l, func(w *town) string { return w.look() })
			})
		}
	}
}

func lifeByTheDraft(t *testing.T, w *town, h home, l wording, comes func(*town) string) {
	script := filepath.Join(w.dir, "script.yaml")
	const writes = `{tool: write_file, args: {path: answer.txt, content: "42\n"}}`
	asks := fmt.Sprintf(`{tool: ask_user, args: {question: %q, assumption: "42"}}`, l.question)
	write(t, script, planOf(l.title, asks, writes, writes)) // who is killed may not know the outcome of the first
	n := h.open(l.title, "41 → 42")
	h.label(n, "coding agent")
	log := comes(w)
	pulls := h.pulls()
	if len(pulls) != 1 || countBranches(t, h) != 2 {
		t.Fatalf("%+v\n%s", pulls, log)
	}
	p := pulls[0]
	if !p.draft || p.title != l.title || !strings.HasPrefix(p.body, "Closes "+n+"\n") {
		t.Errorf("%+v", p)
	}
	about, there := h.said(n), h.said(p.item)
	if len(about) != 1 || !strings.Contains(about[0], "http") || len(there) != 2 || !strings.Contains(there[1], l.question) ||
		h.labels(n) != "coding agent waiting" || h.labels(p.item) != "coding agent waiting" {
		t.Fatalf("labels %q and %q, comments %q and %q\n%s", h.labels(n), h.labels(p.item), about, there, log)
	}
	w.later(time.Minute)
	h.say(n, l.answer)
	log = comes(w)
	there = h.said(p.item)
	if h.labels(n) != "coding agent done" || h.labels(p.item) != "coding agent done" || len(there) != 2 || !strings.Contains(there[0], l.completed) || !strings.Contains(there[0], l.answer) {
		t.Fatalf("labels %q and %q, comments %q and %q\n%s", h.labels(n), h.labels(p.item), h.said(n), there, log)
	}
	p = h.pulls()[0]
	if len(h.pulls()) != 1 || countBranches(t, h) != 2 || p.draft || p.title != l.title || !strings.HasPrefix(p.body, "Closes "+n+"\n") || strings.Join(p.reviewers, " ") != "hanako" || inBranch(h, p.head, "answer.txt") != "42" {
		t.Errorf("%+v\n%s", p, log)
	}
	if c := w.conversations(); !strings.Contains(c, "41 → 42") {
		t.Errorf("the run does not know the issue\n%s", log)
	}
	comes(w) // nothing is left to do
	runs := w.runs()
	calls := 0
	for _, v := range runs {
		if v.State.LLMCallCount > 0 {
			calls++
		}
	}
	if len(runs) != 2 || calls != 1 || len(h.said(n)) != 2 || len(h.said(p.item)) != 2 {
		t.Errorf("%d runs, %d with a model; comments %q and %q", len(runs), calls, h.said(n), h.said(p.item))
	}
	ours := slices.DeleteFunc(append(h.said(n), h.said(p.item)...), func(s string) bool { return s == l.answer })
	for _, text := range append(ours, p.title, p.body) {
		if found := l.foreign.FindString(text); found != "" {
			t.Errorf("%q is not of this language:\n%s", found, text)
		}
	}
	w.sound()
	_ = contextstore.Short
}
