package cli

import (
	"context"
	"errors"
	"fmt"

	"toritsugi/internal/app"
	"toritsugi/internal/backup"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/i18n"
)

// backupCmd is tori backup and what belongs to it.
type backupCmd struct {
	Make   backupMakeCmd   `cmd:"" default:"withargs" help:"${backup_make_help}"`
	List   backupListCmd   `cmd:"" help:"${backup_list_help}"`
	Verify backupVerifyCmd `cmd:"" help:"${backup_verify_help}"`
}

type backupMakeCmd struct {
	Place string `arg:"" optional:"" placeholder:"DIR" filled:"" help:"${backup_place_help}"`
	JSON  bool   `name:"json" help:"${json_help}"`
	place `embed:""`
}

// counted is a progress of units and bytes.
func (c *console) counted() (tell func(units, bytes int64), done func()) {
	show, done := c.progress()
	if show == nil {
		return nil, done
	}
	return func(units, bytes int64) { show(fsck.Progress{Contexts: units, Bytes: bytes}) }, done
}

// Run makes a backup: exit 1 where something could not be read.
func (k backupMakeCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		tell, done := c.counted()
		r, base, who, err := app.Backup(ctx, env, app.BackupOptions{BaseDir: k.BaseDir, Config: k.Config, Place: k.Place}, tell)
		done()
		if err != nil {
			return err
		}
		c.record(base, contextstore.AuditEntry{Actor: who, Action: "backup", Detail: fmt.Sprintf("generation %d, runs %d, bytes written %d, not read %d", r.Number, r.Runs, r.Added, r.Manifest.Failed)})
		if k.JSON {
			err = c.json(generationJSON(r.Generation))
		} else {
			c.say("cli.backup_done", r.Number, r.Place, r.Runs, r.Sessions, i18n.Bytes(r.Bytes), i18n.Bytes(r.Added), r.Removed)
		}
		if r.Unswept != nil {
			c.note("cli.backup_unswept", r.Unswept)
		}
		if r.Failed != nil {
			c.note("cli.backup_failed", r.Manifest.Failed, r.Failed)
			return errors.Join(err, &exitError{code: exitFailed})
		}
		return err
	})
}

// generationJSON is a generation for programs.
func generationJSON(g backup.Generation) map[string]any {
	m := map[string]any{"name": g.Name, "generation": g.Number}
	if g.Err != nil {
		m["error"] = g.Err.Error()
		return m
	}
	m["made_at"], m["encrypted"], m["runs"], m["sessions"], m["bytes"], m["added_bytes"], m["failed"] = g.MadeAt, g.Encrypted, g.Runs, g.Sessions, g.Bytes, g.Added, g.Failed
	return m
}

type backupListCmd struct {
	Place string `arg:"" optional:"" placeholder:"DIR" filled:"" help:"${backup_place_help}"`
	JSON  bool   `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Run lists the generations.
func (k backupListCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		all, place, err := app.Backups(ctx, env, app.BackupOptions{BaseDir: k.BaseDir, Config: k.Config, Place: k.Place})
		if err != nil {
			return err
		}
		switch {
		case k.JSON:
			for _, g := range all {
				err = errors.Join(err, c.json(generationJSON(g)))
			}
			return err
		case len(all) == 0:
			c.say("cli.backup_none", place)
			return nil
		}
		c.say("cli.backup_list_head")
		for _, g := range all {
			if g.Err != nil {
				c.say("cli.backup_bad", g.Number, g.Err)
				continue
			}
			encrypted := ""
			if g.Encrypted {
				encrypted = "  " + c.lang.T("cli.backup_encrypted")
			}
			_, err = fmt.Fprintf(c.out, "%6d  %s %9d %9d %12s %12s%s\n", g.Number, g.MadeAt.Format("2006-01-02T15:04:05Z"), g.Runs, g.Sessions, i18n.Bytes(g.Bytes), i18n.Bytes(g.Added), encrypted)
		}
		return err
	})
}

type backupVerifyCmd struct {
	Place    string `arg:"" optional:"" placeholder:"DIR" filled:"" help:"${backup_place_help}"`
	Identity string `placeholder:"FILE" help:"${backup_identity_help}"`
	JSON     bool   `name:"json" help:"${json_help}"`
	place    `embed:""`
}

// Run reads all generations: exit 2 where one is damaged.
func (k backupVerifyCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		tell, done := c.counted()
		all, damage, err := app.VerifyBackups(ctx, env, app.BackupOptions{BaseDir: k.BaseDir, Config: k.Config, Place: k.Place, Identity: k.Identity}, tell)
		done()
		if err != nil {
			return err
		}
		for _, v := range all {
			if k.JSON {
				m := generationJSON(v.Generation)
				m["parts"], m["stored_bytes"], m["broken"] = v.Units, v.Bytes, v.Broken
				if v.Why != nil {
					m["error"] = v.Why.Error()
				}
				err = errors.Join(err, c.json(m))
				continue
			}
			switch {
			case v.Err != nil:
				c.say("cli.backup_bad", v.Number, v.Err)
			case v.Why != nil:
				c.say("cli.backup_broken", v.Number, v.Broken, v.Why)
			default:
				c.say("cli.backup_whole", v.Number, v.Units, i18n.Bytes(v.Bytes))
			}
		}
		if damage != nil {
			return &exitError{exitDamage, damage}
		}
		return err
	})
}

type restoreCmd struct {
	Source     string  `arg:"" placeholder:"SOURCE" filled:"" help:"${restore_source_help}"`
	Task       *string `placeholder:"UUID" help:"${restore_task_help}"`
	To         string  `placeholder:"DIR" filled:"" help:"${restore_to_help}"`
	Generation *int    `placeholder:"N" help:"${restore_generation_help}"`
	Force      bool    `help:"${restore_force_help}"`
	Identity   string  `placeholder:"FILE" help:"${backup_identity_help}"`
	JSON       bool    `name:"json" help:"${json_help}"`
	place      `embed:""`
}

// Run brings a backup back: exit 2 where tori check finds damage in it, or nothing was begun.
func (k restoreCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		tell, done := c.counted()
		r, base, who, err := app.Restore(ctx, env, app.RestoreOptions{BackupOptions: app.BackupOptions{BaseDir: k.BaseDir, Config: k.Config, Place: k.Source, Identity: k.Identity},
			Generation: k.Generation, Run: k.Task, To: k.To, Force: k.Force}, tell)
		done()
		if err != nil {
			return err
		}
		c.record(base, contextstore.AuditEntry{Actor: who, Action: "restore", UUID: r.Run, Detail: fmt.Sprintf("generation %d, runs %d", r.Number, r.Runs)})
		if k.JSON {
			err = c.json(map[string]any{"generation": r.Number, "base_dir": base, "runs": r.Runs, "sessions": r.Sessions, "uuid": r.Run, "same": r.Same, "resumed": r.Resumed, "aside": r.Aside, "damage": r.Check.Left})
		} else {
			c.restored(r, base)
		}
		if r.Check.Left > 0 {
			return errors.Join(err, &exitError{code: exitDamage})
		}
		return err
	})
}

func (c *console) restored(r backup.Restored, base string) {
	switch {
	case r.Resumed:
		c.say("cli.restore_resumed", r.Number, base)
	case r.Same:
		c.say("cli.restore_same", contextstore.Short(r.Run))
	case r.Run != "":
		c.say("cli.restored_run", contextstore.Short(r.Run), r.Number, base)
	default:
		c.say("cli.restored", r.Number, base, r.Runs, r.Sessions)
	}
	if r.Aside != "" {
		c.say("cli.restore_aside", r.Aside)
	}
	if r.Check.Left > 0 {
		c.say("cli.restore_damage", r.Check.Left)
	}
}
