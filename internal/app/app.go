// Package app is the composition root: from a configuration to a running
// system. It is the only package that knows every other; it decides which parts
// are used and leaves the work to them.
package app

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/approval"
	"toritsugi/internal/blobs"
	"toritsugi/internal/bucket"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/delivery"
	"toritsugi/internal/disk"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/record"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/models"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
	"toritsugi/internal/queue"
	"toritsugi/internal/redact"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/telemetry"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/workspace"
)

// RunOptions are what tori run is asked for. Either Resume or Again is set, or Repo
// and one of Issue and Message.
type RunOptions struct {
	Repo, Issue, Message string
	Images               []string // files that the model is shown with the request
	Resume               string
	Again                string // an ended run whose request a new run begins with
	BaseDir, Config      string
	Role                 string // whose model works on it; "" is task
	Model                string // PROVIDER/MODEL
	Script               string
	Record               string // file that gets the answers, as a script
	LocalOnly            bool   // no model in a cloud
	AllowUnsandboxed     bool
	Confined             bool // the verb has no flag for the former
	AllowDirty           bool
	Quiet                bool
}

// Env is the world that a run lives in.
type Env struct {
	Getenv    func(string) string
	Environ   []string  // as os.Environ returned it, before Unset
	Version   string    // of the program
	Log       io.Writer // log records
	Lang      i18n.Lang // of who started the run
	Now       func() time.Time
	StopAsked func() bool // see agent.Agent
	HTTP      *http.Client
	// Notice tells the user what they should know before the work begins.
	Notice func(key string, args ...any)
	// Stats, if set, is filled in with what the run cost.
	Stats *Stats
	// Watch shows the run while it goes on; see agent.Progress. nil for nobody.
	Watch func(report func() progress.Report) (stop func())
	// Started hears the uuid as soon as the run can be resumed.
	Started func(uuid string)
	// Ended hears how the run ended, once all that somebody waits for is delivered:
	// what follows, nobody does. nil for nobody.
	Ended func(agent.Report)
	// Sanitizer, if set, hears what masks the secrets of the settings, before
	// any error can quote one.
	Sanitizer func(*redact.Sanitizer)
	// Unset, if set, takes a variable out of the environment of the process: those
	// that hold a secret, once the settings were read.
	Unset func(name string) error
	// Adjust, if set, changes the settings once they were read.
	Adjust func(*config.Config)
}

// LoadConfig loads the named file, or the one that is in force where none is
// named.
func LoadConfig(path string, getenv func(string) string) (*config.Config, error) {
	return config.Find(config.Search{Named: path, Dir: ".", Getenv: getenv, Environ: os.Environ()})
}

// config is LoadConfig in this world; kept is what a run to be resumed was begun
// with.
func (e Env) config(path, kept string) (*config.Config, error) {
	return config.Find(config.Search{Named: path, Kept: kept, Dir: ".", Getenv: e.Getenv, Environ: e.Environ})
}

// system is everything a run is made of.
type system struct {
	env      Env
	opt      RunOptions
	cfg      *config.Config
	redact   *redact.Sanitizer
	log      *slog.Logger
	store    *contextstore.Store
	texts    *search.Keeper // of store
	vectors  search.Vectors // see embedding; without a model before the store is opened
	fs       *disk.FS
	blobs    *blobs.Store                   // of store; nil where nothing of runs is kept elsewhere
	spoken   i18n.Lang                      // with the person at a terminal; "" for the language of the settings
	commands func() (*policy.Policy, error) // rules for what the model may run
	models   *models.Models
	ofRun    func(...any)                               // adds attributes to what the models log
	tape     *record.File                               // nil records nothing
	ended    *contextstore.View                         // the run to be resumed, where it has ended
	again    *task.Key                                  // of the run that is begun anew
	source   *workspace.Source                          // of a new run
	kept     string                                     // the configuration of the run to be resumed
	hosted   *task.Key                                  // of the run to be resumed, where that is served; else nil
	resumed  contextstore.Metadata                      // of the run to be resumed
	hosts    map[string]*delivery.Host                  // by source
	folder   *folder.Forge                              // that is among them, nil for none
	users    *users                                     // see openUsers; nil without settings of users
	wishes   string                                     // of the user, for the system prompt
	jobs     *approval.Jobs                             // see approvals; nil before it was asked for
	walls    func(sandbox.Spec) (sandbox.Runner, error) // see shell; nil before it was asked for
	queue    *queue.Queue                               // that wakes who works on runs; nil with queue.driver: local
	rounds   func() []queue.Round                       // the work that comes round there; nil where this process does none
}

// Run carries one issue or message to its end, or takes up an interrupted run.
func Run(ctx context.Context, env Env, opt RunOptions) (agent.Report, error) {
	s := &system{env: env, opt: opt, fs: &disk.FS{}}
	if s.opt.Resume != "" || s.opt.Again != "" {
		if err := s.readJob(); err != nil {
			return agent.Report{}, err
		}
	}
	if err := s.settle(); err != nil {
		return agent.Report{}, err
	}
	s.log.Info(s.cfg.InForce().Error())
	ctx, done, err := s.trace(ctx)
	if err != nil {
		return agent.Report{}, &ConfigError{err}
	}
	defer done()
	if !s.cfg.ContextStorage.Enabled {
		return s.temporary(ctx)
	}
	return s.run(ctx)
}

// ConfigError marks an error of configuration or usage.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// temporary runs with a context that is removed at the end
// (context_storage.enabled: false).
func (s *system) temporary(ctx context.Context) (agent.Report, error) {
	if s.opt.Resume != "" {
		return agent.Report{}, &ConfigError{i18n.E("app.no_storage_resume")}
	}
	dir, err := os.MkdirTemp("", "tori-")
	if err != nil {
		return agent.Report{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s.opt.BaseDir = dir
	s.env.Notice("app.no_storage")
	report, err := s.run(ctx)
	report.Dir = "" // gone in a moment
	return report, err
}

func (s *system) run(ctx context.Context) (report agent.Report, err error) {
	var job order.Order
	var meta contextstore.Metadata
	if s.opt.Resume == "" {
		if job, meta, err = s.newJob(ctx); err != nil {
			return report, &ConfigError{err}
		}
	}
	if s.ended != nil {
		return s.deliver(ctx)
	}
	if err := s.openModels(); err != nil {
		return report, &ConfigError{err}
	}
	house := s.models
	defer func() { _ = house.Close() }() // what it looked after is no longer called
	if s.opt.Resume != "" {
		theirs, done, err := s.forRun(ctx, s.resumed)
		if err != nil {
			return report, &ConfigError{err}
		}
		defer done()
		*s = *theirs // for this run alone
	}
	client, spec, err := s.client(ctx, "tori run "+cmp.Or(s.opt.Resume, meta.TaskKey.ID))
	if err != nil {
		return report, &ConfigError{err}
	}
	if b := s.cfg.Budget; max(b.MaxCostUSD, b.UserDay.MaxCostUSD, b.Day.MaxCostUSD) > 0 && !spec.Priced && spec.Provider != script.Provider {
		s.env.Notice("app.unpriced", spec.Name())
	}
	shell, err := s.shell(ctx)
	if err != nil {
		return report, &ConfigError{err}
	}
	if s.cfg.Commands.RulesFile != "" { // a mistake in it is told at once; the built-in ones have none
		if _, err := s.commands(); err != nil {
			return report, &ConfigError{err}
		}
	}
	if err := s.record(); err != nil {
		return report, &ConfigError{err}
	}
	began := false
	defer func() { s.recorded(began) }()
	if err := s.openHosted(ctx); err != nil {
		return report, &ConfigError{err}
	}
	if err := s.open(ctx); err != nil {
		return report, &ConfigError{err}
	}
	defer func() { _ = s.store.Close() }()
	s.lookAfter(ctx)
	s.outbox().DeliverAll(ctx)
	id := s.opt.Resume
	if id == "" {
		if job.Branch, err = s.branch(ctx, meta); err != nil {
			return report, &ConfigError{err}
		}
		meta.Config = contextstore.MetadataConfig{Provider: client.Provider(), Model: client.Model(), ContextLength: spec.Context,
			CompressionThreshold: s.cfg.ContextStorage.CompressionThreshold, MaxMemoryMessages: s.cfg.ContextStorage.MaxMemoryMessages}
		if id, err = s.enqueue(ctx, meta, job); err != nil {
			return report, err
		}
	}
	s.log = s.log.With("uuid", id)
	s.ofRun("uuid", id)
	if s.env.Started != nil {
		s.env.Started(id)
	}
	c, err := s.claim(ctx, id)
	if err != nil {
		return report, err
	}
	s.audit("claim", id, "")
	ctx, span := traced(ctx, c)
	defer func() { ended(span, report, err) }()
	a := s.agent(client, &spec, c.Metadata().TaskKey, shell)
	if s.tape != nil {
		began = true
		if err := s.tape.Seed(record.Answers(func(f func(contextstore.Message) bool) error { return c.Messages(0, f) })); err != nil {
			return report, errors.Join(&ConfigError{err}, c.Close())
		}
		a.Client = record.New(client, s.tape.Writer) // what summarises is no part of it
	}
	report, err = a.Execute(ctx, c)
	if s.env.Stats != nil {
		st := c.State()
		*s.env.Stats = Stats{Disk: s.fs.Counts(), RowUpdates: s.store.RowUpdates(), LLMCalls: st.LLMCallCount, ToolCalls: st.ToolCallCount,
			ToolMicros: report.ToolTime.Microseconds()}
	}
	if err == nil && report.Outcome.Status == task.Paused {
		s.stopLate(context.WithoutCancel(ctx), &report)
	}
	if err == nil {
		late, end := outlasting(ctx, cleanTime)
		report.Undelivered = s.outbox().Deliver(late, id)
		end()
		if s.env.Ended != nil {
			s.env.Ended(report)
		}
		s.sumUp(ctx, id, a)
		s.clean(ctx)
	}
	return report, err
}

// lookAfter says which runs were left by processes that died, and does with them
// what recovery.* wants, as the monitor of tori serve does.
func (s *system) lookAfter(ctx context.Context) {
	m := dispatch.Monitor{Store: s.store, Lang: i18n.Lang(s.cfg.Language), Log: s.log, Now: s.env.Now, Wake: func() {},
		Stale: time.Duration(s.cfg.ContextStorage.StaleSeconds) * time.Second, MaxAttempts: s.cfg.Recovery.MaxAttempts, Fail: s.cfg.Recovery.Mode == "fail",
		Left: func(v contextstore.View) {
			s.env.Notice("app.owner_died", v.Metadata.UUID, v.Metadata.TaskKey.Number(), v.State.ProcessID, v.State.Hostname, contextstore.Short(v.Metadata.UUID)+s.opt.Where())
		}}
	if err := m.Dead(ctx, s.opt.Resume); err != nil {
		s.log.Warn("Cannot look after the runs: " + err.Error())
	}
}

// cleanTime is how long the end of a run may take to clean up after others, and
// to deliver once it was interrupted.
const cleanTime = 20 * time.Second

// outlasting is a context that ends a while after ctx: what an interrupted run has
// to say is said, and who interrupts waits for no git or server that hangs.
func outlasting(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		select {
		case <-time.After(while):
			cancel()
		case <-late.Done():
		}
	})
	return late, cancel
}

// clean removes what ended runs left and the settings no longer keep.
func (s *system) clean(ctx context.Context) {
	done, err := s.cleanUp(ctx)
	if len(done.Removed) > 0 {
		s.log.Info("Cleaned up", "removed", len(done.Removed), "bytes", done.Freed)
	}
	if err != nil {
		s.log.Warn("Not all could be cleaned up: " + err.Error())
	}
}

// cleanUp is clean that tells what it removed.
func (s *system) cleanUp(ctx context.Context) (workspace.Cleaned, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	done, err := workspace.Clean(ctx, s.unused(ctx))
	if errors.Is(err, context.DeadlineExceeded) { // the rest goes another time
		err = nil
	}
	return done, err
}

// unused says which workspaces, mirrors and setups may go.
func (s *system) unused(ctx context.Context) workspace.CleanOptions {
	return workspace.CleanOptions{
		Workspaces: filepath.Dir(s.store.WorkspaceDir("x")), Mirrors: s.store.MirrorsDir(), Setups: s.store.SetupsDir(), Old: s.store.OldCacheDir(),
		Ended:   func(uuid string) (time.Time, bool) { return s.store.Settled(ctx, uuid) },
		KeepFor: time.Duration(s.cfg.Workspace.KeepDays) * 24 * time.Hour, MaxBytes: int64(s.cfg.Workspace.MaxGB * 1e9), Now: s.env.Now(),
	}
}

// stopLate stops a run that was asked to stop just as it paused.
func (s *system) stopLate(ctx context.Context, r *agent.Report) {
	q, ok := s.store.Pending(r.UUID)
	if !ok || q.Action != contextstore.Stop {
		return
	}
	a, err := s.store.Control(ctx, r.UUID, q.Action, q.By)
	if err != nil {
		s.log.Warn("Not stopped: " + err.Error())
		return
	}
	if a.Status == task.Stopped {
		r.Outcome.Status, r.Reason = a.Status, s.env.Lang.Asked(string(q.Action), q.By)
		if v, err := contextstore.Find(s.store.BaseDir, r.UUID, contextstore.Viewer{Admin: true}); err == nil {
			r.Dir = v.Dir
		}
	}
}

// orphanGrace is how long processes of a dead owner may take to end on their
// own before they are killed.
const orphanGrace = 3 * time.Second

// claim takes the run, ending first what a dead owner of it left running.
func (s *system) claim(ctx context.Context, id string) (*contextstore.Context, error) {
	c, repairs, err := s.store.Claim(ctx, id)
	if errors.As(err, new(*contextstore.OrphansError)) {
		killed, kerr := s.store.EndOrphans(ctx, id, orphanGrace)
		if kerr != nil {
			return nil, kerr
		}
		if len(killed) > 0 {
			s.log.Warn("Processes of the former owner were still running and have been ended", "pids", killed)
		}
		c, repairs, err = s.store.Claim(ctx, id)
	}
	for _, r := range repairs {
		s.log.Warn("Repaired: " + r)
	}
	if errors.Is(err, contextstore.ErrEnded) {
		return nil, &ConfigError{i18n.E("app.had_ended", id)}
	}
	return c, err
}

// settle reads the settings, and makes what everything else is told by: the sanitizer and
// the log. The error is a *ConfigError.
func (s *system) settle() (err error) {
	if s.cfg, err = s.env.config(s.opt.Config, s.kept); err != nil {
		return &ConfigError{err}
	}
	if s.env.Adjust != nil {
		s.env.Adjust(s.cfg)
	}
	s.redact = redact.New(s.known(), s.cfg.Security.Regexps())
	if s.env.Sanitizer != nil {
		s.env.Sanitizer(s.redact)
	}
	if s.env.Unset != nil {
		for _, name := range s.cfg.SecretVariables() {
			_ = s.env.Unset(name) // it is there, so it has a name
		}
	}
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(s.cfg.Logging.Level)) // the settings allow no other than it knows
	if s.opt.Quiet {
		level = max(level, slog.LevelWarn)
	}
	logger, l := telemetry.NewLogger, s.cfg.Logging
	if l.Format == "json" {
		logger = telemetry.NewJSONLogger
	}
	s.log = logger(telemetry.Log(l.File, l.MaxMB, l.Keep, s.env.Log), level, s.redact.Strict().String)
	ledgers.log.Store(s.log)
	for _, w := range s.cfg.Warnings() {
		s.log.Warn(w.Error())
	}
	s.users = s.openUsers()
	s.commands = sync.OnceValues(func() (*policy.Policy, error) { return rules(s.cfg.Commands.RulesFile) })
	return nil
}

// base is the base directory of the house.
func (s *system) base() (string, error) {
	base, err := s.cfg.Base(s.opt.BaseDir, func(left *i18n.Error) { s.log.Warn(left.Error()) })
	if err == nil {
		err = OpenLedger(context.Background(), base, s.cfg, false)
	}
	return base, err
}

// open opens the store below the base directory.
func (s *system) open(ctx context.Context) (err error) {
	base, err := s.base()
	if err == nil {
		err = OpenLedger(ctx, base, s.cfg, true)
	}
	if err != nil {
		return err
	}
	s.vectors = s.embedding()
	s.texts = s.searchable(base)
	s.store, err = contextstore.Open(ctx, contextstore.Options{BaseDir: base, Texts: s.texts, NoSync: s.cfg.ContextStorage.Durability == "os",
		Redact: s.redact.String, FS: s.fs, Now: s.env.Now, OnIndexError: func(err error) {
			if !errors.Is(err, context.Canceled) { // who ends has no trouble with it
				s.log.Warn("tasks.db: " + err.Error())
			}
		},
		Heartbeat: time.Duration(s.cfg.ContextStorage.HeartbeatSeconds) * time.Second, StateLockTimeout: time.Duration(s.cfg.ContextStorage.StateLockTimeout) * time.Second,
		Reason: func(do contextstore.Action, by string) string {
			return i18n.Lang(s.cfg.Language).Asked(string(do), by)
		},
		OnRepair: func(what string) { s.log.Warn("Repaired: " + what) },
		Changed:  s.changed, Offer: s.offer})
	if err == nil {
		if err = s.openQueue(ctx); err != nil {
			return errors.Join(err, s.store.Close())
		}
		if s.folder != nil {
			s.folder.Remember(s.store)
		}
		s.mirror()
		if err = s.openBlobs(); err != nil {
			err = errors.Join(err, s.store.Close())
		}
	}
	return err
}

// openBlobs names the place that keeps what runs have outside of their contexts.
func (s *system) openBlobs() error {
	p, err := blobPlace(s.cfg, bucket.Options{FS: s.fs, HTTP: s.env.HTTP, Now: s.env.Now})
	if p != nil {
		s.blobs = &blobs.Store{Place: p, Contexts: s.store, Warn: func(text string) { s.log.Warn(text) }}
	}
	return err
}

// blobPlace is that place; nil where there is none. It is tried often, and by nobody who waits long.
func blobPlace(cfg *config.Config, o bucket.Options) (bucket.Place, error) {
	place, at := cfg.Blobs()
	if place == "" {
		return nil, nil
	}
	o.Place, o.S3, o.Azure, o.Tries, o.Pause = place, s3Login(at), azureLogin(at), 2, 200*time.Millisecond
	return bucket.Open(o)
}

// Stats are the costs of a run, for benchmarks.
type Stats struct {
	Disk       disk.Counts `json:"disk"`
	RowUpdates int64       `json:"row_updates"`
	LLMCalls   int64       `json:"llm_calls"`
	ToolCalls  int64       `json:"tool_calls"`
	ToolMicros int64       `json:"tool_us"`
}
