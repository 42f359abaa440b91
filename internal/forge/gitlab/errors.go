package gitlab

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// refused explains an answer that is an error.
func (d *call) refused(a *rest.Answer) error {
	err, status := gitlab.CheckResponse(a.Response), a.StatusCode
	message := words(err)
	if status == http.StatusMethodNotAllowed && strings.Contains(message, "read-only") {
		// A server that is being moved or mended takes no writes. Source: GitLab docs,
		// "GitLab Maintenance Mode".
		status = http.StatusServiceUnavailable
	}
	return d.Answered(status, message, i18n.E("gitlab.advice_unauthorized"), d.permission(message), err)
}

// words is what GitLab says, without the page that a proxy or a server in maintenance
// answers with.
func words(err error) string {
	var e *gitlab.ErrorResponse
	if !errors.As(err, &e) {
		return "Not Found"
	}
	if strings.HasPrefix(strings.TrimSpace(string(e.Body)), "<") {
		return "HTML"
	}
	return e.Message
}

// permission says what the credential lacks, as far as GitLab tells.
func (d *call) permission(message string) *i18n.Error {
	if strings.Contains(message, "insufficient_scope") {
		return i18n.E("gitlab.advice_scope")
	}
	return cmp.Or(d.forbidden, i18n.E("gitlab.advice_forbidden"))
}

// said reports whether an error is GitLab's refusal of that status with a text in it.
func said(err error, status int, text string) bool {
	var e *forge.Error
	var answer *gitlab.ErrorResponse
	return errors.As(err, &e) && e.Status == status && errors.As(err, &answer) && strings.Contains(answer.Message, text)
}
