package jsonl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/redact"
)

func TestScan(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	var got []string
	err := Scan(strings.NewReader("a\n\n\x00\x00\n"+long+"\n"+long[:70<<10]+"\nend"), 100<<10, func(l Line) bool {
		got = append(got, fmt.Sprint(l.At, l.Bytes, len(l.Text), l.Newline, l.NUL, l.Long))
		return true
	})
	want := []string{"0 2 1 true false false", "2 1 0 true true false", "3 3 2 true true false", "6 204801 0 true false true",
		"204807 71681 71680 true false false", "276488 3 3 false false false"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %q", err, got)
	}
}

// Redaction keeps JSON JSON, the order of its fields, and is done once and for all.
func TestRedact(t *testing.T) {
	t.Parallel()
	z := redact.New([]string{"correct horse battery"}, nil)
	token := "ghp_" + strings.Repeat("a1B2", 9)
	piece := rapid.SampledFrom([]string{token, "correct horse battery", "password", "api_key", ": ", "=", `"`, `\`, "\n", "a@example.org", "語", "\x00", "x", " ",
		"sk-" + strings.Repeat("Zq3x", 12), "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "Authorization: Bearer abc123def456ghi789"})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "pieces"), "") })
	rapid.Check(t, func(t *rapid.T) {
		v := []any{text.Draw(t, "a"), map[string]any{text.Draw(t, "key"): text.Draw(t, "value"), "password": text.Draw(t, "named"), "n": 7}}
		raw, err := Append(nil, map[string]any{"type": "plan", "x": v})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Redact(bytes.TrimSpace(raw), z.String)
		if err != nil || !json.Valid(got) {
			t.Fatalf("%s: %v", got, err)
		}
		if !bytes.HasPrefix(got, []byte(`{"type":"plan","x":[`)) {
			t.Fatalf("%s became %s", raw, got)
		}
		if bytes.Contains(got, []byte(token)) || z.String(string(got)) != string(got) {
			t.Fatalf("left in %s", got)
		}
	})
	// What is no JSON any more is a text, not a leak.
	got, err := Redact([]byte(`{"a":1,"b":2}`), func(s string) string { return strings.ReplaceAll(s, `1,"b"`, "[REDACTED]") })
	if want := `{"redacted":"{\"a\":[REDACTED]:2}"}`; err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
}

func TestTimesOfOtherWriters(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		`"2024-01-15T10:30:20.1234567Z"`:     "2024-01-15T10:30:20.123456Z",
		`"2024-01-15T10:30:20+09:00"`:        "2024-01-15T01:30:20.000000Z",
		`"2024-01-15T10:30:20.123456+00:00"`: "2024-01-15T10:30:20.123456Z",
		`"2024-01-15T10:30:20.5"`:            "2024-01-15T10:30:20.500000Z",
		`null`:                               "",
	} {
		var v Time
		if err := json.Unmarshal([]byte(s), &v); err != nil || v.String() != want {
			t.Errorf("%s is %s, %v", s, v, err)
		}
	}
	for _, s := range []string{`"yesterday"`, `5`, `""`, `{}`} {
		var v Time
		if json.Unmarshal([]byte(s), &v) == nil {
			t.Errorf("%s is %s", s, v)
		}
	}
}

// The last lines of a log with a huge one among them are found in proportion to
// its length. It measures memory and so runs alone.
func TestBackwardOverAHugeLine(t *testing.T) {
	data := []byte("first\n" + strings.Repeat("x", 8<<20) + "\nlast\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	err := Back(bytes.NewReader(data), int64(len(data)), func(_ int64, b []byte) bool { n++; return true })
	runtime.ReadMemStats(&after)
	if n != 3 || err != nil {
		t.Errorf("%d lines, %v", n, err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 6*uint64(len(data)) {
		t.Errorf("%d bytes of memory for %d bytes", used, len(data))
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ object, other, want string }{
		{`{}`, `{}`, `{}`},
		{`{"a":1}`, `{"a":2,"b":"<&>"}`, `{"a":1,"b":"<&>"}`},
		{`{"a":{"x":1},"c":null}`, "{ \"a\": {\"y\" : 9007199254740993},\n \"c\": [1, 2] }", `{"a":{"x":1,"y":9007199254740993},"c":null}`},
		{`{"a":1}`, `{"b":1,"b":2}`, `{"a":1,"b":2}`},
	} {
		got, err := Keep([]byte(c.object), []byte(c.other))
		if err != nil || string(got) != c.want {
			t.Errorf("%s with %s: %s, %v", c.object, c.other, got, err)
		}
	}
	for _, bad := range []string{"", "[1]", "{", `"a"`} {
		if got, err := Keep([]byte(`{"a":1}`), []byte(bad)); err == nil {
			t.Errorf("%q: %s", bad, got)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"2024-01-15T10:30:01Z", "2024-01-15T10:30:01.000Z", "2024-01-15T10:30:01.000000Z", "2024-01-15T19:30:01+09:00", "2024-01-15T10:30:01", "2024-01-15 10:30:01"} {
		if got, err := Parse(s); err != nil || got.String() != "2024-01-15T10:30:01.000000Z" {
			t.Errorf("%q: %s, %v", s, got, err)
		}
	}
	if got, err := Parse("yesterday"); err == nil || !got.IsZero() {
		t.Errorf("%v", got)
	}
}
