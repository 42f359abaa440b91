package job

import (
	"slices"
	"strings"

	"toritsugi/internal/approval"
	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
)

// maxNotes is how many notes an answer of a coder holds (contract.Coder).
const maxNotes = 5

// Coder is what a job proposed as an answer of a leg, for who tells of it: from the record,
// since whoever proposed it may be gone. Of the risk it says what the coder said.
func Coder(all *approval.Jobs, j approval.Job, l i18n.Lang) (*contract.Coder, error) {
	c := &contract.Coder{JobID: j.Job, Plan: j.Plan, Notes: j.Notes, Tests: j.Tests, TaskType: string(j.Type), NeedApproval: j.Grantable() && j.State.Status == approval.Pending, Risk: contract.Risk{Rollback: true, Compatibility: []string{}}}
	if j.Judged != nil { // first: a note is what is told of it
		open := make([]string, len(j.Judged.Open))
		for i, o := range j.Judged.Open {
			open[i] = strings.TrimPrefix(l.T("approval.open", l.Translate(o)), "- ")
		}
		c.Notes = slices.Concat(open, j.Notes)
		c.Notes = c.Notes[:min(len(c.Notes), maxNotes)]
	}
	if j.CoderRisk != "" {
		c.Risk.Compatibility = []string{j.CoderRisk}
	}
	for _, cmd := range j.Commands {
		c.Commands = append(c.Commands, contract.Command{Cmd: cmd})
	}
	if !j.Grantable() {
		return c, nil
	}
	raw, err := all.Patch(j)
	c.Patch = strings.ToValidUTF8(string(raw), "\uFFFD")
	return c, err
}
