package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/wire"
)

// Error is what Slack refused a call with: nothing was done.
type Error struct {
	Method string
	Code   string // "not_in_channel"
	Needed string // scopes, of missing_scope
}

func (e *Error) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", e.Method, e.Code, e.Needed))
}

// limited is a call that was not made, or was refused, because there were too many.
type limited struct {
	method string
	until  time.Time
}

func (e *limited) Error() string {
	return e.method + ": too many calls until " + e.until.UTC().Format(time.RFC3339)
}

const (
	// maxAnswer is the most bytes of an answer: 200 messages with their blocks.
	maxAnswer = 8 << 20
	// callTime is how long a call may take. What waits for a limit to pass does not count.
	callTime = 30 * time.Second
	// defaultRetry is how long a limit holds that says nothing of it.
	defaultRetry = 30 * time.Second
)

// api calls Slack's Web API (docs/decisions/067-slack-without-its-sdk.md).
type api struct {
	base *url.URL
	http *http.Client
	now  func() time.Time
	// rotation renews the bot token; nil where that does not end.
	rotation *rotation

	mu    sync.Mutex
	until map[string]time.Time // by what a limit is counted by
	bad   map[string]error     // tokens that Slack refused last, and how
}

func newAPI(base *url.URL, client *http.Client, now func() time.Time) *api {
	// A redirect leads to a page to sign in, or away from Slack.
	return &api{base: base, http: wire.SingleHop(client), now: now, until: map[string]time.Time{}, bad: map[string]error{}}
}

// call is try that waits while there are too many calls, as long as ctx lasts.
func (a *api) call(ctx context.Context, token, method string, args url.Values, out any) error {
	for {
		err := a.try(ctx, token, method, args, out)
		var l *limited
		if !errors.As(err, &l) {
			return err
		}
		if end, ok := ctx.Deadline(); ok && end.Before(l.until) {
			return err
		}
		if err := wire.Sleep(ctx, l.until.Sub(a.now())); err != nil {
			return err
		}
	}
}

// bucket is what Slack counts calls by: the method, and the channel for messages.
func bucket(method string, args url.Values) string {
	if method == "chat.postMessage" {
		return method + " " + args.Get("channel")
	}
	return method
}

// try calls a method and decodes its answer into out, which may be nil. An error that is
// neither Error nor limited nor notSent leaves open whether the call was done.
func (a *api) try(ctx context.Context, token, method string, args url.Values, out any) error {
	bearer, err := a.bearer(ctx, token, "")
	if err != nil {
		return err
	}
	if err = a.once(ctx, token, bearer, method, args, out); code(err) != "token_expired" {
		return err
	}
	if fresh, rerr := a.bearer(ctx, token, bearer); rerr == nil && fresh != bearer {
		return a.once(ctx, token, fresh, method, args, out)
	}
	return err
}

// once is try with the token that is in force for one.
func (a *api) once(ctx context.Context, token, bearer, method string, args url.Values, out any) error {
	by := bucket(method, args)
	a.mu.Lock()
	until := a.until[by]
	if !until.IsZero() && !until.After(a.now()) {
		delete(a.until, by)
	}
	a.mu.Unlock()
	if until.After(a.now()) {
		return &limited{method, until}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base.JoinPath(method).String(), strings.NewReader(args.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	w, err := a.http.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	defer func() { _ = w.Body.Close() }()
	if w.StatusCode == http.StatusTooManyRequests {
		return a.limit(method, by, w.Header)
	}
	if w.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: HTTP %s", method, w.Status)
	}
	b, err := disk.ReadAll(w.Body, method, maxAnswer)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var answer struct {
		OK     bool   `json:"ok"`
		Error  string `json:"error"`
		Needed string `json:"needed"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	switch {
	case !answer.OK && answer.Error == "ratelimited":
		return a.limit(method, by, w.Header)
	case !answer.OK:
		e := &Error{method, answer.Error, answer.Needed}
		err := explained(e)
		if e.ofToken() {
			a.judge(token, err)
		}
		return err
	}
	a.judge(token, nil)
	if out == nil {
		return nil
	}
	if o, ok := out.(header); ok {
		o.headed(w.Header)
	}
	return json.Unmarshal(b, out)
}

// judge notes that Slack refused a token, or, with nil, took it.
func (a *api) judge(token string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if delete(a.bad, token); err != nil {
		a.bad[token] = err
	}
}

// refused is why Slack does not take a token, nil where it does.
func (a *api) refused(token string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bad[token]
}

// header is an answer that is told what stands above it.
type header interface{ headed(http.Header) }

// limit notes that there were too many calls.
func (a *api) limit(method, by string, h http.Header) error {
	until := a.now().Add(cmp.Or(wire.RetryAfter(h, a.now()), defaultRetry))
	a.mu.Lock()
	a.until[by] = until
	a.mu.Unlock()
	return &limited{method, until}
}

// ofToken reports whether the token is what is wrong: no later attempt mends that.
func (e *Error) ofToken() bool {
	switch e.Code {
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "not_allowed_token_type":
		return true
	}
	return false
}

// explained says of an error that people can mend what to do.
func explained(e *Error) error {
	if e.ofToken() {
		return i18n.E("slack.token", e)
	}
	switch e.Code {
	case "not_in_channel", "channel_not_found", "thread_not_found":
		return i18n.E("slack.not_in_channel", e)
	case "is_archived":
		return i18n.E("slack.archived", e)
	case "missing_scope":
		return i18n.E("slack.scope", e)
	}
	return i18n.E("slack.refused", e)
}

// code is what Slack refused a call with, "" for every other error.
func code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// absent reports whether a call was refused because the bot is not in the channel.
func absent(err error) bool {
	return code(err) == "not_in_channel" || code(err) == "channel_not_found"
}

// undone reports whether a call that failed did nothing.
func undone(err error) bool {
	var l *limited
	return code(err) != "" || errors.As(err, &l) || errors.As(err, new(notSent))
}

// mayHaveToken reports whether the bot token may be sent to an address: one of Slack's own,
// or of the server of its Web API. What a file says about its address is its author's.
func (a *api) mayHaveToken(u *url.URL) bool {
	if u.Scheme == a.base.Scheme && u.Host == a.base.Host {
		return true
	}
	host := strings.ToLower(u.Hostname())
	for _, d := range []string{"slack.com", "slack-gov.com"} {
		if u.Scheme == "https" && (host == d || strings.HasSuffix(host, "."+d)) {
			return true
		}
	}
	return false
}

// download reads a file of at most most bytes.
func (a *api) download(ctx context.Context, token, address string, most int64) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || !a.mayHaveToken(u) {
		return nil, i18n.E("slack.foreign_file")
	}
	if token, err = a.bearer(ctx, token, ""); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	w, err := a.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Body.Close() }()
	if w.StatusCode != http.StatusOK {
		return nil, i18n.E("slack.unreadable_file", w.Status)
	}
	return disk.ReadAll(w.Body, u.Path, most)
}

// upload sends a text file into a thread: "upload v2".
func (a *api) upload(ctx context.Context, token string, to place, name, title, content string) error {
	var at struct {
		URL string `json:"upload_url"`
		ID  string `json:"file_id"`
	}
	if err := a.call(ctx, token, "files.getUploadURLExternal", url.Values{"filename": {name}, "length": {strconv.Itoa(len(content))}, "snippet_type": {"diff"}}, &at); err != nil {
		return err
	}
	if err := a.send(ctx, at.URL, []byte(content)); err != nil {
		return err
	}
	files, err := json.Marshal([]map[string]string{{"id": at.ID, "title": title}})
	if err != nil {
		return err
	}
	args := url.Values{"files": {string(files)}, "channel_id": {to.channel}}
	if to.thread != "" {
		args.Set("thread_ts", to.thread)
	}
	return a.call(ctx, token, "files.completeUploadExternal", args, nil)
}

// send brings a file to the address that Slack gave for it, which needs no token.
func (a *api) send(ctx context.Context, address string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(content))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/octet-stream")
	w, err := a.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = w.Body.Close() }()
	if w.StatusCode != http.StatusOK {
		return fmt.Errorf("upload of a file: HTTP %s", w.Status)
	}
	return nil
}
