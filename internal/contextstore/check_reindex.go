package contextstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

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
var reindexOrder = []string{dirRunning, dirPaused, dirQueued, dirCompleted}

// houseTimeout is how long to wait for processes that are just opening the index.
const houseTimeout = time.Second

// Reindex rebuilds every row of base's tasks.db from the directories, in one
// transaction and in place. While another process uses base it refuses. A
// state.json that cannot be read is replaced by what the place says; a context
// whose metadata cannot be read is reported. An error leaves the rows as they
// were.
func Reindex(ctx context.Context, base string, progress func(CheckProgress)) (r ReindexReport, err error) {
	base, err = filepath.Abs(base)
	if err != nil {
		return r, err
	}
	if _, err := os.Stat(base); err != nil {
		return r, i18n.E("contextstore.no_base", base, err)
	}
	short, cancel := context.WithTimeout(ctx, houseTimeout)
	defer cancel()
	house, err := openHouse(short, base)
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		return r, i18n.E("contextstore.base_dir", base, err)
	}
	if err != nil {
		return r, errors.Join(err, ctx.Err())
	}
	defer house.close()
	release, err := house.exclusive(short)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		return r, i18n.E("reindex.in_use", base, ErrBusy)
	}
	defer release()
	acks, err := openHouseDB(ctx, base, house)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, acks.close()) }()
	ix, err := renewIndex(ctx, base, house, acks)
	if err != nil {
		return r, i18n.E("reindex.unreadable", filepath.Join(base, indexSchema.file), err)
	}
	defer func() { err = errors.Join(err, ix.close()) }()
	return reindex(ctx, base, ix, progress)
}

// reindex fills the index with the rows of all directories.
func reindex(ctx context.Context, base string, to *index, progress func(CheckProgress)) (r ReindexReport, err error) {
	left := func(stands string, row Row) {
		if stands == row.UUID {
			r.name(&r.Damaged, row.UUID+": the same uuid lies in another directory")
		} else {
			r.name(&r.SecondLive, row.UUID)
		}
	}
	fill := func(add func(Metadata, State) error) error {
		r = ReindexReport{}
		for _, d := range reindexOrder {
			err := walkIn(base, []string{d}, func(dir string) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				r.Contexts++
				if progress != nil {
					progress(CheckProgress{Contexts: r.Contexts})
				}
				return r.add(base, dir, add)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	rows, err := to.rebuild(ctx, fill, left)
	if err == nil {
		err = to.setComplete(ctx, len(r.SecondLive) == 0)
	}
	if err == nil { // nothing of it is unknown to the index any more
		err = os.RemoveAll(filepath.Join(base, unindexedDir))
	}
	if err != nil {
		return ReindexReport{}, err
	}
	r.Rows = rows
	return r, nil
}

// add makes the row of one context.
func (r *ReindexReport) add(base, dir string, add func(Metadata, State) error) error {
	v, err := view(dir)
	if v.Held {
		return i18n.E("reindex.in_use", base, i18n.E("reindex.context", v.Metadata.UUID, v.Owner.ProcessID, v.Owner.Hostname, ErrBusy))
	}
	if err != nil {
		r.name(&r.Damaged, dir+": "+err.Error())
		return nil
	}
	v.State.TaskStatus = v.Status()
	return add(v.Metadata, v.State)
}

func (r *ReindexReport) name(list *[]string, s string) {
	if len(*list) == maxListed {
		r.More++
		return
	}
	*list = append(*list, s)
}
