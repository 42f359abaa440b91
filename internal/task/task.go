// Package task holds the words every other package shares: what identifies a
// piece of work (Key), where it stands (Status and its transition table) and
// how it ended (Outcome). It is plain data and imports nothing of ours.
package task

import (
	"errors"
	"fmt"
)

// Key identifies the piece of work that a run is about; several runs may share
// one key, at most one of them live. Source: store-v3 §3.1.
type Key struct {
	Source string `json:"task_source"` // github, gitlab, gitea, folder, or a chat channel
	Owner  string `json:"owner"`
	Repo   string `json:"repo"`
	Type   string `json:"task_type"` // issue, pull_request, merge_request, review, chat
	ID     string `json:"task_id"`
}

// String is the key as log records show it: source/owner/repo#id (store-v2 §9.3), with !id for a merge request.
func (k Key) String() string {
	return k.Source + "/" + k.Owner + "/" + k.Repo + k.Number()
}

// The types of tasks at a forge (inherit §2).
const (
	TypeIssue = "issue"
	TypePull  = "pull_request"
	TypeMerge = "merge_request" // a pull request of GitLab, which numbers them apart from issues

	// TypeReview is of the reviews of a pull or merge request, whose number is the task's: a
	// task of its own, beside the work on it.
	TypeReview = "review"
)

// TypeProposed is the type by which a forge takes changes.
func TypeProposed(source string) string {
	if source == "gitlab" {
		return TypeMerge
	}
	return TypePull
}

// Proposed reports whether it is a pull or merge request.
func (k Key) Proposed() bool { return k.Type == TypePull || k.Type == TypeMerge }

// Item is what the task is at its forge: of a review the pull or merge request.
func (k Key) Item() Key {
	if k.Type == TypeReview {
		k.Type = TypeProposed(k.Source)
	}
	return k
}

// Review is the task of reviewing a pull or merge request.
func (k Key) Review() Key {
	k.Type = TypeReview
	return k
}

// Number names the task within its repository for people: #12, and !12 for a merge request.
func (k Key) Number() string {
	if k.Item().Type == TypeMerge {
		return "!" + k.ID
	}
	return "#" + k.ID
}

// Status says where a task stands; it is the value of the row's status column.
type Status string

// The statuses of a task (spec/README "status").
const (
	Queued           Status = "queued"
	Running          Status = "running"
	Paused           Status = "paused"
	AwaitingApproval Status = "awaiting_approval"
	Completed        Status = "completed"
	Stopped          Status = "stopped"
	Failed           Status = "failed"
)

// transitions is the whole life of a task. Completed, stopped and failed are
// final: a retry is a new run (spec/README "legal transitions").
var transitions = map[Status][]Status{
	Queued:           {Running, Stopped, Failed},
	Running:          {Queued, Paused, AwaitingApproval, Completed, Stopped, Failed},
	Paused:           {Queued, Stopped, Failed},
	AwaitingApproval: {Queued, Stopped, Failed},
	Completed:        nil,
	Stopped:          nil,
	Failed:           nil,
}

// Statuses lists every status in the order of a task's life.
func Statuses() []Status {
	return []Status{Queued, Running, Paused, AwaitingApproval, Completed, Stopped, Failed}
}

// Valid reports whether s is one of the known statuses.
func (s Status) Valid() bool { _, ok := transitions[s]; return ok }

// Final reports whether nothing can follow s.
func (s Status) Final() bool { return s.Valid() && len(transitions[s]) == 0 }

// ErrIllegalTransition is returned for a change of status that the table forbids.
var ErrIllegalTransition = errors.New("illegal transition")

// CheckTransition returns nil where a task may go from one status to the other,
// and an error wrapping ErrIllegalTransition where it may not.
func CheckTransition(from, to Status) error {
	for _, s := range transitions[from] {
		if s == to {
			return nil
		}
	}
	return fmt.Errorf("%w: %s to %s", ErrIllegalTransition, from, to)
}

// Outcome is how a run left its task: the target status, why, and what the
// person who asked reads.
type Outcome struct {
	Status  Status
	Reason  string // one line; the row's error_message where the status is failed
	Summary string // the final summary's text; empty while the task is not final

	TimedOut   bool // it failed because its time was up (store-v2 §3.2)
	Unverified bool // it is completed, and not all that it did is verified
}
