package contextstore

import (
	"context"
	"errors"
	"path/filepath"

	"toritsugi/internal/contextstore/index"
)

// What the index keeps of contexts.
type (
	Row      = index.Row
	Filter   = index.Filter
	Waiting  = index.Waiting
	Spending = index.Spending
	Tally    = index.Tally
)

// RowOf is the row of a context. The status is the task's: a state without one
// (store-v2's) must be given it first. Every effect counts as pending; which of
// them were delivered stands in house.db.
func RowOf(m Metadata, s State) Row {
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

// MaxEnded is how many runs that have ended a new index takes in at once; more
// of them tori serve adds (FillIndex), or tori reindex.
const MaxEnded = 1000

var errEnough = errors.New("enough")

// NewRows are the rows that a new index of a base directory begins with: those of the runs
// that have not ended, without which a second run of the same key would not be refused,
// and of those that have if they are not too many.
func NewRows(dir string, house *HouseDB) index.Fill {
	return func(ctx context.Context, add func(Row) error) (complete bool, err error) {
		ended := 0
		err = walk(dir, func(dir string) error { // the runs that have not ended come first
			if filepath.Base(filepath.Dir(dir)) == DirCompleted {
				if ended++; ended > MaxEnded {
					return errEnough
				}
			}
			v, err := ReadView(dir)
			if err != nil {
				return nil // what cannot be read is shown by a listing of the directories
			}
			v.State.TaskStatus = v.Status()
			r, _ := house.row(ctx, v.Metadata, v.State)
			return add(r)
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		return ended <= MaxEnded, err
	}
}
