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
	// Account is what people's ids have in common who are one person; nil: each is one.
	Account   func(id string) string
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

// same reports whether two ids are those of one person.
func (s Settings) same(a, b string) bool {
	return a == b || s.Account != nil && s.Account(a) == s.Account(b)
}

// among reports whether somebody is one of a list.
func (s Settings) among(all []string, id string) bool {
	return slices.ContainsFunc(all, func(a string) bool { return s.same(a, id) })
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
