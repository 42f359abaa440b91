package policy

import (
	"path"
	"slices"
	"strings"
)

// invocation is a command line that would be executed.
type invocation struct {
	argv []Word
	cmd  Command // where it stands, what is set for it, its redirections
	in   input
	from []string // programs whose output is part of argv
	said []string // what is known of that
	dirs []string
	here bool // it runs in the shell's own process

	single [][]Word // what a wrapper may run besides
}

// meaningful are the commands that this package understands: a script that
// gives their names another meaning would be misread.
var meaningful = map[string]bool{"cd": true, "pushd": true, "popd": true, "eval": true, "exit": true, "sh": true, "bash": true, "dash": true, "find": true, "git": true, "source": true, ".": true, "trap": true, "alias": true}

// opaque records i as a command that cannot be known.
func (w *walker) opaque(i invocation, why Opaque) []string {
	w.sink.doubt()
	c := i.cmd
	c.Opaque = why
	c.From = append(slices.Clone(i.from), i.in.from...)
	if len(i.argv) > 0 {
		c.Args = i.argv[1:]
		if s, ok := i.argv[0].Text(); ok {
			c.Path, c.Name = s, base(s)
		}
	}
	w.add(c, i.dirs)
	return w.dirs
}

// exec records what a command line runs: itself, or what it wraps. It returns
// the directories that the shell may be in if it succeeded.
func (w *walker) exec(i invocation) (success []string) {
	if len(i.cmd.Via) > 4*MaxScripts {
		w.over = true
	}
	if w.over {
		return nil
	}
	name, ok := i.argv[0].Text()
	switch {
	case !ok || i.argv[0].Many || strings.HasPrefix(name, "$"):
		return w.opaque(i, OpaqueName)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }):
		return w.opaque(i, OpaqueLooks)
	}
	i.cmd.Path, i.cmd.Name, i.cmd.Args = name, base(name), i.argv[1:]
	if i.here && w.funcs[name] {
		i.cmd.function = true
		if w.settled && w.roams {
			w.dirs = nil
		}
	}
	if f := special(i.cmd.Name); f != nil {
		w.sink.doubt()
		return f(w, i)
	}
	if wr := wrappers[i.cmd.Name]; wr != nil {
		return w.unwrap(i, wr)
	}
	w.speaks(i)
	w.add(i.cmd, i.dirs)
	return w.dirs
}

// special returns the reader of a command with a grammar of its own.
func special(name string) func(*walker, invocation) []string {
	switch name {
	case "cd", "pushd", "popd":
		return (*walker).cd
	case "exit", "return":
		return (*walker).leave
	case "sh", "dash", "ash", "bash", "rbash":
		return (*walker).shell
	case "zsh", "ksh", "ksh93", "mksh", "fish", "csh", "tcsh", "pwsh", "powershell", "elvish", "nu", "xonsh", "osh":
		return (*walker).otherShell
	case "eval":
		return (*walker).eval
	case "trap":
		return (*walker).trap
	case "source", ".":
		return (*walker).source
	case "alias":
		return (*walker).alias
	case "hash", "enable", "mapfile", "readarray", "complete", "bind":
		return (*walker).rebind
	case "find", "fd", "fdfind":
		return (*walker).find
	case "git":
		return (*walker).git
	case "awk", "gawk", "mawk", "nawk", "perl", "ruby", "node", "nodejs", "php", "lua", "luajit", "tclsh", "Rscript", "deno", "bun", "irb", "ghci", "swift", "osascript":
		return (*walker).interpreter
	}
	if strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") || strings.HasPrefix(name, "lua5") || strings.HasPrefix(name, "perl5") {
		return (*walker).interpreter
	}
	return nil
}

// nested walks a script within this one, run by another process if apart.
func (w *walker) nested(i invocation, script, via string, posix, apart bool) {
	w.sink.doubt()
	child := *w
	child.via = append(slices.Clone(i.cmd.Via), via)
	child.line = i.cmd.Line
	child.scripts++
	child.posix = posix
	child.dirs = i.dirs
	child.certain = false
	child.moves, child.roams, child.settled = false, false, false
	child.loops = w.loops
	if apart {
		child.funcs = map[string]bool{}
		child.loops = 0
		if i.in.given {
			child.stdin = i.in.shared()
		}
	}
	child.script(script)
	if !apart {
		w.dirs = join(w.dirs, child.dirs)
		if child.moves {
			w.moved(w.dirs)
		}
	}
}

// moved notes that the shell may be in dirs from now on.
func (w *walker) moved(dirs []string) {
	w.dirs = dirs
	w.moves = true
	if w.loops > 0 {
		w.roams = true
	}
}

// cd follows a change of directory.
func (w *walker) cd(i invocation) []string {
	w.add(i.cmd, i.dirs)
	if !i.here {
		return w.dirs
	}
	var target []string
	args := i.argv[1:]
	for len(args) > 0 {
		if s, ok := args[0].Text(); ok && (s == "-P" || s == "-L" || s == "--" || s == "-e") {
			args = args[1:]
			continue
		}
		break
	}
	switch {
	case w.funcs[i.cmd.Name] || w.vars.assigned["CDPATH"] > 0 || i.cmd.Name == "popd":
	case len(args) == 0 && i.cmd.Name == "cd":
		target = []string{w.place.home()}
	case len(args) == 1 && len(args[0].Alts) > 0 && args[0].Exact && i.dirs != nil:
		target = []string{}
		for _, a := range args[0].Alts {
			if a == "-" || strings.HasPrefix(a, "+") {
				target = nil
				break
			}
			target = join(target, under(i.dirs, a))
		}
	}
	w.moved(join(w.dirs, target))
	return target
}

// under returns the directories that p names from each of dirs.
func under(dirs []string, p string) []string {
	if path.IsAbs(p) {
		return []string{path.Clean(p)}
	}
	all := make([]string, 0, len(dirs))
	for _, d := range dirs {
		all = append(all, path.Join(d, p))
	}
	return all
}

// leave is exit: nothing follows it.
func (w *walker) leave(i invocation) []string {
	w.add(i.cmd, i.dirs)
	if i.here {
		w.dirs = []string{}
		return []string{}
	}
	return w.dirs
}

// shell reads the command line of sh and bash.
func (w *walker) shell(i invocation) []string {
	posix := i.cmd.Name != "bash" && i.cmd.Name != "rbash"
	args, script, stdin := i.argv[1:], false, false
	for len(args) > 0 {
		s, ok := args[0].Text()
		if !ok {
			return w.unseen(i, OpaqueScript, args[0].raw())
		}
		if len(s) < 2 || s[0] != '-' && s[0] != '+' || s == "--" {
			if s == "-" || s == "--" {
				args = args[1:]
			}
			break
		}
		args = args[1:]
		if strings.HasPrefix(s, "--") {
			switch s {
			case "--rcfile", "--init-file":
				return w.opaque(i, OpaqueScript)
			case "--posix":
				posix = true
			}
			continue
		}
		for _, letter := range s[1:] {
			switch letter {
			case 'c':
				script = s[0] == '-'
			case 's':
				stdin = true
			case 'o', 'O':
				args = args[min(1, len(args)):]
			}
		}
	}
	if script {
		if len(args) == 0 {
			return w.unseen(i, OpaqueScript)
		}
		text, ok := args[0].Text()
		if !ok {
			return w.unseen(i, OpaqueScript, args[0].raw())
		}
		return w.runScript(i, text, posix, i.cmd.Name+" -c")
	}
	if len(args) > 0 && !stdin {
		switch s, ok := args[0].Text(); {
		case !ok:
			return w.unseen(i, OpaqueScript)
		case strings.HasPrefix(s, "/dev/fd/") || strings.HasPrefix(s, "/proc/"):
			return w.unseen(i, OpaqueInput)
		case s != "/dev/stdin":
			w.add(i.cmd, i.dirs)
			return w.dirs
		}
	}
	return w.fromInput(i, posix)
}

// fromInput is a shell that reads its script from its standard input.
func (w *walker) fromInput(i invocation, posix bool) []string {
	switch {
	case i.in.text != nil:
		text := *i.in.text
		i.in = input{}
		return w.runScript(i, text, posix, i.cmd.Name)
	case i.in.given && !i.in.file:
		return w.unseen(i, OpaqueInput)
	}
	w.add(i.cmd, i.dirs)
	return w.dirs
}

// runScript walks a script that another process runs: by the POSIX grammar as
// well where that shell may be one that knows no other.
func (w *walker) runScript(i invocation, text string, posix bool, via string) []string {
	outer := i.cmd
	outer.Path, outer.Name, outer.Args = "", "", nil
	if len(outer.Env)+len(outer.Writes)+len(outer.Reads) > 0 {
		w.add(outer, i.dirs)
	}
	w.nested(i, text, via, false, true)
	if posix {
		w.nested(i, text, via, true, true)
	}
	return w.dirs
}

func (w *walker) otherShell(i invocation) []string {
	for _, a := range i.argv[1:] {
		if a.is(func(s string) bool { return strings.HasPrefix(s, "-") }) != no {
			return w.opaque(i, OpaqueSyntax)
		}
	}
	if len(i.argv) == 1 {
		return w.fromOther(i)
	}
	w.add(i.cmd, i.dirs)
	return w.dirs
}

// fromOther is an interpreter that reads its program from its standard input.
func (w *walker) fromOther(i invocation) []string {
	if i.in.given && !i.in.file && (i.in.text == nil || len(i.in.from) > 0) {
		return w.opaque(i, OpaqueInput)
	}
	w.add(i.cmd, i.dirs)
	return w.dirs
}

// interpreter reads the command line of a language's interpreter as far as to
// tell whether its program comes from elsewhere.
func (w *walker) interpreter(i invocation) []string {
	if len(i.from) > 0 && !strings.HasSuffix(i.cmd.Name, "awk") {
		// Its program may be what another command printed.
		for k, a := range i.argv[1:] {
			if s, ok := a.Text(); ok && k == 0 && strings.HasPrefix(s, "/dev/fd/") {
				return w.opaque(i, OpaqueInput)
			}
			if a.Exact {
				continue
			}
			previous, _ := i.argv[k].Text()
			if k == 0 || slices.Contains([]string{"-c", "-e", "-E", "-r", "--eval", "-p", "--print"}, previous) {
				return w.opaque(i, OpaqueInput)
			}
		}
	}
	if !strings.HasSuffix(i.cmd.Name, "awk") {
		operand := slices.IndexFunc(i.argv[1:], func(a Word) bool {
			return a.is(func(s string) bool { return s != "-" && s != "/dev/stdin" && s != "-u" && s != "-B" && s != "-s" }) != no
		})
		if operand < 0 {
			return w.fromOther(i)
		}
	}
	w.add(i.cmd, i.dirs)
	return w.dirs
}

// eval runs its words in this shell.
func (w *walker) eval(i invocation) []string {
	args, ok := texts(i.argv[1:])
	if !ok {
		all := make([]string, len(i.argv)-1)
		for k, a := range i.argv[1:] {
			all[k] = a.raw()
		}
		w.unseen(i, OpaqueScript, strings.Join(all, " "))
		args = leading(i.argv[1:])
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	outer := i.cmd
	outer.Args = nil
	w.add(outer, i.dirs)
	w.nested(i, strings.Join(args, " "), "eval", w.posix, false)
	return w.dirs
}

// trap runs its first word later.
func (w *walker) trap(i invocation) []string {
	w.trapped = true
	w.add(i.cmd, i.dirs)
	if len(i.argv) < 3 {
		return w.dirs
	}
	text, ok := i.argv[1].Text()
	switch {
	case !ok:
		return w.opaque(i, OpaqueScript)
	case text == "" || text == "-" || text == "-p" || text == "-l":
		return w.dirs
	case text == "--":
		return w.opaque(i, OpaqueScript)
	}
	later := i
	later.dirs = nil // wherever the shell is then
	if !w.moves && !w.settled {
		later.dirs = i.dirs
	}
	w.loops++
	w.nested(later, text, "trap", w.posix, false)
	w.loops--
	return w.dirs
}

// source runs a file in this shell.
func (w *walker) source(i invocation) []string {
	w.moved(nil) // it may go anywhere
	if len(i.argv) < 2 {
		return w.opaque(i, OpaqueScript)
	}
	s, ok := i.argv[1].Text()
	if !ok || strings.HasPrefix(s, "/dev/") || strings.HasPrefix(s, "/proc/") {
		return w.unseen(i, OpaqueInput)
	}
	w.add(i.cmd, i.dirs)
	return w.dirs
}

// alias changes what a word means from the next line on.
func (w *walker) alias(i invocation) []string {
	for _, a := range i.argv[1:] {
		if a.is(func(s string) bool { return strings.Contains(s, "=") }) != no {
			return w.opaque(i, OpaqueAlias)
		}
	}
	w.add(i.cmd, i.dirs)
	return w.dirs
}

// rebind is a builtin that is harmless but for one flag.
func (w *walker) rebind(i invocation) []string {
	flag := map[string]string{"hash": "p", "enable": "f", "mapfile": "C", "readarray": "C", "complete": "CF", "bind": "xf"}[i.cmd.Name]
	for _, a := range i.argv[1:] {
		if a.is(func(s string) bool { return strings.HasPrefix(s, "-") && strings.ContainsAny(s, flag) }) != no {
			return w.opaque(i, OpaqueAlias)
		}
	}
	w.add(i.cmd, i.dirs)
	return w.dirs
}
