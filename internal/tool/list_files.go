package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

//go:embed list_files.md
var listFilesPage string

const listFilesSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"Directory to list, relative to the workspace; the workspace if not given."},` +
	`"pattern":{"type":"string","description":"Glob that the files must match, e.g. *.go or src/**/*.ts."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"Most files to list; 200 if not given."}},` +
	`"required":[],"additionalProperties":false}`

type listFilesArgs struct {
	Path    string `json:"path"`
	Pattern string `json:"pattern"`
	Limit   number `json:"limit"`
}

// Lister knows which files of a workspace belong to the project: those that
// git tracks or would track.
type Lister interface {
	// Files calls yield with each such file below dir ("." for all), as a path
	// with slashes relative to the workspace, in any order, until yield returns
	// false. It fails where git does, and with ctx's error where ctx ended.
	Files(ctx context.Context, dir string, yield func(rel string) bool) error
}

// defaultList is how many files are listed where no limit is given.
const defaultList = 200

func listFilesTool(w *space) Tool {
	return builtin[listFilesArgs]{
		def: describe("list_files", listFilesPage, listFilesSchema, true),
		call: func(ctx context.Context, a listFilesArgs) (Result, error) {
			dir, problem := w.rel(cmp.Or(a.Path, "."))
			if problem != "" {
				return Failf("%s", problem), nil
			}
			shown := dir
			dir, err := w.resolve(shown)
			if err != nil {
				return Failf("%s", w.explain(shown, err)), nil
			}
			info, err := w.root.Stat(dir)
			if err != nil {
				return Failf("%s", w.explain(dir, err)), nil
			}
			if !info.IsDir() {
				return Failf("%s is a file of %d bytes, not a directory. Use read_file to see it.", dir, info.Size()), nil
			}
			var g *glob
			if a.Pattern != "" {
				if g, err = newGlob(a.Pattern); err != nil {
					return Failf("The pattern cannot be used: %v.", err), nil
				}
			}
			return w.listFiles(ctx, dir, a.Pattern, g, cmp.Or(int(a.Limit), defaultList))
		},
	}
}

func (w *space) listFiles(ctx context.Context, dir, pattern string, g *glob, limit int) (Result, error) {
	l := listing{dir: dir, limit: limit, below: map[string]int{}}
	err := w.files(ctx, dir, func(rel string) bool {
		if g == nil || g.match(below(dir, rel)) {
			l.add(rel)
		}
		return true
	})
	if err != nil {
		return ended(ctx, "The files cannot be listed: "+err.Error()+".")
	}
	// git lists tracked files that were deleted; only those shown are looked at.
	known := len(l.first)
	l.first = slices.DeleteFunc(l.first, func(rel string) bool {
		_, err := w.root.Lstat(rel)
		return errors.Is(err, fs.ErrNotExist)
	})
	l.total -= known - len(l.first)
	if l.total == 0 {
		if g != nil {
			return Text(fmt.Sprintf("No file below %s matches %s.", dir, pattern)), nil
		}
		return Text(fmt.Sprintf("There are no files below %s.", dir)), nil
	}
	return Text(l.text(w.max)), nil
}

// listing keeps the first files in order and counts the others.
type listing struct {
	dir   string
	limit int
	first []string // sorted, at most limit
	total int
	below map[string]int // files by the first directory below dir
}

// maxDirs is how many directories a listing counts files of.
const maxDirs = 1000

func (l *listing) add(rel string) {
	l.total++
	top, _, deep := strings.Cut(below(l.dir, rel), "/")
	if deep {
		if _, ok := l.below[top]; ok || len(l.below) < maxDirs {
			l.below[top]++
		}
	}
	i, found := slices.BinarySearch(l.first, rel)
	switch {
	case found:
		l.total-- // git names a file with a conflict more than once
	case i == l.limit:
	default:
		if len(l.first) == l.limit {
			l.first = l.first[:l.limit-1]
		}
		l.first = slices.Insert(l.first, i, rel)
	}
}

// shownDirs is how many directories are named where the listing is cut.
const shownDirs = 20

// text is the listing in at most about room bytes.
func (l *listing) text(room int) string {
	var b strings.Builder
	room -= 100 * shownDirs / 2
	shown := 0
	for _, rel := range l.first {
		if shown > 0 && b.Len()+len(rel) >= room {
			break
		}
		b.WriteString(clean(rel))
		b.WriteByte('\n')
		shown++
	}
	rest := l.total - shown
	if rest == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "[%s of %d; narrow it with path or pattern]\n", counted(rest, "more file"), l.total)
	if len(l.below) > 0 && len(l.below) < maxDirs {
		names := slices.SortedFunc(maps.Keys(l.below), func(a, b string) int {
			return cmp.Or(cmp.Compare(l.below[b], l.below[a]), strings.Compare(a, b))
		})
		for i, n := range names[:min(len(names), shownDirs)] {
			names[i] = fmt.Sprintf("%s (%d)", clip(clean(path.Join(l.dir, n)), 60), l.below[n])
		}
		fmt.Fprintf(&b, "[directories with most files: %s]\n", strings.Join(names[:min(len(names), shownDirs)], ", "))
	}
	return b.String()
}

// below returns rel as seen from dir.
func below(dir, rel string) string {
	if dir == "." {
		return rel
	}
	return strings.TrimPrefix(rel, dir+"/")
}

// files calls yield with every file of the project below dir.
func (w *space) files(ctx context.Context, dir string, yield func(rel string) bool) error {
	if w.lister != nil && !inGit(dir) {
		return w.lister.Files(ctx, dir, func(rel string) bool {
			if inGit(rel) {
				return true
			}
			return yield(rel)
		})
	}
	return fs.WalkDir(w.root.FS(), dir, func(rel string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err != nil && rel == dir:
			return err
		case err != nil: // a directory that cannot be read hides only itself
			return fs.SkipDir
		case d.Name() == ".git" && rel != dir:
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		if !yield(rel) {
			return fs.SkipAll
		}
		return nil
	})
}
