package llmtest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm"
)

// furtherCases go beyond text and tool calls.
var furtherCases = []conformanceCase{
	{"images", true, showsImages, Images},
	{"usage in parts", true, usageInParts, ""},
	{"refusal", true, tellsRefusal, Refusals},
	{"what a provider wants back", true, opaqueGoesBack, Opaques},
	{"what another provider wanted back", true, foreignOpaque, ""},
	{"asked to wait for too long", true, askedToWait, RetryDates},
	{"limit for the first token", true, limitsFirstToken, Limits},
	{"limit for the connection", true, limitsConnection, Limits},
	{"limit for the whole call", true, limitsCall, Limits},
	{"limit of the answer", true, limitsAnswer, ""},
	{"broken JSON in a stream", true, brokenJSON, ""},
	{"cancelled, nothing is left", true, cancelledNothingLeft, ""},
	{"large messages", true, largeMessages, ""},
}

var pictures = []llm.Image{
	{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n\x00\xff")},
	{MediaType: "image/jpeg", Data: bytes.Repeat([]byte{0xff, 0xd8, 0}, 1000)},
}

func showsImages(t *testing.T, build Factory) {
	rig := build(t, Options{}, Answer{Text: "A fox."})
	c := rig.start()
	c.Append(llm.Message{Role: llm.RoleUser, Content: "What is \"this\"? 🦊", Images: pictures})
	c.Append(send(t, c).Message)
	c.Append(llm.Message{Role: llm.RoleUser, Images: pictures[:1]})
	send(t, c)
	m := rig.Requests()[1].Messages
	if len(m) != 5 || m[2].Content == nil || *m[2].Content != "What is \"this\"? 🦊" {
		t.Fatalf("the server got %d messages: %+v", len(m), m)
	}
	if diff := cmp.Diff(pictures, m[2].Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(pictures[:1], m[4].Images); diff != "" {
		t.Errorf("image without a text (-want +got):\n%s", diff)
	}
	CheckPrefix(t, rig.Requests())
}

func usageInParts(t *testing.T, build Factory) {
	for _, want := range []llm.Usage{
		{PromptTokens: 2000, CompletionTokens: 300, TotalTokens: 2300, CachedTokens: 1536, ReasoningTokens: 256},
		{PromptTokens: 1, CompletionTokens: 300, TotalTokens: 301, ReasoningTokens: 300},
		{PromptTokens: 7, CompletionTokens: 1, TotalTokens: 8, CachedTokens: 7},
	} {
		rig := build(t, Options{}, Answer{Reasoning: "Hm.", Text: "ok", Usage: &want})
		reply := send(t, rig.start())
		if rig.lacks(ReasoningCounts) {
			want.ReasoningTokens = 0
		}
		if diff := cmp.Diff(&want, reply.Usage); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
	}
}

func tellsRefusal(t *testing.T, build Factory) {
	for _, plain := range []bool{false, true} {
		var streamed string
		reply, err := build(t, Options{}, Answer{Refusal: "I will not do this, whoever asks.", Plain: plain}).start().
			Send(t.Context(), func(d string) { streamed += d })
		if err != nil {
			t.Fatal(err)
		}
		if reply.FinishReason != llm.FinishContentFilter || reply.Message.Content != "I will not do this, whoever asks." || streamed != reply.Message.Content {
			t.Errorf("plain %v: finish %q, text %q, streamed %q", plain, reply.FinishReason, reply.Message.Content, streamed)
		}
	}
}

// opaqueGoesBack: what came with an answer goes back as it was, also from
// another conversation, and only where the provider has such a thing.
func opaqueGoesBack(t *testing.T, build Factory) {
	const opaque = `sig/A+b= "<&>"`
	rig := build(t, Options{}, Answer{Reasoning: "Hm.", Calls: twoCalls[:1], Opaque: opaque}, Answer{Text: "ok"})
	c := rig.start(llm.Tool{Name: "add"})
	m := send(t, c).Message
	if m.Opaque == "" {
		t.Fatal("the answer holds nothing that is wanted back")
	}
	resumed := rig.start(llm.Tool{Name: "add"})
	for _, v := range []llm.Conversation{c, resumed} {
		v.Append(m)
		v.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_x", ToolName: "add", Content: "5"})
	}
	if !bytes.Equal(c.Serialized(), resumed.Serialized()) {
		t.Error("a resumed conversation has other bytes")
	}
	send(t, c)
	if got := rig.Requests()[1].Messages[2].Opaque; got != opaque {
		t.Errorf("went back as %q", got)
	}
	CheckPrefix(t, rig.Requests())
}

// foreignOpaque: a conversation that another provider began can go on here.
func foreignOpaque(t *testing.T, build Factory) {
	rig := build(t, Options{}, Answer{Text: "ok"})
	with, without := rig.start(llm.Tool{Name: "add"}), rig.start(llm.Tool{Name: "add"})
	m := llm.Message{Role: llm.RoleAssistant, Content: "I add.", ToolCalls: twoCalls[:1]}
	without.Append(m)
	m.Opaque = "\x00not of\xffthis provider"
	with.Append(m)
	if !bytes.Equal(with.Serialized(), without.Serialized()) {
		t.Errorf("it is sent: %s", with.Serialized())
	}
	with.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_x", ToolName: "add", Content: "5"})
	send(t, with)
}

func askedToWait(t *testing.T, build Factory) {
	for _, c := range []struct {
		value    string
		min, max time.Duration
		calls    int
	}{
		{"3600", time.Hour, time.Hour, 1}, // longer than any client waits by itself
		{time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat), time.Hour, 2 * time.Hour, 1},
		{time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0, 0, 3},
		{"0", 0, 0, 3},
		{"soon", 0, 0, 3},
	} {
		rig := build(t, Options{Retries: 2}, Answer{Status: http.StatusTooManyRequests, RetryAfter: c.value, ErrorText: "slow down"})
		e := fails(t, rig.start())
		if e.Kind != llm.KindRateLimited || e.RetryAfter < c.min || e.RetryAfter > c.max {
			t.Errorf("Retry-After %s: kind %s, wait %s", c.value, e.Kind, e.RetryAfter)
		}
		if n := len(rig.Requests()); n != c.calls || e.Attempts != n {
			t.Errorf("Retry-After %s: %d calls, %d told, want %d", c.value, n, e.Attempts, c.calls)
		}
	}
}

// limitsFirstToken: bytes alone are no answer, and one that moves may take
// longer.
func limitsFirstToken(t *testing.T, build Factory) {
	text := strings.Repeat("word ", 100)
	alive := build(t, Options{}, Answer{Text: "probe"}).KeepAlive
	if alive == "" {
		alive = ": keep-alive\n\n"
	}
	for _, a := range []Answer{{Text: text, Stall: 10}, {Stall: StallAtOnce}, {Body: alive + alive, Stall: len(alive) * 3 / 2}} {
		e := fails(t, build(t, Options{FirstToken: 50 * time.Millisecond, Stall: 10 * time.Second}, a).start())
		if e.Kind != llm.KindTimeout || !strings.Contains(e.Message, "no token") {
			t.Errorf("%+v: %v", a, e)
		}
	}
	const pieces = 200 // in longer than the limit, which is more than a busy machine takes to the first
	rig := build(t, Options{FirstToken: 1500 * time.Millisecond}, Answer{Text: strings.Repeat("0123456789abcdef", pieces), Delay: 10 * time.Millisecond})
	if got := send(t, rig.start()).Message.Content; len(got) != 16*pieces {
		t.Errorf("got %d bytes", len(got))
	}
}

// limitsCall: an answer that moves all the time may still take too long; each
// call has the limit anew.
func limitsCall(t *testing.T, build Factory) {
	slow := Answer{Text: strings.Repeat("0123456789abcdef", 400), Delay: 10 * time.Millisecond}
	rig := build(t, Options{Retries: 1, Call: 60 * time.Millisecond, Stall: 10 * time.Second}, slow)
	e := fails(t, rig.start())
	if e.Kind != llm.KindTimeout || !strings.Contains(e.Message, "no whole answer came within 60ms") || e.Attempts != 2 {
		t.Errorf("got %v", e)
	}
	if got := send(t, build(t, Options{Call: time.Minute}, Answer{Text: "in time"}).start()).Message.Content; got != "in time" {
		t.Errorf("got %q", got)
	}
}

// limitsAnswer: one call can ask for less than the client's limit, and the next
// one again for all; the messages stay as they were.
func limitsAnswer(t *testing.T, build Factory) {
	rig := build(t, Options{MaxTokens: 100}, Answer{Text: "a"}, Answer{Text: "b"}, Answer{Text: "c"})
	conv := rig.start()
	for _, n := range []int{0, 30, 500} {
		if _, err := conv.Send(llm.LimitAnswer(t.Context(), n), nil); err != nil {
			t.Fatal(err)
		}
	}
	all := rig.Requests()
	for i, want := range []int{100, 30, 100} {
		if all[i].Limit != want || !bytes.Equal(all[i].Raw, all[0].Raw) {
			t.Errorf("call %d: limit %d, want %d", i+1, all[i].Limit, want)
		}
	}
	free := build(t, Options{}, Answer{Text: "a"})
	if _, err := free.start().Send(llm.LimitAnswer(t.Context(), 7), nil); err != nil || free.Requests()[0].Limit != 7 {
		t.Errorf("%v, limit %d", err, free.Requests()[0].Limit)
	}
}

func limitsConnection(t *testing.T, build Factory) {
	never := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case <-ctx.Done():
		case <-t.Context().Done():
		}
		return nil, context.Canceled
	}}
	rig := build(t, Options{Retries: 1, Connect: 20 * time.Millisecond, Stall: 10 * time.Second, HTTP: &http.Client{Transport: never}}, Answer{Text: "ok"})
	e := fails(t, rig.start())
	if e.Kind != llm.KindUnreachable || !strings.Contains(e.Message, "no connection within 20ms") || e.Attempts != 2 {
		t.Errorf("got %v", e)
	}
}

func brokenJSON(t *testing.T, build Factory) {
	for _, body := range []string{"data: {\"choices\":[\n\ndata: {}\n\n", "data: nonsense\n\n", "event: message\ndata: {]\n\n", "data: {\"a\":\"\x01\"}\n\n"} {
		rig := build(t, Options{Retries: 1}, Answer{Body: body, ContentType: "text/event-stream"})
		if e := fails(t, rig.start()); e.Kind != llm.KindInvalid || e.Attempts != 2 {
			t.Errorf("%q: %v", body, e)
		}
	}
}

func cancelledNothingLeft(t *testing.T, build Factory) {
	rig := build(t, Options{Retries: 3}, Answer{Text: strings.Repeat("word ", 200), Stall: 900})
	if rig.Quiet == nil {
		t.Skip("this server cannot tell")
	}
	for range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := rig.start().Send(ctx, func(string) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	late, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := rig.Quiet(late); err != nil {
		t.Errorf("a connection of a cancelled call is still open: %v", err)
	}
	if n := len(rig.Requests()); n != 4 {
		t.Errorf("%d calls", n)
	}
}

// largeMessages: a message of megabytes arrives as it was, also where it is
// nothing but characters that are escaped.
func largeMessages(t *testing.T, build Factory) {
	rig := build(t, Options{}, Answer{Text: strings.Repeat("長い answer ", 20000), Piece: 4096})
	c := rig.start()
	big := strings.Repeat("\x00\n\"\\ 日本", 1<<18)
	c.Append(llm.Message{Role: llm.RoleUser, Content: big})
	if got := send(t, c).Message.Content; got != strings.Repeat("長い answer ", 20000) {
		t.Errorf("%d bytes came", len(got))
	}
	if got := rig.Requests()[0].Messages[2].Content; got == nil || *got != big {
		t.Error("the message did not arrive as it was")
	}
}
