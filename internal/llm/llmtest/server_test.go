package llmtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// post sends messages to the server and returns what came.
func post(t *testing.T, s *Server, stream bool, messages string) (string, error) {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","stream":%t,"stream_options":{"include_usage":true},"messages":[%s]}`, stream, messages)
	res, err := http.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	return string(raw), err
}

const said = `,{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","tool_call_id":"x","content":"ok"}`

func TestLoopDecidesByTheMessages(t *testing.T) {
	t.Parallel()
	s := NewServer(t, Loop(2, "bash", `{"command":"echo {{turn}}"}`, "the end"))
	const first = `{"role":"user","content":"go"}`
	for _, stream := range []bool{true, false} {
		for turns, want := range map[int]string{0: "echo 1", 1: "echo 2", 2: "the end"} {
			got, err := post(t, s, stream, first+strings.Repeat(said, turns))
			got = strings.NewReplacer(`"}}]},"finish_reason":null,"index":0,"logprobs":null}]`, "", "\n", "").Replace(got)
			if err != nil || !stream && !strings.Contains(got, want) {
				t.Errorf("turn %d: %v %s", turns, err, got)
			}
			if stream && !strings.HasSuffix(got, "data: [DONE]") {
				t.Errorf("turn %d: the stream has no end: %s", turns, got)
			}
		}
	}
	if n := len(s.Requests()); n != 6 {
		t.Errorf("%d requests", n)
	}
}

// spy is a test that fails without failing.
type spy struct {
	testing.TB
	failed bool
	after  []func()
}

func (s *spy) Cleanup(f func()) { s.after = append(s.after, f) }

// cleaned runs f as a test, with its cleanup.
func (s *spy) cleaned(f func()) {
	f()
	for _, after := range s.after {
		after()
	}
}

func (s *spy) Helper()               {}
func (s *spy) Errorf(string, ...any) { s.failed = true }

func TestCheckPrefixCanFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		then string
		fail bool
	}{{`[{"a":1},{"b":2}]`, false}, {`[{"a":1}]`, false}, {`[{"a":2},{"b":2}]`, true}, {`[]`, true}, {`[ {"a":1}]`, true}} {
		tb := &spy{TB: t}
		CheckPrefix(tb, []Request{{Raw: []byte(`[{"a":1}]`)}, {Raw: []byte(c.then)}})
		if tb.failed != c.fail {
			t.Errorf("%s: failed %v", c.then, tb.failed)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const user = `{"role":"user","content":"go"}`
	s := NewServer(t, Sequence(Answer{Text: "hello", Cut: 40}, Answer{Body: "<html>", ContentType: "text/html", Status: 502}, Answer{Text: "fine"}))
	if got, err := post(t, s, true, user); err == nil || len(got) != 40 {
		t.Errorf("cut: %d bytes, %v", len(got), err)
	}
	if got, err := post(t, s, true, user); err != nil || got != "<html>" {
		t.Errorf("body: %q, %v", got, err)
	}
	for range 2 { // the last answer stays
		if got, err := post(t, s, false, user); err != nil || !strings.Contains(got, `"content":"fine"`) {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := post(t, s, true, `{`); err != nil || !strings.Contains(got, "cannot parse") || len(s.Requests()) != 4 {
		t.Errorf("%q, %v", got, err)
	}
	if r := s.Requests()[0]; !r.Stream || !r.Usage || r.Model != "m" || !bytes.Equal(r.Raw, []byte("["+user+"]")) || r.Turn() != 0 {
		t.Errorf("recorded %+v", r)
	}
}

func TestPieces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		size int
		want int
	}{{"", 1, 0}, {"abc", 1, 3}, {"日本語", 1, 3}, {"日本語", 4, 2}, {strings.Repeat("x", 33), 0, 3}} {
		got := pieces(c.text, c.size)
		if len(got) != c.want || strings.Join(got, "") != c.text {
			t.Errorf("%q by %d: %q", c.text, c.size, got)
		}
	}
}
