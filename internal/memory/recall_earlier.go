package memory

import (
	"context"
	"fmt"
	"strings"

	"toritsugi/internal/contextstore"
)

// The references of what an earlier run left beside its summary.
const (
	earlierMetadata = "earlier/metadata"
	earlierTools    = "earlier/tools"
	earlierPlanning = "earlier/planning"
)

// maxEarlier is how much of one of them is read, in bytes.
const maxEarlier = 4 << 20

// Recall is a Source: what a model may refer to of the run that was inherited
// from (inherit §2.2). Of what is too long the beginning is read, and that is said.
func (e *Earlier) Recall(ctx context.Context, ref string) (string, bool, error) {
	var b strings.Builder
	var err error
	line := func(s string) bool {
		if b.Len()+len(s) > maxEarlier {
			b.WriteString("[the rest is not read]\n")
			return false
		}
		b.WriteString(s + "\n")
		return ctx.Err() == nil
	}
	switch ref {
	case earlierMetadata:
		var raw []byte
		if raw, err = e.Metadata(); err == nil {
			line(string(raw))
		}
	case earlierTools:
		err = e.Tools(func(t contextstore.ToolRun) bool {
			return line(fmt.Sprintf("%s %s -> %s\n%s%s", t.Tool, t.Args, t.Status, t.Result, t.Error))
		})
	case earlierPlanning:
		err = e.Planning(ctx, func(raw []byte) bool { return line(string(raw)) })
	default:
		return "", false, nil
	}
	if err == nil {
		err = ctx.Err()
	}
	if b.Len() == 0 {
		b.WriteString("[nothing is on record]\n")
	}
	return b.String(), true, err
}
