package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// printed is the face of a conversation without a terminal: text as it was written,
// no code that steers. Answers and proposals go to out, the rest to err, but for what is
// said to a command that is all that was asked.
type printed struct {
	lang     i18n.Lang
	out, err io.Writer
	session  string // the one that is printed
	command  bool   // a command is all that is asked

	mu      sync.Mutex
	jobs    []string      // that go on
	waiting []string      // jobs whose proposals wait
	failed  []string      // messages that have no answer
	moved   chan struct{} // closed when jobs changed
}

// plainWidth is how wide proposals are laid out.
const plainWidth = 100

func (t *Terminal) printed() *printed {
	return &printed{lang: t.opt.Lang, out: t.opt.Out, err: t.opt.Err, session: t.opt.Session, moved: make(chan struct{})}
}

func (f *printed) stream(_, _, _ string) {} // the post that follows has the whole

func (f *printed) post(_ context.Context, p channel.Post) (err error) {
	if p.SessionID != f.session { // its people are told when they open it
		if p.Kind == channel.Progress {
			return nil
		}
		return i18n.E("terminal.other_session", p.SessionID)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.Job != "" && p.Kind == channel.Decided {
		f.waiting = slices.DeleteFunc(f.waiting, func(j string) bool { return j == p.Job })
	}
	if p.Job != "" && (p.Kind == channel.Progress || p.Kind == channel.Request) {
		if p.Kind == channel.Progress {
			f.jobs = slices.DeleteFunc(f.jobs, func(j string) bool { return j == p.Job })
		}
		if p.Kind == channel.Request || p.Text != "" { // else nothing goes on, and what waits does so still
			f.waiting = slices.DeleteFunc(f.waiting, func(j string) bool { return j == p.Job })
		}
		switch {
		case p.Kind == channel.Progress && p.Text != "":
			f.jobs = append(f.jobs, p.Job)
		case p.Kind == channel.Request:
			f.waiting = append(f.waiting, p.Job)
		}
		close(f.moved)
		f.moved = make(chan struct{})
	}
	if p.Failed {
		f.failed = append(f.failed, p.ReplyTo)
	}
	text := strings.TrimRight(channel.Clean(p.Text), "\n")
	switch {
	case p.Kind == channel.Request && p.Approval != nil:
		var b strings.Builder
		for _, r := range request(f.lang, p, plainWidth) {
			for _, s := range r {
				b.WriteString(s.text)
			}
			b.WriteByte('\n')
		}
		id := p.Approval.Job + " " + p.Approval.Hash
		_, err = fmt.Fprintf(f.out, "%s\n/approve %s\n/deny %s\n", b.String(), id, id)
	case text == "":
	case p.Kind == channel.Notice && !f.command, p.Kind == channel.Progress:
		_, err = fmt.Fprintln(f.err, text)
	default:
		_, err = fmt.Fprintln(f.out, text)
	}
	return err
}

// settle waits until no job goes on, and says whether a proposal waits.
func (f *printed) settle(ctx context.Context) (waiting bool, err error) {
	for {
		f.mu.Lock()
		n, moved := len(f.jobs), f.moved
		waiting = len(f.waiting) > 0
		f.mu.Unlock()
		if n == 0 {
			return waiting, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return waiting, ctx.Err()
		}
	}
}

// Once has one message answered and prints what is said, until the turn and the jobs
// that it began have ended.
func (t *Terminal) Once(ctx context.Context, h channel.Handler, text string) (Result, error) {
	f := t.printed()
	f.command = channel.AtOnce(h.Commands(), text)
	defer t.close()
	if err := t.open(ctx, f); err != nil {
		return Result{}, err
	}
	id, err := t.say(ctx, h, text)
	if err != nil {
		return Result{Failed: true}, err
	}
	waiting, err := f.settle(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	return Result{Waiting: waiting, Failed: slices.Contains(f.failed, id)}, err
}

// retell shows the end of a session again.
func (t *Terminal) retell(ctx context.Context, h channel.Handler) error {
	all, err := h.History(ctx, t.opt.Session, retold)
	for _, s := range all {
		if err != nil {
			break
		}
		if s.Post == nil {
			_, err = fmt.Fprintln(t.opt.Out, prompt+channel.Clean(s.Text))
		} else {
			err = t.Post(ctx, *s.Post)
		}
	}
	return err
}

// say has a message answered, and returns its id.
func (t *Terminal) say(ctx context.Context, h channel.Handler, text string) (id string, err error) {
	m := t.message(t.opt.Session, text)
	var notes []string
	if m.Attachments, notes = t.attachments(text); len(notes) > 0 {
		if _, err := fmt.Fprintln(t.opt.Err, strings.Join(notes, "\n")); err != nil {
			return m.ID, err
		}
	}
	return m.ID, h.Handle(ctx, m)
}

// Lines converses on a terminal that takes no codes: each line is a message. It returns
// at the end of the input.
func (t *Terminal) Lines(ctx context.Context, h channel.Handler) error {
	defer t.close()
	if err := t.open(ctx, t.printed()); err != nil {
		return err
	}
	if err := t.retell(ctx, h); err != nil {
		return err
	}
	in := bufio.NewScanner(t.opt.In)
	in.Buffer(nil, maxText)
	for {
		if _, err := fmt.Fprint(t.opt.Out, prompt); err != nil {
			return err
		}
		if !in.Scan() {
			if errors.Is(in.Err(), bufio.ErrTooLong) {
				return i18n.E("terminal.long_text", maxText>>10)
			}
			return in.Err()
		}
		text := channel.Clean(in.Text())
		switch strings.TrimSpace(text) {
		case "":
			continue
		case "/quit":
			return nil
		}
		if _, err := t.say(ctx, h, text); err != nil {
			if ctx.Err() != nil {
				return err
			}
			if _, err := fmt.Fprintln(t.opt.Err, t.opt.Mask(t.opt.Lang.Error(err))); err != nil {
				return err
			}
		}
	}
}
