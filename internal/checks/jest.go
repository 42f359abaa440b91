package checks

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// jest follows the output of jest.
type jest struct {
	sink  *sink
	file  string
	block *jsBlock
}

// jsBlock is the report of one failure.
type jsBlock struct {
	file, name string
	lines      excerpt
	at         string // a place in the test's own file, as told
}

var (
	jestFile  = lazyregexp.New(`^(FAIL|PASS) +(?:\S+ +)??(\S+\.[cm]?[jt]sx?)(?: \([\d.]+ m?s\))?$`)
	jestBlock = lazyregexp.New(`^  ● (.+)$`)
	jestTally = lazyregexp.New(`^Tests: +(.*\d+ total)$`)
	jsCount   = lazyregexp.New(`(\d+) (failed|passed|skipped|todo)`)
	jsPlace   = lazyregexp.New(`\(?((?:[A-Za-z]:)?[^\s():]+\.[cm]?[jt]sx?):(\d+):\d+\)?$`)
)

func (j *jest) read(line string) {
	if strings.HasPrefix(line, "FAIL ") || strings.HasPrefix(line, "PASS ") {
		if m := jestFile().FindStringSubmatch(line); m != nil {
			j.close()
			j.file = ""
			if m[1] == "FAIL" {
				j.file = m[2]
			}
			j.sink.seen("jest")
			return
		}
	}
	if line == "Summary of all failing tests" {
		j.close()
		return
	}
	if strings.HasPrefix(line, "Tests:") {
		if m := jestTally().FindStringSubmatch(line); m != nil {
			j.close()
			j.sink.seen("jest")
			count(j.sink, m[1])
			return
		}
	}
	if j.file == "" {
		return
	}
	if m := place(jestBlock, "●", line); m != nil {
		j.close()
		if m[1] != "Console" {
			j.block = &jsBlock{file: j.file, name: m[1]}
		}
		return
	}
	if strings.HasPrefix(line, "Test Suites: ") || strings.HasPrefix(line, "  ✓ ") || strings.HasPrefix(line, "  ✕ ") {
		j.close()
		return
	}
	if j.block != nil {
		j.block.add(strings.TrimPrefix(line, "    "))
	}
}

// place is FindStringSubmatch for lines of which most have none of the parts, one
// of which all that match have.
func place(re func() *regexp.Regexp, part, line string, others ...string) []string {
	if strings.Contains(line, part) || slices.ContainsFunc(others, func(o string) bool { return strings.Contains(line, o) }) {
		return re().FindStringSubmatch(line)
	}
	return nil
}

// count adds the numbers of a tally.
func count(s *sink, text string) {
	for _, m := range jsCount().FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		switch m[2] {
		case "passed":
			s.passed += n
		case "failed":
			s.failed += n
		default:
			s.skipped += n
		}
	}
}

func (b *jsBlock) add(line string) {
	if strings.TrimSpace(line) == "" && len(b.lines.lines) == 0 || strings.Contains(line, "node_modules/") || strings.Contains(line, "(node:internal") {
		return
	}
	if m := place(jsPlace, "s:", line, "x:"); m != nil && (b.at == "" || !strings.HasSuffix(b.at, b.file) && strings.HasSuffix(m[1], b.file)) {
		b.at = m[1] + ":" + m[2]
	}
	b.lines.add(line)
}

// failure makes the block a failure named file › name.
func (b *jsBlock) failure() Failure {
	f := Failure{Name: b.file + " › " + b.name, File: b.file, Excerpt: b.lines.text()}
	if i := strings.LastIndexByte(b.at, ':'); i > 0 {
		f.File = b.at[:i]
		f.Line, _ = strconv.Atoi(b.at[i+1:])
	}
	f.Message = jsReason(b.lines.lines)
	return f
}

// jsReason is the first line, with what was expected and received.
func jsReason(lines []string) string {
	reason := ""
	for _, l := range lines {
		l = strings.TrimSpace(l)
		switch {
		case l == "":
		case reason == "":
			reason = l
		case strings.HasPrefix(l, "Expected") || strings.HasPrefix(l, "Received"):
			reason += "; " + l
		}
	}
	return reason
}

func (j *jest) close() {
	if j.block != nil { // also one that was told before: it may have been cut from there
		j.sink.add(j.block.failure())
	}
	j.block = nil
}

func (j *jest) end() { j.close() }

// vitest follows the output of vitest.
type vitest struct {
	sink  *sink
	block *jsBlock
}

var (
	vitestBlock = lazyregexp.New(`^ ?(?:FAIL|×) +(?:\|[^|]+\| +)?(\S+\.[cm]?[jt]sx?)(?: > (.+?))?(?: \[ (\S+) \])?$`)
	vitestTally = lazyregexp.New(`^ +Tests +(.*\(\d+\))$`)
	vitestPlace = lazyregexp.New(`^ ❯ (?:.* )?(\S+\.[cm]?[jt]sx?):(\d+):\d+$`)
)

func (v *vitest) read(line string) {
	if strings.HasPrefix(line, " FAIL ") {
		if m := vitestBlock().FindStringSubmatch(line); m != nil {
			v.close()
			v.sink.seen("vitest")
			v.block = &jsBlock{file: m[1], name: m[2]}
			if m[2] == "" {
				v.block.name = "the file"
			}
			return
		}
	}
	if strings.HasPrefix(line, " ") && strings.Contains(line, " Tests ") {
		if m := vitestTally().FindStringSubmatch(line); m != nil {
			v.close()
			v.sink.seen("vitest")
			count(v.sink, m[1])
			return
		}
	}
	if strings.HasPrefix(line, "⎯⎯") || strings.HasPrefix(line, " Test Files ") {
		v.close()
		return
	}
	if v.block == nil {
		return
	}
	if m := place(vitestPlace, "❯", line); m != nil && v.block.at == "" && !strings.Contains(m[1], "node_modules/") {
		v.block.at = m[1] + ":" + m[2]
	}
	v.block.add(line)
}

func (v *vitest) close() {
	if v.block != nil {
		f := v.block.failure()
		f.Name = strings.ReplaceAll(f.Name, " > ", " › ")
		v.sink.add(f)
	}
	v.block = nil
}

func (v *vitest) end() { v.close() }
