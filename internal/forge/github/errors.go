package github

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// refused explains an answer that is an error.
func (d *call) refused(a *rest.Answer) error {
	e := &github.ErrorResponse{}
	if json.Unmarshal(a.Text, e) != nil {
		e = &github.ErrorResponse{}
	}
	e.Response = a.Response
	if a.Header.Get(noToken) != "" {
		return d.noToken(e)
	}
	if a.StatusCode == http.StatusUnauthorized && d.lost != nil {
		d.lost() // the installation's token was revoked; the next call gets another
	}
	return d.Answered(a.StatusCode, message(e), i18n.E("github.advice_unauthorized"), permission(e), e)
}

// noToken explains why the App has no token for its installation.
func (d *call) noToken(e *github.ErrorResponse) error {
	status := e.Response.StatusCode
	if status >= 500 || status == http.StatusUnauthorized {
		return d.Answered(status, message(e), i18n.E("github.advice_app"), nil, e)
	}
	if d.lost != nil {
		d.lost()
	}
	return d.Failed(forge.Forbidden, status, i18n.E("rest.said", d.Name, status, message(e)), i18n.E("github.advice_installation"), e)
}

// permission says what the credential lacks, as far as GitHub tells.
func permission(e *github.ErrorResponse) *i18n.Error {
	h := e.Response.Header
	if _, url, ok := strings.Cut(h.Get("X-GitHub-SSO"), "url="); ok {
		return i18n.E("github.advice_sso", rest.OneLine(url))
	}
	if h.Get("X-GitHub-SSO") != "" || strings.Contains(e.Message, "SAML") {
		return i18n.E("github.advice_sso", "https://github.com/settings/tokens")
	}
	// "issues=write; pull_requests=write" and "repo, public_repo": one of either.
	if p := h.Get("X-Accepted-GitHub-Permissions"); p != "" && strings.Contains(e.Message, "not accessible") {
		return i18n.E("github.advice_permission", rest.OneLine(p))
	}
	if scopes := h.Get("X-Accepted-OAuth-Scopes"); scopes != "" && len(h.Values("X-OAuth-Scopes")) > 0 && !granted(h.Get("X-OAuth-Scopes"), scopes) {
		return i18n.E("github.advice_scope", rest.OneLine(scopes))
	}
	return i18n.E("github.advice_forbidden")
}

func granted(have, accepted string) bool {
	for h := range strings.SplitSeq(have, ",") {
		for a := range strings.SplitSeq(accepted, ",") {
			if h = strings.TrimSpace(h); h != "" && h == strings.TrimSpace(a) {
				return true
			}
		}
	}
	return false
}

// message is what GitHub says, in one line: its sentence and what it holds
// against each field.
func message(e *github.ErrorResponse) string {
	parts := []string{e.Message}
	for _, f := range e.Errors {
		switch {
		case f.Message != "":
			parts = append(parts, f.Message)
		case f.Code != "":
			parts = append(parts, strings.TrimSpace(f.Field+" "+f.Code))
		}
	}
	return rest.OneLine(strings.Join(parts, "; "))
}

// said reports whether an error is GitHub's refusal of that status with one of
// the texts in it; case does not matter.
func said(err error, status int, texts ...string) bool {
	var e *github.ErrorResponse
	if !errors.As(err, &e) || e.Response.StatusCode != status {
		return false
	}
	m := strings.ToLower(message(e))
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(m, t) })
}
