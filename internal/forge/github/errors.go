package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
)

// explain makes a *forge.Error of an error of a request; one of ctx stays what it is.
func (d *call) explain(ctx context.Context, err error) error {
	var tok *tokenRefused
	var answer *github.ErrorResponse
	var otp *github.TwoFactorAuthError
	var moved *github.RedirectionError
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &tok):
		return d.noToken(tok)
	case errors.As(err, &otp):
		return d.answered((*github.ErrorResponse)(otp))
	case errors.As(err, &answer):
		return d.answered(answer)
	case errors.As(err, &moved):
		return d.Elsewhere(err)
	case errors.Is(err, github.ErrPathForbidden):
		return d.Unknown()
	}
	return d.Explain(ctx, err)
}

// noToken explains why the App has no token for its installation.
func (d *call) noToken(t *tokenRefused) error {
	if t.status >= 500 || t.status == http.StatusUnauthorized {
		return d.Answered(t.status, t.message, i18n.E("github.advice_app"), nil, t)
	}
	if d.lost != nil {
		d.lost()
	}
	return d.Failed(forge.Forbidden, t.status, i18n.E("rest.said", d.Name, t.status, t.message), i18n.E("github.advice_installation"), t)
}

// answered explains an answer that is an error.
func (d *call) answered(e *github.ErrorResponse) error {
	status := e.Response.StatusCode
	if status == http.StatusUnauthorized && d.lost != nil {
		d.lost() // the installation's token was revoked; the next call gets another
	}
	return d.Answered(status, message(e), i18n.E("github.advice_unauthorized"), permission(e), e)
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

func messageOf(body []byte) string {
	var e struct{ Message string }
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	return rest.OneLine(e.Message)
}

// tokenRefused is GitHub's refusal to give an installation of the App a token.
type tokenRefused struct {
	status  int
	message string
}

func (e *tokenRefused) Error() string {
	return fmt.Sprintf("no token for the installation: %d %s", e.status, e.message)
}

// Passing tells the line whether to ask again.
func (e *tokenRefused) Passing() bool { return e.status >= 500 }

// said reports whether an error is GitHub's refusal of that status with one of
// the texts in it; case does not matter.
func said(err error, status int, texts ...string) bool {
	var e *github.ErrorResponse
	if !errors.As(err, &e) || e.Response.StatusCode != status {
		return false
	}
	m := strings.ToLower(message(e))
	for _, t := range texts {
		if strings.Contains(m, t) {
			return true
		}
	}
	return false
}
