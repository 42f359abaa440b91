package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/disk"
)

// window is how old, or how far ahead, a request may be.
const window = 5 * time.Minute

// Handlers are what Slack calls by HTTP, by pattern of http.ServeMux; none without a signing secret. Each
// answers 200 once the event is in the inbox, so Slack may send one again, which
// changes nothing.
func (s *Slack) Handlers() map[string]http.Handler {
	if s.opt.SigningSecret == "" {
		return nil
	}
	return map[string]http.Handler{
		"POST /webhooks/slack/events":      s.handler(func(raw []byte) ([]byte, error) { return raw, nil }),
		"POST /webhooks/slack/interactive": s.handler(interaction),
		"POST /webhooks/slack/commands":    s.handler(command),
	}
}

// interaction is the JSON in the form of an interaction.
func interaction(raw []byte) ([]byte, error) {
	form, err := url.ParseQuery(string(raw))
	return []byte(form.Get("payload")), err
}

// command is the form of a slash command as JSON, as Socket Mode has it.
func command(raw []byte) ([]byte, error) {
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, err
	}
	flat := make(map[string]string, len(form))
	for k := range form {
		flat[k] = form.Get(k)
	}
	return json.Marshal(flat)
}

func (s *Slack) handler(decode func([]byte) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := disk.ReadAll(http.MaxBytesReader(w, r.Body, channel.MaxRequest), r.URL.Path, channel.MaxRequest)
		if err != nil {
			http.Error(w, "the body cannot be read, or is too large", http.StatusRequestEntityTooLarge)
			return
		}
		now := s.opt.Now()
		if !s.signed(r.Header, raw, now) {
			http.Error(w, "not signed by Slack", http.StatusUnauthorized)
			return
		}
		if raw, err = decode(raw); err != nil {
			http.Error(w, "not of Slack's form", http.StatusBadRequest)
			return
		}
		s.take(w, r, raw, now)
	})
}

// take answers a request whose signature is right.
func (s *Slack) take(w http.ResponseWriter, r *http.Request, raw []byte, now time.Time) {
	var check struct{ Type, Challenge string }
	if json.Unmarshal(raw, &check) == nil && check.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, check.Challenge)
		return
	}
	e, ok, err := s.eventOf(raw, now)
	switch {
	case errors.Is(err, errNoEvent):
		http.Error(w, "not of Slack's form", http.StatusBadRequest)
		return
	case err == nil && ok:
		err = s.opt.Inbox.Put(r.Context(), e)
	}
	if err != nil {
		s.log.Error(s.opt.Mask("An event of Slack was not kept; it will come again: " + err.Error()))
		http.Error(w, "not kept", http.StatusServiceUnavailable)
	}
}

// signed reports whether Slack signed a request within the window.
func (s *Slack) signed(h http.Header, raw []byte, now time.Time) bool {
	stamp := h.Get("X-Slack-Request-Timestamp")
	given, err := hex.DecodeString(strings.TrimPrefix(h.Get("X-Slack-Signature"), "v0="))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(s.opt.SigningSecret))
	_, _ = io.WriteString(mac, "v0:"+stamp+":")
	_, _ = mac.Write(raw)
	if !hmac.Equal(given, mac.Sum(nil)) {
		return false
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return false
	}
	off := now.Sub(time.Unix(seconds, 0))
	if off.Abs() > window {
		s.log.Warn(s.opt.Lang.T("slack.clock", off.Round(time.Second)))
		return false
	}
	return true
}
