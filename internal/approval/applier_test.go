package approval

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
)

// run applies a job in this process.
func (w world) run(t *testing.T, h *house, fails map[string]error) (Application, error) {
	t.Helper()
	c, _, err := h.Store.Claim(t.Context(), w.Run)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	job, err := Read(c.Dir())
	if err != nil {
		t.Fatal(err)
	}
	e, end, err := w.engine(t.Context(), h.Jobs, job, fails)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	return e.Run(t.Context(), job)
}

// Whatever of the project fails, nothing is applied, and it is said at which step.
func TestNotApplied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deliver Deliver
		fails   map[string]error
		before  func(t *testing.T, h *house, job Job)
		at      Step
		says    string
	}{
		"setup":   {Branch, map[string]error{"setup": &FailedError{errors.New("npm ci failed")}}, nil, StepSetup, "npm ci failed"},
		"checks":  {Branch, map[string]error{"checks": &FailedError{errors.New("TestX fails")}}, nil, StepChecks, "TestX fails"},
		"command": {Worktree, map[string]error{"go generate ./...": &FailedError{errors.New("exit 1")}}, nil, StepCommands, "exit 1"},
		"touched": {Worktree, nil, func(t *testing.T, h *house, _ Job) { edit(t, h.repo, "docs/a.md", "mine\n") }, StepDeliver, "docs/a.md is not what it was"},
		"branch": {Branch, nil, func(t *testing.T, h *house, job Job) {
			git(t, h.repo, "checkout", "-q", "-b", "tori/"+job.Job)
			edit(t, h.repo, "x", "x")
			git(t, h.repo, "add", ".")
			git(t, h.repo, "commit", "-q", "-m", "x")
		}, StepDeliver, "tori/"},
		"lost": {Branch, nil, func(t *testing.T, h *house, job Job) { must(t, os.Remove(patchPath(dirOf(t, h, job), job.Patch))) }, "", "patch of job"},
		"replaced": {Branch, nil, func(t *testing.T, h *house, job Job) {
			must(t, os.WriteFile(patchPath(dirOf(t, h, job), job.Patch), []byte(newFile("evil", "100644", "x")), 0o600))
		}, "", "not those that were proposed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, w, job := granted(t, c.deliver)
			if c.before != nil {
				c.before(t, h, job)
			}
			status := git(t, h.repo, "status", "--porcelain")
			a, err := w.run(t, h, c.fails)
			if err != nil || a.Applied() || a.Step != StepFailed || a.At != c.at || !strings.Contains(a.Reason, c.says) {
				t.Fatalf("%+v %v", a, err)
			}
			if got := git(t, h.repo, "status", "--porcelain"); got != status {
				t.Errorf("%q", got)
			}
			for l, word := range map[i18n.Lang]string{i18n.English: "not applied", i18n.Japanese: "適用していません"} {
				if said := a.Outcome(l); !strings.Contains(said, word) {
					t.Error(said)
				}
			}
			if again, err := w.run(t, h, nil); err != nil || again.Line != a.Line {
				t.Errorf("done again: %+v %v", again, err)
			}
			now, err := h.Find(t.Context(), job.Job, everyone)
			if stale := now.State.Reason == ReasonStale && now.State.Approver == System && now.State.Status == Denied; err != nil || stale != (name == "touched") {
				t.Errorf("%+v %v", now.State, err)
			}
		})
	}
}

// What is no failure of the proposal is tried again.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	h, w, job := granted(t, Branch)
	trouble := errors.New("the disk is full")
	if a, err := w.run(t, h, map[string]error{"checks": trouble}); !errors.Is(err, trouble) || a.Over() {
		t.Fatalf("%+v %v", a, err)
	}
	if a, err := w.run(t, h, nil); err != nil || !a.Applied() || a.Attempt != 2 {
		t.Fatalf("%+v %v", a, err)
	}
	w.check(t, h, job)
	if a, err := w.run(t, h, nil); err != nil || !a.Applied() { // applied once
		t.Fatalf("%+v %v", a, err)
	}
	w.check(t, h, job)
}

// A job that is not approved is not applied, and one that was approved automatically not
// after that was switched off.
func TestAppliedOnlyIfApproved(t *testing.T) {
	t.Parallel()
	h, w, job := granted(t, Branch)
	h.Version = "2"
	if a, err := w.run(t, h, nil); !errors.As(err, new(*WithdrawnError)) || a.Begun {
		t.Fatalf("%+v %v", a, err)
	}
	job, err := h.Find(t.Context(), job.Job, everyone)
	if err != nil || job.State.Status != Pending {
		t.Fatalf("%+v %v", job.State, err)
	}
	if _, err := h.Decide(t.Context(), Decision{Job: job.Job, By: "slack:BOSS"}); err != nil {
		t.Fatal(err)
	}
	if a, err := w.run(t, h, nil); err != nil || a.Step != StepFailed {
		t.Fatalf("%+v %v", a, err)
	}
	if git(t, h.repo, "branch", "--list", "tori/*") != "" {
		t.Error("there is a branch")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, repo, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(repo, name), []byte(text), 0o600))
}

func dirOf(t *testing.T, h *house, job Job) string {
	t.Helper()
	v, err := h.Store.View(job.Run)
	must(t, err)
	return v.Dir
}
