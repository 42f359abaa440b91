package terminal

import (
	"strings"

	"toritsugi/internal/channel"
)

// markdown lays out Markdown, as models write it, in rows of at most width columns. It
// reads blocks line by line and has no tree: docs/decisions/055 says why it is ours.
func markdown(src string, width int) []line {
	p := &page{width: width}
	p.blocks(strings.Split(channel.Clean(src), "\n"), nil, nil, 0)
	return p.rows
}

// page is Markdown being laid out.
type page struct {
	width int
	rows  []line
}

// maxDepth is how deep quotations and lists are followed.
const maxDepth = 12

// block is a kind of block: what its first line looks like. take lays it out, the first
// row behind first and the others behind rest, and returns how many lines it had.
type block struct {
	begins func(all []string) bool
	take   func(p *page, all []string, first, rest line, depth int) int
}

func blockKinds() []block {
	return []block{
		{func(all []string) bool { return fence(all[0]) != "" }, (*page).fenced},
		{func(all []string) bool { return heading(all[0]) > 0 }, (*page).heading},
		{isRule, (*page).rule},
		{isTable, (*page).table},
		{func(all []string) bool { return strings.HasPrefix(strings.TrimLeft(all[0], " "), ">") }, (*page).quote},
		{func(all []string) bool { mark, _ := item(all[0]); return mark != "" }, (*page).list},
	}
}

// blocks lays out lines.
func (p *page) blocks(all []string, first, rest line, depth int) {
	kinds, blank, begun := blockKinds(), false, false
	for len(all) > 0 {
		if strings.TrimSpace(all[0]) == "" {
			blank, all = true, all[1:]
			continue
		}
		if begun {
			if first = rest; blank || depth == 0 {
				p.rows = append(p.rows, rest)
			}
		}
		take := (*page).paragraph
		if depth < maxDepth {
			for _, k := range kinds {
				if k.begins(all) {
					take = k.take
					break
				}
			}
		}
		all = all[max(take(p, all, first, rest, depth), 1):]
		blank, begun = false, true
	}
}

func (p *page) text(l, first, rest line) {
	p.rows = append(p.rows, wrap(l, first, rest, p.width)...)
}

// paragraph is what no other block is. What was written on lines of its own stays there.
func (p *page) paragraph(all []string, first, rest line, depth int) int {
	kinds, n := blockKinds(), 1
	for ; n < len(all) && strings.TrimSpace(all[n]) != ""; n++ {
		begins := false
		for _, k := range kinds {
			begins = begins || k.begins(all[n:])
		}
		if begins && depth < maxDepth {
			break
		}
	}
	var text []string
	for _, l := range all[:n] {
		text = append(text, strings.TrimSuffix(strings.TrimSpace(l), `\`))
	}
	p.text(inline(strings.Join(text, "\n"), 0), first, rest)
	return n
}

func heading(l string) int {
	bare := strings.TrimLeft(l, "#")
	if n := len(l) - len(bare); n <= 6 && n > 0 && strings.HasPrefix(bare, " ") {
		return n
	}
	return 0
}

func (p *page) heading(all []string, first, rest line, _ int) int {
	p.text(inline(strings.TrimSpace(strings.TrimRight(strings.TrimLeft(all[0], "#"), "# ")), bold|cyan), first, rest)
	return 1
}

func isRule(all []string) bool {
	bare := strings.ReplaceAll(all[0], " ", "")
	return len(bare) >= 3 && strings.IndexByte("-*_", bare[0]) >= 0 && strings.Trim(bare, bare[:1]) == ""
}

func (p *page) rule(_ []string, first, _ line, _ int) int {
	p.rows = append(p.rows, behind(first, styled(faint, strings.Repeat("─", max(min(p.width-first.width(), 40), 1)))))
	return 1
}

func behind(lead, l line) line { return append(append(line{}, lead...), l...) }

// fence is the mark with which a block of code begins, "" for none.
func fence(l string) string {
	bare := strings.TrimLeft(l, " ")
	for _, mark := range []string{"`", "~"} {
		after := strings.TrimLeft(bare, mark)
		if n := len(bare) - len(after); n >= 3 && !strings.Contains(after, "`") {
			return bare[:n]
		}
	}
	return ""
}

// fenced is a block of code, which may not have ended yet.
func (p *page) fenced(all []string, first, rest line, _ int) int {
	mark := fence(all[0])
	indent := strings.Index(all[0], mark)
	language := strings.TrimSpace(all[0][indent+len(mark):])
	n := 1
	var code []string
	for ; n < len(all); n++ {
		if bare := strings.TrimSpace(all[n]); strings.HasPrefix(bare, mark) && strings.Trim(bare, mark[:1]) == "" {
			n++
			break
		}
		l := all[n]
		for i := 0; i < indent && strings.HasPrefix(l, " "); i++ {
			l = l[1:]
		}
		code = append(code, l)
	}
	var rows []line
	if language == "diff" || language == "patch" {
		rows = diffLines(strings.Join(code, "\n"))
	} else {
		for _, l := range code {
			rows = append(rows, styled(green, l))
		}
	}
	for i, l := range rows {
		lead := rest
		if i == 0 {
			lead = first
		}
		p.rows = append(p.rows, hard(l, behind(lead, plain("  ")), behind(rest, plain("  ")), p.width)...)
	}
	return n
}

// hard is wrap for text whose spaces count.
func hard(l, first, rest line, width int) (rows []line) {
	lead, all := first, cells(l)
	for {
		room, used, n := max(width-lead.width(), 2), 0, 0
		for n < len(all) && used+all[n].width <= room {
			used += all[n].width
			n++
		}
		rows = append(rows, behind(lead, joined(all[:n])))
		if all, lead = all[n:], rest; len(all) == 0 {
			return rows
		}
	}
}

func (p *page) quote(all []string, first, rest line, depth int) int {
	var within []string
	for _, l := range all {
		bare, quoted := strings.CutPrefix(strings.TrimLeft(l, " "), ">")
		if !quoted {
			break
		}
		within = append(within, strings.TrimPrefix(bare, " "))
	}
	bar := styled(faint, "│ ")
	p.blocks(within, behind(first, bar), behind(rest, bar), depth+1)
	return len(within)
}

// item is the mark with which an item of a list begins, "" for none, and where its
// text does.
func item(l string) (mark string, text int) {
	bare := strings.TrimLeft(l, " ")
	after := strings.TrimLeft(bare, "0123456789")
	switch n := len(bare) - len(after); {
	case n > 0 && n <= 9 && after != "" && (after[0] == '.' || after[0] == ')'):
		mark = bare[:n+1]
	case n == 0 && after != "" && strings.IndexByte("-*+", after[0]) >= 0:
		mark = bare[:1]
	default:
		return "", 0
	}
	rest := bare[len(mark):]
	blanks := len(rest) - len(strings.TrimLeft(rest, " "))
	if rest != "" && blanks == 0 {
		return "", 0
	}
	if blanks > 4 { // it begins with code
		blanks = 1
	}
	return mark, len(l) - len(rest) + blanks
}

// list lays out items up to what belongs to none. Lines that are indented belong to
// the item above, by how little ever.
func (p *page) list(all []string, first, rest line, depth int) (n int) {
	kind := func(mark string) byte { return mark[len(mark)-1] }
	mark, text := item(all[0])
	same := kind(mark)
	for n < len(all) {
		outer := len(all[n]) - len(strings.TrimLeft(all[n], " "))
		within := []string{all[n][min(text, len(all[n])):]}
		end, blank := n+1, 0
		for ; end < len(all); end++ {
			bare := strings.TrimLeft(all[end], " ")
			indent := len(all[end]) - len(bare)
			if bare == "" {
				blank++
				continue
			}
			next, _ := item(all[end])
			if indent < outer+2 && (blank > 0 || next != "" || fence(bare) != "" || heading(bare) > 0 || bare[0] == '>') {
				break
			}
			for ; blank > 0; blank-- {
				within = append(within, "")
			}
			within = append(within, all[end][min(indent, text):])
		}
		bullet := styled(faint, mark+" ")
		if len(mark) == 1 {
			bullet = styled(faint, "• ")
		}
		p.blocks(within, behind(first, bullet), behind(rest, plain(strings.Repeat(" ", bullet.width()))), depth+1)
		if strings.TrimSpace(strings.Join(within, "")) == "" {
			p.rows = append(p.rows, behind(first, bullet))
		}
		n, first = end-blank, rest
		if end == len(all) {
			return len(all)
		}
		if mark, text = item(all[end]); mark == "" || kind(mark) != same {
			return n
		}
		for range min(blank, 1) {
			p.rows = append(p.rows, rest)
		}
		n = end
	}
	return n
}

// settled is how much of Markdown that is still being written, in bytes, will look
// the same whatever follows: blocks before the last, up to a place where nothing
// goes on.
func settled(src string) (n int) {
	fence, blank, at := "", false, 0
	for l := range strings.SplitAfterSeq(src, "\n") {
		bare := strings.TrimSpace(l)
		switch {
		case fence != "":
			if strings.HasPrefix(bare, fence) && strings.Trim(bare, fence[:1]) == "" {
				fence = ""
			}
		case bare == "":
		default:
			if blank && l[0] != ' ' && l[0] != '\t' && !strings.ContainsAny(l[:1], "-*+>|0123456789") {
				n = at
			}
			if marks := bare[:len(bare)-len(strings.TrimLeft(bare, bare[:1]))]; len(marks) >= 3 && (bare[0] == '`' || bare[0] == '~') {
				fence = marks
			}
		}
		blank = bare == "" && fence == ""
		at += len(l)
	}
	return n
}
