package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

// smtpServer takes mail as RFC 5321 says, and offers neither encryption nor a login.
func smtpServer(t *testing.T) (addr *net.TCPAddr, mails func() []string) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []string
	serve := func(c net.Conn) {
		defer func() { _ = c.Close() }()
		in, data := bufio.NewScanner(c), ""
		say := func(line string) { _, _ = fmt.Fprint(c, line+"\r\n") }
		say("220 mail.example ready")
		for in.Scan() {
			switch verb, _, _ := strings.Cut(strings.ToUpper(in.Text()), " "); verb {
			case "EHLO":
				say("250-mail.example")
				say("250 AUTH LOGIN")
			case "AUTH": // as Exchange asks
				for _, asked := range []string{"VXNlcm5hbWU6", "UGFzc3dvcmQ6"} {
					say("334 " + asked)
					if in.Scan() {
						data += in.Text() + "\n"
					}
				}
				say("235 fine")
			case "DATA":
				say("354 go on")
				for in.Scan() && in.Text() != "." {
					data += in.Text() + "\n"
				}
				mu.Lock()
				all = append(all, data)
				mu.Unlock()
				say("250 taken")
			case "QUIT":
				say("221 bye")
				return
			default:
				data += in.Text() + "\n"
				say("250 fine")
			}
		}
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return l.Addr().(*net.TCPAddr), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), all...)
	}
}

// Mail goes by SMTP with both addresses and one id for each text; where encryption is asked for and
// not to be had, nothing is sent.
func TestMailBySMTP(t *testing.T) {
	t.Parallel()
	addr, mails := smtpServer(t)
	s := &system{cfg: &config.Config{}, redact: redact.New(nil, nil), env: Env{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}}
	m := &s.cfg.Monitor.Notify.Mail
	*m = config.Mail{To: []string{"ops@example.com", "ken@example.com"}, SMTPHost: addr.IP.String(), SMTPPort: addr.Port, SMTPTLS: "starttls"}
	n := news{Key: "alert/unreachable github/1", Text: "🚨 github: not reached\x1b[31m\nLook at the network: 接続できません"}
	if err := s.sendMail(t.Context(), n); err == nil || len(mails()) > 0 {
		t.Fatal(err, mails())
	}
	m.SMTPTLS = "none"
	for range 2 {
		if err := s.sendMail(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	all := mails()
	if len(all) != 2 || all[0] != all[1] {
		t.Fatalf("%q", all)
	}
	for _, want := range []string{"MAIL FROM:<ops@example.com>", "RCPT TO:<ops@example.com>", "RCPT TO:<ken@example.com>", "From: <ops@example.com>", "Message-ID: <", "@example.com>", "charset=UTF-8", "Look at the network"} {
		if !strings.Contains(strings.ReplaceAll(all[0], "\n ", " "), want) {
			t.Errorf("%q is not in\n%s", want, all[0])
		}
	}
	if strings.Contains(all[0], "\x1b") {
		t.Errorf("%q", all[0])
	}
}

// Where a server offers no other way, it is logged in by AUTH LOGIN.
func TestMailLogsIn(t *testing.T) {
	t.Parallel()
	addr, mails := smtpServer(t)
	c := config.Mail{To: []string{"ops@example.com"}, SMTPHost: addr.IP.String(), SMTPPort: addr.Port, SMTPTLS: "none", SMTPUser: "tori", SMTPPassword: "password-of-mail"}
	if err := bySMTP(t.Context(), c, "tori@example.com", []byte("Subject: x\r\n\r\ny\r\n")); err != nil {
		t.Fatal(err)
	}
	if got := mails(); len(got) != 1 || !strings.HasPrefix(got[0], "dG9yaQ==\ncGFzc3dvcmQtb2YtbWFpbA==\nMAIL FROM:<tori@example.com>") {
		t.Errorf("%q", got)
	}
}

// What a webhook is sent steers nobody, and what it answers is told without its address.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var got string
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := new(strings.Builder)
		_, _ = bufio.NewReader(r.Body).WriteTo(b)
		got = r.Header.Get("Content-Type") + " " + b.String()
		w.WriteHeader(status)
	}))
	defer srv.Close()
	s := &system{cfg: &config.Config{}, redact: redact.New([]string{srv.URL + "/secret"}, nil)}
	s.cfg.Monitor.Notify.WebhookURL = srv.URL + "/secret"
	n := news{Key: "k", Text: "<!channel> a & b", Alert: "waiting", Level: "warning", Over: true, Begun: time.Unix(1_800_000_000, 0)}
	if err := s.postWebhook(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	const want = `application/json {"about":"","alert":"waiting","begun":"2027-01-15T08:00:00Z","docs":"docs/operations.md#waiting","key":"k","level":"warning","state":"over","text":"\u0026lt;!channel\u0026gt; a \u0026amp; b"}`
	if got != want {
		t.Errorf("%s", got)
	}
	status = http.StatusTeapot
	if err := s.postWebhook(t.Context(), n); err == nil || !strings.Contains(err.Error(), "418") {
		t.Error(err)
	}
	srv.Close()
	if err := s.postWebhook(t.Context(), n); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// A way that fails holds up no other one, rests for a while, and tells what it owes later; none tells
// twice, over a restart too.
func TestAWayThatFails(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	told, tries := map[string][]string{}, 0
	var down error
	wrong := []alert{{Name: "waiting", Why: errors.New("101 runs wait")}}
	open := func() *alarms {
		st, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: dir, Redact: func(s string) string { return s }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		way := func(name string, fails func() error) teller {
			return teller{name: name, tell: func(_ context.Context, n news) error {
				if err := fails(); err != nil {
					tries++
					return err
				}
				told[name] = append(told[name], n.Key)
				return nil
			}}
		}
		return &alarms{store: st, now: func() time.Time { return now }, lang: i18n.English, log: slog.New(slog.DiscardHandler), mask: func(s string) string { return s },
			wrong: func(context.Context) ([]alert, error) { return wrong, nil },
			ways:  []teller{way("webhook", func() error { return down }), way("mail", func() error { return nil })}}
	}
	a := open()
	look := func(wait time.Duration, webhook, mail, tried int) {
		t.Helper()
		now = now.Add(wait)
		_ = a.look(t.Context())
		if len(told["webhook"]) != webhook || len(told["mail"]) != mail || tries != tried {
			t.Errorf("%s: %v, %d tries", now, told, tries)
		}
	}
	down = errors.New("502")
	look(0, 0, 0, 0)
	look(alertAfter, 0, 1, 1)
	look(alertEvery, 0, 1, 1) // it rests
	look(tellerPause, 0, 1, 2)
	a = open()
	look(alertEvery, 0, 1, 3)
	down = nil
	look(tellerPause, 1, 1, 3)
	a = open()
	look(alertEvery, 1, 1, 3)
	wrong, down = nil, errors.New("502")
	look(0, 1, 1, 3)
	look(alertOver, 1, 2, 4)
	down, a = nil, open()
	look(alertEvery, 2, 2, 4)
	if all, err := a.store.Alerts(t.Context()); len(all) > 0 || err != nil {
		t.Error(all, err)
	}
	if marks, err := a.store.Marks(t.Context(), toldScope); len(marks) > 0 || err != nil {
		t.Error(marks, err)
	}
}
