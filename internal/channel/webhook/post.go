package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/wire"
	"toritsugi/internal/redact"
)

// post is what a bridge is sent; docs/http.md and docs/http-post.schema.json describe it.
type post struct {
	ID           string    `json:"id"`
	Conversation string    `json:"conversation"`
	Thread       string    `json:"thread,omitempty"`
	ReplyTo      string    `json:"reply_to,omitempty"`
	Kind         string    `json:"kind"`
	Text         string    `json:"text"`
	Job          string    `json:"job,omitempty"`
	Failed       bool      `json:"failed,omitempty"`
	Approval     *approval `json:"approval,omitempty"`
	Question     *question `json:"question,omitempty"`
}

type question struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`
	Choices []string  `json:"choices"`
	Over    bool      `json:"over"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

type approval struct {
	Job        string    `json:"job"`
	Hash       string    `json:"hash"`
	Title      string    `json:"title"`
	Summary    []string  `json:"summary"`
	Files      []file    `json:"files"`
	Commands   []string  `json:"commands"`
	Risks      []string  `json:"risks"`
	CoderRisk  string    `json:"coder_risk,omitempty"`
	Notes      []string  `json:"notes,omitempty"`
	Tests      []string  `json:"tests,omitempty"`
	Checks     []string  `json:"checks,omitempty"`
	Judged     []string  `json:"judged,omitempty"`
	Reversible bool      `json:"reversible"`
	Why        string    `json:"why"`
	Cost       string    `json:"cost,omitempty"`
	Diff       string    `json:"diff"`
	Status     string    `json:"status"`
	Expires    time.Time `json:"expires,omitzero"`
	Approver   string    `json:"approver,omitempty"`
	DecidedAt  time.Time `json:"decided_at,omitzero"`
}

type file struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"`
	Action  string `json:"action"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// shown is a post as the bridge is sent it: without what steers, hides or turns text.
func shown(p channel.Post, conversation, thread string) post {
	clean := redact.Printable
	all := func(list []string) []string {
		out := make([]string, 0, len(list))
		for _, s := range list {
			out = append(out, clean(s))
		}
		return out
	}
	out := post{ID: channel.PostID(p, 0), Conversation: conversation, Thread: thread, ReplyTo: p.ReplyTo, Kind: string(p.Kind), Text: clean(p.Text), Job: p.Job, Failed: p.Failed}
	if a := p.Approval; a != nil {
		out.Approval = &approval{Job: a.Job, Hash: a.Hash, Title: clean(a.Title), Summary: all(a.Summary), Files: []file{}, Commands: all(a.Commands), Risks: all(a.Risks),
			CoderRisk: clean(a.CoderRisk), Notes: all(a.Notes), Tests: all(a.Tests), Checks: all(a.Checks), Judged: all(a.Judged), Reversible: a.Reversible, Why: clean(a.Why), Cost: clean(a.Cost), Diff: clean(a.Diff),
			Status: a.Status, Expires: a.Expires, Approver: clean(a.Approver), DecidedAt: a.DecidedAt}
		for _, f := range a.Files {
			out.Approval.Files = append(out.Approval.Files, file{Path: clean(f.Path), From: clean(f.From), Action: f.Action, Added: f.Added, Removed: f.Removed})
		}
	}
	if q := p.Question; q != nil {
		out.Question = &question{ID: q.ID, Text: clean(q.Text), Choices: all(q.Choices), Over: q.Over, By: clean(q.By), At: q.At}
	}
	return out
}

const (
	maxReason = 4 << 10 // bytes that are read of an answer
	// A bridge that is busy or away and does not say for how long is left alone for firstWait,
	// then for twice as long each time, up to defaultWait; longestWait is the most that it may
	// ask for.
	firstWait   = time.Second
	defaultWait = 10 * time.Second
	longestWait = time.Hour
	// maxTries is how often one Post sends, maxPatience how long it waits between two tries:
	// whoever posts keeps what was not taken, and comes again.
	maxTries    = 4
	maxPatience = 5 * time.Second
)

// Check implements channel.Checker: nobody is asked before something is sent.
func (w *Webhook) Check(context.Context, string) []channel.Finding { return nil }

// Send implements channel.Checker.
func (w *Webhook) Send(ctx context.Context, session, text string) error {
	status, err := w.post(ctx, channel.Post{SessionID: session, Key: "check/" + rand.Text(), Kind: channel.Notice, Text: text})
	if err == nil && status/100 != 2 {
		err = i18n.E("webhook.dropped", status)
	}
	return err
}

// Post implements channel.Channel. The id of a request is that of the post, in any process:
// a bridge that was sent one twice shows it once.
func (w *Webhook) Post(ctx context.Context, p channel.Post) error {
	_, err := w.post(ctx, p)
	return err
}

// post is Post that says with which status the bridge took the post, or dropped it.
func (w *Webhook) post(ctx context.Context, p channel.Post) (status int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	conversation, thread, ok := placeOf(p.SessionID)
	if !ok {
		return 0, i18n.E("webhook.no_session", p.SessionID)
	}
	leave, err := w.turns.Enter(ctx, p.SessionID)
	if err != nil {
		return 0, err
	}
	defer leave()
	out := shown(p, conversation, thread)
	w.mu.Lock()
	_, said := w.said.Get(out.ID)
	w.mu.Unlock()
	if said {
		return http.StatusOK, nil
	}
	body, err := json.Marshal(out)
	if err != nil {
		return 0, err
	}
	for n := 1; ; n++ {
		if late := w.patience(ctx); late != nil {
			return 0, cmp.Or(err, late)
		}
		var mends bool
		if status, mends, err = w.send(ctx, out.ID, body); err == nil {
			break
		}
		if !mends || n == maxTries {
			return 0, err
		}
	}
	if status/100 != 2 { // no later attempt mends it; the post is on record in the session
		w.opt.Log.Warn("The bridge does not take a post, it is dropped", "status", status, "session_id", p.SessionID, "post", out.ID)
	}
	w.mu.Lock()
	w.said.Put(out.ID, true)
	w.mu.Unlock()
	return status, nil
}

// patience waits while the bridge is left alone, where that is not for long.
func (w *Webhook) patience(ctx context.Context) error {
	w.mu.Lock()
	until := w.until
	w.mu.Unlock()
	long := until.Sub(w.opt.Now())
	if long > maxPatience {
		return i18n.E("webhook.waits", until.UTC().Format(time.RFC3339))
	}
	return wire.Sleep(ctx, long)
}

// send makes one request. Without an error its status is final; mends says that some seconds may
// mend the error.
func (w *Webhook) send(ctx context.Context, id string, body []byte) (status int, mends bool, err error) {
	now := w.opt.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.opt.URL, bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	w.key.sign(req.Header, id, now, body)
	res, err := w.http.Do(req)
	if ctx.Err() != nil && err != nil {
		return 0, false, ctx.Err()
	}
	if err != nil {
		w.wait(now, 0)
		return 0, true, i18n.E("webhook.unreachable", w.opt.Mask(err.Error()))
	}
	why, _ := io.ReadAll(io.LimitReader(res.Body, maxReason))
	_ = res.Body.Close()
	s := res.StatusCode
	failed := i18n.E("webhook.failed", s, w.opt.Mask(channel.Clean(string(why))))
	w.mu.Lock()
	w.refused = nil
	if s == http.StatusUnauthorized || s == http.StatusForbidden {
		w.refused = failed
	}
	w.mu.Unlock()
	switch s {
	case http.StatusBadRequest, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return s, false, nil
	}
	if s/100 == 2 {
		w.mu.Lock()
		w.pause = 0
		w.mu.Unlock()
		return s, false, nil
	}
	w.wait(now, wire.RetryAfter(res.Header, now))
	return s, s/100 == 5 || s == http.StatusTooManyRequests, failed
}

// wait leaves the bridge alone for as long as it asks, or a while.
func (w *Webhook) wait(now time.Time, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d == 0 {
		if !now.Before(w.until) { // else it is one more of those that were under way
			w.pause = min(max(2*w.pause, firstWait), defaultWait)
		}
		d = w.pause
	}
	w.until = now.Add(min(d, longestWait))
}
