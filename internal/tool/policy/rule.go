package policy

import (
	"path"
	"slices"
	"strings"

	"toritsugi/internal/spelling"
)

// Decision is what a rule says of a command. The greater one is stricter.
type Decision int

// The decisions.
const (
	Allow Decision = iota
	Ask
	Forbid
)

var decisions = []string{"allow", "ask", "forbid"}

func (d Decision) String() string { return decisions[d] }

// Rule says what is decided of the commands it describes. Every field that is
// given must fit; within one field one of its values must. Where a rule cannot
// tell, an allow rule does not fit and the others ask.
type Rule struct {
	Name     string   `yaml:"name"` // unique; a later rule of the same name replaces an earlier one
	Decision Decision `yaml:"-"`
	Reason   Reason   `yaml:"-"`
	File     string   `yaml:"-"` // where it was read
	Line     int      `yaml:"-"`

	Programs    []string   `json:",omitempty" yaml:"programs"`     // names, with * and ?, or absolute paths
	NotPrograms []string   `json:",omitempty" yaml:"not_programs"` // names that it is not about
	From        []Class    `json:",omitempty" yaml:"program_from"` // the program is given by a path of these classes
	Words       [][]string `json:",omitempty" yaml:"words"`        // its first words that are no flags
	Flags       []string   `json:",omitempty" yaml:"flags"`        // one of these flags is given; "-r" in "-rf" as well
	NoFlags     []string   `json:",omitempty" yaml:"no_flags"`     // none of these is
	Args        []string   `json:",omitempty" yaml:"args"`         // patterns, of which one fits one argument; case does not matter
	NoArgs      []string   `json:",omitempty" yaml:"no_args"`      // patterns of which none fits any argument
	MaxArgs     *int       `json:",omitempty" yaml:"max_args"`     // it has at most so many arguments
	Paths       []Class    `json:",omitempty" yaml:"paths"`        // one path among its arguments is of these
	OnlyPaths   []Class    `json:",omitempty" yaml:"only_paths"`   // all are
	Writes      []Class    `json:",omitempty" yaml:"writes"`       // one file that its redirections write is of these
	Reads       []Class    `json:",omitempty" yaml:"reads"`        // one file that its redirections read is of these
	Env         []string   `json:",omitempty" yaml:"env"`          // patterns of names of variables set for it or by it
	Config      []string   `json:",omitempty" yaml:"git_config"`   // patterns of git's settings, name=value
	CodeFrom    []string   `json:",omitempty" yaml:"code_from"`    // it runs as code what these programs print
	Opaque      []string   `json:",omitempty" yaml:"opaque"`       // kinds of opaque commands, or "any"

	Match    []string `json:",omitempty" yaml:"match"`     // scripts with a command that the rule fits for certain
	NotMatch []string `json:",omitempty" yaml:"not_match"` // scripts with none that it fits, or may fit where it does not allow

	sound bool // one of Default's, checked when the program was made
}

// Reason says why, to people and to the model.
type Reason struct{ English, Japanese string }

// truth is what is known of a claim about a command.
type truth int

const (
	no truth = iota
	maybe
	yes
)

// all is true where every claim is.
func all(claims ...func() truth) truth {
	worst := yes
	for _, c := range claims {
		if worst = min(worst, c()); worst == no {
			return no
		}
	}
	return worst
}

// anyOf returns the best truth of f over list.
func anyOf[T any](list []T, f func(T) truth) truth {
	best := no
	for _, v := range list {
		if best = max(best, f(v)); best == yes {
			break
		}
	}
	return best
}

func not(t truth) truth { return yes - t }

func known(b bool) truth {
	if b {
		return yes
	}
	return no
}

// given wraps a check that counts only where a field of the rule is set.
func given[T any](field []T, check func() truth) func() truth {
	if len(field) == 0 {
		return func() truth { return yes }
	}
	return check
}

// fits reports whether r is about c.
func (r *Rule) fits(c *Command, p Place) truth {
	if c.Opaque != "" && len(r.Opaque)+len(r.CodeFrom) == 0 && (r.Decision == Allow || r.aboutProgram()) {
		return no // what an opaque command is called says nothing
	}
	// Most rules are about other programs, and one claim that does not hold is
	// enough: the cheapest one is asked first.
	if len(r.Programs) > 0 && !r.program(c) {
		return no
	}
	return all(
		given(r.Opaque, func() truth {
			return known(c.Opaque != "" && (slices.Contains(r.Opaque, "any") || slices.Contains(r.Opaque, string(c.Opaque))))
		}),
		given(r.CodeFrom, func() truth {
			return known(c.Opaque != "" && slices.ContainsFunc(c.From, func(n string) bool { return matches(r.CodeFrom, n) }))
		}),
		given(r.NotPrograms, func() truth { return known(!matches(r.NotPrograms, c.Name)) }),
		given(r.From, func() truth {
			return known(strings.Contains(c.Path, "/") && slices.Contains(r.From, p.classify(lit(c.Path), c.dir)))
		}),
		given(r.Env, func() truth { return anyOf(c.Env, func(a Assign) truth { return r.env(a) }) }),
		given(r.Config, func() truth { return anyOf(c.Config, func(a Assign) truth { return r.config(a) }) }),
		given(r.Words, func() truth { return anyOf(r.Words, func(want []string) truth { return startsWith(c, want) }) }),
		given(r.Flags, func() truth { return hasFlag(c, r.Flags, r.Decision) }),
		given(r.NoFlags, func() truth { return not(hasFlag(c, r.NoFlags, Forbid)) }),
		given(r.Args, func() truth { return hasArg(c, r.Args) }),
		given(r.NoArgs, func() truth { return not(hasArg(c, r.NoArgs)) }),
		func() truth {
			return known(r.MaxArgs == nil || len(c.Args) <= *r.MaxArgs && !slices.ContainsFunc(c.Args, func(w Word) bool { return w.Many }))
		},
		given(r.Writes, func() truth { return touches(c.Writes, c, p, r.Writes) }),
		given(r.Reads, func() truth { return touches(c.Reads, c, p, r.Reads) }),
		given(r.Paths, func() truth { return touches(operandsWithValues(c), c, p, r.Paths) }),
		given(r.OnlyPaths, func() truth {
			return known(!slices.ContainsFunc(operandsWithValues(c), func(w Word) bool {
				k := p.classify(w, c.dir)
				return k != "" && !slices.Contains(r.OnlyPaths, k)
			}))
		}),
	)
}

// aboutProgram reports a rule that names programs or what they are given.
func (r *Rule) aboutProgram() bool {
	return len(r.Programs)+len(r.Words)+len(r.Flags)+len(r.Args)+len(r.From)+len(r.OnlyPaths) > 0
}

// systemDirs are where the programs of the system lie: a path into them is as
// good as the name alone.
var systemDirs = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/local/go/bin"}

// program reports a command of the rule's programs. What a rule allows must be
// the system's program: a path elsewhere is one that only has its name.
func (r *Rule) program(c *Command) bool {
	if c.Name == "" {
		return false
	}
	for _, want := range r.Programs {
		if path.IsAbs(want) {
			if c.Path == want {
				return true
			}
			continue
		}
		if !spelling.Fits(want, c.Name) {
			continue
		}
		if r.Decision > Allow || !strings.Contains(c.Path, "/") || slices.Contains(systemDirs, path.Dir(c.Path)) {
			return true
		}
	}
	return false
}

func (r *Rule) env(a Assign) truth {
	if a.Name == "" {
		return maybe
	}
	return known(slices.ContainsFunc(r.Env, func(g string) bool { return spelling.Fits(g, a.Name) }))
}

func (r *Rule) config(a Assign) truth {
	if a.Name == "" {
		return maybe
	}
	text, ok := a.Value.Text()
	return anyOf(r.Config, func(g string) truth {
		name, value, valued := strings.Cut(strings.ToLower(g), "=")
		if !spelling.Fits(name, strings.ToLower(a.Name)) {
			return no
		}
		switch {
		case !valued:
			return yes
		case !ok:
			return maybe
		}
		return known(spelling.Fits(value, strings.ToLower(text)))
	})
}

// matches reports a name among patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(g string) bool { return spelling.Fits(g, name) })
}

// mayFit reports whether a word that begins with prefix may fit the pattern. A
// flag of which only the value is not known is not taken for anything else.
func mayFit(pattern, prefix string) bool {
	if prefix[0] == '-' && pattern[0] != '-' {
		return false
	}
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		pattern = pattern[:i]
		return strings.HasPrefix(strings.ToLower(prefix), strings.ToLower(pattern)) || strings.HasPrefix(strings.ToLower(pattern), strings.ToLower(prefix))
	}
	return strings.HasPrefix(strings.ToLower(pattern), strings.ToLower(prefix))
}

// touches reports whether one of words is, or may be, a path of the given classes.
func touches(words []Word, c *Command, p Place, cs []Class) truth {
	return known(slices.ContainsFunc(words, func(w Word) bool { return slices.Contains(cs, p.classify(w, c.dir)) }))
}

// hasArg reports whether an argument fits one of the patterns.
func hasArg(c *Command, patterns []string) truth {
	best := no
	for i, w := range c.Args {
		if i > 0 && w.Glob {
			continue // file names, where the words that rules look for do not stand
		}
		if begins := w.beginning(); begins != "" && !slices.ContainsFunc(patterns, func(g string) bool { return mayFit(g, begins) }) {
			continue
		}
		best = max(best, w.is(func(s string) bool {
			s = strings.ToLower(s)
			return slices.ContainsFunc(patterns, func(g string) bool { return spelling.Fits(strings.ToLower(g), s) })
		}))
	}
	return best
}

// beginning is how a single word begins of which the rest is not known.
func (w Word) beginning() string {
	if w.Known || w.Glob || w.Many {
		return ""
	}
	return w.Value
}
