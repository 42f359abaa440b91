package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm"
)

// TestStringIsJSON: whatever is encoded decodes to itself, made valid.
func TestStringIsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		var out string
		raw := AppendString(nil, in)
		if err := json.Unmarshal(raw, &out); err != nil || !utf8.Valid(raw) {
			t.Fatalf("%q: %v", raw, err)
		}
		if want := string([]rune(in)); out != want {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

func TestErrorBodies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("長い", 400)
	for _, c := range []struct {
		status     int
		body, says string
		kind       llm.ErrorKind
	}{
		{400, `{"error":{"message":"m","type":"invalid_request_error","code":null}}`, "m", llm.KindBadRequest},
		{404, `{"error":"model \"x\" not found, try pulling it first"}`, `model "x" not found`, llm.KindNotFound},
		{429, `{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"x is rate-limited upstream"}}}`, "Provider returned error: x is rate-limited", llm.KindRateLimited},
		{400, `{"error":{"code":"tool_use_failed","message":"Tool call validation failed"}}`, "Tool call", llm.KindInvalid},
		{400, `{"object":"error","message":"This model's maximum context length is 10 tokens","type":"BadRequestError","code":400}`, "maximum", llm.KindContext},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, "exceeds", llm.KindContext},
		{500, `{"error":"Trying to keep the first 9 tokens when the context overflows; loaded with context length of only 5"}`, "Trying", llm.KindContext},
		{422, `{"detail":[{"msg":"field required"}]}`, "field required", llm.KindBadRequest},
		{422, `{"detail":"wrong"}`, "wrong", llm.KindBadRequest},
		{400, `[{"error":{"message":"API key not valid","code":"invalid_api_key"}}]`, "API key", llm.KindAuth},
		{401, `{"error":"unauthorized","signin_url":"https://ollama.com/connect?x"}`, "unauthorized (sign in: https://ollama.com/connect?x)", llm.KindAuth},
		{402, `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`, "Insufficient", llm.KindQuota},
		{403, `{"error":{"message":"credit balance is too low"}}`, "credit", llm.KindQuota},
		{413, `{"error":{"message":"Request too large for tokens per minute","code":"rate_limit_exceeded"}}`, "Request", llm.KindContext},
		{502, "<html>\n <h1>Bad   Gateway</h1></html>", "<html> <h1>Bad Gateway</h1></html>", llm.KindServer},
		{503, "", "Service Unavailable", llm.KindServer},
		{504, "", "Gateway Timeout", llm.KindTimeout},
		{498, "capacity", "capacity", llm.KindRateLimited},
		{500, long, "長い…", llm.KindServer},
		{500, `"text"`, "text", llm.KindServer},
		{500, `{"error":{"error":{"error":{"error":{"error":{}}}}}}`, "{", llm.KindServer},
		{500, "\xff\xfe", "\uFFFD", llm.KindServer},
	} {
		e := statusError(&http.Response{StatusCode: c.status}, strings.NewReader(c.body), time.Now())
		if e.Kind != c.kind || !strings.Contains(e.Message, c.says) || len(e.Message) > 510 || !utf8.ValidString(e.Message) {
			t.Errorf("%d %.60s: %s, %q", c.status, c.body, e.Kind, e.Message)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second}, {"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", "Fri, 02 Jan 2026 03:04:35 GMT", 30 * time.Second}, {"Retry-After", "Fri, 02 Jan 2026 03:00:00 GMT", 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond}, {"Retry-After", "-3", 0}, {"Retry-After", "soon", 0},
		{"Retry-After", "NaN", 0}, {"Retry-After", "1e300", 24 * time.Hour}, {"X", "", 0},
	} {
		if got := RetryAfter(http.Header{c.header: {c.value}}, now); got != c.want {
			t.Errorf("%s: %s is %s", c.header, c.value, got)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"http://h:1/v1/": "http://h:1/v1/call", "https://h/v1/call?x=1#f": "https://h/v1/call?x=1", " https://u:p@h ": "https://u:p@h/call",
		"h:1": "", "ftp://h": "", "http://": "", "": "",
	} {
		u, err := Resolve("p", base, "call", "/call", "/other")
		if want == "" && err == nil || want != "" && (err != nil || u.String() != want) {
			t.Errorf("%q: %v, %v", base, u, err)
		}
	}
}

// TestBody: parts are read as one, by pieces of any size, as often as asked.
func TestBody(t *testing.T) {
	t.Parallel()
	u, err := Resolve("p", "http://h", "call")
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Provider: "p", URL: u})
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "parts")
		if rapid.Bool().Draw(t, "large") {
			parts = append(parts, bytes.Repeat([]byte("x"), smallBody))
		}
		req, err := c.Post(context.Background(), parts...)
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Join(parts, nil)
		again, err := req.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(iotest.OneByteReader(req.Body))
		if err != nil || !bytes.Equal(got, want) || req.ContentLength != int64(len(want)) {
			t.Fatalf("%v, %q, length %d", err, got, req.ContentLength)
		}
		if err := iotest.TestReader(again, want); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	for body, kind := range map[string]llm.ErrorKind{
		`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`: llm.KindServer,
		`{"type":"error","error":{"type":"rate_limit_error","message":"m"}}`: llm.KindRateLimited,
		`{"error":{"type":"billing_error","message":"m"}}`:                   llm.KindQuota,
		`{"message":"m","code":"429"}`:                                       llm.KindRateLimited,
		`{"message":"You have reached your specified API usage limits. You will regain access on 2026-01-01.","type":"invalid_request_error"}`: llm.KindQuota,
		`"m"`: llm.KindServer,
	} {
		if e := StreamError([]byte(body)); e.Kind != kind || e.Message == "" {
			t.Errorf("%s: %v", body, e)
		}
	}
}

// FuzzEvents: a stream read byte by byte is the same stream, within its limit.
func FuzzEvents(f *testing.F) {
	f.Add("event: a\ndata: {\"x\":1}\n\ndata: b\ndata: c\n\n")
	f.Add("data:{}\ndata:{}\r\n: ping\nid: 1\nstray\n{\"error\":1}")
	f.Fuzz(func(t *testing.T, stream string) {
		defer disktest.Bounded(t, len(stream))()
		all := func(r io.Reader) (out []string, err error) {
			s := NewEvents(bufio.NewReaderSize(r, 16), 64)
			for {
				data, err := s.Read()
				if err != nil {
					return append(out, s.Stray), err
				}
				if len(data) > 64 {
					t.Fatalf("an event of %d bytes", len(data))
				}
				out = append(out, s.Name+" "+string(data))
			}
		}
		one, err := all(strings.NewReader(stream))
		two, err2 := all(iotest.OneByteReader(strings.NewReader(stream)))
		if fmt.Sprint(one, err) != fmt.Sprint(two, err2) {
			t.Fatalf("%q, %v\n%q, %v", one, err, two, err2)
		}
	})
}
