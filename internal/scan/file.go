package scan

import (
	"path"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// fileScan looks at what a patch does to one file.
type fileScan struct {
	s       *scanner
	c       change
	name    string
	lang    *language // nil where its comments are not known
	test    bool      // code of tests
	theirs  bool      // generated, or copied from elsewhere: nobody here wrote it
	now     side
	was     side
	python  *pythonScan // nil for other languages
	tests   *testScan   // nil where there can be no tests
	module  *moduleScan // nil where nothing runs when it is loaded
	goWas   goSide
	goNow   goSide
	pack    packageFile
	decider *decider // whose lines are watched, nil for none
	whole   int      // number of the finding among those of ChecksConfig that is about the file, whatever its lines are; 0 for none
	section string   // of its file, "" where it is not known
	first   *line    // that was removed and is not blank
	wasSum  uint64   // of the removed lines of a test
	nowSum  uint64   // of the added ones
}

// side is a file before or after the change.
type side struct {
	lexer
	class    string // name of the last class that began, "" for none
	abstract bool   // which is there to be derived from
	function string // head of the last function
}

func newFileScan(s *scanner, c change) *fileScan {
	f := &fileScan{s: s, c: c, name: c.name}
	if c.submodule {
		return f
	}
	f.lang = languageOf(f.name)
	f.test, f.theirs = IsTest(f.name), foreign(f.name)
	if f.lang == nil {
		return f
	}
	f.now.language, f.was.language = f.lang, f.lang
	if f.lang.family == "python" {
		f.python = &pythonScan{f: f, stub: path.Ext(f.name) == ".pyi"}
	}
	f.module = newModuleScan(f)
	if d := dialectOf(f.lang.family); d != nil && (f.test || f.lang.family == "rust") {
		f.tests = newTestScan(f, d)
	}
	return f
}

// foreign reports whether a file was not written by hand here.
func foreign(name string) bool {
	for dir := range strings.SplitSeq(path.Dir(name), "/") {
		switch dir {
		case "vendor", "node_modules", "third_party", "thirdparty", "external", "bower_components":
			return true
		}
	}
	base := strings.ToLower(path.Base(name))
	ends := []string{".pb.go", "_pb2.py", "_pb2_grpc.py", ".min.js", ".min.css", "_generated.go", ".g.dart", ".bundle.js"}
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(base, end) })
}

// line looks at a line of the file, before or after the change.
func (f *fileScan) line(l *line) {
	f.pack.line(f, l)
	f.decide(l)
	f.sum(l)
	if f.lang == nil {
		f.unknown(l)
		return
	}
	golang := f.lang.family == "go"
	if l.op != '+' {
		f.before(l)
		if golang {
			f.goWas.add(l)
		}
	}
	if l.op != '-' {
		f.after(l)
		if golang {
			f.goNow.add(l)
		}
	}
}

var (
	classHead = lazyregexp.New(`^\s*((?:export|default|public|private|protected|internal|static|final|sealed|open|abstract|data|pub)\s+)*(class|module|interface|trait|protocol)\s+([\w:.]+)(.*)`)
	extends   = lazyregexp.New(`(?:\bextends\s+|\bimplements\s+|^\s*<\s*|\)?\s*:\s*(?:public\s+)?)([\w.]+)`)
	funcHead  = lazyregexp.New(`^(func|\s*(pub\s+)?fn|\s*def)\b`)
)

// enclosed notes which class or function the lines that follow are in.
func (d *side) enclosed(s string) {
	if anyOf(s, "class", "module", "inter", "trait", "protocol") {
		if m := classHead().FindStringSubmatch(s); m != nil {
			d.class = m[3]
			d.abstract = m[2] != "class" || strings.Contains(m[0][:len(m[0])-len(m[4])], "abstract") || standsIn().MatchString(m[3])
		}
	}
	if anyOf(s, "func", "def", "fn") && funcHead().MatchString(s) {
		d.function = s
	}
}

// before looks at a line of the file as it was.
func (f *fileScan) before(l *line) {
	class := f.was.next(l.text)
	if l.op == '-' && !f.theirs {
		if _, key, ok := f.placeholder(&f.was, l.text, class); ok {
			f.s.removed.put(key)
		}
		if f.python != nil {
			f.python.removed(l.text)
		}
	}
	if f.tests != nil {
		f.tests.before(l, class)
	}
}

// after looks at a line of the file as it is now.
func (f *fileScan) after(l *line) {
	within := f.now.in
	class := f.now.next(l.text)
	f.now.enclosed(l.text)
	f.derives(l.text)
	if l.op == '+' && !f.theirs {
		if why, key, ok := f.placeholder(&f.now, l.text, class); ok {
			c := candidate{Finding: f.at(Placeholder, why, l), moved: key}
			if why == NotImplemented {
				c.class = f.now.class
			}
			if why != NotImplemented || !f.excused() {
				f.s.add(c)
			}
		}
	}
	if f.python != nil && !f.theirs {
		f.python.line(l, class, within == literal)
	}
	if f.tests != nil {
		f.tests.after(l, class)
	}
	if f.module != nil {
		f.module.line(l, class, within == literal)
	}
}

// excused reports whether code that says it is not written may say so: in a fake
// of a test, in what is there to be derived from.
func (f *fileScan) excused() bool {
	return f.test || f.now.abstract || standsIn().MatchString(receiver(f.now.function))
}

// receiver is the type that a function of Go belongs to, or its name.
func receiver(head string) string {
	head = strings.TrimPrefix(head, "func ")
	if in, _, ok := strings.Cut(strings.TrimPrefix(head, "("), ")"); ok && strings.HasPrefix(head, "(") {
		return in
	}
	name, _, _ := strings.Cut(strings.TrimSpace(head), "(")
	return name
}

// derives notes the classes that others extend.
func (f *fileScan) derives(s string) {
	if !strings.Contains(s, "class ") || len(f.s.bases) >= maxBases {
		return
	}
	m := classHead().FindStringSubmatch(s)
	if m == nil {
		return
	}
	for _, base := range extends().FindAllStringSubmatch(m[4], 4) {
		f.s.bases[base[1]] = true
	}
}

// placeholder finds what stands for work that was not done on a line, and what a
// line that only moved has in common with it.
func (f *fileScan) placeholder(d *side, s string, class []byte) (why Why, key uint64, ok bool) {
	for i := 0; i < len(class); {
		if class[i] != comment {
			i++
			continue
		}
		j := i
		for j < len(class) && class[j] == comment {
			j++
		}
		// In a table of tests such words say what is expected.
		beside := f.test && strings.TrimSpace(s[:i]) != ""
		if why, ok := remark(s[i:j]); ok && (why == Marker || f.lang.family != "prose" && !beside) {
			return why, hash(strings.Trim(s[i:j], decoration)), true
		}
		i = j
	}
	switch {
	case f.lang.dots && dotsOnly().MatchString(s) && class[strings.IndexAny(s, ".…")] == code && !f.test:
		return Elision, hash(s), true
	case undone(f.lang.family, s, class), f.lang.family == "ruby" && f.rubyRaise(d, s):
		return NotImplemented, hash(s), true
	}
	return "", 0, false
}

// rubyRaise finds NotImplementedError outside of what is there to be derived from.
func (f *fileScan) rubyRaise(d *side, s string) bool {
	m := notImpl().FindStringSubmatch(s)
	if m == nil || d.abstract || excused().MatchString(s) {
		return false
	}
	said := strings.Trim(m[1], " ,()")
	return said == "" || promises().MatchString(said)
}

// unknown looks at a line of a language that is not known: only what is sure.
func (f *fileScan) unknown(l *line) {
	if l.op == ' ' || f.theirs {
		return
	}
	s := strings.TrimSpace(l.text)
	if !anyPrefix(s, "//", "#", "/*", "--", ";;", "%", "<!--") || !elided(s) {
		return
	}
	switch l.op {
	case '-':
		f.s.removed.put(hash(strings.Trim(s, decoration)))
	case '+':
		f.s.add(candidate{Finding: f.at(Placeholder, Elision, l), moved: hash(strings.Trim(s, decoration))})
	}
}

// at is a finding about a line.
func (f *fileScan) at(k Kind, why Why, l *line) Finding {
	n := l.new
	if l.op == '-' {
		n = l.old
	}
	return Finding{Kind: k, Why: why, Path: f.name, Line: n, Old: l.op == '-', Text: excerpt(l.text)}
}

// sum takes note of the contents of files of tests, to know those that moved.
func (f *fileScan) sum(l *line) {
	switch {
	case !f.test && !f.c.deleted:
	case l.op == '-':
		f.wasSum = f.wasSum*31 + hash(l.text)
		if f.first == nil && strings.TrimSpace(l.text) != "" {
			first := *l
			f.first = &first
		}
	case l.op == '+':
		f.nowSum = f.nowSum*31 + hash(l.text)
	}
}

// end looks at what only the whole of the file shows.
func (f *fileScan) end() {
	if f.python != nil {
		f.python.close(-1)
	}
	if f.tests != nil {
		f.tests.decideSkip(false)
	}
	if !f.c.link {
		f.s.goWas.put(f, &f.goWas)
		f.s.goNow.put(f, &f.goNow)
	}
	if !f.test {
		return
	}
	if !f.c.link { // which is told for being one
		f.judgeGo()
	}
	if f.c.created && f.nowSum != 0 {
		f.s.history.created.put(f.nowSum)
	}
	declared, removed := 0, 0
	if f.tests != nil {
		declared, removed = f.tests.declared, f.tests.removed
		f.s.history.compared(f, f.tests)
	}
	helper := declared == 0 && removed == 0 && strings.HasSuffix(f.name, ".go") // go test knows tests by their functions
	if f.c.deleted && !helper && (declared > 0 || removed > 0 || ownTest(f.name) || f.lang == nil) {
		f.s.history.deleted(f, declared)
	}
}
