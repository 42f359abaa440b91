package contextstore

import (
	"errors"
	"slices"
	"strings"
	"time"

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
	c.marks, _ = unindexed(c.base, -1)
	c.rows, err = openCheckRows(c.ctx, c.base, false)
	if err != nil && c.ctx.Err() != nil {
		return
	}
	if err != nil && !errors.Is(err, errOlder) {
		f := c.newFinding(indexSchema.file)
		f.Kind, f.Args = "rows_unreadable", []any{err}
		if said := (*i18n.Error)(nil); errors.As(err, &said) {
			f.Args = []any{said} // in the reader's language
		}
		if errors.Is(err, errLacks) || errors.Is(err, errBroken) {
			f.Action, f.mend = "index", c.renewRows
		}
		if c.fix(f); !f.Mended {
			return
		}
	}
	if c.rows != nil {
		whole, err := c.rows.filled(c.ctx)
		c.lacking = err == nil && !whole
	}
	if c.opt.Repair {
		if w, err := openCheckRows(c.ctx, c.base, true); err == nil { // else it can be read, on a disk that cannot be written
			c.closeRows()
			c.rows = w
		}
	}
}

// renewRows makes the index anew: who opens one that lacks a part does, also
// beside others; of one that is no index they must not be there.
func (c *checker) renewRows() error {
	r, err := openCheckRows(c.ctx, c.base, true)
	if errors.Is(err, errBroken) {
		_, err = Reindex(c.ctx, c.base, nil)
	}
	return errors.Join(err, r.close())
}

// awaits reports that the index knows that it lacks or may have an old row of a
// run: a look tells of it once (wholeIndex), and a repair mends it.
func (c *checker) awaits(uuid string, has bool) bool {
	return !c.opt.Repair && (c.lacking && !has || slices.Contains(c.marks, uuid) || exists(unindexedMark(c.base, uuid)))
}

// wholeIndex finds that the index does not hold every run, or was not told of
// one. Where each has its row now, that is all that is left to note. What the next
// opening mends (catchUp, fillIndex) is no damage.
func (c *checker) wholeIndex() error {
	if c.rows == nil {
		return nil
	}
	if whole, err := c.rows.complete(c.ctx); err != nil || whole {
		return err
	}
	f := c.newFinding(indexSchema.file)
	if !c.opt.Repair && (!c.lacking || c.ended <= beginEnded) {
		f.Kind, f.Note = "behind", true
		c.tell(f)
		return nil
	}
	f.Kind, f.Action = "incomplete", "whole"
	f.mend = func() error {
		if c.rowless > 0 {
			return i18n.E("check.rowless", c.rowless)
		}
		for _, id := range c.marks {
			if err := c.fs.Remove(unindexedMark(c.base, id)); err != nil {
				return err
			}
		}
		return c.rows.setComplete(c.ctx, true)
	}
	c.fix(f)
	return nil
}

func (c *checker) closeRows() { _ = c.rows.close() }

// readRow reads the context's row.
func (i *inspection) readRow() {
	if i.c.rows == nil {
		return
	}
	var err error
	if i.row, i.hasRow, err = i.c.rows.row(i.c.ctx, i.uuid); err != nil && i.c.ctx.Err() == nil {
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
	s.TaskStatus = View{Dir: i.dir, State: s}.Status()
	want, err := i.c.rows.want(i.c.ctx, i.meta, s)
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
		i.mends(f, "row").mend = put
		return
	}
	if cols := i.row.differs(want, i.c.rows.acks != nil); len(cols) > 0 && !i.c.awaits(i.uuid, true) {
		f := i.find("", spot{}, "row", strings.Join(cols, ", "))
		i.mends(f, "row").mend = put
	}
}

// otherLive is the run that has the place of the live run of this key in the
// index, "" for none.
func (i *inspection) otherLive(s task.Status) string {
	if s.Final() {
		return ""
	}
	other, err := i.c.rows.live(i.c.ctx, i.meta.TaskKey)
	if err != nil || other == "" || other == i.uuid {
		return ""
	}
	dir, err := findExact(i.c.base, other)
	if err != nil {
		return "" // a row without a directory, which is told of its own
	}
	if v, err := view(dir); err != nil || v.Status().Final() {
		return ""
	}
	return other
}

// differs names the columns in which a row is not what it should be; whether
// the number of undelivered effects is known depends on house.db.
func (r Row) differs(want Row, acks bool) (cols []string) {
	col := func(name string, same bool) {
		if !same {
			cols = append(cols, name)
		}
	}
	col("task key", r.Key == want.Key)
	col("status", r.Status == want.Status)
	col("created_at", r.CreatedAt.Equal(want.CreatedAt.Time))
	col("user", r.User == want.User)
	col("title", r.Title == want.Title)
	col("generation", r.Generation >= want.Generation)
	col("outbox_pending", r.OutboxPending == want.OutboxPending || !acks)
	switch want.Status {
	case task.Queued, task.Running:
		return cols
	}
	col("started_at", r.StartedAt.Equal(want.StartedAt.Time))
	col("completed_at", r.CompletedAt.Equal(want.CompletedAt.Time))
	col("llm_call_count", r.LLMCalls == want.LLMCalls)
	col("tool_call_count", r.ToolCalls == want.ToolCalls)
	col("total_tokens", r.Tokens == want.Tokens)
	spent := want.sums()
	for i, name := range strings.Split(spendingColumns, ", ") {
		col(name, *r.sums()[i] == *spent[i])
	}
	col("compression_count", r.Compressions == want.Compressions)
	col("error_message", r.Error == want.Error)
	col("message_count", r.MessageCount == want.MessageCount)
	col("bytes", r.Bytes == want.Bytes)
	return cols
}

// strayRows finds rows whose directory is gone.
func (c *checker) strayRows() error {
	if c.rows == nil {
		return nil
	}
	return c.rows.each(c.ctx, func(uuid string) error {
		for range looks { // it may be on its way from one directory to another
			if isUUID(uuid) && len(c.places(uuid)) > 0 {
				return nil
			}
		}
		f := c.newFinding("tasks.db")
		f.UUID, f.Kind, f.Action = uuid, "stray_row", "row_gone"
		f.mend = func() error { return c.rows.drop(c.ctx, uuid) }
		c.fix(f)
		return nil
	})
}
