package project

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/workspace"
)

// Rule is one file of rules.
type Rule struct {
	Path string // where it stands
	Text string // as it stands there; "" where Why says why not
	Size int64  // of the whole file, in bytes
	Cut  bool   // Text is its beginning only
	By   string // file that imports it, "" for one that is found by its name
	From string // file that Path links to, "" for no link
	Why  string // it has no text
	Note string // what a reader would not see
}

// dir is the directory that a rule speaks for.
func (r Rule) dir() string {
	if d := path.Dir(r.Path); d != "." {
		return d
	}
	return ""
}

// Rules are the files in which a project says how work in it is done, those of
// the root and what they import first, then those of directories, nearest to the
// root first.
type Rules struct {
	Files []Rule
	Left  int // files in directories that were not looked at, being too many
}

// ruleNames are the names of files of rules, in lower case and in their order.
var ruleNames = []string{"agents.md", "claude.md", "agent.md"}

// Bounds of the rules.
const (
	maxNested  = 200 // files in directories
	maxRoot    = 12  // files in the root; names differ by case
	maxImports = 30
	maxDepth   = 3 // of imports that import
)

// candidates are files with a name of rules, as the walk finds them.
type candidates struct {
	root, nested []workspace.Entry
	left         int
}

func (c *candidates) add(e workspace.Entry, dir, name string, whose class) {
	if len(name) > len("agents.md") || !slices.Contains(ruleNames, strings.ToLower(name)) {
		return
	}
	switch {
	case whose == foreign || whose == bulk && slices.ContainsFunc(strings.Split(dir, "/"), fixture):
		// in other people's code
	case dir == "" && len(c.root) < maxRoot:
		c.root = append(c.root, e)
	default:
		// The walk is in the order of names, and the nearest are wanted.
		if c.nested = append(c.nested, e); len(c.nested) >= 2*maxNested {
			c.trim()
		}
	}
}

// fixture tells directories whose files tests read.
func fixture(part string) bool {
	return strings.HasPrefix(strings.ToLower(part), "test") || strings.Contains(strings.ToLower(part), "fixture")
}

func (c *candidates) trim() {
	slices.SortFunc(c.nested, nearer)
	if over := len(c.nested) - maxNested; over > 0 {
		c.left += over
		c.nested = c.nested[:maxNested]
	}
}

// nearer orders files by how deep they stand, their directory, and their name.
func nearer(a, b workspace.Entry) int {
	da, na := path.Split(a.Path)
	db, nb := path.Split(b.Path)
	rank := func(name string) int { return slices.Index(ruleNames, strings.ToLower(name)) }
	return cmp.Or(cmp.Compare(strings.Count(da, "/"), strings.Count(db, "/")), strings.Compare(da, db), cmp.Compare(rank(na), rank(nb)), strings.Compare(na, nb))
}

// loader reads files of a commit, each once.
type loader struct {
	repo    Repository
	commit  string
	maxFile int64
	left    int               // bytes that all rules may still take
	texts   map[string]string // by blob, the path it was shown under
	imports int
}

func (l *loader) rules(ctx context.Context, c candidates) (r Rules, err error) {
	slices.SortFunc(c.root, nearer)
	c.trim()
	r.Left, l.texts = c.left, map[string]string{}
	groups := [][]workspace.Entry{c.root}
	for _, all := range slices.AppendSeq(groups, slices.Chunk(c.nested, maxRoot)) { // no more is read than there is room for
		found := make([]ruleEntry, len(all))
		for i, e := range all {
			found[i] = ruleEntry{Rule{Path: e.Path}, e}
		}
		rules, err := l.load(ctx, found)
		if err != nil {
			return r, err
		}
		r.Files = append(r.Files, rules...)
		for range maxDepth {
			if rules, err = l.imported(ctx, rules); err != nil {
				return r, err
			}
			r.Files = append(r.Files, rules...)
		}
	}
	return r, nil
}

// ruleEntry is a rule whose text is to be read from an entry.
type ruleEntry struct {
	Rule
	entry workspace.Entry // no ID where it has no text
}

// load reads files, links through one step.
func (l *loader) load(ctx context.Context, all []ruleEntry) (rules []Rule, err error) {
	if err := l.follow(ctx, all); err != nil {
		return nil, err
	}
	var ids []string
	for _, w := range all {
		if w.entry.ID != "" && l.texts[w.entry.ID] == "" {
			ids = append(ids, w.entry.ID)
		}
	}
	blobs := map[string]workspace.Blob{}
	if l.left > 0 && len(ids) > 0 {
		slices.Sort(ids)
		if blobs, err = l.repo.Blobs(ctx, slices.Compact(ids), min(l.maxFile, int64(l.left))); err != nil {
			return nil, err
		}
	}
	for _, w := range all {
		if w.Why == "" {
			l.accept(&w, blobs)
		}
		rules = append(rules, w.Rule)
	}
	return rules, nil
}

// accept makes a blob the text of a rule.
func (l *loader) accept(w *ruleEntry, blobs map[string]workspace.Blob) {
	b, ok := blobs[w.entry.ID]
	w.Size = b.Size
	data := b.Data[:min(len(b.Data), max(l.left, 0))]
	w.Cut = int64(len(data)) < b.Size
	if w.Cut {
		data = wholeRunes(data)
	}
	switch same := l.texts[w.entry.ID]; {
	case same != "":
		w.Why, w.Cut = "the same text as "+shown(same), false
	case l.left <= 0:
		w.Why = "there is no room for more rules (project_agent_rules.max_total_size)"
	case !ok:
		w.Why = "it cannot be read"
	case len(data) == 0 && w.Cut:
		w.Why = fmt.Sprintf("%d bytes are too large to be read", w.Size)
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		w.Why = "it is not text in UTF-8"
	default:
		l.texts[w.entry.ID] = w.Path
		l.left -= len(data)
		w.Text = string(bytes.TrimPrefix(data, []byte("\uFEFF")))
		if n := unseen(w.Text); n > 0 {
			w.Note = fmt.Sprintf("%d characters in it cannot be seen", n)
		}
		return
	}
	w.Cut = false
}

// wholeRunes takes the beginning of a character off the end.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// follow replaces links by what they point to, as far as that is a file of the
// repository.
func (l *loader) follow(ctx context.Context, all []ruleEntry) error {
	var ids []string
	for _, w := range all {
		if w.entry.Mode == workspace.ModeLink {
			ids = append(ids, w.entry.ID)
		}
	}
	if ids == nil {
		return nil
	}
	links, err := l.repo.Blobs(ctx, ids, maxLink)
	if err != nil {
		return err
	}
	to := make([]string, len(all))
	var paths []string
	for i, w := range all {
		if w.entry.Mode == workspace.ModeLink {
			if to[i] = within(w.Path, string(links[w.entry.ID].Data)); to[i] != "" {
				paths = append(paths, to[i])
			}
		}
	}
	found, err := l.repo.Find(ctx, l.commit, paths)
	if err != nil {
		return err
	}
	for i := range all {
		w := &all[i]
		if w.entry.Mode != workspace.ModeLink {
			continue
		}
		e, ok := found[to[i]]
		w.From, w.entry = to[i], e
		switch {
		case to[i] == "":
			w.Why = "it links out of the repository"
		case !ok || e.Mode == workspace.ModeSubmodule:
			w.Why = "it links to " + shown(to[i]) + ", which is not a file of the repository"
		case e.Mode == workspace.ModeLink:
			w.Why = "it links to " + shown(to[i]) + ", which is a link itself"
		}
		if w.Why != "" {
			w.entry = workspace.Entry{}
		}
	}
	return nil
}

// maxLink is the longest target of a link, in bytes (the kernel's PATH_MAX).
const maxLink = 4096

// within is the path in the repository that a file names relative to itself, ""
// where it is none.
func within(file, target string) string {
	if target == "" || len(target) >= maxLink || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return ""
	}
	if p := path.Join(path.Dir(file), target); p != "." && filepath.IsLocal(p) {
		return p
	}
	return ""
}

// imported loads what rules import and nobody has shown before.
func (l *loader) imported(ctx context.Context, rules []Rule) ([]Rule, error) {
	var all []ruleEntry
	var paths []string
	for _, r := range rules {
		at := cmp.Or(r.From, r.Path)
		for _, target := range importsOf(r.Text) {
			p := within(at, target)
			if p != "" && slices.Contains(paths, p) {
				continue
			}
			w := ruleEntry{Rule: Rule{Path: p, By: r.Path}}
			switch l.imports++; {
			case l.imports > maxImports+1:
				continue
			case l.imports > maxImports:
				w.Path, w.Why = target, fmt.Sprintf("no more than %d imports are read", maxImports)
			case p == "":
				w.Path, w.Why = target, "it is not in the repository"
			default:
				paths = append(paths, p)
			}
			all = append(all, w)
		}
	}
	found, err := l.repo.Find(ctx, l.commit, paths)
	if err != nil {
		return nil, err
	}
	kept := all[:0]
	for _, w := range all {
		if w.Why == "" {
			e, ok := found[w.Path]
			switch {
			case ok && e.Mode != workspace.ModeSubmodule:
				if l.texts[e.ID] == w.Path {
					continue // it is there already
				}
				w.entry = e
			case !strings.ContainsAny(w.Path, "./"):
				continue // somebody's name
			default:
				w.Why = "there is no such file"
			}
		}
		kept = append(kept, w)
	}
	return l.load(ctx, kept)
}

// importLine is a line that says nothing but @path, in a list or not.
var importLine = lazyregexp.New(`^[ \t]*(?:[-*+][ \t]+)?@([^\s@]{1,1000})[ \t]*\r?$`)

// importsOf are the paths that a text imports, outside of fenced code.
func importsOf(text string) (all []string) {
	if !strings.Contains(text, "@") {
		return nil
	}
	eachLine(text, func(line string, fence *fence) {
		if fence == nil {
			if m := importLine().FindStringSubmatch(line); m != nil {
				all = append(all, m[1])
			}
		}
	})
	return all
}

// unseen counts characters that hide text or turn it around, but for those that
// writing and emoji need.
func unseen(s string) (n int) {
	for _, r := range s {
		switch {
		case r < ' ' && r != '\n' && r != '\t' && r != '\r', r >= 0x7f && r < 0xa0,
			r == 0xad, r == 0x200b, r == 0x2060, r == 0xfeff, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
			r >= 0xe0000 && r <= 0xe0fff, r == 0x3164, r == 0x115f, r == 0x1160, r == 0xffa0, r >= 0xe000 && r <= 0xf8ff:
			n++
		}
	}
	return n
}
