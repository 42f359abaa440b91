package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
)

// night does the nightly work (store-v2 §8.1). When a step was last done stands in house.db: a step
// that was cut short is begun again, and what a night missed is caught up.
type night struct {
	*system
	// say tells a conversation a text, once for each key; nil where there is none to tell.
	say func(ctx context.Context, session, key, text string) error
	all bool // everything is done at once, whatever is due
}

// NightStep is how one step of the nightly work went.
type NightStep struct {
	Name string
	Took time.Duration
	Did  []any // names and values, in turns
	Err  error
}

// step is one part of the nightly work. It can be cut short anywhere and be done again.
type step struct {
	name string
	do   func(ctx context.Context) (did []any, err error)
}

// steps are all of them, in their order.
func (n *night) steps() []step {
	return []step{
		{"backup", n.backup}, // before anything is removed
		{"retention", n.retain},
		{"workspaces", n.workspaces},
		{"locks", n.locks},
		{"index", n.rows},
		{"vacuum", n.vacuum},
		{"report", n.report},
	}
}

// nightSteps are the names of the steps.
func nightSteps() (names []string) {
	for _, s := range (&night{}).steps() {
		names = append(names, s.name)
	}
	return names
}

// The marks of house.db, by the name of a step: when it was last tried, and why it failed.
const (
	maintenanceScope = "maintenance"
	nightFailedScope = "maintenance failed"
)

// errLater says that a step is not for now, and is to be tried again soon.
var errLater = errors.New("not now")

// do does of the steps what is due, or all of them, and tells of each. One that fails keeps the
// others from nothing. ErrBusy: another process is at it.
func (n *night) do(ctx context.Context, steps []step, all bool, each func(NightStep)) error {
	alone, err := n.store.Alone("maintenance")
	if err != nil {
		return err
	}
	defer alone.Release()
	var failed error
	for _, s := range steps {
		due, err := n.due(ctx, s.name)
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if all || due {
			r, err := n.one(ctx, s)
			if failed = errors.Join(failed, err); r != nil {
				each(*r)
			}
		}
	}
	return failed
}

// due reports whether it is time for a step.
func (n *night) due(ctx context.Context, name string) (bool, error) {
	raw, err := n.store.Mark(ctx, maintenanceScope, name)
	last, _ := time.Parse(time.RFC3339, raw) // one that cannot be read counts as none
	due, ok := n.cfg.Maintenance.Next(last.In(time.Local))
	return ok && (last.IsZero() || !n.env.Now().Before(due)), err
}

// one does a step and notes that; nil where it is to be tried again soon.
func (n *night) one(ctx context.Context, s step) (*NightStep, error) {
	began := n.env.Now()
	n.log.Debug("Nightly work begins", "step", s.name)
	did, err := s.do(ctx)
	r := &NightStep{Name: s.name, Took: n.env.Now().Sub(began), Did: did, Err: err}
	why := ""
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, errLater), errors.Is(err, contextstore.ErrBusy):
		n.log.Debug("Nightly work is put off: "+err.Error(), "step", s.name)
		return nil, nil
	case err != nil:
		why = n.redact.Strict().String(i18n.Lang(n.cfg.Language).Error(err))
		n.log.Error("Nightly work failed: "+err.Error(), append([]any{"step", s.name, "took", r.Took.Round(time.Millisecond)}, did...)...)
	default:
		n.log.Info("Nightly work is done", append([]any{"step", s.name, "took", r.Took.Round(time.Millisecond)}, did...)...)
	}
	return r, errors.Join(n.store.SetMark(ctx, nightFailedScope, s.name, why), n.store.SetMark(ctx, maintenanceScope, s.name, began.In(time.Local).Format(time.RFC3339)))
}

// retain does with ended runs what context_storage.retention says, and forgets those that are gone,
// with the blobs that nothing refers to.
func (n *night) retain(ctx context.Context) ([]any, error) {
	did, freed := map[contextstore.RetentionStep]int{}, int64(0)
	err := n.store.Retain(ctx, n.retention(), false, func(r contextstore.Retained) { did[r.Step]++; freed += r.Freed })
	if errors.Is(err, contextstore.ErrBusy) || ctx.Err() != nil {
		return nil, err
	}
	err = errors.Join(err, n.store.Forget(ctx, n.retention())) // one run that cannot be dealt with keeps nothing else from going
	all := []any{"compressed", did[contextstore.StepGzip], "slimmed", did[contextstore.StepSlim], "removed", did[contextstore.StepDelete] + did[contextstore.StepRoom], "freed_bytes", freed}
	if n.blobs != nil {
		swept, serr := n.blobs.Sweep(ctx)
		all, err = append(all, "blobs", swept), errors.Join(err, serr)
	}
	return all, err
}

// workspaces removes the workspaces, mirrors and setups that the settings no longer keep.
func (n *night) workspaces(ctx context.Context) ([]any, error) {
	done, err := n.cleanUp(ctx)
	return []any{"removed", len(done.Removed), "freed_bytes", done.Freed}, err
}

// locks frees what dead owners left of runs that nobody took up, as tori unlock does.
func (n *night) locks(ctx context.Context) ([]any, error) {
	var dead []string
	err := contextstore.Walk(n.store.BaseDir, []string{contextstore.DirRunning}, func(dir string) error {
		if _, held := contextstore.ReadOwner(dir); held {
			return nil
		}
		if disk.Exists(filepath.Join(dir, contextstore.LockFile)) {
			dead = append(dead, filepath.Base(dir))
		}
		return nil
	})
	freed := 0
	for _, uuid := range dead {
		f, uerr := n.store.Unlock(ctx, uuid, orphanGrace)
		switch {
		case errors.Is(uerr, contextstore.ErrBusy) || errors.Is(uerr, contextstore.ErrNotFound): // it has an owner again, or ended
		case uerr != nil:
			err = errors.Join(err, fmt.Errorf("free run %s: %w", uuid, uerr))
		case f.Left:
			freed++
			n.audit("unlock", uuid, string(f.Status))
		}
	}
	return []any{"freed", freed}, err
}

// rows compares tasks.db with the directories, and mends it.
func (n *night) rows(ctx context.Context) ([]any, error) {
	r, err := fsck.Check(ctx, n.store.BaseDir, fsck.Options{Rows: true, Repair: true, FS: n.fs, Now: n.env.Now})
	if err == nil && r.Left > 0 {
		first := slices.IndexFunc(r.Findings, func(f fsck.Finding) bool { return !f.Note && !f.Mended })
		err = i18n.E("night.index_left", r.Left, r.Findings[max(first, 0)].Path)
	}
	return []any{"runs", r.Contexts, "mended", r.Mended, "left", r.Left}, err
}

// vacuum gives back the room that deleted rows left in the databases.
func (n *night) vacuum(ctx context.Context) ([]any, error) {
	freed, err := n.store.Compact(ctx)
	return []any{"freed_bytes", freed}, err
}

// report tells what runs took: the log in short, and maintenance.report_to all of it.
func (n *night) report(ctx context.Context) ([]any, error) {
	to := n.cfg.Maintenance.ReportTo
	kind, _, _ := strings.Cut(to, ":")
	if n.say != nil && n.quiet(channel.Kind(kind)) {
		return nil, errLater
	}
	o := ops.StatsOptions{Lang: i18n.Lang(n.cfg.Language), Now: n.env.Now(), Viewer: contextstore.Viewer{Admin: true}}
	r, err := ops.ReadStats(ctx, n.store.BaseDir, o)
	if err != nil {
		return nil, err
	}
	did := []any{"runs", r.Total, "live", r.Running, "completed", r.Ended.Done, "failed", r.Ended.Failed, "tokens", r.Ended.Tokens,
		"cost", contextstore.Dollars(r.Ended.CostMicroUSD), "bytes", r.Disk.Running + r.Disk.Ended}
	if to == "" {
		return did, nil
	}
	var text strings.Builder
	if err := ops.PrintStats(&text, r, o); err != nil {
		return did, err
	}
	message := news{Key: "report/" + contextstore.DayOf(n.env.Now()), Text: n.redact.Strict().String(strings.TrimSpace(text.String()))}
	for _, w := range n.outside() {
		if w.name == to {
			return did, w.tell(ctx, message)
		}
	}
	if n.say == nil {
		return did, i18n.E("night.no_conversation", to)
	}
	return did, n.say(ctx, to, message.Key, message.Text)
}

// nightly does what is due, until ctx ends.
func (d *daemon) nightly(ctx context.Context) {
	n := d.night()
	d.tonight(ctx, n)
	every(ctx, digestEvery, func(ctx context.Context) { d.tonight(ctx, n) })
}

// tonight does what is due.
func (d *daemon) tonight(ctx context.Context, n *night) {
	if err := n.do(ctx, n.steps(), false, func(NightStep) {}); err != nil && ctx.Err() == nil && !errors.Is(err, contextstore.ErrBusy) {
		d.log.Error("What was done at night is not noted: " + err.Error())
	}
}

// night is the nightly work of a daemon.
func (d *daemon) night() *night { return &night{system: d.system, say: d.notifyOne} }

// Maintain does all of the nightly work at once, as tori serve does at its time, and tells of each
// step. Its errors are *ConfigError where nothing was begun; ErrBusy where another process is at it.
func Maintain(ctx context.Context, env Env, dir, configFile string, each func(NightStep)) (base, actor string, err error) {
	s, actor, err := asAdmin(env, RunOptions{BaseDir: dir, Config: configFile, Confined: true, Quiet: true})
	if err != nil {
		return "", "", err
	}
	if err := s.open(ctx); err != nil {
		return "", "", &ConfigError{err}
	}
	n := &night{system: s, all: true}
	return s.opt.BaseDir, actor, errors.Join(n.do(ctx, n.steps(), true, each), s.store.Close())
}
