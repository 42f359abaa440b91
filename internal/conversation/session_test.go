package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
)

// Control commands reach no model, and what they say is of no turn.
func TestControl(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "slack", func(h *house, o *Options) {
		h.id = "slack:T1:C1:17.5"
		o.Here, o.Repositories = nil, []Repository{{Name: "a", Path: t.TempDir()}, {Name: "b", Path: t.TempDir(), Channels: []string{"slack:T1:C1"}}, {Name: "c", Path: "/c", Users: []string{"slack:taro"}},
			{Name: "d", Path: "/d", Channels: []string{"slack:T1:C", "slack:T1:C12"}}}
	})
	h.desk.approved = channel.Approval{Title: "T"}
	for _, c := range []struct{ text, want string }{
		{"/repo", "notice: Repository: b (to choose from: a, b)"},
		{"/repo c", "notice: c is no repository that can be named here; to choose from: a, b"},
		{"/REPO a", "notice: Repository: a"},
		{"/jobs", "notice: No job is running."},
		{"/status", "notice: Repository: a (to choose from: a, b)\nNobody is working on anything."},
		{"/stop", "notice: Nothing is running here."},
		{"/show model", "notice: - chat: script/chat"},
		{"/show channel", "notice: Channel slack, session slack:T1:C1:17.5"},
		{"/list channels", "notice: - slack"},
		{"/list repositories", "notice: - a\n- b"},
		{"/list models", "notice: - chat: script/chat\n- worker: script/worker\n- coder: script/coder\n- coder2: script/coder2\n- coder3: script/coder3"},
		{"/approve 20260301-101010-0123abcd 0123456789ab", "decided: Approved: T (job 20260301-101010-0123abcd)"},
		{"/deny 20260301-101010-0123abcd 0123456789ab not\tthis way", "decided: Denied: T (job 20260301-101010-0123abcd)\nReason: not\tthis way\nNothing was changed. Ask for it again, and it is proposed anew, by that reason; if more should be different, say so."},
		{"/auto-approve off", "notice: auto"},
		{"/work status", "notice: Work mode is off."},
	} {
		h.saw(c.text, c.want)
	}
	if got := h.desk.decided; len(got) != 2 || got[0] != (channel.Decision{Job: "20260301-101010-0123abcd", Hash: "0123456789ab", Grant: true}) || got[1].Reason != "not\tthis way" {
		t.Errorf("%+v", got)
	}
	if len(h.desk.auto) != 1 || !h.desk.auto[0].Off {
		t.Errorf("%+v", h.desk.auto)
	}
	for _, text := range []string{"/approve", "/work 51", "/help nothing"} {
		if got := h.hears(text); len(got) != 1 || got[0] == "notice: " || strings.Contains(got[0], "conversation.") {
			t.Errorf("%s: %q", text, got)
		}
	}
	if got := h.hears("/help"); !strings.Contains(got[0], "`/deny JOB [HASH] [REASON]` ") || strings.Count(got[0], "\n")+1 != len(h.Commands()) {
		t.Errorf("%q", got)
	}
	m := h.message("")
	m.Decision = &channel.Decision{Job: "j", Hash: "h", Reason: "it has hunter2-hunter2 in it"}
	if err := h.Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got, all := h.desk.decided[2].Reason, h.stage.seen(); strings.Contains(got+all[len(all)-1], "hunter2") || !strings.Contains(got, "in it") {
		t.Errorf("%q, %q", got, all[len(all)-1])
	}
	h.desk.refuse = i18n.E("conversation.too_many", 1)
	m = h.message("")
	m.Decision = &channel.Decision{Job: "j", Hash: "h", Grant: true}
	if err := h.Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if all := h.stage.seen(); !strings.Contains(all[len(all)-1], "wait already") {
		t.Errorf("%q", all[len(all)-1])
	}
	if h.legs() != "" {
		t.Errorf("legs %s", h.legs())
	}
	// None of it is part of what was said; an unknown word is a message.
	h.plays("worker", `{"route":"CHAT","confidence":0.9,"reason":"r","evidence":[]}`)
	h.plays("chat", "ok")
	h.saw("/switch model", "answer: ok")
	if k := h.last("chat"); len(k.Sent) != 2 || k.Sent[1].Content != "/switch model" {
		t.Errorf("%+v", k.Sent)
	}
	if s := h.stateNow(); s.Title != "/switch model" || s.Repository != "a" {
		t.Errorf("%+v", s)
	}
}

// Commands that no turn answers are told from messages.
func TestCommandsAreOffered(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	for _, c := range h.Commands() {
		if turn := strings.HasPrefix(c.Name, "/co") || slices.Contains([]string{"/chat", "/plan", "/analyze", "/ops", "/research"}, c.Name); c.AtOnce == turn {
			t.Errorf("%+v", c)
		}
	}
}

// What a person says behind a denial may go to a coder though nothing in it shows code; what
// is said later may not.
func TestAfterADenial(t *testing.T) {
	t.Parallel()
	const code = `{"route":"CODE","confidence":0.9,"reason":"change","evidence":[]}`
	for name, c := range map[string]struct {
		between []string
		jobs    int
	}{
		"at once":          {nil, 1},
		"behind a command": {[]string{"/jobs"}, 1},
		"later":            {[]string{"/chat thanks"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, i18n.English, "terminal")
			h.plays("chat", "ok", "ok", "ok", "ok")
			h.plays("worker", code)
			h.hears("/chat hello")
			h.hears("/deny 20260301-101010-0123abcd 0123456789ab too long")
			for _, text := range c.between {
				h.hears(text)
			}
			h.hears("again, but shorter")
			if got := len(h.desk.jobs); got != c.jobs {
				t.Errorf("%d jobs, %s", got, h.legs())
			}
			if h.hears("/chat and now?"); !strings.Contains(h.last("chat").asked(), "<notice>Denied: ") { // no words of its own
				t.Error(h.last("chat").asked())
			}
		})
	}
}

// Jobs are listed and stopped by their id; who works on what is told by aliases, and only
// where it is asked for.
func TestJobsAreListed(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.hears("/code3 make it")
	h.pass(90 * time.Second)
	h.saw("/jobs", "notice: - 20260301-101010-00000001 make it (running, 1m30s)")
	h.saw("/stop 20260301-101010-00000001", "notice: Job 20260301-101010-00000001 is being stopped.")
	h.saw("/stop", "notice: Job 20260301-101010-00000001 is being stopped.")
	if got := h.desk.stopped; !slices.Equal(got, []string{"20260301-101010-00000001 by terminal:hanako", "20260301-101010-00000001 by terminal:hanako"}) {
		t.Error(got)
	}
	h.plays("chat", "Gin writes code.", "Fine.")
	h.hears("/chat what is everyone doing?")
	if asked := h.last("chat").asked(); !strings.Contains(asked, "- Gin: make it (running, 1m30s)") {
		t.Error(asked)
	}
	h.hears("/chat thanks")
	if asked := h.last("chat").asked(); strings.Contains(asked, "Gin: ") {
		t.Error(asked)
	}
	// Of several somebody says which; one that waits for a decision is none of them.
	h.hears("/code2 mend it")
	h.saw("/stop", "notice: Several jobs are worked on. Say which to stop:\n- /stop 20260301-101010-00000001 (make it)\n- /stop 20260301-101010-00000002 (mend it)")
	h.desk.waits = "20260301-101010-00000002"
	h.saw("/stop", "notice: Job 20260301-101010-00000001 is being stopped.")
	if err := h.Finish(t.Context(), Finished{SessionID: h.id, ID: "20260301-101010-00000001", Stopped: true}); err != nil {
		t.Fatal(err)
	}
	if all := h.stage.seen(); all[len(all)-1] != "answer: Job 20260301-101010-00000001 was stopped. Nothing was changed." {
		t.Errorf("%q", all[len(all)-1])
	}
}

// The work overlay: a message of its own before the current one, in CHAT only, counted
// down by answers, over restarts, off at once.
func TestWorkOverlay(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.saw("/work 2", "notice: Work mode for the next 2 answers; /normal ends it.")
	h.plays("worker", output(planResult, nil), output(planResult, nil))
	h.plays("chat", "a plan", "DELEGATE: PLAN\nTASK: do", "first", "second", "third", "x")
	overlaid := func(want bool) {
		t.Helper()
		k := h.last("chat")
		n := len(k.Sent)
		is := strings.Contains(k.Sent[n-1].Content, "[work] ") && k.Sent[n-1].Role == "user" && strings.Contains(k.Sent[n-1].Content, "before the manner of your persona")
		if system := k.Sent[0]; system.Role != "system" || strings.Contains(system.Content, "[work]") {
			t.Errorf("the system prompt changes: %s", k.asked())
		}
		if is != want {
			t.Errorf("overlay %v: %s", is, k.asked())
		}
		for i, m := range k.Sent[:n-1] {
			if k.Sent[i+1].Role == m.Role {
				t.Errorf("two in a row of one role: %s", k.asked())
			}
			if strings.Contains(m.Content, "[work] Answer") && !want {
				t.Errorf("it stays: %s", k.asked())
			}
		}
	}
	h.hears("/plan do")
	overlaid(false)
	h.saw("/work status", "notice: Work mode: 2 more answers.")
	// A delegation is one turn, and a turn that fails counts for nothing.
	if err := h.Handle(t.Context(), h.message("/chat do")); err != nil {
		t.Fatal(err)
	}
	h.saw("/work status", "notice: Work mode: 1 more answers.")
	h.cast.scripts["chat"] = append([]string{""}, h.cast.scripts["chat"]...)
	h.hears("/chat are you there?")
	h.saw("/work status", "notice: Work mode: 1 more answers.")
	h.hears("/chat once more")
	overlaid(true)
	h.saw("/work status", "notice: Work mode is off.")
	if s := h.stateNow(); s.Overlay != "" || s.OverlayLeft != 0 {
		t.Errorf("%+v", s)
	}
	h.hears("/chat again")
	overlaid(false)
	h.saw("/work", "notice: Work mode for the next 8 answers; /normal ends it.")
	h.saw("/normal", "notice: Work mode is off.")
	h.hears("/chat so")
	overlaid(false)
}

// A message that comes twice is answered once; what answered it is shown again, in case
// the channel never had it.
func TestTwice(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("chat", "once")
	m := h.message("/chat hi")
	for range 2 {
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if p := h.stage.posts; len(p) != 2 || p[0] != p[1] || p[0].Key == "" || h.legs() != "chat CHAT" {
		t.Errorf("%+v, %s", p, h.legs())
	}
	c := h.message("/work 3")
	for range 2 {
		if err := h.Handle(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if p := h.stage.posts; len(p) != 4 || p[2].Key != p[3].Key {
		t.Errorf("%+v", p)
	}
	// What it set is not set again, whatever was set since.
	h.plays("chat", "here")
	l := h.message("/local /chat where?")
	h.saw("/cloud", "notice: Cloud models may be used again.")
	for _, c := range []channel.Message{l, h.message("/cloud"), l} {
		if err := h.Handle(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(h.stage.seen()[5:], "; "); got != "notice: Working locally only; /cloud lifts it.; answer: here; notice: Cloud models may be used again.; answer: here" || h.stateNow().LocalOnly || h.stage.posts[6] != h.stage.posts[8] {
		t.Errorf("%s, local %t", got, h.stateNow().LocalOnly)
	}
	// One that was recorded and not answered is answered when it comes again.
	x := h.open(h.id, "terminal")
	if _, err := h.append(t.Context(), x, entryOf(h.message("/chat lost"))); err != nil {
		t.Fatal(err)
	}
	h.n--
	h.plays("chat", "found")
	h.saw("/chat lost", "answer: found")
	n := 0
	if err := Lines(x.Dir, func(e Entry) bool {
		if e.Role == roleUser {
			n++
		}
		return true
	}); err != nil || n != 6 {
		t.Errorf("%d messages, %v", n, err)
	}
}

// What the channel does not take is shown with the next message, under the same key.
func TestChannelIsAway(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("chat", "one", "two")
	h.stage.fail = 1
	h.saw("/chat a")
	if got := h.stateNow().Unposted; !slices.Equal(got, []int64{2}) {
		t.Error(got)
	}
	h.saw("/chat b", "answer: one", "answer: two")
	if got := h.stateNow().Unposted; len(got) > 0 || h.stage.posts[0].ReplyTo != "m1" {
		t.Error(got)
	}
}

// fatal is a channel within whose Post the program ends.
type fatal struct{ *stage }

func (f fatal) Post(context.Context, channel.Post) error {
	runtime.Goexit()
	return nil
}

// What was on record, and not shown when the program ended, is shown by the next one, once.
func TestEndsBeforeAPostIsShown(t *testing.T) {
	t.Parallel()
	for kind, id := range map[channel.Kind]string{channel.Terminal: "", channel.Slack: "slack:T1:C1:1"} {
		h := open(t, i18n.English, kind)
		p := channel.Post{SessionID: cmp.Or(id, h.id), Key: "run-1/question/ask1", Kind: channel.Notice, Job: "run-1", Text: "Which color?", Question: &channel.Question{ID: "run-1/question/ask1", Choices: []string{"red"}}}
		h.Add(fatal{&stage{kind: kind}})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = h.Post(t.Context(), p)
		}()
		<-ended
		h.Add(h.stage)
		for range 2 {
			if err := h.Post(t.Context(), p); err != nil { // it is on record
				t.Fatal(err)
			}
			h.PostOwed(t.Context(), p.SessionID)
		}
		var shown []channel.Post
		for _, s := range h.stage.posts {
			if s.Kind == channel.Notice {
				shown = append(shown, s)
			}
		}
		if len(shown) != 1 || shown[0].Key != p.Key || shown[0].Question == nil || shown[0].Question.Choices[0] != "red" {
			t.Errorf("%s: %+v", kind, h.stage.posts)
		}
	}
}

// A turn that is stopped keeps what was said, whoever stops it.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"the context", "/stop"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h := open(t, i18n.English, "terminal")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h.plays("chat", strings.Repeat("many words of it ", 40))
			n := 0
			h.stage.onText = func(string) {
				if n++; n != 3 {
					return
				}
				if how == "/stop" {
					if err := h.Handle(t.Context(), h.message("/stop")); err != nil {
						t.Error(err)
					}
					return
				}
				cancel()
			}
			if err := h.Handle(ctx, h.message("/chat tell me")); err != nil {
				t.Fatal(err)
			}
			all := h.stage.seen()
			got := all[len(all)-1]
			if !strings.HasPrefix(got, "answer: many words of it") || len(got) > 100 {
				t.Errorf("%q", all)
			}
			var last Entry
			if err := Lines(h.Engine.open(h.id, "terminal").Dir, func(e Entry) bool { last = e; return true }); err != nil || !last.Cut || !last.Final || last.ReplyTo != "m1" {
				t.Errorf("%+v, %v", last, err)
			}
			h.tells("loop.stop", "stop_reason", `stop_reason="error"`)
			h.stage.onText = nil
			h.plays("chat", "so")
			h.hears("/chat go on")
			if asked := h.last("chat").asked(); !strings.Contains(asked, "[assistant] many words of it") || !strings.Contains(asked, "[user] tell me") {
				t.Error(asked)
			}
		})
	}
}

// A turn that the person stopped before anything was said has ended: nobody is told later
// that it was cut short, and the session shown again says that it was stopped.
func TestStoppedBeforeAWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, i18n.English, "terminal", func(_ *house, o *Options) { o.Now = time.Now })
		ctx, cancel := context.WithCancelCause(t.Context())
		h.play("chat", slowly("never", time.Hour))
		time.AfterFunc(time.Second, func() { cancel(channel.ErrStopped) })
		if err := h.Handle(ctx, h.message("/chat tell me")); err != nil {
			t.Fatal(err)
		}
		h.plays("chat", "so")
		h.saw("/chat go on", "answer: so")
		all, err := h.History(t.Context(), h.id, 10)
		if err != nil || len(all) != 4 || all[1].Text != "Stopped." {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// Where Chat is down a fixed text says so, what workers found is kept for its next
// answer, and a turn that failed changes no route.
func TestChatIsDown(t *testing.T) {
	t.Parallel()
	for lang, want := range map[i18n.Lang]string{i18n.English: "I cannot answer right now", i18n.Japanese: "今は答えられません"} {
		h := open(t, lang, "terminal")
		h.plays("worker", output(planResult, nil))
		if got := h.hears("/plan do"); len(got) != 1 || !strings.HasPrefix(got[0], "notice: "+want) {
			t.Errorf("%q", got)
		} else if !strings.Contains(got[0], "tori models") {
			t.Errorf("not told what to do: %q", got)
		}
		m := h.message("/chat and?")
		for range 2 { // what comes again is told again
			if err := h.Handle(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range h.stage.posts {
			if !p.Failed || !strings.HasPrefix(p.Text, want) {
				t.Errorf("%+v", p)
			}
		}
		s := h.stateNow()
		if len(s.Unsaid) != 1 || s.PrevRoute != nil {
			t.Errorf("%+v", s)
		}
		h.tells("loop.stop", "stop_reason", `stop_reason="error"`, `stop_reason="error"`)
		h.plays("chat", "Here it is.")
		h.saw("/chat and?", "answer: Here it is.")
		if asked := h.last("chat").asked(); !strings.Contains(asked, `"title": "T"`) || !strings.Contains(asked, "[user] do") {
			t.Error(asked)
		}
		if s := h.stateNow(); len(s.Unsaid) != 0 || h.stage.posts[len(h.stage.posts)-1].Failed {
			t.Errorf("%+v", s.Unsaid)
		}
	}
}

// A session's day ends at four: what was said is forgotten, what was set stays.
func TestCutover(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("JST", 9*3600)
	h := open(t, i18n.Japanese, "terminal", func(h *house, o *Options) {
		o.Zone = zone
		h.now = time.Date(2026, 3, 1, 18, 30, 0, 0, time.UTC) // 03:30 of the next day
	})
	h.hears("/local")
	h.plays("chat", "one", "two", "three")
	h.hears("/chat a secret of monday")
	h.pass(29 * time.Minute)
	h.hears("/chat b")
	if asked := h.last("chat").asked(); !strings.Contains(asked, "monday") {
		t.Error(asked)
	}
	h.pass(time.Minute) // 04:00
	h.hears("/chat c")
	if k := h.last("chat"); len(k.Sent) != 2 || !k.Local {
		t.Errorf("%s", k.asked())
	}
	if s := h.stateNow(); !s.LocalOnly || s.CutSeq == 0 || s.Created.IsZero() {
		t.Errorf("%+v", s)
	}
	if all, err := h.History(t.Context(), h.id, 100); err != nil || len(all) != 8 {
		t.Errorf("%d, %v", len(all), err)
	}
}

// The short memory is renewed after twenty texts; the prefix of requests stays until then,
// and the latest turns stay as they are.
func TestShortMemory(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	var before string
	for i := range 10 {
		h.plays("chat", fmt.Sprint("answer ", i))
		h.hears(fmt.Sprint("/chat question ", i))
		asked := h.last("chat").asked()
		if !strings.HasPrefix(asked, before) {
			t.Fatalf("the prefix of request %d is another one", i)
		}
		before = asked
	}
	h.plays("chat", "answer 10", strings.Repeat("remembered well. ", 100))
	h.hears("/chat question 10")
	s := h.stateNow()
	if len([]rune(s.ShortMemory)) > 1200 || !strings.HasPrefix(s.ShortMemory, "remembered") || s.MemorySeq != 12 {
		t.Fatalf("%+v", s)
	}
	k := h.last("chat")
	if k.Route != "CHAT" || !strings.Contains(k.asked(), "question 0") || !strings.Contains(k.asked(), "question 5") || strings.Contains(k.asked(), "question 6") || h.cast.calls[11] != k {
		t.Errorf("%d legs: %s", len(h.cast.calls), k.asked())
	}
	h.plays("chat", "answer 11")
	h.hears("/chat question 11")
	asked := h.last("chat").asked()
	if !strings.Contains(asked, "<summary>\nremembered") || strings.Contains(asked, "question 5") || !strings.Contains(asked, "question 6") {
		t.Error(asked)
	}
	// The summariser is Chat, and local where the session is.
	h.hears("/local")
	for i := range 6 {
		h.plays("chat", "a")
		if i == 5 {
			h.plays("chat", "memory two")
		}
		h.hears("/chat q")
	}
	if k := h.last("chat"); !k.Local || k.Role != "chat" {
		t.Errorf("%+v", k)
	}
	// A memory that cannot be made leaves what there is.
	for range 12 {
		h.plays("chat", "a")
		if got := h.hears("/chat q"); got[0] != "answer: a" {
			t.Fatalf("%q", got)
		}
	}
}

// A small window: what does not fit is left out from the oldest on, and said.
func TestSmallWindow(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.cast.context = 2048
	h.plays("chat", strings.Repeat("word ", 500), strings.Repeat("more ", 500), "memory", "short")
	h.hears("/chat " + strings.Repeat("eins ", 400))
	h.hears("/chat " + strings.Repeat("zwei ", 400))
	if s := h.stateNow(); s.ShortMemory != "memory" { // of few texts, but long ones
		t.Errorf("%+v", s)
	}
	h.hears("/chat " + strings.Repeat("drei ", 20000))
	k := h.last("chat")
	size := 0
	for _, m := range k.Sent {
		size += tokens(m.Content)
	}
	if size > 1700 || !strings.Contains(k.asked(), "[left out: ") {
		t.Errorf("%d tokens: %s", size, k.asked())
	}
	// What holds for the session, and what came with the message, is not what is left out.
	h.hears("/work")
	h.plays("chat", "seen", "memory")
	m := h.message("/chat " + strings.Repeat("vier ", 20000))
	m.Attachments = []channel.Attachment{{Name: "p.png", MediaType: "image/png", Content: []byte("PNG")}}
	if err := h.Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(h.cast.calls, func(k *call) bool { return strings.Contains(k.asked(), "vier") })
	k = h.cast.calls[i]
	if last := k.Sent[len(k.Sent)-1]; k.Sent[0].Content != h.prompts.system("terminal", "CHAT", false, true) || len(last.Images) != 1 || !strings.Contains(last.Content, "[work] ") || !strings.Contains(last.Content, "vier") {
		t.Error(k.asked())
	}
}

// Ten megabytes of text, and other input that is none.
func TestHostileInput(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	big := strings.Repeat("これは長い文です。 hanako@example.com token=hunter2-hunter2\n", 150_000)
	h.plays("worker", output(planResult, nil))
	h.plays("chat", "Long.", "memory", "Odd.", "Nested.", "Fenced.")
	h.saw("/plan "+big, "answer: I'll lay out a plan.\nLong.")
	for _, k := range h.cast.calls {
		if n := len(k.asked()); n > 300_000 || strings.Contains(k.asked(), "hunter2") {
			t.Errorf("%s was sent %d bytes", k.Role, n)
		}
	}
	st, err := os.Stat(filepath.Join(h.Engine.open(h.id, "terminal").Dir, messagesFile))
	if err != nil || st.Size() < 8_000_000 {
		t.Errorf("%v, %v", st, err)
	}
	h.saw(strings.Repeat("/local /cloud ", 50_000)+"/local", "notice: Working locally only; /cloud lifts it.")
	h.saw("/cloud", "notice: Cloud models may be used again.")
	h.saw("/chat \xff\x00\xfe {\"a\": \u202e", "answer: Odd.")
	h.saw("/chat {{{{[[[[\"", "answer: Nested.")
	h.saw("/chat ```\nDELEGATE: CODE\nTASK: x\n```", "answer: Fenced.")
	if len(h.desk.jobs) > 0 {
		t.Error("a user's text was taken for a delegation")
	}
	raw, err := disk.Read(filepath.Join(h.Engine.open(h.id, "terminal").Dir, messagesFile), 64<<20)
	if err != nil || strings.Contains(string(raw), "hunter2") || strings.Contains(string(raw), "hanako@example") {
		t.Errorf("a secret is on the disk: %v", err)
	}
}

// Answers of workers that are nonsense fail after one more try, and are told as that.
func TestNonsenseOfWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string
		ok      bool
	}{
		"words, then JSON":   {[]string{"I think so.", output(planResult, nil)}, true},
		"a field is missing": {[]string{`{"result":` + planResult + `,"why":"w"}`, output(planResult, nil)}, true},
		"nested in text":     {[]string{"Well {so}: " + output(`{"goal":"a } in \"{\" it","plan":[{"title":"T"}]}`, nil) + " ok?"}, true},
		"cut off":            {[]string{output(planResult, nil)[:60], output(planResult, nil)[:60]}, false},
		"of another worker":  {[]string{output(opsResult, nil), output(opsResult, nil)}, false},
		"a list":             {[]string{"[1,2,3]", "[1,2,3]"}, false},
		"very deep":          {[]string{strings.Repeat(`{"a":`, 20000), strings.Repeat("[", 20000)}, false},
		"800,000 bytes":      {[]string{strings.Repeat("x", 400_000), strings.Repeat("{", 400_000)}, false},
		"a delegation":       {[]string{"DELEGATE: CODE\nTASK: x", "DELEGATE: CODE\nTASK: x"}, false},
		"no number":          {[]string{output(planResult, map[string]any{"confidence": "high"}), output(planResult, nil)}, true},
		"a risk of its own":  {[]string{output(planResult, map[string]any{"risk": "purple"}), output(planResult, nil)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, i18n.English, "terminal")
			h.play("worker", says(c.answers...))
			h.plays("chat", "Well.")
			h.saw("/plan do", "answer: I'll lay out a plan.\nWell.")
			if got := len(h.told("worker.success", "route")); (got == 1) != c.ok {
				t.Errorf("%v", h.told("worker.fail", "error"))
			}
			if len(h.desk.jobs) > 0 {
				t.Error("a job")
			}
		})
	}
}

// A full disk: a message that cannot be kept is refused; an answer that cannot be kept is
// shown all the same; later all is well.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 12; at++ {
		fs := &disk.FS{}
		h := open(t, i18n.English, "terminal", func(h *house, o *Options) {
			s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: o.Store.BaseDir, Redact: o.Redact, FS: fs, Now: h.clock})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			o.Store = s
		})
		f := &disktest.Failer{At: at, Err: syscall.ENOSPC, Short: true}
		fs.Before = f.Before
		h.plays("worker", output(planResult, nil))
		h.plays("chat", "The plan.", "Later.")
		err := h.Handle(t.Context(), h.message("/plan do"))
		fs.Before = nil
		switch all := h.stage.seen(); {
		case err != nil && (!errors.Is(err, syscall.ENOSPC) || len(all) > 0):
			t.Errorf("call %d %v: %v, %q", at, f.Hit(), err, all)
		case err == nil && (len(all) != 1 || all[0] != "answer: I'll lay out a plan.\nThe plan."):
			t.Errorf("call %d %v: %q", at, f.Hit(), all)
		}
		h.cast.scripts["chat"] = []string{says("Later.")}
		got := h.hears("/chat well?")
		if err == nil && len(got) == 2 { // it was shown, and could not be kept
			if !strings.HasPrefix(got[0], "notice: No answer to your last message was kept") {
				t.Errorf("call %d %v: %q", at, f.Hit(), got)
			}
			got = got[1:]
		}
		if !slices.Equal(got, []string{"answer: Later."}) {
			t.Errorf("call %d %v: then %q", at, f.Hit(), got)
		}
	}
}

// What a command could not set is said, in the language of the house, and not taken for set.
func TestFullDiskForCommands(t *testing.T) {
	t.Parallel()
	for lang, want := range map[i18n.Lang]string{i18n.English: "notice: This conversation cannot be continued right now: ", i18n.Japanese: "notice: 今はこの会話を続けられません: "} {
		h := open(t, lang, "terminal")
		h.hears("/cloud")
		h.fs.Before = func(o disk.Op) error {
			if strings.Contains(o.Path, stateFile) {
				return syscall.ENOSPC
			}
			return nil
		}
		for _, text := range []string{"/local", "/work"} {
			if got := h.hears(text); len(got) != 1 || !strings.HasPrefix(got[0], want) {
				t.Errorf("%s: %q", text, got)
			}
		}
		if h.fs.Before = nil; h.stateNow().LocalOnly {
			t.Error("it is local")
		}
	}
}

// A kill in the middle leaves a session that goes on: each message is there once. One that
// was not answered is answered when it comes again; where it does not, people are told.
func TestKilled(t *testing.T) {
	t.Parallel()
	const cut = "No answer to your last message was kept: the program ended before, or could not write it. Send it again if you still want one."
	answered := "1 user /chat hi; 2 assistant you said hi after 0; 3 user /chat how are you?; 4 assistant you said how are you? after 2"
	wants := map[bool][]string{true: {answered}, false: {answered,
		"1 user /chat how are you?; 2 assistant you said how are you? after 0", // nothing was kept of it
		"1 user /chat hi; 2 assistant " + cut + "; 3 user /chat how are you?; 4 assistant you said hi\n\nhow are you? after 0"}}
	for again, want := range wants {
		met := map[string]bool{}
		for at := 1; ; at++ {
			fs := &disk.FS{}
			h := open(t, i18n.English, "terminal", func(h *house, o *Options) {
				s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: o.Store.BaseDir, Redact: o.Redact, FS: fs, Now: h.clock})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				o.Store = s
			})
			stop := &disktest.Stopper{At: at, Torn: true}
			fs.Before = stop.Before
			h.Models = &echo{h.cast}
			m := h.message("/chat hi")
			_ = h.Handle(t.Context(), m) // it died in it
			fs.Before = nil
			h.stage.posts = nil
			if again {
				if err := h.Handle(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			} else if _, err := h.History(t.Context(), h.id, 9); err != nil {
				t.Fatal(err)
			}
			h.hears("/chat how are you?")
			var all []string
			if err := Lines(h.Engine.open(h.id, "terminal").Dir, func(e Entry) bool {
				all = append(all, fmt.Sprintf("%d %s %s", e.Seq, e.Role, e.Content))
				return true
			}); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(all, "; ")
			if met[got] = true; !slices.Contains(want, got) {
				t.Errorf("killed at %d, %v, comes again: %t: %s", at, stop.Hit(), again, got)
			}
			if got := h.stage.seen(); again && len(got) != 2 || !again && len(got) != 1 {
				t.Errorf("killed at %d, %v: shown %q", at, stop.Hit(), got)
			}
			if stop.Hit().Kind == "" {
				break
			}
		}
		if len(met) != len(want) {
			t.Errorf("comes again: %t: %v", again, met)
		}
	}
}

// A message of which nothing but itself was kept: the next one says so without anybody
// having opened the session, and one that began a job is told of that, also when it comes again.
func TestCutShort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lang  i18n.Lang
		job   bool
		again bool
		want  []string
	}{
		"a message":                 {i18n.English, false, false, []string{"notice: No answer to your last message was kept: the program ended before, or could not write it. Send it again if you still want one.", "answer: Well."}},
		"a message, ja":             {i18n.Japanese, false, false, []string{"notice: 前の発言への答えは残っていません。途中でプログラムが終了したか、書き込めませんでした。必要なら、もう一度送ってください。", "answer: Well."}},
		"a job":                     {i18n.English, true, false, []string{"notice: Job 20260301-101010-00000001. /jobs shows how far it is.", "answer: Well."}},
		"a job, and it comes again": {i18n.English, true, true, []string{"notice: Job 20260301-101010-00000001. /jobs shows how far it is."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, c.lang, "terminal")
			m := h.message("/code2 rename `foo_bar()` in main.go")
			if _, err := h.append(t.Context(), h.open(h.id, "terminal"), entryOf(m)); err != nil {
				t.Fatal(err)
			}
			if c.job {
				h.desk.jobs = []Job{{SessionID: h.id, ReplyTo: m.ID, Task: "rename"}}
			}
			if c.again {
				if err := h.Handle(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			} else {
				h.plays("chat", "Well.")
				h.hears("/chat well?")
			}
			if got := h.stage.seen(); !slices.Equal(got, c.want) {
				t.Errorf("%q", got)
			}
			if n := len(h.desk.jobs); n > 1 {
				t.Errorf("%d jobs", n)
			}
			said, err := h.History(t.Context(), h.id, 9)
			if err != nil || len(said) != 1+len(c.want)+len(c.want)-1 {
				t.Errorf("%d, %v", len(said), err)
			}
		})
	}
}

// A slow session keeps no other waiting; the messages of one follow each other in order.
func TestSessionsDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, i18n.English, "terminal", func(_ *house, o *Options) { o.Now = time.Now })
		h.play("chat", slowly("slow", 80*time.Second))
		h.plays("chat", "quick", "next", "last")
		var all sync.WaitGroup
		begin := func(m channel.Message) {
			all.Go(func() {
				if err := h.Handle(t.Context(), m); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		one, two, three := h.message("/chat 1"), h.message("/chat 2"), h.message("/chat 3")
		other := h.message("/chat other")
		other.SessionID = "terminal:taro:0"
		began := time.Now()
		begin(one)
		begin(two)
		begin(three)
		begin(other)
		if time.Since(began) != 0 || !slices.Equal(h.stage.seen(), []string{"answer: quick"}) || h.stage.posts[0].SessionID != other.SessionID {
			t.Errorf("%q after %s", h.stage.seen(), time.Since(began))
		}
		all.Wait()
		if got := h.stage.seen(); !slices.Equal(got, []string{"answer: quick", "answer: slow", "answer: next", "answer: last"}) {
			t.Errorf("%q", got)
		}
		// No queue grows without end.
		h.cast.scripts["chat"] = nil
		h.play("chat", slowly("slow", 80*time.Second))
		refused := 0
		var mu sync.Mutex
		for range 2 * maxWaiting {
			m := h.message("/chat more")
			all.Go(func() {
				if err := h.Handle(t.Context(), m); err != nil {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if refused != maxWaiting-1 {
			t.Errorf("%d refused", refused)
		}
		if n := len(h.lanes); n != 0 {
			t.Errorf("%d lanes are left", n)
		}
	})
}

// Two hundred sessions at once: no message is lost, doubled or crossed, and nothing of
// them stays in memory.
func TestManySessions(t *testing.T) {
	t.Parallel()
	const sessions, turns = 200, 4
	h := open(t, i18n.English, "terminal")
	h.cast.made = nil
	echo := &echo{cast: h.cast}
	h.Models = echo
	var all sync.WaitGroup
	for s := range sessions {
		all.Go(func() {
			for n := range turns {
				m := channel.Message{Channel: "terminal", SessionID: fmt.Sprintf("terminal:u%d:x", s), User: fmt.Sprintf("terminal:u%d", s), ID: fmt.Sprintf("%d-%d", s, n), UserText: fmt.Sprintf("/chat session %d turn %d", s, n)}
				if err := h.Handle(t.Context(), m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := map[string]int{}
	for _, p := range h.stage.posts {
		got[p.SessionID+" "+p.ReplyTo+" "+p.Text]++
	}
	for s := range sessions {
		for n := range turns {
			if k := fmt.Sprintf("terminal:u%d:x %d-%d you said session %d turn %d after %d", s, s, n, s, n, 2*n); got[k] != 1 {
				t.Errorf("%q: %d times", k, got[k])
			}
		}
	}
	if len(h.stage.posts) != sessions*turns || len(h.lanes) != 0 {
		t.Errorf("%d posts, %d lanes", len(h.stage.posts), len(h.lanes))
	}
	list, err := h.Sessions(t.Context(), "terminal", "terminal:u7")
	if err != nil || len(list) != 1 || list[0].Title != "/chat session 7 turn 0" {
		t.Errorf("%+v, %v", list, err)
	}
}

// Sessions in which nobody has spoken for long go, with what ANALYZE kept.
func TestClean(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("worker", output(analyzeResult, nil))
	h.plays("chat", "old", "new")
	h.hears("/analyze a,b,c")
	h.pass(80 * 24 * time.Hour)
	h.id = "terminal:hanako:other"
	h.hears("/chat hi")
	for _, want := range []int{0, 1, 0} {
		if n, err := h.Clean(t.Context()); err != nil || n != want {
			t.Errorf("%d, %v", n, err)
		}
		h.pass(11 * 24 * time.Hour)
	}
	if list, err := List(h.store.BaseDir, func(*State) bool { return true }); err != nil || len(list) != 1 || list[0].ID != h.id {
		t.Errorf("%+v, %v", list, err)
	}
	if all, err := h.analyses.Find(t.Context(), "", nil, 9); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}
