package scan

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// goCode is what the Go files of a patch declare, as far as it may end the program
// before its tests run: by directory and name, ".Name" for a method, "name()" for
// a variable that is called.
type goCode struct {
	decls map[uint64][]goDecl // by the hash of that
	size  int
}

// maxCalls is how many calls are remembered of a patch.
const maxCalls = 1_000_000

// goDecl is a function, or the value of a variable.
type goDecl struct {
	root  bool     // it runs before the tests, or ends the program whoever calls it
	calls []uint64 // keys of goCode
	ends  *Finding // the program, without an error
	sum   uint64   // of its text
}

var (
	endsAll     = lazyregexp.New(`^((syscall|golang\.org/x/sys/unix)\.(Exit|SYS_EXIT(_GROUP)?)|C\.(_?exit|_Exit))$`) // which package testing does not notice
	endsProduct = lazyregexp.New(`^(os\.Exit|(syscall|golang\.org/x/sys/unix)\.(Exec|SYS_EXECVE(AT)?))$`)
	testFlag    = lazyregexp.New("^[\"`]-{0,2}test\\.(run|skip|list)\\b")
)

// goEnd tells one end from another.
type goEnd struct {
	path string
	sum  uint64 // of the declaration that it stands in
}

// put adds what a file declares. Of tests it takes what they call alone: how they
// end is judged as such.
func (c *goCode) put(f *fileScan, g *goSide) {
	if g.Len() == 0 && !g.cut || strings.Contains("/"+f.name, "/testdata/") { // which go passes over
		return
	}
	fset, file := g.parse()
	dir := path.Dir(f.name) + ":"
	if file == nil {
		if g.odd != nil && !f.test {
			found := f.at(TestWeakened, EndsTests, g.odd)
			c.decls[hash(dir)] = append(c.decls[hash(dir)], goDecl{root: true, ends: &found, sum: hash(g.odd.text)})
		}
		return
	}
	named, dots := imports(file)
	add := func(key string, root bool, n ast.Node, within bool) {
		w := goWalk{dir: dir, named: named, dots: dots, harmless: map[ast.Node]bool{}, within: within}
		ast.Walk(&w, n)
		slices.Sort(w.calls)
		d := goDecl{root: root || w.all, calls: slices.Clone(slices.Compact(w.calls))}
		if c.size += 1 + len(d.calls); c.size > maxCalls { // who calls what is not known from here on
			f.s.truncated, d = true, goDecl{root: true}
		}
		if w.ends && !f.test {
			from, to := fset.PositionFor(n.Pos(), false), fset.PositionFor(n.End(), false)
			at := g.decider(EndsTests, g.String()[from.Offset:to.Offset], from.Line-1, to.Line-1)
			found := Finding{Kind: TestWeakened, Why: EndsTests, Path: f.name}
			if at.at != nil {
				found = f.at(TestWeakened, EndsTests, at.at)
			}
			d.ends, d.sum = &found, hash(at.text)
		}
		if d.ends != nil || len(d.calls) > 0 {
			h := hash(dir + key)
			c.decls[h] = append(c.decls[h], d)
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			key := d.Name.Name
			if d.Recv != nil {
				key = "." + key
			}
			if d.Body != nil {
				add(key, key == "init", d.Body, true)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok || d.Tok != token.VAR {
					continue
				}
				for i, value := range v.Values {
					add("var", true, value, false)
					add(v.Names[min(i, len(v.Names)-1)].Name+"()", false, value, true)
				}
			}
		}
	}
}

// goWalk visits what runs of a body, or of the value of a variable: there calls
// alone, with the functions that they are given.
type goWalk struct {
	dir       string
	named     map[string]string
	dots      []string
	harmless  map[ast.Node]bool
	within    bool // what runs
	calls     []uint64
	ends, all bool
}

func (w *goWalk) mention(pkg, name string) {
	full := pkg + "." + name
	w.all = w.all || endsAll().MatchString(full)
	w.ends = w.ends || w.all || w.within && endsProduct().MatchString(full)
}

func (w *goWalk) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.CallExpr:
		if w.harmless[n.Fun] = fails(n); !w.harmless[n.Fun] {
			if name, ok := n.Fun.(*ast.Ident); ok {
				w.calls = append(w.calls, hash(w.dir+name.Name+"()"))
			}
		}
		if !w.within {
			w.in(n.Fun)
			for _, a := range n.Args {
				w.in(a)
			}
			return nil
		}
	case *ast.FuncLit:
		if !w.within { // that is kept, not called
			return nil
		}
	case *ast.AssignStmt:
		for _, x := range n.Lhs {
			if s, ok := x.(*ast.SelectorExpr); ok && s.Sel.Name == "Args" {
				x, _ := s.X.(*ast.Ident)
				w.ends = w.ends || x != nil && w.named[x.Name] == "os"
			}
		}
	case *ast.BasicLit:
		w.ends = w.ends || w.within && testFlag().MatchString(n.Value)
	case *ast.SelectorExpr:
		x, _ := n.X.(*ast.Ident)
		switch {
		case w.harmless[n]:
		case x != nil && w.named[x.Name] != "":
			pkg := w.named[x.Name]
			w.mention(pkg, n.Sel.Name)
			for dir, more := pkg, true; more; { // some end of its path is the directory
				w.calls = append(w.calls, hash(dir+":"+n.Sel.Name))
				_, dir, more = strings.Cut(dir, "/")
			}
		case w.within:
			w.calls = append(w.calls, hash(w.dir+"."+n.Sel.Name))
		}
		ast.Walk(w, n.X)
		return nil
	case *ast.Ident:
		if !w.harmless[n] {
			for _, pkg := range w.dots {
				w.mention(pkg, n.Name)
			}
			if w.within {
				w.calls = append(w.calls, hash(w.dir+n.Name))
			}
		}
	}
	return w
}

func (w *goWalk) in(n ast.Node) {
	was := w.within
	w.within = true
	ast.Walk(w, n)
	w.within = was
}

// reached are the ends that may come before the tests, by what they are.
func (c *goCode) reached() map[goEnd]Finding {
	all, seen := map[goEnd]Finding{}, map[uint64]bool{}
	var todo []goDecl
	for _, decls := range c.decls {
		for _, d := range decls {
			if d.root {
				todo = append(todo, d)
			}
		}
	}
	for len(todo) > 0 {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if d.ends != nil {
			all[goEnd{d.ends.Path, d.sum}] = *d.ends
		}
		for _, key := range d.calls {
			if seen[key] {
				continue
			}
			seen[key] = true
			todo = append(todo, c.decls[key]...)
		}
	}
	return all
}

// ends tells which ends of the program came with the patch, once for a file.
func (s *scanner) ends() {
	was := s.goWas.reached()
	var all []Finding
	for key, f := range s.goNow.reached() {
		if _, old := was[key]; !old {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, compare)
	for _, f := range slices.CompactFunc(all, func(a, b Finding) bool { return a.Path == b.Path }) {
		s.add(candidate{Finding: f})
	}
}
