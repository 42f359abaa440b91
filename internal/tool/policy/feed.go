package policy

import (
	"slices"
	"strings"
)

// feed adds what comes from the wrapper's input to its command. Words that are
// known are added as they are; single, of each of them, is what is run where
// they are given one by one.
func (p *stripper) feed() (inner []Word, single [][]Word) {
	out, in := slices.Clone(p.args), p.i.in
	p.i.from = append(slices.Clone(p.i.from), in.from...)
	p.i.in = input{}
	if p.elsewhere || p.wr.joined { // xargs -a; parallel, which makes a script of the words
		in = input{}
	}
	words, lines, all := p.words(in)
	if p.token != "" {
		for _, line := range lines {
			one := slices.Clone(p.args)
			for k, a := range one {
				one[k] = replaced(a, p.token, line)
			}
			single = append(single, one)
		}
		for k, a := range out {
			out[k] = without(a, p.token, nil)
		}
		if all && len(single) > 0 {
			return single[0], single[1:]
		}
		return out, single
	}
	for _, word := range words {
		out = append(out, word)
		if p.batches {
			single = append(single, append(slices.Clone(p.args), word))
		}
	}
	if len(in.paths) > 0 {
		out = append(out, Word{Alts: in.paths})
	}
	if !all || p.batches {
		out = append(out, Word{Many: true})
	}
	return out, single
}

// words takes the input apart as xargs does; all says that there is no more.
func (p *stripper) words(in input) (words, lines []Word, all bool) {
	texts := in.said
	if in.text != nil {
		texts, all = []string{*in.text}, true
	}
	for _, text := range texts {
		fields, ok := xargsWords(text, p.nul)
		all = all && ok && p.plain
		for _, f := range fields {
			words = append(words, fedWord(f))
		}
		sep := "\n"
		if p.nul {
			sep = "\x00"
		}
		for line := range strings.SplitSeq(text, sep) {
			if line = strings.TrimLeft(line, " \t"); line != "" {
				lines = append(lines, fedWord(line))
			}
		}
	}
	if len(words) > maxFed || len(lines) > maxFed {
		return words[:min(maxFed, len(words))], lines[:min(maxFed, len(lines))], false
	}
	return words, lines, all
}

// fedWord is a word of a text that may hold unknownText.
func fedWord(s string) Word {
	if before, _, found := strings.Cut(s, unknownText); found {
		return Word{Prefix: before, rough: s}
	}
	return lit(s)
}

// replaced is a with every token replaced by a line.
func replaced(a Word, token string, line Word) Word {
	s, ok := a.Text()
	text, known := line.Text()
	switch {
	case ok && !strings.Contains(s, token), a.is(func(s string) bool { return strings.Contains(s, token) }) == no:
		return a
	case ok && known:
		return lit(strings.ReplaceAll(s, token, text))
	case ok:
		return Word{rough: strings.ReplaceAll(s, token, line.raw())}
	}
	return Word{}
}

// xargsWords splits a text as xargs does: at white space outside quotes, or at
// NULs. ok is false where the quotes do not close, which xargs refuses.
func xargsWords(text string, nul bool) (words []string, ok bool) {
	if nul {
		for s := range strings.SplitSeq(text, "\x00") {
			if s != "" {
				words = append(words, s)
			}
		}
		return words, true
	}
	var b strings.Builder
	begun, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
			begun = true
		case strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if begun {
				words = append(words, b.String())
			}
			b.Reset()
			begun = false
		default:
			b.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, b.String())
	}
	return words, quote == 0
}

// splitText takes the value of env -S apart and puts it before the other words;
// problem says that env would refuse it, or that nobody can tell what it is.
func (p *stripper) splitText(v Word) (stop, problem bool) {
	s, ok := v.Text()
	if !ok {
		p.w.fragments(*p.i, v.raw())
		return true, true
	}
	words, ok := envWords(s)
	if !ok {
		p.w.fragments(*p.i, s)
		return true, true
	}
	p.args = append(words, p.args...)
	return false, false
}

// envWords splits a text as env -S does (GNU coreutils, "env invocation").
func envWords(text string) (words []Word, ok bool) {
	var b strings.Builder
	begun, quote, unknown := false, byte(0), false
	end := func() {
		if begun {
			words = append(words, fedWord(b.String()))
		}
		b.Reset()
		begun = false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 == len(text):
			return nil, false
		case c == '\\' && quote == '\'' && text[i+1] != '\\' && text[i+1] != '\'':
			b.WriteByte(c)
		case c == '\\':
			i++
			switch e := text[i]; {
			case e == 'c' && quote == 0:
				end()
				return words, true
			case e == '_' && quote == 0:
				end()
				continue
			case e == '_':
				b.WriteByte(' ')
			case strings.IndexByte(`#$\"'`, e) >= 0:
				b.WriteByte(e)
			case strings.IndexByte("fnrtv", e) >= 0:
				b.WriteByte(simpleEscapes[e])
			default:
				return nil, false
			}
			begun = true
		case quote != 0 && c == quote:
			quote = 0
		case c == '$' && quote != '\'':
			name, _, closed := strings.Cut(strings.TrimPrefix(text[i:], "${"), "}")
			if !strings.HasPrefix(text[i:], "${") || !closed {
				return nil, false
			}
			b.WriteString(unknownText)
			i += len(name) + 2
			begun, unknown = true, true
		case quote != 0:
			b.WriteByte(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			end()
		case c == '#' && !begun:
			return words, true
		default:
			b.WriteByte(c)
			begun = true
		}
	}
	end()
	return words, quote == 0 && (!unknown || len(words) > 0)
}
