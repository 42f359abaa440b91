package checks

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// goTest follows the plain output of go test, with -v or without.
type goTest struct {
	sink *sink

	tests   []goResult // failed tests of the package that is being told
	open    int        // the test in tests that lines belong to, -1 none
	verbose map[string]*excerpt
	running string // the test whose lines come now (-v)

	build   map[string]*excerpt // by package, what the compiler said
	header  string              // the package that compiler messages are about
	panics  *excerpt
	race    *excerpt
	inRace  bool
	timeout bool
	stuck   []string
	rest    rest // failed tests beside tests
	okays   int
	passes  int
	exit    string // the last "exit status"
	strays  int    // lines in a row that are not of the header or the test that is open
	inner   bool   // of -json, which tells of builds itself
}

type goResult struct {
	name  string
	lines *excerpt
	depth int
}

// excerpt is a bounded list of lines.
type excerpt struct {
	lines []string
	size  int
}

// full reports that add changes nothing more. None is not full.
func (e *excerpt) full() bool {
	return e != nil && (2*MaxExcerpt-e.size < 10 || len(e.lines) > 200)
}

func (e *excerpt) add(line string) {
	if e.full() {
		return
	}
	line = clip(line, 2*MaxExcerpt-e.size)
	e.lines = append(e.lines, line)
	e.size += len(line) + 1
}

func (e *excerpt) text() string {
	if e == nil {
		return ""
	}
	return strings.Join(e.lines, "\n")
}

var (
	goEnd     = lazyregexp.New(`^(\s*)--- (FAIL|PASS|SKIP|BENCH): (\S.*?) \(\d[\d.]*s\)$`)
	goRun     = lazyregexp.New(`^=== (RUN|CONT|NAME|PAUSE)\s+(\S.*)$`)
	goPackage = lazyregexp.New(`^(FAIL|ok)[ \t]+(\S+)(?:\s+(.*))?$`)
	goHeader  = lazyregexp.New(`^# (\S+)(?: \[\S+\])?$`)
	goPlace   = lazyregexp.New(`^\s*(?:vet: )?([^\s:][^:]*\.\w+):(\d+)(?::\d+)?:? ?(.*)$`)
	goFrame   = lazyregexp.New(`^\t(\S.*\.go):(\d+)(?: \+0x[0-9a-f]+)?$`)
	goStuck   = lazyregexp.New(`^\t\t(\S+) \([\d.hms]+\)$`)
	goCaller  = lazyregexp.New(`^(\S+)\.(Test\w+|Fuzz\w+|Example\w*)(?:\.func[\d.]+)?\(`)
)

func (g *goTest) read(line string) {
	if strings.HasPrefix(line, "{\"") {
		return // of -json
	}
	switch {
	case line == "==================":
		g.inRace = false
		return
	case line == "WARNING: DATA RACE":
		g.sink.seen("go test")
		g.race, g.inRace = &excerpt{}, true
		g.race.add(line)
		return
	case g.inRace:
		g.race.add(line)
		return
	}
	if strings.Contains(line, "--- ") {
		if m := goEnd().FindStringSubmatch(line); m != nil {
			g.result(m[2], m[3], len(m[1]))
			return
		}
	}
	if strings.HasPrefix(line, "=== ") {
		if m := goRun().FindStringSubmatch(line); m != nil {
			g.running, g.open = m[2], -1
			return
		}
	}
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		g.panics = &excerpt{}
		g.timeout = strings.HasPrefix(line, "panic: test timed out after")
		g.panics.add(line)
		return
	}
	if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "ok") {
		if m := goPackage().FindStringSubmatch(line); m != nil && (strings.Contains(line, "\t") || m[1] == "FAIL" && strings.HasPrefix(m[3], "[")) {
			g.endPackage(m[1], m[2], m[3])
			return
		}
	}
	if strings.HasPrefix(line, "# ") && g.panics == nil {
		if m := goHeader().FindStringSubmatch(line); m != nil {
			g.header = m[1]
			return
		}
	}
	g.other(line)
}

// maxStrays is how many lines of something else may come between those of a
// header or of a test.
const maxStrays = 200

// other takes a line that belongs to what came before.
func (g *goTest) other(line string) {
	if g.strays++; g.strays > maxStrays {
		g.header, g.open, g.strays = "", -1, 0
	}
	switch {
	case strings.HasPrefix(line, "exit status "):
		g.exit = line
		g.open, g.running = -1, ""
	case line == "FAIL" || line == "PASS" || strings.HasPrefix(line, "coverage: "):
		g.open, g.running = -1, ""
	case g.panics != nil:
		if m := goStuck().FindStringSubmatch(line); m != nil && g.timeout && len(g.stuck) < maxOpen {
			g.stuck = append(g.stuck, m[1])
		}
		g.panics.add(line)
	case g.header != "" && (isGoPlace(line) || strings.HasPrefix(line, "\t")):
		if g.build == nil {
			g.build = map[string]*excerpt{}
		}
		if g.build[g.header] == nil {
			if len(g.build) >= maxOpen {
				return
			}
			g.build[g.header] = &excerpt{}
		}
		g.strays = 0
		g.build[g.header].add(line)
	case g.open >= 0 && g.open < len(g.tests) && (strings.HasPrefix(line, "    ") || line == ""):
		g.strays = 0
		g.tests[g.open].lines.add(trimIndent(line, g.tests[g.open].depth+4))
	case g.running != "" && line != "":
		if g.verbose == nil || len(g.verbose) > maxOpen {
			g.verbose = map[string]*excerpt{}
		}
		if g.verbose[g.running] == nil {
			g.verbose[g.running] = &excerpt{}
		}
		g.verbose[g.running].add(strings.TrimPrefix(line, "    "))
	}
}

// isGoPlace is goPlace().MatchString, which is dear, for lines of which most have
// no place.
func isGoPlace(line string) bool {
	i := strings.IndexByte(line, ':')
	return i >= 0 && strings.IndexByte(line, '.') >= 0 && goPlace().MatchString(line)
}

func trimIndent(line string, n int) string {
	for n > 0 && strings.HasPrefix(line, " ") {
		line = line[1:]
		n--
	}
	return line
}

// result is a line --- FAIL, PASS or SKIP.
func (g *goTest) result(what, name string, depth int) {
	g.sink.seen("go test")
	g.header = ""
	lines := g.verbose[name]
	delete(g.verbose, name)
	g.open, g.running = -1, ""
	switch what {
	case "PASS":
		g.passes++
		g.sink.listed = true
	case "SKIP":
		g.sink.skipped++
	case "FAIL":
		if lines == nil {
			lines = &excerpt{}
		}
		if g.race != nil {
			lines.add(own(g.race.lines))
			g.race = nil
		}
		g.tests = append(g.tests, goResult{name: name, lines: lines, depth: depth})
		// Of those past the bound that were told whole, no more than the name is kept.
		if i := len(g.tests) - 2; i >= MaxFailures+maxOpen {
			if !g.parent(i) {
				g.rest.add(g.tests[i].name)
			}
			g.tests = slices.Delete(g.tests, i, i+1)
		}
		g.open = len(g.tests) - 1
	}
}

// endPackage is the line of a package: what came before was its own.
func (g *goTest) endPackage(what, name, rest string) {
	g.sink.seen("go test")
	if !strings.Contains(rest, "[no tests to run]") && !strings.HasPrefix(rest, "[") {
		g.sink.packages++
		if what == "ok" {
			g.okays++
		}
	}
	if what == "ok" {
		g.reset()
		return
	}
	before := g.sink.told
	if strings.HasPrefix(rest, "[build failed]") || strings.HasPrefix(rest, "[setup failed]") {
		e := g.build[name]
		delete(g.build, name)
		if e == nil {
			e = g.build[strings.TrimSuffix(name, "_test")]
		}
		if g.inner {
			return
		}
		f := Failure{Name: name + " " + rest, Message: strings.Trim(rest, "[]"), Excerpt: e.text()}
		f.locate(e, false)
		g.sink.add(f)
		return // other packages' tests may be around it
	}
	g.tell(name + ".")
	g.rest.tell(g.sink, name+".")
	g.whole(name, before)
	g.reset()
}

// tell records the tests that failed, with a name before theirs.
func (g *goTest) tell(before string) {
	for i, t := range g.tests {
		if g.parent(i) {
			continue
		}
		f := Failure{Name: before + t.name, Excerpt: t.lines.text()}
		f.locate(t.lines, true)
		if g.panics != nil && i == len(g.tests)-1 {
			g.addPanic(&f)
		}
		g.sink.add(f)
	}
}

// whole records what is the package's failure and no test's.
func (g *goTest) whole(name string, before int) {
	switch {
	case g.timeout && g.panics != nil:
		for _, t := range g.stuck {
			f := Failure{Name: name + "." + t, Message: strings.TrimPrefix(g.panics.lines[0], "panic: "), Excerpt: own(g.panics.lines)}
			g.sink.add(f)
		}
		if len(g.stuck) > 0 {
			return
		}
		fallthrough
	case g.panics != nil && len(g.tests) == 0:
		f := Failure{Name: name + " [panic]"}
		g.addPanic(&f)
		for _, l := range g.panics.lines {
			if m := goCaller().FindStringSubmatch(l); m != nil {
				f.Name = name + "." + m[2]
				break
			}
		}
		g.sink.add(f)
	case g.race != nil:
		f := Failure{Name: name + " [race]", Message: "data race", Excerpt: own(g.race.lines)}
		f.locateFrame(g.race.lines)
		g.sink.add(f)
	case g.sink.told == before:
		g.sink.add(Failure{Name: name + " [package]", Message: strings.TrimSuffix("the package failed, no test did: "+g.exit, ": ")})
	}
}

// parent reports a test that failed only because one within it did.
func (g *goTest) parent(i int) bool {
	t := g.tests[i]
	if strings.TrimSpace(t.lines.text()) != "" {
		return false
	}
	for _, o := range g.tests {
		if strings.HasPrefix(o.name, t.name+"/") {
			return true
		}
	}
	n := len(g.rest.names) // -json tells them before it
	return n > 0 && strings.HasPrefix(g.rest.names[n-1], t.name+"/")
}

func (g *goTest) addPanic(f *Failure) {
	f.Message = g.panics.lines[0]
	f.File, f.Line = "", 0
	f.locateFrame(g.panics.lines)
	f.Excerpt = strings.TrimLeft(f.Excerpt+"\n"+own(g.panics.lines), "\n")
}

func (g *goTest) reset() {
	g.tests, g.open, g.running, g.verbose = nil, -1, "", nil
	g.rest = rest{}
	g.panics, g.race, g.inRace, g.timeout, g.stuck, g.header, g.exit = nil, nil, false, false, nil, "", ""
}

func (g *goTest) end() {
	g.tell("") // of a package whose line never came: it was killed
	if g.passes > 0 {
		g.sink.passed += g.passes
	} else {
		g.sink.passed += g.okays
	}
}

// locate takes place and reason from the first line that tells a place, or from
// the last: a test logs before it fails. Without a place, the first line is the
// reason.
func (f *Failure) locate(e *excerpt, last bool) {
	if e == nil {
		return
	}
	if len(e.lines) > 0 && strings.HasPrefix(e.lines[0], "WARNING: DATA RACE\n") {
		f.Message = "data race"
		f.locateFrame(strings.Split(e.lines[0], "\n"))
		return
	}
	for i, l := range e.lines {
		m := goPlace().FindStringSubmatch(l)
		if m == nil {
			continue
		}
		if strings.Contains(m[3], "race detected during execution") {
			continue
		}
		f.File, f.Message = m[1], m[3]
		f.Line, _ = strconv.Atoi(m[2])
		if f.Message == "" && i+1 < len(e.lines) {
			f.Message = testifyReason(e.lines[i+1:])
		}
		if !last {
			return
		}
	}
	if f.File != "" {
		return
	}
	for _, l := range e.lines {
		if strings.TrimSpace(l) != "" {
			f.Message = l
			return
		}
	}
}

// testifyReason finds the reason in a report of several labelled lines.
func testifyReason(lines []string) string {
	for i, l := range lines {
		if _, reason, found := strings.Cut(l, "Error:"); found {
			reason = strings.TrimSpace(reason)
			for _, more := range lines[i+1 : min(i+4, len(lines))] {
				if strings.Contains(more, "Test:") || strings.Contains(more, "Messages:") {
					break
				}
				reason += " " + strings.TrimSpace(more)
			}
			return reason
		}
	}
	if len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// frame matches the line of a place in a stack, as panics and races write it.
func frame(line string) []string {
	return goFrame().FindStringSubmatch(strings.Replace(line, "      /", "\t/", 1))
}

// goOwn reports a file of Go's library that stacks lead through.
func goOwn(file string) bool {
	return slices.ContainsFunc([]string{"/src/runtime/", "/src/testing/", "/src/internal/", "/src/sync/", "/src/time/"}, func(dir string) bool { return strings.Contains(file, dir) })
}

// own returns a stack without the frames of Go's library.
func own(lines []string) string {
	var out []string
	for i, l := range lines {
		if m := frame(l); m != nil && goOwn(m[1]) {
			continue
		}
		if i+1 < len(lines) {
			if m := frame(lines[i+1]); m != nil && goOwn(m[1]) {
				continue
			}
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

// locateFrame takes the place from the first frame outside Go's own code.
func (f *Failure) locateFrame(lines []string) {
	for _, l := range lines {
		m := frame(l)
		if m == nil || goOwn(m[1]) {
			continue
		}
		f.File = m[1]
		f.Line, _ = strconv.Atoi(m[2])
		return
	}
}

// goJSON follows the output of go test -json.
type goJSON struct {
	sink   *sink
	inner  map[string]*goTest // a plain reader for each package
	builds map[string]*excerpt
}

type goEvent struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
}

func (g *goJSON) read(line string) {
	if !strings.HasPrefix(line, "{\"") || !strings.Contains(line, `"Action":"`) {
		return
	}
	var e goEvent
	if json.Unmarshal([]byte(line), &e) != nil || e.Package == "" && e.ImportPath == "" {
		return
	}
	g.sink.seen("go test")
	switch e.Action {
	case "build-output":
		if g.builds == nil {
			g.builds = map[string]*excerpt{}
		}
		if g.builds[e.ImportPath] == nil && len(g.builds) < maxOpen {
			g.builds[e.ImportPath] = &excerpt{}
		}
		if b := g.builds[e.ImportPath]; b != nil && !strings.HasPrefix(e.Output, "# ") {
			b.add(clean([]byte(strings.TrimRight(e.Output, "\n"))))
		}
	case "output":
		if in := g.of(e.Package); in != nil {
			for _, l := range strings.Split(strings.TrimRight(e.Output, "\n"), "\n") {
				if e.Test != "" && in.panics == nil && in.running != e.Test && !strings.Contains(l, "--- ") {
					in.running, in.open = e.Test, -1
				}
				if !strings.HasPrefix(l, "{\"") {
					in.read(clean([]byte(l)))
				}
			}
		}
	case "fail":
		if e.Test == "" && e.FailedBuild != "" {
			b := g.builds[e.FailedBuild]
			f := Failure{Name: e.Package + " [build failed]", Message: "build failed", Excerpt: b.text()}
			f.locate(b, false)
			g.sink.add(f)
			delete(g.inner, e.Package)
			return
		}
		if e.Test == "" {
			g.close(e.Package)
		}
	case "pass":
		if e.Test == "" {
			g.close(e.Package)
		}
	case "skip":
		if e.Test == "" {
			delete(g.inner, e.Package) // no test files
		}
	}
}

// of returns the reader of a package's output.
func (g *goJSON) of(pkg string) *goTest {
	if g.inner == nil {
		g.inner = map[string]*goTest{}
	}
	if g.inner[pkg] == nil {
		if len(g.inner) >= maxOpen {
			return nil
		}
		g.inner[pkg] = &goTest{sink: g.sink, open: -1, inner: true}
	}
	return g.inner[pkg]
}

func (g *goJSON) close(pkg string) {
	if in := g.inner[pkg]; in != nil {
		in.end()
		delete(g.inner, pkg)
	}
}

func (g *goJSON) end() {
	for _, name := range slices.Sorted(maps.Keys(g.inner)) {
		g.close(name)
	}
}
