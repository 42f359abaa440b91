package policy

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// The bounds of what is remembered of the output of one place.
const (
	maxSaid  = 64 << 10 // bytes
	maxParts = 50
	maxFed   = 200 // words that xargs is given
)

// unknownText stands in a script for what is not known of it: a variable that
// nothing assigns.
const unknownText = "${__}"

// saying is what the commands of one place print, as far as that is written in
// the script itself: echo, printf, cat of a here-document.
type saying struct {
	parts []string // unknownText in them stands for what is not known
	whole bool     // the parts, one after the other, are all there is
	paths []string // what find prints, as findRoots has it
	size  int
}

func newSaying() *saying { return &saying{whole: true} }

// add notes a text that is printed; known says that it is printed just so.
func (s *saying) add(text string, known bool) {
	if s.size += len(text); s.size > maxSaid || len(s.parts) == maxParts {
		s.whole = false
		return
	}
	s.parts, s.whole = append(s.parts, text), s.whole && known
}

// doubt notes that more, less or something else may be printed. It may be nil.
func (s *saying) doubt() {
	if s != nil {
		s.whole = false
	}
}

// input is what is printed as a command's standard input; from are the programs
// that print it.
func (s *saying) input(from []string) input {
	in := input{given: true, from: from, said: s.said(), paths: s.paths}
	if s.whole && len(s.parts) > 0 {
		text := strings.Join(s.parts, "")
		in.text = &text
	}
	return in
}

// said are the texts to be looked at, each by itself and all together.
func (s *saying) said() []string {
	if len(s.parts) < 2 {
		return s.parts
	}
	return append(slices.Clone(s.parts), strings.Join(s.parts, ""))
}

// shared is in as one of several commands sees it: others may read a part.
func (in input) shared() input {
	if in.text != nil && !slices.Contains(in.said, *in.text) {
		in.said = append(slices.Clone(in.said), *in.text)
	}
	in.text, in.file = nil, false
	return in
}

// listen walks f and returns what it prints and by which programs; programs is
// nil where no command was met.
func (w *walker) listen(f func()) (*saying, []string) {
	sink, mark := w.sink, len(w.out)
	s := newSaying()
	w.sink = s
	f()
	w.sink = sink
	if len(w.out) <= mark {
		return s, nil
	}
	return s, programs(w.out[mark:])
}

// pipe walks both sides, which are processes of their own: the second reads
// what the first prints.
func (w *walker) pipe(c *syntax.BinaryCmd) {
	said, from := w.listen(func() { w.subshell(func() { w.stmt(c.X) }) })
	stdin := w.stdin
	w.stdin = said.input(append([]string{}, from...))
	if _, simple := c.Y.Cmd.(*syntax.CallExpr); !simple {
		w.stdin = w.stdin.shared()
	}
	w.subshell(func() { w.stmt(c.Y) })
	w.stdin = stdin
}

// programs names the programs of commands, for those who read their output;
// never nil.
func programs(all []Command) []string {
	names := []string{}
	for _, c := range all {
		for _, n := range append([]string{c.Name}, c.From...) {
			if n != "" && len(names) < 50 && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// unseen records a script that cannot be known, and judges what of it is.
func (w *walker) unseen(i invocation, why Opaque, texts ...string) []string {
	w.opaque(i, why)
	w.fragments(i, texts...)
	return w.dirs
}

// fragments judges the known texts among those that a shell may be given, each
// as the script that it may be. What they do adds to what was found.
func (w *walker) fragments(i invocation, more ...string) {
	done := map[string]bool{"": true, unknownText: true}
	via := i.cmd.Name
	texts := slices.Concat(more, i.said, i.in.said)
	if i.in.text != nil {
		texts = append(texts, *i.in.text)
	}
	i.cmd.Env, i.cmd.Writes, i.cmd.Reads = nil, nil, nil
	i.in, i.said = input{}, nil
	for _, text := range texts {
		if !done[strings.TrimSpace(text)] {
			done[strings.TrimSpace(text)] = true
			w.nested(i, text, via, w.posix, true)
		}
	}
}

// raw is a word as it would stand in a script, with unknownText for what is not
// known of it.
func (w Word) raw() string {
	switch {
	case len(w.Alts) == 1:
		return w.Alts[0]
	case w.rough != "":
		return w.rough
	}
	return unknownText
}

// speaks notes what a command prints. Whoever is none of those below prints
// what nobody knows.
func (w *walker) speaks(i invocation) {
	if w.sink == nil || i.cmd.quiet {
		return
	}
	if strings.Contains(i.cmd.Path, "/") && !slices.Contains(systemDirs, path.Dir(i.cmd.Path)) {
		w.sink.doubt() // one that only has the name
		return
	}
	known := !w.trapped && (!i.here || !w.funcs[i.cmd.Path])
	switch i.cmd.Name {
	case "echo":
		texts, sure := echoed(i.argv[1:], w.posix)
		for _, text := range texts {
			w.sink.add(text, known && sure)
		}
	case "printf":
		if texts, sure := printed(i.argv[1:]); len(texts) > 0 {
			for _, text := range texts {
				w.sink.add(text, known && sure)
			}
		} else {
			w.sink.doubt()
		}
	case "cat", "tee":
		w.passes(i, known && i.in.text != nil && w.only(i))
	case "sort", "uniq", "head", "tail", "grep", "egrep", "fgrep": // lines of it
		w.passes(i, false)
	default:
		w.sink.doubt()
	}
}

// only reports a command that copies its standard input and nothing else.
func (w *walker) only(i invocation) bool {
	return !slices.ContainsFunc(i.argv[1:], func(a Word) bool {
		s, ok := a.Text()
		return !ok || s != "-" && s != "/dev/stdin" && (i.cmd.Name != "tee" || strings.HasPrefix(s, "-") || strings.HasPrefix(s, "/dev/"))
	})
}

// passes notes the standard input as output; whole says that it is all of it.
func (w *walker) passes(i invocation, whole bool) {
	if whole {
		w.sink.add(*i.in.text, true)
		return
	}
	for _, text := range i.in.shared().said {
		w.sink.add(text, false)
	}
	w.sink.paths = append(w.sink.paths, i.in.paths...)
	w.sink.doubt()
}

// echoed is what echo prints, in each way that it may take backslashes; sure
// says that there is but one.
func echoed(args []Word, posix bool) (all []string, sure bool) {
	sure = true
	line, escapes, asked := true, posix, false
	for len(args) > 0 {
		s, ok := args[0].Text()
		if !ok || len(s) < 2 || s[0] != '-' || strings.Trim(s[1:], "neE") != "" || posix && s != "-n" {
			break
		}
		line = line && !strings.Contains(s, "n")
		if i := strings.LastIndexAny(s, "eE"); i > 0 {
			escapes, asked = s[i] == 'e', true
		}
		args = args[1:]
	}
	words := make([]string, len(args))
	for k, a := range args {
		if _, ok := a.Text(); !ok {
			sure = false
		}
		words[k] = a.raw()
	}
	end := ""
	if line {
		end = "\n"
	}
	text := strings.Join(words, " ")
	plain, decoded := text+end, unescaped(text, true)+end
	switch {
	case plain == decoded:
		return []string{plain}, sure
	case !asked: // bash's option xpg_echo, and shells that differ
		return []string{plain, decoded}, false
	case escapes:
		return []string{decoded}, sure
	}
	return []string{plain}, sure
}

// printed is what printf prints: its format filled with its arguments, as often
// as it takes. Where the format is not known, it is each argument.
func printed(args []Word) (texts []string, sure bool) {
	if len(args) > 0 {
		if s, _ := args[0].Text(); s == "--" {
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return nil, false
	}
	sure = true
	for _, a := range args {
		if _, ok := a.Text(); !ok {
			sure = false
		}
	}
	format, values := args[0].raw(), args[1:]
	if strings.HasPrefix(format, "-") {
		return nil, false
	}
	if _, ok := args[0].Text(); !ok {
		for _, a := range args {
			texts = append(texts, a.raw())
		}
		return texts, false
	}
	var b strings.Builder
	for range maxFed {
		rest, ok := fill(&b, format, values)
		sure = sure && ok
		if len(rest) == 0 || len(rest) == len(values) || b.Len() > maxSaid {
			break
		}
		values = rest
	}
	return []string{b.String()}, sure
}

// fill writes a format once and returns the values that are left.
func fill(b *strings.Builder, format string, values []Word) (rest []Word, sure bool) {
	sure = true
	for format != "" {
		text, after, found := strings.Cut(format, "%")
		b.WriteString(unescaped(text, false))
		if !found {
			break
		}
		if strings.HasPrefix(after, "%") {
			b.WriteByte('%')
			format = after[1:]
			continue
		}
		n := 0
		for n < len(after) && strings.IndexByte("0123456789.+- #'*", after[n]) >= 0 {
			n++
		}
		if n == len(after) {
			return values, false
		}
		value := ""
		if len(values) > 0 {
			value, values = values[0].raw(), values[1:]
		}
		switch verb := after[n]; {
		case verb == 'b':
			value = unescaped(value, true)
		case verb != 's':
			sure = false
		}
		b.WriteString(value)
		sure, format = sure && n == 0, after[n+1:]
	}
	return values, sure
}

// unescaped decodes the escapes of echo, where an octal number begins with a
// zero, or those of printf's format.
func unescaped(s string, echo bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		c := s[i]
		from, most, base := i+1, 0, 16
		switch {
		case c == 'c':
			return string(b)
		case simpleEscapes[c] != 0:
			b = append(b, simpleEscapes[c])
			continue
		case c == 'x':
			most = 2
		case c == 'u':
			most = 4
		case c == 'U':
			most = 8
		case c == '0' && echo:
			most, base = 3, 8
		case c >= '0' && c <= '7':
			from, most, base = i, 3, 8
		}
		end := from
		for end < len(s) && end-from < most && isDigit(s[end], base) {
			end++
		}
		if end == from && (c != '0' || !echo) {
			b = append(b, '\\', c)
			continue
		}
		n, _ := strconv.ParseUint("0"+s[from:end], base, 32)
		if c == 'u' || c == 'U' {
			b = utf8.AppendRune(b, rune(n))
		} else {
			b = append(b, byte(n))
		}
		i = end - 1
	}
	return string(b)
}
