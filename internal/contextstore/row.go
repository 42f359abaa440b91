package contextstore

import (
	"fmt"
	"strconv"
	"time"

	"toritsugi/internal/task"
)

// Row is a row of tasks.db: the columns of store-v3 §2.2, then ours. It can be
// told from metadata.json and state.json alone.
type Row struct {
	UUID          string
	Key           task.Key
	Status        task.Status
	CreatedAt     Time
	StartedAt     Time
	CompletedAt   Time
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
	HeartbeatAt   Time
	Phase         string
	MessageCount  int64
	Bytes         int64
	Failures      int64 // compressions that failed
	OutboxPending int64 // effects that nobody has acknowledged

	Spending

	id int64 // its rowid, which orders rows of one microsecond
}

// rowOf is the row of a context. The status is the task's: a state without one
// (store-v2's) must be given it first. Every effect counts as pending; which of
// them were delivered stands in house.db.
func rowOf(m Metadata, s State) Row {
	r := Row{
		UUID: m.UUID, Key: m.TaskKey, Status: s.TaskStatus,
		CreatedAt: m.CreatedAt.Written(), StartedAt: s.StartedAt.Written(), CompletedAt: s.CompletedAt.Written(),
		ProcessID: int64(s.ProcessID), Hostname: s.Hostname,
		Provider: m.Config.Provider, Model: m.Config.Model, ContextLength: int64(m.Config.ContextLength),
		LLMCalls: s.LLMCallCount, ToolCalls: s.ToolCallCount, Tokens: s.TotalTokensUsed, Compressions: s.CompressionCount,
		User: m.User, Generation: s.Generation, Title: m.Title, HeartbeatAt: s.UpdatedAt.Written(), Phase: s.Phase,
		MessageCount: s.MessageCount, Bytes: s.Bytes, Failures: s.Failures, OutboxPending: int64(len(s.Outbox)),
		Spending: s.Spending,
	}
	if s.Error != nil {
		r.Error = *s.Error
	}
	if r.ProcessID == 0 { // nobody has claimed it yet
		r.ProcessID, r.Hostname = int64(m.ProcessID), m.Hostname
	}
	return r
}

// columns are what values and scan handle, in the order of the table.
const columns = `uuid, task_source, owner, repo, task_type, task_id, status, created_at, started_at, completed_at, process_id, hostname,
	llm_provider, model, context_length, llm_call_count, tool_call_count, total_tokens, compression_count, error_message, user,
	generation, title, heartbeat_at, phase, message_count, bytes, compression_failures, outbox_pending,
	` + spendingColumns

// marks are the placeholders of columns.
const marks = `?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?`

func (r Row) values() []any {
	return append([]any{
		r.UUID, r.Key.Source, r.Key.Owner, r.Key.Repo, r.Key.Type, r.Key.ID, string(r.Status), r.CreatedAt.String(),
		null(r.StartedAt.String()), null(r.CompletedAt.String()), r.ProcessID, r.Hostname,
		r.Provider, r.Model, r.ContextLength, r.LLMCalls, r.ToolCalls, r.Tokens, r.Compressions, null(r.Error), null(r.User),
		r.Generation, r.Title, null(r.HeartbeatAt.String()), r.Phase, r.MessageCount, r.Bytes, r.Failures, r.OutboxPending,
	}, r.Spending.values()...)
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
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
	moment    Time
)

// Scan takes a number, or 0 for what is none.
func (n *anyNumber) Scan(v any) error {
	switch v := v.(type) {
	case int64:
		*n = anyNumber(v)
	case float64:
		*n = anyNumber(v)
	default:
		i, _ := strconv.ParseInt(plain(v), 10, 64)
		*n = anyNumber(i)
	}
	return nil
}

// Scan takes a text, "" for NULL.
func (w *anyText) Scan(v any) error {
	*w = anyText(plain(v))
	return nil
}

// Scan takes a time, the zero time for what is none.
func (m *moment) Scan(v any) error {
	t, _ := time.Parse(time.RFC3339Nano, plain(v))
	*m = moment{t}
	return nil
}

func plain(v any) string {
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
