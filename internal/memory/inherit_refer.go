package memory

import (
	"context"
	"encoding/json"
	"errors"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// Earlier is the run that was inherited from, as far as a model may refer to it:
// its tools, metadata and planning (inherit §2.2), without secrets and without
// data of people. Nothing of it is in the first messages, and its approvals and
// its conversation can not be read here.
type Earlier struct {
	view    contextstore.View
	history string // the file of its planning
	clean   func(string) string
}

// ErrStranger says that a run is of another task (inherit §8.1).
var ErrStranger = errors.New("a run of another task")

// OpenEarlier opens what a run inherited from. in is what the run's
// inherited.json holds, find gives the context of a uuid, key is the run's own
// task. Where the earlier run is of another task than in says, or of another one
// than the run and no link of the same repository is followed: ErrStranger.
func OpenEarlier(in Inherited, key task.Key, rules Inheritance, find func(uuid string) (contextstore.View, error), clean func(string) string) (*Earlier, error) {
	v, err := find(in.UUID)
	if err != nil {
		return nil, err
	}
	same := in.Key == key
	if !same && rules.FollowLinks {
		same = in.Key.Source == key.Source && in.Key.Owner == key.Owner && in.Key.Repo == key.Repo
	}
	if !same || v.Metadata.TaskKey != in.Key {
		return nil, ErrStranger
	}
	return &Earlier{v, rules.HistoryOf(in.UUID), wordsWithout(clean, people(v.Metadata))}, nil
}

// Metadata is what the run was started with, as JSON: task, model and times.
func (e *Earlier) Metadata() ([]byte, error) {
	m, st := e.view.Metadata, e.view.State
	return json.Marshal(struct {
		UUID      string                      `json:"uuid"`
		Key       task.Key                    `json:"task_key"`
		Title     string                      `json:"title"`
		CreatedAt contextstore.Time           `json:"created_at"`
		EndedAt   contextstore.Time           `json:"completed_at"`
		Status    task.Status                 `json:"status"`
		Config    contextstore.MetadataConfig `json:"config"`
		LLMCalls  int64                       `json:"llm_call_count"`
		ToolCalls int64                       `json:"tool_call_count"`
	}{m.UUID, m.TaskKey, e.clean(m.Title), m.CreatedAt, st.CompletedAt, e.view.Status(), m.Config, st.LLMCallCount, st.ToolCallCount})
}

// Tools calls f with each finished call, oldest first, until f returns false. A
// line that is none is passed over. It holds one of them at a time.
func (e *Earlier) Tools(f func(contextstore.ToolRun) bool) error {
	err := e.view.Tail(contextstore.Tools, -1, func(line []byte) error {
		r, err := contextstore.DecodeToolRun(line)
		if err != nil {
			return nil
		}
		r.Tool, r.Result, r.Error = e.clean(r.Tool), e.clean(r.Result), e.clean(r.Error)
		if r.Args = e.json(r.Args); !f(r) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Planning calls f with each line of the planning history, or of its compressed
// form, oldest first, until f returns false. A line that is no JSON is passed over,
// and so is one of what was only to be found again by the run itself.
func (e *Earlier) Planning(ctx context.Context, f func(line []byte) bool) error {
	return contextstore.ReadJournal(ctx, e.view.Dir, e.history, func(l contextstore.JournalLine) bool {
		var kind struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(l.Text, &kind) != nil || kind.Type == "checkpoint" {
			return true
		}
		return f(e.json(l.Text))
	})
}

// json cleans JSON; what stops being JSON by that is given as a string.
func (e *Earlier) json(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	clean := e.clean(string(raw))
	if json.Valid([]byte(clean)) {
		return json.RawMessage(clean)
	}
	text, _ := json.Marshal(clean)
	return text
}

var errEnough = errors.New("enough")
