package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"toritsugi/internal/app"
	"toritsugi/internal/channel"
	"toritsugi/internal/channel/terminal"
	"toritsugi/internal/config"
	"toritsugi/internal/i18n"
)

type chatCmd struct {
	Repo     string `placeholder:"DIR" help:"${chat_repo_help}"`
	Session  string `placeholder:"NAME" help:"${chat_session_help}"`
	Continue bool   `short:"c" help:"${chat_continue_help}"`
	Message  string `short:"m" placeholder:"TEXT" help:"${chat_message_help}"`
	place    `embed:""`
}

const (
	// maxPiped is how much of a message is read from standard input, in bytes.
	maxPiped = 64 << 10
	// maxChatLog is from what size on the log of chats begins anew, in bytes.
	maxChatLog = 4 << 20
)

// Run converses in the terminal, or has one message answered.
func (a chatCmd) Run(c *console) error {
	switch {
	case a.Session != "" && a.Continue:
		return usage(i18n.E("cli.chat_session_twice"))
	case a.Session != "" && !terminal.GoodName(a.Session):
		return usage(i18n.E("terminal.bad_name", a.Session))
	}
	screen, isFile := file(c.out)
	shows := isFile && isTerminal(screen)
	draws := shows && watchable(screen, c.getenv) && sized(screen)
	types := isTerminal(os.Stdin)
	message, err := a.message(types)
	switch {
	case err != nil:
		return err
	case message == "" && !shows:
		return usage(i18n.E("cli.chat_no_terminal"))
	}
	ctx, stop := c.untilSignal(syscall.SIGHUP)
	defer stop()
	opt := terminal.Options{In: os.Stdin, Out: c.out, Err: c.err}
	if draws && !types { // where the screen answers what it is asked
		if keys, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err != nil {
			draws = false
		} else {
			defer func() { _ = keys.Close() }()
			opt.In = keys
		}
	}
	if draws {
		opt.Out = screen
	}
	shut, err := c.logBeside()
	if err != nil {
		return err
	}
	defer shut()
	env, err := c.env(c.note)
	if err != nil {
		return err
	}
	var result terminal.Result
	err = app.Chat(ctx, env, app.ChatOptions{Repo: a.Repo, Session: a.Session, BaseDir: a.BaseDir, Config: a.Config, Quiet: !draws, Spoken: func(l i18n.Lang) { c.lang = l }}, opt, func(ctx context.Context, t *terminal.Terminal, h channel.Handler) (err error) {
		if a.Continue {
			if err := t.Resume(ctx, h); err != nil {
				return err
			}
		}
		switch {
		case draws:
			result, err = t.Chat(ctx, h, terminal.Start{Message: message, Once: message != ""})
		case message != "":
			result, err = t.Once(ctx, h, message)
		default:
			err = t.Lines(ctx, h)
		}
		return err
	})
	return chatEnd(ctx, result, err, message != "")
}

// sized reports whether a terminal says how large it is: some that no person looks at do
// not.
func sized(f *os.File) bool {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ) //nolint:gosec // a descriptor
	return err == nil && size.Col > 0 && size.Row > 0
}

// message is what is sent at once: that of the flag, or standard input where nobody
// types; "" for a conversation.
func (a chatCmd) message(types bool) (string, error) {
	text := a.Message
	if text == "" && !types {
		raw, err := io.ReadAll(io.LimitReader(os.Stdin, maxPiped+1))
		switch {
		case err != nil:
			return "", err
		case len(raw) > maxPiped:
			return "", usage(i18n.E("cli.chat_long", maxPiped>>10))
		}
		text = strings.ToValidUTF8(string(raw), "�")
	}
	if strings.TrimSpace(text) == "" && (a.Message != "" || !types) {
		return "", usage(i18n.E("cli.chat_empty"))
	}
	return text, nil
}

// logBeside sends the log, which would spoil the screen and is for no person in a conversation,
// to a file of the state directory, unless standard error goes somewhere else.
func (c *console) logBeside() (shut func(), err error) {
	if f, ok := file(c.err); !ok || !isTerminal(f) {
		return func() {}, nil
	}
	dir := config.StateDir(c.getenv)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "chat.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.Size() > maxChatLog {
		err = f.Truncate(0)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	was := c.err
	c.err = onDisplay(f)
	return func() {
		c.err = was
		_ = f.Close() // what it holds is read by people who look for a fault
	}, nil
}

// chatEnd is how tori chat ends, as an exit code.
func chatEnd(ctx context.Context, r terminal.Result, err error, once bool) error {
	var bad *app.ConfigError
	switch {
	case errors.As(err, &bad):
		return usage(bad.Err)
	case r.Stopped:
		return &exitError{code: exitStopped}
	case err != nil && ctx.Err() != nil && once:
		return &exitError{exitStopped, err}
	case err != nil && ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case r.Waiting: // also where Chat found no words for it
		return &exitError{code: exitWaiting}
	case r.Failed && once:
		return &exitError{code: exitFailed}
	}
	return nil
}
