package wire

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

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
		if got := retryAfter(http.Header{c.header: {c.value}}, now); got != c.want {
			t.Errorf("%s: %s is %s", c.header, c.value, got)
		}
	}
}
