package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/memory"
)

// screened is what tori memory --json prints, as far as it is looked at.
type screened struct {
	LastSeq int64 `json:"last_seq"`
	Answer  *struct {
		Seq int64 `json:"seq"`
	} `json:"answer"`
	Tokens     int  `json:"tokens"`
	Calibrated bool `json:"calibrated"`
	Tools      []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Part    string `json:"part"`
		Seq     int64  `json:"seq"`
		Masked  bool   `json:"masked"`
		Clipped bool   `json:"clipped"`
		memory.Sent
	} `json:"messages"`
	Decisions []struct {
		Type   string `json:"type"`
		First  int64  `json:"first_seq"`
		Last   int64  `json:"last_seq"`
		Before int64  `json:"tokens_before"`
		After  int64  `json:"tokens_after"`
		Reason string `json:"reason"`
	} `json:"decisions"`
	Damaged []struct {
		File   string `json:"file"`
		Offset *int64 `json:"offset"`
		What   string `json:"what"`
	} `json:"damaged"`
}

// inProcess runs a verb without a process of its own.
func inProcess(lang i18n.Lang, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	c := &console{out: &o, err: &e, lang: lang, getenv: func(string) string { return "" }}
	code = c.main(args)
	return code, o.String(), e.String()
}

func screenOf(t *testing.T, args ...string) (s screened) {
	t.Helper()
	code, out, errs := inProcess(i18n.English, append([]string{"memory", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
		t.Fatalf("tori memory %v: %d, %v\n%s%s", args, code, err, out, errs)
	}
	return s
}

// same demands that what is told of a request is what the server got, to the byte.
func (s screened) same(t *testing.T, r llmtest.Request) {
	t.Helper()
	if len(s.Messages) != len(r.Messages) {
		t.Fatalf("%d messages were sent, told are %d", len(r.Messages), len(s.Messages))
	}
	names := make([]string, len(s.Tools))
	for i, tool := range s.Tools {
		names[i] = tool.Name
	}
	if !slices.Equal(names, r.Tools) {
		t.Errorf("the tools %v were sent, told are %v", r.Tools, names)
	}
	for i, m := range r.Messages {
		told, content := s.Messages[i], ""
		if m.Content != nil {
			content = *m.Content
		}
		if told.Role != m.Role || told.Content != content || told.ToolCallID != m.ToolCallID || len(told.ToolCalls) != len(m.ToolCalls) {
			t.Fatalf("message %d of the request was sent as %s %q, told is %s %q", i, m.Role, content, told.Role, told.Content)
		}
		for j, c := range m.ToolCalls {
			if k := told.ToolCalls[j]; k.ID != c.ID || k.Name != c.Function.Name || k.Arguments != c.Function.Arguments {
				t.Fatalf("a call of message %d was sent as %+v, told is %+v", i, c, k)
			}
		}
	}
}

// answered are the requests that the server got, by the number of the message
// that answers each.
func answered(t *testing.T, v contextstore.View, all []llmtest.Request) map[int64]llmtest.Request {
	t.Helper()
	by := map[int64]llmtest.Request{}
	err := v.Tail(contextstore.Messages, -1, func(b []byte) error {
		m, err := contextstore.DecodeMessage(b)
		if err != nil || m.Role != llm.RoleAssistant {
			return err
		}
		for _, r := range all {
			if len(m.ToolCalls) > 0 && string(m.ToolCalls[0].ID) == fmt.Sprint("call_of_", r.Number) || m.Content == fmt.Sprint("Done after request ", r.Number) {
				by[m.Seq] = r
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return by
}

// What tori memory tells of a request is what the model server got: over a run
// that took over from an earlier one, with masks, summaries and a kill.
func TestWhatTheModelSaw(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	const turns, killedAt = 40, 18
	gate, reached := make(chan struct{}), make(chan struct{})
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		u := &llm.Usage{PromptTokens: len(r.Body) * 2 / 7, CompletionTokens: 20}
		u.TotalTokens = u.PromptTokens + 20
		first := *r.Messages[0].Content
		if len(r.Tools) == 0 { // the summariser
			if !strings.Contains(first, "=== Messages to summarise ===") {
				t.Errorf("not expected: %.300s", first)
			}
			return llmtest.Answer{Text: "The counting goes on: " + strings.Join(kept(first), " "), Usage: u}
		}
		n := strings.Count(string(r.Body), `"role":"assistant"`)
		if r.Number == killedAt+2 {
			close(reached)
			<-gate // no answer, for this process
		}
		if r.Number == 1 || r.Number >= turns {
			return llmtest.Answer{Text: fmt.Sprint("Done after request ", r.Number), Usage: u}
		}
		args, _ := json.Marshal(map[string]string{"path": fmt.Sprintf("notes/%d.txt", r.Number%5), "content": strings.Repeat(fmt.Sprintf("%d 速い茶色の狐 <&> ", n), 40)})
		tool, a := "write_file", string(args)
		if r.Number%2 == 0 {
			tool, a = "shell", fmt.Sprintf(`{"command":"printf '%%s\\n' request-%d; head -c 2500 /dev/zero | tr '\\0' x; echo"}`, r.Number)
		}
		return llmtest.Answer{Calls: []llm.ToolCall{{ID: fmt.Sprint("call_of_", r.Number), Name: tool, Arguments: a}}, Usage: u}
	})
	h := newHouse(t, server.URL, "")
	h.settings(fmt.Sprintf("provider: openai, openai: {base_url: %q, model: m, api_key: key-for-a-test, context_length: 14000}", server.URL),
		"checks: []\ncontext_storage: {compression_threshold: 0.35, masking: {keep_turns: 2, min_share: 0.05}}")
	h.ends(exitOK, "^completed: ", h.args...)
	p := h.start(h.args...)
	<-reached
	_ = p.Process.Kill()
	_ = p.Wait()
	close(gate)
	v := runs(t, h.base())[1]
	id := v.Metadata.UUID
	place := []string{id[:8], "--base-dir", h.base()}
	if s := screenOf(t, place...); s.Answer == nil || s.Messages[1].Part != memory.PartInherited { // interrupted
		t.Errorf("%+v", s)
	}
	h.ends(exitOK, "^completed: ", append([]string{"run", "--resume", id, "--base-dir", h.base()}, h.bare...)...)
	v = runs(t, h.base())[1]
	by := answered(t, v, server.Requests())
	if len(by) < turns/2 {
		t.Fatalf("%d requests", len(by))
	}
	kinds, masked := map[string]int{}, 0
	for _, seq := range slices.Sorted(maps.Keys(by)) {
		s := screenOf(t, append(place, "--at", fmt.Sprint(seq))...)
		s.same(t, by[seq])
		if s.Answer.Seq != seq || s.Tokens < 1000 || len(s.Damaged) > 0 {
			t.Errorf("message %d: %+v", seq, s)
		}
		kinds = map[string]int{}
		for _, d := range s.Decisions {
			kinds[d.Type]++
			if d.Before <= d.After || d.First < 4 || d.Last < d.First || d.Last >= seq || d.Reason == "" {
				t.Errorf("message %d: %+v", seq, d)
			}
		}
		for _, m := range s.Messages {
			if m.Masked {
				masked++
			}
		}
		if m := s.Messages; m[0].Part != memory.PartSystem || m[1].Part != memory.PartInherited || m[2].Part != memory.PartRequest || kinds["summary"] > 0 != (len(m) > 3 && m[3].Part == memory.PartSummary) {
			t.Errorf("message %d: the parts are %s %s %s", seq, m[0].Part, m[1].Part, m[2].Part)
		}
		// A message after the answer, and before the next, has the same request.
		if after := screenOf(t, append(place, "--at", fmt.Sprint(min(seq+1, s.LastSeq)))...); after.Answer.Seq != seq && by[seq+1].Number == 0 {
			t.Errorf("message %d belongs to the request of %d", seq+1, after.Answer.Seq)
		}
	}
	if kinds["mask"] < 3 || kinds["summary"] < 1 || masked == 0 {
		t.Errorf("decisions %v, %d stubs", kinds, masked)
	}
	t.Run("for people", func(t *testing.T) {
		for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
			code, out, errs := inProcess(lang, append([]string{"memory"}, place...)...)
			if code != 0 || errs != "" || !strings.Contains(out, "write_file (") || !strings.Contains(out, "#1 ") {
				t.Errorf("%d\n%s%s", code, out, errs)
			}
			for line := range strings.Lines(out) {
				if n := width80(line); n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		}
		code, out, _ := inProcess(i18n.English, append([]string{"memory", "--request"}, place...)...)
		if code != 0 || !strings.Contains(out, "[1] system (system)") || !strings.Contains(out, memory.InheritedPrefix) {
			t.Errorf("%d\n%.2000s", code, out)
		}
	})
	t.Run("what all of them cost", func(t *testing.T) {
		var sent int64
		for _, r := range by {
			sent += int64(len(r.Body)) / 4
		}
		code, out, errs := inProcess(i18n.English, append([]string{"memory", "--cost", "--json"}, place...)...)
		var b memory.TokenUsage
		if err := json.Unmarshal([]byte(out), &b); code != 0 || err != nil {
			t.Fatalf("%d, %v\n%s%s", code, err, out, errs)
		}
		talk := b.Sent - b.Summaries.Sent - b.Final.Sent
		if n := b.Requests - b.Summaries.Requests - b.Final.Requests; n != int64(len(by)) || float64(talk) < 0.9*float64(sent) || float64(talk) > 1.1*float64(sent) || b.Summaries.Requests == 0 || b.Final.Requests != 1 {
			t.Errorf("%d requests of %d tokens were sent: %+v", len(by), sent, b)
		}
		for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
			code, out, errs := inProcess(lang, append([]string{"memory", "--cost"}, place...)...)
			if code != 0 || errs != "" || !strings.Contains(out, lang.T("memorycost.part_results")) {
				t.Errorf("%d\n%s%s", code, out, errs)
			}
			for line := range strings.Lines(out) {
				if n := width80(line); n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		}
		if code, _, errs := inProcess(i18n.English, append([]string{"memory", "--cost", "--at", "5"}, place...)...); code != exitUsage || !strings.Contains(errs, "--cost") {
			t.Errorf("%d %s", code, errs)
		}
	})
	t.Run("without the index, read-only and damaged", func(t *testing.T) { damagedWindow(t, h, v, by) })
}

func width80(line string) (n int) {
	for _, r := range strings.TrimRight(line, "\n") {
		if n++; r >= 0x1100 && r < 0xfffd && r != '…' && r != '～' || r == '～' {
			n++
		}
	}
	return n
}

// damagedWindow looks at a copy of a run of which nothing can be written, one
// line is damaged and the summaries are gone.
func damagedWindow(t *testing.T, h *house, v contextstore.View, by map[int64]llmtest.Request) {
	base := filepath.Join(t.TempDir(), "ctx")
	dir := filepath.Join(base, "completed", v.Metadata.UUID)
	if err := os.CopyFS(dir, os.DirFS(v.Dir)); err != nil {
		t.Fatal(err)
	}
	place := []string{v.Metadata.UUID, "--base-dir", base}
	whole := screenOf(t, place...)
	whole.same(t, by[whole.Answer.Seq])
	file := filepath.Join(dir, "messages.jsonl")
	b, err := readFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lost := whole.Messages[len(whole.Messages)-1].Seq
	at := bytes.Index(b, fmt.Appendf(nil, `{"seq":%d,`, lost))
	copy(b[at:], "NULL")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "summaries.jsonl")); err != nil {
		t.Fatal(err)
	}
	readOnly(t, base)
	s := screenOf(t, place...)
	if len(s.Messages) != len(whole.Messages)-1 || len(s.Damaged) != 2 || s.Damaged[1].File != "messages.jsonl" || *s.Damaged[1].Offset != int64(at) ||
		s.Damaged[0].File != "summaries.jsonl" || !strings.Contains(s.Messages[3].Content, "missing or damaged") {
		t.Errorf("%d messages, %+v", len(s.Messages), s.Damaged)
	}
	for _, bad := range [][]string{{"--at", "100000"}, {"--at", "1"}, {"--at", "0"}} {
		if code, out, errs := inProcess(i18n.Japanese, append(append([]string{"memory"}, place...), bad...)...); code != exitUsage || out != "" || !strings.Contains(errs, "メッセージ") {
			t.Errorf("%v: %d %s%s", bad, code, out, errs)
		}
	}
	if code, _, errs := inProcess(i18n.English, "memory", "nosuch", "--base-dir", base); code != exitUsage || !strings.Contains(errs, "nosuch") {
		t.Errorf("%d %s", code, errs)
	}
}

// readOnly takes away the right to write below a directory until the test ends.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	mode := func(files, dirs os.FileMode) {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				return os.Chmod(path, dirs)
			}
			return os.Chmod(path, files)
		})
	}
	mode(0o400, 0o500)
	t.Cleanup(func() { mode(0o600, 0o700) })
}
