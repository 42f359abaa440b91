package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/models"
	"toritsugi/internal/ops"
	"toritsugi/internal/task"
)

// premises are what is looked at for alerts besides the daemon itself: the files of a base directory,
// its databases, and what was measured of it. tori health looks at the same.
type premises struct {
	base  string
	cfg   *config.Config
	now   time.Time
	house houseReader // nil where there is no house.db yet
	free  uint64      // bytes, of the file system
	sums  *figures    // nil before they were measured
}

// marksReader reads marks of house.db.
type marksReader interface {
	Mark(ctx context.Context, scope, name string) (string, error)
}

// houseReader reads house.db.
type houseReader interface {
	marksReader
	NearLimits(ctx context.Context, l contextstore.DayLimits, share float64, now time.Time) ([]contextstore.DayUse, error)
}

// before is how many days before the last ones duration_factor compares with.
const before = 28

// figures are what the index tells of all runs (store-v2 §8.3).
type figures struct {
	Used   int64                 // bytes of all runs, estimated where they are many
	Tasks  map[task.Status]int64 // runs by status
	Ended  int64                 // in the last days (monitor.alerts.failure_days)
	Failed int64                 // of those
	// How long runs took on average, in the last days and in those before; 0 where fewer than
	// monitor.alerts.failure_runs did.
	Mean, Before time.Duration
}

// measure sums up the runs of a base directory.
func measure(ctx context.Context, base string, a config.Alerts, now time.Time) (*figures, error) {
	r, err := ops.ReadStats(ctx, base, ops.StatsOptions{Viewer: contextstore.Viewer{Admin: true}, Now: now})
	if err != nil {
		return nil, err
	}
	f := &figures{Tasks: map[task.Status]int64{}, Used: r.Disk.Running + r.Disk.Ended}
	for _, p := range r.Statuses {
		f.Tasks[task.Status(p.Name)] = p.Tasks
	}
	first := contextstore.DayOf(now.AddDate(0, 0, 1-a.FailureDays))
	early := contextstore.DayOf(now.AddDate(0, 0, 1-a.FailureDays-before))
	var lately, earlier struct{ ms, runs int64 }
	for _, day := range r.Days {
		switch {
		case day.Name >= first:
			f.Ended, f.Failed = f.Ended+day.Tasks, f.Failed+day.Failed
			lately.ms, lately.runs = lately.ms+day.DurationMS, lately.runs+day.Timed
		case day.Name >= early:
			earlier.ms, earlier.runs = earlier.ms+day.DurationMS, earlier.runs+day.Timed
		}
	}
	if least := int64(a.FailureRuns); lately.runs >= least && earlier.runs >= least {
		f.Mean, f.Before = time.Duration(lately.ms/lately.runs)*time.Millisecond, time.Duration(earlier.ms/earlier.runs)*time.Millisecond
	}
	return f, nil
}

// wrong is what of it is wrong.
func (s premises) wrong(ctx context.Context) (all []alert, err error) {
	all = append(s.disk(), s.runs()...)
	owned, err := s.owners()
	if all = append(all, owned...); s.house == nil {
		return all, err
	}
	copies, berr := s.backup(ctx)
	near, nerr := s.budgets(ctx)
	night, merr := s.night(ctx)
	return slices.Concat(all, copies, near, night), errors.Join(err, berr, nerr, merr)
}

// disk is what is wrong with the room (store-v2 §8.1).
func (s premises) disk() (all []alert) {
	a := s.cfg.Monitor.Alerts
	if float64(s.free) < a.DiskFreeGB*1e9 {
		all = append(all, alert{Name: "disk_room", Why: i18n.E("alert.disk_room", i18n.Bytes(int64(min(s.free, 1<<62))), s.base)}) //nolint:gosec // it was bounded
	}
	if s.sums == nil {
		return all
	}
	for _, limit := range []struct {
		name string
		gb   float64
	}{{"disk_used", a.DiskWarnGB}, {"disk_critical", a.DiskCriticalGB}} {
		if limit.gb > 0 && float64(s.sums.Used) > limit.gb*1e9 {
			all = append(all, alert{Name: limit.name, Why: i18n.E("alert.disk_used", i18n.Bytes(s.sums.Used), fmt.Sprintf("%g GB", limit.gb))})
		}
	}
	return all
}

// runs is what is wrong with the runs as a whole (store-v2 §8.3).
func (s premises) runs() (all []alert) {
	a := s.cfg.Monitor.Alerts
	if s.sums == nil {
		return nil
	}
	f := *s.sums
	if n := f.Tasks[task.Queued]; a.RunningTasks > 0 && n > int64(a.RunningTasks) {
		all = append(all, alert{Name: "waiting", Why: i18n.E("alert.waiting", n, a.RunningTasks)})
	}
	if a.FailureRate > 0 && f.Ended >= int64(a.FailureRuns) && float64(f.Failed) > a.FailureRate*float64(f.Ended) {
		all = append(all, alert{Name: "failures", Why: i18n.E("alert.failures", f.Failed, f.Ended, a.FailureDays, percent(float64(f.Failed)/float64(f.Ended)), percent(a.FailureRate))})
	}
	if a.DurationFactor > 0 && f.Before > 0 && float64(f.Mean) > a.DurationFactor*float64(f.Before) {
		all = append(all, alert{Name: "slow", Why: i18n.E("alert.slow", f.Mean.Round(time.Second).String(), a.FailureDays, before, f.Before.Round(time.Second).String())})
	}
	return all
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// owners is what is wrong with processes that work on runs.
func (s premises) owners() (all []alert, err error) {
	most := time.Duration(s.cfg.Monitor.Alerts.LongRunningHours * float64(time.Hour))
	stale := time.Duration(s.cfg.ContextStorage.StaleSeconds) * time.Second
	err = contextstore.Walk(s.base, []string{contextstore.DirRunning}, func(dir string) error {
		o, held := contextstore.ReadOwner(dir)
		if !held {
			return nil
		}
		run := contextstore.Short(filepath.Base(dir))
		if age := s.now.Sub(o.AcquiredAt.Time); most > 0 && !o.AcquiredAt.IsZero() && age > most {
			all = append(all, alert{Name: "long_running", About: run, Why: i18n.E("alert.long_running", run, age.Round(time.Minute).String(), run, run)})
		}
		if age := o.Silent(s.now); age > stale {
			all = append(all, alert{Name: "stale_owner", About: run, Why: i18n.E("alert.stale_owner", o.ProcessID, o.Hostname, run, age.Round(time.Second).String(), o.ProcessID)})
		}
		return nil
	})
	return all, err
}

// budgets is which limits of the day are nearly taken.
func (s premises) budgets(ctx context.Context) (all []alert, err error) {
	l, share := dayLimits(s.cfg), s.cfg.Monitor.Alerts.BudgetShare
	if l.None() || share == 0 {
		return nil, nil
	}
	near, err := s.house.NearLimits(ctx, l, share, s.now)
	for _, n := range near {
		about, whose := n.Key, error(i18n.E("alert.budget_all"))
		if n.User != "" {
			about, whose = about+" "+n.User, i18n.E("alert.budget_user", n.User)
		}
		all = append(all, alert{Name: "budget_near", About: about, Why: i18n.E("alert.budget_near", whose, n.Taken, n.Limit, n.Key)})
	}
	return all, err
}

// night is which steps of the nightly work failed the last time.
func (s premises) night(ctx context.Context) (all []alert, err error) {
	for _, name := range nightSteps() {
		if name == "backup" { // of which backup tells
			continue
		}
		why, merr := s.house.Mark(ctx, nightFailedScope, name)
		if err = errors.Join(err, merr); why != "" {
			all = append(all, alert{Name: "maintenance_failed", About: name, Why: i18n.E("alert.maintenance_failed", name, why)})
		}
	}
	return all, err
}

// backup is what is wrong with the last backup, where backups are made (backup.dir).
func (s premises) backup(ctx context.Context) (all []alert, err error) {
	if s.cfg.Backup.Dir == "" {
		return nil, nil
	}
	add := func(name string, args ...any) {
		all = append(all, alert{Name: name, Why: i18n.E("alert."+name, args...)})
	}
	h, err := readBackups(ctx, s.house, s.cfg.Backup.Dir)
	if why := cmp.Or(h.Failed, h.Damage); why != "" {
		add("backup_failed", why)
	}
	old := func(t time.Time) bool {
		hours := s.cfg.Monitor.Alerts.BackupHours
		return hours > 0 && s.now.Sub(t) > time.Duration(hours*float64(time.Hour))
	}
	if old(h.Made) {
		add("backup_late", since(h.Made))
	}
	if old(h.Verified) {
		add("backup_unverified", since(h.Verified))
	}
	return all, err
}

// since is a time as alerts tell it.
func since(t time.Time) error {
	if t.IsZero() {
		return i18n.E("alert.never")
	}
	return errors.New(t.UTC().Format(time.RFC3339))
}

// premises are those of a daemon, with what was measured last.
func (d *daemon) premises() premises {
	free, err := d.store.Room()
	if full := (*contextstore.NoSpaceError)(nil); err != nil && !errors.As(err, &full) {
		free = 1 << 62 // who cannot tell is no reason to alarm
	}
	return premises{base: d.store.BaseDir, cfg: d.cfg, now: d.env.Now(), house: d.store, free: free, sums: d.sums.Load()}
}

// measuring sums up the runs every so often, until ctx ends, and asks for the models in use, which
// the start of the daemon did.
func (d *daemon) measuring(ctx context.Context) {
	sum := func(ctx context.Context) {
		f, err := measure(ctx, d.store.BaseDir, d.cfg.Monitor.Alerts, d.env.Now())
		if err == nil {
			d.sums.Store(f)
		} else if ctx.Err() == nil {
			d.log.Warn("The runs cannot be summed up: " + err.Error())
		}
	}
	sum(ctx)
	every(ctx, d.monitor.Every, func(ctx context.Context) {
		sum(ctx)
		down := modelsDown(d.models.Health(ctx), d.ofWork)
		if ctx.Err() == nil {
			d.down.Store(&down)
		}
	})
}

// ofWork reports whether a role is one that the daemon asks. The model of issues may be another one
// than that of the settings, or none.
func (d *daemon) ofWork(role string) bool {
	return role != models.Task && role != models.Summarizer || len(d.watches) > 0 && d.opt.Model == "" && d.opt.Script == ""
}

// modelsDown is which models in use cannot be called, a server each, of the roles that count.
func modelsDown(h models.Health, counts func(role string) bool) (all []alert) {
	roles, why, order := map[string][]string{}, map[string]error{}, []string(nil)
	add := func(where, role string, err error) {
		if why[where] == nil {
			why[where], order = err, append(order, where)
		}
		if role != "" {
			roles[where] = append(roles[where], role)
		}
	}
	for _, r := range h.Down() {
		if counts(r.Role) {
			add(cmp.Or(r.Endpoint, r.Provider, r.Role), r.Role, cmp.Or(r.Problem, r.Forbidden, error(i18n.E("alert.model_unreachable", r.Provider+"/"+r.Model))))
		}
	}
	for _, s := range h.Ollama {
		if p := s.Problems(); len(p) > 0 {
			add(s.Endpoint, "", p[0])
		}
	}
	for _, where := range order {
		all = append(all, alert{Name: "models_down", About: where, Why: i18n.E("alert.models_down", where, why[where], strings.Join(roles[where], ", "))})
	}
	return all
}
