package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
)

//go:embed glob_files.md
var globPage string

const globSchema = `{"type":"object","properties":{` +
	`"pattern":{"type":"string","description":"Glob that the files must match, e.g. *.go or src/**/*.ts."},` +
	`"path":{"type":"string","description":"Directory to look in, relative to the workspace; the workspace if not given."},` +
	`"ignored":{"type":"boolean","description":"Find also what .gitignore and .ignore leave out; false if not given."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"Most files to show; 200 if not given."}},` +
	`"required":["pattern"],"additionalProperties":false}`

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Ignored bool   `json:"ignored"`
	Limit   number `json:"limit"`
}

func globTool(w *space) Tool {
	return builtin[globArgs]{
		def: describe("glob", globPage, globSchema, true, append(searchAliases, "glob", "pattern", "query", "pattern", "name", "pattern", "file_pattern", "pattern")...),
		call: func(ctx context.Context, a globArgs) (Result, error) {
			dir, problem := w.directory(a.Path)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			if a.Pattern == "" {
				return Failf("The pattern is empty. To see all files use list_files."), nil
			}
			g, err := newGlob(a.Pattern)
			if err != nil {
				return Failf("The pattern cannot be used: %v.", err), nil
			}
			tree, err := w.walk(ctx, dir, walkOptions{ignored: a.Ignored})
			if tree == nil || ctx.Err() != nil {
				return ended(ctx, w.explain(dir, err))
			}
			l := listing{w: w, dir: dir, limit: cmp.Or(int(a.Limit), defaultList), below: map[string]int{}}
			tree.each(func(rel string, kind entryKind) bool {
				if g.match(below(dir, rel)) {
					l.add(rel, kind)
				}
				return true
			})
			if l.total == 0 {
				fmt.Fprintf(&l.b, "No file below %s matches %s.\n", shownName(dir), clip(a.Pattern, 200))
			}
			return Text(l.text(w.max) + tree.gaps(a.Ignored || l.total > 0)), nil
		},
	}
}
