package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/workspace"
)

// TestMain lets the program of the tests be the helper of its sandboxes, and the process
// that is killed while it applies.
func TestMain(m *testing.M) {
	sandbox.Helper(os.Args)
	if os.Getenv("TORI_TEST_APPLY") != "" {
		applyAndDie()
	}
	os.Exit(m.Run())
}

var noon = time.Date(2026, 3, 4, 3, 6, 7, 0, time.UTC)

// clock is a time that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// settings are the defaults of the configuration, with two approvers.
func settings() Settings {
	return Settings{Required: true, Hard: []RiskKind{Delete, Rename, SendSensitive, PushPublic, CostOverLimit}, Approvers: []string{"slack:BOSS", "slack:VICE"}, Admins: []string{"terminal:root"},
		Expires: 72 * time.Hour, Wide: Wide{20, 500, 0.5}, CostLimit: 16000,
		Auto: AutoSettings{Enabled: true, TTL: time.Hour, Types: []TaskType{Design, Review}, Paths: []string{"docs/"}, Tools: []string{ToolPatch}, Deny: []RiskKind{Delete, Rename, PushPublic}}}
}

// house is a base directory with a repository beside it.
type house struct {
	*Jobs
	clock *clock
	repo  string
	base  *workspace.Workspace
}

func open(t *testing.T, base string) *Jobs {
	t.Helper()
	z := redact.New(nil, nil)
	c := &clock{t: noon}
	store, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, Redact: z.String, Now: c.now, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	p, err := policy.New(policy.Default())
	if err != nil {
		t.Fatal(err)
	}
	return &Jobs{Store: store, Settings: settings(), Policy: p, Version: "1", Sanitizer: z, Now: c.now}
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{Jobs: open(t, filepath.Join(t.TempDir(), "contexts")), clock: &clock{t: noon}, repo: newRepo(t)}
	h.Now = h.clock.now
	src, err := workspace.Inspect(t.Context(), h.repo, workspace.InspectOptions{Box: box()})
	if err != nil {
		t.Fatal(err)
	}
	h.base, err = workspace.Create(t.Context(), workspace.CreateOptions{Source: src, Dir: filepath.Join(t.TempDir(), "base"), Branch: "tori/base", Box: box()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.base.Close() })
	return h
}

// box is where git runs: nothing here is a stranger's.
func box() workspace.Box {
	return workspace.Box{Shell: func(s sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(s), nil }}
}

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.org", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSpace(string(out))
}

func newRepo(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	for name, text := range map[string]string{"README.md": "hello\n", "docs/a.md": "one\ntwo\nthree\n", "src/main.go": "package main\n", "go.mod": "module x\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	return dir
}

const docsPatch = `diff --git a/docs/a.md b/docs/a.md
--- a/docs/a.md
+++ b/docs/a.md
@@ -1,3 +1,4 @@
 one
 two
 three
+four
`

// draft is a small proposal of hanako's.
func (h *house) draft(patch string) Draft {
	return Draft{Session: "slack:T:C:1", Requester: "slack:HANAKO", Title: "Say four", Summary: []string{"adds a line"}, Patch: []byte(patch), Type: Design,
		Base: h.base.Base(), Repository: h.repo, Deliver: Branch, Visibility: Private}
}

var jobs int

var jobsMu sync.Mutex

// run is a new run in our hands, with a job id.
func (h *house) run(t *testing.T) (*contextstore.Context, string) {
	t.Helper()
	jobsMu.Lock()
	jobs++
	job, err := NewJob(noon, time.UTC, bytes.NewReader([]byte{0, 0, byte(jobs >> 8), byte(jobs)}))
	jobsMu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	uuid, err := h.Store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "slack", Owner: "C", Repo: "repo", Type: "chat", ID: job}, Title: "Say four"})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := h.Store.Claim(t.Context(), uuid)
	if err != nil {
		t.Fatal(err)
	}
	return c, job
}

// propose puts a draft to people: the run waits.
func (h *house) propose(t *testing.T, d Draft) Job {
	t.Helper()
	c, id := h.run(t)
	job, err := h.Propose(t.Context(), c, id, d, h.base)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.AwaitingApproval, Reason: "waits"}); err != nil {
		t.Fatal(err)
	}
	return job
}

func (h *house) status(t *testing.T, job Job) task.Status {
	t.Helper()
	v, err := h.Store.View(job.Run)
	if err != nil {
		t.Fatal(err)
	}
	return v.Status()
}

func (h *house) grant(job Job, by string) (Job, error) {
	return h.Decide(context.Background(), Decision{Job: job.Job, Hash: job.Short(), Grant: true, By: by, How: "button", Where: "slack"})
}

func key(err error) string {
	var e *i18n.Error
	if errors.As(err, &e) {
		return e.Key
	}
	return ""
}

func TestNewJob(t *testing.T) {
	t.Parallel()
	job, err := NewJob(noon, time.FixedZone("JST", 9*3600), bytes.NewReader([]byte{0xde, 0xad, 0, 1}))
	if err != nil || job != "20260304-120607-dead0001" || !IsJob(job) || len(job) != 24 {
		t.Errorf("%s %v", job, err)
	}
	if _, err := NewJob(noon, time.UTC, bytes.NewReader(nil)); err == nil {
		t.Error("made without randomness")
	}
	for _, bad := range []string{"", "20260304-120607-DEAD0001", "20260304-120607-dead00011", "550e8400"} {
		if IsJob(bad) {
			t.Errorf("%s is taken", bad)
		}
	}
}

// From the proposal to the grant: the files, the lines, the audit, the status of the run,
// and that either id finds the other.
func TestGrant(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	job := h.propose(t, h.draft(docsPatch))
	if job.State.Status != Pending || job.State.Hash != job.Hash() || !job.State.Expires.Equal(noon.Add(72*time.Hour)) {
		t.Fatalf("%+v", job.State)
	}
	if raw, err := job.ReadPatch(); err == nil || !errors.Is(err, os.ErrNotExist) { // it was moved
		t.Errorf("%q %v", raw, err)
	}
	for _, id := range []string{job.Job, job.Run, job.Run[:8]} {
		found, err := h.Find(t.Context(), id, everyone)
		if err != nil || found.Job != job.Job || found.Run != job.Run {
			t.Fatalf("%s: %+v %v", id, found, err)
		}
		if raw, err := found.ReadPatch(); err != nil || string(raw) != docsPatch || sumOf(raw) != found.Patch {
			t.Errorf("%q %v", raw, err)
		}
	}
	if all, err := h.Waiting(t.Context(), everyone); err != nil || len(all) != 1 || all[0].Job != job.Job {
		t.Errorf("%+v %v", all, err)
	}
	job, err := h.grant(job, "slack:BOSS")
	if err != nil || job.State.Status != Granted || job.State.Approver != "slack:BOSS" || h.status(t, job) != task.Queued {
		t.Fatalf("%+v %v %s", job.State, err, h.status(t, job))
	}
	found, err := h.Find(t.Context(), job.Job, everyone)
	if err != nil {
		t.Fatal(err)
	}
	lines, _ := disk.Read(filepath.Join(found.Dir, "approvals.jsonl"), 1<<20)
	for _, want := range []string{`"event":"approval.requested"`, `"event":"approval.granted"`, `"approver":"slack:BOSS"`, `"approved_by":"button"`, `"where":"slack"`, `"approval_decided_at":"2026-03-04T03:06:07`, `"coder_output":"adds a line"`} {
		if !strings.Contains(string(lines), want) {
			t.Errorf("no %s in\n%s", want, lines)
		}
	}
	audit, _ := disk.Read(filepath.Join(h.Store.BaseDir, "audit.jsonl"), 1<<20)
	if !strings.Contains(string(audit), `"actor":"slack:BOSS","action":"approve","uuid":"`+job.Run) {
		t.Errorf("%s", audit)
	}
	if _, err := h.grant(job, "slack:VICE"); !errors.As(err, new(*DecidedError)) {
		t.Errorf("granted twice: %v", err)
	}
}

func TestDeny(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	job := h.propose(t, h.draft(docsPatch))
	job, err := h.Decide(t.Context(), Decision{Job: job.Run, By: "slack:HANAKO", How: "command", Where: "slack", Reason: "five, not four"})
	if err != nil || job.State.Status != Denied || job.State.Reason != "five, not four" || h.status(t, job) != task.Stopped {
		t.Fatalf("%+v %v %s", job.State, err, h.status(t, job))
	}
	if err := h.Confirm(t.Context(), &job); !errors.As(err, new(*DecidedError)) {
		t.Errorf("a denied job is confirmed: %v", err)
	}
}

// Who may not decide, and what is not decided about.
func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.Settings.FourEyes = true
	h.Settings.Account = func(context.Context) (func(string) string, error) {
		return func(id string) string {
			if id == "slack:HANAKO" || id == "terminal:hanako" {
				return "github:hanako"
			}
			return id
		}, nil
	}
	job := h.propose(t, h.draft(docsPatch))
	d := Decision{Job: job.Job, Hash: job.Short(), Grant: true, By: "slack:BOSS", How: "command"}
	for name, c := range map[string]struct {
		change func(*Decision)
		want   string
	}{
		"stranger":      {func(d *Decision) { d.By = "slack:EVE" }, "approval.not_allowed"},
		"nobody":        {func(d *Decision) { d.By = "" }, "approval.not_allowed"},
		"system":        {func(d *Decision) { d.By = System }, "approval.not_allowed"},
		"two eyes":      {func(d *Decision) { d.By = "slack:HANAKO" }, "approval.four_eyes"},
		"one person":    {func(d *Decision) { d.By = "terminal:hanako" }, "approval.four_eyes"},
		"id in case":    {func(d *Decision) { d.By = "slack:boss" }, "approval.not_allowed"},
		"other hash":    {func(d *Decision) { d.Hash = strings.Repeat("0", 12) }, "approval.other_hash"},
		"short hash":    {func(d *Decision) { d.Hash = d.Hash[:11] }, "approval.other_hash"},
		"no hash":       {func(d *Decision) { d.Hash = "" }, "approval.no_hash"},
		"denied other":  {func(d *Decision) { d.Grant = false; d.Hash = strings.Repeat("0", 12) }, "approval.other_hash"},
		"unknown":       {func(d *Decision) { d.Job = "20260304-120607-ffffffff" }, "approval.unknown"},
		"without write": {func(d *Decision) { d.By = "github:7" }, "approval.not_allowed"},
	} {
		bad := d
		c.change(&bad)
		if _, err := h.Decide(t.Context(), bad); key(err) != c.want {
			t.Errorf("%s: %v (%s)", name, err, key(err))
		}
	}
	if now, err := h.Find(t.Context(), job.Job, everyone); err != nil || now.State.Status != Pending || h.status(t, job) != task.AwaitingApproval {
		t.Fatalf("%+v %v", now.State, err)
	}
	d.By, d.Permitted = "github:7", true
	if _, err := h.Decide(t.Context(), d); err != nil {
		t.Errorf("who may write to the repository: %v", err)
	}
	review := h.draft("")
	review.Type = Review
	job = h.propose(t, review)
	if _, err := h.grant(job, "slack:BOSS"); key(err) != "approval.no_diff" {
		t.Errorf("granted without a diff: %v", err)
	}
}

// Of decisions from many places at once exactly one counts, and both of its traces say
// the same.
func TestDecideAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	job := h.propose(t, h.draft(docsPatch))
	var won, lost sync.Map
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			d := Decision{Job: job.Job, Hash: job.Short(), Grant: i%2 == 0, By: []string{"slack:BOSS", "slack:VICE"}[i%2], How: "button"}
			_, err := h.Decide(context.Background(), d)
			if err == nil {
				won.Store(i, d.Grant)
			} else if errors.As(err, new(*DecidedError)) {
				lost.Store(i, true)
			} else {
				t.Error(err)
			}
		})
	}
	all.Wait()
	n, granted := 0, false
	won.Range(func(_, g any) bool { n++; granted = g.(bool); return true })
	if n != 1 {
		t.Fatalf("%d decisions counted", n)
	}
	now, err := h.Find(t.Context(), job.Job, everyone)
	if err != nil || now.State.Status.Approved() != granted {
		t.Errorf("%+v %v", now.State, err)
	}
}

// What is proposed anew while it waits has another hash; a decision on the old one is
// refused with the new request.
func TestProposedAnew(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c, id := h.run(t)
	old, err := h.Propose(t.Context(), c, id, h.draft(docsPatch), h.base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Propose(t.Context(), c, id, h.draft(strings.Replace(docsPatch, "+four", "+five", 1)), h.base); err != nil {
		t.Fatal(err)
	}
	_, err = h.grant(old, "slack:BOSS")
	other := (*OtherHashError)(nil)
	if !errors.As(err, &other) || other.Job.Patch == old.Patch || other.Job.State.Status != Pending {
		t.Fatalf("%v", err)
	}
	if job, err := h.grant(other.Job, "slack:BOSS"); err != nil || job.State.Status != Granted {
		t.Fatal(err)
	}
	if _, err := h.Propose(t.Context(), c, id, h.draft(docsPatch), h.base); !errors.As(err, new(*DecidedError)) {
		t.Errorf("proposed again after the grant: %v", err)
	}
}

// A request that was bound to another policy is asked again; so is what was granted.
func TestPolicyChanges(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	job := h.propose(t, h.draft(docsPatch))
	h.Version = "2"
	_, err := h.Decide(t.Context(), Decision{Job: job.Job, Grant: true, By: "slack:BOSS", How: "command"})
	other := (*OtherHashError)(nil)
	if !errors.As(err, &other) || other.Job.Short() == job.Short() { // what it asks for now is to be seen, whatever was missing
		t.Fatal(err)
	}
	h.Version = "2b"
	_, err = h.grant(job, "slack:BOSS")
	if !errors.As(err, &other) || other.Job.Short() == job.Short() {
		t.Fatal(err)
	}
	if job, err = h.grant(other.Job, "slack:BOSS"); err != nil {
		t.Fatal(err)
	}
	if err := h.Confirm(t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	h.Version = "3"
	if err := h.Confirm(t.Context(), &job); !errors.As(err, new(*WithdrawnError)) || job.State.Status != Pending || job.State.Reason != "policy" {
		t.Errorf("%v %+v", err, job.State)
	}
}

// Whoever comes after its time finds it denied, whether or not somebody looked before.
func TestExpires(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	a, b, kept := h.propose(t, h.draft(docsPatch)), h.propose(t, h.draft(strings.Replace(docsPatch, "four", "4", 1))), h.propose(t, h.draft(strings.Replace(docsPatch, "four", "IV", 1)))
	if _, err := h.grant(kept, "slack:BOSS"); err != nil {
		t.Fatal(err)
	}
	h.clock.add(72*time.Hour - time.Second)
	if moved, err := h.Settle(t.Context()); err != nil || len(moved) != 0 {
		t.Fatalf("%v %v", moved, err)
	}
	h.clock.add(time.Second)
	_, err := h.grant(a, "slack:BOSS")
	decided := (*DecidedError)(nil)
	if !errors.As(err, &decided) || decided.Job.State.Approver != System || decided.Job.State.Reason != ReasonExpired || decided.Job.State.Status != Denied {
		t.Fatalf("%v", err)
	}
	moved, err := h.Settle(t.Context())
	if err != nil || len(moved) != 1 || moved[0].Job != b.Job || h.status(t, a) != task.Stopped || h.status(t, b) != task.Stopped || h.status(t, kept) != task.Queued {
		t.Errorf("%v %v %s %s %s", moved, err, h.status(t, a), h.status(t, b), h.status(t, kept))
	}
	h.Settings.Expires = 0
	c := h.propose(t, h.draft(strings.Replace(docsPatch, "four", "vier", 1)))
	h.clock.add(10000 * time.Hour)
	if _, err := h.grant(c, "slack:BOSS"); err != nil {
		t.Errorf("without an end: %v", err)
	}
}

// A process that died between a decision and what follows from it is made up for.
func TestSettle(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	job := h.propose(t, h.draft(docsPatch))
	job, err := h.Find(t.Context(), job.Job, everyone)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.append(&job, Event{Event: "approval.granted", Status: Granted, Approver: "slack:BOSS", Decided: contextstore.Time{Time: noon}}); err != nil {
		t.Fatal(err)
	}
	if moved, err := h.Settle(t.Context()); err != nil || len(moved) != 1 || h.status(t, job) != task.Queued {
		t.Fatalf("%v %v %s", moved, err, h.status(t, job))
	}
	audit, _ := disk.Read(filepath.Join(h.Store.BaseDir, "audit.jsonl"), 1<<20)
	if !strings.Contains(string(audit), `"action":"approve"`) {
		t.Errorf("%s", audit)
	}
}

// A proposal whose request a kill kept from the disk can be decided all the same.
func TestNoRequestYet(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	job := h.propose(t, h.draft(docsPatch))
	v, err := h.Store.View(job.Run)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(v.Dir, "approvals.jsonl")); err != nil {
		t.Fatal(err)
	}
	if job, err = h.grant(job, "slack:BOSS"); err != nil || job.State.Requested.IsZero() {
		t.Fatalf("%+v %v", job.State, err)
	}
}

// A stored patch that is not what was proposed is not applied.
func TestPatchOnDisk(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	job := h.propose(t, h.draft(docsPatch))
	job, err := h.Find(t.Context(), job.Job, everyone)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(patchPath(job.Dir, job.Patch), []byte(strings.Replace(docsPatch, "four", "evil", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := job.ReadPatch(); err == nil {
		t.Error("read")
	}
}

// What is never put to people, for a reason that is told.
func TestProposeRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	token := "ghp_" + strings.Repeat("a1B2", 9)
	pem := "-----BEGIN " + "RSA PRIVATE KEY-----\n+MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7\n+MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7\n+-----END RSA PRIVATE KEY-----"
	file := func(text string) string {
		return fmt.Sprintf("diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,%d @@\n+%s\n", strings.Count(text, "\n")+1, text)
	}
	for name, c := range map[string]struct {
		change func(*Draft)
		want   string
	}{
		"large":              {func(d *Draft) { d.Patch = make([]byte, 50<<20) }, "workspace.patch_large"},
		"other base":         {func(d *Draft) { d.Patch = []byte(strings.Replace(docsPatch, " three", " drei", 1)) }, "workspace.patch_apply"},
		"up":                 {func(d *Draft) { d.Patch = []byte(strings.ReplaceAll(docsPatch, "docs/a.md", "../a.md")) }, "workspace.patch_outside"},
		"token":              {func(d *Draft) { d.Patch = []byte(file(token)) }, "approval.secret"},
		"key":                {func(d *Draft) { d.Patch = []byte(file(pem)) }, "approval.secret"},
		"mask":               {func(d *Draft) { d.Patch = []byte(file("to [EMAIL]")) }, "approval.mask"},
		"forbidden":          {func(d *Draft) { d.Commands = []string{"rm -rf /"} }, "approval.command_forbidden"},
		"secret in command":  {func(d *Draft) { d.Commands = []string{"echo " + token} }, "approval.command_secret"},
		"address in command": {func(d *Draft) { d.Commands = []string{"git config user.email a.person@example.com"} }, "approval.command_secret"},
	} {
		c2, id := h.run(t)
		d := h.draft(docsPatch)
		c.change(&d)
		_, err := h.Propose(t.Context(), c2, id, d, h.base)
		if !errors.As(err, new(*RefusedError)) || key(err) != c.want {
			t.Errorf("%s: %v (%s)", name, err, key(err))
		}
		if _, err := Read(c2.Dir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was put down: %v", name, err)
		}
	}
}

// What was approved is bound: each part of it changes the hash.
func TestHash(t *testing.T) {
	t.Parallel()
	p := Proposal{Patch: "a", Commands: []string{"b", "c"}, Base: "d", Repository: "e", Deliver: Branch, Policy: "f"}
	seen := map[string]string{}
	for name, change := range map[string]func(*Proposal){
		"as it is": func(*Proposal) {}, "patch": func(p *Proposal) { p.Patch = "A" }, "command": func(p *Proposal) { p.Commands = []string{"b", "x"} }, "commands joined": func(p *Proposal) { p.Commands = []string{"b,c"} },
		"base": func(p *Proposal) { p.Base = "x" }, "repository": func(p *Proposal) { p.Repository = "x" }, "target": func(p *Proposal) { p.Deliver = Worktree }, "branch": func(p *Proposal) { p.Onto = "main" }, "policy": func(p *Proposal) { p.Policy = "x" },
	} {
		q := p
		change(&q)
		if other, is := seen[q.Hash()]; is {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[q.Hash()] = name
	}
	q := p
	q.Title, q.Job = "another", "another"
	if q.Hash() != p.Hash() {
		t.Error("words are bound")
	}
}

func TestTypeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		leg, said string
		patch     bool
		want      TaskType
	}{{"CODE1", "", true, Design}, {"CODE", "", true, Codegen}, {"CODE2", "review", true, Codegen}, {"CODE2", "review", false, Review}, {"CODE3", "Refactor", true, Refactor}, {"CODE1", "review", true, Design}} {
		if got := TypeOf(c.leg, c.said, c.patch); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
