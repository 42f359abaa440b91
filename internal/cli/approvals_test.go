package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// proposals is a base directory with a repository about which things are proposed.
type proposals struct {
	t                  *testing.T
	base, config, repo string
}

func newProposals(t *testing.T, settings string) *proposals {
	dir := t.TempDir()
	p := &proposals{t: t, base: filepath.Join(dir, "contexts"), config: filepath.Join(dir, "config.yaml"), repo: filepath.Join(dir, "repo")}
	p.must(os.WriteFile(p.config, []byte(settings), 0o600))
	p.must(os.MkdirAll(p.repo, 0o700))
	p.write("a.txt", many+"one\n")
	p.git("init", "-q", "-b", "main")
	p.git("add", ".")
	p.git("commit", "-q", "-m", "first")
	return p
}

func (p *proposals) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *proposals) write(name, text string) {
	p.t.Helper()
	p.must(os.WriteFile(filepath.Join(p.repo, name), []byte(text), 0o600))
}

func (p *proposals) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.org"}, args...)...)
	cmd.Dir = p.repo
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// open is the base directory as the verbs see it.
func (p *proposals) open() *app.Approvals {
	p.t.Helper()
	a, err := app.OpenApprovals(p.t.Context(), app.Env{Getenv: func(string) string { return "" }, Environ: []string{}, Log: io.Discard, Lang: i18n.English, Now: time.Now, Notice: func(string, ...any) {}}, p.base, p.config)
	p.must(err)
	return a
}

// inBox is where git of the tests runs.
func inBox() workspace.Box {
	return workspace.Box{Shell: func(s sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(s), nil }}
}

// many are lines far from what is changed.
const many = "1\n2\n3\n4\n5\n6\n"

const twoPatch = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -5,3 +5,4 @@\n 5\n 6\n one\n+two\n"

// propose has twoPatch wait for a decision; apply decides and applies it at once.
func (p *proposals) propose(deliver approval.Deliver, apply bool) approval.Job {
	p.t.Helper()
	ctx, a := p.t.Context(), p.open()
	defer func() { p.must(a.Close()) }()
	id, err := approval.NewJob(time.Now(), time.UTC, rand.Reader)
	p.must(err)
	uuid, err := a.Store.Enqueue(ctx, contextstore.Metadata{TaskKey: task.Key{Source: "terminal", Owner: "o", Repo: "repo", Type: "chat", ID: id}, Title: "Say two", User: app.LocalUser()})
	p.must(err)
	c, _, err := a.Store.Claim(ctx, uuid)
	p.must(err)
	src, err := workspace.Inspect(ctx, p.repo, workspace.InspectOptions{Box: inBox(), AllowDirty: true})
	p.must(err)
	d := approval.Draft{Requester: a.Actor, Title: "Say two", Patch: []byte(twoPatch), Type: approval.Codegen, Repository: p.repo, Deliver: deliver, Visibility: approval.Private}
	e := approval.Applier{Jobs: a.Jobs}
	var base approval.Base
	if deliver == approval.Worktree {
		hand, err := workspace.OpenCheckout(ctx, src, filepath.Join(p.t.TempDir(), "hand"), inBox())
		p.must(err)
		defer func() { _ = hand.Close() }()
		d.Base, err = hand.TreeOf(ctx)
		p.must(err)
		t := approval.HandTree{Hand: hand, Base: d.Base}
		base, e.Tree = t, t
	} else {
		d.Base = src.Head
		t := &approval.CommitTree{Create: workspace.CreateOptions{Source: src, Dir: filepath.Join(p.t.TempDir(), "tree"), Branch: "tori/" + id, Box: inBox()}, Words: workspace.CommitOptions{Message: "Say two", When: time.Unix(1e9, 0)}}
		p.must(t.Lay(ctx))
		defer func() { _ = t.Close() }()
		base, e.Tree = t.Workspace(), t
	}
	job, err := a.Propose(ctx, c, id, d, base)
	p.must(err)
	if !apply {
		p.must(c.Transition(ctx, task.Outcome{Status: task.AwaitingApproval}))
		return job
	}
	job, err = a.Decide(ctx, approval.Decision{Job: id, Hash: job.Short(), Grant: true, By: a.Actor})
	p.must(err)
	done, err := e.Run(ctx, job)
	if err != nil || !done.Applied() {
		p.t.Fatalf("%+v %v", done, err)
	}
	p.must(c.Transition(ctx, task.Outcome{Status: task.Completed, Summary: "applied"}))
	return job
}

// tori runs a verb, and returns what it prints and its exit code.
func (p *proposals) tori(lang i18n.Lang, args ...string) (string, int) {
	p.t.Helper()
	var out bytes.Buffer
	c := &console{out: &out, err: &out, lang: lang, getenv: func(string) string { return "" }, environ: []string{"PATH=" + os.Getenv("PATH")}}
	code := c.main(append(args, "--base-dir", p.base, "--config", p.config))
	return out.String(), code
}

// runs a verb that must end well and print a text.
func (p *proposals) says(want string, args ...string) string {
	p.t.Helper()
	out, code := p.tori(i18n.English, args...)
	if code != exitOK || !strings.Contains(out, want) {
		p.t.Fatalf("tori %q: %d\n%s", args, code, out)
	}
	return out
}

func TestApprovals(t *testing.T) {
	p := newProposals(t, "language: en\n")
	empty := "The base directory is " + p.base + "; --base-dir or --config names another.\n"
	for _, verb := range []string{"approvals", "approvals auto", "sessions"} {
		p.says(empty, strings.Fields(verb)...)
		if out, _ := p.tori(i18n.English, append(strings.Fields(verb), "--json")...); out != "" {
			t.Errorf("%s: %s", verb, out)
		}
	}
	p.says(empty, "tasks", "--status", "failed")
	if out, _ := p.tori(i18n.Japanese, "approvals"); !strings.Contains(out, "決定を待つ提案はありません。\nベースディレクトリは "+p.base+" です（") {
		t.Error(out)
	}
	p.says("No proposal waits", "approvals")
	first, second := p.propose(approval.Branch, false), p.propose(approval.Branch, false)
	if out := p.says(first.Job, "approvals"); !strings.Contains(out, second.Job) || !strings.Contains(out, first.Short()) {
		t.Error(out)
	}
	var one shownApproval
	out, _ := p.tori(i18n.English, "approvals", "list", "--json")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &one) != nil || one.Job != second.Job || one.State.Status != approval.Pending || one.Hash != second.Short() {
		t.Errorf("%s\n%+v", out, one)
	}
	if out := p.says("+two", "approvals", "show", first.Run[:8]); !strings.Contains(out, "tori approvals grant "+first.Job+" "+first.Short()) || !strings.Contains(out, "State: waits for approval") {
		t.Error(out)
	}
	if out, _ := p.tori(i18n.Japanese, "approvals", "show", first.Job); !strings.Contains(out, "状態: 承認待ち") || !strings.Contains(out, "リスク") {
		t.Error(out)
	}
	if out, code := p.tori(i18n.English, "approvals", "grant", first.Job, "000000000000"); code != exitUsage || !strings.Contains(out, "the hash is not that of job") || !strings.Contains(out, first.Short()) {
		t.Errorf("%d %s", code, out)
	}
	p.says("granted", "approvals", "grant", first.Job, first.Short())
	if out, code := p.tori(i18n.Japanese, "approvals", "grant", first.Job, first.Short()); code != exitUsage || !strings.Contains(out, "すでに決定済み") {
		t.Errorf("%d %s", code, out)
	}
	p.says("denied", "approvals", "deny", second.Job, "--reason", "no")
	if out := p.says("State: denied", "approvals", "show", second.Job); !strings.Contains(out, "no") {
		t.Error(out)
	}
	p.says("No proposal waits", "approvals")
	if out, code := p.tori(i18n.English, "approvals", "show", "20260101-000000-00000000"); code != exitUsage || !strings.Contains(out, "there is no proposal") {
		t.Errorf("%d %s", code, out)
	}
}

func TestApprovalsAuto(t *testing.T) {
	p := newProposals(t, "language: en\napproval: {approvers: [\"terminal:"+app.LocalUser()+"\"], auto_approve: {enabled: true}}\n")
	p.says("on nowhere", "approvals", "auto")
	a := p.open()
	r, err := approval.ParseAuto("ttl=30m", a.Settings.Auto)
	p.must(err)
	_, err = a.Allow(context.Background(), "terminal:x:1", a.Actor, "terminal", r, rand.Reader)
	p.must(err)
	p.must(a.Close())
	p.says("scope=docs/ types=design,review tools=apply_patch", "approvals", "auto")
	p.says("(0 ended)", "approvals", "auto", "off", "another")
	p.says("(1 ended)", "approvals", "auto", "off")
	p.says("on nowhere", "approvals", "auto")
}

// What nobody built on is taken back at once, and once.
func TestRollback(t *testing.T) {
	for _, deliver := range []approval.Deliver{approval.Branch, approval.Worktree} {
		t.Run(string(deliver), func(t *testing.T) {
			p := newProposals(t, "language: en\n")
			p.write("mine.txt", "not tracked\n")
			job := p.propose(deliver, true)
			branch := "tori/" + job.Job
			p.says("applied", "approvals", "show", job.Job)
			p.says("taken back by job", "rollback", job.Job)
			if deliver == approval.Branch {
				if p.git("rev-parse", branch+"^{tree}") != p.git("rev-parse", "main^{tree}") || p.git("rev-list", "--count", "main.."+branch) != "2" {
					t.Error(p.git("log", "--oneline", branch))
				}
			} else if p.git("status", "--porcelain") != "?? mine.txt" {
				t.Error(p.git("status", "--porcelain"))
			}
			if out, code := p.tori(i18n.English, "rollback", job.Job); code != exitUsage || !strings.Contains(out, "taken back already") {
				t.Errorf("%d %s", code, out)
			}
		})
	}
}

// Where others built on it the rollback is asked for, and done once it is granted.
func TestRollbackAsks(t *testing.T) {
	for _, deliver := range []approval.Deliver{approval.Branch, approval.Worktree} {
		t.Run(string(deliver), func(t *testing.T) {
			p := newProposals(t, "language: en\n")
			job := p.propose(deliver, true)
			branch := "tori/" + job.Job
			if deliver == approval.Branch {
				p.git("worktree", "add", "-q", "../other", branch)
				p.must(os.WriteFile(filepath.Join(p.repo, "../other/b.txt"), []byte("b\n"), 0o600))
				p.git("-C", "../other", "add", ".")
				p.git("-C", "../other", "commit", "-q", "-m", "on top")
				p.git("worktree", "remove", "../other")
			} else {
				p.write("a.txt", "zero\n"+many+"one\ntwo\n")
			}
			out, code := p.tori(i18n.English, "rollback", job.Job)
			if code != exitWaiting || !strings.Contains(out, "waits for a decision") {
				t.Fatalf("%d %s", code, out)
			}
			var waits shownApproval
			list := p.says(job.Job, "approvals", "--json")
			p.must(json.Unmarshal([]byte(list), &waits))
			if waits.Reverts != job.Job {
				t.Fatal(list)
			}
			if again, code := p.tori(i18n.English, "rollback", job.Job); code != exitWaiting || !strings.Contains(again, waits.Job) {
				t.Errorf("%d %s", code, again) // the same one
			}
			p.says("granted", "approvals", "grant", waits.Job, waits.Hash)
			p.says("taken back by job "+waits.Job, "rollback", job.Job)
			if deliver == approval.Branch {
				if got := p.git("diff", "--name-only", "main", branch); got != "b.txt" {
					t.Errorf("%q", got)
				}
			} else if raw, _ := readFile(filepath.Join(p.repo, "a.txt")); string(raw) != "zero\n"+many+"one\n" {
				t.Errorf("%q", raw)
			}
		})
	}
}

// What was not applied, and what lies elsewhere, is not taken back.
func TestRollbackRefuses(t *testing.T) {
	p := newProposals(t, "language: en\n")
	job := p.propose(approval.Branch, false)
	if out, code := p.tori(i18n.English, "rollback", job.Job); code != exitUsage || !strings.Contains(out, "cannot be taken back: not applied yet") {
		t.Errorf("%d %s", code, out)
	}
	for lang, where := range map[i18n.Lang]string{i18n.English: "or the uuid of its run or the beginning of that. tori approvals lists", i18n.Japanese: "実行の uuid かその先頭を指定してください。待機中の提案は tori approvals"} {
		for _, id := range []string{"nonsense", "../x", job.Job[:20]} {
			out, code := p.tori(lang, "rollback", id)
			if code != exitUsage || !strings.Contains(out, where) || !strings.Contains(out, "20260304-120607-1a2b3c4d") || !strings.Contains(out, id) {
				t.Errorf("%q: %d %s", id, code, out)
			}
		}
	}
	job = p.propose(approval.Branch, true)
	p.git("branch", "-D", "tori/"+job.Job)
	if out, code := p.tori(i18n.English, "rollback", job.Job); code != exitUsage || !strings.Contains(out, "is not there any more") {
		t.Errorf("%d %s", code, out)
	}
}
