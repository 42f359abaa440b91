package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/redact"
)

// house is Models with what they told.
type house struct {
	*Models
	log     *lines
	notices []string
}

// lines are what was written, a line each, for those who look and those who wait.
type lines struct {
	mu    sync.Mutex
	all   []string
	added chan struct{} // closed and replaced with each line
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(bytes.TrimSpace(p)))
	close(l.added)
	l.added = make(chan struct{})
	return len(p), nil
}

// with returns the lines that hold text.
func (l *lines) with(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, s := range l.all {
		if strings.Contains(s, text) {
			found = append(found, s)
		}
	}
	return found
}

// await waits until n lines hold text.
func (l *lines) await(t *testing.T, n int, text string) {
	t.Helper()
	tooLong := time.NewTimer(20 * time.Second)
	defer tooLong.Stop()
	for {
		l.mu.Lock()
		added := l.added
		l.mu.Unlock()
		if len(l.with(text)) >= n {
			return
		}
		select {
		case <-added:
		case <-tooLong.C:
			t.Fatalf("%q was never logged", text)
		}
	}
}

// openHouse reads a configuration, with an environment in which nothing else
// stands; change may alter what Open is given.
func openHouse(t *testing.T, text string, change func(*Options), env ...string) *house {
	t.Helper()
	vars := map[string]string{"HOME": t.TempDir()}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		vars[k] = v
	}
	getenv := func(k string) string { return vars[k] }
	cfg, err := config.Parse("c.yaml", []byte(text), getenv, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{log: &lines{added: make(chan struct{})}}
	masks := redact.New(nil, nil)
	o := Options{Config: cfg, Redact: masks.String, Personal: masks.Personal().String, Strict: masks.Strict().String, Log: slog.New(slog.NewTextHandler(h.log, nil)), Lang: i18n.English, Getenv: getenv,
		Notice: func(key string, a ...any) { h.notices = append(h.notices, i18n.English.T(key, a...)) }}
	if change != nil {
		change(&o)
	}
	if h.Models, err = Open(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func open(t *testing.T, text string, env ...string) *Models {
	t.Helper()
	return openHouse(t, text, nil, env...).Models
}

// client is the client of a role that must be there.
func (h *house) client(t *testing.T, u Use) llm.Client {
	t.Helper()
	c, _, err := h.Client(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// say sends one message to a new conversation of c.
func say(ctx context.Context, c llm.Client, text string) (*llm.Reply, error) {
	v := c.Open(llm.Settings{})
	fill := func() error {
		v.Append(llm.Message{Role: llm.RoleUser, Content: text})
		return nil
	}
	if r, ok := v.(llm.Refillable); ok {
		r.OnMove(fill)
	}
	_ = fill()
	return v.Send(ctx, nil)
}

// elsewhere is a client whose every connection, whatever the address, ends at
// the server at url; it counts them. The servers of the world, in a test.
func elsewhere(t *testing.T, url string) (*http.Client, *atomic.Int64) {
	t.Helper()
	_, host, _ := strings.Cut(strings.TrimSuffix(url, "/v1"), "//")
	made := new(atomic.Int64)
	tr := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		made.Add(1)
		if url == "" {
			return nil, errors.New("connection refused")
		}
		return (&net.Dialer{}).DialContext(ctx, network, host)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}, made
}

// fields is a request's body.
func fields(t *testing.T, r *llmtest.Request) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(r.Body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// kind is the kind of an *llm.Error, "" of any other.
func kind(err error) llm.ErrorKind {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Kind
	}
	return ""
}

func key(err error) string {
	var e *i18n.Error
	if errors.As(err, &e) {
		return e.Key
	}
	return fmt.Sprint(err)
}
