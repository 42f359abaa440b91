package cli

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
)

// Exit codes of tori check.
const (
	exitMended = 1
	exitDamage = 2
)

type checkCmd struct {
	Repair bool `help:"${repair_help}"`
	JSON   bool `name:"json" help:"${json_help}"`
	place  `embed:""`
}

// Run checks the ledger: exit 0 where it is clean, 1 where all that was found
// was mended, 2 where damage is left or nothing could be looked at.
func (k checkCmd) Run(c *console) error {
	base, who, err := k.look(c)
	if err != nil {
		return err
	}
	ctx, stop := c.untilSignal()
	defer stop()
	progress, done := c.progress()
	r, err := ops.Check(ctx, c.out, base, ops.CheckOptions{Repair: k.Repair, JSON: k.JSON, Lang: c.lang, Viewer: who, Progress: progress, Plans: k.plans(c, base)})
	done()
	if who.Admin {
		action := "check"
		if k.Repair {
			action = "repair"
		}
		c.record(base, contextstore.AuditEntry{Actor: who.User, Action: action, Detail: ops.Counts(r)})
	}
	switch {
	case err != nil:
		return usage(err)
	case r.Left > 0:
		return &exitError{code: exitDamage}
	case r.Found > 0:
		return &exitError{code: exitMended}
	}
	return nil
}

// look is the base directory and who looks at it.
func (p place) look(c *console) (base string, who contextstore.Viewer, err error) {
	if base, err = p.base(c); err == nil {
		err = usage(contextstore.Whole(base))
	}
	if err != nil {
		return "", who, err
	}
	who, err = app.LocalViewer(base, p.Config, c.getenv)
	return base, who, usage(err)
}

// record puts into the audit who did what. What cannot be recorded (on a
// read-only disk, say) is done nonetheless, and said.
func (c *console) record(base string, e contextstore.AuditEntry) {
	if _, err := os.Stat(base); err != nil {
		return // nothing was there to be done
	}
	if err := contextstore.Audit(&disk.FS{}, base, time.Now(), c.sanitizer().String, e); err != nil {
		c.complain(i18n.E("audit.not_recorded", err))
	}
}

// progress tells a person at a terminal how far a long look at the files is;
// done clears the line.
func (c *console) progress() (tell func(fsck.Progress), done func()) {
	f, ok := file(c.err)
	if ok {
		_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		ok = err == nil
	}
	if !ok {
		return nil, func() {}
	}
	last, told := time.Now(), false
	tell = func(p fsck.Progress) {
		if time.Since(last) >= time.Second {
			last, told = time.Now(), true
			_, _ = fmt.Fprintf(f, "\r\x1b[K%s", c.lang.T("check.progress", p.Contexts, i18n.Bytes(p.Bytes)))
		}
	}
	return tell, func() {
		if told {
			_, _ = fmt.Fprint(f, "\r\x1b[K")
		}
	}
}
