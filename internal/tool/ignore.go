package tool

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"
)

// What a rule says of an entry.
type verdict uint8

const (
	unnamed  verdict = iota
	ignored          // by a pattern
	included         // by a pattern with !
)

// Bounds of a file of rules: what is beyond is not read.
const (
	maxRules   = 64 << 10 // bytes of a file
	maxPattern = 4 << 10  // bytes of a pattern; a longer one is left out
)

// The steps that ignore files may take in one walk, about a second, and those
// after which a comparison looks at what is left.
const (
	maxEffort  = 200_000_000
	someEffort = 10_000
)

// effort is what a walk may still spend on ignore files. Workers share it.
type effort struct {
	left atomic.Int64 // steps; at 0 nothing more is left out
	long atomic.Int64 // files of which not all was read
}

// ignorePattern is one line of a .gitignore (git's dir.c, struct path_pattern).
type ignorePattern struct {
	text    string
	plain   int  // bytes before the first special character
	negated bool // !pattern
	dirOnly bool // pattern/
	name    bool // without a slash: compared with the name only
	suffix  bool // * and then nothing special
	slashes int  // how many slashes a match has; -1 where that is open
}

// ignoreList is the patterns of one file in their order.
type ignoreList struct {
	patterns []ignorePattern
	names    map[string][]int // those that are a plain name, by it, ascending
	others   []int            // the others, ascending
}

// parseIgnore reads the rules of a file; nil where there are none.
func parseIgnore(data string) *ignoreList {
	l := &ignoreList{names: map[string][]int{}}
	for line := range strings.SplitSeq(strings.TrimPrefix(data, "\ufeff"), "\n") {
		// An escaped return would stay the pattern's; nobody has one.
		line = strings.TrimSuffix(line, "\r")
		line, _, _ = strings.Cut(line, "\x00")
		if line == "" || line[0] == '#' {
			continue
		}
		p, ok := parsePattern(trimSpaces(line))
		if !ok {
			continue
		}
		n := len(l.patterns)
		l.patterns = append(l.patterns, p)
		if p.name && p.plain == len(p.text) {
			l.names[p.text] = append(l.names[p.text], n)
		} else {
			l.others = append(l.others, n)
		}
	}
	if len(l.patterns) == 0 {
		return nil
	}
	return l
}

// trimSpaces drops the spaces at the end of a line but for an escaped one.
func trimSpaces(s string) string {
	end := -1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if end < 0 {
				end = i
			}
		case '\\':
			i++
			if i == len(s) {
				return s
			}
			end = -1
		default:
			end = -1
		}
	}
	if end < 0 {
		return s
	}
	return s[:end]
}

func parsePattern(s string) (p ignorePattern, ok bool) {
	if strings.HasPrefix(s, "!") {
		p.negated, s = true, s[1:]
	}
	if strings.HasSuffix(s, "/") {
		p.dirOnly, s = true, s[:len(s)-1]
	}
	if len(s) > maxPattern {
		return p, false
	}
	p.name = !strings.Contains(s, "/")
	p.text = s
	p.plain = plainLen(s)
	p.suffix = strings.HasPrefix(s, "*") && plainLen(s[1:]) == len(s)-1
	p.slashes = -1
	if !p.name {
		p.text = strings.TrimPrefix(s, "/")
		p.plain = plainLen(p.text)
		if !strings.Contains(p.text, "**") && !strings.Contains(p.text, "[") {
			p.slashes = strings.Count(p.text, "/")
		}
	}
	return p, true
}

// plainLen is how much of s comes before the first special character.
func plainLen(s string) int {
	if i := strings.IndexAny(s, `*?[\`); i >= 0 {
		return i
	}
	return len(s)
}

// match says what the last matching pattern says of rel, a path relative to
// the directory of the rules, whose last part is name.
func (l *ignoreList) match(rel, name string, isDir bool, e *effort) verdict {
	best, taken := -1, 1+len(l.names[name])
	for _, n := range l.names[name] {
		if isDir || !l.patterns[n].dirOnly {
			best = n
		}
	}
	for k := len(l.others) - 1; k >= 0 && l.others[k] > best; k-- {
		n := l.others[k]
		matches, steps := l.patterns[n].match(rel, name, isDir)
		if matches {
			best = n
		}
		if taken += 1 + steps; taken > someEffort {
			if e.left.Add(-int64(taken)) <= 0 {
				return unnamed
			}
			taken = 0
		}
	}
	e.left.Add(-int64(taken))
	switch {
	case best < 0:
		return unnamed
	case l.patterns[best].negated:
		return included
	}
	return ignored
}

func (p *ignorePattern) match(rel, name string, isDir bool) (matches bool, steps int) {
	if p.dirOnly && !isDir {
		return false, 0
	}
	if p.name {
		if p.suffix {
			return strings.HasSuffix(name, p.text[1:]), 0
		}
		return wildmatch(p.text, name, false)
	}
	if p.slashes >= 0 && strings.Count(rel, "/") != p.slashes {
		return false, len(rel) / 64
	}
	// What is plain is compared first, and what follows it as a pattern of its
	// own: "a**/b" is therefore a and then **/b, as git has it.
	if len(rel) < p.plain || rel[:p.plain] != p.text[:p.plain] {
		return false, len(rel) / 64
	}
	if p.plain == len(p.text) {
		return len(rel) == p.plain, len(rel) / 64
	}
	return wildmatch(p.text[p.plain:], rel[p.plain:], true)
}

// rules are the ignore files that hold in a directory: its own and those above.
type rules struct {
	above     *rules
	base      string      // the directory they lie in, "" for the workspace
	gitignore *ignoreList // may be nil
	ignore    *ignoreList // of .ignore, which wins over every .gitignore; may be nil
}

// ignored reports whether rel, whose last part is name, is left out. That a
// directory above it is, is for the walk to know. Once no step is left, nothing is ignored.
func (r *rules) ignored(rel, name string, isDir bool, e *effort) bool {
	byGit := unnamed
	for ; r != nil; r = r.above {
		if e.left.Load() <= 0 {
			return false
		}
		below := rel
		if r.base != "" {
			below = rel[len(r.base)+1:]
		}
		if r.ignore != nil {
			if v := r.ignore.match(below, name, isDir, e); v != unnamed {
				return v == ignored
			}
		}
		if r.gitignore != nil && byGit == unnamed {
			byGit = r.gitignore.match(below, name, isDir, e)
		}
	}
	return byGit == ignored
}

// The names of the files of rules.
const (
	gitignoreFile = ".gitignore"
	ignoreFile    = ".ignore"
)

// with returns the rules in the directory rel, of which it is known whether it
// has files of rules of its own.
func (r *rules) with(w *workspaceFiles, rel string, hasGit, hasIgnore bool, e *effort) *rules {
	own := rules{above: r}
	if rel != "." {
		own.base = rel
	}
	if hasGit {
		own.gitignore = w.readRules(inDir(rel, gitignoreFile), e)
	}
	if hasIgnore {
		own.ignore = w.readRules(inDir(rel, ignoreFile), e)
	}
	if own.gitignore == nil && own.ignore == nil {
		return r
	}
	return &own
}

// readRules reads a file of rules. One that cannot be read has none; a link is
// not followed, as in git. What is kept takes steps as well, about two a byte:
// there may be such a file in each of very many directories.
func (w *workspaceFiles) readRules(rel string, e *effort) *ignoreList {
	info, err := w.root.Lstat(rel)
	if err != nil || e.left.Load() <= 0 || !info.Mode().IsRegular() {
		return nil
	}
	f, _, problem := w.open(rel)
	if problem != "" {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	data, _ := io.ReadAll(io.LimitReader(f, maxRules+1))
	if len(data) > maxRules { // without the line that is cut, which is another pattern
		data = data[:bytes.LastIndexByte(data[:maxRules], '\n')+1]
		e.long.Add(1)
	}
	l := parseIgnore(string(data))
	if l != nil {
		e.left.Add(-int64(2*len(data) + 200*len(l.patterns)))
	}
	return l
}

// inDir joins a directory of the workspace and a name in it.
func inDir(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
