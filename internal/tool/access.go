package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Access says which tools may be used, as one setting has it: that of a role or
// of a project. A pattern is a name in which * stands for any text, ? for one
// character and [a-z] for one of several.
type Access struct {
	Of    string   // whose setting it is, as the model reads it, e.g. "role coder1"
	Allow []string // empty allows all
	Deny  []string // wins over Allow
}

// Restrict returns the registry without the tools that any of rules keeps away.
// A call of one of these is answered with which rule that is. The tools are
// shared with r. It fails on a pattern that cannot be read.
func (r *Registry) Restrict(rules ...Access) (*Registry, error) {
	for _, a := range rules {
		for _, p := range slices.Concat(a.Allow, a.Deny) {
			if _, err := path.Match(p, ""); err != nil || p == "" {
				return nil, fmt.Errorf("tools of %s: the pattern %q cannot be read", a.Of, p)
			}
		}
	}
	out := &Registry{limit: r.limit, spill: r.spill, others: r.others, withheld: map[string]string{}}
	maps.Copy(out.withheld, r.withheld)
	for _, e := range r.entries {
		e.rules = slices.Concat(e.rules, rules)
		if reason := Refusal(e.def, e.rules); reason != "" {
			out.withheld[e.def.Name] = reason
		} else {
			out.entries = append(out.entries, e)
		}
	}
	return out, nil
}

// Refusal says which of rules keeps a tool away, "" for none. A tool that took the
// place of others is there as long as one of these would be.
func Refusal(d Definition, rules []Access) string {
	reason := refusal(rules, d.Name)
	if d.Was == nil {
		return reason
	}
	for _, name := range append(slices.Sorted(maps.Keys(d.Names)), d.Was(json.RawMessage("{}"))) {
		if refusal(rules, d.Name, name) == "" {
			return ""
		}
		reason = refusal(rules, d.Name, name)
	}
	return reason
}

// refusal says which of rules keeps away what goes by any of names.
func refusal(rules []Access, names ...string) string {
	for _, a := range rules {
		for _, n := range names {
			if p := matching(a.Deny, n); p != "" {
				return fmt.Sprintf("%s denies %s", a.Of, p)
			}
		}
		if len(a.Allow) > 0 && !slices.ContainsFunc(names, func(n string) bool { return matching(a.Allow, n) != "" }) {
			return fmt.Sprintf("%s allows only %s", a.Of, strings.Join(a.Allow, ", "))
		}
	}
	return ""
}

// Matches reports whether a name fits a pattern of an Access.
func Matches(pattern, name string) bool { return matching([]string{pattern}, name) != "" }

// matching returns the first pattern that matches name.
func matching(patterns []string, name string) string {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return p
		}
	}
	return ""
}

// Canonical is JSON without what means nothing: its keys are sorted, its
// numbers are as they were written, and there is no space.
func Canonical(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v) // maps are written in the order of their keys
}
