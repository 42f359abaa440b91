package contextstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// The editions of what a program by one document alone wrote. It is looked at where it lies, and
// migrated, but nothing works on it.
const (
	StoreV2 = 2 // state.json is the authority, there is no database
	StoreV3 = 3 // tasks.db is, there is no state.json
)

// EditionOf is of which edition the tree below a base directory is, 0 for one of ours or an empty
// one.
func EditionOf(ctx context.Context, base string) (edition int) {
	if disk.At(filepath.Join(base, DirRunning)) != nil || database.ServerOf(base) != nil || disk.Exists(filepath.Join(base, HouseDBFile)) {
		return 0
	}
	a, err := index.OpenAncestor(ctx, base)
	if err == nil {
		_ = a.Close() // it was only read from
		return StoreV3
	}
	if errors.Is(err, index.ErrOurs) {
		return 0
	}
	_ = Walk(base, StatusDirs, func(dir string) error { // the first that can be read tells
		v, err := ReadView(dir)
		if err != nil {
			return nil //nolint:nilerr // the next one may
		}
		edition = v.Edition
		return errEnough
	})
	return edition
}

// RefuseAncestor is an error for a tree of an older edition, in which nothing may be changed.
func RefuseAncestor(ctx context.Context, base string) error {
	if e := EditionOf(ctx, base); e != 0 {
		return i18n.E("contextstore.ancestor", base, e)
	}
	return nil
}

// Looker reads contexts one after the other. Of a tree of store-v3 it keeps tasks.db open meanwhile.
type Looker struct {
	base     string
	ancestor *index.Ancestor // nil where there is none
	err      error           // of opening it
}

// Close closes what it opened.
func (l *Looker) Close() error { return l.ancestor.Close() }

// View is ReadView.
func (l *Looker) View(dir string) (View, error) {
	v := View{Dir: dir}
	var err error
	if v.Metadata, err = ReadMetadata(dir); err != nil {
		return v, err
	}
	if v.Metadata.UUID != filepath.Base(dir) { // a copy of another run: what is done to it would be done to that
		return v, i18n.E("contextstore.other_uuid", filepath.Join(dir, MetadataFile), v.Metadata.UUID)
	}
	v.State, err = ReadState(dir)
	v.Owner, v.Held = ReadOwner(dir)
	if v.Metadata.Format != 0 {
		return v, nil
	}
	if v.Edition = StoreV2; errors.Is(err, os.ErrNotExist) {
		v.Edition = StoreV3
		if r, ok, err := l.row(dir); err == nil && ok {
			v.State = StateOf(r)
		}
	}
	if v.State.ProcessID == 0 {
		v.State.ProcessID, v.State.Hostname = v.Metadata.ProcessID, v.Metadata.Hostname
	}
	return v, nil
}

// row is the row of a run of store-v3.
func (l *Looker) row(dir string) (r Row, ok bool, err error) {
	if base := filepath.Dir(filepath.Dir(dir)); l.base != base {
		_ = l.Close() // it was only read from
		l.base = base
		l.ancestor, l.err = index.OpenAncestor(context.Background(), base)
	}
	if l.err != nil {
		return r, false, l.err
	}
	return l.ancestor.Row(context.Background(), filepath.Base(dir))
}

// StateOf is what a row of store-v3 tells of a run. Its status is there as the fine one.
func StateOf(r Row) State {
	s := State{Status: string(r.Status), StartedAt: r.StartedAt, UpdatedAt: r.CompletedAt, CompletedAt: r.CompletedAt, LLMCallCount: r.LLMCalls, ToolCallCount: r.ToolCalls,
		TotalTokensUsed: r.Tokens, CompressionCount: r.Compressions, ProcessID: int(r.ProcessID), Hostname: r.Hostname}
	if r.Error != "" {
		s.Error = &r.Error
	}
	return s
}
