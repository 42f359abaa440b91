package ollama

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// statusError classifies an answer that is no success.
func (w *caller) statusError(res *http.Response, body io.Reader) *llm.Error {
	raw, err := io.ReadAll(io.LimitReader(body, maxError))
	message := problem(raw)
	if to := res.Header.Get("Location"); to != "" && res.StatusCode < 400 {
		message = "the server redirects to " + wire.Endpoint(to) + "; use that as base_url"
	}
	if message == "" {
		message = http.StatusText(res.StatusCode)
	}
	return &llm.Error{
		Kind: classify(res.StatusCode, message), Message: message,
		RetryAfter: retryAfter(res.Header, w.now()), Err: err,
	}
}

// streamError classifies an error line inside an answer of status 200. The
// request was accepted, so the fault is the server's where its words say nothing else.
func streamError(line []byte) *llm.Error {
	message := problem(line)
	return &llm.Error{Kind: classify(http.StatusInternalServerError, message), Message: message}
}

// problem reads an error's body: {"error":"…"}, where a gateway stands in
// between {"error":{"message":"…"}}, or plain text.
func problem(raw []byte) string {
	var body struct {
		Error, Message json.RawMessage
		SigninURL      string `json:"signin_url"`
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &body) != nil {
		return short(string(raw))
	}
	for _, field := range []json.RawMessage{body.Error, body.Message} {
		var text string
		switch {
		case !told(field):
			continue
		case json.Unmarshal(field, &text) != nil:
			var inner struct{ Message string }
			if _ = json.Unmarshal(field, &inner); inner.Message != "" {
				text = inner.Message
			} else {
				text = string(field)
			}
		}
		if body.SigninURL != "" {
			text += " (sign in: " + body.SigninURL + ")"
		}
		return short(text)
	}
	return short(string(raw))
}

// contextSigns are how Ollama, its runners and gateways say that a request is
// too long for the model.
var contextSigns = []string{
	"context_length_exceeded", "context length", "context window", "context size", "exceed_context_size",
	"prompt is too long", "prompt too long", "input is too long",
}

var quotaSigns = []string{"insufficient_quota", "exceeded your current quota", "insufficient balance", "usage limit"}

// classify turns a status and the server's words into a kind. Words decide
// only within a status that leaves it open.
// Source: handleScheduleError and ChatHandler of Ollama.
func classify(status int, message string) llm.ErrorKind {
	words := strings.ToLower(message)
	switch {
	case status == http.StatusPaymentRequired, containsAny(words, quotaSigns):
		return llm.KindQuota
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return llm.KindAuth
	case status == http.StatusTooManyRequests:
		return llm.KindRateLimited
	case status == http.StatusRequestEntityTooLarge, containsAny(words, contextSigns):
		return llm.KindContext
	case strings.Contains(words, "does not support tools"):
		return llm.KindNoTools
	case status == http.StatusNotFound, status < 400, strings.Contains(words, "try pulling"):
		return llm.KindNotFound
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return llm.KindTimeout
	case status >= 500, status == 499: // 499: Ollama gave the request up, e.g. while it reloads
		return llm.KindServer
	}
	return llm.KindBadRequest
}

func containsAny(s string, signs []string) bool {
	for _, sign := range signs {
		if strings.Contains(s, sign) {
			return true
		}
	}
	return false
}
