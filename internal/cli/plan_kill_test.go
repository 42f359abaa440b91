package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// planned are the answers of a run through all its phases: plan, a call that
// fails, a reflection that changes the plan, a subtask that failed and is tried
// again, a verification that wants more, and one that passes.
func planned() []llmtest.Answer {
	say := func(text string) llmtest.Answer { return llmtest.Answer{Text: text} }
	n := 0
	run := func(text, command string) llmtest.Answer {
		n++
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			panic(err)
		}
		return llmtest.Answer{Text: text, Calls: []llm.ToolCall{{ID: fmt.Sprint("call_", n), Name: "shell", Arguments: string(args)}}}
	}
	return []llmtest.Answer{
		run("", "cat README.md"),
		say(`{"phase":"planning","goal_understanding":{"main_objective":"It is counted","success_criteria":["count.txt says 3"],"constraints":[]},"task_decomposition":{"reasoning":"r","subtasks":[{"id":"one","description":"Write 1","dependencies":[]},{"id":"two","description":"Write 2","dependencies":["one"]}]},"action_plan":{"execution_order":["one","two"],"actions":[]}}`),
		run("", "cat nothing-there"),
		run(`{"phase":"reflection","reflection":{"status":"failure","evaluation":"it is not there","plan_revision_needed":true},"plan_revision":{"reason":"a step more","changes":[{"type":"add","subtask":{"id":"three","description":"Write 3","dependencies":["two"]}}]}}`, "printf 1 > count.txt"),
		say(`{"task_id":"one","status":"done","summary":"1"}`),
		say(`{"task_id":"two","status":"failed","summary":"no ink"}`),
		say(`{"replan_decision":{"replan_needed":true,"confidence":0.9,"reasoning":"there is ink now","replan_type":"retry","target_phase":"execution","replan_level":1}}`),
		run("", "printf 2 > count.txt"),
		say(`{"task_id":"two","status":"done","summary":"2"}`),
		say(`{"task_id":"three","status":"done","summary":"forgot"}`),
		say(`{"phase":"verification","verification_passed":false,"criteria":[{"criterion":"count.txt says 3","met":false,"evidence":"count.txt:1"}],"issues_found":["it says 2"],"placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":true,"additional_actions":[{"task_id":"verification_fix_1","purpose":"Write 3"}],"completion_confidence":0.1}`),
		run("", "printf 3 > count.txt"),
		say(`{"task_id":"verification_fix_1","status":"done","summary":"3"}`),
		say(`{"phase":"verification","verification_passed":true,"criteria":[{"criterion":"count.txt says 3","met":true,"evidence":"count.txt:1"}],"issues_found":[],"comment":"Count to three\n\nThe file was missing.","placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":0.9}`),
	}
}

// told is a run in short: its messages, and the lines of its planning history
// without what differs between runs.
func told(t *testing.T, v contextstore.View) (messages, lines []string) {
	t.Helper()
	err := v.Tail(contextstore.Messages, -1, func(b []byte) error {
		m, err := contextstore.DecodeMessage(b)
		messages = append(messages, m.Role+" "+m.Kind)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := readFile(filepath.Join(v.Dir, "planning", v.Metadata.UUID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		delete(f, "timestamp")
		delete(f, "task_uuid")
		if state, ok := f["state"].(map[string]any); ok {
			delete(state, "offset") // times have other lengths
			delete(state, "guard")  // results name where they ran
		}
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	return messages, lines
}

// A run that is killed, or paused, while the model answers in each of its phases
// is the same run as one that is not: messages, planning history, budgets, end.
func TestPlannedRunGoesOnInEveryPhase(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	whole := follow(t, -1)
	wantMessages, wantLines := told(t, whole.only())
	if len(wantLines) < 15 || !strings.Contains(strings.Join(wantLines, "\n"), `"executed_type":"retry"`) {
		t.Fatalf("recorded:\n%s", strings.Join(wantLines, "\n"))
	}
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "paused": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := follow(t, signal)
			v := h.only()
			messages, lines := told(t, v)
			if !slices.Equal(messages, wantMessages) {
				t.Errorf("messages\n%s\nwant\n%s", strings.Join(messages, "\n"), strings.Join(wantMessages, "\n"))
			}
			for i := range max(len(lines), len(wantLines)) {
				if i >= len(lines) || i >= len(wantLines) || lines[i] != wantLines[i] {
					t.Errorf("line %d of %d, want %d:\n%s\n%s", i, len(lines), len(wantLines), lines[min(i, len(lines)-1)], wantLines[min(i, len(wantLines)-1)])
					break
				}
			}
			if v.State.LLMCallCount != whole.only().State.LLMCallCount {
				t.Errorf("%d calls, want %d", v.State.LLMCallCount, whole.only().State.LLMCallCount)
			}
		})
	}
}

// The commit has the words that the verification was asked for, wherever the run is
// killed between that answer and the branch: and the tree that was checked, whatever
// the model did while it judged.
func TestKilledAsTheCommitGetsItsWords(t *testing.T) {
	skipShort(t, "whole runs, killed")
	t.Parallel()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"not at all":                "",
		"before the branch moves":   "kill -9 $PPID; exit 1",
		"when the branch has moved": real + ` "$@"; kill -9 $PPID; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := planned()
			answers = slices.Insert(answers, len(answers)-1, answers[0])
			answers[len(answers)-2].Calls = []llm.ToolCall{{ID: "late", Name: "shell", Arguments: `{"command":"echo late > late.txt"}`}}
			server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer { return answers[min(r.Turn(), len(answers)-1)] })
			h := newHouse(t, server.URL, "test -f README.md")
			count := filepath.Join(h.dir, "count")
			disktest.Program(t, filepath.Join(h.dir, "bin/git"), `#!/bin/sh
case " $* " in *" update-ref refs/heads/tori/"*)
	echo >> `+count+`
	if [ "$(wc -l < `+count+`)" = 2 ]; then :; `+script+`
	fi;;
esac
exec `+real+` "$@"
`)
			h.env = []string{"TORI_PLANNING_ENABLED=true", "PATH=" + filepath.Join(h.dir, "bin") + ":" + os.Getenv("PATH")}
			p := h.start(h.args...)
			code := p.code()
			if script != "" {
				if code != -1 {
					t.Fatalf("exit code %d:\n%s", code, p.out.String())
				}
				p = h.start(append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
				code = p.code()
			}
			v := h.only()
			if code != 0 || v.Status() != task.Completed {
				t.Fatalf("exit code %d, %s:\n%s", code, v.Status(), p.out.String())
			}
			out, err := exec.CommandContext(t.Context(), real, "-C", filepath.Join(h.dir, "repo"), "log", "--branches=tori", "-1", "--format=%s|%b", "--name-only").Output()
			if got := string(out); err != nil || !strings.HasPrefix(got, "Count to three|The file was missing.\n") || !strings.HasSuffix(got, "\ncount.txt\n") || strings.Contains(got, "late.txt") {
				t.Errorf("%s, %v\n%s", got, err, p.out.String())
			}
		})
	}
}

// follow runs to the end, interrupted by a signal before each answer of the
// model; a signal of -1 interrupts nothing.
func follow(t *testing.T, signal syscall.Signal) *house {
	t.Helper()
	answers := planned()
	reached := make(chan int, 100)
	seen := make([]bool, len(answers))
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		n := r.Turn()
		switch {
		case n >= len(answers):
			return llmtest.Answer{Text: "too many"}
		case signal != -1 && !seen[n]:
			seen[n] = true
			reached <- n
			return llmtest.Answer{Text: "never comes", Stall: llmtest.StallAtOnce}
		}
		return answers[n]
	})
	h := newHouse(t, server.URL, "test -f README.md")
	h.env = []string{"TORI_PLANNING_ENABLED=true"}
	p := h.start(h.args...)
	if signal != -1 {
		for range answers {
			ended := make(chan int, 1)
			go func() { ended <- p.code() }()
			select {
			case <-reached:
				_ = p.Process.Signal(signal)
				<-ended
			case code := <-ended:
				t.Fatalf("ended with %d:\n%s", code, p.out.String())
			}
			if signal == syscall.SIGINT && h.only().Status() != task.Paused {
				t.Fatalf("%s:\n%s", h.only().Status(), p.out.String())
			}
			p = h.start(append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
		}
	}
	code := p.code()
	v := h.only()
	if code != 0 || v.Status() != task.Completed || !strings.Contains(p.out.String(), "completed: checks passed: `test -f README.md`") {
		t.Fatalf("exit code %d, %s:\n%s", code, v.Status(), p.out.String())
	}
	return h
}
