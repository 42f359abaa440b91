package contextstore

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"

	"toritsugi/internal/contextstore/jsonl"
)

// representable reports whether the ledger's format can hold a time: other
// writers may use more digits of a second, or years that have none here.
func representable(t Time) bool {
	y := t.UTC().Year()
	return t.IsZero() || 0 <= y && y <= 9999
}

func FuzzDecodeMessage(f *testing.F) {
	for _, line := range []string{
		`{"seq":1,"role":"system","content":"You are an AI...","timestamp":"2024-01-15T10:30:01Z","tokens":250}`,
		`{"seq":4,"role":"tool","content":"{\"output\":\"...\"}","timestamp":"2024-01-15T10:30:20.123Z","token_count":1200,"tool_name":"github_get_file_contents"}`,
		`{"seq":3,"role":"assistant","content":null,"function_call":{"name":"f","arguments":{"a":1}},"is_summarized":true}`,
		`{"seq":3,"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`,
		`{"seq":123456,"role":"assistant","content":"a\nb\u2028\ud800 長い","timestamp":"2024-01-15T10:30:20.123456Z","tokens":11,"sum":12345678,"tool_calls":[{"id":"1","name":"shell","arguments":"{\"a\":\"]}\"}"}],"reasoning_content":"r","finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":2}}`,
		`{"seq":1,"role":"user","seq":2,"ROLE":"x","usage":{"prompt_tokens":1},"usage":{"total_tokens":3}}`,
		`{"seq":8,"role":"assistant","content":"","timestamp":"2024-01-15T10:30:20.123456Z","tokens":0,"sum":1,"usage":{"prompt_tokens":1,"completion_tokens":2,"cached_tokens":3,"cache_write_tokens":4,"reasoning_tokens":5,"cost_micro_usd":0,"estimated":true},"answered_by":"openai/gpt-4o","failed":true,"pinned":true,"images":[{"path":"a.png","media_type":"image/png","bytes":3,"source":"s","dropped":"read_failed"}]}`,
		`{"seq":1,"role":"u","failed":truefalse}`, `{"seq":1,"role":"u","failed":null,"images":null,"answered_by":null}`, `{"seq":1,"role":"u","failed":true,"failed":false,"images":[],"images":[{"bytes":1}]}`,
		`{"seq":1,"role":"u","failed":"true"}`, `{"seq":1,"role":"u","usage":{"cost_micro_usd":1.5}}`, `{"seq":1,"role":"u","usage":{"cost_micro_usd":null}}`, `{"seq":1,"role":"u","failed":tru`,
		`{"seq":0,"role":"user"}`, `{"seq":1,"role":""}`, `{"seq":01,"role":"u"}`, `{"seq":1.0,"role":"u"}`, `{"seq":1e2,"role":"u"}`,
		`{"seq":99999999999999999999,"role":"u"}`, `{"seq":-1,"role":"u"}`, `{"seq":1,"role":"u",}`, `{"seq":1,"role":"u"}}`, `{"seq":1,"role":"u"`,
		`{"seq":1,"role":"u","tool_calls":[{"id":1}]}`, `{"seq":1,"role":"u","tool_calls":[[}]}`, `{"seq":1,"role":"u","content":"` + "\xff\x01" + `"}`,
		`null`, `[]`, ``, "\x00\x00", `{"seq":1,"role":"u","timestamp":"2024-01-15T10:30:20"}`, `{"seq":1,"role":"u","timestamp":"0000-01-01T00:00:00+23:59"}`,
		`{"seq":1,"role":"u","tokens":9223372036854775807,"token_count":5,"sum":0}`, strings.Repeat(`{"usage":`, 300),
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		defer disktest.Bounded(t, len(line))()
		m, err := DecodeMessage(line)
		if n := leadingSeq(line[:min(len(line), 32)]); err == nil && n > 0 && n != m.Seq && bytes.Count(bytes.ToLower(line), []byte(`seq`)) == 1 {
			t.Fatalf("seq %d at the head, %d in the line", n, m.Seq)
		}
		if err != nil {
			return
		}
		if m.Seq < 1 || m.Role == "" {
			t.Fatalf("%+v is no message", m)
		}
		again(t, m, representable(m.Timestamp), DecodeMessage)
	})
}

// again writes what was read and reads it once more.
func again[T any](t *testing.T, v T, writable bool, decode func([]byte) (T, error)) {
	t.Helper()
	line, err := jsonl.Append(nil, v)
	if err != nil || !writable {
		return // such as a result that is no JSON: it is not written
	}
	if n := bytes.IndexByte(line, '\n'); n != len(line)-1 {
		t.Fatalf("a line break within %q", line)
	}
	got, err := decode(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, line)
	}
	same := cmp.Comparer(func(a, b Time) bool { return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond)) })
	if d := cmp.Diff(v, got, same, sameArgs, cmp.Comparer(slices.Equal[[]ToolCall]), cmp.Comparer(slices.Equal[[]Image])); d != "" {
		t.Fatalf("written and read again: %s", d)
	}
}

// sameArgs compares arguments as they are written: compact, none as null.
var sameArgs = cmp.Comparer(func(a, b json.RawMessage) bool {
	compact := func(r json.RawMessage) string {
		var buf bytes.Buffer
		if len(r) == 0 {
			return "null"
		}
		if json.Compact(&buf, r) != nil {
			return string(r)
		}
		return strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`).Replace(buf.String())
	}
	return compact(a) == compact(b)
})

func FuzzDecodeSummary(f *testing.F) {
	for _, line := range []string{
		`{"id":1,"start_seq":10,"end_seq":50,"summary":"Fixed auth bug...","original_tokens":12000,"summary_tokens":800,"ratio":0.067,"timestamp":"2024-01-15T10:32:00Z"}`,
		`{"summary_id":2,"start_seq":51,"end_seq":90,"summary":"s","created_at":"2024-01-15T10:34:30.000Z","original_tokens":15000,"summary_tokens":950,"compression_ratio":0.063}`,
		`{"id":1,"summary_id":7,"ratio":1e308,"final":true}`, `{"id":-1}`, `{}`, `null`, "\x00", `{"id":1,"ratio":1e999}`, `{"id":1,"summary":"` + "\xff" + `"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		s, err := DecodeSummary(line)
		if err != nil {
			return
		}
		if s.ID < 1 {
			t.Fatalf("%+v is no summary", s)
		}
		again(t, s, representable(s.Timestamp), DecodeSummary)
	})
}

func FuzzDecodeToolRun(f *testing.F) {
	for _, line := range []string{
		`{"seq":1,"tool":"github_get_file_contents","args":{"path":"main.py"},"result":"...","status":"success","duration_ms":234,"timestamp":"2024-01-15T10:30:20Z"}`,
		`{"seq":1,"tool_name":"t","arguments":{"a":1},"result":{"b":2},"status":"success","duration_ms":3,"timestamp":"2024-01-15T10:30:20.123Z"}`,
		`{"seq":2,"tool_name":"t","arguments":{},"result":null,"status":"error","error":"Branch already exists"}`,
		`{"seq":1,"tool":"t","args":"text"}`, `{"seq":1,"arguments":""}`, `{"seq":0}`, `null`, `{"seq":1,"result":1.5}`, "\x00", `{"seq":1,"args": {"a" : "` + "\u2028\xff" + `"}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := DecodeToolRun(line)
		if err != nil {
			return
		}
		if r.Seq < 1 {
			t.Fatalf("%+v is no tool run", r)
		}
		again(t, r, representable(r.Timestamp), DecodeToolRun)
	})
}

// What we write reads back as it was, whatever is in it.
func TestWrittenIsRead(t *testing.T) {
	t.Parallel()
	now := rapid.Custom(func(t *rapid.T) Time {
		return Time{Time: time.UnixMicro(rapid.Int64Range(1, 4e15).Draw(t, "µs")).UTC()}
	})
	text := rapid.Map(genText, jsonl.Valid)
	rapid.Check(t, func(rt *rapid.T) {
		m := genMessage.Draw(rt, "message")
		m.Seq, m.Content, m.Timestamp = rapid.Int64Min(1).Draw(rt, "seq"), jsonl.Valid(m.Content), now.Draw(rt, "time")
		m.Tokens, m.Sum = CountTokens(m.Content), rapid.Int64Min(0).Draw(rt, "sum")
		m.Reasoning, m.FinishReason, m.Summarized = text.Draw(rt, "reasoning"), rapid.StringN(0, 9, 9).Draw(rt, "finish"), rapid.Bool().Draw(rt, "summarized")
		for i := range m.ToolCalls {
			m.ToolCalls[i].Arguments = jsonl.Valid(m.ToolCalls[i].Arguments)
		}
		back(rt, m, DecodeMessage)
		back(rt, Summary{ID: rapid.Int64Min(1).Draw(rt, "id"), StartSeq: 1, EndSeq: m.Seq, Summary: text.Draw(rt, "summary"), OriginalTokens: 3,
			Ratio: float64(rapid.IntRange(0, 99999).Draw(rt, "ratio")) / 1000, Timestamp: m.Timestamp, Final: m.Summarized}, DecodeSummary)
		args, _ := json.Marshal(map[string]string{"a": text.Draw(rt, "args")})
		back(rt, ToolRun{Seq: m.Seq, Tool: "shell", Args: args, Result: text.Draw(rt, "result"), Error: text.Draw(rt, "error"), Status: "success", Timestamp: m.Timestamp, CallID: "1"}, DecodeToolRun)
	})
}

func back[T any](t *rapid.T, v T, decode func([]byte) (T, error)) {
	line, err := jsonl.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(v, got, sameArgs); d != "" {
		t.Errorf("%s\n%s", d, line)
	}
}

func TestFunctionCallOfTheOlderEdition(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]ToolCall{
		`{"seq":3,"role":"assistant","content":null,"function_call":{"name":"f","arguments":{"a": 1}}}`:     {Name: "f", Arguments: `{"a": 1}`},
		`{"seq":3,"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\": 1}"}}`: {Name: "f", Arguments: `{"a": 1}`},
	} {
		m, err := DecodeMessage([]byte(line))
		if err != nil || len(m.ToolCalls) != 1 || m.ToolCalls[0] != want {
			t.Errorf("%+v, %v", m, err)
		}
	}
}
