package llm

import (
	"strings"

	"toritsugi/internal/i18n"
)

// Explain says what happened, and what to do, in l; what the provider itself
// says follows as it came.
func (e *Error) Explain(l i18n.Lang) string {
	where := strings.TrimSpace(e.Provider + " " + e.Endpoint)
	text := l.T("llm.kind."+string(e.Kind), where)
	if e.Status != 0 {
		text += l.T("llm.status", e.Status)
	}
	if e.Attempts > 1 {
		text += l.T("llm.attempts", e.Attempts)
	}
	message := e.Message
	if e.Err != nil && message == e.Err.Error() {
		message = l.Error(e.Err)
	}
	if message == "" {
		return text
	}
	return text + ": " + message
}
