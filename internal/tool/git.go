package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

//go:embed git_status.md
var gitStatusPage string

//go:embed git_diff.md
var gitDiffPage string

//go:embed git_log.md
var gitLogPage string

//go:embed git_blame.md
var gitBlamePage string

const gitStatusSchema = `{"type":"object","properties":{},"required":[],"additionalProperties":false}`

const gitDiffSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"File or directory whose changes to show; all if not given."},` +
	`"stat":{"type":"boolean","description":"Show only how many lines changed; false if not given."}},` +
	`"required":[],"additionalProperties":false}`

const gitLogSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"File or directory whose commits to show; all if not given."},` +
	`"revision":{"type":"string","description":"Commit to begin with, e.g. a1b2c3d or HEAD~3; the last if not given."},` +
	`"patch":{"type":"boolean","description":"Show the whole message and the changes of each; false if not given."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":200,"description":"Most commits to show; 20 if not given, 1 with patch."}},` +
	`"required":[],"additionalProperties":false}`

const gitBlameSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"File whose lines to explain, relative to the workspace."},` +
	`"start_line":{"type":"integer","minimum":1,"description":"First line; 1 if not given."},` +
	`"end_line":{"type":"integer","minimum":1,"description":"Last line; 100 after the first if not given, at most 1000 after it."}},` +
	`"required":["path"],"additionalProperties":false}`

// Git answers for the workspace's repository, whose git directory is outside.
type Git interface {
	// StatusText returns what is changed, "" for nothing.
	StatusText(ctx context.Context) (string, error)
	// DiffText returns the changes below path ("" for all) as a unified diff or,
	// with stat, as counts: "" for none, about max bytes at most.
	DiffText(ctx context.Context, path string, stat bool, max int) (string, error)
}

// GitHistory is a Git that also answers for what was; git_log and git_blame are
// there where Env.Git is one.
type GitHistory interface {
	Git
	// LogText returns the n latest commits that revision ("" for the branch)
	// leads to and that change path ("" for all), newest first, "" for none,
	// about max bytes at most: a line each or, with patch, with their changes.
	LogText(ctx context.Context, revision, path string, n int, patch bool, max int) (string, error)
	// BlameText returns lines from to to of the file at path, each with the
	// commit it comes from, about max bytes at most.
	BlameText(ctx context.Context, path string, from, to, max int) (string, error)
}

type gitLogArgs struct {
	Path     string `json:"path"`
	Revision string `json:"revision"`
	Patch    bool   `json:"patch"`
	Limit    number `json:"limit"`
}

type gitBlameArgs struct {
	Path  string `json:"path"`
	Start number `json:"start_line"`
	End   number `json:"end_line"`
}

// revisionName is what a model may name a commit by: not an option, no range,
// no path.
var revisionName = regexp.MustCompile(`^[0-9A-Za-z_][0-9A-Za-z_./~^@{}+-]*$`)

// gitTime is how long git may look for an answer.
const gitTime = 60 * time.Second

func gitLogTool(w *space, git GitHistory) Tool {
	return builtin[gitLogArgs]{
		def: describe("git_log", gitLogPage, gitLogSchema, true, append(fileAliases, "max_count", "limit", "n", "limit", "rev", "revision", "commit", "revision", "ref", "revision")...),
		call: func(ctx context.Context, a gitLogArgs) (Result, error) {
			rel, problem := w.tracked(a.Path)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			if a.Revision != "" && (!revisionName.MatchString(a.Revision) || strings.Contains(a.Revision, "..")) {
				return Failf("%q is not the name of a commit. Give a hash, a branch, a tag, or one of these with ~N.", clip(a.Revision, 100)), nil
			}
			n := 20
			if a.Patch {
				n = 1
			}
			return askGit(ctx, "The history", "There are no such commits.", func(ctx context.Context) (string, error) {
				return git.LogText(ctx, a.Revision, rel, cmp.Or(int(a.Limit), n), a.Patch, w.max-noteRoom)
			})
		},
	}
}

func gitBlameTool(w *space, git GitHistory) Tool {
	return builtin[gitBlameArgs]{
		def: describe("git_blame", gitBlamePage, gitBlameSchema, true, fileAliases...),
		call: func(ctx context.Context, a gitBlameArgs) (Result, error) {
			rel, problem := w.tracked(a.Path)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			from := max(int(a.Start), 1)
			if a.End != 0 && int(a.End) < from {
				return Failf("end_line %d is before start_line %d.", a.End, from), nil
			}
			f, _, problem := w.open(rel)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			lines, err := countTo(ctx, f, from+maxBlame)
			_ = f.Close() // it was only read
			if err != nil {
				return ended(ctx, w.explain(rel, err))
			}
			if lines < from {
				return Failf("%s has %s; start_line %d is past its end.", rel, counted(lines, "line"), from), nil
			}
			to := min(cmp.Or(int(a.End), from+defaultBlame-1), from+maxBlame, lines)
			return askGit(ctx, "The history of "+rel, "There is nothing to show.", func(ctx context.Context) (string, error) {
				text, err := git.BlameText(ctx, rel, from, to, w.max-noteRoom)
				if err == nil && to < lines && (a.End == 0 || to < int(a.End)) {
					text += fmt.Sprintf("[lines %d-%d shown; continue with start_line=%d]\n", from, to, to+1)
				}
				return text, err
			})
		},
	}
}

// How many lines git_blame explains where none are named, and at most.
const (
	defaultBlame = 100
	maxBlame     = 1000
)

// countTo counts the lines of r, up to limit.
func countTo(ctx context.Context, r io.Reader, limit int) (int, error) {
	lines := newLineReader(r, 0)
	for lines.n < limit {
		if _, err := lines.next(ctx); err != nil {
			if errors.Is(err, io.EOF) {
				return lines.n, nil
			}
			return 0, err
		}
	}
	return lines.n, nil
}

// tracked is rel for a path that git is asked about, "" for all.
func (w *space) tracked(p string) (rel, problem string) {
	if p == "" {
		return "", ""
	}
	rel, problem = w.rel(p)
	switch {
	case problem != "":
		return "", problem
	case rel == ".":
		return "", ""
	case inGit(rel):
		return "", rel + " belongs to git's own data, which has no history."
	}
	return rel, ""
}

// askGit asks git, which may take its time, but not all of it.
func askGit(ctx context.Context, what, none string, ask func(context.Context) (string, error)) (Result, error) {
	limited, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	text, err := ask(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return Failf("%s cannot be read: it took more than %d seconds. Ask for less.", what, int(gitTime.Seconds())), nil
	}
	if err != nil {
		return ended(ctx, what+" cannot be read: "+clip(err.Error(), 500)+".")
	}
	return Text(orElse(text, none)), nil
}

type gitDiffArgs struct {
	Path string `json:"path"`
	Stat bool   `json:"stat"`
}

func gitStatusTool(git Git) Tool {
	return builtin[struct{}]{
		def: describe("git_status", gitStatusPage, gitStatusSchema, true),
		call: func(ctx context.Context, _ struct{}) (Result, error) {
			text, err := git.StatusText(ctx)
			if err != nil {
				return ended(ctx, "The status cannot be read: "+err.Error()+".")
			}
			return Text(orElse(text, "Nothing is changed.")), nil
		},
	}
}

func gitDiffTool(w *space, git Git) Tool {
	return builtin[gitDiffArgs]{
		def: describe("git_diff", gitDiffPage, gitDiffSchema, true, fileAliases...),
		call: func(ctx context.Context, a gitDiffArgs) (Result, error) {
			rel, none := "", "There are no changes."
			if a.Path != "" {
				var problem string
				if rel, problem = w.rel(a.Path); problem != "" {
					return Failf("%s", problem), nil
				}
				none = "There are no changes in " + rel + "."
			}
			text, err := git.DiffText(ctx, rel, a.Stat, w.max)
			if err != nil {
				return ended(ctx, "The changes cannot be read: "+err.Error()+".")
			}
			return Text(orElse(text, none)), nil
		},
	}
}

// orElse returns text, or other where text is blank.
func orElse(text, other string) string {
	if strings.TrimSpace(text) == "" {
		return other
	}
	return text
}
