package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// compressible is a house whose run reads a lot and then waits in a command, and whose summaries
// are what summary says, or wait for release.
func compressible(t *testing.T, summary *atomic.Value, release chan struct{}) (*house, *llmtest.Server) {
	t.Helper()
	const reads = 8
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if len(r.Tools) == 0 { // a summary
			if release != nil {
				<-release
			}
			text, _ := summary.Load().(string)
			return llmtest.Answer{Text: text}
		}
		switch n := r.Turn(); {
		case strings.Contains(string(r.Body), "big.txt was read in parts"), n > reads:
			return llmtest.Answer{Text: "Counted."}
		case n < reads:
			return llmtest.Answer{Text: fmt.Sprintf("I look at part %d.", n), Calls: []llm.ToolCall{{ID: fmt.Sprint("c", n), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"big.txt","start_line":%d}`, 1+40*n)}}}
		}
		return llmtest.Answer{Text: "I wait.", Calls: []llm.ToolCall{{ID: "wait", Name: "shell", Arguments: `{"command":"touch began; sleep 60"}`}}}
	})
	h := newHouse(t, server.URL, "")
	h.write("repo/big.txt", strings.Repeat("A line of a file that is far larger than it need be.\n", 4000))
	h.commit("more")
	h.env = []string{"TORI_PLANNING_ENABLED=false"}
	return h, server
}

// sound demands that nothing of the run is damaged, and returns how many summaries it has.
func (h *house) summaries() (n int) {
	h.t.Helper()
	h.tori(exitOK, "check")
	if err := h.only().Tail(contextstore.Summaries, -1, func([]byte) error { n++; return nil }); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// A live run is left alone; a paused one is summed up, stays paused, and goes on from the summary.
// What is no summary changes nothing, and of what has ended nothing is summed up.
func TestCompress(t *testing.T) {
	t.Parallel()
	var summary atomic.Value
	h, server := compressible(t, &summary, nil)
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	id := h.only().Metadata.UUID
	if out := h.tori(exitUsage, "compress", id[:8]); !strings.Contains(out, fmt.Sprintf("process %d on ", p.Process.Pid)) || !strings.Contains(out, "tori pause "+id[:8]+" first") {
		t.Errorf("said:\n%s", out)
	}
	h.tori(exitOK, "pause", id)
	if code := p.code(); code != exitPaused {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	before := h.only()
	summary.Store("")
	if out := h.tori(exitFailed, "compress", id[:8]); !strings.Contains(out, "it was empty") {
		t.Errorf("said:\n%s", out)
	}
	if n := h.summaries(); n != 0 {
		t.Errorf("%d summaries", n)
	}
	summary.Store("big.txt was read in parts: all of its lines are the same. what is left is to count to a hundred, as was asked, one step at a time.")
	out := h.tori(exitOK, "compress", id[:8])
	var by string
	var from, to int
	if _, err := fmt.Sscanf(out[strings.LastIndex(out, "Run "):], "Run "+id[:8]+": %s has summed up its older messages; the next request is about %d -> %d tokens", &by, &from, &to); err != nil || by != "openai/m" || to >= from/2 {
		t.Errorf("%v:\n%s", err, out)
	}
	after := h.only()
	if s := after.State; s.TaskStatus != task.Paused || s.Status != before.State.Status || s.LastActivity != before.State.LastActivity || s.CompressionCount != 1 || s.Failures != 3 || s.MessageCount != before.State.MessageCount ||
		s.LLMCallCount != before.State.LLMCallCount+4 || after.Held || filepath.Base(filepath.Dir(after.Dir)) != "paused" {
		t.Errorf("%+v\nbefore\n%+v", s, before.State)
	}
	if n := h.summaries(); n != 1 {
		t.Errorf("%d summaries", n)
	}
	if out := h.tori(exitFailed, "compress", id[:8]); !strings.Contains(out, "there is nothing to sum up") {
		t.Errorf("said:\n%s", out)
	}
	all := len(server.Requests())
	h.ends(exitOK, "^completed", append([]string{"run", "--resume", id, "--config", h.config, "--base-dir", h.base()}, h.bare...)...)
	if next := server.Requests()[all]; !strings.Contains(string(next.Body), "big.txt was read in parts") || strings.Contains(string(next.Body), "I look at part 1.") {
		t.Errorf("%s", next.Body)
	}
	if out := h.tori(exitUsage, "compress", id[:8]); !strings.Contains(out, "is completed: nothing more is sent of it") {
		t.Errorf("said:\n%s", out)
	}
	h.tori(exitUsage, "compress", "deadbeef")
}

// A kill in the middle of a summary by hand leaves the run as it was; who stops it meanwhile is
// heeded.
func TestCompressCutShort(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	var summary atomic.Value
	summary.Store("big.txt was read in parts: all of its lines are the same. what is left is to count to a hundred, as was asked.")
	release := make(chan struct{})
	h, server := compressible(t, &summary, release)
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	id := h.only().Metadata.UUID
	_ = p.Process.Kill() // of the run that nobody works on then
	_ = p.Wait()
	asked := func(n int) func() bool {
		return func() bool {
			count := 0
			for _, r := range server.Requests() {
				if len(r.Tools) == 0 {
					count++
				}
			}
			return count >= n
		}
	}
	compress := func() *process { return h.start("compress", id, "--base-dir", h.base(), "--config", h.config) }
	h.tori(exitOK, "unlock", id)
	c := compress()
	h.until("a summary is asked for", asked(1))
	_ = c.Process.Kill()
	_ = c.Wait()
	if v := h.only(); v.Status() != task.Running || !v.Interrupted() {
		t.Errorf("%s", v.Status())
	}
	h.tori(exitOK, "unlock", id)
	if n := h.summaries(); n != 0 {
		t.Errorf("%d summaries", n)
	}
	c = compress()
	h.until("a summary is asked for again", asked(2))
	if out := h.tori(exitOK, "stop", id); strings.Contains(out, "is stopped") {
		t.Errorf("said:\n%s", out)
	}
	close(release)
	if code := c.code(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, c.out.String())
	}
	if v := h.only(); v.Status() != task.Stopped || v.State.CompressionCount != 1 {
		t.Errorf("%s, %d", v.Status(), v.State.CompressionCount)
	}
	h.summaries()
}
