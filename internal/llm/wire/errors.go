package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// problem is what a vendor says of a failure.
type problem struct {
	message, kind, code string
}

// statusError classifies an answer that is no success.
func statusError(res *http.Response, body io.Reader, now time.Time) *llm.Error {
	raw, err := io.ReadAll(io.LimitReader(body, MaxError))
	p := parseProblem(raw)
	if to := res.Header.Get("Location"); to != "" && res.StatusCode < 400 {
		moved := told(classify(res.StatusCode, p), i18n.E("llm.redirects", Endpoint(to)))
		moved.RetryAfter = RetryAfter(res.Header, now)
		return moved
	}
	p.message = cmp.Or(p.message, http.StatusText(res.StatusCode))
	return &llm.Error{
		Kind: classify(res.StatusCode, p), Message: p.message,
		RetryAfter: RetryAfter(res.Header, now), Err: err,
	}
}

// statusOf is the status that a kind of error has where it comes as an answer
// of its own. Source: "Errors" of Anthropic's API, which others follow.
var statusOf = map[string]int{
	"invalid_request_error": http.StatusBadRequest,
	"BadRequestError":       http.StatusBadRequest,
	"authentication_error":  http.StatusUnauthorized,
	"billing_error":         http.StatusPaymentRequired,
	"permission_error":      http.StatusForbidden,
	"not_found_error":       http.StatusNotFound,
	"request_too_large":     http.StatusRequestEntityTooLarge,
	"rate_limit_error":      http.StatusTooManyRequests,
	"timeout_error":         http.StatusGatewayTimeout,
}

// StreamError classifies an error that came inside an answer of status 200. It
// takes the same shapes as the body of one of its own.
func StreamError(raw json.RawMessage) *llm.Error {
	p := parseProblem(raw)
	status, err := strconv.Atoi(p.code)
	if err != nil || status < 400 || status > 599 {
		if status = statusOf[p.kind]; status == 0 { // the request was accepted, so the fault is the server's
			status = http.StatusInternalServerError
		}
	}
	return &llm.Error{Kind: classify(status, p), Message: p.message}
}

// parseProblem reads an error's body in the shapes that servers use:
// {"error":{…}}, {"error":"…"}, [{"error":…}], {"message":…}, {"detail":…} or
// plain text.
func parseProblem(raw []byte) problem { return parseNested(raw[:min(len(raw), MaxError)], 4) }

func parseNested(raw []byte, depth int) problem {
	text := strings.TrimSpace(string(raw))
	if depth == 0 || text == "" {
		return problem{message: Short(text)}
	}
	var list []json.RawMessage
	if text[0] == '[' && json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return parseNested(list[0], depth-1)
	}
	var body struct {
		Error, Message, Detail, Type, Code, Metadata json.RawMessage
		SigninURL                                    string `json:"signin_url"` // Ollama
	}
	if text[0] != '{' || json.Unmarshal(raw, &body) != nil {
		return problem{message: Short(LooseText(raw))}
	}
	if Given(body.Error) {
		p := parseNested(body.Error, depth-1)
		p.message = cmp.Or(p.message, Short(LooseText(body.Message)))
		if body.SigninURL != "" {
			p.message += " (sign in: " + Short(body.SigninURL) + ")"
		}
		return p
	}
	p := problem{kind: LooseText(body.Type), code: LooseText(body.Code)}
	for _, field := range []json.RawMessage{body.Message, body.Detail, raw} {
		if p.message = LooseText(field); p.message != "" {
			break
		}
	}
	var behind struct{ Raw json.RawMessage } // OpenRouter: what the provider behind it said
	if Given(body.Metadata) && json.Unmarshal(body.Metadata, &behind) == nil && Given(behind.Raw) {
		p.message += ": " + LooseText(behind.Raw)
	}
	p.message = Short(p.message)
	return p
}

// Short makes a server's words one line of at most 500 bytes.
func Short(s string) string {
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s[:min(len(s), 4096)]), " "), "\uFFFD")
	if len(s) <= 500 {
		return s
	}
	n := 500
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// contextSigns are how servers say that a request is too long for the model.
var contextSigns = []string{
	"context_length_exceeded", "maximum context length", "context window", "context length", "context size",
	"exceed_context_size", "exceed context limit", "prompt is too long", "prompt too long", "input is too long",
	"maximum model length", "maximum prompt length", "exceeds the maximum number of tokens", "`max_new_tokens` must be <=", // vLLM, xAI, Gemini, Together
}

// toolSigns are how endpoints say that a model takes no tools: Ollama, vLLM,
// llama.cpp, OpenRouter, others.
var toolSigns = []string{
	"does not support tools", "does not support tool", "doesn't support tool", "do not support tool",
	"--enable-auto-tool-choice", "tools param requires --jinja", "endpoints found that support tool use",
	"does not support function calling", "function calling is not enabled", "function calling is not supported",
	"tool use is not supported", "tools is not supported", "tools are not supported", "tool calling is not supported",
	"unsupported parameter: 'tools'", "unrecognized request argument supplied: tools",

	// Nor does one take these tools that names the form of their arguments: a word of
	// a schema that it does not know is refused with 400, 422 or 500 (Ollama, llama.cpp,
	// vLLM, OpenAI, Anthropic, Gemini), and would be each time.
	"json schema", "failed to parse grammar", "schema conversion failed", "failed to initialize samplers",
	"chatrequest.tools", "chatcompletionrequest.tools", "invalid_function_parameters", "invalid schema for function", ".input_schema", "function_declarations",
}

// crashSigns are how LM Studio says, with status 400, that the fault is its own.
var crashSigns = []string{"model has crashed", "model unloaded", "model has unexpectedly stopped"}

var quotaSigns = []string{
	"insufficient_quota", "exceeded your current quota", "insufficient balance", "insufficient credits",
	"billing_hard_limit_reached", "credit balance is too low", "billing_error", "reached your specified api usage limits",
	"reached your usage limit", "session usage limit", "hourly usage limit", "weekly usage limit", // Ollama's cloud
}

// classify turns a status and the vendor's words into a kind. Words decide
// only within a status that leaves it open.
func classify(status int, p problem) llm.ErrorKind {
	words := strings.ToLower(p.code + " " + p.kind + " " + p.message)
	switch {
	case status == http.StatusPaymentRequired, containsAny(words, quotaSigns):
		return llm.KindQuota
	case status == http.StatusUnauthorized, status == http.StatusForbidden, p.code == "invalid_api_key":
		return llm.KindAuth
	case status == http.StatusTooManyRequests, status == 498, p.code == "rate_limit_exceeded" && status != http.StatusRequestEntityTooLarge: // 498: Groq, no capacity
		return llm.KindRateLimited
	case status == http.StatusRequestEntityTooLarge, containsAny(words, contextSigns):
		return llm.KindContext
	case containsAny(words, toolSigns): // with 400, but also 404 (OpenRouter) and 500 (llama.cpp)
		return llm.KindNoTools
	case status == http.StatusBadRequest && containsAny(words, crashSigns):
		return llm.KindServer
	case status == http.StatusBadRequest && strings.Contains(words, "no models loaded"): // LM Studio
		return llm.KindNotFound
	case status == http.StatusNotFound, status < 400, p.code == "model_not_found", strings.Contains(words, "try pulling"): // Ollama
		return llm.KindNotFound
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return llm.KindTimeout
	case status >= 500, status == http.StatusConflict, status == http.StatusTooEarly, status == 499: // Ollama gave the request up, e.g. while it reloads
		return llm.KindServer
	case p.code == "tool_use_failed": // Groq: the model wrote a call that Groq could not parse; it may not next time
		return llm.KindInvalid
	}
	return llm.KindBadRequest
}

func containsAny(s string, signs []string) bool {
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(s, sign) })
}

// Sleep waits for d or until ctx ends, whose error it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RetryAfter is how long the server asks to wait, 0 where it does not.
// Source: RFC 9110 §10.2.3 (seconds or a date); retry-after-ms is OpenAI's.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms, time.Millisecond)
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return duration(s, time.Second)
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// duration is n units, within a day; no server means more.
func duration(n float64, unit time.Duration) time.Duration {
	if !(n > 0) { // also where n is no number
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(24*time.Hour)))
}
