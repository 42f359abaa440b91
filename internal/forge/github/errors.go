package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v88/github"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// failed makes the error of a call: what GitHub said, and what to do.
func (d *call) failed(kind forge.Kind, status int, said, advice, cause error) *forge.Error {
	repo := d.repo
	if repo == "" {
		repo = "GitHub"
	}
	e := i18n.E("github.failed", d.what, repo, said, advice)
	e.Err = cause
	return &forge.Error{Kind: kind, Status: status, Err: e}
}

// explain makes a *forge.Error of an error of a request; one of ctx stays what it is.
func (d *call) explain(ctx context.Context, err error) error {
	var lim *limited
	var tok *tokenRefused
	var answer *github.ErrorResponse
	var otp *github.TwoFactorAuthError
	var moved *github.RedirectionError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", d.failed(forge.Unavailable, 0, i18n.E("github.said_nothing"), i18n.E("github.advice_unavailable"), nil).Err, context.Cause(ctx))
	case errors.As(err, &lim):
		return d.rate(lim)
	case errors.As(err, &tok):
		return d.noToken(tok)
	case errors.As(err, &otp):
		return d.answered((*github.ErrorResponse)(otp))
	case errors.As(err, &answer):
		return d.answered(answer)
	case errors.Is(err, errForeign), errors.As(err, &moved):
		return d.failed(forge.Unavailable, 0, i18n.E("github.said_elsewhere"), i18n.E("github.advice_url"), err)
	case errors.Is(err, github.ErrPathForbidden):
		return d.failed(forge.NotFound, 0, i18n.E("github.said_nothing"), i18n.E("github.advice_not_found"), err)
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return d.failed(forge.Unavailable, 0, i18n.E("github.said_garbage", err), i18n.E("github.advice_url"), err)
	}
	return d.failed(forge.Unavailable, 0, i18n.E("github.said_unreachable", err), i18n.E("github.advice_unavailable"), err)
}

func (d *call) rate(l *limited) error {
	said := "github.said_limited"
	if l.secondary {
		said = "github.said_secondary"
	}
	e := d.failed(forge.RateLimited, l.status, i18n.E(said), i18n.E("github.advice_limited", l.wait.Round(time.Second)), l)
	e.Wait = l.wait
	return e
}

// noToken explains why the App has no token for its installation.
func (d *call) noToken(t *tokenRefused) error {
	said := i18n.E("github.said", t.status, t.message)
	switch {
	case t.status >= 500:
		return d.failed(forge.Unavailable, t.status, said, i18n.E("github.advice_unavailable"), t)
	case t.status == http.StatusUnauthorized:
		return d.failed(forge.Unauthorized, t.status, said, i18n.E("github.advice_app"), t)
	}
	if d.lost != nil {
		d.lost()
	}
	return d.failed(forge.Forbidden, t.status, said, i18n.E("github.advice_installation"), t)
}

// answered explains an answer that is an error.
func (d *call) answered(e *github.ErrorResponse) error {
	status := e.Response.StatusCode
	if status == http.StatusUnauthorized && d.lost != nil {
		d.lost() // the installation's token was revoked; the next call gets another
	}
	kind, advice := judge(status, e)
	return d.failed(kind, status, i18n.E("github.said", status, message(e)), advice, e)
}

func judge(status int, e *github.ErrorResponse) (forge.Kind, *i18n.Error) {
	switch status {
	case http.StatusUnauthorized:
		return forge.Unauthorized, i18n.E("github.advice_unauthorized")
	case http.StatusForbidden:
		return forge.Forbidden, permission(e)
	case http.StatusNotFound, http.StatusUnavailableForLegalReasons:
		return forge.NotFound, i18n.E("github.advice_not_found")
	case http.StatusGone:
		return forge.Gone, i18n.E("github.advice_gone")
	case http.StatusConflict, http.StatusPreconditionFailed:
		return forge.Conflict, i18n.E("github.advice_conflict")
	}
	if status >= 500 {
		return forge.Unavailable, i18n.E("github.advice_unavailable")
	}
	return forge.Invalid, i18n.E("github.advice_invalid")
}

// permission says what the credential lacks, as far as GitHub tells.
func permission(e *github.ErrorResponse) *i18n.Error {
	h := e.Response.Header
	if _, url, ok := strings.Cut(h.Get("X-GitHub-SSO"), "url="); ok {
		return i18n.E("github.advice_sso", oneLine(url))
	}
	if h.Get("X-GitHub-SSO") != "" || strings.Contains(e.Message, "SAML") {
		return i18n.E("github.advice_sso", "https://github.com/settings/tokens")
	}
	// "issues=write; pull_requests=write" and "repo, public_repo": one of either.
	if p := h.Get("X-Accepted-GitHub-Permissions"); p != "" && strings.Contains(e.Message, "not accessible") {
		return i18n.E("github.advice_permission", oneLine(p))
	}
	if scopes := h.Get("X-Accepted-OAuth-Scopes"); scopes != "" && len(h.Values("X-OAuth-Scopes")) > 0 && !granted(h.Get("X-OAuth-Scopes"), scopes) {
		return i18n.E("github.advice_scope", oneLine(scopes))
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
	return oneLine(strings.Join(parts, "; "))
}

func messageOf(body []byte) string {
	var e struct{ Message string }
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	return oneLine(e.Message)
}

// mostSaid bounds what is repeated of GitHub's words, bytes.
const mostSaid = 500

func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), mostSaid)], "")), " ")
	if s == "" {
		return "-"
	}
	return s
}

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
