package contextstore

import (
	"strings"
	"time"

	"toritsugi/internal/task"
)

// settling is how long a new context may be without a row: it is written after
// the directory (PROTOCOL "Enqueue").
const settling = time.Minute

// openRows opens the index for the check. Without one there are no rows to
// compare: it may be deleted at any time.
func (c *checker) openRows() error {
	r, err := openCheckRows(c.ctx, c.base, c.opt.Repair)
	if err != nil && c.opt.Repair { // on a disk that cannot be written it can be read
		r, err = openCheckRows(c.ctx, c.base, false)
	}
	c.rows = r
	return err
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
		f := i.find("", spot{}, "no_row")
		i.mends(f, "row").mend = put
		return
	}
	if cols := i.row.differs(want, i.c.rows.acks != nil); len(cols) > 0 {
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
