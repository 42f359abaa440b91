package project

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"toritsugi/internal/lazyregexp"
)

// Bounds of the files that a map begins with.
const (
	maxLikely  = 8
	maxEntries = 4
	maxAbout   = 32 << 10 // bytes of the task that are read
)

// likely names the files that a task is likely to be about, the likeliest first, the
// directories that it names, each with how many files are below it, and, where that is
// wanted, where programs begin, in at most budget bytes.
func (m *FileMap) likely(about string, budget int, begin bool) string {
	q := newQuery(about)
	m.root.each("", func(f file) { q.count(f) })
	var found, entries []file
	m.root.each("", func(f file) {
		switch f.score = q.score(f, m.Files); {
		case f.score > 0:
			found = append(found, f)
		case begin && f.class == own && entryNames[strings.ToLower(f.name)]:
			entries = append(entries, f)
		}
	})
	order := func(a, b file) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")), cmp.Compare(a.path, b.path))
	}
	slices.SortFunc(found, order)
	best := 0 // by words alone
	for _, f := range found {
		if f.score < named {
			best = max(best, f.score)
		}
	}
	found = slices.DeleteFunc(found, func(f file) bool { return 3*f.score < 2*best })
	slices.SortFunc(entries, order)
	names := func(all []file, most int) (shownAll []string) {
		for _, f := range all[:min(len(all), most)] {
			shownAll = append(shownAll, shown(f.path))
		}
		return shownAll
	}
	var dirs []string
	m.root.namedBy(q, "", &dirs)
	var b strings.Builder
	for _, l := range []struct {
		head string
		all  []string
	}{{"Likely files:", append(names(found, maxLikely), dirs...)}, {"Entry points:", names(entries, maxEntries)}} {
		line := l.head
		for _, f := range l.all {
			if next := line + " " + f; b.Len()+len(next)+1 <= budget {
				line = next
			}
		}
		if line != l.head {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// entryNames are where programs and packages begin, in lower case.
var entryNames = set("main.go", "main.py", "__main__.py", "app.py", "cli.py", "manage.py", "main.rs", "lib.rs", "index.ts", "index.js", "index.tsx", "main.ts", "main.js",
	"main.c", "main.cc", "main.cpp", "main.java", "program.cs", "main.swift", "main.kt")

// file is one whose name is kept.
type file struct {
	path, dir, name string
	class           class
	score           int
}

// each calls f for each file that people read and whose name is kept, in order.
func (d *dir) each(at string, f func(file)) {
	for _, name := range d.files {
		f(file{path: path.Join(at, name), dir: at, name: name, class: d.class})
	}
	for _, s := range d.dirs {
		s.each(path.Join(at, s.name), f)
	}
}

// namedBy collects the directories that a task names, at most maxEntries of them.
func (d *dir) namedBy(q *query, at string, all *[]string) {
	for _, s := range d.dirs {
		p := path.Join(at, s.name)
		if len(*all) < maxEntries && q.namesDir(at, p) {
			*all = append(*all, fmt.Sprintf("%s/ (%d)", shown(p), s.all))
		}
		s.namedBy(q, p, all)
	}
}

// query is what a task says: the files and directories that it names, and its words.
type query struct {
	paths []string
	dirs  []string       // written with a slash at the end
	words map[string]int // by stem: how many files have it in their name
	title []string       // those of the first line, which count thrice
}

// aPath is what names a file: it has a slash or an ending.
var aPath = lazyregexp.New(`[\pL\pN_@+-]*(?:[./\\][\pL\pN_@+-]+)+`)

func newQuery(about string) *query {
	about = strings.ToValidUTF8(about[:min(len(about), maxAbout)], "")
	q := &query{words: map[string]int{}}
	for _, p := range aPath().FindAllString(about, 1000) {
		if p = strings.Trim(strings.ReplaceAll(p, `\`, "/"), "./"); len(p) > 2 && !slices.Contains(q.paths, p) {
			q.paths = append(q.paths, p)
		}
	}
	for _, m := range aDir().FindAllStringSubmatch(about, 1000) {
		if d := strings.Trim(strings.ReplaceAll(m[1], `\`, "/"), "./"); len(d) > 1 && !slices.Contains(q.dirs, d) {
			q.dirs = append(q.dirs, d)
		}
	}
	title, _, _ := strings.Cut(about, "\n")
	q.title = words(title)
	for _, w := range words(about) {
		if !common[w] || slices.Contains(q.title, w) {
			q.words[w] = 0
		}
	}
	return q
}

// common are stems that code and reports of any project hold: below the title they tell no file.
var common = set("typ", "struct", "func", "function", "var", "const", "import", "packag", "class", "def", "self", "this", "return", "int", "string", "bool", "byt", "float", "null",
	"nil", "tru", "fals", "non", "err", "error", "exception", "panic", "except", "expect", "actual", "valu", "nam", "key", "data", "fil", "cod", "doc", "docum", "exampl", "item", "list", "map", "array",
	"main", "index", "lib", "src", "util", "helper", "common", "commo", "get", "set", "new", "add", "run", "print", "println", "consol", "log", "assert", "with", "from", "for", "and", "the", "not")

// aDir is what names a directory by the slash at its end.
var aDir = lazyregexp.New(`([\pL\pN_@+./\\-]+)[/\\](?:[^\pL\pN_@+-]|$)`)

// namesDir reports whether the task names a directory by the end of its path: by two
// parts or more, or with a slash at the end. up is the path of the one above it, which
// may be more than a part shorter.
func (q *query) namesDir(up, p string) bool {
	in := func(name string) bool {
		i := strings.LastIndex("/"+p+"/", "/"+name+"/")
		return i >= 0 && i+len(name) > len(up)
	}
	return slices.ContainsFunc(q.dirs, in) || slices.ContainsFunc(q.paths, func(name string) bool { return strings.Contains(name, "/") && in(name) })
}

// names reports whether the task names a file by the end of its path, as a module with
// dots (package.module), or a longer path ends in it, as those of traces do.
func (q *query) names(f file) bool {
	module := "/" + strings.TrimSuffix(f.path, path.Ext(f.path))
	return slices.ContainsFunc(q.paths, func(p string) bool {
		return strings.HasSuffix("/"+f.path, "/"+p) || f.dir != "" && strings.HasSuffix(p, "/"+f.path) ||
			f.dir != "" && !strings.Contains(p, "/") && strings.HasSuffix(module, "/"+strings.ReplaceAll(p, ".", "/"))
	})
}

func (q *query) count(f file) {
	for _, w := range words(stem(f.name)) {
		if _, asked := q.words[w]; asked {
			q.words[w]++
		}
	}
}

// named is the score of a file that the task names: more than words can have.
const named = 1000

// score is how likely a task is about a file, 0 for not at all, of a repository
// with so many files: that it is named tells most, then rare words of its name, those
// of the title before others. A word that many names have tells nothing.
func (q *query) score(f file, files int) (n int) {
	if q.names(f) {
		n += named
	}
	if f.class != own {
		return n
	}
	parts := words(stem(f.name))
	for _, w := range parts {
		if df := q.words[w]; df > 0 && df <= max(6, files/50) {
			weight := 12
			if slices.Contains(q.title, w) {
				weight *= 3
			}
			n += weight / max(len(parts), min(df, 4))
		}
	}
	for _, w := range words(path.Base(f.dir)) {
		if _, asked := q.words[w]; asked && n > 0 {
			n++
		}
	}
	return n
}

// stem is a name without its ending.
func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// words are those of a text that may tell a file, each once, in lower case and
// without the ends that grammar gives them: also those within identifiers.
func words(text string) (all []string) {
	var w []rune
	flush := func() {
		s := strings.ToLower(string(w))
		for _, end := range [...]string{"ing", "ion", "ers", "er", "ed", "es", "s", "e"} {
			if cut, ok := strings.CutSuffix(s, end); ok && len(cut) >= 3 {
				s = cut
				break
			}
		}
		if len(s) >= 3 && !slices.Contains(all, s) && s != "test" {
			all = append(all, s)
		}
		w = w[:0]
	}
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r):
			flush()
			continue
		case unicode.IsUpper(r) && len(w) > 0 && unicode.IsLower(w[len(w)-1]):
			flush()
		}
		w = append(w, r)
	}
	flush()
	return all
}
