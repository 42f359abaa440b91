// Package policy decides about the commands that a shell script would run,
// before it runs: allow, ask or forbid, by rules on parsed command lines. It
// does no I/O, and it is no wall: what a program does is the sandbox's matter.
package policy

import (
	"slices"

	"toritsugi/internal/i18n"
)

// Policy is a set of rules. It may be used by many at once.
type Policy struct{ rules []Rule }

// New joins rules to a policy: of rules with the same name the last one
// counts. It fails with an *i18n.Error that names file, rule and example where
// a rule is not sound or an example does not behave.
func New(sets ...[]Rule) (*Policy, error) {
	p := &Policy{}
	for _, set := range sets {
		seen := map[string]bool{}
		for _, r := range set {
			if seen[r.Name] {
				return nil, i18n.E("policy.twice", r.File, r.Line, r.Name)
			}
			seen[r.Name] = true
			if !r.sound {
				if err := r.check(); err != nil {
					return nil, err
				}
			}
			if i := slices.IndexFunc(p.rules, func(o Rule) bool { return o.Name == r.Name }); i >= 0 {
				p.rules[i] = r
			} else {
				p.rules = append(p.rules, r)
			}
		}
	}
	return p, nil
}

// Rules returns a copy of the rules that count, in order.
func (p *Policy) Rules() []Rule { return slices.Clone(p.rules) }

// The rules that are no rules: what holds where none fits.
const (
	RuleNone  = "no-rule"       // a program that no rule is about
	RuleShell = "shell-builtin" // assignments, redirections and the script's own functions
)

// Finding is what was decided of one command, and by which rule.
type Finding struct {
	Decision Decision
	Rule     string // its name, RuleNone or RuleShell
	Reason   Reason
	Doubtful bool // the rule is asked about: it cannot be told whether it fits
	Command  Command
}

// Verdict is what is decided of a script: the strictest of its commands'.
type Verdict struct {
	Decision Decision
	Findings []Finding // those with that decision, in the order of the script; at most MaxFindings
	More     int       // findings left out
}

// MaxFindings is the most findings that a verdict holds.
const MaxFindings = 20

// Judge decides about script as if it were to run in place. It always returns
// a verdict: a script that cannot be read is opaque, an empty one is allowed.
func (p *Policy) Judge(script string, place Place) Verdict {
	place = place.clean()
	v := Verdict{}
	all := Commands(script, place)
	for i := range all {
		f := p.decide(&all[i], place)
		switch {
		case f.Decision < v.Decision:
			continue
		case f.Decision > v.Decision:
			v.Decision, v.Findings, v.More = f.Decision, nil, 0
		}
		same := func(o Finding) bool {
			return o.Rule == f.Rule && o.Command.Line == f.Command.Line && o.Command.Text == f.Command.Text && slices.Equal(o.Command.Via, f.Command.Via)
		}
		switch {
		case f.Decision == Allow || slices.ContainsFunc(v.Findings, same):
		case len(v.Findings) == MaxFindings:
			v.More++
		default:
			v.Findings = append(v.Findings, f)
		}
	}
	return v
}

// decide finds the strictest rule for one command.
func (p *Policy) decide(c *Command, place Place) Finding {
	best, found := Finding{Command: *c}, false
	unsure := false // an allow rule may fit
	for i := range p.rules {
		r := &p.rules[i]
		if found && r.Decision < best.Decision {
			continue
		}
		t := r.fits(c, place)
		f := Finding{Decision: r.Decision, Rule: r.Name, Reason: r.Reason, Command: *c}
		switch {
		case t == no:
			continue
		case t == maybe && r.Decision == Allow:
			unsure = true
			continue
		case t == maybe:
			f.Decision, f.Doubtful = Ask, true
		}
		if !found || f.Decision > best.Decision || f.Decision == best.Decision && best.Doubtful && !f.Doubtful {
			best, found = f, true
		}
	}
	switch {
	case found:
		return best
	case c.Opaque == "" && (c.Name == "" || c.function):
		return Finding{Decision: Allow, Rule: RuleShell, Command: *c}
	}
	return Finding{Decision: Ask, Rule: RuleNone, Doubtful: unsure, Command: *c}
}
