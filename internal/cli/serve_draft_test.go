package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/task"
)

const draftFirst = "issue_to_mr: {enabled: true}\n"

// The life of an issue whose draft is opened at once: the question is put at the draft, the
// answer given on the issue, and a review of the draft is followed up.
func TestALifeByTheDraft(t *testing.T) {
	t.Parallel()
	for i, at := range places {
		for _, l := range spoken(i + 1) {
			t.Run(at.source+" "+l.lang, func(t *testing.T) {
				t.Parallel()
				w, all := newHomes(t, draftFirst+"language: "+l.lang+"\n", at.owner, at.source)
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
}

// The same life while the process is killed again and again: one draft, one branch, one comment
// that shows the progress.
func TestALifeByTheDraftKilledAtRandom(t *testing.T) {
	skipShort(t, "it is served and killed")
	t.Parallel()
	killedAtRandom(t, 1, draftFirst, []string{"github", "gitlab", "gitea"}, lifeByTheDraft)
}

// draftOf is the draft that was opened for an issue.
func (w *town) draftOf(d *daemon, n int) (p githubtest.Issue) {
	w.t.Helper()
	w.until(d, fmt.Sprintf("#%d has a draft", n), func() bool {
		for _, p = range w.repo.Pulls() {
			if strings.HasPrefix(p.Body, fmt.Sprintf("Closes #%d\n", n)) {
				return true
			}
		}
		return false
	})
	return p
}

// What people do at the issue or at its draft while the work goes on there, each with an issue of
// its own.
func TestPeopleAndTheDraft(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	w, d, release := people(t, draftFirst)
	var issues, drafts []int
	for _, title := range []string{"close the issue", "close the draft", "merge", "unlabel the issue", "unassign", "stop", "say"} {
		n := w.repo.OpenIssue("hanako", title, "It says 41.")
		if title == "unassign" {
			w.repo.Assign(n, "tori-bot", "hanako")
		} else {
			w.repo.Label(n, "coding agent", "hanako")
		}
		issues = append(issues, n)
	}
	for _, n := range issues {
		p := w.draftOf(d, n).Number
		drafts = append(drafts, p)
		w.thinks(d, p)
		w.until(d, "the issue shows it", func() bool { return w.labels(n) == "coding agent processing" })
	}
	w.later(time.Second)
	w.repo.Close(issues[0], "hanako")
	w.repo.Close(drafts[1], "hanako")
	w.repo.SetDraft(drafts[2], false, "hanako")
	w.repo.Merge(drafts[2], "hanako")
	w.repo.Unlabel(issues[3], "coding agent processing", "hanako")
	w.repo.Unassign(issues[4], "tori-bot", "hanako")
	w.repo.Comment(issues[5], "hanako", "/stop")
	w.repo.Comment(issues[6], "hanako", "Mind the line end.")
	w.repo.Comment(drafts[6], "hanako", "And the tests.")
	for i, says := range []string{"its issue was closed", "it was closed before", "it was merged before", "its label was taken away", "the assignment was taken away", "on request of "} {
		n, p := issues[i], drafts[i]
		w.until(d, "it is stopped: "+says, func() bool { return w.labels(n) == "coding agent stopped" && w.labels(p) == "coding agent stopped" })
		w.until(d, "that is said: "+says, func() bool {
			_, ours := w.shown(p)
			return len(ours) == 1 && strings.Contains(ours[0], "Stopped") && strings.Contains(ours[0], says)
		})
	}
	// Asked for again, the work goes on in the draft that is open, and begins anew where it was closed.
	w.later(time.Minute)
	w.repo.Comment(issues[5], "hanako", "/retry")
	w.repo.Label(issues[1], "coding agent", "hanako")
	again := 0
	w.until(d, "a new draft", func() bool {
		for _, p := range w.repo.Pulls() {
			if strings.HasPrefix(p.Body, fmt.Sprintf("Closes #%d\n", issues[1])) && p.Number != drafts[1] {
				again = p.Number
				return true
			}
		}
		return false
	})
	release()
	for _, n := range []int{issues[1], again, issues[5], drafts[5], issues[6], drafts[6]} {
		w.until(d, fmt.Sprintf("#%d is done", n), func() bool { return w.labels(n) == "coding agent done" })
	}
	w.end(d)
	if all := w.repo.Pulls(); len(all) != len(drafts)+1 || len(w.repo.Branches()) != len(drafts)+2 {
		t.Errorf("%d pull requests, branches %v", len(all), w.repo.Branches())
	}
	for _, said := range []string{"Mind the line end.", "And the tests."} {
		if strings.Count(w.conversations(), said) != 1 {
			t.Errorf("%q was not told once\n%s", said, d.out)
		}
	}
	for _, p := range drafts[5:] {
		if text, _ := w.repo.File(w.repo.Issue(p).Pull.Head, "answer.txt"); text != "42" || w.of(p).Status() != task.Completed {
			t.Errorf("#%d: %q, %s", p, text, w.of(p).Status())
		}
	}
	if _, ours := w.shown(issues[5]); len(ours) != 2 || !strings.Contains(ours[1], fmt.Sprintf("goes on in the draft #%d", drafts[5])) {
		t.Errorf("%q", ours)
	}
	for n, from := range map[int]string{again: "close the draft", drafts[5]: "stop"} { // what was stopped is known to who goes on
		if !strings.Contains(w.of(n).Metadata.Title, from) || !w.inherits(n) {
			t.Errorf("#%d inherits nothing\n%s", n, d.out)
		}
	}
	w.sound()
}

// inherits reports whether the newest run of an item takes over from one that a model worked on.
func (w *town) inherits(n int) bool {
	raw, _ := readFile(filepath.Join(w.of(n).Dir, "inherited.json"))
	return slices.ContainsFunc(w.runs(), func(v contextstore.View) bool {
		return v.State.LLMCallCount > 0 && bytes.Contains(raw, []byte(`{"uuid":"`+v.Metadata.UUID+`"`))
	})
}

// Where a rule refuses the branch for good nothing is worked on, and the issue shows that; the
// next one who asks has it begun anew.
func TestADraftIsRefused(t *testing.T) {
	t.Parallel()
	w := newTown(t, draftFirst)
	hooks := t.TempDir()
	hook := filepath.Join(hooks, "pre-receive")
	disktest.Program(t, hook, "#!/bin/sh\necho 'error: GH013: protected' >&2\nexit 1\n")
	if out, err := w.repo.Git("config", "core.hooksPath", hooks); err != nil {
		t.Fatal(out, err)
	}
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	labels, ours := w.shown(n)
	if labels != "coding agent failed" || len(ours) != 1 || !strings.HasPrefix(ours[0], "⚠️ The branch could not be handed over") || strings.Contains(ours[0], "goes on") || len(w.runs()) != 1 {
		t.Fatalf("labels %q, %q\n%s", labels, ours, log)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	w.later(time.Minute)
	w.repo.Comment(n, "hanako", "/retry")
	if log = w.once(); w.labels(n) != "coding agent done" || len(w.repo.Pulls()) != 1 || len(w.runs()) != 3 {
		t.Errorf("labels %q, %d pull requests, %d runs\n%s", w.labels(n), len(w.repo.Pulls()), len(w.runs()), log)
	}
}
