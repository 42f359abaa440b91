package policy

import (
	"io"
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// words returns the fields that the words of a command expand to.
func (w *walker) words(all []*syntax.Word) []Word {
	var out []Word
	for _, word := range all {
		for _, one := range w.braces(word) {
			v := w.word(one)
			if w.values += len(v.Value); w.values > maxValues || len(out) == maxWords {
				w.over = true
				return out
			}
			out = append(out, v)
		}
	}
	return out
}

// braces expands {a,b}.
func (w *walker) braces(word *syntax.Word) []*syntax.Word {
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

// word evaluates one word after brace expansion: whole where it holds nothing
// that is computed, else as far as to the first part that is.
func (w *walker) word(word *syntax.Word) Word {
	if word == nil {
		return lit("")
	}
	parts, rest, many := w.certain(word.Parts, false)
	meta, err := expand.Pattern(w.expansion(), &syntax.Word{Parts: parts})
	text := unquoted(meta)
	switch {
	case err != nil:
		return Word{Many: true}
	case rest:
		return Word{Value: text, Many: many}
	case pattern.HasMeta(meta, 0):
		return Word{Value: text, Glob: true, Many: true}
	}
	return lit(text)
}

// unquoted is the text of a pattern without its backslashes.
func unquoted(pattern string) string {
	if !strings.Contains(pattern, `\`) {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			if i++; pattern[i] == '\n' {
				continue
			}
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

// certain returns the leading parts whose value is known; rest says that there
// are others, and many that the first of those may become several words.
func (w *walker) certain(parts []syntax.WordPart, quoted bool) (known []syntax.WordPart, rest, many bool) {
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			continue
		case *syntax.DblQuoted:
			inner, rest, _ := w.certain(p.Parts, true)
			if !rest {
				continue
			}
			return append(parts[:i:i], &syntax.DblQuoted{Dollar: p.Dollar, Parts: inner}), true, false
		case *syntax.CmdSubst:
			if printed(p, w.dir) != "" {
				continue
			}
		case *syntax.ParamExp:
			plain := p.Param != nil && !p.Excl && !p.Length && !p.Width && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
			if plain && w.param(p.Param.Value) != "" {
				continue
			}
		}
		return parts[:i], true, !quoted
	}
	return parts, false, false
}

// param is the value of a variable that the place tells, "" of any other.
func (w *walker) param(name string) string {
	switch {
	case name == "?" || name == "$" || name == "#" || name == "!": // numbers, whatever they are
		return "$" + name
	case w.assigned[name]:
	case name == "HOME":
		return w.place.home()
	case name == "PWD":
		return w.dir
	}
	if user, found := strings.CutPrefix(name, "HOME "); found { // ~user, as package expand asks for it
		return "/home/" + user
	}
	return ""
}

// expansion is what package expand needs to evaluate a word that certain let
// through.
func (w *walker) expansion() *expand.Config {
	return &expand.Config{Env: expand.FuncEnviron(w.param), CmdSubst: func(out io.Writer, c *syntax.CmdSubst) error {
		_, err := io.WriteString(out, printed(c, w.dir))
		return err
	}}
}

// printed is what $(pwd) and $(nproc) print in dir, "" where that is not known
// and for any other command.
func printed(c *syntax.CmdSubst, dir string) string {
	if len(c.Stmts) != 1 || len(c.Stmts[0].Redirs) > 0 {
		return ""
	}
	call, ok := c.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) != 1 {
		return ""
	}
	return map[string]string{"pwd": dir, "nproc": "1"}[call.Args[0].Lit()]
}

// document returns the text of a here-document's body.
func (w *walker) document(body *syntax.Word) Word {
	if body == nil {
		return lit("")
	}
	if _, rest, _ := w.certain(body.Parts, true); rest {
		return Word{}
	}
	text, err := expand.Document(w.expansion(), body)
	if err != nil {
		return Word{}
	}
	return lit(text)
}

// assignment splits a word of the form NAME=value.
func assignment(w Word) Assign {
	s, ok := w.Text()
	if !ok {
		return Assign{}
	}
	name, value, _ := strings.Cut(s, "=")
	return Assign{Name: strings.TrimSuffix(name, "+"), Value: lit(value)}
}

// base returns the program of a command word.
func base(p string) string {
	if p == "" {
		return ""
	}
	return path.Base(p)
}
