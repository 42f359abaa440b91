package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/task"
)

// asksFirst asks people, and mends the answer.
const asksFirst = `- calls: [{tool: ask_user, args: {question: "Which number?", assumption: "42"}}]
- calls: [{tool: write_file, args: {path: answer.txt, content: "42\n1\n2\n"}}]
- say: The answer is 42.
`

// issueHouse is a forgeHouse whose issues may be asked for.
func issueHouse(t *testing.T, more string) *forgeHouse {
	t.Helper()
	h := newForgeHouse(t, githubtest.RepoOptions{}, "planning: {enabled: false}\n"+more)
	h.configured("write_spacing_ms: 0", "write_spacing_ms: 0, repositories: [acme/widgets]")
	h.write("task.yaml", asksFirst)
	return h
}

func (h *forgeHouse) configured(old, now string) {
	h.t.Helper()
	raw, err := readLines(h.dir, "config.yaml")
	h.must(err)
	if !strings.Contains(raw, old) {
		h.t.Fatalf("%q is not in\n%s", old, raw)
	}
	h.write("config.yaml", strings.Replace(raw, old, now, 1))
}

// serveIssues is tori serve --once with the model of runs.
func (h *forgeHouse) serveIssues() {
	h.t.Helper()
	h.must(Serve(h.t.Context(), h.environment(), ServeOptions{Config: h.config, Script: h.dir + "/task.yaml", AllowUnsandboxed: true, Quiet: true, Once: true}, func(ServeStarted) {}))
}

// say says something in a terminal whose process ends then, and returns what is shown of it.
func (h *forgeHouse) say(id, text string) string {
	h.t.Helper()
	return h.sayAs(hanako, inSession, id, text)
}

func (h *forgeHouse) sayAs(user, session, id, text string) string {
	h.t.Helper()
	said, _ := h.press(user, session, id, text, "")
	return said
}

// press is sayAs by a button of a question; asks are the questions that are shown.
func (h *forgeHouse) press(user, session, id, text, question string) (said string, asks []channel.Question) {
	h.t.Helper()
	t, end := h.talks()
	defer end()
	to := &posts{}
	t.engine.Add(to)
	at := time.Now()
	h.must(t.engine.Handle(h.t.Context(), channel.Message{Channel: channel.Terminal, SessionID: session, ID: id, User: user, UserText: text, ReceivedAt: at, Question: question}))
	return strings.Join(to.all, "\n"), to.asks
}

// runs are the runs of issue n.
func (h *forgeHouse) runs(n int, want ...task.Status) {
	h.t.Helper()
	l, err := contextstore.List(h.t.Context(), h.base, contextstore.Viewer{Admin: true}, contextstore.Filter{Type: "issue", ID: fmt.Sprint(n)})
	h.must(err)
	var got []task.Status
	for _, v := range l.Views {
		got = append(got, v.Status())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		h.t.Fatalf("%v, not %v", got, want)
	}
}

func (h *forgeHouse) contains(got string, want ...string) {
	h.t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			h.t.Errorf("%q is not in %q", w, got)
		}
	}
}

// An issue that is asked for in a conversation becomes a run with the rights of the account of
// who asked; its question is answered there, and its draft announced there, once.
func TestIssueAskedInAChat(t *testing.T) {
	t.Parallel()
	for lang, says := range map[string]struct{ ask, queued, question, taken, done string }{
		"en": {"do issue %d in widgets", "acme/widgets#1 is queued", "asks:", "Your answer goes to the run of acme/widgets#1", "acme/widgets#1 is done: the draft is "},
		"ja": {"widgets の issue %d をやって", "acme/widgets#1 を受け付けました", "からの質問です", "回答を acme/widgets#1 の実行に伝えました", "acme/widgets#1 が終わりました。下書きは "},
	} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			h := issueHouse(t, linked)
			h.configured("language: en", "language: "+lang)
			n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
			h.contains(h.say("m1", fmt.Sprintf(says.ask, n)), says.queued)
			h.runs(n, task.Queued)
			h.say("m1", fmt.Sprintf(says.ask, n)) // the channel brings it again
			h.runs(n, task.Queued)
			h.serveIssues()
			h.runs(n, task.AwaitingApproval)
			h.contains(h.said(), says.question, "> Which number?")
			h.contains(h.say("m2", "Take 42."), says.taken)
			h.contains(h.say("m2", "Take 42."), says.taken)
			h.serveIssues()
			h.runs(n, task.Completed)
			said := h.said()
			h.contains(said, says.done+h.hub.URL+"/acme/widgets/pull/")
			if strings.Contains(said, "Take 42.") || strings.Count(said, says.done) != 1 {
				t.Errorf("%q", said)
			}
			h.serveIssues()
			if again := h.said(); again != "" || len(h.repo.Pulls()) != 1 {
				t.Errorf("%q %+v", again, h.repo.Pulls())
			}
			raw, err := readLines(h.base, "audit.jsonl")
			h.must(err)
			h.contains(raw, `"actor":"terminal:hanako","action":"ask"`, `"actor":"terminal:hanako","action":"answer"`)
		})
	}
}

// Where the work goes on in a draft that is opened first, the conversation is told so, and then of
// the run there.
func TestIssueWithADraftFirst(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, linked)
	h.configured("language: en", "language: en\nissue_to_mr: {enabled: true}")
	n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	h.say("m1", fmt.Sprintf("do issue %d in widgets", n))
	h.serveIssues()
	h.runs(n, task.Completed)
	h.contains(h.said(), "acme/widgets#1 goes on in its draft acme/widgets#2", "> Which number?")
	h.contains(h.say("m2", "Take 42."), "Your answer goes to the run of acme/widgets#2")
	h.serveIssues()
	h.serveIssues()
	if said := h.said(); strings.Count(said, "acme/widgets#2 is done: the draft is "+h.hub.URL) != 1 || strings.Contains(said, "goes on in its draft") || len(h.repo.Pulls()) != 1 {
		t.Errorf("%q %+v", said, h.repo.Pulls())
	}
}

// What is answered on the forge first counts, and the conversation is told so; a word there then
// is for Chat. A run that goes on already is told of to whoever asks for it, too.
func TestIssueAnsweredOnTheForge(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, linked)
	n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	h.repo.Label(n, "coding agent", "hanako")
	h.serveIssues()
	h.runs(n, task.AwaitingApproval)
	h.contains(h.say("m1", fmt.Sprintf("/issue %d", n)), "acme/widgets#1 is being worked on already")
	h.serveIssues()
	h.contains(h.said(), "Which number?")
	h.contains(h.sayAs("terminal:ken", inSession, "m2", "/chat hello"), "") // Chat may be down: it is no answer
	h.runs(n, task.AwaitingApproval)
	h.sayAs("terminal:ken", inSession, "m3", "Take 43.") // may read only
	h.runs(n, task.AwaitingApproval)
	h.repo.Comment(n, "hanako", "Take 42.")
	h.serveIssues()
	h.runs(n, task.Completed)
	said := h.said()
	h.contains(said, "The question of acme/widgets#1 was answered by hanako:", "> Take 42.", "the draft is ")
	if strings.Contains(said, "Take 43") || len(h.repo.Pulls()) != 1 {
		t.Errorf("%q", said)
	}
}

// Without an account, or with one that may not write, nothing is begun; nor for what is no open
// issue.
func TestIssueRefused(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, "access: {people: {'terminal:ken': 'github:ken', 'terminal:taro': 'github:hanako'}}\n")
	n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	h.contains(h.say("m1", fmt.Sprintf("do issue %d in acme/widgets", n)), "terminal:hanako is linked to no account", "tori link", "/link CODE")
	h.contains(h.sayAs("terminal:ken", inSession, "m2", fmt.Sprintf("/issue %d widgets", n)), "the account ken may not ask for acme/widgets#1: write permission")
	h.contains(h.sayAs("terminal:taro", inSession, "m3", "/issue 77"), "there is no issue acme/widgets#77")
	h.contains(h.sayAs("terminal:taro", inSession, "m4", "/issue 1 acme/others"), "acme/others")
	h.runs(n)
}

// A code joins somebody of a chat with who had it shown: what the one account may, both may.
func TestLinkByCode(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, "access: {people: {'terminal:"+sessionUser(LocalUser())+"': 'github:hanako'}}\n")
	people := func(f func(p *People)) {
		t.Helper()
		p, err := OpenPeople(t.Context(), h.environment(), "", h.config)
		h.must(err)
		defer func() { h.must(p.Close()) }()
		f(p)
	}
	var code string
	people(func(p *People) {
		var whom string
		var err error
		code, whom, _, err = p.Offer(t.Context(), "")
		if err != nil || whom != "github:hanako" || len(code) != 14 {
			t.Fatalf("%q %q %v", code, whom, err)
		}
	})
	h.contains(h.say("m1", "/link 0000-0000-0000"), "there is no such code")
	h.contains(h.say("m2", "/LINK "+strings.ToLower(code)), "terminal:hanako is now one person with github:hanako")
	h.contains(h.say("m3", "/link "+code), "is now one person") // by that very code
	n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	h.contains(h.say("m4", fmt.Sprintf("/issue %d", n)), "is queued")
	people(func(p *People) {
		all, err := p.List(t.Context())
		if err != nil || len(all) != 2 || !all[0].Settings && !all[1].Settings {
			t.Errorf("%+v, %v", all, err)
		}
		h.must(p.Remove(t.Context(), hanako))
		if err := p.Remove(t.Context(), hanako); err == nil {
			t.Error("removed twice")
		}
		if err := p.Remove(t.Context(), "terminal:"+sessionUser(LocalUser())); err == nil || !strings.Contains(err.Error(), "access.people") {
			t.Error(err)
		}
	})
	h.contains(h.say("m5", fmt.Sprintf("/issue %d", n)), "linked to no account")
	h.must(filepath.WalkDir(h.base, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(strings.ToUpper(string(raw)), code) {
			t.Errorf("the code is kept in %s", path)
		}
		return err
	}))
	raw, err := readLines(h.base, "audit.jsonl")
	h.must(err)
	h.contains(raw, `"action":"link_code"`, `"actor":"terminal:hanako","action":"link","what":"github:hanako"`, `"action":"unlink"`)
}

// What a run of a forge asks an approval for is decided in the conversation that asked for it, by
// who may write there.
func TestIssueApprovedInAChat(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, linked+"approval: {hard_require_approval: [build]}\n")
	h.write("task.yaml", "- say: I look first.\n  calls: [{tool: read_file, args: {path: answer.txt}}]\n- calls: [{tool: write_file, args: {path: Makefile, content: \"all:\\n\"}}]\n- say: The Makefile is there now, as the issue asks.\n")
	n := h.repo.OpenIssue("ken", "Build it", "with make")
	h.contains(h.say("m1", fmt.Sprintf("work on issue %d in widgets", n)), "is queued")
	h.serveIssues()
	h.runs(n, task.AwaitingApproval)
	said := h.said()
	h.contains(said, "request: ", "Makefile", "/approve ")
	_, rest, _ := strings.Cut(said, "/approve ")
	f := strings.Fields(strings.NewReplacer("`", " ", "\n", " ").Replace(rest))
	if len(f) < 2 {
		t.Fatal(said)
	}
	decision := "/approve " + f[0] + " " + f[1]
	h.contains(h.sayAs("terminal:ken", inSession, "m2", decision), "may not decide")
	h.runs(n, task.AwaitingApproval)
	h.contains(h.say("m3", decision), "decided: ")
	h.serveIssues()
	h.runs(n, task.Completed)
	said = h.said()
	h.contains(said, "acme/widgets#1 is done: the draft is ")
	if strings.Contains(said, "request: ") || strings.Contains(said, "decided: ") {
		t.Errorf("%q", said)
	}
}

// offers asks with choices.
const offers = `- calls: [{tool: ask_user, args: {question: "Which number?", options: ["41 as it was", "42"], assumption: "42"}}]
- calls: [{tool: write_file, args: {path: answer.txt, content: "42\n1\n2\n"}}]
- say: The answer is 42.
`

// A question with choices is answered by a button, once, by who may, where it was put; all others
// are told why it does not count. Each conversation is told what became of it.
func TestQuestionAnsweredByAButton(t *testing.T) {
	t.Parallel()
	const second = "terminal:ken:0123456789ab"
	for lang, says := range map[string]struct{ refused, late, answered string }{
		"en": {"the account ken may not ask for acme/widgets#1", "no question waits for this answer any more", "The question of acme/widgets#1 was answered by hanako:\n\n> 42"},
		"ja": {"アカウント ken は acme/widgets#1 を依頼できません", "この回答を待つ質問はもうありません", "acme/widgets#1 の質問に hanako が回答しました:\n\n> 42"},
	} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			h := issueHouse(t, linked)
			h.configured("language: en", "language: "+lang)
			h.write("task.yaml", offers)
			n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
			h.say("m1", fmt.Sprintf("/issue %d", n))
			h.sayAs(hanako, second, "n1", fmt.Sprintf("/issue %d", n))
			h.serveIssues()
			_, asks := h.press(hanako, inSession, "m2", "/jobs", "")
			if len(asks) != 1 || len(asks[0].Choices) != 2 || asks[0].Choices[1] != "42" || asks[0].Over || !strings.Contains(asks[0].Text, "> 1. 41 as it was") {
				t.Fatalf("%+v", asks)
			}
			question := asks[0].ID
			for id, who := range map[string]string{"k1": "terminal:ken", "k2": "terminal:ken"} {
				said, _ := h.press(who, inSession, id, "2", question)
				h.contains(said, says.refused)
			}
			said, _ := h.press(hanako, "terminal:hanako:ffffffffffff", "f1", "2", question) // it was not put there
			h.contains(said, says.late)
			h.runs(n, task.AwaitingApproval)
			said, over := h.press(hanako, inSession, "m3", "2", question)
			h.contains(said, says.answered)
			if len(over) != 1 || !over[0].Over || over[0].By != hanako || over[0].At.IsZero() || over[0].ID != question || over[0].Text != asks[0].Text {
				t.Errorf("%+v", over)
			}
			again, _ := h.press(hanako, inSession, "m3", "2", question) // the channel brings it again
			h.contains(again, says.answered)
			for session, id := range map[string]string{inSession: "m4", second: "n2"} {
				late, _ := h.press(hanako, session, id, "1", question)
				h.contains(late, says.late)
			}
			h.serveIssues()
			h.runs(n, task.Completed)
			elsewhere, over := h.press(hanako, second, "n3", "/jobs", "")
			h.contains(elsewhere, says.answered)
			if len(over) != 1 || !over[0].Over || over[0].By != "hanako" || over[0].At.IsZero() {
				t.Errorf("%+v", over)
			}
			if here := h.said(); strings.Contains(here, says.answered) {
				t.Errorf("%q", here)
			}
		})
	}
}

// In a terminal the number of a choice answers, as the choice does.
func TestQuestionAnsweredByANumber(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, linked)
	h.write("task.yaml", offers)
	n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	h.say("m1", fmt.Sprintf("/issue %d", n))
	h.serveIssues()
	h.contains(h.said(), "> 2. 42")
	h.contains(h.say("m2", " 2. "), "Your answer goes to the run")
	h.serveIssues()
	h.runs(n, task.Completed)
	l, err := contextstore.List(t.Context(), h.base, contextstore.Viewer{Admin: true}, contextstore.Filter{Type: "issue", ID: fmt.Sprint(n)})
	h.must(err)
	raw, err := readLines(l.Views[0].Dir, "questions.jsonl")
	h.must(err)
	h.contains(raw, `"answer":"42"`)
}

// /jobs and /status list the runs that a conversation follows; /stop stops one for who might have
// begun it.
func TestRunsAreListedAndStopped(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, linked)
	n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	h.say("m1", fmt.Sprintf("/issue %d", n))
	h.serveIssues()
	l, err := contextstore.List(t.Context(), h.base, contextstore.Viewer{Admin: true}, contextstore.Filter{Type: "issue"})
	h.must(err)
	run := contextstore.Short(l.Views[0].Metadata.UUID)
	listed := run + " acme/widgets#1 The answer is wrong (waiting for an answer"
	h.contains(h.say("m2", "/jobs"), "- "+listed)
	h.contains(h.say("m3", "/status"), "- "+run+": acme/widgets#1 The answer is wrong (waiting for an answer")
	h.contains(h.sayAs("terminal:ken", inSession, "k1", "/stop "+run), "the account ken may not ask for acme/widgets#1")
	h.contains(h.sayAs("terminal:taro", inSession, "k2", "/stop "+run), "terminal:taro is linked to no account")
	h.contains(h.sayAs(hanako, "terminal:hanako:ffffffffffff", "f1", "/stop "+run), run)
	h.runs(n, task.AwaitingApproval)
	h.contains(h.say("m4", "/stop"), "Nothing is running here.")
	h.contains(h.say("m5", "/stop "+run), run)
	h.runs(n, task.Stopped)
	h.serveIssues()
	said := h.say("m6", "/jobs")
	h.contains(said, "acme/widgets#1 was stopped")
	if strings.Contains(said, listed) {
		t.Errorf("%q", said)
	}
	raw, err := readLines(h.base, "audit.jsonl")
	h.must(err)
	h.contains(raw, `"actor":"terminal:hanako","action":"stop"`)
}

// Of two who answer at the same moment, in two processes, one counts, and the other is told.
func TestQuestionAnsweredByTwoAtOnce(t *testing.T) {
	t.Parallel()
	h := issueHouse(t, linked)
	h.write("task.yaml", offers)
	n := h.repo.OpenIssue("ken", "The answer is wrong", "It says 41.")
	h.repo.Allow("ken", "write")
	h.say("m1", fmt.Sprintf("/issue %d", n))
	h.serveIssues()
	_, asks := h.press(hanako, inSession, "m2", "/jobs", "")
	var one, two string
	race(func() { one, _ = h.press(hanako, inSession, "p1", "1", asks[0].ID) }, func() { two, _ = h.press("terminal:ken", inSession, "p2", "2", asks[0].ID) })
	said := one + "\n" + two
	if strings.Count(said, "was answered by") != 1 || strings.Count(said, "no question waits") != 1 {
		t.Fatalf("%q", said)
	}
	h.serveIssues()
	h.runs(n, task.Completed)
	l, err := contextstore.List(t.Context(), h.base, contextstore.Viewer{Admin: true}, contextstore.Filter{Type: "issue"})
	h.must(err)
	raw, err := readLines(l.Views[0].Dir, "questions.jsonl")
	h.must(err)
	want := `"by":"hanako","answer":"41 as it was"`
	if strings.Contains(two, "was answered by") {
		want = `"by":"ken","answer":"42"`
	}
	h.contains(raw, want)
}
