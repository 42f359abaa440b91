package dialogue

import "toritsugi/internal/contextstore"

// approvalsFile holds who approved what of a run (route §7.3).
const approvalsFile contextstore.Records[approval] = "approvals.jsonl"

const granted = "approval.granted"

// approval is a line of approvalsFile.
type approval struct {
	Timestamp contextstore.Time `json:"timestamp"`
	Event     string            `json:"event"`
	Run       string            `json:"job_id"`
	Status    string            `json:"approval_status"`
	Requested contextstore.Time `json:"approval_requested_at"`
	Decided   contextstore.Time `json:"approval_decided_at"`
	Approver  string            `json:"approver"`
	ID        int64             `json:"approver_id,omitempty"`
	By        string            `json:"approved_by"` // the act: label, assignment, comment, review
	Scope     []string          `json:"scope"`
}

// approve records what the act that asked for a run on a forge approves: that its
// branch is handed over and, at a forge, proposed as a draft, and nothing else (spec/README "forge
// tasks and approval").
func (d *Dialogue) approve() error {
	a, dir := d.run.Order.Act, d.run.Ledger.Dir()
	if a == nil || d.run.Ledger.LastSeq() > 0 {
		return nil
	}
	recorded := false // by an earlier start, that came no further
	if _, err := approvalsFile.Each(dir, func(a approval) { recorded = recorded || a.Event == granted }); err != nil || recorded {
		return err
	}
	scope := []string{"branch"}
	if !d.run.Here() {
		scope = append(scope, "draft")
	}
	at := contextstore.Time{Time: a.At.UTC()}
	return approvalsFile.Append(d.run.Store, dir, approval{contextstore.Time{Time: d.run.Now().UTC()}, granted, d.run.Ledger.UUID(), "granted", at, at,
		a.By.Login, a.By.ID, a.How, scope}, false)
}
