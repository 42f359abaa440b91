package llm_test

import (
	"errors"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// Every kind of failure has words in both languages; what the provider says,
// and what is an error with words of its own, follow.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, k := range []llm.ErrorKind{llm.KindUnreachable, llm.KindTimeout, llm.KindRateLimited, llm.KindServer, llm.KindCutStream, llm.KindInvalid, llm.KindAuth, llm.KindNotFound,
		llm.KindContext, llm.KindBadRequest, llm.KindQuota, llm.KindNoTools, llm.KindSuspended, llm.KindForbidden, llm.KindScriptEnded} {
		e := &llm.Error{Kind: k, Provider: "openai", Endpoint: "http://h", Status: 500, Attempts: 3, Message: "their words"}
		en, ja := e.Explain(i18n.English), e.Explain(i18n.Japanese)
		if en == ja || strings.Contains(en+ja, "llm.") && k != llm.KindNoTools || strings.Contains(en+ja, "%!") || !strings.Contains(en, "http://h") || !strings.HasSuffix(ja, ": their words") {
			t.Errorf("%s\n%s", en, ja)
		}
	}
	own := i18n.E("models.remote", "m", "h")
	e := &llm.Error{Kind: llm.KindForbidden, Provider: "ollama", Message: own.Error(), Err: own}
	if ja := e.Explain(i18n.Japanese); !strings.Contains(ja, "クラウド") {
		t.Error(ja)
	}
	plain := &llm.Error{Kind: llm.KindAuth, Provider: "p", Err: errors.New("x")}
	if got := plain.Explain(i18n.English); got != "p refused the key; check the api_key of its section in the settings" {
		t.Error(got)
	}
}
