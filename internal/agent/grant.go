package agent

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
)

// grantsFile holds who approved what of a run (route §7.3).
const grantsFile = "approvals.jsonl"

const grantedEvent = "approval.granted"

// grant is a line of grantsFile.
type grant struct {
	Timestamp contextstore.Time `json:"timestamp"`
	Event     string            `json:"event"`
	Job       string            `json:"job_id"`
	Status    string            `json:"approval_status"`
	Requested contextstore.Time `json:"approval_requested_at"`
	Decided   contextstore.Time `json:"approval_decided_at"`
	Approver  string            `json:"approver"`
	ID        int64             `json:"approver_id,omitempty"`
	By        string            `json:"approved_by"` // the act: label, assignment, comment, review
	Scope     []string          `json:"scope"`
}

// granted records what the act that asked for a run on a forge approves: that its
// branch is pushed and proposed as a draft, and nothing else (spec/README "forge
// tasks and approval").
func (r *run) granted() error {
	a := r.job.Ask
	if a == nil || r.ledger.LastSeq() > 0 {
		return nil
	}
	if kept, err := disk.Read(filepath.Join(r.ledger.Dir(), grantsFile), disk.MaxWhole); err == nil && bytes.Contains(kept, []byte(grantedEvent)) {
		return nil // an earlier start, that came no further, has recorded it
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	at := contextstore.Time{Time: a.At.UTC()}
	return r.appendTo(grantsFile, grant{contextstore.Time{Time: r.Now().UTC()}, grantedEvent, r.ledger.UUID(), "granted", at, at,
		r.Store.Redact(a.By.Login), a.By.ID, a.How, []string{"branch", "draft"}})
}
