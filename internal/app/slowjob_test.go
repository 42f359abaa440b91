package app

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// newSlowHouse is a house in Slack whose coder of CODE3 answers only when it is let.
func newSlowHouse(t *testing.T) (h *chatHouse, asked, let chan struct{}) {
	t.Helper()
	asked, let = make(chan struct{}, 1), make(chan struct{})
	propose := llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "propose", Arguments: `{"plan":"The answer is 42.","patch":"--- a/answer.txt\n+++ b/answer.txt\n@@ -1,3 +1,3 @@\n-41\n+42\n 1\n 2\n","risk":{"destructive":false,"rollback_possible":true},"need_approval":true}`}}}
	model := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch r.Model {
		case "slow":
			select {
			case asked <- struct{}{}:
			default:
			}
			<-let
			return propose
		case "quick":
			return propose
		}
		return llmtest.Answer{Text: "As you say."}
	})
	h = newChatHouse(t, "")
	h.write("config.yaml", "language: en\nsandbox: {mode: none}\nchecks: []\nplanning: {enabled: false}\nllm: {openai: {base_url: '"+model.URL+"', api_key: key-for-a-test, model: m}}\n"+strings.Replace(slackSettings, ", entry: chat", "", 1)+
		"routing: {classifier: {enabled: false}, llm: {chat_provider: openai, chat_model: chat, coder_provider: openai, coder_model: quick, coder3_provider: openai, coder3_model: slow}}\n"+
		"context_storage: {base_dir: "+h.base+", durability: os}\n"+h.local())
	return h, asked, let
}

// A slow job keeps nobody waiting: who asked for it talks on, and somebody else talks, and has a
// job of their own done, while its model answers nothing.
func TestASlowJobDelaysNobody(t *testing.T) {
	t.Parallel()
	h, asked, let := newSlowHouse(t)
	path := filepath.Join(h.dir, "posts")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan ServeStarted, 1)
	requests := func(session string) (n int) {
		for _, p := range posted(t, path) {
			if p.SessionID == session && p.Kind == channel.Request {
				n++
			}
		}
		return n
	}
	answered := func(id string) func() bool {
		return func() bool {
			for _, p := range posted(t, path) {
				if p.ReplyTo == id && (p.Kind == channel.Answer || p.Kind == channel.Notice) && p.Text != "" {
					return true
				}
			}
			return false
		}
	}
	const hers, his = "slack:T1:C1:1", "slack:T1:C2:1"
	var ended error
	race(func() {
		ended = serve(ctx, h.environment(), ServeOptions{Config: h.config, AllowUnsandboxed: true}, withVendor(path), func(s ServeStarted) { started <- s })
		close(started)
	}, func() {
		defer cancel()
		s := <-started
		say := func(session, id, user, text string) {
			if code := send(t, s.Listen, "bot.example", said1{session, id, user, text}); code != http.StatusOK {
				t.Errorf("%s: %d", text, code)
			}
		}
		say(hers, "m1", "slack:U1", "/code3 make it 42")
		<-asked
		say(hers, "m2", "slack:U1", "/chat and meanwhile?")
		say(his, "m3", "slack:U3", "/chat good morning")
		until(t, "an answer to who asked for the job", answered("m2"))
		until(t, "an answer to somebody else", answered("m3"))
		say(his, "m4", "slack:U3", "/code1 make it 42")
		until(t, "a proposal for somebody else", func() bool { return requests(his) == 1 })
		if n := requests(hers); n != 0 {
			t.Errorf("%d requests of the slow job", n)
		}
		close(let)
		until(t, "the slow job's proposal", func() bool { return requests(hers) == 1 })
	})
	if ended != nil {
		t.Error(ended)
	}
}

// The vendor's token is revoked while a job runs: the job ends, and is told, once, by the process
// that has the new one.
func TestATokenIsRevokedWhileAJobRuns(t *testing.T) {
	t.Parallel()
	h, asked, let := newSlowHouse(t)
	path := filepath.Join(h.dir, "posts")
	var revoked atomic.Bool
	serving := func(do func(at string)) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		started := make(chan ServeStarted, 1)
		open := func(_ *daemon, in channel.Inbox, _ *guard) ([]member, error) {
			v := &vendor{path: path, in: in, refuse: func() error {
				if revoked.Load() {
					return errors.New("token_revoked")
				}
				return nil
			}}
			return []member{{Receiver: v, hooks: map[string]http.Handler{"POST /webhooks/slack/events": v}}}, nil
		}
		var ended error
		race(func() {
			ended = serve(ctx, h.environment(), ServeOptions{Config: h.config, AllowUnsandboxed: true}, open, func(s ServeStarted) { started <- s })
			close(started)
		}, func() {
			defer cancel()
			do((<-started).Listen)
		})
		h.must(ended)
	}
	serving(func(at string) {
		if code := send(t, at, "bot.example", said1{"slack:T1:C1:1", "m1", "slack:U1", "/code3 make it 42"}); code != http.StatusOK {
			t.Fatal(code)
		}
		<-asked
		revoked.Store(true)
		close(let)
		until(t, "a proposal", func() (stands bool) {
			h.approvals(func(a *Approvals) {
				all, err := a.Waiting(t.Context(), contextstore.Viewer{Admin: true})
				h.must(err)
				stands = len(all) == 1 && all[0].State.Status == approval.Pending
			})
			return stands
		})
	})
	before := len(posted(t, path))
	revoked.Store(false)
	told := func(kind channel.PostKind) (n int) {
		for _, p := range posted(t, path)[before:] {
			if p.Kind == kind {
				n++
			}
		}
		return n
	}
	for range 2 {
		serving(func(string) {
			until(t, "request and answer", func() bool { return told(channel.Request) == 1 && told(channel.Answer) == 1 })
		})
	}
}
