package policy

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Commands returns the simple commands that script would run in place, those
// inside wrappers and nested scripts included, in the order they are written.
// What cannot be told is a Command with Opaque set; past a limit the last one
// is OpaqueTooMuch. It never fails and takes time proportional to the script.
func Commands(script string, place Place) []Command {
	place = place.clean()
	r := &reader{}
	dialects := []bool{false}
	if place.POSIX {
		dialects = []bool{false, true}
	}
	for _, posix := range dialects {
		w := &walker{reader: r, place: place, posix: posix, dirs: []string{place.Dir}, funcs: map[string]bool{}}
		w.script(script)
	}
	if r.over {
		r.out = append(r.out, Command{Opaque: OpaqueTooMuch, Line: 1, Text: oneLine(script[:min(len(script), 4*maxText)], maxText)})
	}
	return r.out
}

// reader is what all walkers of one script share.
type reader struct {
	out    []Command
	count  int // commands met, twice where a script was read twice
	parsed int // bytes
	values int // bytes of the words that were put together
	over   bool

	trapped bool // something may run, and print, between any two commands
}

// walker reads one script: the given one, or one within it.
type walker struct {
	*reader
	place   Place
	posix   bool
	dirs    []string // where the next command may run; nil is anywhere
	vars    *variables
	funcs   map[string]bool
	via     []string // wrappers around this script
	line    int      // of the outer script, 0 where this is it
	scripts int      // scripts around this one
	src     string

	level   int
	certain bool    // what is walked now is run once, surely, in this process
	loops   int     // loops and functions around what is walked now
	stdin   input   // of what is walked now
	sink    *saying // what the commands here print goes into it; nil: nobody reads it
	moves   bool    // a command that changes the directory was met
	roams   bool    // one was met in a loop or function
	settled bool    // second pass: moves and roams are known
}

// script walks a whole script, twice where directories change in a way that
// the first pass could not foresee.
func (w *walker) script(text string) {
	switch {
	case len(text) > MaxScript || nesting(text) > MaxNesting || w.scripts > MaxScripts || w.parsed+len(text) > maxParsed:
		w.over = true
		return
	case strings.ContainsAny(text, "\r\x00") || !utf8.ValidString(text):
		// Shells drop NULs, and carriage returns are white space for some of
		// the readers of this text and not for others.
		w.add(Command{Opaque: OpaqueSyntax, Text: oneLine(text, maxText)}, nil)
		return
	case strings.ContainsFunc(text, reorders):
		w.add(Command{Opaque: OpaqueLooks, Text: oneLine(text, maxText)}, nil)
	}
	w.parsed += len(text)
	w.src = text
	lang := syntax.LangBash
	if w.posix {
		lang = syntax.LangPOSIX
	}
	file, ok := parse(text, lang)
	w.pass(file)
	if !ok {
		// What comes before the error is run all the same.
		w.add(Command{Opaque: OpaqueSyntax, Text: oneLine(text, maxText)}, nil)
	}
}

// parse returns the statements of text up to the first that is not sound. The
// parser is not ours, and the text anybody's: a panic in it is a text that
// cannot be read.
func parse(text string, lang syntax.LangVariant) (file *syntax.File, ok bool) {
	file, ok = &syntax.File{}, true
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	// The statements before an error are run all the same.
	f, err := syntax.NewParser(syntax.Variant(lang), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if f != nil {
		file = f
	}
	ok = err == nil
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, isComment := n.(*syntax.Comment); isComment && strings.Contains(c.Text, "\n") {
			// The parser lets a backslash carry a comment over the end of its
			// line, and what follows with it; shells do not.
			ok = false
		}
		return true
	})
	return file, ok && !endsOpen(text)
}

// endsOpen reports a text that ends in a backslash that stands for nothing.
func endsOpen(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

func (w *walker) pass(file *syntax.File) {
	dirs, mark, funcs := w.dirs, len(w.out), w.funcs
	var said saying
	if w.sink != nil {
		said = *w.sink
	}
	for range 2 {
		w.vars, w.certain, w.dirs = newVariables(file), true, dirs
		w.funcs = map[string]bool{}
		for name := range funcs {
			w.funcs[name] = true
		}
		w.stmts(file.Stmts)
		if w.settled || w.over || !w.roams && (!w.moves || len(w.funcs) == 0) {
			return
		}
		w.settled, w.out = true, w.out[:mark]
		if w.sink != nil {
			*w.sink = said
		}
	}
}

// nesting returns how deep brackets and clauses may lie within each other; it
// bounds what the parser, which recurses, is given.
func nesting(text string) int {
	depth, deepest, clauses := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		case '!':
			clauses++
		case 'i', 'w', 'u', 'c', 't':
			for _, word := range []string{"if", "while", "until", "case", "time", "coproc"} {
				if strings.HasPrefix(text[i:], word) && (i == 0 || strings.IndexByte(" \t\n;&|({", text[i-1]) >= 0) {
					clauses++
					break
				}
			}
		}
	}
	return max(deepest, clauses/20) // clauses follow each other more often than they nest
}

// text returns the source of n.
func (w *walker) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.src) || from >= to {
		return ""
	}
	return oneLine(w.src[from:min(to, from+4*maxText)], maxText)
}

// at fills in where n stands.
func (w *walker) at(n syntax.Node) Command {
	c := Command{Line: w.line, Via: w.via, Text: w.text(n)}
	if c.Line == 0 {
		c.Line = int(n.Pos().Line())
	}
	return c
}

// add records a command.
func (w *walker) add(c Command, dirs []string) {
	if w.count++; w.count > 16*MaxCommands || len(w.out) >= MaxCommands {
		w.over = true
		return
	}
	if c.Line == 0 {
		c.Line = max(1, w.line)
	}
	if c.Via == nil {
		c.Via = w.via
	}
	c.dirs = dirs
	w.out = append(w.out, c)
}

func (w *walker) stmts(all []*syntax.Stmt) {
	for _, s := range all {
		w.stmt(s)
	}
}

// stmt walks a statement; w.dirs becomes every directory that the shell may be
// in after it. It returns those after it succeeded.
func (w *walker) stmt(s *syntax.Stmt) (success []string) {
	if w.over {
		return nil
	}
	if w.level++; w.level > MaxNesting*8 {
		w.over = true
	}
	defer func() { w.level-- }()
	if s.Background || s.Coprocess {
		w.sink.doubt()
		w.subshell(func() { w.command(s) })
		return w.dirs
	}
	success = w.command(s)
	if s.Negated {
		return w.dirs
	}
	return success
}

// subshell walks what cannot change this shell's directory or variables.
func (w *walker) subshell(f func()) {
	dirs, certain := w.dirs, w.certain
	w.certain = false
	f()
	w.dirs, w.certain = dirs, certain
}

// branch walks what may or may not be run.
func (w *walker) branch(f func()) {
	certain := w.certain
	w.certain = false
	f()
	w.certain = certain
}

func (w *walker) command(s *syntax.Stmt) (success []string) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return w.call(c, s)
	case *syntax.BinaryCmd:
		return w.binary(c, s)
	}
	stdin, sink := w.stdin, w.sink
	if len(s.Redirs) > 0 {
		at := w.at(s)
		in, _ := w.redirects(s.Redirs, &at)
		w.add(at, w.dirs)
		if in.given {
			w.stdin = in.shared()
		}
		if at.quiet {
			w.sink = nil
		}
	}
	switch s.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell:
	default:
		w.sink.doubt()
	}
	w.compound(s.Cmd)
	w.stdin, w.sink = stdin, sink
	return w.dirs
}

// binary walks a && b, a || b and a | b.
func (w *walker) binary(c *syntax.BinaryCmd, s *syntax.Stmt) (success []string) {
	if len(s.Redirs) > 0 { // only where the parser hangs them on the whole
		at := w.at(s)
		w.redirects(s.Redirs, &at)
		w.add(at, w.dirs)
	}
	if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
		w.sink.doubt()
	}
	switch c.Op {
	case syntax.AndStmt:
		first := w.stmt(c.X)
		all := w.dirs
		w.dirs = first
		w.branch(func() { success = w.stmt(c.Y) })
		w.dirs = join(all, w.dirs)
	case syntax.OrStmt:
		first := w.stmt(c.X)
		var second []string
		w.branch(func() { second = w.stmt(c.Y) })
		success, w.dirs = join(first, second), join(first, w.dirs)
	default:
		w.pipe(c)
		success = w.dirs
	}
	return success
}

// compound walks everything but simple commands and lists.
func (w *walker) compound(c syntax.Command) {
	switch c := c.(type) {
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.Subshell:
		w.subshell(func() { w.stmts(c.Stmts) })
	case *syntax.IfClause:
		w.ifClause(c)
	case *syntax.WhileClause:
		w.loop(func() { w.stmts(c.Cond); w.stmts(c.Do) })
	case *syntax.ForClause:
		w.forClause(c)
	case *syntax.CaseClause:
		w.inside(c.Word)
		before := w.dirs
		after := before
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				w.inside(p)
			}
			// ;& falls through, so that each may begin where another ended.
			w.dirs = join(before, after)
			w.branch(func() { w.stmts(item.Stmts) })
			after = join(after, w.dirs)
		}
		w.dirs = after
	case *syntax.FuncDecl:
		w.function(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt)
		}
	case *syntax.CoprocClause:
		// Readers disagree about which word after coproc is a name.
		at := w.at(c)
		at.Opaque = OpaqueSyntax
		w.add(at, nil)
		stdin := w.stdin
		w.stdin = input{given: true, from: []string{"coproc"}} // whatever the script writes to it
		w.subshell(func() { w.stmt(c.Stmt) })
		w.stdin = stdin
	case *syntax.DeclClause:
		w.declare(c)
	case nil:
	default: // [[ … ]], (( … )), let
		w.expression(c)
	}
}

func (w *walker) ifClause(c *syntax.IfClause) {
	w.stmts(c.Cond)
	before := w.dirs
	w.branch(func() { w.stmts(c.Then) })
	after := w.dirs
	w.dirs = before
	if c.Else != nil {
		w.branch(func() { w.ifClause(c.Else) })
	}
	w.dirs = join(after, w.dirs)
}

func (w *walker) loop(body func()) {
	before := w.dirs
	if w.settled && w.roams {
		w.dirs = nil
	}
	w.loops++
	w.branch(body)
	w.loops--
	w.dirs = join(before, w.dirs)
}

func (w *walker) forClause(c *syntax.ForClause) {
	name := ""
	if it, ok := c.Loop.(*syntax.WordIter); ok {
		for _, item := range it.Items {
			w.inside(item)
		}
		if v, ok := choice(w.words(it.Items)); ok && it.InPos.IsValid() && !c.Select {
			name = it.Name.Value
			w.vars.set(name, v)
		}
	} else {
		w.inside(c.Loop)
	}
	w.loop(func() { w.stmts(c.Do) })
	delete(w.vars.known, name)
}

// choice is the variable of a loop over words.
func choice(words []Word) (Word, bool) {
	v := Word{Exact: true}
	for _, word := range words {
		if len(word.Alts) == 0 || len(v.Alts)+len(word.Alts) > maxAlts {
			return Word{}, false
		}
		v.Alts, v.Exact = append(v.Alts, word.Alts...), v.Exact && word.Exact
	}
	return v, len(v.Alts) > 0
}

// function walks the body of a function where it is declared: what it does is
// judged once, whether it is called or not.
func (w *walker) function(c *syntax.FuncDecl) {
	if c.Name == nil || c.Body == nil {
		return
	}
	name := c.Name.Value
	w.funcs[name] = true
	if meaningful[name] || wrappers[name] != nil {
		// The reader of this script would take it for what it is not.
		at := w.at(c)
		at.Opaque = OpaqueAlias
		w.add(at, nil)
	}
	dirs, stdin := w.dirs, w.stdin
	if w.settled && w.moves {
		w.dirs = nil
	}
	w.loops++
	w.branch(func() { w.stmt(c.Body) })
	w.loops--
	w.dirs, w.stdin = dirs, stdin
}

// declare walks export, declare and their like.
func (w *walker) declare(c *syntax.DeclClause) {
	at := w.at(c)
	at.Path, at.Name = c.Variant.Value, c.Variant.Value
	plain := true
	for _, a := range c.Args {
		w.inside(a)
		if a.Name == nil { // a flag, or a word that becomes an assignment
			for _, v := range w.words([]*syntax.Word{a.Value}) {
				at.Args = append(at.Args, v)
				if s, ok := v.Text(); !ok || strings.Contains(s, "=") {
					at.Env = append(at.Env, assignment(v))
				}
			}
			plain = false
			continue
		}
		at.Env = append(at.Env, w.assign(a, plain))
	}
	if hidden(at) {
		at.Opaque = OpaqueHidden
	}
	w.add(at, w.dirs)
}

// assignment splits a word of the form NAME=value.
func assignment(w Word) Assign {
	s, ok := w.Text()
	if !ok {
		name := ""
		for i, a := range w.Alts {
			n, _, found := strings.Cut(a, "=")
			if !found || !w.Exact || i > 0 && n != name {
				return Assign{Value: w}
			}
			name = n
		}
		return Assign{Name: name, Value: Word{}}
	}
	name, value, _ := strings.Cut(s, "=")
	return Assign{Name: strings.TrimSuffix(name, "+"), Value: lit(value)}
}

// assign evaluates an assignment and remembers its value where it is sure to
// have run.
func (w *walker) assign(a *syntax.Assign, lasts bool) Assign {
	out := Assign{Name: a.Name.Value}
	switch {
	case a.Array != nil || a.Index != nil:
	case a.Value == nil:
		out.Value = lit("")
	default:
		out.Value = w.word(a.Value)
		if out.Value.Alts != nil && !out.Value.Exact {
			out.Value.Exact = len(out.Value.Alts) > 0 // no globs in assignments
		}
		out.Value.Many = false
	}
	if lasts && w.certain && !a.Naked && !a.Append {
		w.vars.set(out.Name, out.Value)
	}
	if out.Name == "CDPATH" {
		w.moved(nil)
	}
	return out
}
