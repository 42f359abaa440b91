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
	dir  string   // where it runs; "" where not known
	here bool     // it runs in the shell's own process
}

// opaque records i as a command that cannot be known.
func (w *walker) opaque(i invocation, why Opaque) {
	c := i.cmd
	c.Opaque = why
	c.From = append(slices.Clone(i.from), i.in.from...)
	c.Args = i.argv[1:]
	if s, ok := i.argv[0].Text(); ok {
		c.Path, c.Name = s, base(s)
	}
	w.add(c, i.dir)
}

// exec records what a command line runs: itself, or what it wraps.
func (w *walker) exec(i invocation) {
	if len(i.cmd.Via) > 4*MaxScripts {
		w.over = true
	}
	if w.over {
		return
	}
	name, ok := i.argv[0].Text()
	switch {
	case !ok || i.argv[0].Many || strings.HasPrefix(name, "$"):
		w.opaque(i, OpaqueName)
		return
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }):
		w.opaque(i, OpaqueLooks)
		return
	}
	i.cmd.Path, i.cmd.Name, i.cmd.Args = name, base(name), i.argv[1:]
	changes, isFunc := w.funcs[name]
	if i.cmd.function = isFunc && i.here; i.cmd.function && changes {
		defer func() { w.dir = "" }()
	}
	switch i.cmd.Name {
	case "cd", "pushd", "popd":
		w.cd(i)
	case "sh", "dash", "ash", "bash", "rbash":
		w.shell(i)
	case "zsh", "ksh", "ksh93", "mksh", "fish", "csh", "tcsh", "pwsh", "powershell", "elvish", "nu", "xonsh", "osh": // other grammars
		if slices.ContainsFunc(i.argv[1:], func(a Word) bool { return strings.HasPrefix(a.Value, "-") || !a.Known }) {
			w.opaque(i, OpaqueSyntax)
			return
		}
		w.interpreter(i)
	case "perl", "ruby", "node", "nodejs", "php", "lua", "luajit", "tclsh", "Rscript", "deno", "bun", "irb", "ghci", "swift", "osascript",
		"python", "python2", "python3", "pypy", "pypy3":
		w.interpreter(i)
	case "eval":
		w.joined(i, i.argv[1:], "eval", true)
	case "trap":
		w.trap(i)
	case "source", ".":
		w.source(i)
	case "alias":
		if slices.ContainsFunc(i.argv[1:], func(a Word) bool { return a.is(func(s string) bool { return strings.Contains(s, "=") }) != no }) {
			w.opaque(i, OpaqueAlias)
			return
		}
		w.add(i.cmd, i.dir)
	case "find", "fd", "fdfind":
		w.find(i)
	case "git":
		w.git(i)
	default:
		if wr := wrappers[i.cmd.Name]; wr != nil {
			w.unwrap(i, wr)
			return
		}
		w.add(i.cmd, i.dir)
	}
}

// nested walks a script within this one; here says that this shell runs it.
func (w *walker) nested(i invocation, script, via string, here bool) {
	child := *w
	child.via = append(slices.Clone(i.cmd.Via), via)
	child.line = i.cmd.Line
	child.scripts++
	child.dir = i.dir
	if i.in.text = nil; !here && i.in.given {
		child.stdin = i.in
	}
	child.script(script)
	if here {
		w.dir = child.dir
	}
}

// runs walks a text that another process runs as a script.
func (w *walker) runs(i invocation, text Word, via string) {
	s, ok := text.Text()
	if !ok {
		w.opaque(i, OpaqueScript)
		return
	}
	outer := i.cmd
	outer.Path, outer.Name, outer.Args = "", "", nil
	if len(outer.Env)+len(outer.Writes)+len(outer.Reads) > 0 {
		w.add(outer, i.dir)
	}
	w.nested(i, s, via, false)
}

// joined walks words that are joined and read as a script, as eval and watch
// do: up to the first that is not known, and then that is said.
func (w *walker) joined(i invocation, words []Word, via string, here bool) {
	if len(words) > 0 && ends(words[0]) {
		words = words[1:]
	}
	var known []string
	for _, a := range words {
		s, ok := a.Text()
		if !ok {
			w.opaque(i, OpaqueScript)
			break
		}
		known = append(known, s)
	}
	if here {
		outer := i.cmd
		outer.Args = nil
		w.add(outer, i.dir)
	}
	w.nested(i, strings.Join(known, " "), via, here)
}

// cd follows a change of directory, which is taken to succeed.
func (w *walker) cd(i invocation) {
	w.add(i.cmd, i.dir)
	if !i.here {
		return
	}
	args := slices.DeleteFunc(slices.Clone(i.argv[1:]), func(a Word) bool {
		s, _ := a.Text()
		return s == "-P" || s == "-L" || s == "--" || s == "-e"
	})
	w.dir = ""
	switch {
	case i.cmd.Name == "popd" || i.cmd.function:
	case len(args) == 0 && i.cmd.Name == "cd":
		w.dir = w.place.home()
	case len(args) == 1:
		if s, ok := args[0].Text(); ok && s != "-" && !strings.HasPrefix(s, "+") {
			w.dir = under(i.dir, s)
		}
	}
}

// under returns the directory that p names from dir; "" where that is not known.
func under(dir, p string) string {
	switch {
	case path.IsAbs(p):
		return path.Clean(p)
	case dir == "":
		return ""
	}
	return path.Join(dir, p)
}

// shell reads the command line of sh and bash.
func (w *walker) shell(i invocation) {
	args, script, stdin := i.argv[1:], false, false
	for len(args) > 0 {
		s, ok := args[0].Text()
		if !ok || len(s) < 2 || s[0] != '-' && s[0] != '+' || s == "--" {
			if s == "-" || s == "--" {
				args = args[1:]
			}
			break
		}
		args = args[1:]
		if strings.HasPrefix(s, "--") {
			if s == "--rcfile" || s == "--init-file" {
				w.opaque(i, OpaqueScript)
				return
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
	switch {
	case script && len(args) == 0:
		w.opaque(i, OpaqueScript)
	case script:
		w.runs(i, args[0], i.cmd.Name+" -c")
	case len(args) > 0 && !stdin && !args[0].Known:
		w.opaque(i, OpaqueScript)
	case len(args) > 0 && !stdin && args[0].Value != "/dev/stdin":
		w.add(i.cmd, i.dir)
	case i.in.text != nil:
		w.runs(i, lit(*i.in.text), i.cmd.Name)
	default:
		w.fromInput(i)
	}
}

// fromInput is a program that reads what it runs from its standard input.
func (w *walker) fromInput(i invocation) {
	if i.in.given && !i.in.file && (i.in.text == nil || len(i.in.from) > 0) {
		w.opaque(i, OpaqueInput)
		return
	}
	w.add(i.cmd, i.dir)
}

// interpreter reads the command line of a language's interpreter as far as to
// tell whether its program is what another command prints.
func (w *walker) interpreter(i invocation) {
	args := i.argv[1:]
	for k, a := range args {
		if a.Known || len(i.from) == 0 {
			continue
		}
		if previous := i.argv[k].Value; k == 0 || slices.Contains([]string{"-c", "-e", "-E", "-r", "--eval", "-p", "--print"}, previous) {
			w.opaque(i, OpaqueInput)
			return
		}
	}
	if slices.ContainsFunc(args, func(a Word) bool {
		return !a.Known || !slices.Contains([]string{"-", "/dev/stdin", "-u", "-B", "-s"}, a.Value)
	}) {
		w.add(i.cmd, i.dir)
		return
	}
	w.fromInput(i)
}

// trap runs its first word later, wherever the shell is then.
func (w *walker) trap(i invocation) {
	w.add(i.cmd, i.dir)
	if len(i.argv) < 3 || slices.Contains([]string{"", "-", "-p", "-l"}, i.argv[1].Value) && i.argv[1].Known {
		return
	}
	text, ok := i.argv[1].Text()
	if !ok {
		w.opaque(i, OpaqueScript)
		return
	}
	i.dir = ""
	w.nested(i, text, "trap", false)
}

// source runs a file in this shell.
func (w *walker) source(i invocation) {
	switch {
	case len(i.argv) < 2:
		w.opaque(i, OpaqueScript)
	case !i.argv[1].Known || strings.HasPrefix(i.argv[1].Value, "/dev/") || strings.HasPrefix(i.argv[1].Value, "/proc/"):
		w.opaque(i, OpaqueInput)
	default:
		w.add(i.cmd, i.dir)
	}
	w.dir = "" // it may go anywhere
}

// git reads the settings and the directory that stand before git's subcommand.
func (w *walker) git(i invocation) {
	args, g := i.argv[1:], grammarOf("git")
	for len(args) > 0 {
		s, ok := args[0].Text()
		if !ok || !strings.HasPrefix(s, "-") {
			break // a word that is not known may be a flag: the rules say so
		}
		args = args[1:]
		name, value, attached := strings.Cut(s, "=")
		v := lit(value)
		if slices.Contains(g.values, name) && !attached {
			if len(args) == 0 {
				break
			}
			v, args = args[0], args[1:]
		}
		switch name {
		case "-c", "--config-env":
			a := assignment(v)
			if name == "--config-env" {
				a.Value = Word{}
			}
			i.cmd.Config = append(i.cmd.Config, a)
		case "-C":
			if s, ok := v.Text(); ok {
				i.dir = under(i.dir, s)
			} else {
				i.dir = ""
			}
		}
	}
	w.add(i.cmd, i.dir)
}

// find records find or fd, and the commands of its actions.
func (w *walker) find(i invocation) {
	actions := []string{"-x", "-X", "--exec", "--exec-batch"}
	root := ""
	if i.cmd.Name == "find" {
		actions = []string{"-exec", "-execdir", "-ok", "-okdir"}
		if root = findRoot(i.argv[1:]); root == "" && !slices.ContainsFunc(i.argv[1:], func(a Word) bool { return a.Value == "-files0-from" }) {
			root = "."
			i.cmd.Args = append([]Word{lit(".")}, i.cmd.Args...)
		}
	}
	w.add(i.cmd, i.dir)
	args := i.argv[1:]
	for len(args) > 0 {
		flag, ok := args[0].Text()
		args = args[1:]
		if !ok || !slices.Contains(actions, flag) {
			continue
		}
		end := len(args)
		for k, a := range args {
			// A plus ends the action only after {}.
			if s, _ := a.Text(); s == ";" || s == "+" && k > 0 && args[k-1].Value == "{}" {
				end = k
				break
			}
		}
		next := invocation{argv: slices.Clone(args[:end]), cmd: i.cmd, dir: i.dir, from: i.from}
		args = args[end:]
		if len(next.argv) == 0 {
			continue
		}
		next.cmd.Via = append(slices.Clone(i.cmd.Via), i.cmd.Name+" "+flag)
		next.cmd.Writes, next.cmd.Reads = nil, nil
		if strings.HasSuffix(flag, "dir") {
			next.dir = ""
		}
		for k, a := range next.argv {
			switch {
			case a.Value == "{}" && root != "":
				next.argv[k] = Word{Value: root + "/{}", Glob: true}
			case strings.Contains(a.Value, "{}"):
				next.argv[k] = Word{}
			}
		}
		if i.cmd.Name != "find" {
			next.argv = append(next.argv, Word{Many: true})
		}
		w.exec(next)
	}
}

// findRoot is the directory that find begins in where it is given one, "" where
// it is given none; where that is not known, it is the root.
func findRoot(args []Word) string {
	root := ""
	for _, a := range args {
		s, ok := a.Text()
		switch {
		case ok && slices.Contains([]string{"-H", "-P"}, s):
		case ok && s != "" && (s[0] == '-' && s != "-L" || s == "(" || s == "!"):
			return root
		case !ok || root != "" || s == "-L": // -L follows links out of the tree
			return unknownRoot
		default:
			root = s
		}
	}
	return root
}

// unknownRoot stands for a place of which nothing is known.
const unknownRoot = "/unknown/place"
