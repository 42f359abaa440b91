package checks

import (
	"strconv"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// pytest follows the output of pytest, short or verbose.
type pytest struct {
	sink    *sink
	section string // FAILURES, ERRORS, …
	block   *pyBlock
	blocks  []pyBlock
	summary []pyBlock // of the short test summary
	rest    rest      // what had no room there
	on      bool
}

type pyBlock struct {
	name    string
	lines   excerpt
	file    string
	line    int
	message string
}

var (
	pyStart   = lazyregexp.New(`^=+ (test session starts|[A-Za-z ]+) =+$`)
	pyBlockRe = lazyregexp.New(`^_{3,} (.+?) _{3,}$`)
	pyPlace   = lazyregexp.New(`^(\S[^:]*\.py):(\d+): (.*)$`)
	pySummary = lazyregexp.New(`^(FAILED|ERROR) (\S.*?)(?: - (.*))?$`)
	pyVerbose = lazyregexp.New(`^(\S+\.py::\S.*?) (FAILED|ERROR|PASSED|SKIPPED|XFAIL|XPASS)(?: +\[ *\d+%\])?$`)
	pyTally   = lazyregexp.New(`^=* ?(no tests ran|(?:\d+ (?:failed|passed|skipped|errors?|xfailed|xpassed|warnings?|deselected|rerun)(?:, )?)+) in [\d.]+s.*$`)
	pyCount   = lazyregexp.New(`(\d+) (failed|passed|skipped|errors?|xfailed|xpassed)`)
)

func (p *pytest) read(line string) {
	if strings.HasPrefix(line, "===") {
		if m := pyTally().FindStringSubmatch(line); m != nil {
			p.tally(m[1])
			return
		}
		if m := pyStart().FindStringSubmatch(line); m != nil {
			p.close()
			p.section = m[1]
			if m[1] == "test session starts" || m[1] == "FAILURES" || m[1] == "short test summary info" {
				p.on = true
			}
		}
		return
	}
	if !p.on {
		if line != "" && (line[0] >= '0' && line[0] <= '9' || line[0] == 'n') && strings.Contains(line, " in ") { // -q
			if m := pyTally().FindStringSubmatch(line); m != nil {
				p.tally(m[1])
			}
		}
		return
	}
	switch {
	case p.section == "short test summary info":
		if m := tally(line); m != nil {
			p.tally(m[1])
		} else if m := pySummary().FindStringSubmatch(line); m != nil && len(p.summary) < MaxFailures+maxOpen {
			p.summary = append(p.summary, pyBlock{name: m[2], message: m[3]})
		} else if m != nil {
			p.rest.add(m[2])
		}
	case p.section == "FAILURES" || p.section == "ERRORS":
		if strings.HasPrefix(line, "___") {
			if m := pyBlockRe().FindStringSubmatch(line); m != nil {
				p.close()
				p.block = &pyBlock{name: m[1]}
				return
			}
		}
		p.blockLine(line)
	case strings.Contains(line, "::") || strings.Contains(line, " in "):
		if m := pyVerbose().FindStringSubmatch(line); m != nil && (m[2] == "FAILED" || m[2] == "ERROR") && len(p.blocks) < MaxFailures+maxOpen {
			p.blocks = append(p.blocks, pyBlock{name: m[1]})
		} else if m := tally(line); m != nil {
			p.tally(m[1])
		}
	}
}

// tally matches the line of counts, which has a time.
func tally(line string) []string {
	if !strings.Contains(line, " in ") {
		return nil
	}
	return pyTally().FindStringSubmatch(line)
}

// blockLine keeps the lines of a block that tell why.
func (p *pytest) blockLine(line string) {
	b := p.block
	if b == nil {
		return
	}
	if m := place(pyPlace, ".py:", line); m != nil {
		b.file = m[1]
		b.line, _ = strconv.Atoi(m[2])
		b.lines.add(line)
		return
	}
	if strings.HasPrefix(line, "E ") && b.message == "" {
		b.message = strings.TrimSpace(line[1:])
	}
	if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "_ _") {
		b.lines.add(line)
	}
}

func (p *pytest) close() {
	if p.block != nil && len(p.blocks) < MaxFailures+maxOpen {
		p.blocks = append(p.blocks, *p.block)
	}
	p.block = nil
}

func (p *pytest) tally(counts string) {
	p.close()
	p.section = ""
	p.sink.seen("pytest")
	for _, m := range pyCount().FindAllStringSubmatch(counts, -1) {
		n, _ := strconv.Atoi(m[1])
		switch m[2] {
		case "passed", "xpassed":
			p.sink.passed += n
		case "skipped", "xfailed":
			p.sink.skipped += n
		default:
			p.sink.failed += n
		}
	}
	p.flush()
}

// flush records what one session told: each failure under the name that pytest
// takes as an argument, where it is known.
func (p *pytest) flush() {
	for _, s := range p.summary {
		f := Failure{Name: s.name, Message: s.message}
		f.File, _, _ = strings.Cut(s.name, "::")
		if b := p.blockOf(s.name, p.blocks); b != nil {
			b.complete(&f)
			b.name = ""
		}
		p.sink.add(f)
	}
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.name == "" {
			continue
		}
		f := Failure{Name: b.name}
		switch {
		case strings.Contains(b.name, "::"):
			f.File, _, _ = strings.Cut(b.name, "::")
			if o := p.blockOf(b.name, p.blocks[i+1:]); o != nil { // -v tells the names before the blocks
				o.complete(&f)
				o.name = ""
			}
		case b.file != "":
			f.Name = b.file + "::" + strings.ReplaceAll(b.bare(), ".", "::")
			b.complete(&f)
		default:
			b.complete(&f)
		}
		p.sink.add(f)
	}
	p.rest.tell(p.sink, "")
	p.blocks, p.summary, p.on = nil, nil, false
}

// bare is the name of a block's test without what pytest says of it.
func (b *pyBlock) bare() string {
	name := b.name
	for _, before := range []string{"ERROR at setup of ", "ERROR at teardown of ", "ERROR collecting "} {
		name = strings.TrimPrefix(name, before)
	}
	return name
}

// blockOf returns the block of the test with the given node id, nil if there
// is none: of several with its name the one that failed in the test's file.
func (p *pytest) blockOf(id string, blocks []pyBlock) *pyBlock {
	var found *pyBlock
	for i := range blocks {
		b := &blocks[i]
		if !b.is(id) {
			continue
		}
		if b.file != "" && strings.HasPrefix(id, b.file) {
			return b
		}
		if found == nil {
			found = b
		}
	}
	return found
}

// is reports a block that may be of the test with the given node id.
func (b *pyBlock) is(id string) bool {
	if b.name == "" || b.file == "" && len(b.lines.lines) == 0 {
		return false
	}
	name := b.bare()
	if name == id {
		return true
	}
	_, test, found := strings.Cut(id, "::")
	if !found {
		return strings.HasSuffix(id, name)
	}
	return strings.ReplaceAll(test, "::", ".") == name
}

func (b *pyBlock) complete(f *Failure) {
	if b.file != "" {
		f.File, f.Line = b.file, b.line
	}
	if b.message != "" {
		f.Message = b.message
	}
	f.Excerpt = b.lines.text()
}

func (p *pytest) end() {
	p.close()
	if p.on && len(p.blocks)+len(p.summary) > 0 {
		p.sink.seen("pytest")
		p.flush()
	}
}
