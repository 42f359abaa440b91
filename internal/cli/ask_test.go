package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// sleeper is a model whose one call takes a minute, and which is done once
// anything came of it.
func sleeper(t *testing.T) *llmtest.Server {
	return llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 0 {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "shell", Arguments: `{"command":"touch began; sleep 60"}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
}

func (h *house) tori(want int, args ...string) string {
	h.t.Helper()
	p := h.start(append(args, "--base-dir", h.base(), "--config", h.config)...)
	if code := p.code(); code != want {
		h.t.Fatalf("tori %v: exit code %d, want %d:\n%s", args, code, want, p.out.String())
	}
	return p.out.String()
}

func (h *house) comment() string {
	b, _ := readFile(filepath.Join(h.dir, "issue.comments.md"))
	return string(b)
}

// A run is paused, put back, gone on with and stopped by another process.
func TestPauseAndStopFromOutside(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sleeper(t).URL, "")
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	id := h.only().Metadata.UUID
	if out := h.tori(0, "pause", id[:8]); !strings.Contains(out, "was asked to pause run "+id[:8]) {
		t.Errorf("said:\n%s", out)
	}
	if code := p.code(); code != exitPaused || !strings.Contains(p.out.String(), "paused: paused on request of ") {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	if v := h.only(); v.Status() != task.Paused || v.Held {
		t.Fatalf("%s, held %v", v.Status(), v.Held)
	}
	if out := h.tori(0, "resume", id[:8]); !strings.Contains(out, "is queued") || h.only().Status() != task.Queued {
		t.Errorf("%s:\n%s", h.only().Status(), out)
	}
	if out := h.tori(exitUsage, "pause", id[:8]); !strings.Contains(out, "is queued: it cannot be asked to pause now") {
		t.Errorf("said:\n%s", out)
	}
	if out := h.tori(0, "stop", id[:8]); !strings.Contains(out, "is stopped") {
		t.Errorf("said:\n%s", out)
	}
	if v := h.only(); v.Status() != task.Stopped || filepath.Base(filepath.Dir(v.Dir)) != "completed" || v.State.CompletedAt.IsZero() {
		t.Errorf("%s in %s", v.Status(), v.Dir)
	}
	if n := strings.Count(h.comment(), "Stopped"); n != 1 {
		t.Errorf("%d comments:\n%s", n, h.comment())
	}
	if out := h.tori(0, "stop", id[:8]); !strings.Contains(out, "is stopped") {
		t.Errorf("said:\n%s", out)
	}
	h.tori(exitUsage, "resume", id[:8])
}

func TestStopALiveRunFromOutside(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sleeper(t).URL, "")
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	h.tori(0, "stop", h.only().Metadata.UUID)
	if code := p.code(); code != exitStopped || !strings.Contains(p.out.String(), "stopped: stopped on request of ") {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	if v := h.only(); v.Status() != task.Stopped || filepath.Base(filepath.Dir(v.Dir)) != "completed" {
		t.Errorf("%s in %s", v.Status(), v.Dir)
	}
	if !strings.Contains(h.comment(), "Stopped") {
		t.Errorf("comment:\n%s", h.comment())
	}
}

// A run whose process died is stopped by whoever asks, with what it left running.
func TestStopADeadRun(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sleeper(t).URL, "")
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	_ = p.Process.Kill()
	_ = p.Wait()
	if out := h.tori(0, "stop", h.only().Metadata.UUID); !strings.Contains(out, "is stopped") {
		t.Errorf("said:\n%s", out)
	}
	if v := h.only(); v.Status() != task.Stopped || v.State.Generation != 2 {
		t.Errorf("%s, generation %d", v.Status(), v.State.Generation)
	}
}

// A live owner is named and left alone; what a dead one left is freed, and the run
// goes on from where it was.
func TestUnlock(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sleeper(t).URL, "")
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	id := h.only().Metadata.UUID
	if out := h.tori(exitUsage, "unlock", id[:8]); !strings.Contains(out, fmt.Sprintf("run %s is in the hands of process %d on ", id, p.Process.Pid)) || !h.only().Held {
		t.Errorf("said:\n%s", out)
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	out := h.tori(exitOK, "unlock", id[:8])
	if !strings.Contains(out, fmt.Sprintf("Run %s is free: its owner, process %d on ", id[:8], p.Process.Pid)) || !strings.Contains(out, "Go on with: tori run --resume "+id[:8]) {
		t.Errorf("said:\n%s", out)
	}
	v := h.only()
	if _, err := os.Stat(filepath.Join(v.Dir, ".lock")); v.Status() != task.Running || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s, %v", v.Status(), err)
	}
	if out := h.tori(exitOK, "unlock", id, "--json"); out != fmt.Sprintf("{\"uuid\":%q,\"status\":\"running\",\"freed\":false,\"owner\":null,\"ended\":[],\"mended\":[]}\n", id) {
		t.Errorf("said:\n%s", out)
	}
	if out := h.tori(exitOK, "unlock", id[:8]); !strings.Contains(out, "Nobody holds run "+id[:8]) {
		t.Errorf("said:\n%s", out)
	}
	resume := append([]string{"run", "--resume", id, "--config", h.config, "--base-dir", h.base()}, h.bare...)
	h.ends(exitOK, "^completed: ", resume...)
	if out := h.tori(exitOK, "unlock", id[:8]); !strings.Contains(out, "it is completed") {
		t.Errorf("said:\n%s", out)
	}
}

// A log is followed while the run goes on, is moved and dies, until it has ended; so are
// all runs, until Ctrl-C.
func TestLogsAreFollowed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sleeper(t).URL, "")
	if err := os.MkdirAll(h.base(), 0o700); err != nil {
		t.Fatal(err)
	}
	all := h.start("tail", "--base-dir", h.base())
	h.await("audit.jsonl") // it is about to look
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	id := h.only().Metadata.UUID
	one := h.start("logs", id[:8], "-f", "--base-dir", h.base())
	says := func(text string) {
		t.Helper()
		h.until(text, func() bool {
			return strings.Contains(one.out.String(), text) && strings.Contains(all.out.String(), text)
		})
	}
	says("LLM call #1")
	late := h.start("tail", "--base-dir", h.base())
	h.until("it has begun", func() bool {
		b, _ := readFile(filepath.Join(h.base(), "audit.jsonl"))
		return strings.Count(string(b), `"what":"tail"`) == 2
	})
	h.tori(0, "pause", id)
	if code := p.code(); code != exitPaused {
		t.Fatal(code, p.out.String())
	}
	says("Task paused: paused on request of ")
	h.tori(0, "resume", id)
	resume := append([]string{"run", "--resume", id, "--config", h.config, "--base-dir", h.base()}, h.bare...)
	h.ends(exitOK, "^completed: ", resume...)
	says("Task started: ")
	says("generation=3")
	says("Task completed successfully")
	if code := one.code(); code != exitOK {
		t.Errorf("%d\n%s", code, one.out.String())
	}
	for _, p := range []*process{all, late} {
		h.until("the end is told", func() bool { return strings.Contains(p.out.String(), "Task completed successfully") })
		_ = p.Process.Signal(syscall.SIGINT)
		if code := p.code(); code != exitOK {
			t.Errorf("%d\n%s", code, p.out.String())
		}
	}
	if out := late.out.String(); strings.Contains(out, "LLM call #1") || strings.Contains(out, "generation=1") || !strings.Contains(out, "LLM call #2") {
		t.Errorf("what was before is told:\n%s", out)
	}
	if out := h.tori(exitOK, "logs", id); out != one.out.String() {
		t.Logf("followed:\n%s\nread:\n%s", one.out.String(), out)
	}
}

// A comment that cannot be written yet leaves the run completed and owed; a
// later tori delivers it, once.
func TestWhatIsOwedIsDeliveredLater(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 0 {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "shell", Arguments: `{"command":"touch began; sleep 1; echo x > new.txt"}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h := newHouse(t, server.URL, "")
	in := filepath.Join(h.dir, "issue.comments.md")
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	if err := os.Mkdir(in, 0o700); err != nil { // in the way
		t.Fatal(err)
	}
	if code := p.code(); code != exitPaused || !strings.Contains(p.out.String(), "not everything is delivered yet") {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	v := h.only()
	if v.Status() != task.Completed {
		t.Fatalf("%s", v.Status())
	}
	h.tori(exitPaused, "run", "--resume", v.Metadata.UUID)
	if err := os.Remove(in); err != nil {
		t.Fatal(err)
	}
	h.tori(0, "run", "--resume", v.Metadata.UUID)
	if n := strings.Count(h.comment(), "tori:"+v.Metadata.UUID); n != 1 {
		t.Errorf("%d comments:\n%s", n, h.comment())
	}
	if out := h.tori(exitUsage, "run", "--resume", v.Metadata.UUID); !strings.Contains(out, "cannot be resumed") {
		t.Errorf("said:\n%s", out)
	}
	if out := strings.TrimSpace(gitOut(t, filepath.Join(h.dir, "repo"), "branch", "--list", "tori/*")); !strings.HasPrefix(out, "tori/") {
		t.Errorf("branch: %q", out)
	}
}

// What an outbox holds is masked; where a comment goes must not be.
func TestACommentBesideAnIssueWhosePathLooksLikeAnAddress(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "Nothing to do."} })
	h := newHouse(t, server.URL, "")
	issue := h.write("taro@example.com/issue.md", "# Look around\n\nThat is all.\n")
	h.tori(0, append([]string{"run", "--repo", filepath.Join(h.dir, "repo"), "--issue", issue}, h.bare...)...)
	b, err := readFile(filepath.Join(h.dir, "taro@example.com", "issue.comments.md"))
	if err != nil || !strings.Contains(string(b), "tori:"+h.only().Metadata.UUID) {
		t.Errorf("commented %q: %v", b, err)
	}
}

func gitOut(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}
