package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/task"
)

// shelf is a folder of issues about a repository of this machine, and a tori that
// serves it.
type shelf struct {
	*house
	labels string // of issues that ask
	script string // of who mends the answer
}

func newShelf(t *testing.T, settings string) *shelf {
	t.Helper()
	skipShort(t, "it is served")
	h := newHouse(t, "http://127.0.0.1:1", "")
	h.write("config.yaml", "language: en\nchecks: [grep -q 42 answer.txt]\nfolder: {path: "+filepath.Join(h.dir, "issues")+", repository: "+filepath.Join(h.dir, "repo")+"}\n"+
		"serve: {listen: '127.0.0.1:0'}\nscheduling: {interval: 5, comments_interval: 5}\npause_resume: {signal_file: "+filepath.Join(h.dir, "pause")+"}\n"+settings)
	script := mends[strings.Index(mends, "- calls: [{tool: write_file"):]
	h.write("script.yaml", script)
	h.env = []string{"GITHUB_TOKEN=alone-it-asks-for-nothing"}
	return &shelf{h, "[bug, coding agent]", script}
}

// issue writes an issue that asks for work.
func (s *shelf) issue(text string) {
	s.write("issues/7-answer.md", "---\ntitle: The answer is wrong\nauthor: ken\nlabels: "+s.labels+"\n---\n\n"+text+"\n")
}

// says writes into the comments file below what is there, as people do: without a date.
func (s *shelf) says(text string) {
	s.write("issues/7-answer.comments.md", s.read("7-answer.comments.md")+"\n"+text+"\n")
}

func (s *shelf) read(name string) string {
	b, err := readFile(filepath.Join(s.dir, "issues", name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(b)
}

func (s *shelf) serve(args ...string) []string {
	return append([]string{"serve", "--config", s.config, "--base-dir", s.base(), "--allow-unsandboxed", "--script", filepath.Join(s.dir, "script.yaml")}, args...)
}

// once has everything done that there is to do, and returns what was logged.
func (s *shelf) once() string {
	s.t.Helper()
	p := s.start(s.serve("--once")...)
	if code := p.code(); code != 0 {
		s.t.Fatalf("exit code %d\n%s", code, p.out.String())
	}
	return p.out.String()
}

// branches are those of runs.
func (s *shelf) branches() []string {
	s.t.Helper()
	return strings.Fields(gitOut(s.t, filepath.Join(s.dir, "repo"), "for-each-ref", "--format=%(refname:short)", "refs/heads/tori"))
}

// shows demands labels, entries of ours in the comments file, and branches.
func (s *shelf) shows(log, labels string, ours, branches int) {
	s.t.Helper()
	if text := s.read("7-answer.md"); !strings.Contains(text, "labels: "+labels+"\n") {
		s.t.Errorf("want %s in\n%s\n%s", labels, text, log)
	}
	comments := s.read("7-answer.comments.md")
	if n := strings.Count(comments, "<!-- tori:"); n != ours {
		s.t.Errorf("%d comments of ours, not %d:\n%s\n%s", n, ours, comments, log)
	}
	if all := s.branches(); len(all) != branches {
		s.t.Errorf("branches %v, not %d\n%s", all, branches, log)
	}
	if out, err := exec.CommandContext(s.t.Context(), "tori", "check", "--base-dir", s.base()).CombinedOutput(); err != nil {
		s.t.Errorf("tori check: %v\n%s", err, out)
	}
}

// A label in the front matter becomes a branch in the repository, a comment and a
// label; a second look finds nothing to do, and the label begins another run when it
// is put on again.
func TestALabelInAFolder(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	s.issue("It says 41.")
	s.write("issues/8-other.md", "# Nobody asks for this\n\nNo.\n")
	s.write("issues/9-broken.md", "---\nlable: x\n---\nx")
	s.says("It should be 42.")
	log := s.once()
	s.shows(log, "[bug, coding agent done]", 1, 1)
	if !strings.Contains(log, "Looking for work in") || strings.Count(log, "WARN") != 1 || !strings.Contains(log, "9-broken.md") {
		t.Error(log)
	}
	branch := s.branches()[0]
	for _, want := range []string{"Completed", branch, "- answer.txt"} {
		if c := s.read("7-answer.comments.md"); !strings.Contains(c, want) {
			t.Errorf("%q is missing in\n%s", want, c)
		}
	}
	if p := s.read("7-answer.progress.md"); !strings.Contains(p, "Completed") || !strings.Contains(p, "ken") || strings.Contains(p, "@ken") {
		t.Errorf("progress:\n%s", p)
	}
	v := s.only()
	if v.Metadata.User != "ken" || v.Metadata.TaskKey.ID != "7" || v.Metadata.TaskKey.Source != "folder" {
		t.Errorf("%+v", v.Metadata)
	}
	if m := string(s.stored()); !strings.Contains(m, "It should be 42.") || strings.Contains(m, "Nobody vouches") {
		t.Errorf("told:\n%s", m)
	}
	s.shows(s.once(), "[bug, coding agent done]", 1, 1)
	s.write("issues/7-answer.md", strings.Replace(s.read("7-answer.md"), "coding agent done", "coding agent", 1))
	s.shows(s.once(), "[bug, coding agent done]", 2, 2)
	s.says("/retry")
	s.shows(s.once(), "[bug, coding agent done]", 3, 3)
	s.shows(s.once(), "[bug, coding agent done]", 3, 3)
}

// A run that waits goes on when somebody answers in the comments file.
func TestAnAnswerInAFolder(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	write(t, filepath.Join(s.dir, "script.yaml"), asksFirst)
	s.issue("It says 41.")
	s.shows(s.once(), "[bug, coding agent waiting]", 2, 0)
	s.shows(s.once(), "[bug, coding agent waiting]", 2, 0)
	s.says("Take 42.")
	s.shows(s.once(), "[bug, coding agent done]", 3, 1)
	if c := s.read("7-answer.comments.md"); !strings.Contains(c, "Take 42.") || !strings.Contains(c, "❓ Which number") {
		t.Error(c)
	}
}

// tori stop shows beside the issue, also where no tori serve runs.
func TestStoppedInAFolder(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	write(t, filepath.Join(s.dir, "script.yaml"), asksFirst)
	s.issue("It says 41.")
	s.shows(s.once(), "[bug, coding agent waiting]", 2, 0)
	p := s.start("stop", s.only().Metadata.UUID, "--config", s.config, "--base-dir", s.base())
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.out.String())
	}
	s.shows(p.out.String(), "[bug, coding agent stopped]", 3, 0)
	s.write("issues/7-answer.md", strings.Replace(s.read("7-answer.md"), "coding agent stopped", "coding agent", 1))
	s.shows(s.once(), "[bug, coding agent waiting]", 5, 0)
	s.says("Take 42.")
	p = s.start("run", "--resume", s.newest(), "--config", s.config, "--base-dir", s.base(), "--allow-unsandboxed", "--script", filepath.Join(s.dir, "script.yaml"))
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.out.String())
	}
	s.shows(p.out.String(), "[bug, coding agent done]", 6, 1)
}

// newest is the uuid of the newest run.
func (s *shelf) newest() string {
	all := runs(s.t, s.base())
	return all[len(all)-1].Metadata.UUID
}

// Comments pause a run, let it go on and stop it.
func TestCommandsInAFolder(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	s.write("script.yaml", strings.Repeat("- calls: [{tool: shell, args: {command: \"echo x > half.txt; sleep 60\"}}]\n", 2)+"- say: Done.\n")
	s.issue("It says 41.")
	p := s.start(s.serve()...)
	until := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within a minute: %s\n%s", what, p.out.String())
			}
		}
	}
	shows := func(label string) func() bool {
		return func() bool { return strings.Contains(s.read("7-answer.md"), label+"]") }
	}
	until("it works", func() bool { return strings.Contains(p.out.String(), "LLM call #1") })
	s.says("/pause")
	until("it is paused", shows("coding agent paused"))
	s.says("/resume")
	until("it goes on", shows("coding agent processing"))
	until("it works again", func() bool { return strings.Contains(p.out.String(), "LLM call #2") })
	s.says("/stop")
	until("it is stopped", shows("coding agent stopped"))
	until("that is told", func() bool { return strings.Count(s.read("7-answer.comments.md"), "<!-- tori:") == 2 })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.out.String())
	}
	s.shows(s.once(), "[bug, coding agent stopped]", 2, 0)
	s.write("issues/7-answer.md", strings.Replace(s.read("7-answer.md"), "coding agent stopped", "coding agent", 1))
	p = s.start(s.serve()...)
	until("it works once more", func() bool { return strings.Contains(p.out.String(), "LLM call #1") })
	if err := os.Remove(filepath.Join(s.dir, "issues/7-answer.md")); err != nil {
		t.Fatal(err)
	}
	until("it is stopped because the issue is gone", func() bool { return strings.Contains(p.out.String(), "Task stopped") })
	until("nothing is owed", func() bool { return strings.Contains(p.out.String(), "Will never be taken: labels") })
	_ = p.Process.Kill()
	_ = p.code()
	s.once()
}

// Killed between the commit point and the delivery, a run is delivered once.
func TestKilledBeforeTheDeliveryIntoAFolder(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	s.issue("It says 41.")
	lock := filepath.Join(s.dir, "repo/.git/refs/heads/tori/issue-7-the-answer-is-wrong.lock")
	if err := os.MkdirAll(filepath.Join(lock, "x"), 0o700); err != nil { // nobody can make the branch
		t.Fatal(err)
	}
	p := s.start(s.serve()...)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if log := p.out.String(); strings.Contains(log, "Not delivered yet") {
			break
		}
		if time.Now().After(end) {
			t.Fatal(p.out.String())
		}
	}
	_ = p.Process.Kill()
	_ = p.code()
	if all := s.branches(); len(all) != 0 {
		t.Fatalf("%v", all)
	}
	if err := os.RemoveAll(lock); err != nil {
		t.Fatal(err)
	}
	s.shows(s.once(), "[bug, coding agent done]", 1, 1)
}

// GitHub and a folder are served together.
func TestAFolderBesideGitHub(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	s.issue("It says 41.")
	w := newTown(t, "folder: {path: "+filepath.Join(s.dir, "issues")+", repository: "+filepath.Join(s.dir, "repo")+"}\n")
	write(t, filepath.Join(w.dir, "script.yaml"), s.script)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	if len(w.repo.Pulls()) != 1 || w.labels(n) != "coding agent done" || len(s.branches()) != 1 || !strings.Contains(s.read("7-answer.md"), "[bug, coding agent done]") {
		t.Errorf("%d pull requests, labels %s, branches %v\n%s", len(w.repo.Pulls()), w.labels(n), s.branches(), log)
	}
}

// A run of tori run beside the folder is not taken up by tori serve, and the folder's
// are not by tori run.
func TestAFolderAndToriRun(t *testing.T) {
	t.Parallel()
	s := newShelf(t, "")
	s.labels = "[bug]"
	s.issue("It says 41.")
	s.write("script.yaml", asksFirst)
	run := []string{"run", "--repo", filepath.Join(s.dir, "repo"), "--issue", filepath.Join(s.dir, "issues/7-answer.md"), "--config", s.config, "--base-dir", s.base(),
		"--allow-unsandboxed", "--script", filepath.Join(s.dir, "script.yaml")}
	if code := s.start(run...).code(); code != exitWaiting {
		t.Fatalf("exit code %d", code)
	}
	s.says("Take 42.")
	s.labels = "[bug, coding agent]"
	s.issue("It says 41.")
	log := s.once()
	if v := s.only(); v.Status() != task.AwaitingApproval || v.State.Generation != 1 {
		t.Errorf("%s, generation %d\n%s", v.Status(), v.State.Generation, log)
	}
	s.shows(log, "[bug, coding agent]", 1, 0)
	if code := s.start("run", "--resume", s.only().Metadata.UUID[:8], "--base-dir", s.base(), "--allow-unsandboxed").code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.shows("", "[bug, coding agent]", 2, 1)
	s.write("script.yaml", s.script)
	s.shows(s.once(), "[bug, coding agent done]", 3, 2)
}
