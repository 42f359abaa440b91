package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// table is a conversation whose coder's jobs are worked on when the test says so.
type table struct {
	*talks
	t    *testing.T
	repo string
	to   *posts
	n    int
	late atomic.Int64 // how much later it is, ns
}

const (
	tableSession = "terminal:hanako:0123456789ab"
	onBranch     = "chat: {deliver: branch}\n"
)

// newTable makes one in a language; more is more of the configuration.
func newTable(t *testing.T, lang i18n.Lang, hc *http.Client, more string) *table {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	repo, config, script := filepath.Join(dir, "repo"), filepath.Join(dir, "config.yaml"), filepath.Join(dir, "script.yaml")
	must(os.MkdirAll(repo, 0o700))
	must(os.WriteFile(filepath.Join(repo, "answer.txt"), []byte("41\n1\n2\n"), 0o600))
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=u", "-c", "user.email=u@example.org", "commit", "-qm", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	must(os.WriteFile(script, []byte(`- say: So it is.
  calls: [{tool: propose, args: {plan: The answer is 42., patch: "--- a/answer.txt\n+++ b/answer.txt\n@@ -1,3 +1,3 @@\n-41\n+42\n 1\n 2\n", risk: {destructive: false, rollback_possible: true}, need_approval: false}}]
`), 0o600))
	must(os.WriteFile(config, fmt.Appendf(nil, "language: %s\nsandbox: {mode: none}\nchecks: []\nllm: {script: {file: %q}, openai: {api_key: key-for-a-test, model: away}}\n"+
		"routing: {classifier: {enabled: false}, llm: {chat_provider: script, coder_provider: script, coder2_provider: script, coder3_provider: openai}}\n"+
		"context_storage: {base_dir: %q, durability: os}\n%s", lang, script, filepath.Join(dir, "base"), cmp.Or(more, onBranch)), 0o600))
	b := &table{t: t, repo: repo, to: &posts{}}
	now := func() time.Time { return time.Now().Add(time.Duration(b.late.Load())) }
	s := &system{opt: RunOptions{Config: config, AllowUnsandboxed: true, Quiet: true}, fs: &disk.FS{},
		env: Env{Getenv: func(string) string { return "" }, Environ: []string{}, Log: io.Discard, Lang: lang, Now: now, HTTP: hc, Notice: func(string, ...any) {}}}
	must(s.settle())
	src, err := workspace.Inspect(t.Context(), repo, workspace.InspectOptions{NoStatus: true})
	must(err)
	house, end, err := s.talk(t.Context(), src)
	must(err)
	t.Cleanup(end)
	b.talks = house
	house.engine.Add(b.to)
	return b
}

// says has somebody say something in a session, and returns what was posted since.
func (b *table) says(session, user, text string) string {
	b.t.Helper()
	b.n++
	before := len(b.to.all)
	if err := b.engine.Handle(b.t.Context(), channel.Message{Channel: channel.Terminal, SessionID: session, ID: fmt.Sprint(b.n), User: user, UserText: text}); err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(b.to.all[before:], "\n")
}

// works has the one run that waits in the queue worked on, and returns it and what was posted.
func (b *table) works() (contextstore.View, string) {
	b.t.Helper()
	l, err := contextstore.List(b.t.Context(), b.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{Status: task.Queued, Limit: 9})
	if err != nil || len(l.Views) != 1 {
		b.t.Fatalf("%d runs wait, %v", len(l.Views), err)
	}
	id := l.Views[0].Metadata.UUID
	c, _, err := b.store.Claim(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	before := len(b.to.all)
	_, err = b.work(b.t.Context(), c)
	v, verr := b.store.View(id)
	if err := errors.Join(err, verr); err != nil {
		b.t.Fatal(err)
	}
	return v, strings.Join(b.to.all[before:], "\n")
}

// events are the names of the session's events that begin with approval.
func (b *table) events() (all []string) {
	raw, err := os.ReadFile(filepath.Join(contextstore.SessionsDir(b.store.BaseDir), "terminal%3Ahanako%3A0123456789ab", "events.jsonl"))
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if _, name, ok := strings.Cut(line, `"event":"approval.`); ok {
			name, _, _ = strings.Cut(name, `"`)
			all = append(all, name)
		}
	}
	return all
}

// decisions are the events of a job that begin with approval, with approver and reason.
func (b *table) decisions(job string) string {
	var all []string
	raw, err := os.ReadFile(filepath.Join(contextstore.SessionsDir(b.store.BaseDir), "terminal%3Ahanako%3A0123456789ab", "events.jsonl"))
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var e approvalEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.t.Fatal(err)
		}
		name, ok := strings.CutPrefix(e.Event, "approval.")
		if !ok || e.Job != job {
			continue
		}
		var fields map[string]any // all of route §7.3, the absent ones null
		if err := json.Unmarshal([]byte(line), &fields); err != nil || strings.Join(slices.Sorted(maps.Keys(fields)), " ") !=
			"approval_decided_at approval_requested_at approval_status approver at coder_output event job_id reason session_id" || (fields["approver"] == nil) != (e.Status == "pending") || e.Output != "The answer is 42." {
			b.t.Errorf("%v %s", err, line)
		}
		for _, more := range []*string{e.Approver, e.Reason} {
			if more != nil {
				name += "/" + *more
			}
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

// A proposal is decided about in the chat, in both languages: strangers decide nothing and
// learn nothing, another hash is refused, what was decided stays, what was granted is applied
// once.
func TestDecisionsInChat(t *testing.T) {
	t.Parallel()
	const hanako, taro, of = "terminal:hanako", "terminal:taro", "terminal:taro:ba9876543210"
	type step struct {
		session, user, text string // %[1]s is the job, %[2]s the hash, %[3]s the uuid
		want                map[i18n.Lang]string
		not                 string
	}
	both := func(en, ja string) map[i18n.Lang]string {
		return map[i18n.Lang]string{i18n.English: en, i18n.Japanese: ja}
	}
	mine := func(text, en, ja string) step { return step{tableSession, hanako, text, both(en, ja), ""} }
	his := func(text, en, ja string) step { return step{of, taro, text, both(en, ja), ""} }
	without := func(s step, not string) step { s.not = not; return s }
	granted := both("Applied: let it be 42 (job ", "適用しました: let it be 42（ジョブ ")
	for name, c := range map[string]struct {
		more   string
		steps  []step
		events string
		after  map[i18n.Lang]string // what is said when the run goes on, nil where it does not
		status task.Status
	}{
		"granted, twice": {"", []step{mine("/approve %[1]s %[2]s", "Approved: let it be 42 (job %[1]s)", "%[1]s"), mine("/approve %[1]s %[2]s", "is decided already: approved", "すでに決定済み"), mine("/deny %[1]s", "is decided already: approved", "すでに決定済み")},
			"requested granted", granted, task.Completed},
		"denied": {"", []step{mine("/deny %[1]s not so", "Denied: let it be 42 (job %[1]s)\nReason: not so\nNothing was changed.", "%[1]s）\n理由: not so\n何も変更していません"), mine("/approve %[1]s %[2]s", "is decided already: denied", "すでに決定済み")},
			"requested denied", nil, task.Stopped},
		"another hash": {"", []step{mine("/approve %[1]s 000000000000", "the hash is not that of job %[1]s as it is now", "今の内容のものではありません"),
			mine("/approve %[1]s 000000000000", "/approve %[1]s %[2]s\n", "/approve %[1]s %[2]s\n"), his("/approve %[1]s 000000000000", "may not decide about job", "決定できません")},
			"requested", nil, task.AwaitingApproval},
		"no hash": {"", []step{mine("/approve %[1]s", "the hash is missing that says what is approved. To approve what its request shows: /approve %[1]s %[2]s", "ハッシュがありません。承認要求に表示された内容を承認するには: /approve %[1]s %[2]s"),
			without(mine("/approve %[1]s", "let it be 42", "let it be 42"), "request: "), his("/approve %[1]s", "may not decide about job", "決定できません")},
			"requested", nil, task.AwaitingApproval},
		"asked about": {"", []step{mine("/jobs", "%[1]s let it be 42 (waiting for a decision, ", "%[1]s let it be 42（承認待ち、"), mine("/status", ": let it be 42 (waiting for a decision, ", ": let it be 42（承認待ち、")},
			"requested", nil, task.AwaitingApproval},
		"someone else's": {"", []step{his("/approve %[1]s %[2]s", "may not decide about job", "決定できません"), his("/deny %[1]s", "may not decide about job", "決定できません"), his("/stop %[1]s", "there is no proposal", "見つかりません"),
			his("/jobs", "No job is running.", "ありません"), mine("/deny %[1]s", "Denied: let it be 42 (job %[1]s)", "%[1]s"), his("/deny %[1]s", "may not decide about job", "決定できません")},
			"requested denied", nil, task.Stopped},
		"by an approver elsewhere": {onBranch + "approval: {approvers: ['terminal:taro'], four_eyes: true}\n", []step{mine("/approve %[1]s %[2]s", "somebody else must grant it", "別の人"), his("/approve %[1]s %[2]s", "Approved: let it be 42 (job %[1]s)", "%[1]s")},
			"requested granted", granted, task.Completed},
		"guessed": {"", []step{his("/approve %[3]s %[2]s", "there is no proposal", "見つかりません"), his("/approve a %[2]s", "there is no proposal a", "見つかりません"), his("/approve ../x %[2]s", "there is no proposal", "見つかりません")},
			"requested", nil, task.AwaitingApproval},
	} {
		for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
			t.Run(name+" "+string(lang), func(t *testing.T) {
				t.Parallel()
				b := newTable(t, lang, nil, c.more)
				b.says(tableSession, hanako, "/code2 let it be 42")
				v, told := b.works()
				all, err := b.approvals.Waiting(t.Context(), contextstore.Viewer{Admin: true})
				if err != nil || len(all) != 1 || v.Status() != task.AwaitingApproval || !strings.Contains(told, "request: ") {
					t.Fatalf("%d wait, %v, %s\n%s", len(all), err, v.Status(), told)
				}
				job := all[0]
				for _, s := range c.steps {
					fill := func(text string) string { return fmt.Sprintf(text+"%[4]s", job.Job, job.Short(), v.Metadata.UUID, "") }
					got, want := b.says(s.session, s.user, fill(s.text)), fill(s.want[lang])
					if !strings.Contains(got, want) || s.not != "" && strings.Contains(got, s.not) || s.user == taro && !strings.Contains(s.text, "%[3]s") && strings.Contains(got, v.Metadata.UUID) {
						t.Errorf("%s says %s: %s", s.user, s.text, got)
					}
				}
				if got := strings.Join(b.events(), " "); got != c.events {
					t.Errorf("events %s", got)
				}
				if c.after != nil {
					if _, told = b.works(); !strings.Contains(told, c.after[lang]) {
						t.Errorf("told %s", told)
					}
				}
				if v, err = b.store.View(v.Metadata.UUID); err != nil || v.Status() != c.status {
					t.Errorf("%s, %v", v.Status(), err)
				}
				branches, err := exec.CommandContext(t.Context(), "git", "-C", b.repo, "log", "--format=%s", "--all").CombinedOutput()
				if want := map[bool]int{true: 2, false: 1}[c.status == task.Completed]; err != nil || strings.Count(string(branches), "\n") != want {
					t.Errorf("%v\n%s", err, branches)
				}
			})
		}
	}
}

// Buttons of a proposal that are pressed by somebody else, for what it was before, in a copy, twice
// and at once with the other one: one press of who may decides, and each is told.
func TestButtonsOfAProposal(t *testing.T) {
	t.Parallel()
	b := newTable(t, i18n.English, nil, onBranch)
	b.says(tableSession, "terminal:hanako", "/code2 let it be 42")
	v, _ := b.works()
	all, err := b.approvals.Waiting(t.Context(), contextstore.Viewer{Admin: true})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d wait, %v", len(all), err)
	}
	n := 0
	press := func(session, user, hash string, grant bool) string {
		t.Helper()
		n++
		before := len(b.to.all)
		m := channel.Message{Channel: channel.Terminal, SessionID: session, ID: fmt.Sprint("press", n), User: user, Decision: &channel.Decision{Job: all[0].Job, Hash: hash, Grant: grant}}
		for range 2 { // the event comes twice
			if err := b.engine.Handle(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		told := slices.DeleteFunc(slices.Clone(b.to.all[before:]), func(s string) bool { return !strings.HasPrefix(s, "decided: ") && !strings.HasPrefix(s, "notice: ") })
		if told = slices.Compact(told); len(told) != 1 {
			t.Fatalf("told %q", told)
		}
		return told[0]
	}
	for _, c := range []struct {
		session, user, hash string
		grant               bool
		want                string
	}{
		{tableSession, "terminal:taro", all[0].Short(), true, "may not decide about job"},
		{"terminal:taro:ba9876543210", "terminal:taro", all[0].Short(), false, "may not decide about job"},
		{tableSession, "terminal:hanako", "000000000000", true, "the hash is not that of job"},
		{"terminal:hanako:ba9876543210", "terminal:hanako", all[0].Short(), true, "Approved: let it be 42"}, // a copy elsewhere: it is who decides that counts
		{tableSession, "terminal:hanako", all[0].Short(), true, "is decided already: approved"},
		{tableSession, "terminal:hanako", all[0].Short(), false, "is decided already: approved"},
	} {
		if got := press(c.session, c.user, c.hash, c.grant); !strings.Contains(got, c.want) {
			t.Errorf("%s in %s: %s", c.user, c.session, got)
		}
	}
	if _, told := b.works(); strings.Count(told, "Applied: let it be 42") != 1 {
		t.Errorf("told %s", told)
	}
	if v, err = b.store.View(v.Metadata.UUID); err != nil || v.Status() != task.Completed {
		t.Errorf("%s, %v", v.Status(), err)
	}
}

// What the program decides by itself, as whole conversations in both languages: a proposal
// that nobody decided about in time, one whose files changed, and one that was allowed before.
func TestDecidedByTheProgram(t *testing.T) {
	t.Parallel()
	const auto = "approval: {approvers: ['terminal:hanako'], auto_approve: {enabled: true, scope: {allowed_tools: [apply_patch], allowed_task_types: [codegen], allowed_paths_prefix: ['.']}}}\n"
	for name, c := range map[string]struct {
		more   string
		first  string                       // what is said before the request
		waits  bool                         // the proposal waits for somebody
		then   func(t *testing.T, b *table) // what happens before hanako approves
		late   map[i18n.Lang]string         // what is said to that
		after  map[i18n.Lang]string         // what is said once the run goes on
		events string
		file   string // answer.txt at hand
		status task.Status
	}{
		"expired, then approved": {more: onBranch + "approval: {expires_hours: 1}\n", waits: true, then: func(_ *testing.T, b *table) { b.late.Store(int64(2 * time.Hour)) },
			late:   map[i18n.Lang]string{i18n.English: "decided: the proposal was denied: nobody decided in time", i18n.Japanese: "decided: 期限までに決定がなかったため、提案は却下になりました"},
			events: "requested denied/system/expired", file: "41", status: task.Stopped},
		"expired by itself": {more: onBranch + "approval: {expires_hours: 1}\n", waits: true,
			then: func(t *testing.T, b *table) {
				b.late.Store(int64(2 * time.Hour))
				if err := b.settle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(b.to.all, "\n"); !strings.Contains(got, "decided: "+b.lang.T("approval.denied_expired")) {
					t.Errorf("%s", got)
				}
			},
			late:   map[i18n.Lang]string{i18n.English: "is decided already: the proposal was denied: nobody decided in time", i18n.Japanese: "すでに決定済みです: 期限までに決定がなかったため"},
			events: "requested denied/system/expired", file: "41", status: task.Stopped},
		"stale": {more: "chat: {deliver: worktree}\n", waits: true,
			then: func(t *testing.T, b *table) {
				if err := os.WriteFile(filepath.Join(b.repo, "answer.txt"), []byte("40\n1\n2\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			late:   map[i18n.Lang]string{i18n.English: "Approved: ", i18n.Japanese: "承認"},
			after:  map[i18n.Lang]string{i18n.English: "decided: The files changed after the proposal was made, so job ", i18n.Japanese: "decided: 提案の後でファイルが変わったため、ジョブ "},
			events: "requested granted/terminal:hanako denied/system/stale", file: "40", status: task.Stopped},
		"auto_approved": {more: "chat: {deliver: worktree}\n" + auto, first: "/auto-approve ttl=30m",
			late:   map[i18n.Lang]string{i18n.English: "is decided already: approved automatically", i18n.Japanese: "すでに決定済み"},
			events: "auto_approved/terminal:hanako", file: "42", status: task.Completed},
		"auto_approved, switched off": {more: "chat: {deliver: worktree}\n" + auto, first: "/auto-approve off", waits: true,
			late:   map[i18n.Lang]string{i18n.English: "Approved: ", i18n.Japanese: "承認"},
			after:  map[i18n.Lang]string{i18n.English: "Applied, not committed: let it be 42 (job ", i18n.Japanese: "適用しました（コミットはしていません）: let it be 42（ジョブ "},
			events: "requested granted/terminal:hanako", file: "42", status: task.Completed},
		"auto_approved, its time is over": {more: "chat: {deliver: worktree}\n" + auto, first: "/auto-approve ttl=-", waits: true,
			late:   map[i18n.Lang]string{i18n.English: "Approved: ", i18n.Japanese: "承認"},
			after:  map[i18n.Lang]string{i18n.English: "Applied, not committed: let it be 42 (job ", i18n.Japanese: "適用しました（コミットはしていません）: let it be 42（ジョブ "},
			events: "requested granted/terminal:hanako", file: "42", status: task.Completed},
	} {
		for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
			t.Run(name+" "+string(lang), func(t *testing.T) {
				t.Parallel()
				b := newTable(t, lang, nil, c.more)
				if c.first != "" {
					b.says(tableSession, hanako, "/auto-approve ttl=30m")
				}
				switch c.first {
				case "/auto-approve off":
					b.says(tableSession, hanako, c.first)
				case "/auto-approve ttl=-":
					b.late.Store(int64(31 * time.Minute))
				}
				b.says(tableSession, hanako, "/code2 let it be 42")
				v, told := b.works()
				job, err := approval.Read(v.Dir)
				if err != nil || (v.Status() == task.AwaitingApproval) != c.waits || strings.Contains(told, "request: ") != c.waits {
					t.Fatalf("%v, %s\n%s", err, v.Status(), told)
				}
				if want := map[i18n.Lang]string{i18n.English: "decided: Approved automatically.\nApplied, not committed: let it be 42 (job " + job.Job, i18n.Japanese: "decided: 自動で承認しました。\n適用しました（コミットはしていません）: let it be 42（ジョブ " + job.Job}[lang]; strings.Contains(told, want) == c.waits {
					t.Errorf("told %s", told)
				}
				if c.then != nil {
					c.then(t, b)
				}
				if got := b.says(tableSession, hanako, "/approve "+job.Job+" "+job.Short()); !strings.Contains(got, c.late[lang]) {
					t.Errorf("approved: %s", got)
				}
				if c.after != nil {
					if _, told = b.works(); !strings.Contains(told, c.after[lang]) {
						t.Errorf("told %s", told)
					}
				}
				if got := b.decisions(job.Job); got != c.events {
					t.Errorf("events %s", got)
				}
				if v, err = b.store.View(v.Metadata.UUID); err != nil || v.Status() != c.status {
					t.Errorf("%s, %v", v.Status(), err)
				}
				if raw, err := os.ReadFile(filepath.Join(b.repo, "answer.txt")); err != nil || string(raw) != c.file+"\n1\n2\n" {
					t.Errorf("%q, %v", raw, err)
				}
			})
		}
	}
}

// What a proposal may hold, from what the coder says to the files at hand: all of it or
// nothing is done, and outside of the repository nothing.
func TestWhatIsApplied(t *testing.T) {
	t.Parallel()
	const was = "41\n1\n2\n"
	propose := func(args string) string {
		return "- say: So it is.\n  calls: [{tool: propose, args: {plan: P, risk: {destructive: false, rollback_possible: true}, " + args + "}}]\n"
	}
	const update = `patch: "--- a/answer.txt\n+++ b/answer.txt\n@@ -1,3 +1,3 @@\n-41\n+42\n 1\n 2\n"`
	text := "- say: |\n    ```json\n    {\"plan\":\"P\",\"risk\":{\"destructive\":false,\"rollback_possible\":true},\"files\":[{\"path\":\"answer.txt\",\"action\":\"modify\",\"content\":\"42\\n1\\n2\\n\"}]}\n    ```\n"
	escape := `patch: "--- /dev/null\n+++ b/../escaped.txt\n@@ -0,0 +1 @@\n+x\n"`
	for name, c := range map[string]struct {
		script string
		asked  bool // for a decision
		status task.Status
		told   map[i18n.Lang]string
		files  map[string]string // "" where there is none
		events string
	}{
		"updated": {propose(update), true, task.Completed, map[i18n.Lang]string{i18n.English: "Applied, not committed: let it be 42 (job ", i18n.Japanese: "適用しました（コミットはしていません）: let it be 42（ジョブ "}, map[string]string{"answer.txt": "42\n1\n2\n"}, "requested granted"},
		"created": {propose(`files: [{path: docs/new.txt, action: create, content: "n\n"}]`), true, task.Completed, map[i18n.Lang]string{i18n.English: "Applied, not committed: let it be 42 (job ", i18n.Japanese: "適用しました（コミットはしていません）: let it be 42（ジョブ "},
			map[string]string{"answer.txt": was, "docs/new.txt": "n\n"}, "requested granted"},
		"deleted": {propose(`files: [{path: answer.txt, action: delete}]`), true, task.Completed, map[i18n.Lang]string{i18n.English: "Applied, not committed: let it be 42 (job ", i18n.Japanese: "適用しました（コミットはしていません）: let it be 42（ジョブ "},
			map[string]string{"answer.txt": ""}, "requested granted"},
		"appended": {propose(`patch: "--- a/answer.txt\n+++ b/answer.txt\n@@ -2,2 +2,3 @@\n 1\n 2\n+3\n"`), true, task.Completed, map[i18n.Lang]string{i18n.English: "Applied, not committed: let it be 42 (job ", i18n.Japanese: "適用しました（コミットはしていません）: let it be 42（ジョブ "},
			map[string]string{"answer.txt": was + "3\n"}, "requested granted"},
		"commands in order": {propose(update + `, commands: [{cmd: "echo a > made.txt"}, {cmd: "echo b >> made.txt"}]`), true, task.Completed, map[i18n.Lang]string{i18n.English: "Applied, not committed: let it be 42 (job ", i18n.Japanese: "適用しました（コミットはしていません）: let it be 42（ジョブ "},
			map[string]string{"answer.txt": "42\n1\n2\n", "made.txt": "a\nb\n"}, "requested granted"},
		"a command fails": {propose(update + `, commands: [{cmd: "echo a > made.txt"}, {cmd: "exit 3"}, {cmd: "echo b >> made.txt"}]`), true, task.Failed, map[i18n.Lang]string{i18n.English: "not applied", i18n.Japanese: "適用していません"},
			map[string]string{"answer.txt": was, "made.txt": ""}, "requested granted"},
		"as text":           {text, true, task.Completed, map[i18n.Lang]string{i18n.English: "Applied, not committed: let it be 42 (job ", i18n.Japanese: "適用しました（コミットはしていません）: let it be 42（ジョブ "}, map[string]string{"answer.txt": "42\n1\n2\n"}, "requested granted"},
		"outside":           {propose(escape) + propose(escape), false, task.Failed, map[i18n.Lang]string{i18n.English: "answer: So it is.", i18n.Japanese: "answer: So it is."}, map[string]string{"answer.txt": was, "../escaped.txt": ""}, ""},
		"nothing to change": {propose(`task_type: review, notes: ["it is 41 on purpose"]`), false, task.Completed, map[i18n.Lang]string{i18n.English: "answer: So it is.", i18n.Japanese: "answer: So it is."}, map[string]string{"answer.txt": was}, ""},
	} {
		for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
			t.Run(name+" "+string(lang), func(t *testing.T) {
				t.Parallel()
				b := newTable(t, lang, nil, "chat: {deliver: worktree}\nplanning: {enabled: false}\n")
				var log bytes.Buffer
				b.log = slog.New(slog.NewTextHandler(&log, nil))
				if err := os.WriteFile(filepath.Join(filepath.Dir(b.repo), "script.yaml"), []byte(c.script), 0o600); err != nil {
					t.Fatal(err)
				}
				b.says(tableSession, hanako, "/code2 let it be 42")
				v, told := b.works()
				if o, err := order.Parse(v.Metadata); err != nil || o.Repo != b.repo || v.Metadata.TaskKey != (task.Key{Source: "terminal", Owner: "hanako:0123456789ab", Repo: "repo", Type: "chat", ID: o.Chat.Job}) {
					t.Errorf("%+v of %+v, %v", v.Metadata.TaskKey, o, err)
				}
				if (v.Status() == task.AwaitingApproval) != c.asked || strings.Contains(told, "request: ") != c.asked || v.Metadata.Config.Provider != "script" {
					t.Fatalf("%s by %s: %s", v.Status(), v.Metadata.Config.Provider, told)
				}
				if c.asked {
					job, err := approval.Read(v.Dir)
					if err != nil {
						t.Fatal(err)
					}
					if raw, err := os.ReadFile(filepath.Join(b.repo, "answer.txt")); err != nil || string(raw) != was {
						t.Errorf("before it is granted: %q, %v", raw, err)
					}
					b.says(tableSession, hanako, "/approve "+job.Job+" "+job.Short())
					v, told = b.works()
				}
				if v.Status() != c.status || !strings.Contains(told, c.told[lang]) {
					t.Errorf("%s: %s", v.Status(), told)
				}
				for name, want := range c.files {
					if raw, err := os.ReadFile(filepath.Join(b.repo, name)); string(raw) != want || (err != nil) != (want == "") {
						t.Errorf("%s: %q, %v", name, raw, err)
					}
				}
				if got := strings.Join(b.events(), " "); got != c.events {
					t.Errorf("events %s", got)
				}
				if strings.Contains(log.String(), "applied") != c.asked || strings.Contains(log.String(), "alias=Shiro") != c.asked {
					t.Errorf("logged %s", log.String())
				}
			})
		}
	}
}

// nowhere is a network that counts who asks for it.
type nowhere struct{ asked int }

func (n *nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	n.asked++
	return nil, errors.New("there is no network here")
}

// A proposal that waits is decided about and applied though its run is taken up again where its
// coder's model cannot be had any more: nobody asks it where no plan leads.
func TestProposalOutlivesItsModel(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "planning: {enabled: false}\n")
	h.add(h.local())
	id := h.ask()
	h.must(h.once())
	h.status(id, task.AwaitingApproval)
	h.must(os.Remove(filepath.Join(h.dir, "script.yaml")))
	_, v := h.job(id)
	h.approvals(func(a *Approvals) {
		_, err := a.Store.Control(t.Context(), v.Metadata.UUID, contextstore.Resume, "hanako")
		h.must(err)
	})
	h.status(id, task.Queued)
	h.must(h.once())
	h.status(id, task.AwaitingApproval)
	h.must(h.decide(id, true))
	h.must(h.once())
	h.status(id, task.Completed)
}

// A job that waits for its turn calls no cloud once its session is local, and people are
// told why; when that is lifted the next one does.
func TestLocalBeforeAJobBegins(t *testing.T) {
	t.Parallel()
	net := &nowhere{}
	b := newTable(t, i18n.English, &http.Client{Transport: net}, "")
	b.says(tableSession, "terminal:hanako", "/code3 let it be 42")
	b.says(tableSession, "terminal:hanako", "/local")
	v, told := b.works()
	if net.asked != 0 || v.Status() != task.Failed || !strings.Contains(told, "answer: ") {
		t.Errorf("%d calls, %s: %s", net.asked, v.Status(), told)
	}
	b.says(tableSession, "terminal:hanako", "/cloud")
	b.says(tableSession, "terminal:hanako", "/code3 let it be 42")
	if b.works(); net.asked == 0 {
		t.Error("no call")
	}
}

// hooked is a terminal that tells of a post before it is kept.
type hooked struct {
	*posts
	before func(channel.Post)
}

func (h *hooked) Post(ctx context.Context, p channel.Post) error {
	h.before(p)
	return h.posts.Post(ctx, p)
}

// A proposal that was cut short before its coder judged it is put to people without that
// once the session is local: its model is not called any more.
func TestLocalBeforeAProposalIsJudged(t *testing.T) {
	t.Parallel()
	net := &nowhere{}
	b := newTable(t, i18n.English, &http.Client{Transport: net}, "")
	if err := os.WriteFile(filepath.Join(filepath.Dir(b.repo), "script.yaml"), []byte(`- say: So it is.
  calls: [{tool: propose, args: {plan: P, files: [{path: a.go, action: create, content: "package a\n\n// TODO: fill in\n"}], risk: {destructive: false, rollback_possible: true}}}]
- calls: [{tool: read_file, args: {path: answer.txt}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.says(tableSession, "terminal:hanako", "/code2 let it be 42")
	ctx, stop := context.WithCancelCause(t.Context())
	b.engine.Add(&hooked{b.to, func(p channel.Post) {
		if p.Kind == channel.Progress && strings.Contains(p.Text, "reading answer.txt") { // as it judges
			stop(agent.ErrShutdown)
		}
	}})
	l, err := contextstore.List(t.Context(), b.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{Status: task.Queued, Limit: 9})
	if err != nil || len(l.Views) != 1 {
		t.Fatalf("%d runs wait, %v", len(l.Views), err)
	}
	c, _, err := b.store.Claim(t.Context(), l.Views[0].Metadata.UUID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.work(ctx, c); err != nil {
		t.Fatal(err)
	}
	v, err := b.store.View(l.Views[0].Metadata.UUID)
	if err != nil || v.Status() != task.Queued {
		t.Fatalf("%s, %v", v.Status(), err)
	}
	meta := filepath.Join(v.Dir, contextstore.MetadataFile)
	raw, err := os.ReadFile(meta)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(meta, bytes.ReplaceAll(raw, []byte(`"role":"coder2"`), []byte(`"role":"coder3"`)), 0o600); err != nil { // who is in a cloud
		t.Fatal(err)
	}
	b.says(tableSession, "terminal:hanako", "/local")
	v, told := b.works()
	if net.asked != 0 || v.Status() != task.AwaitingApproval || !strings.Contains(told, "request: ") {
		t.Errorf("%d calls, %s: %s %v", net.asked, v.Status(), told, *v.State.Error)
	}
}
