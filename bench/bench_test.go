package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/openai"
)

// serve starts a server; end closes it and returns what it saw.
func serve(t *testing.T, turns int) (s *server, end func() figures) {
	t.Helper()
	s, err := listen(t.Context(), turns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.http.Close() })
	return s, func() figures {
		t.Helper()
		f, err := s.close()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

// shellTool is the tool that the server calls.
var shellTool = llm.Tool{Name: "shell", Description: "Runs a command.",
	Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)}

func open(t *testing.T, s *server) llm.Conversation {
	t.Helper()
	c, err := openai.New(openai.Config{Provider: "openai", Model: "bench", BaseURL: s.base, APIKey: "dummy"})
	if err != nil {
		t.Fatal(err)
	}
	return c.Open(llm.Settings{Tools: []llm.Tool{shellTool}})
}

func TestServerSpeaksToOurClient(t *testing.T) {
	t.Parallel()
	const turns = 4
	s, end := serve(t, turns)
	c := open(t, s)
	c.Append(llm.Message{Role: llm.RoleSystem, Content: "You are measured."})
	c.Append(llm.Message{Role: llm.RoleUser, Content: prompt})
	for k := 1; k <= turns; k++ {
		r, err := c.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Message.ToolCalls) != 1 || r.FinishReason != llm.FinishToolCalls || r.Usage == nil || r.Usage.PromptTokens < 10 {
			t.Fatalf("turn %d: %+v", k, r)
		}
		call := r.Message.ToolCalls[0]
		if want := callOf("shell", k); call.ID != want.id || call.Name != "shell" || call.Arguments != want.args {
			t.Fatalf("turn %d: call %+v, want %+v", k, call, want)
		}
		c.Append(r.Message)
		c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: fmt.Sprintf("turn-%d 0\n", k)})
	}
	r, err := c.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Message.Content != finalText || len(r.Message.ToolCalls) > 0 || r.FinishReason != llm.FinishStop {
		t.Errorf("final answer %+v", r)
	}
	if f := end(); f.Requests != turns+1 || len(f.Overheads) != turns || f.Compared != turns || f.Kept != turns {
		t.Errorf("figures %+v", f)
	}
}

// TestServerSeesTheWindowCut: a client that forgets is still at the turn where
// it was, and the request that forgot counts as one that does not go on.
func TestServerSeesTheWindowCut(t *testing.T) {
	t.Parallel()
	s, end := serve(t, 9)
	c := open(t, s)
	c.Append(llm.Message{Role: llm.RoleUser, Content: prompt})
	for k := 1; k <= 5; k++ {
		r, err := c.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(idPrefix, k); r.Message.ToolCalls[0].ID != want {
			t.Fatalf("call %s, want %s", r.Message.ToolCalls[0].ID, want)
		}
		if k == 3 {
			c.Reset()
			c.Append(llm.Message{Role: llm.RoleUser, Content: "Earlier messages are gone."})
		}
		c.Append(r.Message)
		c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: r.Message.ToolCalls[0].ID, Content: "0"})
	}
	if f := end(); f.Compared != 4 || f.Kept != 3 {
		t.Errorf("%d of %d requests go on where the one before ended, want 3 of 4", f.Kept, f.Compared)
	}
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"function":{"name":"sh"}}],`
	for name, c := range map[string]struct{ body, says string }{
		"not JSON":      {`{"messages":`, "not JSON"},
		"not streaming": {`{` + tools + `"messages":[{"role":"user","content":"a"}]}`, "stream"},
		"no shell":      {`{"stream":true,"tools":[{"function":{"name":"ask"}}],"messages":[]}`, "shell"},
		"no array":      {`{"stream":true,` + tools + `"messages":7}`, "array"},
		"no messages":   {`{"stream":true,` + tools + `"model":"m"}`, "array"},
		"odd messages":  {`{"stream":true,` + tools + `"messages":[7]}`, "messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, end := serve(t, 1)
			res, err := http.Post(s.base+"/chat/completions", "application/json", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(b), c.says) {
				t.Errorf("%s: %s", res.Status, b)
			}
			if f := end(); f.Requests != 0 {
				t.Errorf("counted %d requests", f.Requests)
			}
		})
	}
}

// TestTakeFindsTheMessages: whatever stands around them, and however the
// request is written.
func TestTakeFindsTheMessages(t *testing.T) {
	t.Parallel()
	const (
		head = `{"model":"m", "stream":true, "tools":[{"function":{"name":"sh"}}], "messages": `
		user = `{"role":"user","content":"a"}`
		asks = `{"role":"assistant","content":null,"tool_calls":[{"id":"turn_1"}]}`
	)
	for _, c := range []struct {
		name, first, second string
		kept                bool
	}{
		{"appended", head + "[" + user + "]}", head + "[" + user + "," + asks + "]}", true},
		{"the same again, and more after it", head + "[" + user + "," + asks + `], "n":1}`, head + "[" + user + "," + asks + `], "n":1}`, true},
		{"other settings", head + "[" + user + "]}", strings.Replace(head, `"m"`, `"mm"`, 1) + "[" + user + "," + asks + "]}", true},
		{"a space more", head + "[" + user + "]}", head + "[ " + user + "," + asks + "]}", false},
		{"another message", head + "[" + user + "]}", head + "[" + strings.Replace(user, "a", "b", 1) + "," + asks + "]}", false},
	} {
		var talk conversation
		for i, text := range []string{c.first, c.second} {
			body, err := talk.read(bytes.NewReader([]byte(text)), int64(len(text)))
			if err != nil {
				t.Fatal(err)
			}
			kept, err := talk.take(body)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if i == 1 && (kept != c.kept || talk.turn != 1) {
				t.Errorf("%s: kept %v, turn %d", c.name, kept, talk.turn)
			}
			if s := string(talk.messages); !strings.HasPrefix(s, "[") || !json.Valid([]byte(s+"]")) {
				t.Errorf("%s: messages %s", c.name, s)
			}
		}
	}
}

func TestFloorTakesItsTurns(t *testing.T) {
	t.Parallel()
	s, end := serve(t, 5)
	cost, err := runFloor(t.Context(), s.base, prompt)
	if err != nil {
		t.Fatal(err)
	}
	f := end()
	if cost.Turns != 5 || f.Requests != 6 || f.Compared != 5 || f.Kept != 5 || len(f.Overheads) != 5 {
		t.Errorf("%d turns, figures %+v", cost.Turns, f)
	}
	if cost.ToolUS <= 0 {
		t.Error("no time was spent in the shell")
	}
	if f.Body < 5*outputBytes {
		t.Errorf("the longest request has %d bytes: the outputs are not in it", f.Body)
	}
}

func TestFloorReportsFailure(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runFloor(ctx, s.base, prompt); err == nil {
		t.Error("a cancelled floor run reports no error")
	}
	if _, err := runFloor(t.Context(), s.base+"/nowhere", prompt); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error %v", err)
	}
}

func TestParseTurns(t *testing.T) {
	t.Parallel()
	if got, err := parseTurns("100, 10,10"); err != nil || fmt.Sprint(got) != "[10 100]" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "0", "x", "1,,2", "-5"} {
		if got, err := parseTurns(bad); err == nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
}

func TestMedians(t *testing.T) {
	t.Parallel()
	got := medians([]sample{{cpu: 3, peak: 1}, {cpu: 1, peak: 2}, {cpu: 10, peak: 9}})
	if got[cpu] != 3 || got[peak] != 2 || len(got) != 2 {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		v           []float64
		median, p95 float64
	}{{[]float64{5}, 5, 5}, {[]float64{4, 1}, 2.5, 4}, {[]float64{9, 1, 5}, 5, 9}} {
		if m, q := median(c.v), quantile(c.v, 0.95); m != c.median || q != c.p95 {
			t.Errorf("%v: median %v, p95 %v", c.v, m, q)
		}
	}
}

// TestReport: each budget that is exceeded is marked and counted, and no other.
func TestReport(t *testing.T) {
	t.Parallel()
	full := func(p pair, synced, summaries float64) pair {
		p.tori = maps.Clone(p.tori)
		p.tori[syncs], p.tori[summarised] = synced, summaries
		return p
	}
	within := func() *results {
		f := sample{own: 1, ownTenth: 1, ownLast: 1, ownMean: 1, overhead: 2, p95: 3, tool: 1, cpu: 100, peak: 10, wall: 200, kept: 1, body: 1, written: 0}
		a := sample{own: 2, ownTenth: 2, ownLast: 2, ownMean: 2, overhead: 3, p95: 4, tool: 1, cpu: 250, peak: 40, wall: 300, kept: 1, body: 1, written: 9,
			appended: 9, syncs: 200, rows: 100, fileRatio: 2.5, breaks: 2, events: 2}
		none := pair{sample{cpu: 1}, sample{cpu: 1, syncs: 0, rows: 0}}
		return &results{disk: "d", syncs: []time.Duration{time.Millisecond}, start: none, turns: []int{100},
			pairs: map[int]pair{100: {f, a}}, small: []pair{{f, a}, {f, a}}, hello: []sample{{wall: 20, peak: 25}}}
	}
	for name, c := range map[string]struct {
		change func(*results)
		over   int
	}{
		"within":       {func(*results) {}, 0},
		"syncs":        {func(v *results) { v.pairs[100].tori[syncs] = 203 }, 2}, // the samples are shared with the full window
		"a checkpoint": {func(v *results) { v.pairs[100].tori[syncs] = 201 }, 0},
		"checkpoints":  {func(v *results) { v.pairs[100].tori[syncs], v.pairs[100].tori[wall] = 209, 61_000 }, 0},
		"rows":         {func(v *results) { v.pairs[100].tori[rows] = 101 }, 1},
		"time":         {func(v *results) { v.pairs[100].tori[own] = 4.1 }, 1},
		"last tenth":   {func(v *results) { v.pairs[100].tori[ownTenth], v.pairs[100].tori[ownLast] = 4.1, 4.1 }, 1},
		"CPU":          {func(v *results) { v.pairs[100].tori[cpu] = 260 }, 1},
		"files":        {func(v *results) { v.pairs[100].tori[fileRatio] = 2.6 }, 1},
		"prefix":       {func(v *results) { v.pairs[100].tori[events] = 1 }, 2}, // likewise
		"summaries":    {func(v *results) { v.small[1] = full(v.small[1], 1000*2+1+3*4, 3) }, 0},
		"stubs":        {func(v *results) { v.small[1] = full(v.small[1], 1000*2+60, 3) }, 1},
		"growth":       {func(v *results) { v.small[0] = pair{v.small[0].floor, sample{peak: 30}} }, 1},
		"version time": {func(v *results) { v.hello[0][wall] = 21 }, 1},
		"version size": {func(v *results) { v.hello[0][peak] = 26 }, 1},
		"grows":        {func(v *results) { v.pairs[100].tori[ownTenth] = 1.7 }, 1},
	} {
		v := within()
		c.change(v)
		var out strings.Builder
		r := &report{w: &out}
		r.print(v)
		if r.over != c.over || strings.Count(out.String(), "OVER") != c.over {
			t.Errorf("%s: %d over, want %d:\n%s", name, r.over, c.over, &out)
		}
	}
}
