package approval

import (
	"context"
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
	// Account returns what tells, as things stand, what people's ids have in common who are
	// one person; nil: each is one.
	Account   func(ctx context.Context) (func(id string) string, error)
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

// persons tells people's ids apart, by what those have in common who are one person.
type persons func(id string) string

// persons reads who is one person with whom.
func (s Settings) persons(ctx context.Context) (persons, error) {
	if s.Account == nil {
		return func(id string) string { return id }, nil
	}
	return s.Account(ctx)
}

// same reports whether two ids are those of one person.
func (p persons) same(a, b string) bool { return a == b || p(a) == p(b) }

// among reports whether somebody is one of a list.
func (p persons) among(all []string, id string) bool {
	return slices.ContainsFunc(all, func(a string) bool { return p.same(a, id) })
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
