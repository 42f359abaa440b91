package app

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/config"
	"toritsugi/internal/i18n"
)

// sendMail sends a mail to all addresses of monitor.notify.mail.
func (s *system) sendMail(ctx context.Context, n news) error {
	c := s.cfg.Monitor.Notify.Mail
	from := cmp.Or(c.From, c.To[0])
	ctx, cancel := context.WithTimeout(ctx, outsideTime)
	defer cancel()
	text, err := s.mail(c, from, n)
	if err == nil && c.Sendmail != "" {
		err = sendmail(ctx, c.Sendmail, text)
	} else if err == nil {
		err = bySMTP(ctx, c, from, text)
	}
	if err != nil {
		return i18n.E("outside.mail", s.redact.Strict().String(err.Error()))
	}
	return nil
}

// mail is a mail as it goes out (RFC 5322); one of the same news has the same id.
func (s *system) mail(c config.Mail, from string, n news) ([]byte, error) {
	text := channel.Clean(n.Text)
	to := make([]string, len(c.To))
	for i, address := range c.To {
		to[i] = (&mail.Address{Address: address}).String()
	}
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", (&mail.Address{Address: from}).String()}, {"To", strings.Join(to, ", ")},
		{"Subject", mime.QEncoding.Encode("utf-8", "[tori] "+firstLine(text))}, {"Date", s.env.Now().Format(time.RFC1123Z)},
		{"Message-ID", fmt.Sprintf("<%x@%s>", sha256.Sum256([]byte(n.Key)), from[strings.LastIndexByte(from, '@')+1:])},
		{"MIME-Version", "1.0"}, {"Content-Type", "text/plain; charset=UTF-8"}, {"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	q := quotedprintable.NewWriter(&b)
	_, err := q.Write([]byte(text + "\n"))
	return b.Bytes(), errors.Join(err, q.Close())
}

// sendmail hands a mail to a program that reads its addresses from it.
func sendmail(ctx context.Context, program string, text []byte) error {
	cmd := exec.CommandContext(ctx, program, "-oi", "-t")
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, firstLine(channel.Clean(string(out))))
	}
	return nil
}

// bySMTP hands a mail to the server of the settings, as long as ctx lasts.
func bySMTP(ctx context.Context, c config.Mail, from string, text []byte) (err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(c.SMTPHost, strconv.Itoa(c.SMTPPort)))
	if err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok {
		err = conn.SetDeadline(end)
	}
	secure := &tls.Config{ServerName: c.SMTPHost, MinVersion: tls.VersionTLS12}
	if c.SMTPTLS == "tls" {
		conn = tls.Client(conn, secure)
	}
	server, nerr := smtp.NewClient(conn, c.SMTPHost)
	if err = errors.Join(err, nerr); err != nil {
		return errors.Join(err, conn.Close())
	}
	defer func() { _ = server.Close() }() // after Quit there is nothing to close
	if c.SMTPTLS != "tls" && c.SMTPTLS != "none" {
		if err := server.StartTLS(secure); err != nil {
			return fmt.Errorf("STARTTLS (smtp_tls): %w", err)
		}
	}
	if c.SMTPUser != "" {
		var login smtp.Auth = plainLogin{c.SMTPUser, c.SMTPPassword}
		if _, ways := server.Extension("AUTH"); strings.Contains(" "+ways+" ", " PLAIN ") {
			login = smtp.PlainAuth("", c.SMTPUser, c.SMTPPassword, c.SMTPHost)
		}
		if err := server.Auth(login); err != nil {
			return fmt.Errorf("smtp_user: %w", err)
		}
	}
	if err := server.Mail(from); err != nil {
		return err
	}
	for _, to := range c.To {
		if err := server.Rcpt(to); err != nil {
			return err
		}
	}
	w, err := server.Data()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return errors.Join(err, w.Close(), server.Quit())
}

// plainLogin is AUTH LOGIN, the one way that servers of Exchange offer. The settings take no
// password where the connection is not encrypted.
type plainLogin struct{ user, password string }

// Start implements smtp.Auth.
func (plainLogin) Start(*smtp.ServerInfo) (string, []byte, error) { return "LOGIN", nil, nil }

// Next implements smtp.Auth: the server asks for the name, then for the password.
func (l plainLogin) Next(asked []byte, more bool) ([]byte, error) {
	switch {
	case !more:
		return nil, nil
	case strings.HasPrefix(strings.ToLower(string(asked)), "user"):
		return []byte(l.user), nil
	}
	return []byte(l.password), nil
}
