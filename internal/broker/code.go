package broker

import (
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// regions are the parts of a text, in order, that every reader of Markdown
// takes for code: there nothing is a link, and a tag is a text.
type regions [][2]int

func (r regions) has(i int) bool {
	n, found := slices.BinarySearchFunc(r, i, func(p [2]int, at int) int {
		switch {
		case p[1] <= at:
			return -1
		case p[0] > at:
			return 1
		}
		return 0
	})
	return found && n < len(r)
}

// codeOf finds the code in a text. Parsers differ, so only what is beyond doubt
// counts: fences at the margin or behind quotation marks, closed again, and
// spans in paragraphs whose lines each close all that they open (CommonMark
// 0.31 §4.5, §6.1). From the first doubtful fence on nothing is code.
func codeOf(format Format, s string) regions {
	if !format.markdown() || !strings.ContainsAny(s, "`~") {
		return nil
	}
	return parse(s).code
}

// fence is a code block under way.
type fence struct {
	depth int // quotation marks before it
	mark  string
	at    int // where its content begins
	info  [2]int
}

// layout is what there is to know of a text's code.
type layout struct {
	code  regions
	open  *fence   // at the end of the text, where nothing else ends it
	infos [][2]int // what stands behind the opening fences
}

var doubtful = lazyregexp.New("^[ \t>*+\\-0-9.):|]*(?:```|~~~)")

func parse(s string) (l layout) {
	if strings.HasPrefix(s, "---") || strings.HasPrefix(s, "+++") || strings.HasPrefix(s, ";;;") {
		return l // front matter, for some
	}
	var open *fence
	var paragraph [][2]int
	flush := func() {
		l.code = append(l.code, spans(s, paragraph)...)
		paragraph = nil
	}
	at := 0
	for line := range strings.Lines(s) {
		start, end := at, at+len(strings.TrimSuffix(line, "\n"))
		at += len(line)
		if open != nil {
			depth, from := quoted(s[start:end], open.depth)
			ok := depth == open.depth
			closed := ok && closes(s[start+from:end], open.mark)
			if closed || !ok { // or the quotation that it stands in is over
				l.code, open = append(l.code, [2]int{open.at, start}), nil
			}
			if ok {
				continue
			}
		}
		depth, from := quoted(s[start:end], len(line))
		rest := s[start+from : end]
		if mark, ok := opens(rest); ok {
			flush()
			open = &fence{depth: depth, mark: mark, at: at, info: [2]int{start + from + len(mark), end}}
			l.infos = append(l.infos, open.info)
			continue
		}
		switch {
		case doubtful().MatchString(s[start:end]):
			flush()
			return l
		case strings.TrimSpace(rest) == "":
			flush()
		default:
			paragraph = append(paragraph, [2]int{start, end})
		}
	}
	flush()
	if open != nil && open.depth > 0 {
		l.code = append(l.code, [2]int{open.at, len(s)})
	} else {
		l.open = open
	}
	return l
}

// quoted counts the quotation marks before a line, at most most, and says where
// what is quoted begins.
func quoted(line string, most int) (depth, from int) {
	for depth < most {
		i := from
		for i < len(line) && line[i] == ' ' && i-from < 3 {
			i++
		}
		if i >= len(line) || line[i] != '>' {
			break
		}
		depth++
		from = i + 1
		if from < len(line) && line[from] == ' ' {
			from++
		}
	}
	return depth, from
}

// opens returns the fence that a line opens.
func opens(line string) (mark string, ok bool) {
	if !strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "~~~") {
		return "", false
	}
	n := 0
	for n < len(line) && line[n] == line[0] {
		n++
	}
	return line[:n], n <= 20 && (line[0] == '~' || !strings.Contains(line[n:], "`"))
}

// closes reports whether a line closes a fence.
func closes(line, mark string) bool {
	trimmed := strings.TrimRight(line, " \t")
	indent := len(trimmed) - len(strings.TrimLeft(trimmed, " "))
	trimmed = trimmed[indent:]
	return indent <= 3 && len(trimmed) >= len(mark) && strings.Trim(trimmed, mark[:1]) == ""
}

// spans finds the code spans of a paragraph, none where a line of it leaves one
// open or a reader of tables might see something else.
func spans(s string, lines [][2]int) (all regions) {
	for _, l := range lines {
		line := s[l[0]:l[1]]
		for i := 0; i < len(line); {
			if line[i] != '`' {
				i++
				continue
			}
			n := run(line, i)
			if i > 0 && (line[i-1] == '\\' || line[i-1] == '$') {
				return nil
			}
			j := i + n
			for j < len(line) && (line[j] != '`' || run(line, j) != n) {
				if line[j] == '|' {
					return nil
				}
				j += max(run(line, j), 1)
			}
			if j >= len(line) {
				return nil
			}
			all = append(all, [2]int{l[0] + i, l[0] + j + n})
			i = j + n
		}
	}
	return all
}

// run is the number of backticks at line[i].
func run(line string, i int) int {
	n := 0
	for i+n < len(line) && line[i+n] == '`' {
		n++
	}
	return n
}

var language = lazyregexp.New(`^ ?[A-Za-z0-9_+#.-]{0,30} *$`)

// drawn are the languages of blocks that a forge does not show but runs: it
// draws them, fetches for them or applies them.
var drawn = []string{"mermaid", "math", "geojson", "topojson", "stl", "plantuml", "puml", "kroki", "graphviz", "dot", "suggestion", "iframe", "html+live", "vega", "vegalite"}

// fences closes the code block that a text leaves open, which would swallow
// what stands behind it, and takes from the others what is not shown of them.
func fences(_ *Filter, format Format, s string) (edits []edit) {
	if !format.markdown() || !strings.ContainsAny(s, "`~") {
		return nil
	}
	l := parse(s)
	for _, p := range l.infos {
		info := s[p[0]:p[1]]
		word, _, _ := strings.Cut(strings.TrimSpace(info), " ")
		word, _, _ = strings.Cut(word, ":")
		known, _, _ := strings.Cut(strings.ToLower(word), "-")
		switch {
		case slices.Contains(drawn, known):
			edits = append(edits, edit{p[0], p[1], "text", FoundStyle})
		case !language().MatchString(info) && language().MatchString(word):
			edits = append(edits, edit{p[0], p[1], word, FoundHidden})
		case !language().MatchString(info):
			edits = append(edits, edit{p[0], p[1], "", FoundHidden})
		}
	}
	if l.open != nil {
		end := "\n" + l.open.mark + "\n"
		if strings.HasSuffix(s, "\n") {
			end = end[1:]
		}
		edits = append(edits, edit{len(s), len(s), end, FoundFence})
	}
	return edits
}
