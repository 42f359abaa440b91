package terminal

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/i18n"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (-update writes it anew):\n%s", path, got)
	}
}

const answer = "# Greeting 挨拶\n\nSome **bold** text with `code` and a [link](https://example.org/x). 日本語の文章がここに続きます。行を折り返しても大丈夫です。**「強調」**も。\n\n" +
	"- one\n- two\n  - nested *item*\n\n1. first\n2. second\n\n```go\nfunc main() {\n\tprintln(\"hi\")\n}\n```\n\n" +
	"| name | what it is |\n|---|---|\n| a | a long text in a cell that must be wrapped somewhere |\n| 日本 | 表の中の日本語 |\n\n> quoted\n\nThe end."

// talker streams an answer to each message; to "wait" it begins one that it ends when
// it is stopped.
func talker(t *testing.T, h *channeltest.Handler) {
	h.Reply = func(ctx context.Context, m channel.Message) error {
		to := h.Channel.(channel.Streamer)
		if m.Decision != nil {
			return nil
		}
		if strings.HasPrefix(m.UserText, "wait") {
			to.Stream(m.SessionID, m.ID, "As far as it ")
			<-ctx.Done()
			return ctx.Err()
		}
		to.Stream(m.SessionID, m.ID, "")
		for i := 0; i < len(answer); i += 7 {
			to.Stream(m.SessionID, m.ID, answer[i:min(i+7, len(answer))])
		}
		return to.Post(t.Context(), channel.Post{SessionID: m.SessionID, Key: "a" + m.ID, Kind: channel.Answer, ReplyTo: m.ID, Text: answer})
	}
}

var offered = []channel.Command{{Name: "/approve", Args: "JOB HASH", Help: "approve a proposal"}, {Name: "/jobs", Help: "ジョブの様子", AtOnce: true}}

// What a person sees: each step of a conversation, on a usual and on a small terminal,
// in both languages.
func TestScreens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		width, height int
		lang          i18n.Lang
	}{{"80x24", 80, 24, i18n.English}, {"40x10", 40, 10, i18n.Japanese}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &channeltest.Handler{Words: offered}
				talker(t, h)
				r := chatting(t, h, c.width, c.height, func(o *Options, _ *Start) { o.Lang = c.lang })
				var b strings.Builder
				step := func(title string, keys ...string) {
					r.keys(keys...)
					fmt.Fprintf(&b, "==== %s\n%s\n", title, r.shown())
				}
				step("begun")
				step("answered", "show me", enter)
				step("commands", "/")
				post(t, r, channel.Post{Key: "p1", Kind: channel.Progress, Job: "20260102-030405-0a1b2c3d", Text: "**reading** files 3/10"})
				step("a job goes on", "\x15")
				post(t, r, channeltest.Proposal(session))
				post(t, r, channel.Post{SessionID: session, Kind: channel.Progress, Job: "20260102-030405-0a1b2c3d"})
				step("deciding while a turn goes on", "wait", enter, "次の話", enter, tab)
				step("stopped", esc, esc)
				golden(t, c.name, b.String())
			})
		})
	}
}

func post(t *testing.T, r *rig, p channel.Post) {
	t.Helper()
	if p.SessionID == "" {
		p.SessionID = session
	}
	if err := r.term.Post(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r.settle()
}
