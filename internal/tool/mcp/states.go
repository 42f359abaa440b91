package mcp

import (
	"maps"
	"slices"
	"strings"
)

// PinState is how a tool stands against what is pinned for its server.
type PinState string

// The states of a tool.
const (
	Pinned  PinState = "pinned"  // as it was when it was pinned
	Drifted PinState = "drifted" // not as it was: withheld until Accept
	New     PinState = "new"     // not pinned; withheld until Accept, but for a server that was never seen
	Gone    PinState = "gone"    // pinned, and no longer offered
)

// ToolState is a tool of a server, for the person who decides about it.
type ToolState struct {
	Server, Tool string // in their own words
	Name         string // that it is offered under
	State        PinState
	Excluded     bool  // by the server's Allow and Deny
	Drift        Drift // of one that is Drifted or New
}

// States returns how all tools stand, sorted by server and tool. Those of a
// server that is not up are as they are pinned.
func (m *Manager) States() []ToolState {
	var all []ToolState
	for _, s := range m.servers {
		pinned, _ := m.pins.of(s.conf.Name)
		live, listed := s.listing()
		if !listed {
			live = pinned
		}
		drift := map[string]Drift{}
		for _, d := range compare(s.conf.Name, pinned, live) {
			drift[d.Tool] = d
		}
		names := slices.Collect(maps.Keys(live))
		for name := range pinned {
			if _, there := live[name]; !there {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			t := ToolState{Server: s.conf.Name, Tool: name, Name: Name(s.conf.Name, name), State: Pinned, Excluded: !s.allows(name)}
			d, differs := drift[name]
			_, there := live[name]
			switch {
			case !there:
				t.State = Gone
			case differs && d.Old == "":
				t.State, t.Drift = New, d
			case differs:
				t.State, t.Drift = Drifted, d
			}
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b ToolState) int { return strings.Compare(a.Server, b.Server) })
	return all
}
