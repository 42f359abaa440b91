package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"toritsugi/internal/llm"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// offeredFile holds the definitions that the model is shown, below the directory
// of the context: they stand before every message, so they stay what they were
// at the first request, whatever the servers list when the run is taken up
// again (DESIGN §3).
const offeredFile = "offered.json"

// offered is the content of offeredFile.
type offered struct {
	Tools []llm.Tool `json:"tools"`
}

// Offered returns the definitions of tools that the model is shown in the context
// whose directory it is; nil where none are on record.
func Offered(dir string) ([]llm.Tool, error) {
	var o offered
	err := readNoted(dir, offeredFile, &o)
	return o.Tools, err
}

// offer returns the definitions that the model is shown: those that it was shown
// before, else those of tools, which are kept for the next owner.
func (r *run) offer(before []llm.Tool, tools *tool.Registry) ([]llm.Tool, error) {
	if before != nil {
		return before, nil
	}
	var o offered
	for _, d := range tools.Definitions() {
		t := llm.Tool{Name: d.Name, Description: r.Store.Redact(d.Description), Schema: d.Schema}
		if masked := []byte(r.Store.Redact(string(d.Schema))); json.Valid(masked) {
			t.Schema = masked
		}
		o.Tools = append(o.Tools, t)
	}
	if err := r.noteWhole(offeredFile, o); err != nil {
		return nil, fmt.Errorf("keep the offered tools: %w", err)
	}
	// As the next owner will read them, to the byte.
	return Offered(r.ledger.Dir())
}

// budget is how many tokens the definitions of the servers' tools may take in each
// request before they are only found when they are asked for: a tenth of the
// window. What was deferred stays deferred, and what was listed stays listed.
func budget(before []llm.Tool, window int) int {
	switch {
	case before == nil:
		return window / 10
	case slices.ContainsFunc(before, func(t llm.Tool) bool { return t.Name == mcp.FindName }):
		return -1
	}
	return math.MaxInt
}

// absent are stand-ins for the tools that the model was shown and that are not
// among those there are now.
func absent(before []llm.Tool, now []tool.Tool) (all []tool.Tool) {
	for _, b := range before {
		if !slices.ContainsFunc(now, func(t tool.Tool) bool { return known(t.Definition(), b.Name) }) {
			all = append(all, gone{b})
		}
	}
	return all
}

// known reports whether calls by a name are those of a tool.
func known(d tool.Definition, name string) bool {
	_, other := d.Names[name]
	return other || d.Name == name
}

// gone is a tool that is no longer there. A call of it that was interrupted may
// have had an effect, so it does not count as one that only reads.
type gone struct{ was llm.Tool }

func (g gone) Definition() tool.Definition {
	return tool.Definition{Name: g.was.Name, Description: g.was.Description, Schema: g.was.Schema}
}

func (g gone) Call(context.Context, json.RawMessage) (tool.Result, error) {
	return tool.Failf("The tool %s is no longer available. Do without it.", g.was.Name), nil
}
