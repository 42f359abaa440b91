package tool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed list_files.md
var listFilesPage string

const listFilesSchema = `{"type":"object","properties":{"path":{"type":"string"},"pattern":{"type":"string"},"depth":{"$comment":"untold","type":"integer","minimum":1,"maximum":100},` +
	`"ignored":{"$comment":"untold","type":"boolean"},"limit":{"$comment":"untold","type":"integer","minimum":1,"maximum":2000}},"additionalProperties":false}`

type listFilesArgs struct {
	Path    string `json:"path"`
	Pattern string `json:"pattern"`
	Depth   Number `json:"depth"`
	Ignored bool   `json:"ignored"`
	Limit   Number `json:"limit"`
}

// defaultList is how many files are listed where no limit is given.
const defaultList = 200

func listFilesTool(w *workspaceFiles) Tool {
	def := Describe("list_files", listFilesPage, listFilesSchema, true, append(searchAliases, "max_depth", "depth", "glob", "pattern", "query", "pattern", "name", "pattern", "file_pattern", "pattern")...)
	def.Was = func(args json.RawMessage) string {
		var a listFilesArgs
		if json.Unmarshal(args, &a) == nil && a.Pattern != "" {
			return "glob"
		}
		return def.Name
	}
	return builtin[listFilesArgs]{
		def: def,
		call: func(ctx context.Context, a listFilesArgs) (Result, error) {
			dir, problem := w.directory(a.Path)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			var g *glob
			if a.Pattern != "" {
				var err error
				if g, err = newGlob(a.Pattern); err != nil {
					return Failf("The pattern cannot be used: %v.", err), nil
				}
			}
			l := listing{w: w, dir: dir, limit: cmp.Or(int(a.Limit), defaultList), below: map[string]int{}}
			tree, err := w.walk(ctx, dir, walkOptions{ignored: a.Ignored, depth: int(a.Depth)})
			if tree == nil || ctx.Err() != nil {
				return ended(ctx, w.explain(dir, err))
			}
			tree.entries(func(rel string, kind entryKind) {
				if ctx.Err() != nil {
					return
				}
				if g == nil || kind != kindDir && g.match(below(dir, rel)) {
					l.add(rel, kind)
				}
			})
			if ctx.Err() != nil {
				return Result{}, ctx.Err()
			}
			switch {
			case l.total > 0:
			case g == nil:
				fmt.Fprintf(&l.b, "There are no files below %s.\n", shownName(dir))
			default:
				fmt.Fprintf(&l.b, "No file below %s matches %s.\n", shownName(dir), clip(a.Pattern, 200))
			}
			return Text(l.text(w.max) + tree.gaps(a.Ignored || g != nil && l.total > 0)), nil
		},
	}
}

// directory resolves the path of a directory as a model wrote it, "" for the
// workspace.
func (w *workspaceFiles) directory(p string) (dir, problem string) {
	shown, problem := w.rel(cmp.Or(p, "."))
	if problem != "" {
		return "", problem
	}
	dir, err := w.resolve(shown)
	if err != nil {
		return "", w.explain(shown, err)
	}
	info, err := w.root.Stat(dir)
	if err != nil {
		return "", w.explain(shown, err)
	}
	if !info.IsDir() {
		return "", fmt.Sprintf("%s is a file of %d bytes, not a directory. Use read_file to see it.", shown, info.Size())
	}
	return dir, ""
}

// gaps says what of the tree the answer does not know, a line or nothing.
func (t *walkTree) gaps(all bool) string {
	var gaps []string
	if t.ignored > 0 && !all {
		gaps = append(gaps, counted(t.ignored, "name")+" left out by .gitignore or .ignore; set ignored to see them")
	}
	gaps = append(gaps, t.limits()...)
	if len(gaps) == 0 {
		return ""
	}
	return "[" + strings.Join(gaps, "; ") + "]\n"
}

// limits says where the walk could not do what it does.
func (t *walkTree) limits() (said []string) {
	if t.full {
		said = append(said, fmt.Sprintf("there are more than %d files, and not all were looked at", maxNames))
	}
	if t.closed > 0 {
		said = append(said, directories(t.closed)+" could not be read")
	}
	if t.long > 0 {
		said = append(said, fmt.Sprintf("of %s only the first %d bytes hold", counted(t.long, "ignore file"), maxRules))
	}
	if t.unruled {
		said = append(said, "the patterns of .gitignore and .ignore take too long, and not everything they name was left out")
	}
	return said
}

func directories(n int) string {
	if n == 1 {
		return "1 directory"
	}
	return fmt.Sprintf("%d directories", n)
}

// listing keeps the first entries in order and counts the others.
type listing struct {
	w     *workspaceFiles
	dir   string
	limit int
	first []string // at most limit, as they are shown
	total int
	below map[string]int // entries by the first directory below dir
	b     strings.Builder
}

// maxDirs is how many directories a listing counts files of.
const maxDirs = 1000

func (l *listing) add(rel string, kind entryKind) {
	l.total++
	if top, _, deep := strings.Cut(below(l.dir, rel), "/"); deep {
		if _, ok := l.below[top]; ok || len(l.below) < maxDirs {
			l.below[top]++
		}
	}
	if len(l.first) < l.limit {
		l.first = append(l.first, shownEntry(rel, kind))
	}
}

// shownEntry is a path with a mark of what it is where it is no plain file.
func shownEntry(rel string, kind entryKind) string {
	switch kind {
	case kindDir:
		return shownName(rel) + "/"
	case kindLink:
		return shownName(rel) + " (link)"
	case kindOther:
		return shownName(rel) + " (no regular file)"
	}
	return shownName(rel)
}

// shownDirs is how many directories are named where the listing is cut.
const shownDirs = 20

// text is the listing in at most about room bytes.
func (l *listing) text(room int) string {
	room -= 100*shownDirs/2 + 300
	shown := 0
	for _, name := range l.first {
		if shown > 0 && l.b.Len()+len(name) >= room {
			break
		}
		l.b.WriteString(name + "\n")
		shown++
	}
	rest := l.total - shown
	if rest == 0 {
		return l.b.String()
	}
	fmt.Fprintf(&l.b, "[%s of %d; narrow it with path, pattern or depth]\n", counted(rest, "more file"), l.total)
	if len(l.below) > 0 && len(l.below) < maxDirs {
		names := slices.SortedFunc(maps.Keys(l.below), func(a, b string) int {
			return cmp.Or(cmp.Compare(l.below[b], l.below[a]), strings.Compare(a, b))
		})
		names = names[:min(len(names), shownDirs)]
		for i, n := range names {
			names[i] = fmt.Sprintf("%s (%d)", clip(l.w.shown(inDir(l.dir, n)), 60), l.below[n])
		}
		fmt.Fprintf(&l.b, "[directories with most files: %s]\n", strings.Join(names, ", "))
	}
	return l.b.String()
}

// below returns rel as seen from dir.
func below(dir, rel string) string {
	if dir == "." {
		return rel
	}
	return strings.TrimPrefix(rel, dir+"/")
}
