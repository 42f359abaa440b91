package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/uuid"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/terminal"
	"toritsugi/internal/config"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
	"toritsugi/internal/workspace"
)

// ChatOptions are what tori chat is asked for.
type ChatOptions struct {
	Repo            string // "" for that of the working directory, if it is in one
	Session         string // name, "" for the unnamed one
	BaseDir, Config string
	Quiet           bool            // of the log, warnings only
	Spoken          func(i18n.Lang) // hears the language of the conversation
}

// maxMentioned is how many files of a repository are completed.
const maxMentioned = 20_000

// Chat has talk converse in a terminal. screen says where it reads and writes; the rest
// of it is filled in here.
func Chat(ctx context.Context, env Env, opt ChatOptions, screen terminal.Options, talk func(context.Context, *terminal.Terminal, channel.Handler) error) error {
	s := &system{env: env, opt: RunOptions{BaseDir: opt.BaseDir, Config: opt.Config, Confined: true, Quiet: opt.Quiet}, fs: &disk.FS{}}
	var err error
	if err = s.settle(); err != nil {
		return err
	}
	ctx, traced, err := s.trace(ctx)
	if err != nil {
		return &ConfigError{err}
	}
	defer traced()
	s.spoken = Spoken(s.cfg, env.Getenv)
	s.env.Lang = s.spoken
	opt.Spoken(s.spoken)
	src, err := workspace.Inspect(ctx, opt.Repo, workspace.InspectOptions{NoStatus: true})
	if err != nil && opt.Repo != "" {
		return &ConfigError{err}
	}
	user := sessionUser(LocalUser())
	screen.User = string(channel.Terminal) + ":" + user
	screen.Session = sessionID(user, src, opt.Session)
	screen.Lang, screen.Now, screen.NewID, screen.Environ = s.spoken, env.Now, uuid.NewString, env.Environ
	mask := s.redact.Strict().String
	screen.Mask = func(text string) string { return mask(routing.Keepable(text)) }
	screen.History = filepath.Join(config.StateDir(env.Getenv), "chat-history.jsonl")
	if src != nil {
		screen.Name, screen.Repo = src.Name(), src.Path
		screen.Files = func(ctx context.Context) ([]string, error) {
			shell, err := s.shell(ctx)
			if err != nil {
				return nil, err
			}
			return src.Files(ctx, workspace.Box{Shell: shell, MemoryMB: s.cfg.Sandbox.MemoryMB}, maxMentioned)
		}
	}
	house, end, err := s.talk(ctx, src)
	if err != nil {
		return err
	}
	defer end()
	t := terminal.New(screen)
	house.engine.Add(t)
	working, stop := context.WithCancel(ctx)
	var jobs sync.WaitGroup
	work := house.alone()
	jobs.Go(func() { work(working) })
	defer jobs.Wait()
	defer stop()
	return talk(ctx, t, house.engine)
}

// sessionID is terminal:USER:REPO_HASH[:NAME] (spec/chat §8); outside of a repository
// REPO_HASH is "none".
func sessionID(user string, src *workspace.Source, name string) string {
	parts := []string{string(channel.Terminal), user, "none"}
	if src != nil {
		sum := sha256.Sum256([]byte(src.Path))
		parts[2] = hex.EncodeToString(sum[:6])
	}
	if name != "" {
		parts = append(parts, name)
	}
	return strings.Join(parts, ":")
}

// sessionUser is a user's name as a part of an id.
func sessionUser(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ':' || r == '/' || r == '\\' || r <= ' ' {
			return '-'
		}
		return r
	}, name)
}
