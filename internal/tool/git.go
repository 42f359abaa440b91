package tool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"toritsugi/internal/lazyregexp"
)

//go:embed git.md
var gitPage string

const gitSchema = `{"type":"object","properties":{"command":{"type":"string","enum":["status","diff","log","blame","show"]},"path":{"type":"string"},"revision":{"type":"string"},` +
	`"stat":{"type":"boolean"},"patch":{"type":"boolean"},"start_line":{"type":"integer","minimum":1},"end_line":{"type":"integer","minimum":1},` +
	`"limit":{"type":"integer","minimum":1,"maximum":200}},"required":["command"],"additionalProperties":false}`

type gitArgs struct {
	Command  string `json:"command"`
	Path     string `json:"path"`
	Revision string `json:"revision"`
	Stat     bool   `json:"stat"`
	Patch    bool   `json:"patch"`
	Start    Number `json:"start_line"`
	End      Number `json:"end_line"`
	Limit    Number `json:"limit"`
}

// Git answers for the workspace's repository, whose git directory is outside.
type Git interface {
	// StatusText returns what is changed, "" for nothing.
	StatusText(ctx context.Context) (string, error)
	// DiffText returns the changes below path ("" for all) as a unified diff or,
	// with stat, as counts: "" for none, about max bytes at most.
	DiffText(ctx context.Context, path string, stat bool, max int) (string, error)
	// LogText returns the n latest commits that revision ("" for the branch)
	// leads to and that change path ("" for all), newest first, "" for none,
	// about max bytes at most: a line each or, with patch, with their changes.
	LogText(ctx context.Context, revision, path string, n int, patch bool, max int) (string, error)
	// BlameText returns lines from to to of the file at path, each with the
	// commit it comes from, about max bytes at most.
	BlameText(ctx context.Context, path string, from, to, max int) (string, error)
	// FileText returns the file at path as revision has it, about max bytes at most.
	FileText(ctx context.Context, revision, path string, max int) (string, error)
}

// revisionName is what a model may name a commit by: not an option, no range,
// no path.
var revisionName = lazyregexp.New(`^[0-9A-Za-z_][0-9A-Za-z_./~^@{}+-]*$`)

// gitTime is how long git may look for an answer.
const gitTime = 60 * time.Second

// gitTool is offered where no shell is: there a model calls git as it knows it.
func gitTool(w *workspaceFiles, git Git, shell bool) Tool {
	def := Describe("git", gitPage, gitSchema, true, append(fileAliases, "subcommand", "command", "cmd", "command", "max_count", "limit", "n", "limit",
		"rev", "revision", "commit", "revision", "ref", "revision")...)
	def.Deferred = shell
	for _, c := range []string{"status", "diff", "log", "blame", "show"} {
		def.Names["git_"+c] = `{"command":"` + c + `"}`
	}
	def.Was = func(args json.RawMessage) string {
		var a gitArgs
		if json.Unmarshal(args, &a) == nil && a.Command == "show" {
			return "git_log" // which showed commits
		}
		return "git_" + a.Command
	}
	return builtin[gitArgs]{def: def, call: func(ctx context.Context, a gitArgs) (Result, error) {
		rel, problem := w.tracked(a.Path)
		if problem != "" {
			return Failf("%s", problem), nil
		}
		if a.Revision != "" && (!revisionName().MatchString(a.Revision) || strings.Contains(a.Revision, "..")) {
			return Failf("%q is not the name of a commit. Give a hash, a branch, a tag, or one of these with ~N.", clip(a.Revision, 100)), nil
		}
		switch a.Command {
		case "status":
			return askGit(ctx, "The status", "Nothing is changed.", git.StatusText)
		case "diff":
			none := "There are no changes."
			if rel != "" {
				none = "There are no changes in " + rel + "."
			}
			return askGit(ctx, "The changes", none, func(ctx context.Context) (string, error) { return git.DiffText(ctx, rel, a.Stat, w.max) })
		case "blame":
			return w.blame(ctx, git, rel, a)
		case "show":
			if rel != "" {
				return w.fileAt(ctx, git, rel, a)
			}
			a.Patch, a.Limit = true, 1
		}
		n := 20
		if a.Patch {
			n = 1
		}
		return askGit(ctx, "The history", "There are no such commits.", func(ctx context.Context) (string, error) {
			return git.LogText(ctx, a.Revision, rel, cmp.Or(int(a.Limit), n), a.Patch, w.max-noteRoom)
		})
	}}
}

// blame is which commits the lines of a file come from.
func (w *workspaceFiles) blame(ctx context.Context, git Git, rel string, a gitArgs) (Result, error) {
	if rel == "" {
		return Failf("blame needs path: the file whose lines to explain."), nil
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
}

// fileAt shows a file as a revision has it, as read_file shows files.
func (w *workspaceFiles) fileAt(ctx context.Context, git Git, rel string, a gitArgs) (Result, error) {
	revision := cmp.Or(a.Revision, "HEAD")
	text := ""
	res, err := askGit(ctx, rel+" at "+revision, rel+" is empty at "+revision+".", func(ctx context.Context) (_ string, err error) {
		text, err = git.FileText(ctx, revision, rel, maxEdit)
		return text, err
	})
	if err != nil || res.IsError || strings.TrimSpace(text) == "" {
		return res, err
	}
	lines := newLineReader(strings.NewReader(text), maxLine)
	shown := shownName(rel) + " at " + revision
	if isBinary(lines.peek()) {
		return Failf("%s", binaryNote(shown, lines.peek(), int64(len(text)))), nil
	}
	v := view{start: max(int(a.Start), 1), end: int(a.End), room: w.max - len(shown) - 400}
	if err := v.read(ctx, lines); err != nil {
		return Result{}, err
	}
	return v.result(shown), nil
}

// How many lines blame explains where none are named, and at most.
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
func (w *workspaceFiles) tracked(p string) (rel, problem string) {
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
	if strings.TrimSpace(text) == "" {
		text = none
	}
	return Text(text), nil
}
