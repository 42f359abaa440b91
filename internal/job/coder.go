package job

import (
	"strings"

	"toritsugi/internal/approval"
	"toritsugi/internal/contract"
)

// Coder is what a job proposed as an answer of a leg, for who tells of it: from the record,
// since whoever proposed it may be gone. Of the risk it says what the coder said.
func Coder(all *approval.Jobs, j approval.Job) (*contract.Coder, error) {
	c := &contract.Coder{JobID: j.Job, Plan: j.Plan, Notes: j.Notes, Tests: j.Tests, TaskType: string(j.Type), NeedApproval: true, Risk: contract.Risk{Rollback: true}}
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
