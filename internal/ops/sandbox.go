package ops

import (
	"io"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
)

// SandboxOptions choose how SandboxCheck prints.
type SandboxOptions struct {
	JSON bool // one object per attempt, then one of the whole
	All  bool // also what was blocked
	Lang i18n.Lang

	Watched []string // limits that the kernel does not keep, see sandbox.Sandbox
}

// SandboxCheck prints what came of the attempts to break out of a sandbox of
// this kind and returns how many of them succeeded. What was contained and what
// was not possible here is told with its detail, what was blocked only counted
// unless All is set.
func SandboxCheck(w io.Writer, kind string, probes []sandbox.Probe, o SandboxOptions) (escaped int, err error) {
	p := &printer{w: w}
	count := map[string]int{}
	if !o.JSON {
		p.printf("%s\n", o.Lang.T("sandbox.check.kind", kind))
	}
	for _, probe := range probes {
		count[probe.Outcome]++
		switch {
		case o.JSON:
			p.json(map[string]any{"type": "probe", "name": probe.Name, "wall": probe.Wall, "outcome": probe.Outcome, "detail": probe.Detail})
		case o.All || probe.Outcome != sandbox.OutcomeBlocked:
			p.printf("  %s %s (%s): %s\n", o.Lang.T("sandbox.check."+probe.Outcome), probe.Name, probe.Wall, clean(probe.Detail))
		}
	}
	escaped = count[sandbox.OutcomeEscaped]
	blocked, contained, missing := count[sandbox.OutcomeBlocked], count[sandbox.OutcomeContained], count[sandbox.OutcomeUnavailable]
	if o.JSON {
		p.json(map[string]any{"type": "summary", "kind": kind, "attempts": len(probes), "blocked": blocked, "contained": contained,
			"unavailable": missing, "escaped": escaped, "watched_limits": o.Watched})
		return escaped, p.err
	}
	if len(o.Watched) > 0 {
		names := make([]string, len(o.Watched))
		for i, l := range o.Watched {
			names[i] = o.Lang.T("sandbox.limit." + l)
		}
		p.printf("%s\n", o.Lang.T("sandbox.check.watched", strings.Join(names, o.Lang.T("sandbox.check.comma"))))
		if slices.Contains(o.Watched, "memory") {
			p.printf("%s\n", o.Lang.T("sandbox.check.delegate"))
		}
	}
	p.printf("%s\n", o.Lang.T("sandbox.check.sum", len(probes), blocked, contained, missing, escaped))
	return escaped, p.err
}
