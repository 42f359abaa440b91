package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
)

// house is a repository, a model server and a base directory for real processes.
type house struct {
	t      *testing.T
	dir    string
	config string
	args   []string
	bare   []string
	env    []string // of processes, beside the usual
	at     string   // where processes are started, "" for here
}

func newHouse(t *testing.T, model string, checks string) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir()}
	if _, err := sandbox.Detect(t.Context()); err != nil {
		h.bare = []string{"--allow-unsandboxed"}
	}
	repo := filepath.Join(h.dir, "repo")
	h.write("repo/README.md", "hello\n")
	h.write("issue.md", "# Count to a hundred\n\nOne step at a time.\n")
	h.config = h.write("config.yaml", fmt.Sprintf("language: en\nchecks: [%s]\nllm:\n  provider: openai\n  max_retries: 0\n  openai: {base_url: %q, model: m, api_key: key-for-a-test}\n", checks, model))
	for _, a := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=k", "-c", "user.email=k@example.com", "commit", "-q", "-m", "start"}} {
		cmd := exec.CommandContext(t.Context(), "git", a...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", a, err, out)
		}
	}
	h.args = append([]string{"run", "--repo", repo, "--issue", filepath.Join(h.dir, "issue.md"), "--config", h.config, "--base-dir", h.base()}, h.bare...)
	return h
}

func (h *house) base() string { return filepath.Join(h.dir, "ctx") }

func (h *house) write(name, text string) string {
	p := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return p
}

// process is a running tori.
type process struct {
	*exec.Cmd
	out shared
}

func (h *house) start(args ...string) *process {
	h.t.Helper()
	p := &process{Cmd: exec.CommandContext(h.t.Context(), "tori", args...)}
	p.Dir, p.Stdout, p.Stderr = h.at, &p.out, &p.out
	p.Env = append(append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(h.dir, "state")), h.env...)
	p.WaitDelay = 5 * time.Second
	if err := p.Start(); err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (p *process) code() int {
	err := p.Wait()
	var ee *exec.ExitError
	if err == nil {
		return 0
	}
	if errors.As(err, &ee) {
		return ee.ExitCode() // -1 after a signal
	}
	return -2
}

// only returns the one context of the base directory.
func (h *house) only() contextstore.View {
	h.t.Helper()
	l, err := list(h.t.Context(), h.base())
	if err != nil || len(l.Views) != 1 {
		h.t.Fatalf("%d contexts, %v", len(l.Views), err)
	}
	return l.Views[0]
}

// stored returns the whole lines of messages.jsonl.
func (h *house) stored() []byte {
	b, err := readFile(filepath.Join(h.only().Dir, "messages.jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	return b[:bytes.LastIndexByte(b, '\n')+1]
}

// A run is killed at ten random moments and resumed each time. In the end
// nothing that was on disk is missing or changed, each call has exactly one
// result, and the model was shown another beginning than before only where a
// decision about the window is on record.
func TestKilledAtTenRandomMoments(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	const turns, kills = 100, 10
	reached := make(chan int, 10*turns)
	loop := llmtest.Loop(turns, "shell", `{"command":"echo turn {{turn}} >> log.txt; printf 'turn-{{turn}} %0999d' 0"}`, "Counted to a hundred.")
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		reached <- r.Turn()
		return loop(r)
	})
	h := newHouse(t, server.URL, "test -f README.md")
	p := h.start(h.args...)
	var before []byte
	for i := range kills {
		// At a turn of its own, at an instant between this request and the next.
		for at := turns * (i + 1) / (kills + 2); ; {
			if n := <-reached; n >= at {
				break
			}
		}
		time.Sleep(rand.N(12 * time.Millisecond))
		_ = p.Process.Kill()
		_ = p.code()
		now := h.stored()
		if !bytes.HasPrefix(now, before) {
			t.Fatalf("kill %d: messages that were on disk are gone", i)
		}
		before = bytes.Clone(now)
		p = h.start(append([]string{"run", "--resume", h.only().Metadata.UUID[:8], "--base-dir", h.base()}, h.bare...)...)
	}
	if code := p.code(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	v := h.only()
	if v.Status() != task.Completed || v.State.Generation != kills+1 || v.State.LLMCallCount != turns+1 {
		t.Errorf("status %s, generation %d, %d calls", v.Status(), v.State.Generation, v.State.LLMCallCount)
	}
	if !bytes.HasPrefix(h.stored(), before) {
		t.Error("messages that were on disk are gone")
	}
	decisions, err := readFile(filepath.Join(v.Dir, "window.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if breaks, n := llmtest.Breaks(server.Requests()), bytes.Count(decisions, []byte("\n")); breaks > n || n == 0 || n > turns/4 {
		t.Errorf("the beginning changed %d times, by %d decisions", breaks, n)
	}
	checkCalls(t, v, turns)
}

// checkCalls demands that messages are numbered without gaps and that each
// call has one result.
func checkCalls(t *testing.T, v contextstore.View, turns int) {
	t.Helper()
	open := map[string]int{}
	var seq int64
	calls := 0
	err := v.Tail(contextstore.Messages, -1, func(b []byte) error {
		m, err := contextstore.DecodeMessage(b)
		if err != nil {
			return err
		}
		if seq++; m.Seq != seq {
			t.Errorf("message %d where %d was expected", m.Seq, seq)
		}
		for _, c := range m.ToolCalls {
			open[string(c.ID)]++
			calls++
		}
		if m.Role == llm.RoleTool {
			open[string(m.ToolCallID)]--
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, n := range open {
		if n != 0 {
			t.Errorf("call %s has %+d results", id, -n+1)
		}
	}
	if calls != turns {
		t.Errorf("%d calls, want %d", calls, turns)
	}
	recorded := map[string]int{}
	err = v.Tail(contextstore.Tools, -1, func(b []byte) error {
		var r contextstore.ToolRun
		err := json.Unmarshal(b, &r)
		recorded[string(r.CallID)]++
		return err
	})
	if err != nil || len(recorded) != turns {
		t.Errorf("%d calls in tools.jsonl, want %d: %v", len(recorded), turns, err)
	}
}

func TestCtrlCPausesAndResumeGoesOn(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, when := range map[string]int{"while the model answers": 1, "while a tool runs": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached := make(chan int, 100)
			server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
				first := len(reached) == 0 && r.Number <= when
				reached <- r.Number
				switch {
				case when == 1 && first:
					return llmtest.Answer{Text: "never comes", Stall: llmtest.StallAtOnce}
				case r.Turn() == 0:
					return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "shell", Arguments: `{"command":"touch began; sleep 60"}`}}}
				}
				return llmtest.Answer{Text: "Done."}
			})
			h := newHouse(t, server.URL, "")
			p := h.start(h.args...)
			<-reached
			if when == 2 {
				h.await("workspaces/*/tree/began")
			}
			_ = p.Process.Signal(syscall.SIGINT)
			if code := p.code(); code != exitPaused {
				t.Fatalf("exit code %d:\n%s", code, p.out.String())
			}
			if out := strings.TrimSpace(p.out.String()); !strings.HasSuffix(out, "paused: paused on request") {
				t.Errorf("last line:\n%s", out)
			}
			v := h.only()
			if v.Status() != task.Paused || v.Held || filepath.Base(filepath.Dir(v.Dir)) != "paused" {
				t.Fatalf("%s in %s, held %v", v.Status(), v.Dir, v.Held)
			}
			if when == 1 {
				return // it would stall again; resuming is the other case
			}
			p = h.start(append([]string{"run", "--resume", v.Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
			if code := p.code(); code != 0 {
				t.Fatalf("exit code %d:\n%s", code, p.out.String())
			}
			if b, _ := readFile(filepath.Join(h.only().Dir, "messages.jsonl")); !bytes.Contains(b, []byte("outcome unknown")) {
				t.Errorf("the interrupted call was not closed:\n%s", b)
			}
		})
	}
}

// await waits for a file below the base directory.
func (h *house) await(glob string) {
	h.t.Helper()
	h.until(glob, func() bool { m, _ := filepath.Glob(filepath.Join(h.base(), glob)); return len(m) > 0 })
}

// until waits until something is so, on a machine that does much else.
func (h *house) until(what string, so func() bool) {
	h.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("not within three minutes: %s", what)
		}
	}
}

func TestSecondCtrlCStops(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	server := llmtest.NewServer(t, func(*llmtest.Request) llmtest.Answer {
		return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "shell", Arguments: `{"command":"trap '' TERM; touch began; sleep 60 & wait; sleep 60"}`}}}
	})
	h := newHouse(t, server.URL, "")
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	_ = p.Process.Signal(syscall.SIGINT)
	h.until("the first is heard", func() bool { return strings.Contains(p.out.String(), "Ctrl-C again") })
	time.Sleep(sameKey) // since it was heard: what comes sooner is the same key
	_ = p.Process.Signal(syscall.SIGINT)
	if code := p.code(); code != exitStopped {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	if v := h.only(); v.Status() != task.Stopped || filepath.Base(filepath.Dir(v.Dir)) != "completed" || v.State.CompletedAt.IsZero() {
		t.Errorf("%s in %s", v.Status(), v.Dir)
	}
	if b, _ := readFile(filepath.Join(h.dir, "issue.comments.md")); !strings.Contains(string(b), "Stopped") {
		t.Errorf("comment:\n%s", b)
	}
}

// What the model's server does wrong, and how the run ends.
func TestModelTrouble(t *testing.T) {
	t.Parallel()
	call := llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "list_files", Arguments: `{}`}}}
	for name, c := range map[string]struct {
		answers []llmtest.Answer
		code    int
		last    string
	}{
		"wrong key, nothing done yet":   {[]llmtest.Answer{{Status: 401, ErrorText: "bad key"}}, exitFailed, "failed: the model openai/m could not be used: .*refused the key.*HTTP 401.*bad key"},
		"server gone after a while":     {[]llmtest.Answer{call, {Status: 503, ErrorText: "overloaded"}}, exitPaused, "paused: the model openai/m could not be used: .*HTTP 503.*overloaded"},
		"no such model":                 {[]llmtest.Answer{{Status: 404, ErrorText: "no model m"}}, exitFailed, "failed: .*no such model.*HTTP 404.*no model m"},
		"not the wire format":           {[]llmtest.Answer{{Body: "<html>hello</html>", ContentType: "text/html"}}, exitFailed, "failed: .*gave an answer that is none"},
		"nothing but emptiness":         {[]llmtest.Answer{{Text: ""}}, exitFailed, "failed: the model openai/m keeps answering with neither"},
		"malformed arguments, then not": {[]llmtest.Answer{{Calls: []llm.ToolCall{{ID: "c1", Name: "read_file", Arguments: `{"path": "REA`}}}, {Text: "Done."}}, exitOK, "completed: no change was made; the project has no checks"},
		"cut off inside a call":         {[]llmtest.Answer{{Calls: []llm.ToolCall{{ID: "c1", Name: "write_file", Arguments: `{"path":"x","content":"half`}}, Finish: "length"}, {Text: "Done."}}, exitOK, "completed: no change was made; the project has no checks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, llmtest.NewServer(t, llmtest.Sequence(c.answers...)).URL, "")
			p := h.start(h.args...)
			if code := p.code(); code != c.code {
				t.Fatalf("exit code %d, want %d:\n%s", code, c.code, p.out.String())
			}
			lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
			if last := lines[len(lines)-1]; !matches(last, c.last) {
				t.Errorf("last line %q, want %q", last, c.last)
			}
			v := h.only()
			if exitCode(v.Status()) != c.code || v.Held {
				t.Errorf("status %s, held %v", v.Status(), v.Held)
			}
			if strings.Contains(p.out.String(), "key-for-a-test") {
				t.Error("the key was printed")
			}
		})
	}
}

// A run interrupted among its last checks hands over the model's work alone,
// not what the checks had left in the tree by then.
func TestInterruptedCheckLeavesNothingInTheCommit(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	server := llmtest.NewServer(t, llmtest.Loop(1, "write_file", `{"path":"b.txt","content":"work\n"}`, "Done."))
	h := newHouse(t, server.URL, `"if [ -e b.txt ]; then echo junk > leftover.txt; echo MUTATED > README.md; sleep 3; fi"`)
	p := h.start(h.args...)
	h.await("workspaces/*/apart/tree/leftover.txt")
	_ = p.Process.Kill()
	_ = p.code()
	p = h.start(append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
	if code := p.code(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	cmd := exec.CommandContext(t.Context(), "git", "show", "--stat", "--format=", "tori/issue-issue-count-to-a-hundred")
	cmd.Dir = filepath.Join(h.dir, "repo")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "b.txt") || strings.Contains(string(out), "leftover") || strings.Contains(string(out), "README") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What is gone when a run is resumed pauses it or is told, and loses nothing.
func TestResumeInAChangedWorld(t *testing.T) {
	t.Parallel()
	stalled := func(t *testing.T) (*house, contextstore.View) {
		reached := make(chan struct{}, 10)
		server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
			switch {
			case r.Turn() == 0:
				return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "write_file", Arguments: `{"path":"one.txt","content":"1\n"}`}}}
			case r.Number == 2:
				reached <- struct{}{}
				return llmtest.Answer{Stall: llmtest.StallAtOnce}
			}
			return llmtest.Answer{Text: "Done."}
		})
		h := newHouse(t, server.URL, "")
		p := h.start(h.args...)
		<-reached
		_ = p.Process.Signal(syscall.SIGTERM)
		if code := p.code(); code != exitPaused {
			t.Fatalf("exit code %d:\n%s", code, p.out.String())
		}
		return h, h.only()
	}
	resume := func(h *house, v contextstore.View) (int, string) {
		p := h.start(append([]string{"run", "--resume", v.Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
		code := p.code()
		return code, p.out.String()
	}
	t.Run("the issue file is gone", func(t *testing.T) {
		t.Parallel()
		h, v := stalled(t)
		_ = os.Remove(filepath.Join(h.dir, "issue.md"))
		if code, out := resume(h, v); code != exitOK {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	})
	t.Run("the repository moved, and came back", func(t *testing.T) {
		t.Parallel()
		h, v := stalled(t)
		repo := filepath.Join(h.dir, "repo")
		_ = os.Rename(repo, repo+"2")
		if code, out := resume(h, v); code != exitPaused || !strings.Contains(out, "does not exist") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
		_ = os.Rename(repo+"2", repo)
		if code, out := resume(h, v); code != exitOK {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	})
	t.Run("the workspace is gone", func(t *testing.T) {
		t.Parallel()
		h, v := stalled(t)
		_ = os.RemoveAll(filepath.Join(h.base(), "workspaces"))
		code, out := resume(h, v)
		if code != exitOK || !strings.Contains(out, "The workspace was gone") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
		if !bytes.Contains(h.stored(), []byte("every change made so far is gone")) {
			t.Error("the model was not told")
		}
	})
}

// A run is killed, and a server of tools is another when it is taken up again:
// once it does not come up, once it is there for the first time. The model is
// shown the tools that it was shown before.
func TestToolsStayOverAResume(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	const server = `while read -r line; do
	id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
	case $line in
	*'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
	*'"tools/list"'*) r='{"tools":[{"name":"say","description":"Says <a> word.","inputSchema":{"type":"object","properties":{}}}]}' ;;
	*'"tools/call"'*) r='{"content":[{"type":"text","text":"said"}]}' ;;
	*) r= ;;
	esac
	if [ -n "$id" ] && [ -n "$r" ]; then printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"; fi
	if [ -n "$id" ] && [ -z "$r" ]; then printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id"; fi
done`
	for name, starts := range map[string][2]string{"goes": {"sh", "no-such-program"}, "comes": {"no-such-program", "sh"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached := make(chan int, 100)
			model := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
				reached <- r.Number
				switch {
				case r.Number == 2:
					return llmtest.Answer{Text: "never comes", Stall: llmtest.StallAtOnce}
				case r.Turn() == 0:
					return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "words__say", Arguments: `{}`}}}
				}
				return llmtest.Answer{Text: "Done."}
			})
			h := newHouse(t, model.URL, "")
			settings, err := readFile(h.config)
			if err != nil {
				t.Fatal(err)
			}
			with := func(program string) {
				h.write("config.yaml", string(settings)+fmt.Sprintf("mcp_servers: [{mcp_server_name: words, command: [%s, -c, %q]}]\n", program, server))
			}
			with(starts[0])
			p := h.start(h.args...)
			<-reached
			<-reached
			_ = p.Process.Kill()
			_ = p.code()
			// As where other runs of the house had not seen the server, or had.
			if err := os.RemoveAll(filepath.Join(h.base(), "mcp")); err != nil {
				t.Fatal(err)
			}
			with(starts[1])
			p = h.start(append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
			if code := p.code(); code != 0 {
				t.Fatalf("exit code %d:\n%s", code, p.out.String())
			}
			llmtest.CheckPrefix(t, model.Requests())
			var shown []string
			for _, r := range model.Requests() {
				var body struct{ Tools json.RawMessage }
				if err := json.Unmarshal(r.Body, &body); err != nil {
					t.Fatal(err)
				}
				shown = append(shown, string(body.Tools))
			}
			if first, last := shown[0], shown[len(shown)-1]; len(shown) < 3 || first != last || strings.Contains(first, "words__say") != (starts[0] == "sh") {
				t.Errorf("%d requests; first\n%s\nlast\n%s", len(shown), first, last)
			}
		})
	}
}
