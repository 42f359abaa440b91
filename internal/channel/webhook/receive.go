package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/disk"
)

// The kinds of an event.
const (
	kindMessage  = "message"
	kindEdit     = "edit"
	kindDelete   = "delete"
	kindDecision = "decision"
)

// event is what a bridge sends; docs/http.md and docs/http-event.schema.json describe it.
type event struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"`
	Conversation string `json:"conversation"`
	Thread       string `json:"thread"`
	User         struct {
		ID string `json:"id"`
	} `json:"user"`
	Text        string `json:"text"`
	Question    string `json:"question"` // that text answers
	Attachments []struct {
		Name    string `json:"name"`
		Content []byte `json:"content"` // base64
	} `json:"attachments"`
	Decision *struct {
		Job    string `json:"job"`
		Hash   string `json:"hash"`
		Grant  bool   `json:"grant"`
		Reason string `json:"reason"`
	} `json:"decision"`
}

// read reads an event. Its error says to the bridge's author what is wrong.
func read(raw []byte) (e event, err error) {
	if err = json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("the body is no event as JSON: %w", err)
	}
	if !channel.PlainID(e.Conversation) || e.Thread != "" && !channel.PlainID(e.Thread) || !channel.PlainID(e.User.ID) || e.Kind != kindDecision && !channel.PlainID(e.ID) {
		return e, fmt.Errorf("conversation, user.id, and id where the kind is no decision, need 1 to %d printable ASCII characters without spaces; thread may have them", channel.MaxPlainID)
	}
	switch e.Kind {
	case kindMessage, kindEdit:
		if strings.TrimSpace(e.Text) == "" && len(e.Attachments) == 0 {
			return e, errors.New("a message needs a text or attachments")
		}
		if e.Question != "" && (e.Kind == kindEdit || !channel.PlainID(e.Question) || strings.TrimSpace(e.Text) == "") {
			return e, errors.New("an answer is a message with a text, and question the id that was asked with")
		}
	case kindDelete:
	case kindDecision:
		if e.Decision == nil || e.Decision.Job == "" || e.Decision.Hash == "" {
			return e, errors.New("a decision needs decision.job and decision.hash, as the request has them")
		}
	default:
		return e, errors.New("kind is message, edit, delete or decision")
	}
	return e, nil
}

// session is the id of the session: http:CONVERSATION[:THREAD]. A colon in one of the two
// is written as %3A.
func (e *event) session() string {
	colons := strings.NewReplacer("%", "%25", ":", "%3A")
	id := string(channel.HTTP) + ":" + colons.Replace(e.Conversation)
	if e.Thread != "" {
		id += ":" + colons.Replace(e.Thread)
	}
	return id
}

// placeOf is the conversation and thread of a session.
func placeOf(session string) (conversation, thread string, ok bool) {
	parts := strings.Split(session, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != string(channel.HTTP) {
		return "", "", false
	}
	conversation, err := url.PathUnescape(parts[1])
	if err != nil || !channel.PlainID(conversation) {
		return "", "", false
	}
	if len(parts) == 3 {
		if thread, err = url.PathUnescape(parts[2]); err != nil || !channel.PlainID(thread) {
			return "", "", false
		}
	}
	return conversation, thread, true
}

// ServeHTTP takes an event: 200 says that it is in the inbox.
func (w *Webhook) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		out.Header().Set("Allow", http.MethodPost)
		http.Error(out, "events come by POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := disk.ReadAll(r.Body, r.URL.Path, channel.MaxEvent)
	var large *disk.TooLargeError
	switch {
	case errors.As(err, &large):
		http.Error(out, fmt.Sprintf("an event has at most %d bytes", channel.MaxEvent), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(out, "the body cannot be read", http.StatusBadRequest)
		return
	}
	now := w.opt.Now()
	if off, ok := w.key.signed(r.Header, now, body); !ok || off.Abs() > window {
		w.refuse(out, off.Round(time.Second), ok, now)
		return
	}
	e, err := read(body)
	if id := r.Header.Get(headerID); err == nil && !channel.PlainID(id) {
		err = fmt.Errorf("%s needs 1 to %d printable ASCII characters without spaces", headerID, channel.MaxPlainID)
	}
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	queue := ""
	if session := e.session(); e.Kind == kindMessage && e.Question == "" && !w.opt.AtOnce(e.Text) {
		queue = session
	}
	if err := w.opt.Inbox.Put(r.Context(), channel.Event{Channel: channel.HTTP, ID: r.Header.Get(headerID), Queue: queue, Body: body, ReceivedAt: now}); err != nil {
		w.opt.Log.Error("An event of the bridge was not kept; it has to send it again: " + err.Error())
		http.Error(out, "not kept, send it again", http.StatusServiceUnavailable)
	}
}

// refuse answers a request without a right signature, or of another time. The log says so at
// most once a minute.
func (w *Webhook) refuse(out http.ResponseWriter, off time.Duration, signed bool, now time.Time) {
	why := "the signature is wrong"
	if signed {
		why = fmt.Sprintf("%s is %s away from this machine's clock, and may be %s", headerTime, off, window)
	}
	http.Error(out, why, http.StatusUnauthorized)
	if w.forged.Due(now, time.Minute) {
		w.opt.Log.Warn("A request to /webhooks/http was refused (" + why + "): either the bridge has another secret than channels.http.secret or a wrong clock, or somebody else sent it")
	}
}

// Receive implements channel.Receiver.
func (w *Webhook) Receive(ctx context.Context, in channel.Event, h channel.EventHandler) error {
	e, err := read(in.Body)
	if err != nil { // it would not be another one later
		w.opt.Log.Warn("An event of the bridge cannot be read: "+err.Error(), "event", in.ID)
		return nil
	}
	if !w.opt.Allowed(e.User.ID) {
		return nil
	}
	m := channel.Message{Channel: channel.HTTP, SessionID: e.session(), Raw: in.Body, ReceivedAt: in.ReceivedAt, ID: e.ID, User: string(channel.HTTP) + ":" + e.User.ID}
	switch e.Kind {
	case kindDelete:
		return h.Withdraw(ctx, m.SessionID, e.ID)
	case kindDecision:
		m.ID = "decision/" + in.ID // messages have ids of their own
		m.Decision = &channel.Decision{Job: e.Decision.Job, Hash: e.Decision.Hash, Grant: e.Decision.Grant, Reason: e.Decision.Reason}
		return h.Handle(ctx, m)
	}
	m.UserText, m.Question = e.Text, e.Question
	for _, a := range e.Attachments {
		m.Attachments = append(m.Attachments, channel.Attachment{Name: channel.Clean(a.Name), MediaType: http.DetectContentType(a.Content), Content: a.Content})
	}
	if e.Kind == kindEdit {
		return h.Revise(ctx, m)
	}
	return h.Handle(ctx, m)
}
