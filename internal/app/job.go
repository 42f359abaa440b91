package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge/folder"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// readJob finds the run to be resumed, or to be begun anew, and fills in what its
// command line said, where this one does not say otherwise.
func (s *system) readJob() error {
	var err error
	base := s.opt.BaseDir
	if base != "" {
		err = OpenNamed(base, s.opt.Config, s.env.Getenv)
	} else {
		var cfg *config.Config
		if cfg, err = s.env.config(s.opt.Config, ""); err == nil {
			if base, err = cfg.Base("", func(left *i18n.Error) { s.env.Notice(left.Key, left.Args...) }); err == nil {
				err = OpenLedger(context.Background(), base, cfg, false)
			}
		}
	}
	if err != nil {
		return &ConfigError{err}
	}
	who, err := LocalViewer(base, s.opt.Config, s.env.Getenv)
	if err != nil {
		return &ConfigError{err}
	}
	v, err := contextstore.Find(base, cmp.Or(s.opt.Resume, s.opt.Again), who)
	if err != nil {
		return &ConfigError{err}
	}
	job, err := order.Parse(v.Metadata)
	if err != nil {
		return &ConfigError{err}
	}
	s.opt.BaseDir = base
	switch again := s.opt.Again != ""; {
	case again && !v.Status().Final():
		return &ConfigError{s.liveError(v)}
	case again:
		s.opt.Repo, s.opt.Issue, s.opt.Message, s.opt.Images = job.Repo, job.Issue, job.Message, job.Images
		s.again = &v.Metadata.TaskKey
	default:
		s.opt.Resume, s.resumed = v.Metadata.UUID, v.Metadata
		if v.Status().Final() {
			s.ended = &v
		}
	}
	if !job.ByHand() {
		s.hosted = &v.Metadata.TaskKey
	}
	s.kept = job.Config
	if s.opt.Model == "" && s.opt.Script == "" && s.opt.Role == "" {
		s.opt.Model, s.opt.Script, s.opt.Role = job.Model, job.Script, job.Role
	}
	s.opt.LocalOnly = s.opt.LocalOnly || job.LocalOnly
	s.opt.AllowUnsandboxed = s.opt.AllowUnsandboxed || job.AllowUnsandboxed
	return nil
}

// newJob checks what is asked for and puts together what the run will need.
func (s *system) newJob(ctx context.Context) (job order.Order, m contextstore.Metadata, err error) {
	job = order.Order{Message: s.redact.String(s.opt.Message), Config: s.cfg.File(), AllowUnsandboxed: s.opt.AllowUnsandboxed, Role: s.opt.Role, Model: s.opt.Model, LocalOnly: s.opt.LocalOnly}
	for from, to := range map[*string]*string{&s.opt.Issue: &job.Issue, &s.opt.Script: &job.Script} {
		if *from != "" {
			if *to, err = filepath.Abs(*from); err != nil {
				return job, m, err
			}
		}
	}
	if job.Images, err = imagePaths(s.opt.Images); err != nil {
		return job, m, err
	}
	issue := &folder.Issue{Body: s.opt.Message}
	var ignore []string
	if job.Issue != "" {
		if issue, err = folder.ReadIssue(job.Issue); err != nil {
			return job, m, err
		}
		ignore = []string{job.Issue, folder.CommentsPath(job.Issue), folder.ProgressPath(job.Issue)}
	} else if strings.TrimSpace(s.opt.Message) == "" {
		return job, m, i18n.E("app.empty_message")
	}
	ignore = append(ignore, job.Images...)
	shell, err := s.shell(ctx)
	if err != nil {
		return job, m, err
	}
	box := workspace.Box{Shell: shell, MemoryMB: s.cfg.Sandbox.MemoryMB}
	src, err := workspace.Inspect(ctx, s.opt.Repo, workspace.InspectOptions{AllowDirty: s.opt.AllowDirty, Ignore: ignore, Box: box})
	if err != nil {
		return job, m, err
	}
	if src.Untracked > 0 || len(src.Modified) > 0 {
		s.env.Notice("app.not_included", len(src.Modified), src.Untracked)
	}
	job.Repo, job.Base = src.Path, src.Head
	m.Title, m.User = issue.Title, issue.Author
	if m.Title == "" {
		m.Title = firstLine(s.opt.Message)
	}
	if m.User == "" {
		base, err := s.base()
		if err != nil {
			return job, m, err
		}
		at, err := accessAt(base, s.cfg)
		if err != nil {
			return job, m, err
		}
		m.User = localPerson(at, s.env.Getenv("USER"))
	}
	m.Title, m.User, issue.ID = s.redact.String(m.Title), s.redact.String(m.User), s.redact.String(issue.ID)
	m.TaskKey = task.Key{Source: "folder", Owner: src.Owner(), Repo: src.Name(), Type: task.TypeIssue, ID: issue.ID}
	switch {
	case s.again != nil: // what the earlier run left is inherited by the key
		m.TaskKey = *s.again
	case job.Issue == "":
		m.TaskKey.ID = "message-" + uuid.NewString()[:8]
	}
	s.source = src
	_, _, err = s.byHand(m, job).Comments(ctx, m.TaskKey) // what cannot be read is told now
	return job, m, err
}

// branch chooses the branch of a new run: once what earlier runs owe has been
// delivered, which may be the branch of that name.
func (s *system) branch(ctx context.Context, m contextstore.Metadata) (string, error) {
	return workspace.FreeBranch(ctx, s.source, workspace.BranchName(s.cfg.Workspace.BranchPattern, m.TaskKey.ID, m.Title))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// enqueue stores the run, or says which one is in the way.
func (s *system) enqueue(ctx context.Context, m contextstore.Metadata, job order.Order) (string, error) {
	raw, err := json.Marshal(job)
	if err != nil {
		return "", err
	}
	m.Run = raw
	id, err := s.store.Enqueue(ctx, m)
	var live *contextstore.LiveError
	if errors.As(err, &live) {
		if v, verr := s.store.View(live.UUID); verr == nil && v.Held {
			short := contextstore.Short(live.UUID) + s.opt.Where()
			return "", &ConfigError{i18n.E("app.live_held", live.UUID, live.Key.ID, v.Owner.ProcessID, v.Owner.Hostname, short, short)}
		}
		return "", &ConfigError{i18n.E("app.live", live.UUID, live.Status, live.Key.ID, contextstore.Short(live.UUID)+s.opt.Where())}
	}
	return id, err
}

// Where are the flags with which another command finds the run again, as a shell
// reads them, each behind a blank; none where it needs none.
func (o RunOptions) Where() string {
	switch {
	case o.BaseDir != "":
		return " --base-dir " + Quoted(o.BaseDir)
	case o.Config != "":
		return " --config " + Quoted(o.Config)
	}
	return ""
}

// Quoted makes a path safe to paste into a shell.
func Quoted(s string) string {
	if !strings.ContainsAny(s, " \t\n'\"\\$&;|<>()*?[]#~`!{}") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
