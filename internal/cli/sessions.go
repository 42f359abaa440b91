package cli

import (
	"context"
	"path/filepath"

	"toritsugi/internal/app"
	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/conversation"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
)

type sessionsCmd struct {
	List sessionsListCmd `cmd:"" default:"withargs" help:"${sessions_list_help}"`
	Show sessionsShowCmd `cmd:"" help:"${sessions_show_help}"`
}

// sessionPlace is where conversations are looked for, and how they are shown.
type sessionPlace struct {
	JSON  bool `name:"json" help:"${json_help}"`
	place `embed:""`
}

// sessions is what the person at the command line may see.
func (p sessionPlace) sessions(c *console) (base string, o ops.SessionsOptions, err error) {
	base, who, err := p.look(c)
	return base, ops.SessionsOptions{JSON: p.JSON, Last: -1, Lang: c.lang, User: string(channel.Terminal) + ":" + app.LocalUser(), All: who.Admin}, err
}

type sessionsListCmd struct {
	sessionPlace `embed:""`
}

// Run lists conversations.
func (l sessionsListCmd) Run(c *console) error {
	base, o, err := l.sessions(c)
	if err != nil {
		return err
	}
	return ops.Sessions(c.out, base, o)
}

type sessionsShowCmd struct {
	Session      string `arg:"" placeholder:"SESSION" help:"${session_help}"`
	Last         int    `default:"-1" placeholder:"N" help:"${last_help}"`
	sessionPlace `embed:""`
}

// Run shows one conversation.
func (s sessionsShowCmd) Run(c *console) error {
	base, o, err := s.sessions(c)
	if err != nil {
		return err
	}
	o.Last = s.Last
	found, err := ops.FindSession(base, s.Session, o)
	if err != nil {
		return usage(err)
	}
	c.record(base, contextstore.AuditEntry{Actor: app.LocalUser(), Action: "read", UUID: found.ID, What: "session"})
	return ops.Session(c.out, found, o)
}

type analysesCmd struct {
	Words        []string `arg:"" optional:"" placeholder:"WORDS" help:"${analyses_words_help}"`
	User         string   `placeholder:"USER" help:"${analyses_user_help}"`
	Limit        int      `default:"50" placeholder:"N" help:"${analyses_limit_help}"`
	sessionPlace `embed:""`
}

// Run lists what ANALYZE kept; of others for administrators alone.
func (a analysesCmd) Run(c *console) error {
	base, o, err := a.sessions(c)
	if err != nil {
		return err
	}
	user := a.User
	if !o.All {
		if user != "" && user != o.User {
			return usage(i18n.E("cli.analyses_others", user))
		}
		user = o.User
	}
	store := conversation.NewAnalyses(base)
	defer func() { _ = store.Close() }() // only read from
	all, err := store.Find(context.Background(), user, a.Words, a.Limit)
	if err != nil {
		return err
	}
	return ops.Analyses(c.out, all, o)
}

// chatVerbs are tori chat and what belongs to it.
type chatVerbs struct {
	Talk    chatCmd        `cmd:"" default:"withargs" help:"${chat_help}"`
	Prompts chatPromptsCmd `cmd:"" help:"${chat_prompts_help}"`
}

type chatPromptsCmd struct {
	Export chatPromptsExportCmd `cmd:"" help:"${chat_prompts_export_help}"`
}

type chatPromptsExportCmd struct {
	Dir    string `arg:"" placeholder:"DIR" help:"${chat_prompts_dir_help}"`
	Config string `placeholder:"FILE" help:"${config_file_help}"`
}

// Run writes the built-in prompts into a folder, in the language of tori chat.
func (e chatPromptsExportCmd) Run(c *console) error {
	cfg, err := c.load(e.Config)
	if err != nil {
		return usage(err)
	}
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return err
	}
	names, err := conversation.ExportPrompts(&disk.FS{}, dir, app.Spoken(cfg, c.getenv))
	if err != nil {
		return usage(err)
	}
	c.say("cli.chat_exported", len(names), dir)
	return nil
}
