package fsck

import (
	"errors"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// settling is how long a new context may be without a row: it is written after
// the directory (PROTOCOL "Enqueue").
const settling = time.Minute

// openRows opens the index for the check. Without one there are no rows to
// compare: it may be deleted at any time. One that lacks something or cannot be
// read is made anew; an older one is brought up to date by whoever opens it.
func (c *checker) openRows() {
	var err error
	c.marks, _ = index.Unindexed(c.base, -1)
	c.rows, err = openRows(c.ctx, c.base, false)
	if err != nil && c.ctx.Err() != nil {
		return
	}
	if err != nil && !errors.Is(err, database.ErrOlder) {
		f := &Finding{Path: index.File, Kind: "rows_unreadable", Args: []any{err}}
		if said := (*i18n.Error)(nil); errors.As(err, &said) {
			f.Args = []any{said} // in the reader's language
		}
		if errors.Is(err, database.ErrLacks) || errors.Is(err, database.ErrBroken) {
			f.Action, f.mend = "index", c.renewRows
		}
		if c.fix(f); !f.Mended {
			return
		}
	}
	if c.rows != nil {
		whole, err := c.rows.Filled(c.ctx)
		c.lacking = err == nil && !whole
	}
	if c.opt.Repair {
		if w, err := openRows(c.ctx, c.base, true); err == nil { // else it can be read, on a disk that cannot be written
			c.closeRows()
			c.rows = w
		}
	}
}

// renewRows makes the index anew: who opens one that lacks a part does, also
// beside others; of one that is no index they must not be there.
func (c *checker) renewRows() error {
	r, err := openRows(c.ctx, c.base, true)
	if errors.Is(err, database.ErrBroken) {
		_, err = Reindex(c.ctx, c.base, nil)
	}
	return errors.Join(err, r.close())
}

// awaits reports that the index knows that it lacks or may have an old row of a
// run: a look tells of it once (wholeIndex), and a repair mends it.
func (c *checker) awaits(uuid string, has bool) bool {
	return !c.opt.Repair && (c.lacking && !has || slices.Contains(c.marks, uuid) || disk.Exists(index.Mark(c.base, uuid)))
}

// wholeIndex finds that the index does not hold every run, or was not told of
// one. Where each has its row now, that is all that is left to note. What the next
// opening mends (catchUp, fillIndex) is no damage.
func (c *checker) wholeIndex() error {
	if c.rows == nil {
		return nil
	}
	if whole, err := c.rows.Complete(c.ctx); err != nil || whole {
		return err
	}
	if !c.opt.Repair && (!c.lacking || c.ended <= contextstore.MaxEnded) {
		c.tell(&Finding{Path: index.File, Kind: "behind", Note: true})
		return nil
	}
	c.fix(&Finding{Path: index.File, Kind: "incomplete", Action: "whole", mend: func() error {
		if c.rowless > 0 {
			return i18n.E("check.rowless", c.rowless)
		}
		for _, id := range c.marks {
			if err := c.fs.Remove(index.Mark(c.base, id)); err != nil {
				return err
			}
		}
		return c.rows.SetComplete(c.ctx, true)
	}})
	return nil
}

func (c *checker) closeRows() { _ = c.rows.close() }

// readRow reads the context's row.
func (i *inspection) readRow() {
	if i.c.rows == nil {
		return
	}
	var err error
	if i.row, i.hasRow, err = i.c.rows.Row(i.c.ctx, i.uuid); err != nil && i.c.ctx.Err() == nil {
		i.find("", spot{}, "row_unreadable", err)
	}
}

// checkRow compares the row with the directory. Where a run goes on, its
// counters may be behind.
func (i *inspection) checkRow() {
	if i.c.rows == nil || i.held || i.twice || i.moving || i.stateErr != nil {
		return
	}
	s := i.state
	s.TaskStatus = contextstore.View{Dir: i.dir, State: s}.Status()
	want, err := i.c.rows.house.Row(i.c.ctx, i.meta, s)
	if err != nil {
		i.find("", spot{}, "row_unreadable", err)
		return
	}
	put := func() error { return i.c.rows.put(i.c.ctx, i.meta, s) }
	if !i.hasRow {
		if other := i.otherLive(s.TaskStatus); other != "" {
			i.toldLive = true
			i.find("", spot{}, "two_live", i.meta.TaskKey.String(), other)
			return
		}
		if s.TaskStatus == task.Queued && i.c.now().Sub(i.meta.CreatedAt.Time) < settling {
			return
		}
		if i.c.awaits(i.uuid, false) {
			return
		}
		f := i.find("", spot{}, "no_row")
		i.repairable(f, "row").mend = put
		return
	}
	if cols := i.row.Differs(want, i.c.rows.house != nil); len(cols) > 0 && !i.c.awaits(i.uuid, true) {
		f := i.find("", spot{}, "row", strings.Join(cols, ", "))
		i.repairable(f, "row").mend = put
	}
}

// otherLive is the run that has the place of the live run of this key in the
// index, "" for none.
func (i *inspection) otherLive(s task.Status) string {
	if s.Final() {
		return ""
	}
	other, err := i.c.rows.Live(i.c.ctx, i.meta.TaskKey)
	if err != nil || other == "" || other == i.uuid {
		return ""
	}
	dir, err := contextstore.FindDir(i.c.base, other)
	if err != nil {
		return "" // a row without a directory, which is told of its own
	}
	if v, err := contextstore.ReadView(dir); err != nil || v.Status().Final() {
		return ""
	}
	return other
}

// strayRows finds rows whose directory is gone.
func (c *checker) strayRows() error {
	if c.rows == nil {
		return nil
	}
	return c.rows.Each(c.ctx, func(r index.Row) error {
		uuid := r.UUID
		for range looks { // it may be on its way from one directory to another
			if isUUID(uuid) && len(c.places(uuid)) > 0 {
				return nil
			}
		}
		c.fix(&Finding{Path: index.File, UUID: uuid, Kind: "stray_row", Action: "row_gone", mend: func() error { return c.rows.Drop(c.ctx, uuid) }})
		return nil
	})
}
