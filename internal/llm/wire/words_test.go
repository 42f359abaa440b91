package wire

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// TestWordsOfServers: what model servers say in their own way.
func TestWordsOfServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		says   string
		kind   llm.ErrorKind
	}{
		{400, `registry.ollama.ai/library/gemma3:4b does not support tools`, llm.KindNoTools},
		{400, `"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`, llm.KindNoTools},
		{500, `tools param requires --jinja flag`, llm.KindNoTools},
		{404, `No endpoints found that support tool use. Try disabling "bash".`, llm.KindNoTools},
		{400, `Invalid schema for function 'f'`, llm.KindNoTools},
		{400, `The model has crashed without additional information. (Exit code: 6)`, llm.KindServer},
		{400, `Model unloaded.`, llm.KindServer},
		{400, `No models loaded. Please load a model in the developer page`, llm.KindNotFound},
		{400, `The decoder prompt (length 9000) is longer than the maximum model length of 8192`, llm.KindContext},
		{400, `The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)`, llm.KindContext},
		{400, `This model's maximum prompt length is 131072 but the request contains 140000 tokens`, llm.KindContext},
		{500, `model "m" not found, try pulling it first`, llm.KindNotFound},
		{499, `request canceled`, llm.KindServer},
		{401, `The access token is too long or has expired: maximum context length of tokens`, llm.KindAuth}, // of another kind of token
		{403, `token exceeds the maximum number of tokens allowed`, llm.KindAuth},
		{429, `you (me) have reached your weekly usage limit, upgrade for higher limits`, llm.KindQuota},
		{429, `Rate limit exceeded: usage limit of 10 requests per minute`, llm.KindRateLimited},
		{400, `prompt too long; exceeded max context length by 4 tokens`, llm.KindContext},
		{400, `The reasoning_content in the thinking mode must be passed back to the API.`, llm.KindBadRequest},
		{400, `Error rendering prompt with jinja template`, llm.KindBadRequest},
	} {
		if got := classify(c.status, problem{message: c.says}); got != c.kind {
			t.Errorf("%d %s: %s", c.status, c.says, got)
		}
	}
}

// What happened here is said in the reader's language; only a server speaks its own.
func TestOurWordsAreTranslated(t *testing.T) {
	t.Parallel()
	l := newLimits(time.Second, 2*time.Second, 3*time.Second, 4*time.Second)
	failures := []*llm.Error{Cut(), TooLong(5), Invalid("1", "2", []byte("3"))}
	for _, late := range []*lateError{l.connect, l.first, l.stall, l.alive, l.tail, l.call} {
		failures = append(failures, &llm.Error{Kind: late.kind, Message: late.Error(), Err: late})
	}
	for _, e := range failures {
		if got := e.Explain(i18n.Japanese); regexp.MustCompile(`[a-z]{3}`).MatchString(got) || !errors.As(e.Err, new(*i18n.Error)) {
			t.Error(got)
		}
	}
	moved := &http.Response{StatusCode: 308, Header: http.Header{"Location": {"https://example.com/v1"}}}
	if got := statusError(moved, strings.NewReader(""), time.Now()).Explain(i18n.Japanese); !strings.Contains(got, "へ転送しています") {
		t.Error(got)
	}
}
