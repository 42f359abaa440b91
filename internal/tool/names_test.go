package tool_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/config"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// TestKnownNames: the settings know the names of all tools of our own.
func TestKnownNames(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, func(e *tool.Env) {
		e.Git, e.Shell, e.Jobs, e.Limits.SpillDir = struct{ tool.Git }{}, &fakeShell{}, tool.NewJobs(), t.TempDir()
	})
	alone := newWorkspace(t, nil, func(e *tool.Env) { e.Git = struct{ tool.Git }{} }) // without a shell git is offered
	definitions := append(w.reg.Definitions(), alone.reg.Definitions()...)
	all := append(strings.Fields(names(w.reg)), mcp.FindName, mcp.CallName, "answer_remark", "ask_user", "git", "web_fetch", "web_search")
	// What was a tool of its own is still named so in rules.
	for name, args := range map[string]string{"git": `{"command":"status"} {"command":"diff"} {"command":"log"} {"command":"blame"}`, "list_files": `{"pattern":"x"}`, "recall": `{"ref":"output-000001"}`} {
		i := slices.IndexFunc(definitions, func(d tool.Definition) bool { return d.Name == name })
		for _, raw := range strings.Fields(args) {
			all = append(all, definitions[i].Was(json.RawMessage(raw)))
		}
	}
	slices.Sort(all)
	if known := config.ToolNames(); !slices.Equal(all, known) {
		t.Errorf("the settings know %q, there are %q", known, all)
	}
}
