package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"toritsugi/internal/backup"
	"toritsugi/internal/bucket"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/workspace"
)

// BackupOptions say which backups are meant.
type BackupOptions struct {
	BaseDir, Config string
	Place           string // "" for backup.dir
	Identity        string // file of secret keys; "" for backup.identity_file
}

// repository is where backups lie; of the base directory's own key it knows what is there.
func (s *system) repository(place, identity string) (*backup.Repository, error) {
	b := s.cfg.Backup
	r, err := backup.Open(backup.Options{Place: cmp.Or(place, b.Dir), Recipients: b.Recipients, Identity: cmp.Or(identity, b.IdentityFile), FS: s.fs, HTTP: s.env.HTTP, Now: s.env.Now,
		S3: s3Login(b), Azure: azureLogin(b)})
	if err != nil {
		return nil, err
	}
	return r, r.Know(s.house())
}

// s3Login is how the settings have a server of buckets reached.
func s3Login(b config.Backup) bucket.S3 {
	return bucket.S3{Endpoint: b.S3.Endpoint, Region: b.S3.Region, AccessKey: b.S3.AccessKey, SecretKey: b.S3.SecretKey, Token: b.S3.SessionToken}
}

// azureLogin is how they have an account of Azure reached.
func azureLogin(b config.Backup) bucket.Azure {
	return bucket.Azure{Endpoint: b.Azure.Endpoint, Account: b.Azure.Account, Key: b.Azure.Key}
}

// house is the base directory.
func (s *system) house() string {
	if s.store != nil {
		return s.store.BaseDir
	}
	return s.opt.BaseDir // as it was found
}

// backupScope is that of the marks of what is known of the backups in backup.dir.
const backupScope = "backup"

// BackupHealth is what house.db knows of the backups in backup.dir.
type BackupHealth struct {
	Made     time.Time // when the last one was made, zero for never
	Verified time.Time // when one was last restored for a test, or all were read, and it was whole
	Damage   string    // why the last such look failed, "" where it did not
	Failed   string    // why the nightly work failed at it the last time, "" where it did not

	tested time.Time // when a test was begun last, after the second it was
}

// damageMark is by which mark it is known that the last backup in a place is damaged: the next one
// there writes everything anew.
func damageMark(place string) string { return "damage " + bucket.Name(place) }

// isBackupDir reports whether a place is backup.dir.
func (s *system) isBackupDir(place string) bool {
	return bucket.Name(place) == bucket.Name(s.cfg.Backup.Dir)
}

// backupHealth reads it.
func (s *system) backupHealth(ctx context.Context) (BackupHealth, error) {
	return readBackups(ctx, s.store, s.cfg.Backup.Dir)
}

// readBackups reads from house.db what is known of the backups in backup.dir, which is dir.
func readBackups(ctx context.Context, house marksReader, dir string) (h BackupHealth, err error) {
	for name, at := range map[string]*time.Time{"made": &h.Made, "verified": &h.Verified, "tested": &h.tested} {
		raw, merr := house.Mark(ctx, backupScope, name)
		err = errors.Join(err, merr)
		*at, _ = time.Parse(time.RFC3339, raw) // what cannot be read counts as never
	}
	for scope, of := range map[string]struct {
		name string
		why  *string
	}{backupScope: {damageMark(dir), &h.Damage}, nightFailedScope: {"backup", &h.Failed}} {
		raw, merr := house.Mark(ctx, scope, of.name)
		err = errors.Join(err, merr)
		*of.why = raw
	}
	return h, err
}

func (s *system) setBackupMark(ctx context.Context, name, value string) error {
	if s.store == nil {
		return nil
	}
	return s.store.SetMark(context.WithoutCancel(ctx), backupScope, name, value)
}

func (s *system) stamp() string { return s.env.Now().UTC().Format(time.RFC3339) }

// makeBackup makes a backup in a place, "" for backup.dir, and notes it down where it is that one.
// Where the last one there is known to be damaged, it writes everything anew.
// What could not be read of the base directory is in the report.
func (s *system) makeBackup(ctx context.Context, place string, progress func(units, written int64)) (backup.Report, error) {
	if err := onlyFiles("tori backup", s.house()); err != nil {
		return backup.Report{}, err
	}
	r, err := s.repository(place, "")
	if err != nil {
		return backup.Report{}, &ConfigError{err}
	}
	src := backup.Source{Base: s.house(), Plans: planning.HistoryDir(s.house(), s.cfg.Planning.History.Directory), FS: s.fs, Keep: s.cfg.Backup.Generations, Progress: progress}
	if s.store != nil {
		damage, err := s.store.Mark(ctx, backupScope, damageMark(r.Place()))
		if err != nil {
			return backup.Report{}, err
		}
		src.Fresh = damage != ""
	}
	done, err := r.Make(ctx, src)
	if err == nil && src.Fresh {
		err = s.setBackupMark(ctx, damageMark(r.Place()), "")
	}
	if err != nil || !s.isBackupDir(r.Place()) {
		return done, refused(err)
	}
	err = errors.Join(err, s.setBackupMark(ctx, "made", s.stamp()))
	if s.store != nil && done.Failed == nil { // what the night failed at is done
		err = errors.Join(err, s.store.SetMark(context.WithoutCancel(ctx), nightFailedScope, "backup", ""))
	}
	return done, err
}

// verifyLast restores the last backup of backup.dir for a test, below the base directory, looks at
// it as tori check does, and notes down whether it is whole. The error says why it is not. What of a
// run was damaged before it was copied is told, and keeps the rest from nothing: that is verified.
// backup.ErrNoRoom: it was not tried.
func (s *system) verifyLast(ctx context.Context) error {
	r, err := s.repository("", "")
	if err != nil {
		return &ConfigError{err}
	}
	g, err := r.Latest(ctx)
	if err == nil {
		var done backup.Restored
		// It leaves what runs need, and is not to be an alert itself.
		keep := max(workspace.MinFree, int64(s.cfg.Monitor.Alerts.DiskFreeGB*1e9))
		if done, err = r.Test(ctx, g, s.house(), keep, s.fs); err == nil && done.Check.Left > 0 {
			where, whole := damageOf(done.Check)
			damage := i18n.E("backup.not_tested", g.Number, done.Check.Left, where)
			if !whole {
				return damage
			}
			return errors.Join(damage, s.verified(ctx, r.Place(), nil))
		}
	}
	return errors.Join(err, s.verified(ctx, r.Place(), err))
}

// damageOf names the first places of what could not be mended; others is whether it is of single
// runs and conversations, and all others are whole.
func damageOf(r fsck.Report) (where string, others bool) {
	var all []string
	others = true
	for _, f := range r.Findings {
		if f.Note || f.Mended || slices.Contains(all, f.Path) {
			continue
		}
		all = append(all, f.Path)
		others = others && filepath.Dir(f.Path) != "."
	}
	if most := 5; len(all) > most {
		all = append(all[:most], "…")
	}
	return strings.Join(all, ", "), others
}

// verified notes down how a look at the last backup in a place ended.
func (s *system) verified(ctx context.Context, place string, err error) error {
	switch {
	case err == nil:
		err = s.setBackupMark(ctx, damageMark(place), "")
		if s.isBackupDir(place) {
			err = errors.Join(err, s.setBackupMark(ctx, "verified", s.stamp()))
		}
		return err
	case backup.IsDamage(err):
		return s.setBackupMark(ctx, damageMark(place), s.redact.String(err.Error()))
	}
	return nil
}

// refused is an error, as *ConfigError where it says that nothing was begun.
func refused(err error) error {
	if errors.As(err, new(*backup.RefusedError)) {
		return &ConfigError{err}
	}
	return err
}

// atBackup is asAdmin with the store. Where the base directory cannot be written there is none.
func atBackup(ctx context.Context, env Env, o BackupOptions, write bool) (s *system, actor string, err error) {
	s, actor, err = asAdmin(env, RunOptions{BaseDir: o.BaseDir, Config: o.Config, Confined: true, Quiet: true})
	if err != nil {
		return s, "", err
	}
	if _, err := os.Stat(s.opt.BaseDir); err != nil {
		if write {
			err = &ConfigError{i18n.E("contextstore.no_base", s.opt.BaseDir, err)}
		} else {
			err = nil // as where it is lost
		}
		return s, actor, err
	}
	err = s.open(ctx)
	if errors.Is(err, syscall.EROFS) {
		s.store, err = nil, nil
		if write {
			s.env.Notice("cli.backup_no_marks")
		}
	}
	if err != nil {
		return s, "", &ConfigError{err}
	}
	return s, actor, nil
}

func (s *system) closeStore() error {
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

// Backup makes a backup, as tori serve does at night. Its errors are *ConfigError where nothing was
// begun. place is where it lies, for people.
func Backup(ctx context.Context, env Env, o BackupOptions, progress func(units, written int64)) (done backup.Report, base, actor string, err error) {
	s, actor, err := atBackup(ctx, env, o, true)
	if err != nil {
		return done, "", "", err
	}
	done, err = s.makeBackup(ctx, o.Place, progress)
	return done, s.opt.BaseDir, actor, errors.Join(err, s.closeStore())
}

// Backups lists what there is, the oldest first.
func Backups(ctx context.Context, env Env, o BackupOptions) (all []backup.Generation, place string, err error) {
	s, _, err := atBase(env, RunOptions{BaseDir: o.BaseDir, Config: o.Config, Confined: true, Quiet: true})
	if err != nil {
		return nil, "", err
	}
	r, err := s.repository(o.Place, o.Identity)
	if err != nil {
		return nil, "", &ConfigError{err}
	}
	all, err = r.Generations(ctx)
	return all, r.Place(), err
}

// VerifyBackups reads all generations and tells which are whole; of the last one it is noted down.
// damage says how many are not, and what comes of it; nil where all are.
func VerifyBackups(ctx context.Context, env Env, o BackupOptions, progress func(units, bytes int64)) (all []backup.Verified, damage, err error) {
	s, _, err := atBackup(ctx, env, o, false)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.closeStore()) }()
	r, err := s.repository(o.Place, o.Identity)
	if err != nil {
		return nil, nil, &ConfigError{err}
	}
	all, err = r.Verify(ctx, progress)
	if err == nil && len(all) == 0 {
		return nil, nil, &ConfigError{i18n.E("backup.none", r.Place())}
	}
	if err != nil {
		return nil, nil, err
	}
	last, bad := all[len(all)-1].Why, 0
	for _, v := range all {
		if v.Why != nil {
			bad++
		}
	}
	switch {
	case bad == 0:
	case last == nil:
		damage = i18n.E("backup.verify_older", bad, r.Place())
	case s.store == nil:
		damage = i18n.E("backup.verify_unkept", bad, r.Place(), s.opt.BaseDir)
	default:
		damage = i18n.E("backup.verify_damage", bad, r.Place())
	}
	return all, damage, s.verified(ctx, r.Place(), last)
}

// RestoreOptions say what is restored, and where to.
type RestoreOptions struct {
	BackupOptions
	Generation *int    // nil for the latest
	Run        *string // the beginning of its uuid; nil for all
	To         string  // base directory; "" for that of the settings
	Force      bool
}

// Restore brings a backup back. It returns the base directory and who did it, for the audit.
func Restore(ctx context.Context, env Env, o RestoreOptions, progress func(units, bytes int64)) (done backup.Restored, base, actor string, err error) {
	number, run := 0, ""
	if o.Generation != nil {
		if number = *o.Generation; number < 1 {
			return done, "", "", &ConfigError{i18n.E("backup.generation", number)}
		}
	}
	if o.Run != nil {
		if run, err = contextstore.Beginning(*o.Run); err != nil {
			return done, "", "", &ConfigError{err}
		}
	}
	s, who, err := atBase(env, RunOptions{BaseDir: cmp.Or(o.To, o.BaseDir), Config: o.Config, Confined: true, Quiet: true})
	if err != nil {
		return done, "", "", err
	}
	base = s.opt.BaseDir
	if err := onlyFiles("tori restore", base); err != nil {
		return done, "", "", err
	}
	if !who.Admin {
		return done, "", "", &ConfigError{i18n.E("check.not_admin", base, who.User)}
	}
	r, err := s.repository(o.Place, o.Identity)
	if err != nil {
		return done, "", "", &ConfigError{err}
	}
	g, err := r.Find(ctx, number)
	if err != nil {
		return done, "", "", &ConfigError{err}
	}
	done, err = r.Restore(ctx, g, backup.Target{Dir: base, Plans: planning.HistoryDir(base, s.cfg.Planning.History.Directory), Run: run, Force: o.Force, FS: s.fs, Progress: progress})
	if err == nil && done.Run != "" && !done.Same { // its row
		if err = s.open(ctx); err == nil {
			err = s.store.Close()
		}
		if err != nil {
			err = fmt.Errorf("the run is restored, but has no row yet: %w", err)
		}
	}
	return done, base, who.User, refused(err)
}

// backup makes a backup where one is due, and restores one that was not restored yet for a test.
func (n *night) backup(ctx context.Context) (did []any, err error) {
	if n.cfg.Backup.Dir == "" || n.cfg.Backup.Schedule == "never" {
		return nil, errNotSetUp
	}
	h, err := n.backupHealth(ctx)
	if err != nil {
		return nil, err
	}
	now := n.env.Now().In(time.Local)
	if h.Made.After(now) { // the clock was set back
		h.Made = time.Time{}
	}
	due, ok := n.cfg.Maintenance.Next(h.Made.In(time.Local))
	var unread error
	if n.all || ok && (h.Made.IsZero() || !now.Before(due)) {
		done, err := n.makeBackup(ctx, "", nil)
		if err != nil {
			return nil, err
		}
		did = []any{"generation", done.Number, "runs", done.Runs, "written_bytes", done.Added, "not_read", done.Manifest.Failed}
		unread = done.Failed // what could be read is tested all the same
		if done.Unswept != nil {
			n.log.Warn("What old backups left is not removed: " + n.env.Lang.Error(done.Unswept))
		}
		h.Made = now
	}
	if h.tested.After(h.Made) && !h.tested.After(now) {
		return did, unread
	}
	if err := n.setBackupMark(ctx, "tested", n.env.Now().UTC().Add(time.Second).Format(time.RFC3339)); err != nil {
		return did, errors.Join(unread, err)
	}
	err = n.verifyLast(ctx)
	if errors.Is(err, backup.ErrNoRoom) {
		n.log.Warn("The backup is not restored for a test this night: " + n.env.Lang.Error(err))
		return append(did, "restored", "later, for want of room"), errors.Join(unread, n.setBackupMark(ctx, "tested", ""))
	}
	return append(did, "restored", "for a test"), errors.Join(unread, err)
}
