package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/task"
)

const asksFirst = `- calls: [{tool: ask_user, args: {question: "Which number, @stranger?", assumption: "42"}}]
- calls: [{tool: write_file, args: {path: answer.txt, content: "42\n"}}]
- say: The answer is 42.
`

// question is the comment that asks people, as they see it.
func (w *town) question(n int) (text string) {
	_, ours := w.shown(n)
	for _, c := range ours {
		if strings.Contains(c, "A question before the work can go on") {
			text += c
		}
	}
	return text
}

// asking is a town in which a run waits for an answer.
func asking(t *testing.T) (w *town, n int) {
	t.Helper()
	w = newTown(t, "")
	write(t, filepath.Join(w.dir, "script.yaml"), asksFirst)
	n = w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	_, ours := w.shown(n)
	if v := w.of(n); v.Status() != task.AwaitingApproval || w.labels(n) != "coding agent waiting" || len(ours) != 2 || !strings.Contains(ours[0], "Waiting for an answer") {
		t.Fatalf("%s, labels %s, comments %q\n%s", w.of(n).Status(), w.labels(n), ours, log)
	}
	if q := w.question(n); !strings.Contains(q, "> Which number") || strings.Contains(q, "@stranger") || !strings.Contains(q, "without an answer it is assumed: 42") {
		t.Errorf("question %q", q)
	}
	return w, n
}

// A question with two choices is answered by a sign at its comment, of somebody who may
// ask for work; a sign of ours tells that work is taken up, and where it was asked for.
func TestAQuestionIsAnsweredByASign(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	write(t, filepath.Join(w.dir, "script.yaml"), strings.Replace(asksFirst, `assumption: "42"`, `options: [Take 41., Take 42.]`, 1))
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	if q := w.question(n); w.of(n).Status() != task.AwaitingApproval || !strings.Contains(q, "A 👍 on this comment answers “Take 41.”, a 👎 “Take 42.”.") {
		t.Fatalf("%s\n%s\n%s", w.of(n).Status(), q, log)
	}
	asks := int64(0)
	for _, c := range w.repo.Issue(n).Comments {
		if strings.Contains(c.Body, "on this comment answers") {
			asks = c.ID
		}
	}
	w.repo.React(asks, "stranger", "+1")
	w.repo.React(asks, "tori-bot", "+1")
	w.repo.React(asks, "hanako", "heart")
	log += w.once()
	if v := w.of(n); v.Status() != task.AwaitingApproval || v.State.Generation != 1 {
		t.Fatalf("a stranger's sign: %s, taken up %d times\n%s", v.Status(), v.State.Generation, log)
	}
	w.repo.React(asks, "hanako", "-1")
	log += w.once() + w.once()
	if w.of(n).Status() != task.Completed || !strings.Contains(w.said(n)+w.conversations(), "hanako answered:\\nTake 42.") {
		t.Fatalf("%s\n%s\n%s", w.of(n).Status(), w.conversations(), log)
	}
	w.later(time.Minute)
	again := w.repo.Comment(n, "hanako", "/retry")
	log += w.once()
	on, at := w.repo.Signs(n)
	if !slices.Equal(on, []string{"tori-bot eyes"}) || !slices.Equal(at[again], []string{"tori-bot eyes"}) || len(w.runs()) != 2 {
		t.Errorf("signs %v and %v, %d runs\n%s", on, at, len(w.runs()), log)
	}
	w.sound()
}

// A question is a comment of its own; the run waits without a process, until
// somebody who may ask for work says something below it.
func TestAQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	w, n := asking(t)
	w.later(time.Minute)
	w.repo.Comment(n, "stranger", "A STRANGE answer.")
	log := w.once()
	if v := w.of(n); v.Status() != task.AwaitingApproval || v.State.Generation != 1 {
		t.Fatalf("a stranger's word: %s, taken up %d times\n%s", v.Status(), v.State.Generation, log)
	}
	w.later(time.Minute)
	w.repo.Comment(n, "hanako", "Take 42.")
	log = w.once()
	_, ours := w.shown(n)
	if w.of(n).Status() != task.Completed || w.labels(n) != "coding agent done" || len(ours) != 2 {
		t.Fatalf("%s, labels %s, comments %q\n%s", w.of(n).Status(), w.labels(n), ours, log)
	}
	if !strings.Contains(ours[0], "❓ Which number") || !strings.Contains(ours[0], "hanako: Take 42.") {
		t.Errorf("report %s", ours[0])
	}
	raw, err := readFile(filepath.Join(w.of(n).Dir, "messages.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	vouched, rest, _ := strings.Cut(string(raw), "<untrusted_comments>")
	if !strings.Contains(vouched, "hanako answered:\\nTake 42.") || strings.Contains(vouched, "STRANGE") || strings.Count(vouched, "hanako:\\nTake 42.") != 1 || !strings.Contains(rest, "A STRANGE answer.") {
		t.Errorf("told:\n%s", raw)
	}
	w.sound()
}

// An answer is not lost where the forge cannot be asked for it at once.
func TestAnAnswerInAnOutage(t *testing.T) {
	t.Parallel()
	w, n := asking(t)
	w.later(time.Minute)
	w.repo.Comment(n, "hanako", "Take 42.")
	var up atomic.Bool
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if !up.Load() && strings.HasSuffix(q.Pattern, "/issues/{issue_number}/comments") {
			return &githubtest.Fault{Status: 401, Message: "Bad credentials"}
		}
		return nil
	})
	log := w.look()
	if s := w.of(n).Status(); s != task.Queued {
		t.Fatalf("%s\n%s", s, log)
	}
	up.Store(true)
	log = w.once()
	if s := w.of(n).Status(); s != task.Completed {
		t.Errorf("%s\n%s", s, log)
	}
	if _, ours := w.shown(n); !strings.Contains(strings.Join(ours, ""), "hanako: Take 42.") {
		t.Errorf("comments %q", ours)
	}
}

// A question that could not be put before the run was taken up is put when it
// waits again, once.
func TestAQuestionThatWasNotPut(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	write(t, filepath.Join(w.dir, "script.yaml"), asksFirst)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if strings.HasPrefix(q.Pattern, "POST ") && strings.HasSuffix(q.Pattern, "/issues/{issue_number}/comments") {
			return &githubtest.Fault{Status: 401, Message: "Bad credentials"}
		}
		return nil
	})
	log := w.look()
	if w.of(n).Status() != task.AwaitingApproval || w.question(n) != "" {
		t.Fatalf("%s, %q\n%s", w.of(n).Status(), w.question(n), log)
	}
	w.tori("resume", w.of(n).Metadata.UUID)
	w.hub.OnRequest(nil)
	log = w.once() + w.once()
	if w.of(n).Status() != task.AwaitingApproval || strings.Count(w.question(n), "> Which number") != 1 {
		t.Errorf("%s, %q\n%s", w.of(n).Status(), w.question(n), log)
	}
}

// What was written before a question is no answer to it, however late it is edited.
func TestAnOldCommentIsNoAnswer(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	write(t, filepath.Join(w.dir, "script.yaml"), asksFirst)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	before := w.repo.Comment(n, "hanako", "It is odd.")
	w.repo.Label(n, "coding agent", "hanako")
	w.once()
	w.later(time.Minute)
	w.repo.EditComment(before, "It is odd, I mean even.")
	log := w.once()
	if s := w.of(n).Status(); s != task.AwaitingApproval {
		t.Errorf("%s\n%s", s, log)
	}
	w.repo.Comment(n, "hanako", "Take 42.")
	log = w.once()
	if _, ours := w.shown(n); w.of(n).Status() != task.Completed || !strings.Contains(ours[0], "hanako: Take 42.") {
		t.Errorf("%s, %q\n%s", w.of(n).Status(), ours, log)
	}
}

// Where nobody answers in time the run goes on with an assumption, and says so.
func TestAQuestionIsNotAnswered(t *testing.T) {
	t.Parallel()
	w, n := asking(t)
	if log := w.once(); w.of(n).State.Generation != 1 {
		t.Fatalf("taken up before its time\n%s", log)
	}
	path := filepath.Join(w.of(n).Dir, "questions.jsonl")
	raw, err := readFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(string(raw), `"deadline":"2`, `"deadline":"1`, 1))
	log := w.once()
	_, ours := w.shown(n)
	if w.of(n).Status() != task.Completed || w.labels(n) != "coding agent done" || !strings.Contains(ours[0], "nobody answered in time") {
		t.Errorf("%s, labels %s, comments %q\n%s", w.of(n).Status(), w.labels(n), ours, log)
	}
}

// tori answer and /stop reach a run that waits, too.
func TestAQuestionByOtherWays(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	t.Run("answer", func(t *testing.T) {
		t.Parallel()
		w, n := asking(t)
		w.tori("answer", w.of(n).Metadata.UUID, "By hand: 42.")
		if log := w.once(); w.of(n).Status() != task.Completed {
			t.Errorf("%s\n%s", w.of(n).Status(), log)
		}
		if _, ours := w.shown(n); !strings.Contains(ours[0], "By hand: 42.") {
			t.Errorf("report %s", ours[0])
		}
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		w, n := asking(t)
		w.later(time.Minute)
		w.repo.Comment(n, "hanako", "/stop")
		if log := w.once(); w.of(n).Status() != task.Stopped || w.labels(n) != "coding agent stopped" {
			t.Errorf("%s, labels %s\n%s", w.of(n).Status(), w.labels(n), log)
		}
	})
}
