package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/slack"
	"toritsugi/internal/config"
	"toritsugi/internal/i18n"
)

// news is what people are told of the house.
type news struct {
	Key  string // of this text: the same text is told once
	Text string // masked, in the language of the settings; the first line says what it is about

	Alert, About string    // which alert it tells of, "" for none
	Level        string    // of the alert
	Over         bool      // it is over
	Begun        time.Time // when it began
}

// teller is a way to tell people.
type teller struct {
	name string
	once bool // it shows each key once by itself
	tell func(context.Context, news) error
}

// outsideTime is how long one way may take.
const outsideTime = 30 * time.Second

// outside are the ways to people who are in no conversation: monitor.notify.
func (s *system) outside() (all []teller) {
	n := s.cfg.Monitor.Notify
	if n.WebhookURL != "" {
		all = append(all, teller{name: config.ReportWebhook, tell: s.postWebhook})
	}
	if len(n.Mail.To) > 0 {
		all = append(all, teller{name: config.ReportMail, tell: s.sendMail})
	}
	return all
}

// postWebhook posts JSON whose text an incoming webhook of Slack shows; the other fields are for
// programs.
func (s *system) postWebhook(ctx context.Context, n news) error {
	state := "begun"
	if n.Over {
		state = "over"
	}
	v := map[string]any{"text": slack.Escape(channel.Clean(n.Text)), "key": n.Key}
	if n.Alert != "" {
		v["alert"], v["about"], v["level"], v["state"], v["begun"] = n.Alert, n.About, n.Level, state, n.Begun.UTC().Format(time.RFC3339)
		v["docs"] = alertDocs(n.Alert)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, outsideTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.Monitor.Notify.WebhookURL, bytes.NewReader(body))
	if err != nil {
		return i18n.E("outside.webhook", s.redact.Strict().String(err.Error()))
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := cmp.Or(s.env.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return i18n.E("outside.webhook", s.redact.Strict().String(err.Error()))
	}
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		return i18n.E("outside.webhook", res.Status)
	}
	return nil
}
