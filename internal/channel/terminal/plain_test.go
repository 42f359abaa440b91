package terminal

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
)

// printing is a terminal without a screen.
func printing(h *channeltest.Handler, in string) (term *Terminal, out, err *safe) {
	out, err = &safe{}, &safe{}
	opt := options()
	opt.In, opt.Out, opt.Err = strings.NewReader(in), out, err
	term = New(opt)
	h.Channel = term
	return term, out, err
}

// To a pipe goes the answer and nothing else.
func TestOnceInAPipe(t *testing.T) {
	t.Parallel()
	h := &channeltest.Handler{}
	h.Reply = func(ctx context.Context, m channel.Message) error {
		h.Channel.(channel.Streamer).Stream(m.SessionID, m.ID, "# An")
		return errors.Join(h.Channel.Post(ctx, channel.Post{SessionID: m.SessionID, Key: "n", Kind: channel.Notice, Text: "looking into it"}),
			h.Channel.Post(ctx, channel.Post{SessionID: m.SessionID, Key: "a", Kind: channel.Answer, ReplyTo: m.ID, Text: "# Answer\n\n**four** \x1b[31m\n"}))
	}
	term, out, beside := printing(h, "")
	r, err := term.Once(t.Context(), h, "two and two?\n")
	if err != nil || r != (Result{}) || out.String() != "# Answer\n\n**four** [31m\n" || beside.String() != "looking into it\n" {
		t.Errorf("%+v %v %q %q", r, err, out, beside)
	}
	if told := h.Told(); len(told) != 1 || told[0].UserText != "two and two?\n" {
		t.Errorf("%+v", told)
	}
}

// What is said to another session is not printed: its people are told when they open it. How
// far its jobs are is nobody's business here.
func TestOnceIsOfOneSession(t *testing.T) {
	t.Parallel()
	h := &channeltest.Handler{}
	h.Reply = func(ctx context.Context, m channel.Message) error {
		if err := h.Channel.Post(ctx, channel.Post{SessionID: session + ":other", Key: "d", Kind: channel.Decided, Job: "j", Text: "applied"}); err == nil {
			t.Error("it is taken")
		}
		return errors.Join(h.Channel.Post(ctx, channel.Post{SessionID: session + ":other", Kind: channel.Progress, Job: "j", Text: "reading"}),
			h.Channel.Post(ctx, channel.Post{SessionID: session, Key: "a", Kind: channel.Answer, ReplyTo: m.ID, Text: "four"}))
	}
	term, out, _ := printing(h, "")
	if r, err := term.Once(t.Context(), h, "two and two?"); err != nil || r != (Result{}) || out.String() != "four\n" {
		t.Errorf("%+v %v %q", r, err, out)
	}
}

// What is said to a command is what was asked for.
func TestOnceWithACommand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{"/jobs": {"no jobs\n", ""}, " /JOBS now": {"no jobs\n", ""}, "are there jobs?": {"", "no jobs\n"}, "/approve x": {"", "no jobs\n"}, "/local": {"no jobs\n", ""}, "/local do": {"", "no jobs\n"}} {
		h := &channeltest.Handler{Words: append([]channel.Command{{Name: "/local", Args: "[TEXT]", AtOnce: true}}, offered...)}
		h.Reply = func(ctx context.Context, m channel.Message) error {
			return h.Channel.Post(ctx, channel.Post{SessionID: m.SessionID, Key: "n", Kind: channel.Notice, ReplyTo: m.ID, Text: "no jobs"})
		}
		term, out, beside := printing(h, "")
		if r, err := term.Once(t.Context(), h, text); err != nil || r.Failed || out.String() != want[0] || beside.String() != want[1] {
			t.Errorf("%s: %v %q %q", text, err, out, beside)
		}
	}
}

// A job that the message began is waited for; its proposal can be approved by a message.
func TestOnceWaitsForJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &channeltest.Handler{}
		p := channeltest.Proposal(session)
		h.Reply = func(ctx context.Context, m channel.Message) error {
			later := func(after time.Duration, p channel.Post) {
				time.AfterFunc(after, func() {
					if err := h.Channel.Post(context.WithoutCancel(ctx), p); err != nil {
						t.Error(err)
					}
				})
			}
			later(59*time.Minute, p)
			later(time.Hour, channel.Post{SessionID: session, Kind: channel.Progress, Job: p.Job}) // Chat has told of it
			return h.Channel.Post(ctx, channel.Post{SessionID: session, Key: "p", Kind: channel.Progress, Job: p.Job, Text: "reading"})
		}
		term, out, beside := printing(h, "")
		begun := time.Now()
		r, err := term.Once(t.Context(), h, "propose")
		if err != nil || r != (Result{Waiting: true}) || time.Since(begun) != time.Hour || beside.String() != "reading\n" {
			t.Errorf("%+v %v %q", r, err, beside)
		}
		for _, want := range []string{"Greet politely", "-// Greet says hello to name.", "\n/approve " + p.Job + " 0123456789ab\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
		}
		if strings.Contains(out.String(), "\x1b") {
			t.Errorf("%q", out)
		}
	})
}

// A request has each of its fields, also those of which there is nothing to tell (spec/chat §7).
func TestRequestNamesWhatThereIsNone(t *testing.T) {
	t.Parallel()
	p := channeltest.Proposal(session)
	shown := func() string {
		t.Helper()
		term, out, _ := printing(&channeltest.Handler{}, "")
		if err := term.printed().post(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const noCommands, noRisk = "Environment (commands): none", "Risk, as computed: none found"
	p.Approval.Commands, p.Approval.Risks = nil, nil
	if got := shown(); !strings.Contains(got, noCommands) || !strings.Contains(got, noRisk) {
		t.Error(got)
	}
	p.Approval.Commands, p.Approval.Risks = []string{"make gen"}, []string{"deletes a.txt"}
	if got := shown(); strings.Contains(got, noCommands) || strings.Contains(got, noRisk) || !strings.Contains(got, "$ make gen") || !strings.Contains(got, "deletes a.txt") {
		t.Error(got)
	}
}

// What waits for a decision waits still when its job says that nothing goes on; it does not
// once the job goes on again, or was decided.
func TestOnceTellsThatAProposalWaits(t *testing.T) {
	t.Parallel()
	p := channeltest.Proposal(session)
	says := func(k channel.PostKind, text string) channel.Post {
		return channel.Post{SessionID: session, Kind: k, Job: p.Job, Text: text}
	}
	for name, c := range map[string]struct {
		posts []channel.Post
		want  bool
	}{
		"nothing goes on": {[]channel.Post{says(channel.Progress, "reading"), p, says(channel.Progress, "")}, true},
		"it goes on":      {[]channel.Post{p, says(channel.Progress, "applying"), says(channel.Progress, "")}, false},
		"decided":         {[]channel.Post{p, says(channel.Progress, ""), says(channel.Decided, "denied")}, false},
	} {
		term, _, _ := printing(&channeltest.Handler{}, "")
		f := term.printed()
		for _, post := range c.posts {
			if err := f.post(t.Context(), post); err != nil {
				t.Fatal(err)
			}
		}
		if waits, err := f.settle(t.Context()); err != nil || waits != c.want {
			t.Errorf("%s: %t, %v", name, waits, err)
		}
	}
}

// A message that has no answer but the words of the program failed; one of before, of which
// that is told now, did so then.
func TestOnceWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		h := &channeltest.Handler{}
		h.Reply = func(ctx context.Context, m channel.Message) error {
			to := "of yesterday"
			if own {
				to = m.ID
			}
			return h.Channel.Post(ctx, channel.Post{SessionID: session, Key: "n", Kind: channel.Notice, ReplyTo: to, Text: "I cannot answer", Failed: true})
		}
		term, out, beside := printing(h, "")
		if r, err := term.Once(t.Context(), h, "x"); err != nil || r != (Result{Failed: own}) || out.String() != "" || beside.String() != "I cannot answer\n" {
			t.Errorf("%+v %v %q %q", r, err, out, beside)
		}
	}
}

func TestOnceStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	h := &channeltest.Handler{Reply: func(ctx context.Context, _ channel.Message) error { cancel(); <-ctx.Done(); return ctx.Err() }}
	term, _, _ := printing(h, "")
	if r, err := term.Once(ctx, h, "x"); !errors.Is(err, context.Canceled) || !r.Failed {
		t.Errorf("%+v %v", r, err)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	h := &channeltest.Handler{}
	h.Reply = func(ctx context.Context, m channel.Message) error {
		if m.UserText == "bad" {
			return errors.New("disk full")
		}
		return h.Channel.Post(ctx, channel.Post{SessionID: m.SessionID, Key: m.ID, Kind: channel.Answer, Text: "re: " + m.UserText})
	}
	term, out, beside := printing(h, "one\n\nbad\ntwo\n/quit\nthree\n")
	if err := term.Lines(t.Context(), h); err != nil || out.String() != "> re: one\n> > > re: two\n> " || beside.String() != "disk full\n" {
		t.Errorf("%v %q %q", err, out, beside)
	}
	term, _, _ = printing(h, strings.Repeat("x", maxText+1))
	if err := term.Lines(t.Context(), h); err == nil || !strings.Contains(err.Error(), "64 KiB") {
		t.Errorf("%v", err)
	}
}

// What is said before the terminal is open is shown when it is.
func TestEarlyPosts(t *testing.T) {
	t.Parallel()
	h := &channeltest.Handler{}
	term, out, _ := printing(h, "")
	for _, k := range []string{"1", "2", "1"} {
		if err := term.Post(t.Context(), channel.Post{SessionID: session, Key: k, Kind: channel.Answer, Text: "early " + k}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := term.Once(t.Context(), h, "x"); err != nil || out.String() != "early 1\nearly 2\n" {
		t.Errorf("%v %q", err, out)
	}
}
