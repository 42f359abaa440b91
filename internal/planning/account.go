package planning

import (
	"context"
	"encoding/json"
)

// Account is what a planning history says of a run as a whole.
type Account struct {
	Plan          *Plan           `json:"plan"`          // the latest one, revisions taken in; nil where there is none
	Subtasks      []SubtaskRecord `json:"subtasks"`      // of it, in their order, with what became of each; a Status of "" is open
	Revisions     []Entry         `json:"revisions"`     // oldest first, of more than MaxRevisions the latest
	Verifications []Entry         `json:"verifications"` // rounds, likewise
	Replans       []Entry         `json:"replan_decisions"`
}

// MaxRevisions bounds what an Account holds of revisions, decisions and verifications; the
// limits of a run are far lower.
const MaxRevisions = 100

// ReadAccount reads the planning history of a run once, from its beginning; see
// ReadHistory. Source: plan §2.2 get_latest_plan, get_revision_history.
func ReadAccount(ctx context.Context, dir, file string, warn func(error)) (Account, error) {
	a := Account{Subtasks: []SubtaskRecord{}, Revisions: []Entry{}, Replans: []Entry{}, Verifications: []Entry{}}
	ends := map[string]SubtaskRecord{}
	var now struct{ Ends map[string]string }
	known := false // what ended is told by a state; what was tried again has not
	err := ReadHistory(ctx, dir, file, func(e Entry) bool {
		if p := e.plan(); p != nil {
			a.Plan = p
		}
		switch {
		case e.Revision != nil:
			a.Revisions = latest(append(a.Revisions, e), MaxRevisions)
		case e.Replan != nil:
			a.Replans = latest(append(a.Replans, e), MaxRevisions)
		case e.Verification != nil:
			a.Verifications = latest(append(a.Verifications, e), MaxRevisions)
		case e.Subtask != nil:
			ends[e.Subtask.ID] = *e.Subtask
		case e.Checkpoint != nil:
			now = struct{ Ends map[string]string }{}
			known = json.Unmarshal(e.Checkpoint, &now) == nil
		}
		return true
	}, warn)
	if a.Plan == nil {
		return a, err
	}
	for _, id := range a.Plan.Order() {
		end := ends[id]
		if known && now.Ends[id] != end.Status {
			end = SubtaskRecord{Status: now.Ends[id]}
		}
		end.ID = id
		a.Subtasks = append(a.Subtasks, end)
	}
	return a, err
}
