package line

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/i18n"
)

const user = "line:user:U1"

func answer(key, replyTo, text string) channel.Post {
	return channel.Post{SessionID: user, Key: key, ReplyTo: replyTo, Kind: channel.Answer, Text: text}
}

func TestAReplyCostsNothingAndIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, nil)
		r.writes("user:U1", "hello") // message 101
		r.post(answer("k1", "101", "one"))
		r.post(answer("k1", "101", "one"))
		r.post(answer("k2", "101", "two"))
		if got := strings.Join(r.v.chats, " "); got != "reply U1" {
			t.Error(got)
		}
		r.writes("user:U1", "again") // 102
		time.Sleep(replyLives + time.Second)
		r.post(answer("k3", "102", "three"))
		r.writes("user:U2", "another one") // 103
		r.post(answer("k4", "103", "four"))
		if got := strings.Join(r.v.chats, " "); got != "reply U1 U1 U1" {
			t.Error(got)
		}
		if got := r.v.all(); got != "one\ntwo\nthree\nfour" {
			t.Error(got)
		}
	})
}

func TestAnswersThatComeLaterQuote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, nil)
		r.writes("user:U1", "hello")
		r.post(answer("k1", "101", "at once"))
		time.Sleep(2 * time.Minute)
		r.post(answer("k2", "101", strings.Repeat("the work is done. ", 400)))
		time.Sleep(quoteLives)
		r.post(answer("k3", "101", "a day later"))
		r.writes("group:C1:U1", "@tori x", map[string]any{"index": 0, "length": 5, "isSelf": true, "type": "user"})
		r.post(channel.Post{SessionID: "line:group:C1", Key: "k4", ReplyTo: "102", Kind: channel.Answer, Text: "among many"})
		if got := strings.Join(r.v.quoted, " "); got != " quote-101   quote-102" {
			t.Errorf("%q", got)
		}
		r.writes("user:U1", "what is taken back soon") // 103
		time.Sleep(2 * time.Minute)
		r.v.faults = []fault{{path: "/v2/bot/message/push", status: 400, body: "The quote token is invalid"}}
		r.post(answer("k5", "103", "all the same"))
		if got := r.v.quoted[len(r.v.quoted)-1]; got != "" || !strings.Contains(r.v.all(), "all the same") {
			t.Errorf("%q, %s", got, r.v.all())
		}
	})
}

func TestNothingIsSaidTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			replyTo string
			faults  []fault
			posts   int
		}{
			"a push that fails afterwards":      {"", []fault{{path: "/v2/bot/message/push", status: 500, done: true}}, 1},
			"a push without an answer":          {"", []fault{{path: "/v2/bot/message/push", status: 599, done: true}}, 1},
			"a push that fails four times":      {"", []fault{{path: "/v2/bot/message/push", status: 500, done: true}, {path: "/v2/bot/message/push", status: 500}, {path: "/v2/bot/message/push", status: 502}, {path: "/v2/bot/message/push", status: 503}}, 2},
			"a reply that fails afterwards":     {"101", []fault{{path: "/v2/bot/message/reply", status: 500, done: true}}, 1},
			"a reply without an answer":         {"101", []fault{{path: "/v2/bot/message/reply", status: 599, done: true}}, 1},
			"a reply that fails four times":     {"101", []fault{{path: "/v2/bot/message/reply", status: 500, done: true}, {path: "/v2/bot/message/reply", status: 500}, {path: "/v2/bot/message/reply", status: 500}, {path: "/v2/bot/message/reply", status: 500}}, 2},
			"a reply that really failed":        {"101", []fault{{path: "/v2/bot/message/reply", status: 500}}, 1},
			"a token that LINE does not know":   {"101", []fault{{path: "/v2/bot/message/reply", status: 400, body: "Invalid reply token"}}, 1},
			"a rate limit":                      {"", []fault{{path: "/v2/bot/message/push", status: 429, body: "The API rate limit has been exceeded. Try again later."}}, 1},
			"a proxy that is asked in a moment": {"", []fault{{path: "/v2/bot/message/push", status: 503, header: http.Header{"Retry-After": {"20"}}}}, 1},
		} {
			r := setUp(t, nil)
			r.writes("user:U1", "hello")
			r.v.faults = c.faults
			for n := range c.posts {
				err := r.Post(t.Context(), answer("k1", c.replyTo, "said one time"))
				if (err == nil) != (n == c.posts-1) {
					t.Errorf("%s: post %d: %v", name, n, err)
				}
			}
			r.post(answer("k2", "", "the end"))
			if got := r.v.all(); got != "said one time\nthe end" {
				t.Errorf("%s: %q", name, got)
			}
		}
	})
}

func TestAnotherProcessSaysItOnce(t *testing.T) {
	r := setUp(t, nil)
	p := answer("k1", "", strings.Repeat("x ", 14_000)) // two requests
	r.v.faults = []fault{{path: "/none"}}
	r.post(p)
	again, err := New(r.opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Post(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if n := len(r.v.shown); n != 6 || r.v.count("/push") != 4 {
		t.Errorf("%d messages by %d requests", n, r.v.count("/push"))
	}
}

func TestAHourOf429(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, nil)
		limit := fault{path: "/v2/bot/message/push", status: 429, header: http.Header{"Retry-After": {"3600"}}, body: "The API rate limit has been exceeded. Try again later."}
		r.v.faults = []fault{limit, limit}
		began := time.Now()
		err := r.Post(t.Context(), answer("k1", "", "patience"))
		if err == nil || time.Since(began) > maxWaits || !strings.Contains(err.Error(), "429") {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		// Another session is not kept waiting.
		limit.header = http.Header{"Retry-After": {"30"}}
		r.v.faults = []fault{limit}
		done := make(chan error)
		go func() { done <- r.Post(t.Context(), answer("k1", "", "patience")) }()
		synctest.Wait()
		began = time.Now()
		r.post(channel.Post{SessionID: "line:user:U2", Key: "k1", Kind: channel.Answer, Text: "at once"})
		if time.Since(began) > 0 || r.v.all() != "at once" {
			t.Errorf("%v: %s", time.Since(began), r.v.all())
		}
		if err := <-done; err != nil || r.v.all() != "at once\npatience" {
			t.Errorf("%v: %s", err, r.v.all())
		}
		// A context ends the waiting.
		r.v.faults = []fault{limit}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Post(ctx, answer("k2", "", "never")); err == nil || ctx.Err() == nil {
			t.Errorf("%v, %v", err, ctx.Err())
		}
	})
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		status   int
		said, en string
		ja       string
	}{
		{401, "Authentication failed due to the following reason: invalid token " + token, "set channels.line.access_token", "アクセストークン"},
		{403, "Failed to send messages", "not in the conversation any more", "参加していません"},
		{418, "teapot", "418: teapot", "418"},
	} {
		r := setUp(t, nil)
		r.v.faults = []fault{{path: "/v2/bot/message/push", status: c.status, body: c.said}}
		err := r.Post(t.Context(), answer("k1", "", "x"))
		if err == nil || !strings.Contains(err.Error(), c.en) || !strings.Contains(i18n.Japanese.Error(err), c.ja) || strings.Contains(err.Error(), token) {
			t.Errorf("%d: %v / %s", c.status, err, i18n.Japanese.Error(err))
		}
		if n := r.v.count("/push"); n != 1 {
			t.Errorf("%d was asked %d times", c.status, n)
		}
		if ready := r.Ready(); (ready != nil) != (c.status == 401) {
			t.Errorf("%d: ready %v", c.status, ready)
		}
		r.post(answer("k2", "", "x"))
		if ready := r.Ready(); ready != nil {
			t.Errorf("after %d: ready %v", c.status, ready)
		}
	}
	r := setUp(t, nil)
	r.v.faults = []fault{{path: "/v2/bot/message/push", status: 400, body: "messages[0].text is too long"}, {path: "/v2/bot/message/push", status: 400, body: "Failed to send messages"}}
	for n := range 4 { // no later attempt would mend it: the first is a fault of ours, then nobody is there
		r.post(answer(fmt.Sprint("k", n), "", "x"))
	}
	if len(r.tells()) != 2 || !strings.Contains(r.tells()[1], "Failed to send messages") || r.v.count("/push") != 2 || len(r.v.shown) > 0 {
		t.Errorf("%q, %q", r.tells(), r.v.calls)
	}
	r.writes("user:U1", "I am here")
	r.post(answer("k5", "", "so am I"))
	if s := r.v.all(); s != "so am I" {
		t.Error(s)
	}
	if err := r.Post(t.Context(), channel.Post{SessionID: "slack:T1:C1", Kind: channel.Answer, Text: "x"}); err == nil {
		t.Error("a session of Slack was taken")
	}
}

func TestTheMonthsQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, nil)
		r.v.limit = 20
		for n := range 20 {
			r.post(answer(fmt.Sprint("k", n), "", "x"))
			time.Sleep(quotaEvery)
		}
		if len(r.tells()) != 1 || !strings.Contains(r.tells()[0], "18 of the 20") {
			t.Errorf("%q", r.tells())
		}
		for n := range 3 {
			began := time.Now()
			err := r.Post(t.Context(), answer(fmt.Sprint("late", n), "", "x"))
			if err == nil || !strings.Contains(err.Error(), "LINE Official Account Manager") || time.Since(began) > 0 {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		if n := r.v.count("/push"); len(r.tells()) != 2 || n != 21 { // LINE was not asked each time
			t.Errorf("%q after %d pushes", r.tells(), n)
		}
		r.writes("user:U1", "hello")
		r.post(answer("reply", "101", "a reply still comes"))
		r.v.mu.Lock()
		r.v.used = 0 // the next month
		r.v.mu.Unlock()
		time.Sleep(quotaEvery)
		r.post(answer("late0", "", "at last"))
		if s := r.v.all(); !strings.HasSuffix(s, "a reply still comes\nat last") {
			t.Error(s)
		}
		r.v.mu.Lock()
		asked := len(r.v.calls)
		r.v.mu.Unlock()
		for n := range 10 { // within ten minutes LINE is asked once
			r.post(answer(fmt.Sprint("m", n), "", "x"))
		}
		if n := len(r.v.calls) - asked; n > 12 {
			t.Errorf("%d calls for 10 posts", n)
		}
	})
}

func TestProgressIsShownOnce(t *testing.T) {
	r := setUp(t, nil)
	for n := range 5 {
		r.post(channel.Post{SessionID: user, Kind: channel.Progress, Job: "J1", Text: fmt.Sprint("step ", n)})
	}
	r.post(channel.Post{SessionID: user, Kind: channel.Progress, Job: "J1"})
	r.post(channel.Post{SessionID: user, Kind: channel.Progress, Job: "J2", Text: "another job"})
	if got := r.v.all(); got != "step 0\nanother job" {
		t.Error(got)
	}
}

// A label holds what LINE allows; the text numbers the choices in full. What became of a question has no
// buttons.
func TestChoices(t *testing.T) {
	r := setUp(t, nil)
	q := channel.Question{ID: "0190f7a0-aaaa-bbbb-cccc-0123456789ab/question/ask1", Choices: []string{"はい", "古いロゴの緑色をそのまま使って、見出しにも使う", strings.Repeat("x", 400)}}
	r.post(channel.Post{SessionID: user, Key: "k1", Kind: channel.Notice, Text: strings.Repeat("a long question. ", 400), Question: &q})
	if n := len(r.v.presses); n != 3 || len(r.v.shown) != 2 {
		t.Fatalf("%d buttons, %d messages", n, len(r.v.shown))
	}
	if p := r.v.presses; p[0].label != "はい" || p[1].label != "古いロゴの緑色をそのまま使って、見出し…" {
		t.Errorf("%+v", p)
	}
	if question, choice := chosen(r.v.presses[1].data); question != q.ID || choice != "2" {
		t.Error(question, choice)
	}
	q.Over = true
	r.post(channel.Post{SessionID: user, Key: "k2", Kind: channel.Notice, Text: "answered", Question: &q})
	if len(r.v.presses) != 3 {
		t.Errorf("%+v", r.v.presses)
	}
}

func TestRequests(t *testing.T) {
	p := channeltest.Proposal(user)
	p.Approval.Commands = nil
	t.Run("in order", func(t *testing.T) {
		r := setUp(t, nil)
		r.post(p)
		s := r.v.all()
		at := -1
		for _, part := range []string{"Greet politely", "Job: " + p.Job, "good morning", "Files (2)", "DELETED old.txt (+0 −3)", "changed hello.go (+1 −1)", "Environment", "none", "Risk, as computed", "deletes old.txt", "coder's words: low", "Can be taken back: one commit", "Cost: about", "[Approve]", "[Deny]"} {
			i := strings.Index(s, part)
			if i <= at {
				t.Errorf("%q stands at %d, what is before it at %d:\n%s", part, i, at, s)
			}
			at = i
		}
		if d := decision(r.v.presses[1].data); d == nil || d.Grant || d.Job != p.Job || d.Hash != p.Approval.Hash {
			t.Errorf("%+v", r.v.presses)
		}
	})
	t.Run("a long diff, with fences and marks of direction in it", func(t *testing.T) {
		r := setUp(t, nil)
		q := p
		a := *p.Approval
		a.Diff = "+```go\n+x \u202e y\n+```\n" + strings.Repeat("+日本語\n", 2000)
		q.Approval = &a
		r.post(q)
		s := r.v.all()
		if !strings.Contains(s, "````diff\n+```go\n+x  y\n") || !strings.Contains(s, "6017 more characters; tori approvals show") {
			t.Error(s[:200], s[len(s)-200:])
		}
	})
	t.Run("a page for the diff", func(t *testing.T) {
		for address, shown := range map[string]bool{"https://tori.example/p?x=1": true, "http://tori.example/p": false, "https://tori.example/" + strings.Repeat("x", 1000): false} {
			var who []string
			r := setUp(t, func(o *Options) {
				o.Page = func(w string, a *channel.Approval) string { who = append(who, w+" "+a.Hash); return address }
			})
			r.post(p)
			q := p
			q.SessionID, q.Key = "line:group:C1", "req-2"
			r.post(q)
			s := r.v.all()
			if strings.Contains(s, "[Show the diff]("+address+")") != shown || strings.Contains(s, "+// Greet says") == shown || len(r.v.presses) != 4 {
				t.Errorf("%s: %s", address, s)
			}
			if got := strings.Join(who, ", "); got != "line:U1 "+p.Approval.Hash+", line:group:C1 "+p.Approval.Hash {
				t.Error(got)
			}
		}
	})
	t.Run("more than a message holds", func(t *testing.T) {
		r := setUp(t, nil)
		q := p
		a := *p.Approval
		a.Files = nil
		for n := range 300 {
			a.Files = append(a.Files, channel.File{Path: fmt.Sprintf("dir/file-%03d.go", n), Action: "create", Added: 1})
		}
		a.Files = append(a.Files, channel.File{Path: "last.go", Action: "delete"})
		a.Title = strings.Repeat("長い題 ", 300)
		q.Approval = &a
		r.post(q)
		s := r.v.all()
		for n := range 300 {
			if !strings.Contains(s, fmt.Sprintf("dir/file-%03d.go", n)) {
				t.Fatalf("file %d is not shown", n)
			}
		}
		if !strings.Contains(s, "the whole request stands above") || strings.Index(s, "last.go") > strings.Index(s, "file-000") {
			t.Error(s)
		}
	})
}

func TestMarkdown(t *testing.T) {
	for _, c := range [][2]string{
		{"# Head #\n\n\n\ntext", "■ Head\n\ntext"},
		{"- one\n  - two\n* three\n+ four\n1. five", "• one\n  • two\n• three\n• four\n1. five"},
		{"- [ ] open\n- [x] done", "☐ open\n☑ done"},
		{"**bold**, *italic*, ***both***, ~~gone~~, __b__, _i_", "bold, italic, both, gone, b, i"},
		{"**「強調」**の後、snake_case_name と 2 * 3 * 4", "「強調」の後、snake_case_name と 2 * 3 * 4"},
		{"`a*b*c` and ``x ` y`` and a ` alone", "`a*b*c` and ``x ` y`` and a ` alone"},
		{"[the page](https://example.com/a_(b)) <https://example.com/c_d_e> [https://x.y](https://x.y)", "the page (https://example.com/a_(b)) https://example.com/c_d_e https://x.y"},
		{"![a cat](https://example.com/c.png \"title\")", "a cat (https://example.com/c.png)"},
		{`\*not\* \_so\_`, "*not* _so_"},
		{"> said\n\n---\n", "> said\n\n──────────"},
		{"```go\nx := *p // **no**\n\n\n- y\n```\n**z**", "```go\nx := *p // **no**\n\n\n- y\n```\nz"},
		{"~~~\nnever closed", "~~~\nnever closed\n~~~"},
		{"| name | lines | note |\n|---|--:|---|\n| a.go | 3 | **new** |\n| b\\|c | | x |\n\nend", "• a.go / lines: 3 / note: new\n• b|c / note: x\n\nend"},
		{"red \x1b[31mtext\u202e \xff", "red [31mtext �"},
	} {
		if got := plain(c[0]); got != c[1] {
			t.Errorf("%q\n gives %q\n  want %q", c[0], got, c[1])
		}
	}
}
