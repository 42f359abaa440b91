package terminal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
)

// within runs a test of a chat at 80×24 with a talker.
func within(t *testing.T, change func(*channeltest.Handler, *Options, *Start), f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &channeltest.Handler{Words: offered}
		talker(t, h)
		r := chatting(t, h, 80, 24, func(o *Options, s *Start) {
			if change != nil {
				change(h, o, s)
			}
		})
		f(t, r)
	})
}

func (r *rig) texts() (all []string) {
	for _, m := range r.h.Told() {
		all = append(all, m.UserText)
	}
	return all
}

func (r *rig) told(want ...string) {
	r.t.Helper()
	if got := r.texts(); strings.Join(got, "|") != strings.Join(want, "|") {
		r.t.Errorf("told %q, want %q", got, want)
	}
}

func (r *rig) over() bool {
	r.settle()
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func TestEnterAndLines(t *testing.T) {
	t.Parallel()
	within(t, nil, func(_ *testing.T, r *rig) {
		r.keys("one\\", enter, "two", altEnter, "three", enter, "  ", enter)
		r.told("one\ntwo\nthree")
		r.keys("\x15", up)
		r.has("> one\n  two\n  three")
		r.keys(up, up, "X", enter)
		r.told("one\ntwo\nthree", "oneX\ntwo\nthree")
	})
}

// While a turn goes on, what is said waits for its end, but for what acts at once.
func TestWhileATurnGoesOn(t *testing.T) {
	t.Parallel()
	within(t, nil, func(t *testing.T, r *rig) {
		r.keys("wait", enter, "later", enter, "/JOBS", enter)
		r.told("wait", "/jobs")
		r.has("next: later", "Esc stops")
		r.keys(esc)
		r.told("wait", "/jobs") // what waited is in the editor again
		r.has("Stopped.", "> later")
		r.keys(enter)
		r.told("wait", "/jobs", "later")
		if r.over() {
			t.Error("Esc ended the program")
		}
	})
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"Ctrl-D":       {ctrlD},
		"/quit":        {"/quit", enter},
		"Ctrl-C twice": {ctrlC + ctrlC},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, nil, func(t *testing.T, r *rig) {
				r.keys("draft", ctrlD) // not at an empty prompt
				r.keys(ctrlC)          // empties it
				r.settle()
				r.settle()
				if r.over() {
					t.Fatal("one key too early")
				}
				r.keys(keys...)
				if !r.over() || r.err != nil {
					t.Fatalf("%v\n%s", r.err, r.shown())
				}
				if err := r.term.Post(t.Context(), channel.Post{SessionID: session, Key: "k", Text: "late"}); err == nil {
					t.Error("a post after the end was taken")
				}
			})
		})
	}
}

// Who leaves in the middle of an answer stops it, and it is waited for.
func TestLeavingStopsTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopped := false
		h := &channeltest.Handler{Reply: func(ctx context.Context, _ channel.Message) error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			stopped = true
			return ctx.Err()
		}}
		r := chatting(t, h, 80, 24, nil)
		r.keys("x", enter, ctrlC+ctrlC)
		<-r.ended
		if !stopped || r.err != nil {
			t.Errorf("%v %v", stopped, r.err)
		}
	})
}

func TestFailedMessage(t *testing.T) {
	t.Parallel()
	within(t, func(h *channeltest.Handler, o *Options, _ *Start) {
		h.Reply = func(context.Context, channel.Message) error { return errors.New("disk full, key=s3cret") }
		o.Mask = func(s string) string { return strings.ReplaceAll(s, "s3cret", "[KEY]") }
	}, func(_ *testing.T, r *rig) {
		r.keys("x", enter)
		r.has("disk full, key=[KEY]")
	})
}

func TestDeciding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys []string
		want channel.Decision
		text string
	}{
		"approve":              {[]string{tab, "a"}, channel.Decision{Grant: true}, ""},
		"deny":                 {[]string{tab, "d", enter}, channel.Decision{}, ""},
		"deny with a reason":   {[]string{tab, "d", "危ない", enter}, channel.Decision{Reason: "危ない"}, ""},
		"change":               {[]string{"draft", tab, "c", "name it Hello", enter}, channel.Decision{}, "/code About the proposal 20260102-030405-0a1b2c3d, please change this: name it Hello"},
		"letters are no press": {[]string{"a", "\x15", tab, esc, "a", enter}, channel.Decision{}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, nil, func(t *testing.T, r *rig) {
				post(t, r, channeltest.Proposal(session))
				r.keys(c.keys...)
				told := r.h.Told()
				if len(told) != 1 {
					t.Fatalf("%+v\n%s", told, r.shown())
				}
				if c.text != "" {
					if told[0].UserText != c.text || told[0].Decision != nil {
						t.Errorf("%+v", told[0])
					}
					r.has("? Greet politely") // it still waits
					return
				}
				c.want.Job, c.want.Hash = "20260102-030405-0a1b2c3d", "0123456789ab"
				if d := told[0].Decision; d == nil || *d != c.want {
					t.Errorf("%+v", d)
				}
			})
		})
	}
}

// A key that was meant for a proposal decides about no other one, and about nothing
// that has changed since it was shown.
func TestDecidedElsewhere(t *testing.T) {
	t.Parallel()
	other := channeltest.Proposal(session)
	o := *other.Approval
	o.Job, o.Title = "20260102-030406-ffffffff", "Another"
	other.Key, other.Job, other.Approval = "req-2", o.Job, &o
	anew := channeltest.Proposal(session)
	a := *anew.Approval
	a.Hash = "ba9876543210"
	anew.Key, anew.Approval = "req-3", &a
	for name, between := range map[string]channel.Post{
		"decided": {Key: "d", Kind: channel.Decided, Job: "20260102-030405-0a1b2c3d", Text: "denied by ken"},
		"changed": anew,
	} {
		for _, keys := range [][]string{{tab}, {tab, "d", "no"}, {tab, "c", "this"}} {
			t.Run(name+" "+strings.Join(keys[1:], ""), func(t *testing.T) {
				t.Parallel()
				within(t, nil, func(t *testing.T, r *rig) {
					post(t, r, other)
					post(t, r, channeltest.Proposal(session))
					r.keys("draft")
					r.keys(keys...)
					post(t, r, between)
					r.has("in the meantime", "> draft")
					r.keys("a")
					r.told()
				})
			})
		}
	}
}

// Of several proposals Tab takes the one that was shown last, as the line above it says; the
// arrows turn to the others.
func TestDecidingAmongSeveral(t *testing.T) {
	t.Parallel()
	const older, newer = "20260102-030405-0a1b2c3d", "20260102-030406-ffffffff"
	for name, c := range map[string]struct {
		before []string // keys, before the key that decides
		shows  string
		keys   []string
		want   channel.Decision
	}{
		"approve the latest":    {[]string{tab}, "? Another (2 of 2, ←→ turn to the others)", []string{"a"}, channel.Decision{Job: newer, Grant: true}},
		"deny the latest":       {[]string{tab, "d"}, "? Another", []string{enter}, channel.Decision{Job: newer}},
		"turn to the older":     {[]string{tab, left}, "? Greet politely (1 of 2", []string{"a"}, channel.Decision{Job: older, Grant: true}},
		"round to the latest":   {[]string{tab, tab, tab}, "? Another (2 of 2", []string{"a"}, channel.Decision{Job: newer, Grant: true}},
		"once more from Escape": {[]string{tab, left, esc}, "? Another (2 wait)", []string{tab, "a"}, channel.Decision{Job: newer, Grant: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, nil, func(t *testing.T, r *rig) {
				post(t, r, channeltest.Proposal(session))
				other := channeltest.Proposal(session)
				o := *other.Approval
				o.Job, o.Title = newer, "Another"
				other.Key, other.Job, other.Approval = "req-2", newer, &o
				post(t, r, other)
				r.has("? Another (2 wait)")
				r.keys(c.before...)
				r.has(c.shows)
				r.keys(c.keys...)
				c.want.Hash = o.Hash
				if told := r.h.Told(); len(told) != 1 || told[0].Decision == nil || *told[0].Decision != c.want {
					t.Errorf("%+v, want %+v\n%s", told, c.want, r.shown())
				}
			})
		})
	}
}

func TestPaste(t *testing.T) {
	t.Parallel()
	pasted := func(s string) string { return "\x1b[200~" + s + "\x1b[201~" }
	lines := strings.Repeat("a line\r\n", 40)
	within(t, nil, func(t *testing.T, r *rig) {
		r.keys(pasted("short\r\nand \x1b[31msweet\x07"), enter)
		r.keys("see ", pasted(lines))
		r.has("see [pasted #1: 41 lines]")
		r.keys(enter, pasted(strings.Repeat("x", 10<<20)))
		r.has("10 MiB were pasted")
		r.keys(pasted(strings.Repeat("long ", 20_000)), enter)
		r.told("short\nand sweet", "see "+strings.ReplaceAll(lines, "\r\n", "\n"), "[pasted #1: 1 lines]")
		all := r.h.Told()
		if at := all[len(all)-1].Attachments; len(at) != 1 || len(at[0].Content) != 100_000 || at[0].Name != "pasted-1.txt" {
			t.Errorf("%d attachments", len(at))
		}
	})
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	within(t, func(_ *channeltest.Handler, o *Options, _ *Start) {
		o.Files = func(context.Context) ([]string, error) {
			return []string{"README.md", "internal/cli/chat.go", "a b.txt", "docs/日本語.md"}, nil
		}
	}, func(_ *testing.T, r *rig) {
		r.keys("/ap")
		r.has("/approve  JOB HASH  approve a proposal")
		r.keys(enter, "X", enter)
		r.keys("/j", enter) // takes no arguments: sent at once
		r.keys("read @ccg", tab, "and @a", enter, "and @日", tab, enter)
		r.told("/approve X", "/jobs", `read @internal/cli/chat.go and @"a b.txt" and @docs/日本語.md `)
		r.keys("@re", esc, enter)
		r.told("/approve X", "/jobs", `read @internal/cli/chat.go and @"a b.txt" and @docs/日本語.md `, "@re")
	})
}

// Nothing that strangers named or wrote steers the terminal: files of the repository, the
// repository, proposals, progress, titles of sessions, answers, errors.
func TestNothingSteers(t *testing.T) {
	t.Parallel()
	const evil = "x\x1b]0;owned\a\x1b[2J\u202ey\u009b31m"
	within(t, func(h *channeltest.Handler, o *Options, _ *Start) {
		o.Files = func(context.Context) ([]string, error) { return []string{"a" + evil, "a\nb", "abc.txt"}, nil }
		o.Name = evil
		p := channeltest.Proposal(session)
		p.Text, p.Approval.Title, p.Approval.Summary, p.Approval.Commands, p.Approval.Risks, p.Approval.CoderRisk, p.Approval.Why, p.Approval.Cost, p.Approval.Diff = evil, evil, []string{evil}, []string{evil}, []string{evil}, evil, evil, evil,
			"--- a/"+evil+"\n+++ b/x\n@@ -1 +1 @@\n-"+evil+"\n+"+evil+"z\n"
		p.Approval.Files = []channel.File{{Path: evil, From: evil, Action: "rename"}}
		h.All = []channel.Session{{ID: session + ":" + evil, Title: evil}}
		h.Past = map[string][]channel.Said{session: {{User: "terminal:hanako", Text: evil}, {Text: evil, Post: &channel.Post{SessionID: session, Key: "old", Kind: channel.Answer, Text: evil}}}}
		h.Reply = func(ctx context.Context, m channel.Message) error {
			to := h.Channel.(channel.Streamer)
			to.Stream(m.SessionID, m.ID, "so "+evil+"\n\n`"+evil+"` &#27;[2J")
			for _, post := range []channel.Post{p, {SessionID: session, Job: "j", Kind: channel.Progress, Text: evil}, {SessionID: session + ":" + evil, Key: "n", Kind: channel.Notice, Text: evil}} {
				if err := to.Post(ctx, post); err != nil {
					return err
				}
			}
			return errors.New(evil)
		}
	}, func(t *testing.T, r *rig) {
		r.keys("@a")
		r.has("@abc.txt")
		r.keys("\x15", "hi "+"\u202e", enter, tab, "v", esc, "/sessions", enter, esc, "\x1b[200~"+"\x1b]0;owned\a"+"\x1b[201~", enter)
		r.raw.mu.Lock()
		defer r.raw.mu.Unlock()
		raw := r.raw.raw.String()
		for _, bad := range []string{"\x1b]0;owned", "\x1b[2J", "\u202e", "\u009b"} {
			if i := strings.Index(raw, bad); i >= 0 {
				t.Errorf("%q: %q", bad, raw[max(0, i-120):i+len(bad)])
			}
		}
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	within(t, func(h *channeltest.Handler, _ *Options, _ *Start) {
		h.All = []channel.Session{{ID: session + ":work", Title: "仕事の話"}, {ID: session, Title: "hello"}, {ID: "terminal:hanako:ffff:other", Title: "elsewhere"}}
		waits := channeltest.Proposal(session + ":work")
		h.Past = map[string][]channel.Said{session + ":work": {{User: "terminal:hanako", Text: "仕事しよう"}, {Text: "はい", Post: &channel.Post{SessionID: session + ":work", Key: "old", Kind: channel.Answer, Text: "はい、*どうぞ*"}}, {Post: &waits}}}
	}, func(t *testing.T, r *rig) {
		r.keys("/sessions", enter)
		r.has("仕事の話", "(unnamed)")
		if strings.Contains(r.shown(), "elsewhere") {
			t.Errorf("a session of another repository:\n%s", r.shown())
		}
		r.keys("仕事", enter)
		r.has("> 仕事しよう", "はい、どうぞ", "? Greet politely")
		post(t, r, channel.Post{SessionID: session + ":work", Key: "old", Kind: channel.Answer, Text: "はい、*どうぞ*"})
		if n := strings.Count(r.shown(), "はい、どうぞ"); n != 1 {
			t.Errorf("shown %d times", n)
		}
		r.keys("hi", enter, "/sessions new_one", enter, "hello", enter, "/sessions a:b", enter)
		r.has(`"a:b" is no name`)
		var ids []string
		for _, m := range r.h.Told() {
			ids = append(ids, m.SessionID)
		}
		if got := strings.Join(ids, " "); got != session+":work "+session+":new_one" {
			t.Error(got)
		}
		post(t, r, channel.Post{Key: "k", Kind: channel.Answer, Text: "from before"})
		r.has("in the session (unnamed):\n", "from before")
	})
}

func TestResume(t *testing.T) {
	t.Parallel()
	h := &channeltest.Handler{All: []channel.Session{{ID: "terminal:hanako:ffff:other"}, {ID: session + ":work"}, {ID: session}}}
	term := New(options())
	if err := term.Resume(t.Context(), h); err != nil || term.opt.Session != session+":work" {
		t.Errorf("%s, %v", term.opt.Session, err)
	}
	term = New(options())
	if err := term.Resume(t.Context(), &channeltest.Handler{}); err != nil || term.opt.Session != session {
		t.Errorf("%s, %v", term.opt.Session, err)
	}
}

// With one message it ends by itself, when the turn and its jobs have.
func TestChatOnce(t *testing.T) {
	t.Parallel()
	once := func(_ *channeltest.Handler, _ *Options, s *Start) {
		*s = Start{Message: "propose", Once: true}
	}
	t.Run("answered", func(t *testing.T) {
		t.Parallel()
		within(t, once, func(t *testing.T, r *rig) {
			if !r.over() || r.err != nil || r.result != (Result{}) {
				t.Errorf("%+v %v", r.result, r.err)
			}
			r.has("> propose", "The end.")
		})
	})
	t.Run("not answered", func(t *testing.T) {
		t.Parallel()
		within(t, func(h *channeltest.Handler, o *Options, s *Start) {
			once(h, o, s)
			h.Reply = func(ctx context.Context, m channel.Message) error {
				return h.Channel.Post(ctx, channel.Post{SessionID: session, Key: "n", Kind: channel.Notice, ReplyTo: m.ID, Text: "I cannot answer.", Failed: true})
			}
		}, func(t *testing.T, r *rig) {
			if !r.over() || r.err != nil || r.result != (Result{Failed: true}) {
				t.Errorf("%+v %v", r.result, r.err)
			}
			r.has("I cannot answer.")
		})
	})
	t.Run("a proposal waits", func(t *testing.T) {
		t.Parallel()
		within(t, func(h *channeltest.Handler, o *Options, s *Start) {
			once(h, o, s)
			h.Reply = func(ctx context.Context, _ channel.Message) error {
				return h.Channel.Post(ctx, channel.Post{SessionID: session, Key: "p", Kind: channel.Progress, Job: "20260102-030405-0a1b2c3d", Text: "reading"})
			}
		}, func(t *testing.T, r *rig) {
			if r.over() {
				t.Fatal("it ended while a job went on")
			}
			post(t, r, channeltest.Proposal(session))
			if r.over() {
				t.Fatal("it ended before Chat told of the proposal")
			}
			post(t, r, channel.Post{SessionID: session, Kind: channel.Progress, Job: "20260102-030405-0a1b2c3d"})
			if !r.over() || r.err != nil || r.result != (Result{Waiting: true}) {
				t.Errorf("%+v %v", r.result, r.err)
			}
			r.has("Proposal: Greet politely")
		})
	})
}

// Without colours there is none, with TERM=dumb there are no codes at all.
func TestColours(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		colour  bool
	}{
		"usual":    {[]string{"TERM=xterm-256color", "CLICOLOR_FORCE=1"}, true},
		"NO_COLOR": {[]string{"TERM=xterm-256color", "CLICOLOR_FORCE=1", "NO_COLOR=1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func(_ *channeltest.Handler, o *Options, _ *Start) { o.Environ = c.environ }, func(t *testing.T, r *rig) {
				r.keys("show", enter)
				r.settle()
				r.raw.mu.Lock()
				defer r.raw.mu.Unlock()
				if got := strings.Contains(r.raw.raw.String(), "\x1b[1;36mGreeting"); got != c.colour {
					t.Errorf("colour %v", got)
				}
				if !strings.Contains(r.raw.raw.String(), "Greeting") {
					t.Error("nothing was shown")
				}
			})
		})
	}
}

// What was sent is there the next time, without its secrets, for nobody else to read.
func TestHistoryFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "chat-history.jsonl")
	mask := func(s string) string { return strings.ReplaceAll(s, "s3cret", "[KEY]") }
	h := openHistory(path, mask)
	for _, s := range []string{"one", "my key is s3cret", "two\nlines", "two\nlines", " ", strings.Repeat("x", maxKept+1)} {
		if err := h.add(s); err != nil {
			t.Fatal(err)
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode() != 0o600 {
		t.Fatalf("%v %v", st, err)
	}
	var e editor
	e.set("draft")
	h = openHistory(path, mask)
	var got []string
	for range 4 {
		h.move(-1, &e)
		got = append(got, e.text)
	}
	for range 4 {
		h.move(1, &e)
	}
	if s := strings.Join(got, "|"); s != "two\nlines|my key is [KEY]|one|one" || e.text != "draft" {
		t.Errorf("%q, %q", s, e.text)
	}

	long := strings.Repeat(`"`+strings.Repeat("y", 1000)+`"`+"\n", 2*maxHistory/1000)
	if err := os.WriteFile(path, []byte(long+"broken\n\"last\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h = openHistory(path, mask)
	st, err = os.Stat(path)
	if err != nil || st.Size() > maxHistory || st.Mode() != 0o600 || h.all[len(h.all)-1] != "last" || len(h.all) < 50 {
		t.Errorf("%v %v, %d kept", st, err, len(h.all))
	}

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := openHistory(link, mask).add("x"); err == nil {
		t.Error("a link was followed")
	}
}
