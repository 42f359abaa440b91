package app

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/task"
)

// forgeHouse is a chatHouse whose repository lies at a forge.
type forgeHouse struct {
	*chatHouse
	hub  *githubtest.Server
	repo *githubtest.Repo
}

// newForgeHouse links hanako to her account; more is more of the configuration.
func newForgeHouse(t *testing.T, o githubtest.RepoOptions, more string) *forgeHouse {
	t.Helper()
	h := &forgeHouse{chatHouse: newChatHouse(t, more)}
	h.hub = githubtest.New(t, githubtest.Options{})
	h.hub.AddUser(githubtest.User{Login: "hanako", ID: 101})
	h.hub.AddUser(githubtest.User{Login: "ken", ID: 102})
	h.hub.AddUser(githubtest.User{Login: "tori-bot", ID: 103})
	h.repo = h.hub.AddRepo("acme", "widgets", o, map[string]string{"answer.txt": "41\n1\n2\n", "README.md": "# Widgets\n"})
	h.repo.Allow("hanako", "write")
	h.repo.Allow("ken", "read")
	h.repo.Allow("tori-bot", "write")
	h.env["GITHUB_TOKEN"] = h.hub.Token("tori-bot")
	h.add("github: {url: '" + h.hub.URL + "', write_spacing_ms: 0}\nchecks: [grep -q 4 answer.txt]\nchat: {repositories: [{name: widgets, url: 'github:acme/widgets'}]}\n")
	return h
}

// linked has hanako of the terminal be an account of the forge.
const linked = "access: {people: {'terminal:hanako': 'github:hanako', 'terminal:ken': 'github:ken'}}\n"

// A job about a repository of a forge is proposed on its base branch as it is when the job
// begins; granted, it is one branch and one draft, and the session is told where.
func TestChatBecomesADraft(t *testing.T) {
	t.Parallel()
	h := newForgeHouse(t, githubtest.RepoOptions{Private: true}, linked)
	id := h.ask()
	h.repo.Commit("main", "ken", "meanwhile", map[string]string{"other.txt": "x\n"})
	h.must(h.once())
	h.status(id, task.AwaitingApproval)
	j, _ := h.job(id)
	if j.Base != h.repo.Branches()["main"] || j.Deliver != approval.PullRequest || j.Repository != "github:acme/widgets" || len(j.Risks) != 0 {
		t.Fatalf("%+v", j.Proposal)
	}
	h.must(h.decide(id, true))
	h.must(h.once())
	h.must(h.once())
	h.status(id, task.Completed)
	pulls := h.repo.Pulls()
	if len(pulls) != 1 || len(h.repo.Branches()) != 2 {
		t.Fatalf("%+v, %v", pulls, h.repo.Branches())
	}
	p := pulls[0]
	if got, _ := h.repo.File(p.Pull.Head, "answer.txt"); got != "42\n1\n2" || !p.Open || !p.Pull.Draft || p.Pull.Base != "main" || p.Title != "Make it 42" {
		t.Errorf("%q %+v %+v", got, p, p.Pull)
	}
	for _, want := range []string{"The answer is 42.", "`grep -q 4 answer.txt` passed", "Approved by `terminal:hanako`", id} {
		if !strings.Contains(p.Body, want) {
			t.Errorf("%q is not in %s", want, p.Body)
		}
	}
	if said := h.said(); !strings.Contains(said, "the draft is "+h.hub.URL+"/acme/widgets/pull/") {
		t.Errorf("%q", said)
	}
}

// A worker of the session reads the files of the forge's base branch.
func TestChatReadsTheForge(t *testing.T) {
	t.Parallel()
	h := newForgeHouse(t, githubtest.RepoOptions{}, "")
	talks, end := h.talks()
	defer end()
	for _, want := range []string{"41\n1\n2\n", "43\n"} {
		if want == "43\n" {
			h.repo.Commit("main", "ken", "newer", map[string]string{"answer.txt": want})
		}
		root, done, err := talks.tree(t.Context(), talks.engine.Repositories[0])
		h.must(err)
		got, err := root.ReadFile("answer.txt")
		done()
		if err != nil || string(got) != want {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// Without a link to an account, or with one that may not write, a person may propose, and is
// told what to do; what was granted goes out only while the account may write.
func TestWhoMayDeliver(t *testing.T) {
	t.Parallel()
	h := newForgeHouse(t, githubtest.RepoOptions{}, "approval: {approvers: ['terminal:ken']}\n")
	id := h.ask()
	h.must(h.once())
	if err := h.decide(id, true); err == nil || !strings.Contains(err.Error(), "access.people") {
		t.Errorf("%v", err)
	}
	raw, err := os.ReadFile(h.config)
	h.must(err)
	h.write("config.yaml", string(raw)+linked)
	h.approvals(func(a *Approvals) {
		j, err := a.Find(t.Context(), id, contextstore.Viewer{Admin: true})
		h.must(err)
		if _, err := a.Decide(t.Context(), approval.Decision{Job: id, Hash: j.Short(), Grant: true, By: "terminal:ken", How: "cli"}); err == nil || !strings.Contains(err.Error(), "may not write to github:acme/widgets") {
			t.Errorf("%v", err)
		}
		if k := j.Risks; len(k) != 1 || k[0].Kind != approval.PushPublic {
			t.Errorf("%+v", k)
		}
	})
	h.status(id, task.AwaitingApproval)
	h.must(h.decide(id, true))
	h.repo.Allow("hanako", "read")
	h.must(h.once())
	h.status(id, task.Failed)
	if len(h.repo.Branches()) != 1 || len(h.repo.Pulls()) != 0 {
		t.Errorf("%v", h.repo.Branches())
	}
}

// While the forge is down a job waits, and goes on when it answers again.
func TestForgeDown(t *testing.T) {
	t.Parallel()
	h := newForgeHouse(t, githubtest.RepoOptions{}, linked)
	id := h.ask()
	h.hub.Down(true)
	h.must(h.once())
	if n := len(h.repo.Pulls()); n != 0 {
		t.Error(n)
	}
	h.hub.Down(false)
	h.must(h.once())
	h.status(id, task.AwaitingApproval)
}

// What went to a forge is taken back: a draft that nobody built on is closed; one that was
// merged, or has somebody's commit on it, is reverted by another draft, once that was granted.
func TestRollbackAtAForge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(h *forgeHouse, p githubtest.Issue)
		onto      string // of the revert, "" where the draft is closed
	}{
		"nobody built on it": {func(*forgeHouse, githubtest.Issue) {}, ""},
		"merged": {func(h *forgeHouse, p githubtest.Issue) {
			h.approvals(func(a *Approvals) {
				h.must(a.s.openChatHosts(t.Context()))
				h.must(a.s.hosts["github"].Code.Ready(t.Context(), task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "pull_request", ID: strconv.Itoa(p.Number)}))
			})
			h.repo.Merge(p.Number, "hanako")
		}, "main"},
		"built on": {func(h *forgeHouse, p githubtest.Issue) {
			h.repo.Commit(p.Pull.Head, "ken", "more", map[string]string{"more.txt": "x\n"})
		}, "tori/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newForgeHouse(t, githubtest.RepoOptions{Private: true}, "access: {people: {'terminal:hanako': 'github:hanako', 'terminal:"+LocalUser()+"': 'github:hanako'}}\n")
			id := h.ask()
			h.must(h.once())
			h.must(h.decide(id, true))
			h.must(h.once())
			h.status(id, task.Completed)
			pull := h.repo.Pulls()[0]
			c.meanwhile(h, pull)
			var r Rolled
			roll := func() (err error) {
				h.approvals(func(a *Approvals) { r, err = a.Rollback(t.Context(), id) })
				return err
			}
			h.must(roll())
			if c.onto == "" {
				if p := h.repo.Pulls(); len(p) != 1 || p[0].Open || r.Closed == "" {
					t.Errorf("%+v %+v", p, r)
				}
				if err := roll(); err == nil || !strings.Contains(err.Error(), "was closed") {
					t.Errorf("%v", err)
				}
				return
			}
			back := r.Job.Job
			if again := roll(); again != nil || r.Job.Job != back || r.Job.State.Status != approval.Pending {
				t.Fatalf("%v %+v", again, r.Job)
			}
			h.approvals(func(a *Approvals) {
				_, err := a.Decide(t.Context(), approval.Decision{Job: back, Hash: r.Job.Short(), Grant: true, By: a.Actor, How: "cli"})
				h.must(err)
			})
			h.must(h.once())
			h.status(back, task.Completed)
			all := h.repo.Pulls()
			if len(all) != 2 {
				t.Fatalf("%+v", all)
			}
			p := all[1]
			if p.Number == pull.Number {
				p = all[0]
			}
			if got, _ := h.repo.File(p.Pull.Head, "answer.txt"); got != "41\n1\n2" || !p.Pull.Draft || !strings.HasPrefix(p.Pull.Base, c.onto) {
				t.Errorf("%q %+v", got, p.Pull)
			}
		})
	}
}

// Nobody decides about a run of an issue whose change goes beyond what the label covers: it is
// denied when its time is over, and its branch stays here.
func TestHeldUntilItExpires(t *testing.T) {
	t.Parallel()
	h := newForgeHouse(t, githubtest.RepoOptions{}, "planning: {enabled: false}\napproval: {hard_require_approval: [build], expires_hours: 2}\n")
	raw, err := os.ReadFile(h.config)
	h.must(err)
	h.write("config.yaml", strings.Replace(string(raw), "write_spacing_ms: 0", "write_spacing_ms: 0, repositories: [acme/widgets]", 1))
	h.write("task.yaml", "- say: I look first.\n  calls: [{tool: read_file, args: {path: answer.txt}}]\n- calls: [{tool: write_file, args: {path: Makefile, content: \"all:\\n\"}}]\n- say: The Makefile is there now, as the issue asks.\n")
	n := h.repo.OpenIssue("hanako", "Build it", "with make")
	h.repo.Label(n, "coding agent", "hanako")
	serve := func(later time.Duration) {
		env := h.environment()
		env.Now = func() time.Time { return time.Now().Add(later) }
		h.must(Serve(t.Context(), env, ServeOptions{Config: h.config, Script: h.dir + "/task.yaml", AllowUnsandboxed: true, Quiet: true, Once: true}, func(ServeStarted) {}))
	}
	for _, c := range []struct {
		later time.Duration
		label string
	}{{0, "coding agent waiting"}, {time.Hour, "coding agent waiting"}, {3 * time.Hour, "coding agent stopped"}} {
		serve(c.later)
		if labels := h.repo.Issue(n).Labels; len(labels) != 1 || labels[0] != c.label || len(h.repo.Branches()) != 1 {
			t.Fatalf("%v: %v %v %+v", c.later, labels, h.repo.Branches(), h.repo.Issue(n).Comments)
		}
	}
}

// The jobs of somebody in chats are those of the account that they are linked to, by which budgets
// and lists go.
func TestOnePerson(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "access: {people: {'terminal:hanako': 'github:hanako-at-work'}}\nbudget: {user_day: {max_turns: 50}}\n")
	h.add(h.local())
	id := h.ask()
	h.must(h.once())
	j, v := h.job(id)
	if v.Metadata.User != "hanako-at-work" || j.Requester != hanako {
		t.Errorf("%q, %q", v.Metadata.User, j.Requester)
	}
	for asked, want := range map[string]string{hanako: "hanako-at-work", "hanako-at-work": "hanako-at-work", "slack:U1": "slack:U1", "": ""} {
		if who, err := UserOf(h.base, asked, h.config, h.environment().Getenv); err != nil || who != want {
			t.Errorf("%q is %q, %v", asked, who, err)
		}
	}
}
