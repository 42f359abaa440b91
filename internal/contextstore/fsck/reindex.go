package fsck

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/i18n"
)

// maxListed bounds the names in a ReindexReport.
const maxListed = 1000

// ReindexReport is the result of Reindex. Of contexts that could not be taken
// into the index the first thousand of each kind are named.
type ReindexReport struct {
	Contexts   int64
	Rows       int64
	Damaged    []string // directories that cannot be read or lie in two places, and why
	SecondLive []string // uuids of runs whose key another run has that has not ended either
	More       int64    // of both, beyond those named
}

// reindexOrder is the order in which contexts get their rows: of two live runs
// of a key the one that is farther has it.
var reindexOrder = []string{contextstore.DirRunning, contextstore.DirPaused, contextstore.DirQueued, contextstore.DirCompleted}

// baseTimeout is how long to wait for processes that are just opening the index.
const baseTimeout = time.Second

// Reindex rebuilds every row of base's tasks.db from the directories, in one
// transaction and in place. While another process uses base it refuses. A
// state.json that cannot be read is replaced by what the place says; a context
// whose metadata cannot be read is reported. An error leaves the rows as they
// were.
func Reindex(ctx context.Context, base string, progress func(Progress)) (r ReindexReport, err error) {
	base, err = filepath.Abs(base)
	if err != nil {
		return r, err
	}
	if _, err := os.Stat(base); err != nil {
		return r, i18n.E("contextstore.no_base", base, err)
	}
	if err := contextstore.RefuseAncestor(ctx, base); err != nil {
		return r, err
	}
	short, cancel := context.WithTimeout(ctx, baseTimeout)
	defer cancel()
	lock, err := database.Enter(short, base)
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		return r, i18n.E("contextstore.base_dir", base, err)
	}
	if err != nil {
		return r, errors.Join(err, ctx.Err())
	}
	defer lock.Close()
	release, err := lock.Exclusive(short)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		return r, i18n.E("reindex.busy", base).Of(contextstore.ErrBusy)
	}
	defer release()
	house, err := contextstore.OpenHouseDB(ctx, base, lock)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, house.Close()) }()
	to, err := index.Renew(ctx, base, lock)
	if err != nil {
		return r, i18n.E("reindex.unreadable", filepath.Join(base, index.File), err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return reindex(ctx, base, to, house, progress)
}

// reindex fills the index with the rows of all directories.
func reindex(ctx context.Context, base string, to *index.Index, house *contextstore.HouseDB, progress func(Progress)) (r ReindexReport, err error) {
	left := func(stands string, row index.Row) {
		if stands == row.UUID {
			r.name(&r.Damaged, row.UUID+": the same uuid lies in another directory")
		} else {
			r.name(&r.SecondLive, row.UUID)
		}
	}
	fill := func(add func(index.Row) error) error {
		r = ReindexReport{}
		for _, d := range reindexOrder {
			err := contextstore.Walk(base, []string{d}, func(dir string) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				r.Contexts++
				if progress != nil {
					progress(Progress{Contexts: r.Contexts})
				}
				return r.add(ctx, base, dir, house, add)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	rows, err := to.Rebuild(ctx, fill, left)
	if err == nil {
		err = to.SetComplete(ctx, len(r.SecondLive) == 0)
	}
	if err == nil { // nothing of it is unknown to the index any more
		err = os.RemoveAll(filepath.Join(base, index.UnindexedDir))
	}
	if err != nil {
		return ReindexReport{}, err
	}
	r.Rows = rows
	return r, nil
}

// add makes the row of one context.
func (r *ReindexReport) add(ctx context.Context, base, dir string, house *contextstore.HouseDB, add func(index.Row) error) error {
	v, err := contextstore.ReadView(dir)
	if v.Held {
		owned := i18n.E("reindex.context", v.Metadata.UUID, v.Owner.ProcessID, v.Owner.Hostname).Of(contextstore.ErrBusy)
		return i18n.E("reindex.in_use", base, owned)
	}
	if err != nil {
		r.name(&r.Damaged, dir+": "+err.Error())
		return nil
	}
	v.State.TaskStatus = v.Status()
	row, err := house.Row(ctx, v.Metadata, v.State)
	if err != nil {
		return err
	}
	return add(row)
}

func (r *ReindexReport) name(list *[]string, s string) {
	if len(*list) == maxListed {
		r.More++
		return
	}
	*list = append(*list, s)
}
