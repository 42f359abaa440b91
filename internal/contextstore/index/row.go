package index

import (
	"fmt"
	"strconv"
	"strings"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/task"
)

// Row is a row of tasks.db: the columns of store-v3 §2.2, then ours. It follows from
// metadata.json, state.json and what was delivered of the outbox.
type Row struct {
	UUID          string
	Key           task.Key
	Status        task.Status
	CreatedAt     jsonl.Time
	StartedAt     jsonl.Time
	CompletedAt   jsonl.Time
	ProcessID     int64
	Hostname      string
	Provider      string
	Model         string
	ContextLength int64
	LLMCalls      int64
	ToolCalls     int64
	Tokens        int64
	Compressions  int64
	Error         string // "" for none
	User          string // "" for nobody

	Generation    int64
	Title         string
	HeartbeatAt   jsonl.Time
	Phase         string
	MessageCount  int64
	Bytes         int64
	Failures      int64 // compressions that failed
	OutboxPending int64 // effects that nobody has acknowledged

	Spending

	id int64 // its rowid, which orders rows of one microsecond
}

// specified are the columns of store-v3 §2.2.
const specified = `uuid, task_source, owner, repo, task_type, task_id, status, created_at, started_at, completed_at, process_id, hostname,
	llm_provider, model, context_length, llm_call_count, tool_call_count, total_tokens, compression_count, error_message, user`

// columns are what values and scan handle, in the order of the table.
const columns = specified + `,
	generation, title, heartbeat_at, phase, message_count, bytes, compression_failures, outbox_pending,
	` + spendingColumns

// placeholders are those of columns.
const placeholders = `?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?`

func (r Row) values() []any {
	return append([]any{
		r.UUID, r.Key.Source, r.Key.Owner, r.Key.Repo, r.Key.Type, r.Key.ID, string(r.Status), r.CreatedAt.String(),
		database.Null(r.StartedAt.String()), database.Null(r.CompletedAt.String()), r.ProcessID, r.Hostname,
		r.Provider, r.Model, r.ContextLength, r.LLMCalls, r.ToolCalls, r.Tokens, r.Compressions, database.Null(r.Error), database.Null(r.User),
		r.Generation, r.Title, database.Null(r.HeartbeatAt.String()), r.Phase, r.MessageCount, r.Bytes, r.Failures, r.OutboxPending,
	}, r.Spending.values()...)
}

// fields are where rowid and columns are scanned to.
func (r *Row) fields() []any {
	return append([]any{
		(*anyNumber)(&r.id), (*anyText)(&r.UUID), (*anyText)(&r.Key.Source), (*anyText)(&r.Key.Owner), (*anyText)(&r.Key.Repo), (*anyText)(&r.Key.Type),
		(*anyText)(&r.Key.ID), (*anyText)(&r.Status), (*moment)(&r.CreatedAt), (*moment)(&r.StartedAt), (*moment)(&r.CompletedAt),
		(*anyNumber)(&r.ProcessID), (*anyText)(&r.Hostname), (*anyText)(&r.Provider), (*anyText)(&r.Model), (*anyNumber)(&r.ContextLength),
		(*anyNumber)(&r.LLMCalls), (*anyNumber)(&r.ToolCalls), (*anyNumber)(&r.Tokens), (*anyNumber)(&r.Compressions), (*anyText)(&r.Error), (*anyText)(&r.User),
		(*anyNumber)(&r.Generation), (*anyText)(&r.Title), (*moment)(&r.HeartbeatAt), (*anyText)(&r.Phase), (*anyNumber)(&r.MessageCount),
		(*anyNumber)(&r.Bytes), (*anyNumber)(&r.Failures), (*anyNumber)(&r.OutboxPending),
	}, r.Spending.fields()...)
}

// SQLite keeps whatever a person writes into a column. One odd value must not
// hide a whole listing, so these scan anything.
type (
	anyNumber int64
	anyText   string
	moment    jsonl.Time
)

// Scan takes a number, or 0 for what is none.
func (n *anyNumber) Scan(v any) error {
	switch v := v.(type) {
	case int64:
		*n = anyNumber(v)
	case float64:
		*n = anyNumber(v)
	default:
		i, _ := strconv.ParseInt(text(v), 10, 64)
		*n = anyNumber(i)
	}
	return nil
}

// Scan takes a text, "" for NULL.
func (w *anyText) Scan(v any) error {
	*w = anyText(text(v))
	return nil
}

// Scan takes a time, the zero time for what is none.
func (m *moment) Scan(v any) error {
	t, _ := jsonl.Parse(text(v))
	*m = moment(t)
	return nil
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}

// Differs names the columns in which a row is not what it should be; whether
// the number of undelivered effects is known depends on house.db.
func (r Row) Differs(want Row, acks bool) (cols []string) {
	col := func(name string, same bool) {
		if !same {
			cols = append(cols, name)
		}
	}
	col("task key", r.Key == want.Key)
	col("status", r.Status == want.Status)
	col("created_at", r.CreatedAt.Equal(want.CreatedAt.Time))
	col("user", r.User == want.User)
	col("title", sameText(r.Title, want.Title))
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
	col("error_message", sameText(r.Error, want.Error))
	col("message_count", r.MessageCount == want.MessageCount)
	col("bytes", r.Bytes == want.Bytes)
	return cols
}

// sameText reports whether a column has a text, as either database keeps it.
func sameText(column, text string) bool { return column == text || column == database.Kept(text) }
