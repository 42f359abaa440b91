// Package terminal is the channel of tori chat: it shows what is said in a terminal, or
// prints it where there is none, and takes what a person types. It knows nothing of models,
// and writes no file but the history of what was sent.
package terminal

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// Options are what a Terminal needs to know.
type Options struct {
	Session string // id of the session to begin with (spec/chat §8)
	User    string // "terminal:hanako"
	Name    string // of the repository, for people; "" for none
	Repo    string // directory that @PATH is relative to, "" for none
	Lang    i18n.Lang
	Now     func() time.Time
	NewID   func() string // of messages
	// Files lists what @ completes, relative to Repo; it may take a while.
	Files func(context.Context) ([]string, error)
	// History is the file of what was sent, "" for none; Mask masks its secrets.
	History string
	Mask    func(string) string
	// Environ is the environment: TERM and NO_COLOR are looked at.
	Environ []string

	In            io.Reader // of Chat a terminal, which answers what it is asked
	Out           io.Writer
	Err           io.Writer // what is said beside, where Out is no terminal
	Width, Height int       // where Out is no terminal; 0 asks it
}

// Terminal implements channel.Streamer. One of Chat, Lines and Once is called, once.
type Terminal struct {
	opt     Options
	handler channel.Handler
	turns   sync.WaitGroup // calls of Handle under way

	mu     sync.Mutex
	face   face                 // nil before it is open
	closed bool                 // nothing is shown any more
	early  []channel.Post       // that came before it was open
	shown  channel.Recent[bool] // keys of posts
}

// face is what shows posts; its methods are called in the order of what is said.
type face interface {
	post(ctx context.Context, p channel.Post) error
	stream(sessionID, replyTo, delta string)
}

// New returns a Terminal that shows nothing yet: posts wait until it is open.
func New(opt Options) *Terminal {
	return &Terminal{opt: opt, shown: channel.Recent[bool]{Most: maxShown}}
}

// Kind implements channel.Channel.
func (t *Terminal) Kind() channel.Kind { return channel.Terminal }

// Post implements channel.Channel. It fails once the terminal is closed, so that what is
// said then can be shown by the next one.
func (t *Terminal) Post(ctx context.Context, p channel.Post) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	f := t.face
	_, known := t.shown.Get(p.Key)
	switch {
	case t.closed:
		t.mu.Unlock()
		return i18n.E("terminal.closed")
	case p.Key != "" && known:
		t.mu.Unlock()
		return nil
	case f == nil:
		t.early = append(t.early, p)
	}
	t.shown.Put(p.Key, true)
	t.mu.Unlock()
	if f == nil {
		return nil
	}
	err := f.post(ctx, p)
	if err != nil {
		t.mu.Lock()
		t.shown.Drop(p.Key)
		t.mu.Unlock()
	}
	return err
}

// maxShown is how many keys are remembered at least.
const maxShown = 4096

// Stream implements channel.Streamer.
func (t *Terminal) Stream(sessionID, replyTo, delta string) {
	t.mu.Lock()
	f := t.face
	t.mu.Unlock()
	if f != nil {
		f.stream(sessionID, replyTo, delta)
	}
}

// open has f show what is said from here on, and what was said before.
func (t *Terminal) open(ctx context.Context, f face) error {
	for {
		t.mu.Lock()
		early := t.early
		if t.early = nil; len(early) == 0 {
			t.face = f
			t.mu.Unlock()
			return nil
		}
		t.mu.Unlock()
		for _, p := range early {
			if err := f.post(ctx, p); err != nil {
				return err
			}
		}
	}
}

// close ends the showing.
func (t *Terminal) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.face, t.closed = nil, true
}

// message is what somebody says in a session.
func (t *Terminal) message(session, text string) channel.Message {
	return channel.Message{Channel: channel.Terminal, SessionID: session, UserText: text, ReceivedAt: t.opt.Now(), ID: t.opt.NewID(), User: t.opt.User}
}

// Resume goes on in the session of this repository in which something was last said,
// where there is one. It is called before Chat, Lines or Once.
func (t *Terminal) Resume(ctx context.Context, h channel.Handler) error {
	all, err := t.sessions(ctx, h, t.opt.Session)
	if len(all) > 0 {
		t.opt.Session = all[0].ID
	}
	return err
}

// sessions lists those of the person that are of the same repository as one.
func (t *Terminal) sessions(ctx context.Context, h channel.Handler, like string) ([]channel.Session, error) {
	all, err := h.Sessions(ctx, channel.Terminal, t.opt.User)
	place := func(id string) string {
		parts := strings.SplitN(id, ":", 4)
		return strings.Join(parts[:min(len(parts), 3)], ":")
	}
	return slices.DeleteFunc(slices.Clone(all), func(s channel.Session) bool { return place(s.ID) != place(like) }), err
}
