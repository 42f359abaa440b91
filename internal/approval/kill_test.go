package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/workspace"
)

// world is where a process applies a job.
type world struct {
	Base, Repo, Run, Dir string
	Deliver              Deliver
	Die                  int // at which point, 0 for never
}

// mortal counts the points at which a process may be killed: before and after each step,
// and each call to the disk of the context.
type mortal struct {
	Tree
	Runner
	at, n int
}

func (m *mortal) point() {
	if m.n++; m.n == m.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (m *mortal) around(f func()) { m.point(); f(); m.point() }

func (m *mortal) Lay(ctx context.Context) (err error) {
	m.around(func() { err = m.Tree.Lay(ctx) })
	return err
}

func (m *mortal) Apply(ctx context.Context, p *workspace.Patch) (tree string, err error) {
	m.around(func() { tree, err = m.Tree.Apply(ctx, p) })
	return tree, err
}

func (m *mortal) Finish(ctx context.Context, patched, before, after string) (id string, reverse []byte, err error) {
	m.around(func() { id, reverse, err = m.Tree.Finish(ctx, patched, before, after) })
	return id, reverse, err
}

func (m *mortal) Command(ctx context.Context, script string) (err error) {
	m.around(func() { err = m.Runner.Command(ctx, script) })
	return err
}

func (m *mortal) Deliver(ctx context.Context, id string) (where string, err error) {
	m.around(func() { where, err = m.Tree.Deliver(ctx, id) })
	return where, err
}

// project runs nothing but what a command writes: "write NAME TEXT".
type project struct {
	tree func() string
	err  map[string]error // by step or command
}

func (p project) Setup(context.Context) error {
	if err := p.err["setup"]; err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.tree(), "left-by-setup"), []byte("x"), 0o600)
}

func (p project) Checks(context.Context) error { return p.err["checks"] }

func (p project) Command(_ context.Context, script string) error {
	if err := p.err[script]; err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.tree(), "generated.txt"), []byte(script+"\n"), 0o600)
}

// engine is what applies a job of w; ends closes it.
func (w world) engine(ctx context.Context, j *Jobs, job Job, fails map[string]error) (Applier, func(), error) {
	src, err := workspace.Inspect(ctx, w.Repo, workspace.InspectOptions{Box: box(), AllowDirty: true})
	if err != nil {
		return Applier{}, nil, err
	}
	if w.Deliver == Worktree {
		hand, err := workspace.OpenCheckout(ctx, src, w.Dir, box())
		if err != nil {
			return Applier{}, nil, err
		}
		t := HandTree{Hand: hand, Base: job.Base}
		return Applier{Jobs: j, Tree: t, Runner: project{hand.Tree, fails}}, func() { _ = hand.Close() }, nil
	}
	t := &CommitTree{Create: workspace.CreateOptions{Source: src, Dir: w.Dir, Branch: "tori/" + job.Job, Commit: job.Base, Box: box()},
		Words: workspace.CommitOptions{Message: job.Title, When: job.State.Decided}}
	return Applier{Jobs: j, Tree: t, Runner: project{func() string { return t.Workspace().Tree() }, fails}}, func() { _ = t.Close() }, nil
}

// applyAndDie is the process that is killed.
func applyAndDie() {
	var w world
	ctx := context.Background()
	fatal := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fatal(json.Unmarshal([]byte(os.Getenv("TORI_TEST_APPLY")), &w))
	m := &mortal{at: w.Die}
	fs := &disk.FS{Before: func(o disk.Op) error {
		if strings.HasSuffix(o.Path, string(applicationFile)) || strings.Contains(o.Path, "/patches/") {
			m.point()
		}
		return nil
	}}
	z := redact.New(nil, nil)
	store, err := contextstore.Open(ctx, contextstore.Options{BaseDir: w.Base, Redact: z.String, FS: fs, NoSync: true})
	fatal(err)
	p, err := policy.New(policy.Default())
	fatal(err)
	j := &Jobs{Store: store, Settings: settings(), Policy: p, Version: "1", Sanitizer: z, Now: func() time.Time { return noon }}
	c, _, err := store.Claim(ctx, w.Run)
	fatal(err)
	job, err := Read(c.Dir())
	fatal(err)
	e, end, err := w.engine(ctx, j, job, nil)
	fatal(err)
	m.Tree, m.Runner = e.Tree, e.Runner
	e.Tree, e.Runner = m, m
	a, err := e.Run(ctx, job)
	fatal(err)
	end()
	fatal(c.Transition(ctx, task.Outcome{Status: task.Completed, Summary: a.Where}))
	fatal(store.Close())
	fmt.Println(m.n)
	os.Exit(0)
}

// process runs one, and returns at how many points it could have died; ok is false where
// it did.
func (w world) process(t *testing.T) (points int, ok bool) {
	t.Helper()
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TORI_TEST_APPLY="+string(raw))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		return 0, false
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, complaint.String())
	}
	points, err = strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("%q", out)
	}
	return points, true
}

// granted is a granted job that waits to be applied.
func granted(t *testing.T, deliver Deliver) (*house, world, Job) {
	t.Helper()
	h := newHouse(t)
	d := h.draft(docsPatch + newFile("docs/b.md", "100644", "new"))
	d.Deliver, d.Commands = deliver, []string{"go generate ./..."}
	w := world{Base: h.Store.BaseDir, Repo: h.repo, Dir: filepath.Join(t.TempDir(), "apply"), Deliver: deliver}
	var base Base = h.base
	if deliver == Worktree {
		src, err := workspace.Inspect(t.Context(), h.repo, workspace.InspectOptions{Box: box()})
		if err != nil {
			t.Fatal(err)
		}
		hand, err := workspace.OpenCheckout(t.Context(), src, w.Dir, box())
		if err != nil {
			t.Fatal(err)
		}
		if d.Base, err = hand.TreeOf(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = hand.Close() }()
		base = HandTree{Hand: hand, Base: d.Base}
	}
	c, id := h.run(t)
	job, err := h.Propose(t.Context(), c, id, d, base)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Transition(t.Context(), task.Outcome{Status: task.AwaitingApproval}); err != nil {
		t.Fatal(err)
	}
	if job, err = h.grant(job, "slack:BOSS"); err != nil {
		t.Fatal(err)
	}
	w.Run = job.Run
	return h, w, job
}

// check makes sure that a job was applied exactly once, and that this is said.
func (w world) check(t *testing.T, h *house, job Job) {
	t.Helper()
	now, err := h.Find(t.Context(), job.Job, everyone)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ReadApplication(now.Dir, job.Job)
	if err != nil || !a.Applied() {
		t.Fatalf("%+v %v", a, err)
	}
	files := "docs/a.md\ndocs/b.md\ngenerated.txt"
	if w.Deliver == Worktree {
		if got := git(t, h.repo, "status", "--porcelain", "-uall"); got != "M docs/a.md\n?? docs/b.md\n?? generated.txt" {
			t.Errorf("%q", got)
		}
		if raw, _ := os.ReadFile(filepath.Join(h.repo, "docs/a.md")); string(raw) != "one\ntwo\nthree\nfour\n" {
			t.Errorf("%q", raw)
		}
	} else {
		branch := "tori/" + job.Job
		if got := git(t, h.repo, "log", "--format=%H %P", "main.."+branch); got != a.Commit+" "+job.Base {
			t.Errorf("commits %q, want one, %s", got, a.Commit)
		}
		if got := git(t, h.repo, "diff", "--name-only", job.Base, branch); got != files {
			t.Errorf("%q", got)
		}
	}
	reverse, err := disk.Read(patchPath(now.Dir, a.Rollback), 1<<20)
	if err != nil || !strings.Contains(string(reverse), "-four") || !strings.Contains(string(reverse), "deleted file mode 100644") {
		t.Errorf("%v\n%s", err, reverse)
	}
}

// A process that is killed at any point of an application is followed by one that comes
// to its end, and the patch is applied exactly once.
func TestKillAnywhere(t *testing.T) {
	t.Parallel()
	for _, deliver := range []Deliver{Branch, Worktree} {
		h, w, job := granted(t, deliver)
		points, ok := w.process(t)
		if !ok || points < 25 {
			t.Fatalf("%d points, %t", points, ok)
		}
		w.check(t, h, job)
		step := 1
		if testing.Short() {
			step = 7
		}
		for die := 1; die <= points; die += step {
			t.Run(fmt.Sprintf("%s at %d of %d", deliver, die, points), func(t *testing.T) {
				t.Parallel()
				h, w, job := granted(t, deliver)
				w.Die = die
				if _, ok := w.process(t); ok {
					t.Fatal("it lives")
				}
				w.Die = 0
				if _, ok := w.process(t); !ok {
					t.Fatal("it died by itself")
				}
				w.check(t, h, job)
			})
		}
	}
}

// Who dies each time is not begun for ever; then nothing was applied, and it is said.
func TestKilledEachTime(t *testing.T) {
	t.Parallel()
	h, w, job := granted(t, Branch)
	w.Die = 5
	for range maxAttempts {
		if _, ok := w.process(t); ok {
			t.Fatal("it lives")
		}
	}
	w.Die = 0
	if _, ok := w.process(t); !ok {
		t.Fatal("it died")
	}
	now, err := h.Find(t.Context(), job.Job, everyone)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := ReadApplication(now.Dir, job.Job); err != nil || a.Applied() || a.Step != StepFailed || !strings.Contains(a.Reason, "begun 3 times") {
		t.Errorf("%+v %v", a, err)
	}
	if git(t, h.repo, "branch", "--list", "tori/*") != "" {
		t.Error("there is a branch")
	}
}
