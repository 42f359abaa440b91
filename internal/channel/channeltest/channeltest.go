// Package channeltest holds what each channel promises: a suite that every member of the
// family runs, and a Handler that answers as a test says.
package channeltest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/channel"
)

// Handler answers as a test says, and remembers what it was told.
type Handler struct {
	// Reply answers a message; nil says nothing.
	Reply func(ctx context.Context, m channel.Message) error
	Past  map[string][]channel.Said // by session
	All   []channel.Session
	Words []channel.Command
	// Channel is where a Reply posts; who opens the channel sets it.
	Channel channel.Channel

	mu        sync.Mutex
	told      []channel.Message
	withdrawn []string
	revised   []channel.Message
}

// Handle implements channel.Handler.
func (h *Handler) Handle(ctx context.Context, m channel.Message) error {
	h.mu.Lock()
	h.told = append(h.told, m)
	h.mu.Unlock()
	if h.Reply == nil {
		return nil
	}
	return h.Reply(ctx, m)
}

// Told are the messages so far.
func (h *Handler) Told() []channel.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]channel.Message(nil), h.told...)
}

// Withdraw implements channel.EventHandler.
func (h *Handler) Withdraw(_ context.Context, session, message string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.withdrawn = append(h.withdrawn, session+" "+message)
	return nil
}

// Withdrawn are the messages that were taken back so far, each SESSION ID.
func (h *Handler) Withdrawn() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.withdrawn...)
}

// Revise implements channel.EventHandler.
func (h *Handler) Revise(_ context.Context, m channel.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revised = append(h.revised, m)
	return nil
}

// Revised are the messages that were changed so far, as they became.
func (h *Handler) Revised() []channel.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]channel.Message(nil), h.revised...)
}

var _ channel.EventHandler = (*Handler)(nil)

// History implements channel.Handler.
func (h *Handler) History(_ context.Context, session string, n int) ([]channel.Said, error) {
	all := h.Past[session]
	return all[max(len(all)-n, 0):], nil
}

// Sessions implements channel.Handler.
func (h *Handler) Sessions(context.Context, channel.Kind, string) ([]channel.Session, error) {
	return h.All, nil
}

// Commands implements channel.Handler.
func (h *Handler) Commands() []channel.Command { return h.Words }

// Fixture is a member of the family that is open to one person in one session.
type Fixture struct {
	Channel channel.Channel
	Session string
	// Say has the person send a message and waits until the handler has it. nil where
	// nobody can.
	Say func(text string)
	// Decide has the person decide about the proposal that was shown last, with a
	// button or a key. nil where the member has none, only commands.
	Decide func(grant bool)
	// Press has the person press the nth button, from 1, of the question that was shown last. nil
	// where the member has none: people write the number.
	Press func(n int)
	// Shown is all that the person sees or has seen, when nothing more is on its way.
	Shown func() string
}

// Proposal is a request for approval.
func Proposal(session string) channel.Post {
	return channel.Post{SessionID: session, Key: "req-1", Kind: channel.Request, Job: "20260102-030405-0a1b2c3d", Text: "Please approve.", Approval: &channel.Approval{
		Job: "20260102-030405-0a1b2c3d", Hash: "0123456789ab", Title: "Greet politely", Summary: []string{"The greeting says good morning."},
		Files:    []channel.File{{Path: "old.txt", Action: "delete", Removed: 3}, {Path: "hello.go", Action: "modify", Added: 1, Removed: 1}},
		Commands: []string{"go generate ./..."}, Risks: []string{"deletes old.txt"}, CoderRisk: "low", Reversible: true, Why: "one commit",
		Cost: "about 2,000 tokens", Status: "pending",
		Diff: "diff --git a/hello.go b/hello.go\n--- a/hello.go\n+++ b/hello.go\n@@ -1,3 +1,3 @@\n package main\n-// Greet says hello to name.\n+// Greet says good morning to name.\n func Greet(name string) {}\n",
	}}
}

// Conformance runs what each channel promises. open makes a fixture whose person talks to
// h; each test runs within bubble, such as synctest.Test.
func Conformance(t *testing.T, bubble func(*testing.T, func(*testing.T)), open func(t *testing.T, h *Handler) Fixture) {
	for name, test := range map[string]func(*testing.T, func(*testing.T, *Handler) Fixture){
		"a post is shown once":       once,
		"order within a session":     order,
		"an answer while written":    streamed,
		"request and decided":        requested,
		"question and its answer":    asked,
		"nothing steers":             badBytes,
		"a context that has ended":   cancelled,
		"what a message carries":     carried,
		"posts from many goroutines": crowd,
	} {
		t.Run(name, func(t *testing.T) { bubble(t, func(t *testing.T) { test(t, open) }) })
	}
}

func post(t *testing.T, f Fixture, p channel.Post) {
	t.Helper()
	if p.SessionID == "" {
		p.SessionID = f.Session
	}
	if err := f.Channel.Post(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func once(t *testing.T, open func(*testing.T, *Handler) Fixture) {
	f := open(t, &Handler{})
	for range 3 {
		post(t, f, channel.Post{Key: "k1", Kind: channel.Answer, Text: "said one time"})
	}
	post(t, f, channel.Post{Key: "k2", Kind: channel.Answer, Text: "the end"})
	if s := f.Shown(); strings.Count(s, "said one time") != 1 || strings.Count(s, "the end") != 1 {
		t.Errorf("%s", s)
	}
}

func order(t *testing.T, open func(*testing.T, *Handler) Fixture) {
	f := open(t, &Handler{})
	for n := range 40 {
		post(t, f, channel.Post{Key: fmt.Sprint("k", n), Kind: channel.Answer, Text: fmt.Sprintf("answer-%02d", n)})
	}
	s, at := f.Shown(), -1
	for n := range 40 {
		i := strings.Index(s, fmt.Sprintf("answer-%02d", n))
		if i <= at {
			t.Fatalf("answer %d stands at %d, the one before at %d:\n%s", n, i, at, s)
		}
		at = i
	}
}

func streamed(t *testing.T, open func(*testing.T, *Handler) Fixture) {
	f := open(t, &Handler{})
	s, ok := f.Channel.(channel.Streamer)
	if !ok {
		return
	}
	s.Stream(f.Session, "m1", "")
	s.Stream(f.Session, "m1", "a draft that ")
	s.Stream(f.Session, "m1", "is not kept")
	s.Stream(f.Session, "m1", "")
	s.Stream(f.Session, "m1", "the sum ")
	s.Stream(f.Session, "m1", "is fou")
	post(t, f, channel.Post{Key: "k1", Kind: channel.Answer, ReplyTo: "m1", Text: "the sum is four"})
	shown := f.Shown()
	if strings.Count(shown, "the sum") != 1 || !strings.Contains(shown, "the sum is four") || strings.Contains(shown, "a draft") {
		t.Errorf("%s", shown)
	}
}

func requested(t *testing.T, open func(*testing.T, *Handler) Fixture) {
	h := &Handler{}
	f := open(t, h)
	p := Proposal(f.Session)
	post(t, f, channel.Post{Key: "p1", Kind: channel.Progress, Job: p.Job, Text: "reading files"})
	post(t, f, p)
	s := f.Shown()
	for _, want := range []string{"Greet politely", p.Job, "old.txt", "go generate ./...", "deletes old.txt", "one commit", "good morning to name"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is not in\n%s", want, s)
		}
	}
	if f.Decide != nil {
		f.Decide(true)
		told := h.Told()
		if len(told) != 1 || told[0].UserText != "" || told[0].Decision == nil {
			t.Fatalf("%+v", told)
		}
		if d := *told[0].Decision; d.Job != p.Job || d.Hash != p.Approval.Hash || !d.Grant {
			t.Errorf("%+v", d)
		}
	}
	granted := *p.Approval
	granted.Status = "granted"
	post(t, f, channel.Post{Key: "d1", Kind: channel.Decided, Job: p.Job, Text: "applied as one commit", Approval: &granted})
	if s := f.Shown(); !strings.Contains(s, "applied as one commit") {
		t.Errorf("%s", s)
	}
}

func asked(t *testing.T, open func(*testing.T, *Handler) Fixture) {
	h := &Handler{}
	f := open(t, h)
	q := channel.Question{ID: "run-1/question/ask1", Text: "> Which color?\n> 1. a red that ends\n> 2. the green of the old logo, as it was", Choices: []string{"a red that ends", "the green of the old logo, as it was"}}
	p := channel.Post{Key: q.ID, Kind: channel.Notice, Job: "run-1", Text: "The run asks:\n\n" + q.Text, Question: &q}
	post(t, f, p)
	post(t, f, p)
	if s := f.Shown(); strings.Count(s, "Which color?") != 1 || !strings.Contains(s, "2. the green of the old logo") {
		t.Errorf("%s", s)
	}
	if f.Press != nil {
		f.Press(2)
		told := h.Told()
		if len(told) != 1 || told[0].Question != q.ID || told[0].UserText != "2" || told[0].SessionID != f.Session || told[0].Decision != nil || told[0].ID == "" || !strings.HasPrefix(told[0].User, string(f.Channel.Kind())+":") {
			t.Fatalf("%+v", told)
		}
	}
	over := q
	over.Over, over.By, over.At = true, "github:hanako", time.Unix(1700000000, 0)
	for range 2 {
		post(t, f, channel.Post{Key: q.ID + "/answered", Kind: channel.Notice, Job: "run-1", Text: "hanako answered: green", Question: &over})
	}
	if s := f.Shown(); strings.Count(s, "hanako answered: green") != 1 {
		t.Errorf("%s", s)
	}
}

func badBytes(t *testing.T, open func(*testing.T, *Handler) Fixture) {
	f := open(t, &Handler{})
	post(t, f, channel.Post{Key: "k1", Kind: channel.Answer, Text: "red \x1b[31mtext\x1b]0;title\x07 \xff\xfe end\u202eof\x00 it &#27;[2J and `\x1b[2J`"})
	post(t, f, channel.Post{Key: "k2", Kind: channel.Notice, Text: "\x9b2Ja notice\r\n"})
	s := f.Shown()
	for _, bad := range []string{"\x1b]0;", "\x1b[2J", "\x9b", "\u202e", "\x00", "\xff", "\x07"} {
		if strings.Contains(s, bad) {
			t.Errorf("%q is in %q", bad, s)
		}
	}
	for _, want := range []string{"red ", " end", "a notice"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is not in %q", want, s)
		}
	}
}

func cancelled(t *testing.T, open func(*testing.T, *Handler) Fixture) {
	f := open(t, &Handler{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := channel.Post{SessionID: f.Session, Key: "k1", Kind: channel.Answer, Text: "said at last"}
	if err := f.Channel.Post(ctx, p); err == nil {
		t.Error("a post succeeded whose context had ended")
	}
	post(t, f, p) // it was not shown, so a later attempt shows it
	if s := f.Shown(); strings.Count(s, "said at last") != 1 {
		t.Errorf("%s", s)
	}
}

func carried(t *testing.T, open func(*testing.T, *Handler) Fixture) {
	h := &Handler{}
	f := open(t, h)
	if f.Say == nil {
		return
	}
	f.Say("こんにちは  two spaces ")
	f.Say("/code1 設計して")
	const odd = "\u200b/stop\u200b \u202etxet\u202c a\u2066b\u2069 \ufeffz\u200dw" // a terminal drops what steers it
	f.Say(odd)
	told := h.Told()
	if len(told) != 3 || told[2].UserText != odd && told[2].UserText != channel.Clean(odd) {
		t.Fatalf("%+v", told)
	}
	if told[0].UserText != "こんにちは  two spaces " || told[1].UserText != "/code1 設計して" {
		t.Errorf("%q, %q", told[0].UserText, told[1].UserText)
	}
	for _, m := range told {
		if m.Channel != f.Channel.Kind() || m.SessionID != f.Session || !strings.HasPrefix(m.User, string(m.Channel)+":") || m.ID == "" || m.ReceivedAt.IsZero() || m.Decision != nil {
			t.Errorf("%+v", m)
		}
	}
	if told[0].ID == told[1].ID {
		t.Errorf("two messages have the id %s", told[0].ID)
	}
}

func crowd(t *testing.T, open func(*testing.T, *Handler) Fixture) {
	f := open(t, &Handler{})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 2 {
				if err := f.Channel.Post(t.Context(), channel.Post{SessionID: f.Session, Key: fmt.Sprint("k", n), Kind: channel.Answer, Text: fmt.Sprintf("voice-%d", n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := f.Shown()
	for n := range 8 {
		if c := strings.Count(s, fmt.Sprintf("voice-%d", n)); c != 1 {
			t.Errorf("voice %d was shown %d times:\n%s", n, c, s)
		}
	}
}
