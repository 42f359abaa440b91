package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// Server is a server of which errors speak.
type Server struct {
	Name    string // "GitHub"
	Setting string // the section of its settings: "github"
}

// Call is one thing that is asked of one repository; its errors say which.
type Call struct {
	Server
	Repo string      // "" for the server itself
	What *i18n.Error // "Reading #12"
	API  *API
	// Refused explains an answer that is an error.
	Refused func(*Answer) error
}

// Failed makes the error of a call: what the server said, and what to do.
func (d *Call) Failed(kind forge.Kind, status int, said, advice, cause error) *forge.Error {
	return &forge.Error{Kind: kind, Status: status, Err: i18n.E("rest.failed", d.What, cmp.Or(d.Repo, d.Name), said, advice).Of(cause)}
}

// Unknown is the error of what cannot be there.
func (d *Call) Unknown() *forge.Error {
	return d.Failed(forge.NotFound, 0, i18n.E("rest.said_nothing", d.Name), i18n.E("rest.advice_not_found"), nil)
}

// BadMarker is the error of a marker that cannot be hidden in a text.
func (d *Call) BadMarker(marker string) *forge.Error {
	return d.Failed(forge.Invalid, 0, i18n.E("rest.said_marker", marker), i18n.E("rest.advice_invalid", d.Name), nil)
}

// NoCommit is the error of what is no commit.
func (d *Call) NoCommit() *forge.Error {
	return d.Failed(forge.NotFound, 0, i18n.E("rest.said_no_commit"), i18n.E("rest.advice_not_found"), nil)
}

// Moved is the error of an item that lies elsewhere by now.
func (d *Call) Moved(url string) *forge.Error {
	return d.Failed(forge.Gone, http.StatusMovedPermanently, i18n.E("rest.said_moved", url), i18n.E("rest.advice_gone"), nil)
}

// Number is the number of an item; an error of kind NotFound for what is none.
func (d *Call) Number(id string) (int, error) {
	n, err := strconv.Atoi(id)
	if err != nil || n < 1 || strconv.Itoa(n) != id {
		return 0, d.Failed(forge.NotFound, 0, i18n.E("rest.said_no_number"), i18n.E("rest.advice_not_found"), nil)
	}
	return n, nil
}

// IsRepo reports whether a name can be a repository's: parts that a path steps over are none.
func IsRepo(r forge.Repo) bool {
	if r.Name == "" || strings.ContainsAny(r.Name, "/\\") {
		return false
	}
	for part := range strings.SplitSeq(r.String(), "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// Explain makes a *forge.Error of an error that no answer of the server is; one of ctx
// stays what it is.
func (d *Call) Explain(ctx context.Context, err error) error {
	var lim *Limited
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", d.Failed(forge.Unavailable, 0, i18n.E("rest.said_nothing", d.Name), d.later(), nil).Err, context.Cause(ctx))
	case errors.As(err, &lim):
		return d.Limited(lim)
	case errors.Is(err, ErrForeign):
		return d.Elsewhere(err)
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return d.Failed(forge.Unavailable, 0, i18n.E("rest.said_garbage", err), d.CheckAddress(), err)
	}
	return d.Failed(forge.Unavailable, 0, i18n.E("rest.said_unreachable", err), d.later(), err)
}

// Elsewhere is the error of a redirect that was not followed.
func (d *Call) Elsewhere(err error) *forge.Error {
	return d.Failed(forge.Unavailable, 0, i18n.E("rest.said_elsewhere"), d.CheckAddress(), err)
}

// CheckAddress advises to look at the server's address.
func (d *Call) CheckAddress() *i18n.Error { return i18n.E("rest.advice_url", d.Setting, d.Name) }

func (d *Call) later() *i18n.Error { return i18n.E("rest.advice_unavailable", d.Setting, d.Name) }

// Limited is the error of a call that a rate limit keeps back.
func (d *Call) Limited(l *Limited) error {
	said := i18n.E("rest.said_limited")
	if l.SlowDown {
		said = i18n.E("rest.said_slow_down", d.Name)
	}
	e := d.Failed(forge.RateLimited, l.Status, said, i18n.E("rest.advice_limited", l.Wait.Round(time.Second)), l)
	e.Wait = l.Wait
	return e
}

// Answered explains an answer that is an error. login and permission are the advice about a
// credential that is refused, and about one that does not reach that far; cause may be nil.
func (d *Call) Answered(status int, message string, login, permission *i18n.Error, cause error) *forge.Error {
	kind, advice := forge.Invalid, i18n.E("rest.advice_invalid", d.Name)
	switch status {
	case http.StatusUnauthorized:
		kind, advice = forge.Unauthorized, login
	case http.StatusForbidden:
		kind, advice = forge.Forbidden, permission
	case http.StatusNotFound, http.StatusUnavailableForLegalReasons:
		kind, advice = forge.NotFound, i18n.E("rest.advice_not_found")
	case http.StatusGone:
		kind, advice = forge.Gone, i18n.E("rest.advice_gone")
	case http.StatusConflict, http.StatusPreconditionFailed:
		kind, advice = forge.Conflict, i18n.E("rest.advice_conflict")
	default:
		if status >= 500 {
			kind, advice = forge.Unavailable, d.later()
		}
	}
	return d.Failed(kind, status, i18n.E("rest.said", d.Name, status, OneLine(message)), advice, cause)
}

// mostSaid bounds what is repeated of a server's words, bytes.
const mostSaid = 500

// OneLine is a text of a server in one line and within bounds.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), mostSaid)], "")), " ")
	if s == "" {
		return "-"
	}
	return s
}
