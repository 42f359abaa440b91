package fsck

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// inspection is one look at one context.
type inspection struct {
	c         *checker
	uuid, dir string
	held      bool // a live process owns it
	twice     bool // the uuid lies in another place too: nothing is mended
	newer     bool
	meta      contextstore.Metadata
	state     contextstore.State
	rawState  os.FileInfo // as it was when it was read
	stateErr  error
	row       index.Row
	hasRow    bool
	logs      map[string]*logCheck
	cuts      int64 // bytes of *.cut
	found     []*Finding
	more      map[string]int64 // findings per file, and how many of them were not told
	moving    bool             // a half-done transition was found: what follows from it is not told again

	messages     *messageCheck
	compressions int64
	summaries    tally             // of the calls that summaries.jsonl tells of
	outcome      string            // of the last of them that tells one
	ended        contextstore.Time // when that was written
	commit       string            // of the last line of checks.jsonl that tells one
	reader       disk.Plain
	own          *ownLock // of a context under repair
	toldLive     bool
}

// find adds a finding about the context; a file with many tells how many more
// there are.
func (i *inspection) find(file string, at spot, kind string, args ...any) *Finding {
	f := &Finding{UUID: i.uuid, Path: i.rel(), File: file, Line: at.line, Byte: at.byte, Kind: kind, Args: args}
	i.more[file]++
	if n := i.more[file]; n > maxPerFile && at.line > 0 && kind != "torn" && kind != "nul_end" && kind != "newline" {
		return f
	}
	i.found = append(i.found, f)
	return f
}

// note adds what is no damage.
func (i *inspection) note(kind string, args ...any) {
	i.find("", spot{}, kind, args...).Note = true
}

// repairable says what repairable a finding; nothing is mended where the uuid lies twice
// or in a context in use.
func (i *inspection) repairable(f *Finding, action string, about ...any) *Finding {
	if i.twice || i.held || i.c.edition != 0 {
		return &Finding{}
	}
	f.Action, f.about = action, about
	return f
}

func (i *inspection) mendable() bool {
	return slices.ContainsFunc(i.found, func(f *Finding) bool { return f.mend != nil })
}

// rel is the context's directory from the base.
func (i *inspection) rel() string {
	return filepath.Join(filepath.Base(filepath.Dir(i.dir)), i.uuid)
}

// inspect looks at a context without changing anything; own is its lock if the
// caller holds it, else nil.
func (c *checker) inspect(d, uuid string, own *ownLock) *inspection {
	i := &inspection{c: c, uuid: uuid, dir: filepath.Join(c.base, d, uuid), own: own, twice: len(c.places(uuid)) > 1, logs: map[string]*logCheck{}, more: map[string]int64{}}
	if own == nil {
		_, i.held = contextstore.ReadOwner(i.dir)
	}
	i.look()
	for _, f := range i.found {
		if n := i.more[f.File]; n > maxPerFile && f.Line > 0 {
			i.more[f.File] = 0
			i.find(f.File, spot{}, "more", n-maxPerFile)
		}
	}
	if i.held {
		i.note("in_use")
	}
	if i.reader != nil {
		_ = i.reader.Close()
		i.reader = nil
	}
	return i
}

func (i *inspection) look() {
	i.rawState, _ = disk.Lstat(filepath.Join(i.dir, contextstore.StateFile))
	if i.c.opt.Rows {
		if i.checkMetadata(false) {
			i.readState()
			i.readRow()
			i.checkRow()
			i.checkLock()
		}
		return
	}
	plans, empty, err := i.entries()
	if err != nil {
		i.find("", spot{}, "unreadable", err)
		return
	}
	if !i.checkMetadata(empty) {
		return
	}
	i.readState()
	i.readRow()
	i.checkLogs(i.movedPlan(plans))
	if i.found != nil && i.c.ctx.Err() != nil {
		return
	}
	i.checkState()
	if i.c.edition != 0 {
		return
	}
	i.checkRow()
	i.checkLive()
	i.checkLock()
}

// checkMetadata reports whether the context can be looked at further.
func (i *inspection) checkMetadata(empty bool) bool {
	var err error
	i.meta, err = contextstore.ReadMetadata(i.dir)
	var newer *i18n.Error
	switch {
	case empty:
		f := i.find("", spot{}, "empty")
		i.repairable(f, "remove").mend = i.removeEmpty
		return false
	case errors.Is(err, os.ErrNotExist):
		i.find(contextstore.MetadataFile, spot{}, "no_metadata")
		return false
	case errors.As(err, &newer):
		i.newer = true
		i.found = nil
		i.note("newer", i.meta.Format, contextstore.Format)
		return false
	case err != nil:
		i.find(contextstore.MetadataFile, spot{}, "metadata", err)
		return false
	case i.meta.UUID != i.uuid:
		i.find(contextstore.MetadataFile, spot{}, "other_uuid", i.meta.UUID)
		i.twice = true // whose it is nobody can tell
	}
	return true
}

func (i *inspection) readState() {
	if i.rawState != nil && !i.rawState.Mode().IsRegular() {
		i.stateErr = fmt.Errorf("%s is no plain file", contextstore.StateFile)
		return
	}
	i.state, i.stateErr = contextstore.ReadState(i.dir)
	if i.c.edition != 0 {
		i.readAncestor()
	}
}

// moved reports whether somebody has changed the context since it was looked
// at, so that what was found may have been a change under way.
func (i *inspection) moved() bool {
	if _, held := contextstore.ReadOwner(i.dir); held != i.held {
		return true
	}
	if _, gone := disk.Lstat(i.dir); gone != nil || i.held {
		return gone != nil // an owner changes nothing that was looked at
	}
	now, err := disk.Lstat(filepath.Join(i.dir, contextstore.StateFile))
	if err != nil {
		return i.rawState != nil
	}
	return i.rawState == nil || !disk.SameFile(now, i.rawState) || now.ModTime() != i.rawState.ModTime()
}
