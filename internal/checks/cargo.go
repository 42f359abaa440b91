package checks

import (
	"strconv"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// cargo follows the output of cargo test, and of rustc's errors in any cargo
// command.
type cargo struct {
	sink   *sink
	failed []string // tests that failed, in the order they ran
	rest   rest     // those that had no room there
	name   string   // of the block of output that is told
	lines  map[string]*excerpt
	err    *rustError
}

type rustError struct {
	code, message string
	file          string
	line          int
	lines         excerpt
}

var (
	cargoTest  = lazyregexp.New(`^test (\S.*?) \.\.\. (ok|FAILED|ignored)(?:, .*)?$`)
	cargoBlock = lazyregexp.New(`^---- (\S.*?) (?:stdout|stderr) ----$`)
	cargoTally = lazyregexp.New(`^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;`)
	cargoPanic = lazyregexp.New(`^thread '.*?' (?:\(\d+\) )?panicked at (?:'(.*)', )?([^\s:][^:]*):(\d+):\d+:?$`)
	rustPlace  = lazyregexp.New(`^ *--> ([^:]+):(\d+):\d+$`)
)

func (c *cargo) read(line string) {
	if strings.HasPrefix(line, "error") {
		if code, message, ok := rustHead(line); ok {
			c.closeError()
			if !rustNoise(code, message) {
				c.err = &rustError{code: code, message: message}
				c.err.lines.add(line)
			}
			return
		}
	}
	switch {
	case c.err != nil:
		c.errorLine(line)
	case strings.HasPrefix(line, "test result: "):
		c.tally(line)
	case strings.HasPrefix(line, "test "):
		if m := cargoTest().FindStringSubmatch(line); m != nil {
			c.sink.seen("cargo test")
			switch {
			case m[2] != "FAILED":
			case len(c.failed) < MaxFailures+maxOpen:
				c.failed = append(c.failed, m[1])
			default:
				c.rest.add(m[1])
			}
			return
		}
		c.blockLine(line)
	case strings.HasPrefix(line, "---- "):
		c.block(line)
	case line == "failures:":
		c.name = ""
	default:
		c.blockLine(line)
	}
}

func (c *cargo) errorLine(line string) {
	if line == "" || strings.HasPrefix(line, "warning: ") {
		c.closeError()
		return
	}
	if m := place(rustPlace, "-->", line); m != nil && c.err.file == "" {
		c.err.file = m[1]
		c.err.line, _ = strconv.Atoi(m[2])
	}
	c.err.lines.add(line)
	if c.err.lines.full() {
		c.closeError()
	}
}

func (c *cargo) tally(line string) {
	m := cargoTally().FindStringSubmatch(line)
	if m == nil {
		return
	}
	c.sink.seen("cargo test")
	passed, _ := strconv.Atoi(m[1])
	failed, _ := strconv.Atoi(m[2])
	ignored, _ := strconv.Atoi(m[3])
	c.sink.passed, c.sink.failed, c.sink.skipped = c.sink.passed+passed, c.sink.failed+failed, c.sink.skipped+ignored
	c.flush()
}

// block begins what a test printed.
func (c *cargo) block(line string) {
	m := cargoBlock().FindStringSubmatch(line)
	if m == nil {
		c.blockLine(line)
		return
	}
	if c.lines == nil {
		c.lines = map[string]*excerpt{}
	}
	c.name = m[1]
	if c.lines[c.name] == nil && len(c.lines) < MaxFailures+maxOpen {
		c.lines[c.name] = &excerpt{}
	}
}

func (c *cargo) blockLine(line string) {
	if e := c.lines[c.name]; e != nil && (line != "" || len(e.lines) > 0) && !strings.HasPrefix(line, "note: run with `RUST_BACKTRACE") {
		e.add(line)
	}
}

// rustNoise reports an error that only says that there were others.
func rustNoise(code, message string) bool {
	return code == "" && (strings.HasPrefix(message, "could not compile") || strings.HasPrefix(message, "aborting due to") || strings.HasPrefix(message, "test failed, to rerun") || strings.Contains(message, "target failed:") || strings.Contains(message, "targets failed:") ||
		strings.HasPrefix(message, "build failed") || strings.HasPrefix(message, "process didn't exit successfully"))
}

// rustHead reads the first line of an error: error: message, or with a code
// error[E0308]: message.
func rustHead(line string) (code, message string, ok bool) {
	rest, ok := strings.CutPrefix(line, "error")
	if ok && strings.HasPrefix(rest, "[E") {
		end := strings.IndexByte(rest, ']')
		if end < 3 || strings.Trim(rest[2:end], "0123456789") != "" {
			return "", "", false
		}
		code, rest = rest[:end+1], rest[end+1:]
	}
	message, found := strings.CutPrefix(rest, ": ")
	return code, message, ok && found && message != ""
}

// closeError records a compiler's error. Errors of that form without a place
// are other programs' as well.
func (c *cargo) closeError() {
	e := c.err
	c.err = nil
	if e == nil || e.file == "" {
		return
	}
	c.sink.seen("cargo")
	c.sink.add(Failure{Name: "error" + e.code + " " + e.file + ": " + e.message, File: e.file, Line: e.line, Message: e.message, Excerpt: e.lines.text()})
}

// flush records the failures of one test binary.
func (c *cargo) flush() {
	for _, name := range c.failed {
		f := Failure{Name: name}
		if e := c.lines[name]; e != nil {
			f.Excerpt = e.text()
			f.panicked(e.lines)
		}
		c.sink.add(f)
	}
	c.rest.tell(c.sink, "")
	c.failed, c.lines, c.name = nil, nil, ""
}

// panicked takes place and reason from a thread's last words.
func (f *Failure) panicked(lines []string) {
	for i, l := range lines {
		m := cargoPanic().FindStringSubmatch(l)
		if m == nil {
			continue
		}
		f.Message, f.File = m[1], m[2]
		f.Line, _ = strconv.Atoi(m[3])
		for k := i + 1; k < len(lines) && k <= i+3 && m[1] == ""; k++ {
			if l := strings.TrimSpace(lines[k]); l != "" {
				f.Message = strings.TrimPrefix(f.Message+"; "+l, "; ")
			}
		}
		return
	}
	if len(lines) > 0 {
		f.Message = lines[0]
	}
}

func (c *cargo) end() {
	c.closeError()
	c.flush()
}
