package policy

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// words returns the fields that the words of a command expand to.
func (w *walker) words(all []*syntax.Word) []Word {
	var out []Word
	for _, word := range all {
		for _, one := range w.braces(word) {
			if w.over {
				return out
			}
			out = append(out, w.word(one))
		}
		if len(out) > maxWords {
			w.over = true
			return out[:maxWords]
		}
	}
	return out
}

// braces expands {a,b}, which bash does and the POSIX shell does not.
func (w *walker) braces(word *syntax.Word) []*syntax.Word {
	if w.posix {
		return []*syntax.Word{word}
	}
	split := &syntax.Word{Parts: word.Parts}
	if !syntax.SplitBraces(split) {
		return []*syntax.Word{word}
	}
	if groups(split.Parts) > maxGroups {
		w.over = true // what they expand to grows with each, as does the time
		return []*syntax.Word{word}
	}
	var out []*syntax.Word
	for one, err := range expand.BracesSeq(nil, split) {
		if err != nil || len(out) >= maxWords {
			w.over = true
			break
		}
		out = append(out, one)
	}
	return out
}

// groups counts the brace expansions among parts.
func groups(parts []syntax.WordPart) int {
	n := 0
	for _, p := range parts {
		if b, ok := p.(*syntax.BraceExp); ok {
			n++
			for _, e := range b.Elems {
				n += groups(e.Parts)
			}
		}
	}
	return n
}

// word evaluates one word after brace expansion.
func (w *walker) word(word *syntax.Word) Word {
	v := value{Word: lit("")}
	if word == nil {
		return v.Word
	}
	if len(word.Parts) == 1 {
		switch p := word.Parts[0].(type) {
		case *syntax.ProcSubst:
			if len(p.Stmts) > 0 {
				return lit("/dev/fd/63")
			}
		case *syntax.ParamExp:
			if p.Short && p.Param != nil && p.Param.Value == "!" {
				return Word{Alts: []string{lastJob}, Exact: true, Many: true} // or nothing
			}
		}
	}
	for i, p := range word.Parts {
		if l, ok := p.(*syntax.Lit); ok && i == 0 && strings.HasPrefix(l.Value, "~") {
			v.add(w.tilde(l.Value, len(word.Parts) == 1))
			continue
		}
		v.add(w.part(p, false))
	}
	if v.glob {
		v.Exact, v.Many = false, true
	}
	for _, a := range v.Alts {
		w.values += len(a)
	}
	if w.values > maxValues {
		w.over = true
		return Word{Many: true}
	}
	return v.Word
}

// lastJob stands for the number of the last process in the background.
const lastJob = "$!"

// value is a word that is being put together.
type value struct {
	Word
	glob bool
}

// add appends what a part is worth.
func (v *value) add(next value) {
	before := v.raw()
	v.join(next)
	if _, ok := v.Text(); !ok {
		after := next.raw()
		if v.rough = ""; len(before)+len(after) <= maxKnown {
			v.rough = before + after
		}
	}
}

func (v *value) join(next value) {
	v.glob, v.Many = v.glob || next.glob, v.Many || next.Many
	if !v.Exact && len(v.Alts) == 0 {
		return
	}
	if len(next.Alts) == 0 || len(v.Alts)*len(next.Alts) > maxAlts {
		if s, ok := v.Text(); ok {
			v.Prefix = s + next.Prefix
		}
		v.Alts, v.Exact = nil, false
		return
	}
	alts, size := make([]string, 0, len(v.Alts)*len(next.Alts)), 0
	for _, a := range v.Alts {
		for _, b := range next.Alts {
			if size += len(a) + len(b); size > maxValue {
				v.Alts, v.Exact = nil, false
				return
			}
			alts = append(alts, a+b)
		}
	}
	v.Alts, v.Exact = alts, v.Exact && next.Exact
}

// unknown is the value of a part of which nothing is known; outside quotes it
// may be any number of words.
func unknown(inQuotes bool) value { return value{Word: Word{Many: !inQuotes}} }

func (w *walker) part(p syntax.WordPart, inQuotes bool) value {
	switch p := p.(type) {
	case *syntax.Lit:
		if inQuotes {
			return value{Word: lit(unescape(p.Value, "$`\"\\\n"))}
		}
		text, glob := unquoted(p.Value)
		return value{Word: lit(text), glob: glob}
	case *syntax.SglQuoted:
		if p.Dollar {
			return value{Word: lit(ansiC(p.Value))}
		}
		return value{Word: lit(p.Value)}
	case *syntax.DblQuoted:
		v := value{Word: lit("")}
		for _, q := range p.Parts {
			v.add(w.part(q, true))
		}
		return v
	case *syntax.ParamExp:
		return w.param(p, inQuotes)
	case *syntax.CmdSubst:
		switch {
		case prints(p, "pwd") && len(w.dirs) > 0:
			return value{Word: Word{Alts: w.dirs, Exact: true}}
		case prints(p, "nproc"):
			return value{Word: lit("1")} // a number
		}
	case *syntax.ArithmExp:
		return unknown(true) // a number
	}
	return unknown(inQuotes)
}

// prints recognises $(pwd) and its like.
func prints(c *syntax.CmdSubst, name string) bool {
	if len(c.Stmts) != 1 || len(c.Stmts[0].Redirs) > 0 {
		return false
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(call.Assigns) == 0 && len(call.Args) == 1 && call.Args[0].Lit() == name
}

// param evaluates $x where its value is known.
func (w *walker) param(p *syntax.ParamExp, inQuotes bool) value {
	simple := p.Param != nil && !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	if !simple {
		return unknown(inQuotes)
	}
	switch name := p.Param.Value; name {
	case "?", "$", "#": // numbers, whatever they are
		return value{Word: lit("$" + name)}
	case "HOME":
		if w.vars.assigned[name] == 0 {
			return value{Word: lit(w.place.home())}
		}
	case "PWD":
		if w.vars.assigned[name] == 0 && len(w.dirs) > 0 {
			return value{Word: Word{Alts: w.dirs, Exact: true}}
		}
	default:
		v, ok := w.vars.value(name)
		if !ok {
			break
		}
		if inQuotes {
			return value{Word: v}
		}
		for _, a := range v.Alts {
			if a == "" || strings.ContainsAny(a, " \t\n*?[") && v.Exact {
				return unknown(false)
			}
		}
		return value{Word: v}
	}
	return unknown(inQuotes)
}

// tilde evaluates the first part of a word that begins with ~; whole says that
// it is the only one.
func (w *walker) tilde(s string, whole bool) value {
	name, rest, slash := strings.Cut(s, "/")
	if !slash && !whole {
		return unknown(true)
	}
	if slash {
		rest = "/" + rest
	}
	text, glob := unquoted(rest)
	switch name {
	case "~":
		return value{Word: lit(w.place.home() + text), glob: glob}
	case "~+":
		v := value{Word: Word{Alts: w.dirs, Exact: w.dirs != nil}}
		v.add(value{Word: lit(text), glob: glob})
		return v
	}
	return unknown(true)
}

// unquoted removes the backslashes of a text outside quotes and reports
// whether it is a pattern.
func unquoted(s string) (text string, glob bool) {
	if !strings.ContainsAny(s, "\\*?[") {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
		case c == '*' || c == '?' || c == '[' && strings.IndexByte(s[i:], ']') > 0:
			glob = true
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), glob
}

// unescape removes the backslashes before the characters of set.
func unescape(s, set string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(set, s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// simpleEscapes are the escapes of $'…' that stand for one character.
var simpleEscapes = map[byte]byte{'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11, '\\': '\\', '\'': '\'', '"': '"', '?': '?'}

// ansiC decodes the text of $'…' as bash does: a NUL ends it.
func ansiC(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		c := s[i]
		if plain, ok := simpleEscapes[c]; ok {
			b = append(b, plain)
			continue
		}
		from, most, base := i+1, 2, 16
		switch {
		case c == 'x':
		case c == 'u':
			most = 4
		case c == 'U':
			most = 8
		case c >= '0' && c <= '7':
			from, most, base = i, 3, 8
		case c == 'c' && i+1 < len(s):
			i++
			b = append(b, s[i]&0x1f)
			continue
		default:
			b = append(b, '\\', c)
			continue
		}
		end := from
		for end < len(s) && end-from < most && isDigit(s[end], base) {
			end++
		}
		if end == from {
			b = append(b, '\\', c)
			continue
		}
		n, _ := strconv.ParseUint(s[from:end], base, 32)
		if n == 0 {
			return string(b)
		}
		if c == 'u' || c == 'U' {
			b = utf8.AppendRune(b, rune(n))
		} else {
			b = append(b, byte(n))
		}
		i = end - 1
	}
	return string(b)
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// document returns the text of a here-document's body.
func (w *walker) document(body *syntax.Word, quoted bool) Word {
	if body == nil {
		return lit("")
	}
	v := value{Word: lit("")}
	for _, p := range body.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			text := l.Value
			if !quoted {
				text = unescape(text, "$`\\\n")
			}
			v.add(value{Word: lit(text)})
			continue
		}
		v.add(w.part(p, true))
	}
	return v.Word
}

// base returns the program of a command word.
func base(p string) string {
	if p == "" {
		return ""
	}
	return path.Base(p)
}
