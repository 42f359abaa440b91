package scan

import (
	"path"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// moduleScan finds code of the product that ends the program when it is loaded,
// and so its tests. In Python and JavaScript what stands in functions and behind
// a look at who loads the file does not run then; of other languages lines
// that begin with it. Go is parsed (goCode).
type moduleScan struct {
	f *fileScan
	*dialect
	program bool // the file is started, not loaded
	depth   int  // of brackets
	within  int  // Python: indentation of the function around, JavaScript: depth around it; -1 for none
}

var (
	program    = lazyregexp.New(`(^|/)(s?bin|scripts?)/|(^|/)(__main__|setup)\.py$`)
	asProgram  = lazyregexp.New(`\b__name__\b|\brequire\.main\b|\bimport\.meta\b|\bmodule\.parent\b|\bprocess\.argv\b|\bsys\.argv\b`)
	pythonFunc = lazyregexp.New(`^\s*(async\s+)?def\b|\blambda\b`)
	jsFunc     = lazyregexp.New(`=>|\bfunction\b`)
	jsBlock    = lazyregexp.New(`^\s*(;*[!+(]+\s*(function\b|\(?\)\s*=>)|\}?\s*(if|else|try|catch|finally|for|while|do|switch)\b|\{)`) // which runs where it stands
	atOnce     = lazyregexp.New(`^(Kernel\.)?(exit|die)\b`)
)

func newModuleScan(f *fileScan) *moduleScan {
	d := dialectOf(f.lang.family)
	if d == nil || f.test || d.ends == nil {
		return nil
	}
	switch f.lang.family {
	case "python", "js", "ruby", "php":
		return &moduleScan{f: f, dialect: d, program: program().MatchString(f.name) || path.Ext(f.name) == ".pyi", within: -1}
	}
	return nil
}

// line takes a line of the file as it is now.
func (m *moduleScan) line(l *line, class []byte, within bool) {
	m.program = m.program || l.new == 1 && l.op == ' ' && strings.HasPrefix(l.text, "#!")
	plain, _ := stripped(l.text, class)
	if within || strings.TrimSpace(plain) == "" {
		return
	}
	var loaded bool
	switch m.f.lang.family {
	case "python":
		loaded = m.python(plain)
	case "js":
		loaded = m.js(plain)
	default:
		loaded = atOnce().MatchString(plain)
	}
	if l.op != '+' || m.program || m.f.whole > 0 { // the last is told already
		return
	}
	if loaded && found(m.ends(), l.text, class) || m.endsAll != nil && found(m.endsAll(), l.text, class) {
		m.f.s.add(candidate{Finding: m.f.at(TestWeakened, EndsTests, l)})
	}
}

// python reports whether a line runs when its file is loaded.
func (m *moduleScan) python(s string) bool {
	if m.depth == 0 {
		indent := indentOf(s)
		if indent <= m.within {
			m.within = -1
		}
		if m.within < 0 && (pythonFunc().MatchString(s) || asProgram().MatchString(s)) {
			m.within = indent
		}
	}
	m.depth = max(0, m.depth+brackets(s))
	return m.within < 0
}

// js does so for JavaScript.
func (m *moduleScan) js(s string) bool {
	before := m.depth
	m.depth = max(0, m.depth+brackets(s))
	if m.within >= 0 {
		if m.depth <= m.within {
			m.within = -1
		}
		return false
	}
	runs := jsBlock().MatchString(s) && !asProgram().MatchString(s)
	if m.depth > before && !runs {
		m.within = before
	}
	return runs || !jsFunc().MatchString(s) && !asProgram().MatchString(s)
}
