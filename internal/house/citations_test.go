package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// cited are the documents that comments name, below docs/ (docs/spec/README.md).
var cited = map[string]string{
	"store-v3": "spec/store-v3.ja.md",
	"store-v2": "spec/store-v2.ja.md",
	"inherit":  "spec/inherit.ja.md",
	"plan":     "spec/plan.ja.md",
	"route":    "spec/route.ja.md",
	"DESIGN":   "architecture.md",
	"PROTOCOL": "crash-safety.md",

	"spec/README": "spec/README.md",
	"spec/chat":   "spec/chat.md",
	"spec/facts":  "spec/facts.md",
}

// standards are documents of others that are cited by section.
var standards = regexp.MustCompile(`(RFC \d+|CommonMark( [\d.]+)?|ECMA-48|WHATWG HTML|draft 2020-12)$`)

var (
	section  = regexp.MustCompile(`§(\d+(?:\.\d+)*[a-z]?)(?: law (\d+))?`)
	quoted   = regexp.MustCompile(`(PROTOCOL|spec/README) "([^"]+)"(?: (\d+)(?:[–-](\d+))?)?`)
	decided  = regexp.MustCompile(`(?i)\bdecisions?[ /](\d{3})\b`)
	document = regexp.MustCompile(`(?:^|[\s("])((?:docs|spec)/[\w./-]+\.md)\b`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code     = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	heading  = regexp.MustCompile(`^(#+) (.*)$`)
	numbered = regexp.MustCompile(`^(\d+(?:\.\d+)*[a-z]?)\.? `)
	item     = regexp.MustCompile(`^(\d+)\. `)
)

// paper is what can be cited of a document.
type paper struct {
	sections map[string]bool            // "4.2"; of DESIGN also "2.7", the seventh law
	items    map[string]map[string]bool // of a named section, the numbers of its list
	anchors  map[string]bool            // as links name them
	topics   map[string]bool            // first cells of tables
}

func readPaper(text string) paper {
	p := paper{map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}, map[string]bool{}}
	number, name, fenced := "", "", false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if fenced {
			continue
		}
		if h := heading.FindStringSubmatch(line); h != nil {
			number, name = "", strings.TrimSpace(h[2])
			p.anchors[anchor(name)], p.items[name] = true, map[string]bool{}
			if n := numbered.FindStringSubmatch(name); n != nil {
				number = n[1]
				p.sections[number] = true
			}
		} else if n := item.FindStringSubmatch(line); n != nil && name != "" {
			p.items[name][n[1]] = true
			if number != "" {
				p.sections[number+"."+n[1]] = true
			}
		} else if cells := strings.Split(line, "|"); len(cells) > 2 {
			p.topics[strings.Trim(strings.ReplaceAll(cells[1], "`", ""), " ")] = true
		}
	}
	return p
}

// anchor is how a link names a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// library are the documents of the repository, by their path below docs/.
type library struct {
	docs   string
	papers map[string]paper
}

func (l library) paper(t *testing.T, path string) (paper, bool) {
	t.Helper()
	if p, ok := l.papers[path]; ok {
		return p, true
	}
	b, err := os.ReadFile(filepath.Join(l.docs, path))
	if err != nil {
		return paper{}, false
	}
	l.papers[path] = readPaper(string(b))
	return l.papers[path], true
}

// wrong returns what text cites and is not there. The text is one comment, or one
// block of a document, on one line.
func (l library) wrong(t *testing.T, text string) (all []string) {
	t.Helper()
	for _, m := range section.FindAllStringSubmatchIndex(text, -1) {
		at, number := text[:m[0]], text[m[2]:m[3]]
		if m[4] >= 0 {
			number += "." + text[m[4]:m[5]]
		}
		switch name, ok := citedBefore(at); {
		case ok && name == "":
		case !ok:
			all = append(all, "§"+number+" of which document")
		default:
			if p, ok := l.paper(t, cited[name]); !ok || !p.sections[number] {
				all = append(all, name+" §"+number)
			}
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		p, ok := l.paper(t, cited[m[1]])
		steps, section := p.items[m[2]]
		switch {
		case ok && m[1] == "spec/README" && p.topics[m[2]]:
		case ok && section && (m[3] == "" || steps[m[3]]) && (m[4] == "" || steps[m[4]]):
		default:
			all = append(all, m[0])
		}
	}
	for _, m := range decided.FindAllStringSubmatch(text, -1) {
		if found, _ := filepath.Glob(filepath.Join(l.docs, "decisions", m[1]+"-*.md")); len(found) != 1 {
			all = append(all, m[0])
		}
	}
	for _, m := range document.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(l.docs, strings.TrimPrefix(m[1], "docs/"))); err != nil {
			all = append(all, m[1])
		}
	}
	return all
}

// citedBefore is the document that a section is of: the word before the mark, or
// the last document that was named, where only "and" or a comma lies between. ""
// is one of others.
func citedBefore(text string) (name string, ok bool) {
	text = strings.TrimRight(text, " (")
	if standards.MatchString(text) {
		return "", true
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("([«\"`", r) })
	if len(words) == 0 {
		return "", false
	}
	for i, word := range slices.Backward(words) {
		word = strings.TrimSuffix(strings.TrimRight(word, ",;:"), "'s")
		if lower := strings.ToLower(word[:min(1, len(word))]) + word[min(1, len(word)):]; cited[lower] != "" {
			return lower, true
		}
		if cited[word] != "" {
			return word, true
		}
		if i == len(words)-1 && word != "and" && word != "or" && word != "to" && !strings.HasSuffix(words[i], ",") && !strings.HasPrefix(word, "§") {
			return "", false
		}
		if standards.MatchString(strings.Join(words[max(i-1, 0):i+1], " ")) {
			return "", true
		}
	}
	return "", false
}

// Each document, section, step and decision that a comment or a document cites is
// in the repository.
func TestCitationsResolve(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	l := library{filepath.Join(root, "docs"), map[string]paper{}}
	comments, links := 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		switch {
		case d.IsDir():
		case strings.HasSuffix(path, ".go"):
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, c := range tree.Comments {
				comments++
				for _, what := range l.wrong(t, oneLine(c)) {
					t.Errorf("%s cites %s, which is not in docs/", set.Position(c.Pos()), what)
				}
			}
		case strings.HasSuffix(path, ".ja.md"), !strings.HasSuffix(path, ".md"), strings.HasPrefix(path, filepath.Join(root, "internal")):
			// The requirements stand as they came, and what they link to is not here. What
			// lies beside code is read by models.
		default:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for block := range strings.SplitSeq(string(b), "\n\n") {
				for _, what := range l.wrong(t, strings.Join(strings.Fields(block), " ")) {
					t.Errorf("%s cites %s, which is not in docs/", path, what)
				}
			}
			links += l.follow(t, path, string(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if comments < 1000 || links < 30 {
		t.Errorf("%d comments and %d links seen: the walk misses some", comments, links)
	}
}

// follow opens each link of a document that leads into the repository, and counts them.
func (l library) follow(t *testing.T, path, text string) (links int) {
	t.Helper()
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		to, fragment, _ := strings.Cut(m[1], "#")
		if strings.Contains(to, ":") || strings.Contains(to, "UUID") {
			continue
		}
		links++
		target := path
		if to != "" {
			target = filepath.Join(filepath.Dir(path), to)
		}
		b, err := os.ReadFile(target)
		if st, serr := os.Stat(target); serr == nil && st.IsDir() {
			err = nil
		}
		if err != nil || fragment != "" && !readPaper(string(b)).anchors[fragment] {
			t.Errorf("%s links to %s, which is not there", path, m[1])
		}
	}
	return links
}

// oneLine is a comment without its marks and line breaks.
func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// What is cited wrongly is found, whatever way it is written.
func TestCitationsThatDoNotResolve(t *testing.T) {
	t.Parallel()
	l := library{filepath.Join("..", "..", "docs"), map[string]paper{}}
	for text, want := range map[string]int{
		"Source: store-v3 §4.2.":                                     0,
		"store-v3 §4.5 compress, §7.2, §7.4.":                        0,
		"store-v3 §8.2, §10.1 and §10.2, word for word":              0,
		"the head of store-v2 §9.1's example":                        0,
		"(DESIGN §2 law 7)":                                          0,
		"a draft (CommonMark 0.31 §4.5, §6.1)":                       0,
		`PROTOCOL "End, pause, wait" 3–6`:                            0,
		`as spec/README "status" says, decision 005, docs/format.md`: 0,
		"store-v3 §4.9":                                              1,
		"store-v3 §4.5 compress, §7.9":                               1,
		"DESIGN §2.9":                                                1,
		"the reference §6":                                           1,
		"plan §3 says so, and the reference §6 does":                 1,
		"bare §7.1":                   1,
		`PROTOCOL "Claims" 4`:         1,
		`PROTOCOL "Claim" 44`:         1,
		`spec/README "no such topic"`: 1,
		"decisions/999, docs/nowhere.md and route §99, of RFC 9110 §10.2": 3,
	} {
		if got := l.wrong(t, text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
