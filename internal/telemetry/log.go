// Package telemetry writes log records the way people grep them: one line of
// text with the run's uuid (store-v2 §9.3). Every record passes the sanitizer.
package telemetry

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
)

// NewLogger returns a logger of lines such as
//
//	2024-01-15 10:30:05 INFO [uuid:550e8400] LLM call #1: 250 tokens
//
// A record's uuid comes from its attribute "uuid", shortened to 8 characters;
// other attributes follow the message as key=value. Source: store-v2 §9.3.
func NewLogger(w io.Writer, level slog.Level, redact func(string) string) *slog.Logger {
	return slog.New(&handler{out: &output{w: w}, level: level, redact: redact})
}

// output serialises the lines of a handler and its descendants.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

type handler struct {
	out    *output
	level  slog.Level
	redact func(string) string
	uuid   string
	attrs  string
	group  string
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	var b strings.Builder
	b.WriteString(h.attrs)
	for _, a := range attrs {
		c.add(&b, a)
	}
	c.attrs = b.String()
	return &c
}

func (h *handler) WithGroup(name string) slog.Handler {
	c := *h
	c.group += name + "."
	return &c
}

// add writes one attribute, or takes it as the record's uuid.
func (h *handler) add(b *strings.Builder, a slog.Attr) {
	v := a.Value.Resolve()
	if a.Key == "uuid" && h.group == "" {
		h.uuid = v.String()
		return
	}
	s := v.String()
	if s == "" || strings.ContainsAny(s, " \"=") || strings.ContainsFunc(s, control) {
		s = strconv.Quote(s)
	}
	b.WriteString(" " + h.group + a.Key + "=" + s)
}

// control reports a character that is not shown as itself: it would break the
// line or steer the terminal of whoever reads the log.
func control(r rune) bool { return !strconv.IsPrint(r) }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	rec := *h
	var attrs strings.Builder
	attrs.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool { rec.add(&attrs, a); return true })
	id := rec.uuid
	if len(id) > 8 {
		id = id[:8]
	}
	if id != "" {
		id = "[uuid:" + id + "] "
	}
	msg := r.Message
	if strings.ContainsFunc(msg, control) {
		msg = strings.Trim(strconv.Quote(msg), `"`)
	}
	line := h.redact(r.Time.Format("2006-01-02 15:04:05") + " " + r.Level.String() + " " + id + msg + attrs.String())
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := io.WriteString(h.out.w, line+"\n")
	return err
}
