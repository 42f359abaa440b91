package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// input is the standard input of a command.
type input struct {
	given bool     // by a pipe or a redirection
	from  []string // the programs that write it; never nil for a pipe
	file  bool     // it is a file
	text  *string  // it is this text
	said  []string // where it is not known: texts that may be in it
	paths []string // and paths, as findRoots has them
}

// call walks a simple command.
func (w *walker) call(c *syntax.CallExpr, s *syntax.Stmt) (success []string) {
	at := w.at(s)
	from, said := w.inside(c)
	in, more := w.redirects(s.Redirs, &at)
	from = append(from, more...)
	if !in.given {
		in = w.stdin
	}
	lasts := len(c.Args) == 0
	for _, a := range c.Assigns {
		at.Env = append(at.Env, w.assign(a, lasts))
	}
	argv := w.words(c.Args)
	if len(argv) == 0 {
		if hidden(at) {
			at.Opaque = OpaqueHidden
		}
		w.add(at, w.dirs)
		return w.dirs
	}
	if hidden(at) || slices.ContainsFunc(argv, hides) || hasExtGlob(c) {
		at.Opaque, at.From = OpaqueHidden, from
		if hasExtGlob(c) {
			at.Opaque = OpaqueSyntax
		}
		w.add(at, w.dirs)
	}
	return w.exec(invocation{argv: argv, cmd: at, in: in, from: from, said: said, dirs: w.dirs, here: true})
}

// hides reports a literal text with a command in it that arithmetic, prompts
// or array indexes would run.
func hides(w Word) bool {
	return slices.ContainsFunc(w.Alts, func(s string) bool { return strings.Contains(s, "[$(") || strings.Contains(s, "[`") })
}

func hidden(c Command) bool {
	return slices.ContainsFunc(c.Env, func(a Assign) bool { return hides(a.Value) || hides(lit(a.Name)) }) || slices.ContainsFunc(c.Args, hides)
}

// hasExtGlob reports @(…) and its like, which bash reads as something else
// unless an option is set: !(x) is then a command that is run.
func hasExtGlob(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if _, ok := n.(*syntax.ExtGlob); ok {
			found = true
		}
		return !found
	})
	return found
}

// inside walks the commands within the words below n and returns the programs
// whose output n is made of, and what of it is known.
func (w *walker) inside(n syntax.Node) (from, said []string) {
	if n == nil {
		return nil, nil
	}
	mark := len(w.out)
	if word, ok := n.(*syntax.Word); ok && word == nil {
		return nil, nil
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			s, _ := w.listen(func() { w.subshell(func() { w.stmts(n.Stmts) }) })
			said = append(said, s.said()...)
			return false
		case *syntax.ProcSubst:
			stdin := w.stdin
			if n.Op == syntax.CmdOut {
				w.stdin = input{given: true, from: []string{}}
			}
			s, _ := w.listen(func() { w.subshell(func() { w.stmts(n.Stmts) }) })
			said = append(said, s.said()...)
			w.stdin = stdin
			return false
		case *syntax.ParamExp:
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word != nil && n.Exp.Word.Lit() == "P" {
				at := w.at(n)
				at.Opaque = OpaqueHidden // ${x@P} runs what $x holds
				w.add(at, nil)
			}
		}
		return true
	})
	if len(w.out) <= mark {
		return nil, said
	}
	return programs(w.out[mark:]), said
}

// expression walks [[ … ]], (( … )) and let.
func (w *walker) expression(c syntax.Command) {
	w.inside(c)
	found := false
	syntax.Walk(c, func(n syntax.Node) bool {
		if word, ok := n.(*syntax.Word); ok && hides(w.word(word)) {
			found = true
		}
		return true
	})
	at := w.at(c)
	if found || hasExtGlob(c) && w.posix {
		at.Opaque = OpaqueHidden
	}
	w.add(at, w.dirs)
}

// redirects notes the files that redirections read and write, and returns the
// standard input that they make and the programs within their words.
func (w *walker) redirects(all []*syntax.Redirect, c *Command) (in input, from []string) {
	for _, r := range all {
		names, said := w.inside(r.Word)
		stdin := r.N == nil || r.N.Value == "0"
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			more, _ := w.inside(r.Hdoc)
			names = append(names, more...)
			if stdin {
				in = input{given: true, from: names}.holding(w.document(r.Hdoc, isQuoted(r.Word)), "")
			}
		case syntax.WordHdoc:
			if stdin {
				in = input{given: true, from: names}.holding(w.word(r.Word), "\n")
			}
		case syntax.RdrIn:
			c.Reads = append(c.Reads, w.words([]*syntax.Word{r.Word})...)
			if stdin {
				in = input{given: true, from: names, file: len(names) == 0, said: said}
			}
		case syntax.RdrInOut:
			file := w.words([]*syntax.Word{r.Word})
			c.Reads, c.Writes = append(c.Reads, file...), append(c.Writes, file...)
			if stdin {
				in = input{given: true, from: names}
			}
		case syntax.DplIn:
			if stdin {
				in = input{given: true, from: names}
			}
		case syntax.DplOut:
			if s := r.Word.Lit(); s != "-" && strings.Trim(strings.TrimSuffix(s, "-"), "0123456789") != "" || s == "" {
				c.Writes = append(c.Writes, w.words([]*syntax.Word{r.Word})...)
			}
		default:
			c.Writes = append(c.Writes, w.words([]*syntax.Word{r.Word})...)
			out := r.N == nil || r.N.Value == "1" || r.Op == syntax.RdrAll || r.Op == syntax.AppAll
			c.quiet = c.quiet || out && !strings.HasPrefix(r.Word.Lit(), "/dev/") && !strings.HasPrefix(r.Word.Lit(), "/proc/")
		}
		from = append(from, names...)
	}
	return in, from
}

// holding is in with a text that is known, or what is known of it.
func (in input) holding(v Word, end string) input {
	if s, ok := v.Text(); ok {
		s += end
		in.text = &s
	} else {
		in.said = []string{v.raw() + end}
	}
	return in
}

// isQuoted reports a here-document's delimiter with quotes, after which its
// body is taken as it is.
func isQuoted(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return !ok || strings.Contains(l.Value, `\`)
	})
}
