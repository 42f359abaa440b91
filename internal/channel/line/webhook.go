package line

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/webhook"

	"toritsugi/internal/channel"
)

// ServeHTTP takes the events of LINE's webhook: 200 says that they are in the inbox.
func (l *Line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.WriteHeader(l.take(r))
}

// take returns the status of the answer.
func (l *Line) take(r *http.Request) int {
	body, err := io.ReadAll(io.LimitReader(r.Body, channel.MaxRequest+1))
	switch {
	case err != nil:
		return http.StatusBadRequest
	case len(body) > channel.MaxRequest:
		return http.StatusRequestEntityTooLarge
	case !webhook.ValidateSignature(l.opt.ChannelSecret, r.Header.Get("X-Line-Signature"), body):
		l.complain()
		return http.StatusForbidden
	}
	var sent struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return http.StatusBadRequest
	}
	var events []channel.Event
	for _, raw := range sent.Events {
		e, err := read(raw)
		switch {
		case err != nil || len(raw) > channel.MaxEvent: // LINE would send no other
			l.opt.Log.Warn("LINE sent an event that cannot be read", "event", e.ID, "bytes", len(raw))
			continue
		case !e.addressed():
			continue // what is none of ours is not even kept
		case e.stale(l.opt.Now()):
			l.opt.Log.Warn("An event of LINE is days old and not taken: somebody sent it again, or this machine's clock is wrong", "event", e.ID)
			continue
		}
		queue := e.session()
		if e.Type == "unsend" {
			queue = ""
		}
		events = append(events, channel.Event{Channel: channel.LINE, ID: e.ID, Queue: queue, Body: raw, ReceivedAt: l.opt.Now()})
	}
	if len(events) == 0 { // as the console's check of the address sends
		return http.StatusOK
	}
	if err := l.opt.Inbox.Put(r.Context(), events...); err != nil {
		l.opt.Log.Error("Events of LINE are not in the inbox, LINE has to send them again: " + err.Error())
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// complain logs a wrong signature, at most once a minute: the secret is wrong, or somebody
// tries.
func (l *Line) complain() {
	if l.forged.Due(l.opt.Now(), time.Minute) {
		l.opt.Log.Warn("A request to LINE's webhook has a wrong signature: either channels.line.channel_secret is not that of the channel, or somebody else sent it")
	}
}
