package approval

import (
	"slices"
	"time"
)

// Settings are those of section approval, and who is an administrator.
type Settings struct {
	Required  bool       // approval.required_by_default
	Hard      []RiskKind // approval.hard_require_approval
	Approvers []string
	Admins    []string // access.admins
	FourEyes  bool
	Expires   time.Duration // approval.expires_hours; 0 for never
	Wide      Wide
	CostLimit int64 // tokens; 0 for none
	Auto      AutoSettings
}

// AutoSettings are those of approval.auto_approve: what an AutoGrant may cover at most.
type AutoSettings struct {
	Enabled bool
	TTL     time.Duration // at most
	Types   []TaskType
	Paths   []string // prefixes
	Tools   []string // apply_patch, shell
	Deny    []RiskKind
}

// asks are the risks that always need a person: those of the list, and a wide overwrite
// (route §6.4).
func (s Settings) asks(risks []Risk) (kinds []RiskKind) {
	for _, r := range risks {
		if r.Kind == WideOverwrite || slices.Contains(s.Hard, r.Kind) {
			kinds = append(kinds, r.Kind)
		}
	}
	return kinds
}
