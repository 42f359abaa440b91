package policy

import (
	"slices"
	"strings"
)

// wrapper describes the command line of a program that runs another one. A
// flag that it does not name makes the line opaque: its value could be the
// command as well as the word after it.
type wrapper struct {
	flags   string   // short flags without a value
	values  string   // short flags with one, in the same word or the next
	long    []string // long flags without a value
	longs   []string // long flags with one, after "=" or in the next word
	numbers bool     // -10 is a flag
	verbs   []string // the word that must come first to run something: poetry run
	skip    int      // words before the command
	assigns bool     // NAME=value words before the command
	joined  bool     // its words are joined and given to a shell
	fed     bool     // words from its input are added at the end
	chdir   []string // flags whose value is the directory of the command
	nothing string   // flags with which nothing is run: command -v
	here    bool     // the command runs in the shell's own process
}

// wrappers are the programs that run their arguments.
var wrappers = map[string]*wrapper{
	"command":   {flags: "p", nothing: "vV", here: true},
	"builtin":   {here: true},
	"exec":      {flags: "cl", values: "a", here: true},
	"env":       {flags: "i0v", values: "uC", long: []string{"--ignore-environment", "--null", "--debug", "--block-signal", "--default-signal", "--ignore-signal", "--list-signal-handling"}, longs: []string{"--unset", "--chdir"}, assigns: true, chdir: []string{"-C", "--chdir"}},
	"timeout":   {flags: "vpf", values: "sk", long: []string{"--foreground", "--preserve-status", "--verbose"}, longs: []string{"--signal", "--kill-after"}, skip: 1},
	"nice":      {values: "n", longs: []string{"--adjustment"}, numbers: true},
	"ionice":    {flags: "t", values: "cnpPu", long: []string{"--ignore"}, longs: []string{"--class", "--classdata", "--pid"}},
	"nohup":     {},
	"setsid":    {flags: "cfw", long: []string{"--ctty", "--fork", "--wait"}},
	"stdbuf":    {values: "ioe", longs: []string{"--input", "--output", "--error"}},
	"time":      {flags: "pvaq", values: "fo", long: []string{"--portability", "--verbose", "--append", "--quiet"}, longs: []string{"--format", "--output"}},
	"xvfb-run":  {flags: "al", values: "efnpsw", long: []string{"--auto-servernum", "--auto-display"}, longs: []string{"--server-args", "--server-num", "--error-file", "--wait"}},
	"xargs":     {flags: "0oprtx", values: "adEIiLnPsl", long: []string{"--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit", "--open-tty"}, longs: []string{"--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-lines", "--replace", "--max-chars", "--process-slot-var", "--eof"}, fed: true},
	"watch":     {flags: "bcdegtwx", values: "nq", long: []string{"--beep", "--color", "--differences", "--errexit", "--chgexit", "--no-title", "--exec"}, longs: []string{"--interval"}, joined: true},
	"busybox":   {},
	"toybox":    {},
	"poetry":    {verbs: []string{"run"}, flags: "nqvC", long: []string{"--no-interaction", "--quiet", "--verbose", "--no-ansi"}, longs: []string{"--directory", "--project"}},
	"pipenv":    {verbs: []string{"run"}, flags: "qv"},
	"pdm":       {verbs: []string{"run"}, flags: "qv", values: "p", longs: []string{"--project"}},
	"hatch":     {verbs: []string{"run"}, flags: "qv", values: "e", longs: []string{"--env"}},
	"uv":        {verbs: []string{"run"}, flags: "qvn", values: "p", long: []string{"--frozen", "--locked", "--offline", "--no-sync", "--no-project", "--isolated", "--quiet", "--all-extras", "--dev", "--no-dev"}, longs: []string{"--python", "--extra", "--group", "--directory", "--project", "--env-file", "--package"}},
	"conda":     {verbs: []string{"run"}, values: "np", long: []string{"--no-capture-output", "--live-stream"}, longs: []string{"--name", "--prefix", "--cwd"}},
	"bundle":    {verbs: []string{"exec"}, long: []string{"--keep-file-descriptors"}, longs: []string{"--gemfile"}},
	"pnpm":      {verbs: []string{"exec"}, flags: "rsw", values: "CF", long: []string{"--recursive", "--silent"}, longs: []string{"--dir", "--filter"}},
	"yarn":      {verbs: []string{"exec"}, flags: "s", long: []string{"--silent"}, longs: []string{"--cwd"}},
	"cross-env": {assigns: true},
}

// unwrap records the command that a wrapper runs.
func (w *walker) unwrap(i invocation, wr *wrapper) {
	p := stripper{i: &i, wr: wr, args: i.argv[1:]}
	switch p.strip() {
	case maybe:
		w.opaque(i, OpaqueName)
		return
	case no:
		w.add(i.cmd, i.dir)
		return
	}
	next := invocation{argv: p.args, cmd: i.cmd, in: i.in, from: i.from, dir: i.dir, here: i.here && wr.here}
	next.cmd.Via = append(slices.Clone(i.cmd.Via), i.cmd.Name)
	if wr.fed {
		next.from, next.in = append(slices.Clone(next.from), i.in.from...), input{}
		next.argv = append(slices.Clone(next.argv), Word{Many: true})
		for k, a := range next.argv {
			if p.token != "" && strings.Contains(a.Value, p.token) {
				next.argv[k] = Word{}
			}
		}
	}
	if wr.joined {
		w.joined(next, next.argv, i.cmd.Name, false)
		return
	}
	w.exec(next)
}

// stripper takes the flags of a wrapper off its command line.
type stripper struct {
	i     *invocation
	wr    *wrapper
	args  []Word
	token string // of xargs -I
}

// strip leaves the words that the wrapper runs; no says that it runs nothing,
// maybe that nobody can tell.
func (p *stripper) strip() truth {
	if t := p.flags(); t != yes {
		return t
	}
	if len(p.wr.verbs) > 0 {
		if len(p.args) == 0 {
			return no
		}
		if t := p.args[0].is(func(s string) bool { return slices.Contains(p.wr.verbs, s) }); t != yes {
			return t
		}
		p.args = p.args[1:]
		if t := p.flags(); t != yes {
			return t
		}
	}
	for range p.wr.skip {
		if len(p.args) == 0 || p.args[0].Many {
			return maybe
		}
		p.args = p.args[1:]
	}
	for p.wr.assigns && len(p.args) > 0 {
		t := p.args[0].is(func(s string) bool { return strings.Contains(s, "=") })
		if t == maybe {
			return maybe
		}
		if t == no {
			break
		}
		p.i.cmd.Env = append(slices.Clone(p.i.cmd.Env), assignment(p.args[0]))
		p.args = p.args[1:]
	}
	return known(len(p.args) > 0)
}

// flags takes leading flags off.
func (p *stripper) flags() truth {
	for len(p.args) > 0 {
		s, ok := p.args[0].Text()
		switch {
		case !ok:
			return maybe
		case len(s) < 2 || s[0] != '-':
			if s != "-" || p.i.cmd.Name != "env" {
				return yes
			}
			p.args = p.args[1:]
			continue
		}
		p.args = p.args[1:]
		if s == "--" {
			return yes
		}
		take := p.shortFlags
		if strings.HasPrefix(s, "--") {
			take = p.longFlag
		}
		if t := take(s); t != yes {
			return t
		}
	}
	return yes
}

func (p *stripper) longFlag(s string) truth {
	name, value, attached := strings.Cut(s, "=")
	switch {
	case slices.Contains(p.wr.longs, name) && attached:
		return p.value(name, lit(value))
	case slices.Contains(p.wr.longs, name):
		return p.next(name)
	case slices.Contains(p.wr.long, name):
		return yes
	case name == "--help" || name == "--version":
		return no
	}
	return maybe
}

func (p *stripper) shortFlags(s string) truth {
	if p.wr.numbers && strings.Trim(s[1:], "0123456789") == "" {
		return yes
	}
	for k := 1; k < len(s); k++ {
		letter := s[k : k+1]
		switch {
		case strings.Contains(p.wr.nothing, letter):
			return no
		case strings.Contains(p.wr.values, letter) && k+1 < len(s):
			return p.value("-"+letter, lit(s[k+1:]))
		case strings.Contains(p.wr.values, letter):
			return p.next("-" + letter)
		case !strings.Contains(p.wr.flags, letter):
			return maybe
		}
	}
	return yes
}

// next takes the next word as a flag's value.
func (p *stripper) next(flag string) truth {
	if len(p.args) == 0 {
		return maybe
	}
	v := p.args[0]
	p.args = p.args[1:]
	return p.value(flag, v)
}

// value looks at a flag's value.
func (p *stripper) value(flag string, v Word) truth {
	if v.Many {
		return maybe
	}
	if p.wr.fed && (flag == "-I" || flag == "--replace") {
		if !v.Known || v.Value == "" {
			return maybe
		}
		p.token = v.Value
	}
	if slices.Contains(p.wr.chdir, flag) {
		if p.i.dir = under(p.i.dir, v.Value); !v.Known {
			p.i.dir = ""
		}
	}
	return yes
}
