package cli

import (
	"context"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/app"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
	"toritsugi/internal/planning"
)

// place is where contexts are looked for.
type place struct {
	BaseDir string `name:"base-dir" placeholder:"DIR" help:"${base_dir_help}"`
	Config  string `placeholder:"FILE" help:"${config_file_help}"`
}

// base is the base directory: the flag, else what the configuration says.
func (p place) base(c *console) (string, error) {
	if p.BaseDir != "" {
		return p.BaseDir, usage(app.OpenNamed(p.BaseDir, p.Config, c.getenv))
	}
	cfg, err := c.load(p.Config)
	if err != nil {
		return "", usage(err)
	}
	base, err := cfg.Base("", func(left *i18n.Error) { c.complain(left) })
	if err == nil {
		err = app.OpenLedger(context.Background(), base, cfg, false)
	}
	return base, usage(err)
}

// stale is the age at which a heartbeat is reported. A configuration that
// cannot be read is no reason not to show anything.
func (p place) stale(c *console) time.Duration {
	cfg, err := app.LoadConfig(p.Config, c.getenv)
	if err != nil {
		cfg = &config.Config{ContextStorage: config.ContextStorage{StaleSeconds: 60}}
	}
	return time.Duration(cfg.ContextStorage.StaleSeconds) * time.Second
}

type showCmd struct {
	UUID      string `arg:"" help:"${uuid_help}"`
	Messages  bool   `help:"${messages_help}"`
	Summaries bool   `help:"${summaries_help}"`
	Tools     bool   `help:"${tools_help}"`
	Effects   bool   `help:"${effects_help}"`
	Plan      bool   `help:"${plan_help}"`
	Similar   bool   `help:"${similar_help}"`
	Last      int    `default:"-1" placeholder:"N" help:"${last_help}"`
	JSON      bool   `name:"json" help:"${json_help}"`
	place     `embed:""`
}

// Run shows one context.
func (s showCmd) Run(c *console) error {
	base, who, err := s.look(c)
	if err != nil {
		return err
	}
	v, err := contextstore.Find(base, s.UUID, who)
	if err != nil {
		return usage(err)
	}
	if s.Similar {
		return s.similar(c, base, who, v)
	}
	opt := ops.ShowOptions{Messages: s.Messages, Summaries: s.Summaries, Tools: s.Tools, Effects: s.Effects, Plan: s.Plan, Last: s.Last, JSON: s.JSON, Lang: c.lang, Now: time.Now(), Stale: s.stale(c)}
	if s.Plan {
		opt.History = s.history(c, base, v.Metadata.UUID)
	}
	c.record(base, contextstore.AuditEntry{Actor: who.User, Action: "read", UUID: v.Metadata.UUID, What: opt.What()})
	return ops.Show(c.out, v, opt)
}

// similar shows the runs that are like a run.
func (s showCmd) similar(c *console, base string, who contextstore.Viewer, v contextstore.View) error {
	ctx, stop := c.untilSignal()
	defer stop()
	o, done := s.searching(c, base, who)
	o.JSON = s.JSON
	if cfg, err := app.LoadConfig(s.Config, c.getenv); err == nil {
		o.Model = cfg.Search.Similar.Embeddings
	}
	err := ops.Similar(ctx, c.out, base, v, o)
	done()
	if err != nil {
		return usage(err)
	}
	c.record(base, contextstore.AuditEntry{Actor: who.User, Action: "read", UUID: v.Metadata.UUID, What: "similar"})
	return nil
}

// histories are where planning.history.directory says, for a base directory: its absolute path and
// the setting. A configuration that cannot be read is no reason not to look where they lie by default.
func (p place) histories(c *console, base string) (whole, directory string) {
	if cfg, err := app.LoadConfig(p.Config, c.getenv); err == nil {
		directory = cfg.Planning.History.Directory
	}
	if whole, err := filepath.Abs(base); err == nil {
		base = whole
	}
	return base, directory
}

// history is where the planning history of a run lies.
func (p place) history(c *console, base, uuid string) string {
	whole, directory := p.histories(c, base)
	return planning.HistoryFile(whole, directory, uuid)
}

// plans is planning.history.directory, absolute; "" where the histories lie in their contexts.
func (p place) plans(c *console, base string) string {
	return planning.HistoryDir(p.histories(c, base))
}

// width is the columns of the terminal that w is, or plenty where it is none.
func width(w io.Writer) int {
	if f, ok := file(w); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			return int(size.Col)
		}
	}
	return 200
}

type tasksCmd struct {
	Status string `placeholder:"S" help:"${status_help}"`
	User   string `placeholder:"U" help:"${user_help}"`
	Limit  int    `default:"50" placeholder:"N" help:"${limit_help}"`
	JSON   bool   `name:"json" help:"${json_help}"`
	place  `embed:""`
}

// Run lists the tasks.
func (t tasksCmd) Run(c *console) error {
	base, who, err := t.look(c)
	if err != nil {
		return err
	}
	if t.Limit < 1 || t.Limit > 1000 {
		return usage(i18n.E("cli.bad_limit", t.Limit))
	}
	if t.User, err = app.UserOf(base, t.User, t.Config, c.getenv); err != nil {
		return usage(err)
	}
	return usage(ops.Tasks(context.Background(), c.out, base, ops.TasksOptions{Status: t.Status, User: t.User, JSON: t.JSON, Limit: t.Limit, Width: width(c.out), Lang: c.lang, Now: time.Now(), Stale: t.stale(c), Viewer: who,
		Where: app.RunOptions{BaseDir: t.BaseDir, Config: t.Config}.Where()}))
}
