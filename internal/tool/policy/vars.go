package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// variables knows the variables whose value cannot be in doubt: those with one
// assignment in the whole script, which has run when they are read.
type variables struct {
	assigned map[string]int // how often each name is assigned
	known    map[string]Word
	doubtful bool // something in the script may assign any name
}

// newVariables counts the assignments below n.
func newVariables(n syntax.Node) *variables {
	v := &variables{assigned: map[string]int{}, known: map[string]Word{}}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			v.assign(n)
		case *syntax.WordIter:
			v.assigned[n.Name.Value]++
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				v.assigned[n.Param.Value] += 2
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop, *syntax.CoprocClause:
			v.arithmetic(n)
		case *syntax.Redirect:
			if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
				v.doubtful = true
			}
		case *syntax.DeclClause:
			for _, a := range n.Args {
				if a.Name == nil {
					v.doubtful = true // declare -n, -i, or a computed name
				}
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				v.call(n)
			}
		}
		return true
	})
	return v
}

func (v *variables) assign(a *syntax.Assign) {
	switch {
	case a.Name == nil:
	case a.Name.Value == "IFS":
		v.doubtful = true // words are split elsewhere
	case a.Naked:
	case a.Append || a.Index != nil || a.Array != nil:
		v.assigned[a.Name.Value] += 2
	default:
		v.assigned[a.Name.Value]++
	}
}

// arithmetic takes every name in an expression as assigned by it.
func (v *variables) arithmetic(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if l, ok := n.(*syntax.Lit); ok {
			v.assigned[l.Value] += 2
		}
		return true
	})
}

// assigners are the builtins that assign variables by name, or run what does.
var assigners = map[string]bool{"read": true, "mapfile": true, "readarray": true, "getopts": true, "printf": true, "unset": true, "source": true, ".": true, "eval": true, "trap": true, "command": true, "builtin": true, "wait": true, "alias": true, "shift": true, "set": true}

func (v *variables) call(c *syntax.CallExpr) {
	name := c.Args[0].Lit()
	switch {
	case name == "" && len(c.Args[0].Parts) != 0:
		v.doubtful = true
	case name == "printf":
		if len(c.Args) > 1 && strings.HasPrefix(c.Args[1].Lit(), "-v") {
			v.doubtful = true
		}
	case name == "shift", name == "set", name == "trap":
	case name == "read":
		for _, a := range c.Args[1:] {
			if s := a.Lit(); s != "" {
				v.assigned[s] += 2
			} else {
				v.doubtful = true
			}
		}
	case assigners[name]:
		v.doubtful = true
	}
	// x=1 command assigns for the command only; its words were expanded before.
	for _, a := range c.Assigns {
		if a.Name != nil {
			v.assigned[a.Name.Value]++
		}
	}
}

// set notes the value of an assignment that has just run for certain.
func (v *variables) set(name string, w Word) {
	size := 0
	for _, a := range w.Alts {
		size += len(a)
	}
	if len(w.Alts) > 0 && size <= maxKnown {
		v.known[name] = w
	}
}

func (v *variables) value(name string) (Word, bool) {
	if v.doubtful || v.assigned[name] != 1 {
		return Word{}, false
	}
	w, ok := v.known[name]
	return w, ok
}
