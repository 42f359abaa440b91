package tool

import (
	"context"
	_ "embed"
	"strings"
)

//go:embed git_status.md
var gitStatusPage string

//go:embed git_diff.md
var gitDiffPage string

const gitStatusSchema = `{"type":"object","properties":{},"required":[],"additionalProperties":false}`

const gitDiffSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string","description":"File or directory whose changes to show; all if not given."},` +
	`"stat":{"type":"boolean","description":"Show only how many lines changed; false if not given."}},` +
	`"required":[],"additionalProperties":false}`

// Git answers for the workspace's repository, whose git directory is outside.
type Git interface {
	// StatusText returns what is changed, "" for nothing.
	StatusText(ctx context.Context) (string, error)
	// DiffText returns the changes below path ("" for all) as a unified diff or,
	// with stat, as counts: "" for none, about max bytes at most.
	DiffText(ctx context.Context, path string, stat bool, max int) (string, error)
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
		def: describe("git_diff", gitDiffPage, gitDiffSchema, true),
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
