package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"toritsugi/internal/channel"
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

// webhookEscapes are what Slack reads as more than a character.
var webhookEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// postWebhook posts JSON whose text an incoming webhook of Slack shows; the other fields are for
// programs.
func (s *system) postWebhook(ctx context.Context, n news) error {
	state := "begun"
	if n.Over {
		state = "over"
	}
	v := map[string]any{"text": webhookEscapes.Replace(channel.Clean(n.Text)), "key": n.Key}
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
	client := s.env.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return i18n.E("outside.webhook", s.redact.Strict().String(err.Error()))
	}
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		return i18n.E("outside.webhook", res.Status)
	}
	return nil
}

// sendMail sends a mail to all addresses of monitor.notify.mail.
func (s *system) sendMail(ctx context.Context, n news) error {
	c := s.cfg.Monitor.Notify.Mail
	from := c.From
	if from == "" {
		from = c.To[0]
	}
	text := channel.Clean(n.Text)
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := m.From(from); err != nil {
		return i18n.E("outside.mail", err)
	}
	if err := m.To(c.To...); err != nil {
		return i18n.E("outside.mail", err)
	}
	m.Subject("[tori] " + firstLine(text))
	m.SetDateWithValue(s.env.Now())
	m.SetMessageIDWithValue(fmt.Sprintf("%x@%s", sha256.Sum256([]byte(n.Key)), from[strings.LastIndexByte(from, '@')+1:]))
	m.SetBodyString(mail.TypeTextPlain, text+"\n")
	ctx, cancel := context.WithTimeout(ctx, outsideTime)
	defer cancel()
	if err := deliverMail(ctx, c, m); err != nil {
		return i18n.E("outside.mail", s.redact.Strict().String(err.Error()))
	}
	return nil
}

// deliverMail hands a mail to the program or the server of the settings.
func deliverMail(ctx context.Context, c config.Mail, m *mail.Msg) error {
	if c.Sendmail != "" {
		return m.WriteToSendmailWithContext(ctx, c.Sendmail)
	}
	o := []mail.Option{mail.WithPort(c.SMTPPort), mail.WithTimeout(outsideTime)}
	switch c.SMTPTLS {
	case "tls":
		o = append(o, mail.WithSSL())
	case "none":
		o = append(o, mail.WithTLSPolicy(mail.NoTLS))
	default:
		o = append(o, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if c.SMTPUser != "" {
		o = append(o, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(c.SMTPUser), mail.WithPassword(c.SMTPPassword))
	}
	client, err := mail.NewClient(c.SMTPHost, o...)
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, m)
}
