package scan

import (
	"cmp"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	goscanner "go/scanner"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// goSide is a file of Go as it was, or as it is.
type goSide struct {
	strings.Builder
	lines []line
	cut   bool  // not all of it is held
	odd   *line // that was added and may end the program
}

// maxGo is the most bytes of a file that are judged.
const maxGo = 256 << 10

func (g *goSide) add(l *line) {
	if l.op == '+' && g.odd == nil && (l.cut || oddities().MatchString(l.text)) {
		odd := *l
		g.odd = &odd
	}
	if g.cut = g.cut || l.cut || g.Len() > maxGo; !g.cut {
		g.WriteString(l.text + "\n")
		g.lines = append(g.lines, *l)
	}
}

// goDecider is what of a file of Go tests decides whether, and which, tests run.
type goDecider struct {
	why  Why
	text string // with what its names stand for
	at   *line  // that changed, nil for none
}

// decider is what stands on the lines from to to, 0-based.
func (g *goSide) decider(why Why, text string, from, to int) goDecider {
	d := goDecider{why: why, text: text}
	for i := from; i <= to && i < len(g.lines) && d.at == nil; i++ {
		if l := &g.lines[i]; l.op != ' ' && strings.TrimSpace(l.text) != "" {
			d.at = l
		}
	}
	return d
}

// deciders finds TestMain, whatever else has a *testing.M, what may end the program
// without an error, and what may change its arguments before the tests are chosen.
func (g *goSide) deciders() (all []goDecider) {
	if g.Len() == 0 && !g.cut {
		return nil
	}
	fset, file := g.parse()
	if file == nil { // what cannot be judged may decide
		why := Unreadable
		if mainWords().MatchString(g.String()) {
			why = TestMain
		}
		return []goDecider{g.decider(why, g.String(), 0, len(g.lines))}
	}
	packages, dots := imports(file)
	for _, c := range file.Comments {
		for _, line := range c.List {
			if constraint.IsGoBuild(line.Text) && line.Pos() < file.Package { // whether its tests are built at all
				at := fset.PositionFor(line.Pos(), false).Line - 1
				all = append(all, g.decider(BuildConstraint, line.Text, at, at))
			}
		}
	}
	for _, d := range file.Decls {
		why, uses := Why(""), strings.Join(dots, " ")
		fn, _ := d.(*ast.FuncDecl)
		if fn != nil && fn.Recv == nil && fn.Name.Name == "TestMain" {
			why = TestMain
		}
		isTest := fn != nil && fn.Recv == nil && testFunc().MatchString(fn.Name.Name)
		harmless := map[ast.Node]bool{}
		mention := func(n ast.Node, pkg, name string) {
			switch {
			case harmless[n]:
			case pkg == "testing" && name == "M":
				why = cmp.Or(why, TestMain)
			case endings().MatchString(pkg + "." + name), pkg == "os" && name == "Args" && !isTest, pkg == "flag" && (name == "Set" || name == "CommandLine") && !isTest:
				why = cmp.Or(why, EndsTests)
			}
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				harmless[n.Fun] = fails(n)
			case *ast.IndexExpr:
				if i, ok := n.Index.(*ast.BasicLit); ok && i.Value == "0" {
					harmless[n.X] = true // the program's name
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok {
					uses += " " + packages[x.Name]
					mention(n, packages[x.Name], n.Sel.Name)
				}
				return !harmless[n]
			case *ast.Ident:
				for _, pkg := range dots {
					mention(n, pkg, n.Name)
				}
			}
			return true
		})
		if why != "" {
			from, to := fset.PositionFor(d.Pos(), false), fset.PositionFor(d.End(), false)
			all = append(all, g.decider(why, g.String()[from.Offset:to.Offset]+uses, from.Line-1, to.Line-1))
		}
	}
	return all
}

// parse is nil for what cannot be judged.
func (g *goSide) parse() (*token.FileSet, *ast.File) {
	fset := token.NewFileSet()
	if g.cut || deep(g.String()) {
		return fset, nil
	}
	file, err := parser.ParseFile(fset, "", g.String(), parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return fset, nil
	}
	return fset, file
}

// fails reports a call whose only argument is the code of an error.
func fails(call *ast.CallExpr) bool {
	if len(call.Args) != 1 {
		return false
	}
	code, ok := call.Args[0].(*ast.BasicLit)
	if !ok || code.Kind != token.INT {
		return false
	}
	n, err := strconv.ParseInt(code.Value, 0, 64)
	return err == nil && n%256 != 0 // a byte of it is what is told
}

// deep reports that more brackets stand within each other than people write: the
// parser takes 2 KiB of stack for each.
func deep(code string) bool {
	var s goscanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(code)), []byte(code), nil, 0)
	for open := 0; open <= 1000; {
		switch _, t, _ := s.Scan(); t {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			open++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			open = max(0, open-1)
		case token.EOF:
			return false
		}
	}
	return true
}

var (
	mainWords = lazyregexp.New(`\bTestMain\b|\btesting\s*\.\s*M\b`)
	testFunc  = lazyregexp.New(`^(Test|Fuzz|Benchmark|Example)([^a-z]|$)`)
	endings   = lazyregexp.New(`^(os\.Exit|(syscall|golang\.org/x/sys/unix)\.(Exit|Exec|(Raw)?Syscall6?))$`)
	oddities  = lazyregexp.New(`\b(Exit|Exec|(Raw)?Syscall6?|C\._?exit)\b`)
)

// imports are the packages of a file by the names that they have in it, and those
// whose names need none.
func imports(file *ast.File) (named map[string]string, dots []string) {
	named = map[string]string{}
	for _, i := range file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		switch {
		case i.Name == nil:
			named[path.Base(p)] = p
		case i.Name.Name == ".":
			dots = append(dots, p)
		default:
			named[i.Name.Name] = p
		}
	}
	return named, dots
}

// judgeGo tells what decides over Go's tests now and did not before, or the other
// way round: each such change, for no rule could tell those that run fewer.
func (f *fileScan) judgeGo() {
	was, now := f.goWas.deciders(), f.goNow.deciders()
	var all []goDecider
	add := func(these, those []goDecider) {
		for _, d := range these {
			if !slices.ContainsFunc(those, func(o goDecider) bool { return o.why == d.why && o.text == d.text }) {
				all = append(all, d)
			}
		}
	}
	add(now, was)
	was = slices.DeleteFunc(was, func(d goDecider) bool { return d.why == BuildConstraint }) // without it more tests are built
	add(was, now)
	if f.goWas.Len() == 0 { // a new file takes no test away
		all = slices.DeleteFunc(all, func(d goDecider) bool { return d.why == BuildConstraint })
	}
	for _, why := range []Why{TestMain, Unreadable, EndsTests, BuildConstraint} { // once is enough, with a line if one tells
		all := slices.DeleteFunc(slices.Clone(all), func(d goDecider) bool { return d.why != why })
		if i := slices.IndexFunc(all, func(d goDecider) bool { return d.at != nil }); i >= 0 {
			f.s.add(candidate{Finding: f.at(TestWeakened, why, all[i].at)})
		} else if len(all) > 0 {
			f.s.add(candidate{Finding: Finding{Kind: TestWeakened, Why: why, Path: f.name}})
		}
	}
}
