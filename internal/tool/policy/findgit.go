package policy

import (
	"slices"
	"strings"
)

// find records find itself and the commands of its actions.
func (w *walker) find(i invocation) []string {
	i.cmd.Args = w.startingPoint(i)
	w.add(i.cmd, i.dirs)
	actions, ends := []string{"-exec", "-execdir", "-ok", "-okdir"}, []string{";", "+"}
	if i.cmd.Name != "find" {
		actions, ends = []string{"-x", "-X", "--exec", "--exec-batch"}, []string{";"}
	}
	args := i.argv[1:]
	roots := w.findRoots(i, args)
	if w.sink != nil && !i.cmd.quiet {
		w.sink.paths = append(w.sink.paths, roots...)
	}
	for len(args) > 0 {
		flag, ok := args[0].Text()
		args = args[1:]
		if !ok || !slices.Contains(actions, flag) {
			if ok && i.cmd.Name != "find" && attachedExec(flag) {
				return w.opaque(i, OpaqueName)
			}
			continue
		}
		end := slices.IndexFunc(args, func(a Word) bool { s, ok := a.Text(); return ok && slices.Contains(ends, s) })
		for end > 0 && i.cmd.Name == "find" {
			// A plus ends the action only after {}.
			if s, _ := args[end].Text(); s == ";" {
				break
			}
			if s, ok := args[end-1].Text(); ok && s == "{}" {
				break
			}
			next := slices.IndexFunc(args[end+1:], func(a Word) bool { s, ok := a.Text(); return ok && slices.Contains(ends, s) })
			if next < 0 {
				end = -1
				break
			}
			end += 1 + next
		}
		inner := args
		if end >= 0 {
			inner, args = args[:end], args[end+1:]
		} else {
			args = nil
		}
		if len(inner) == 0 {
			continue
		}
		next := invocation{argv: slices.Clone(inner), cmd: i.cmd, dirs: i.dirs, from: i.from}
		next.cmd.Via = append(slices.Clone(i.cmd.Via), i.cmd.Name+" "+flag)
		next.cmd.Writes, next.cmd.Reads = nil, nil
		if strings.HasSuffix(flag, "dir") {
			next.dirs = nil
		}
		for k, a := range next.argv {
			next.argv[k] = without(a, "{}", roots)
		}
		if i.cmd.Name != "find" {
			next.argv = append(next.argv, Word{Many: true})
		}
		w.exec(next)
	}
	return w.dirs
}

// startingPoint are the words of find with the directory that it begins in
// where none is named.
func (w *walker) startingPoint(i invocation) []Word {
	if i.cmd.Name == "find" && !slices.ContainsFunc(i.cmd.Args, filesFrom) && slices.Equal(w.findRoots(i, i.cmd.Args), []string{"./{}"}) &&
		!slices.ContainsFunc(i.cmd.Args, func(a Word) bool { s, ok := a.Text(); return ok && s == "." }) {
		return append([]Word{lit(".")}, i.cmd.Args...)
	}
	return i.cmd.Args
}

// filesFrom reports find's flag for a file with the paths to begin in.
func filesFrom(a Word) bool { s, ok := a.Text(); return ok && s == "-files0-from" }

// attachedExec reports fd's -x or --exec in a form that is not taken apart.
func attachedExec(flag string) bool {
	short := strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--")
	return short && strings.ContainsAny(flag, "xX") || strings.HasPrefix(flag, "--exec")
}

// findRoots are paths that stand for what find finds; nil where not known.
func (w *walker) findRoots(i invocation, args []Word) []string {
	if i.cmd.Name != "find" || slices.ContainsFunc(args, filesFrom) {
		return nil
	}
	roots := []string{}
	for _, a := range args {
		if a.is(func(s string) bool {
			return s != "" && (s[0] == '-' && !slices.Contains([]string{"-H", "-L", "-P"}, s) || s == "(" || s == "!")
		}) == yes {
			break
		}
		if !a.Exact {
			return nil
		}
		for _, s := range a.Alts {
			if s != "-H" && s != "-L" && s != "-P" {
				roots = append(roots, s+"/{}")
			}
		}
		if slices.Contains(a.Alts, "-L") {
			return nil // follows links out of the tree
		}
	}
	if len(roots) == 0 {
		roots = []string{"./{}"}
	}
	return roots
}

// gitFlags are git's own flags before its subcommand.
var gitFlags = struct{ values, plain []string }{
	values: []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"},
	plain: []string{"-p", "-P", "--paginate", "--no-pager", "--bare", "--no-replace-objects", "--literal-pathspecs", "--glob-pathspecs", "--noglob-pathspecs",
		"--icase-pathspecs", "--no-optional-locks", "--no-lazy-fetch", "--no-advice", "--html-path", "--man-path", "--info-path", "--exec-path", "--version", "--help", "-v", "-h"},
}

// git records git and what its settings and subcommands run.
func (w *walker) git(i invocation) []string {
	args := i.argv[1:]
	for len(args) > 0 {
		s, ok := args[0].Text()
		if !ok {
			w.add(i.cmd, i.dirs)
			return w.dirs // a rule's words may match: what follows is not known
		}
		if !strings.HasPrefix(s, "-") {
			break
		}
		args = args[1:]
		name, value, attached := strings.Cut(s, "=")
		v := lit(value)
		if slices.Contains(gitFlags.values, name) && (!attached || name == "-c" || name == "-C") {
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
			i.cmd.Config = append(slices.Clone(i.cmd.Config), a)
		case "-C":
			dirs := i.dirs
			i.dirs = nil
			if s, ok := v.Text(); ok && dirs != nil {
				i.dirs = under(dirs, s)
			}
		}
	}
	sub, ok := "", false
	if len(args) > 0 {
		sub, ok = args[0].Text()
	}
	outer := i.cmd
	// What an alias stands for is judged in its place.
	outer.function = ok && slices.ContainsFunc(i.cmd.Config, func(a Assign) bool { return strings.EqualFold(a.Name, "alias."+sub) })
	w.add(outer, i.dirs)
	if !ok {
		return w.dirs
	}
	w.gitAlias(i, sub, args[1:])
	w.gitRuns(i, sub, args[1:])
	return w.dirs
}

// gitAlias records what an alias given with -c stands for.
func (w *walker) gitAlias(i invocation, sub string, args []Word) {
	for _, set := range i.cmd.Config {
		name, found := strings.CutPrefix(strings.ToLower(set.Name), "alias.")
		if !found || name != strings.ToLower(sub) {
			continue
		}
		text, ok := set.Value.Text()
		if !ok {
			w.opaque(i, OpaqueScript)
			continue
		}
		i.in = input{}
		if script, shell := strings.CutPrefix(text, "!"); shell {
			w.runScript(i, script+` "$@"`, true, "git alias")
			continue
		}
		next := i
		next.argv = []Word{lit("git")}
		for _, word := range strings.Fields(text) {
			if strings.ContainsAny(word, `'"\`) {
				w.opaque(i, OpaqueScript)
				return
			}
			next.argv = append(next.argv, lit(word))
		}
		next.argv = append(next.argv, args...)
		next.cmd.Config = nil
		next.cmd.Via = append(slices.Clone(i.cmd.Via), "git alias")
		w.exec(next)
	}
}

// gitRuns records the commands that git's subcommands run.
func (w *walker) gitRuns(i invocation, sub string, args []Word) {
	i.in = input{}
	i.cmd.Writes, i.cmd.Reads, i.cmd.Config = nil, nil, nil
	first := ""
	if len(args) > 0 {
		first, _ = args[0].Text()
	}
	switch {
	case sub == "bisect" && first == "run" && len(args) > 1:
		next := i
		next.argv = args[1:]
		next.cmd.Via = append(slices.Clone(i.cmd.Via), "git bisect run")
		w.exec(next)
	case sub == "submodule":
		at := slices.IndexFunc(args, func(a Word) bool { s, _ := a.Text(); return s == "foreach" })
		if at < 0 {
			return
		}
		rest := args[at+1:]
		for len(rest) > 0 {
			if s, ok := rest[0].Text(); !ok || !strings.HasPrefix(s, "-") {
				break
			}
			rest = rest[1:]
		}
		i.dirs = nil
		w.gitScript(i, rest, "git submodule foreach")
	case sub == "rebase":
		for k, a := range args {
			s, _ := a.Text()
			switch {
			case (s == "-x" || s == "--exec") && k+1 < len(args):
				w.gitScript(i, args[k+1:k+2], "git rebase --exec")
			case strings.HasPrefix(s, "--exec="):
				w.gitScript(i, []Word{lit(s[len("--exec="):])}, "git rebase --exec")
			case strings.HasPrefix(s, "-x") && len(s) > 2:
				w.gitScript(i, []Word{lit(s[2:])}, "git rebase --exec")
			}
		}
	}
}

func (w *walker) gitScript(i invocation, words []Word, via string) {
	all, ok := texts(words)
	if !ok {
		w.opaque(i, OpaqueScript)
		all = leading(words)
	}
	w.runScript(i, strings.Join(all, " "), true, via)
}
