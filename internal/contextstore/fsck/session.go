package fsck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
)

// The files of a conversation that are looked into (format.md "sessions/{id}/").
const (
	sessionState    = "session.json"
	sessionMessages = "messages.jsonl"
	sessionEvents   = "events.jsonl"
	sessionLegs     = "legs"
)

// sessions checks the conversations beside the contexts.
func (c *checker) sessions() error {
	st, err := disk.Lstat(contextstore.SessionsDir(c.base))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.uid = disk.OwnerOf(st)
	return contextstore.EachSession(c.base, func(dir string) error {
		c.session(dir)
		c.progress()
		return c.ctx.Err()
	})
}

// session checks one conversation and mends it if that was asked for. What may be a write
// that is under way is looked at again while nobody writes.
func (c *checker) session(dir string) {
	i := c.inspectSession(dir)
	if len(i.found) > 0 && c.ctx.Err() == nil {
		release, err := contextstore.HoldSession(c.ctx, dir, c.opt.Repair && i.mendable(), c.opt.StateLockTimeout)
		switch {
		case errors.Is(err, filelock.ErrLocked), errors.Is(err, os.ErrNotExist):
			return // whoever writes sees to it
		case err != nil:
			i.failed(err)
		default:
			i = c.inspectSession(dir)
			c.mendSession(i)
			release()
		}
	}
	if _, gone := disk.Lstat(dir); gone != nil || c.ctx.Err() != nil {
		return
	}
	for _, f := range i.found {
		f.UUID, f.Path = "", filepath.Join(f.Path, f.File) // it is no run
		c.tell(f)
	}
}

// mendSession mends what can be, if that was asked for. The caller holds the conversation.
func (c *checker) mendSession(i *inspection) {
	for _, f := range i.found {
		if !c.opt.Repair || f.mend == nil || c.ctx.Err() != nil {
			continue
		}
		f.Err = f.mend()
		f.Mended = f.Err == nil
	}
}

// inspectSession looks at a conversation without changing anything.
func (c *checker) inspectSession(dir string) *inspection {
	i := &inspection{c: c, uuid: filepath.Base(dir), dir: dir, logs: map[string]*logCheck{}, more: map[string]int64{}}
	if _, _, err := i.entries(); err != nil {
		i.find("", spot{}, "unreadable", err)
		return i
	}
	for _, f := range i.found {
		if f.Kind == "temporary" {
			f.mend = func() error { return c.fs.Remove(filepath.Join(dir, f.File)) }
		}
	}
	var state struct {
		ID string `json:"session_id"`
	}
	if ok, err := contextstore.ReadSession(dir, sessionState, &state); err != nil {
		i.find(sessionState, spot{}, "unreadable", err)
	} else if ok && state.ID == "" {
		i.find(sessionState, spot{}, "strange", errors.New("no session_id"))
	}
	i.scan(sessionMessages, i.saidJudge())
	logs := []string{sessionEvents}
	err := disk.Entries(filepath.Join(dir, sessionLegs), func(e os.DirEntry) error {
		if strings.HasSuffix(e.Name(), ".jsonl") {
			logs = append(logs, filepath.Join(sessionLegs, e.Name()))
		}
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		i.find(sessionLegs, spot{}, "unreadable", err)
	}
	for _, name := range logs {
		i.scan(name, judge{lost: func(int64) {}, note: func(spot) {}, end: func() {}, decode: func(b []byte) (int64, error) { return 0, jsonl.Check(b) }})
	}
	return i
}

// saidJudge looks at what was said in a conversation.
func (i *inspection) saidJudge() judge {
	n := &numbering{i: i, file: sessionMessages}
	var seq int64
	return judge{lost: n.lost, note: func(at spot) { n.next(at, seq) }, end: func() {}, decode: func(b []byte) (int64, error) {
		var l struct {
			Seq  int64  `json:"seq"`
			Role string `json:"role"`
		}
		if err := jsonl.Decode(b, &l); err != nil {
			return 0, err
		}
		seq = l.Seq
		switch l.Role {
		case contextstore.SessionUser, contextstore.SessionAssistant, contextstore.SessionWithdrawn, contextstore.SessionRevised:
			return seq, nil
		}
		return seq, fmt.Errorf("role %q", l.Role)
	}}
}
