package policy

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Commands returns the simple commands that script would run in place, those
// inside wrappers and nested scripts included, in the order they are written.
// It reads what is written and predicts nothing: the value of a variable and
// what one command prints for another are not known. What cannot be told is a
// Command with Opaque set; past a limit the last one is OpaqueTooMuch. It never
// fails and takes time proportional to the script.
func Commands(script string, place Place) []Command {
	place = place.clean()
	r := &reader{}
	w := &walker{reader: r, place: place, dir: place.Dir}
	w.script(script)
	if r.over {
		r.out = append(r.out, Command{Opaque: OpaqueTooMuch, Line: 1, Text: oneLine(script[:min(len(script), 4*maxText)], maxText)})
	}
	return r.out
}

// reader is what all walkers of one script share.
type reader struct {
	out    []Command
	parsed int // bytes
	values int // bytes of the words that were put together
	over   bool
}

// walker reads one script: the given one, or one within it.
type walker struct {
	*reader
	place    Place
	dir      string          // where the next command runs; "" is not known
	funcs    map[string]bool // the script's functions; true of those that change the directory
	assigned map[string]bool // variables that the script assigns
	via      []string        // wrappers around this script
	line     int             // of the outer script, 0 where this is it
	scripts  int             // scripts around this one
	src      string
	level    int
	stdin    input // of what is walked now
}

// input is the standard input of a command.
type input struct {
	given bool     // by a pipe or a redirection
	from  []string // the programs that write it
	file  bool     // it is a file
	text  *string  // it is this text, which the script holds
}

// script walks a whole script.
func (w *walker) script(text string) {
	switch {
	case len(text) > MaxScript || nesting(text) > MaxNesting || w.scripts > MaxScripts || w.parsed+len(text) > maxParsed:
		w.over = true
		return
	case strings.ContainsAny(text, "\r\x00") || !utf8.ValidString(text):
		// Shells drop NULs, and carriage returns are white space for some of
		// the readers of this text and not for others.
		w.add(Command{Opaque: OpaqueSyntax, Text: oneLine(text, maxText)}, "")
		return
	case strings.ContainsFunc(text, reorders):
		w.add(Command{Opaque: OpaqueLooks, Text: oneLine(text, maxText)}, "")
	}
	w.parsed += len(text)
	w.src = text
	file, ok := parse(text)
	w.learn(file)
	w.stmts(file.Stmts)
	if !ok {
		// What comes before the error is run all the same.
		w.add(Command{Opaque: OpaqueSyntax, Text: oneLine(text, maxText)}, "")
	}
}

// parse returns the statements of text up to the first that is not sound. The
// parser is not ours, and the text anybody's: a panic in it is a text that
// cannot be read.
func parse(text string) (file *syntax.File, ok bool) {
	file = &syntax.File{}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
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
	return file, ok && (len(text)-len(strings.TrimRight(text, `\`)))%2 == 0 // a last backslash stands for nothing
}

// learn notes the functions and the assigned variables of file.
func (w *walker) learn(file *syntax.File) {
	w.funcs, w.assigned = map[string]bool{}, map[string]bool{}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				w.funcs[n.Name.Value] = moves(n.Body)
			}
		case *syntax.Assign:
			if n.Name != nil {
				w.assigned[n.Name.Value] = true
			}
		case *syntax.WordIter:
			w.assigned[n.Name.Value] = true
		}
		return true
	})
}

// moves reports a command below n that changes the directory.
func moves(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Subshell:
			return false
		case *syntax.CallExpr:
			found = found || len(n.Args) > 0 && slices.Contains([]string{"cd", "pushd", "popd", "eval", "source", "."}, n.Args[0].Lit())
		}
		return !found
	})
	return found
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

// at fills in where n stands.
func (w *walker) at(n syntax.Node) Command {
	c := Command{Line: w.line, Via: w.via}
	if from, to := int(n.Pos().Offset()), int(n.End().Offset()); from >= 0 && to <= len(w.src) && from < to {
		c.Text = oneLine(w.src[from:min(to, from+4*maxText)], maxText)
	}
	c.Line = cmp.Or(c.Line, int(n.Pos().Line()))
	return c
}

// add records a command that runs in dir.
func (w *walker) add(c Command, dir string) {
	if len(w.out) >= MaxCommands {
		w.over = true
		return
	}
	c.Line = cmp.Or(c.Line, max(1, w.line))
	if c.Via == nil {
		c.Via = w.via
	}
	c.dir = dir
	w.out = append(w.out, c)
}

func (w *walker) stmts(all []*syntax.Stmt) {
	for _, s := range all {
		w.stmt(s)
	}
}

// stmt walks a statement; w.dir becomes where the shell is after it.
func (w *walker) stmt(s *syntax.Stmt) {
	if w.level++; w.level > MaxNesting*8 {
		w.over = true
	}
	defer func() { w.level-- }()
	switch {
	case w.over:
	case s.Background || s.Coprocess:
		w.subshell(func() { w.command(s) })
	default:
		w.command(s)
	}
}

// subshell walks what cannot change this shell's directory.
func (w *walker) subshell(f func()) {
	dir := w.dir
	f()
	w.dir = dir
}

// branch walks what may or may not be run.
func (w *walker) branch(f func()) {
	dir := w.dir
	if f(); w.dir != dir {
		w.dir = ""
	}
}

// repeat walks the body of a loop or of a function, which may run from where
// it has gone itself.
func (w *walker) repeat(body syntax.Node, f func()) {
	w.branch(func() {
		if moves(body) {
			w.dir = ""
		}
		f()
	})
}

func (w *walker) command(s *syntax.Stmt) {
	if c, ok := s.Cmd.(*syntax.CallExpr); ok {
		w.call(c, s)
		return
	}
	stdin := w.stdin
	if len(s.Redirs) > 0 {
		at := w.at(s)
		in, _ := w.redirects(s.Redirs, &at)
		w.add(at, w.dir)
		if in.given {
			in.text = nil // one of several commands reads it
			w.stdin = in
		}
	}
	w.compound(s.Cmd)
	w.stdin = stdin
}

// compound walks everything but simple commands.
func (w *walker) compound(c syntax.Command) {
	switch c := c.(type) {
	case nil:
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.Subshell:
		w.subshell(func() { w.stmts(c.Stmts) })
	case *syntax.IfClause:
		w.stmts(c.Cond)
		w.branch(func() { w.stmts(c.Then) })
		if c.Else != nil {
			w.branch(func() { w.compound(c.Else) })
		}
	case *syntax.WhileClause:
		w.repeat(c, func() { w.stmts(c.Cond); w.stmts(c.Do) })
	case *syntax.ForClause:
		w.inside(c.Loop)
		w.repeat(c, func() { w.stmts(c.Do) })
	case *syntax.CaseClause:
		w.inside(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				w.inside(p)
			}
			w.branch(func() { w.stmts(item.Stmts) })
		}
	case *syntax.FuncDecl: // judged once, where it is declared
		stdin := w.stdin
		w.subshell(func() { w.repeat(c.Body, func() { w.stmt(c.Body) }) })
		w.stdin = stdin
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt)
		}
	case *syntax.CoprocClause:
		stdin := w.stdin
		w.stdin = input{given: true} // whatever the script writes to it
		w.subshell(func() { w.stmt(c.Stmt) })
		w.stdin = stdin
	case *syntax.DeclClause:
		w.declare(c)
	default: // [[ … ]], (( … )), let
		w.inside(c)
		w.add(w.at(c), w.dir)
	}
}

// binary walks a && b, a || b and a | b.
func (w *walker) binary(c *syntax.BinaryCmd) {
	if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
		w.stmt(c.X)
		w.branch(func() { w.stmt(c.Y) })
		return
	}
	mark := len(w.out)
	w.subshell(func() { w.stmt(c.X) })
	stdin := w.stdin
	w.stdin = input{given: true, from: programs(w.out[min(mark, len(w.out)):])}
	w.subshell(func() { w.stmt(c.Y) })
	w.stdin = stdin
}

// programs names the programs of commands, for those who read their output.
func programs(all []Command) []string {
	var names []string
	for _, c := range all {
		for _, n := range append([]string{c.Name}, c.From...) {
			if n != "" && len(names) < 50 && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// declare walks export, declare and their like.
func (w *walker) declare(c *syntax.DeclClause) {
	at := w.at(c)
	at.Path, at.Name = c.Variant.Value, c.Variant.Value
	for _, a := range c.Args {
		w.inside(a)
		if a.Name != nil {
			at.Env = append(at.Env, Assign{a.Name.Value, w.word(a.Value)})
			continue
		}
		for _, v := range w.words([]*syntax.Word{a.Value}) { // a flag, or a word that becomes an assignment
			at.Args = append(at.Args, v)
			if s, ok := v.Text(); !ok || strings.Contains(s, "=") {
				at.Env = append(at.Env, assignment(v))
			}
		}
	}
	w.add(at, w.dir)
}

// call walks a simple command.
func (w *walker) call(c *syntax.CallExpr, s *syntax.Stmt) {
	at := w.at(s)
	from := w.inside(c)
	in, more := w.redirects(s.Redirs, &at)
	if !in.given {
		in = w.stdin
	}
	for _, a := range c.Assigns {
		v := Assign{Name: a.Name.Value}
		if a.Array == nil && a.Index == nil {
			v.Value = w.word(a.Value)
		}
		at.Env = append(at.Env, v)
	}
	argv := w.words(c.Args)
	if len(argv) == 0 {
		w.add(at, w.dir)
		return
	}
	w.exec(invocation{argv: argv, cmd: at, in: in, from: append(from, more...), dir: w.dir, here: true})
}

// inside walks the commands within the words below n and returns the programs
// whose output n is made of.
func (w *walker) inside(n syntax.Node) []string {
	if word, ok := n.(*syntax.Word); ok && word == nil {
		return nil
	}
	mark := len(w.out)
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.subshell(func() { w.stmts(n.Stmts) })
			return false
		case *syntax.ProcSubst:
			stdin := w.stdin
			if n.Op == syntax.CmdOut {
				w.stdin = input{given: true}
			}
			w.subshell(func() { w.stmts(n.Stmts) })
			w.stdin = stdin
			return false
		}
		return true
	})
	return programs(w.out[min(mark, len(w.out)):])
}

// redirects notes the files that redirections read and write, and returns the
// standard input that they make and the programs within their words.
func (w *walker) redirects(all []*syntax.Redirect, c *Command) (in input, from []string) {
	for _, r := range all {
		names := w.inside(r.Word)
		next := input{given: true, from: names}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			names = append(names, w.inside(r.Hdoc)...)
			next = input{given: true, from: names}.holding(w.document(r.Hdoc), "")
		case syntax.WordHdoc:
			next = next.holding(w.word(r.Word), "\n")
		case syntax.RdrIn:
			c.Reads = append(c.Reads, w.words([]*syntax.Word{r.Word})...)
			next.file = len(names) == 0
		case syntax.RdrInOut:
			file := w.words([]*syntax.Word{r.Word})
			c.Reads, c.Writes = append(c.Reads, file...), append(c.Writes, file...)
		case syntax.DplIn:
		case syntax.DplOut:
			if s := r.Word.Lit(); s == "" || s != "-" && strings.Trim(strings.TrimSuffix(s, "-"), "0123456789") != "" {
				c.Writes = append(c.Writes, w.words([]*syntax.Word{r.Word})...)
			}
			next.given = false
		default:
			c.Writes = append(c.Writes, w.words([]*syntax.Word{r.Word})...)
			next.given = false
		}
		if next.given && (r.N == nil || r.N.Value == "0") {
			in = next
		}
		from = append(from, names...)
	}
	return in, from
}

// holding is in with a text, where that is known.
func (in input) holding(v Word, end string) input {
	if s, ok := v.Text(); ok {
		s += end
		in.text = &s
	}
	return in
}
