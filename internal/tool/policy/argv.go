package policy

import (
	"slices"
	"strings"

	"toritsugi/internal/spelling"
)

// grammar is what is known of a program's command line before its subcommand.
type grammar struct {
	values []string // flags whose value is the next word
	plain  []string // flags without one
	script bool     // the first operand is a program text or a pattern, no path
	unless string   // short flags that give that text instead
}

// grammars lists the programs whose first words or operands the rules look at.
// A flag that is missing here leaves open whether the word after it is its
// value, and with it what the subcommand is.
var grammars = map[string]grammar{
	"git": {values: []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"},
		plain: []string{"-p", "-P", "--paginate", "--no-pager", "--bare", "--no-replace-objects", "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs",
			"--icase-pathspecs", "--no-optional-locks", "--no-lazy-fetch", "--no-advice", "--html-path", "--man-path", "--info-path", "--exec-path", "--version", "--help", "-v", "-h"}},
	"go":        {values: []string{"-C"}},
	"npm":       {values: []string{"--prefix", "-C", "--workspace", "-w", "--registry", "--loglevel", "--cache", "--userconfig"}, plain: []string{"-s", "--silent", "-q", "--quiet", "--workspaces", "-ws", "--if-present", "--no-audit", "--no-fund", "--offline", "--prefer-offline", "--verbose"}},
	"pnpm":      {values: []string{"--dir", "-C", "--filter", "-F"}, plain: []string{"-r", "--recursive", "-w", "--silent", "-s", "--offline", "--workspace-root"}},
	"yarn":      {values: []string{"--cwd"}, plain: []string{"-s", "--silent", "--offline"}},
	"cargo":     {values: []string{"-C", "--manifest-path", "--config", "--color", "-Z"}, plain: []string{"-q", "--quiet", "-v", "-vv", "--verbose", "--offline", "--locked", "--frozen"}},
	"docker":    {values: []string{"--context", "-c", "-H", "--host", "--config", "-l", "--log-level"}, plain: []string{"-D", "--debug"}},
	"podman":    {values: []string{"--url", "-c", "--connection", "--root", "--runroot"}, plain: []string{"-r", "--remote"}},
	"pip":       {values: []string{"--python", "--log", "--proxy", "--cache-dir"}, plain: []string{"-q", "-v", "--quiet", "--verbose", "--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir"}},
	"uv":        {values: []string{"--directory", "--project", "--cache-dir", "--python"}, plain: []string{"-q", "-v", "--offline", "--no-cache", "--quiet"}},
	"poetry":    {values: []string{"-C", "--directory", "-P", "--project"}, plain: []string{"-n", "-q", "-v", "--no-interaction", "--quiet", "--no-ansi"}},
	"gh":        {values: []string{"-R", "--repo"}},
	"kubectl":   {values: []string{"-n", "--namespace", "--context", "--kubeconfig"}},
	"dotnet":    {},
	"apt":       {values: []string{"-o", "-c", "-t"}, plain: []string{"-y", "-q", "-qq", "-s", "--yes", "--no-install-recommends"}},
	"apt-get":   {values: []string{"-o", "-c", "-t"}, plain: []string{"-y", "-q", "-qq", "-s", "--yes", "--no-install-recommends"}},
	"systemctl": {values: []string{"-H", "-M"}, plain: []string{"--user", "--no-pager", "--system", "-q"}},
	"bundle":    {plain: []string{"--quiet"}},
	"composer":  {values: []string{"-d", "--working-dir"}, plain: []string{"-n", "-q", "--no-interaction"}},
	"terraform": {},
	"mvn":       {values: []string{"-f", "-pl", "-P", "-s", "-gs", "-t"}, plain: []string{"-q", "-B", "-o", "-am", "-X", "-e", "-ntp", "-U"}},

	"python": {values: []string{"-W", "-X"}, plain: []string{"-m", "-u", "-B", "-I", "-s", "-S", "-E", "-O", "-OO", "-q", "-v", "-b"}},
	"make":   {values: []string{"-C", "-f", "-I", "-o", "-W"}, plain: []string{"-s", "-k", "-n", "-B", "-i", "-e", "-j"}},

	"sed": {script: true, unless: "ef"}, "gsed": {script: true, unless: "ef"},
	"grep": {script: true, unless: "ef"}, "egrep": {script: true, unless: "ef"}, "fgrep": {script: true, unless: "ef"}, "zgrep": {script: true, unless: "ef"},
	"rg": {script: true, unless: "ef"}, "ag": {script: true}, "ack": {script: true},
	"awk": {script: true, unless: "f"}, "gawk": {script: true, unless: "f"}, "mawk": {script: true, unless: "f"},
	"jq": {script: true, unless: "f"}, "yq": {script: true}, "tr": {script: true}, "expr": {script: true}, "perl": {}, "chmod": {script: true}, "chown": {script: true},
}

// grammarOf returns the grammar of a program; python3.11 is python.
func grammarOf(name string) grammar {
	if g, ok := grammars[name]; ok {
		return g
	}
	return grammars[strings.TrimRight(name, "0123456789.")]
}

// ends reports the word after which there are no flags.
func ends(w Word) bool { s, ok := w.Text(); return ok && s == "--" }

// startsWith reports whether the first words of c that are no flags are want.
func startsWith(c *Command, want []string) truth {
	g := grammarOf(c.Name)
	return wordsFrom(c.Args, want, g, 0)
}

// wordsFrom follows both readings where a flag may or may not take the word
// after it as its value; doubts bounds how often.
func wordsFrom(args []Word, want []string, g grammar, doubts int) truth {
	for len(want) > 0 {
		if len(args) == 0 {
			return no
		}
		w := args[0]
		args = args[1:]
		s, ok := w.Text()
		if !ok {
			return maybe
		}
		if s == "--" {
			continue
		}
		if len(s) < 2 || s[0] != '-' {
			if !spelling.Fits(want[0], s) {
				return no
			}
			want = want[1:]
			continue
		}
		if strings.Contains(s, "=") || slices.Contains(g.plain, s) {
			continue
		}
		if slices.Contains(g.values, s) {
			if len(args) > 0 && args[0].Many {
				return maybe
			}
			args = args[min(1, len(args)):]
			continue
		}
		if doubts > 8 {
			return maybe
		}
		plain := wordsFrom(args, want, g, doubts+1)
		valued := no
		if len(args) > 0 {
			valued = wordsFrom(args[1:], want, g, doubts+1)
		}
		if plain == valued {
			return plain
		}
		return maybe
	}
	return yes
}

// hasFlag reports whether one of flags is given. Long flags may be shortened
// by their user, and short ones put together; -name stands for --name as well.
func hasFlag(c *Command, flags []string, d Decision) truth {
	best := no
	for _, w := range c.Args {
		if ends(w) {
			break
		}
		if b := w.beginning(); b != "" && (b[0] != '-' || len(b) > 1 && b[1] != '-' && !slices.ContainsFunc(flags, func(f string) bool { return startsFlag(f, b) })) {
			continue
		}
		t := w.is(func(s string) bool {
			return slices.ContainsFunc(flags, func(f string) bool { return flagFits(f, s, d) })
		})
		if t == maybe && w.Glob && !becomesFlag(w.Value) {
			continue
		}
		if best = max(best, t); best == yes {
			break
		}
	}
	return best
}

// startsFlag reports whether a word that begins with prefix, of one dash and a
// letter or more, may give the flag f. A letter after the first may be a value:
// only flags that take none are put together, and -j is not -j8 -x.
func startsFlag(f, prefix string) bool {
	return strings.HasPrefix(strings.TrimPrefix(f, "-"), strings.TrimPrefix(prefix, "-")) || strings.HasPrefix(prefix, f) || len(f) == 2
}

// becomesFlag reports a pattern that any file name fits, one like a flag too.
func becomesFlag(pattern string) bool {
	return strings.Trim(pattern, "*?") == "" || pattern[0] == '-'
}

// flagFits reports whether the word s gives the flag f.
func flagFits(f, s string, d Decision) bool {
	if len(s) < 2 || s[0] != '-' {
		return false
	}
	name, _, _ := strings.Cut(s, "=")
	switch {
	case name == f:
		return true
	case strings.HasPrefix(f, "--"):
		return len(name) > 3 && strings.HasPrefix(f, name) && d > Allow
	case len(f) == 2: // -r, maybe among others or with its value
		return !strings.HasPrefix(s, "--") && strings.Contains(name[1:], f[1:])
	}
	return name == "-"+f
}

// operandsWithValues returns the words of c that may be paths: all that are no
// flags, and the values within flags and settings (--output=x, of=x, -o/x).
func operandsWithValues(c *Command) []Word {
	var out []Word
	g := grammarOf(c.Name)
	skip := g.script && (g.unless == "" || hasFlag(c, letters(g.unless), Forbid) == no)
	flagsEnded := false
	for _, w := range c.Args {
		s, ok := w.Text()
		flag := ok && len(s) > 1 && s[0] == '-' && !flagsEnded
		switch {
		case flag && s == "--":
			flagsEnded = true
		case flag:
			if v, ok := flagValue(s); ok {
				out = append(out, lit(v))
			}
		case skip && !w.Many:
			skip = false
		case !ok:
			out = append(out, w)
		default:
			if _, v, found := strings.Cut(s, "="); found && v != "" {
				out = append(out, lit(v))
			}
			out = append(out, w)
		}
	}
	return out
}

// letters returns the short flags of set and the long ones that awk, sed and
// grep have for them.
func letters(set string) []string {
	var out []string
	for _, r := range set {
		out = append(out, "-"+string(r))
	}
	return append(out, "--expression", "--file", "--regexp", "--from-file")
}

// flagValue returns the path in a flag: after "=", or from the first slash or
// tilde on.
func flagValue(s string) (string, bool) {
	if _, v, found := strings.Cut(s, "="); found {
		return v, v != ""
	}
	if strings.HasPrefix(s, "--") {
		return "", false
	}
	if i := strings.IndexAny(s, "/~."); i > 0 {
		return s[i:], true
	}
	return "", false
}
