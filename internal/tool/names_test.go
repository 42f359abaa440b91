package tool_test

import (
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
		e.Git, e.Shell, e.Jobs, e.Limits.SpillDir = struct{ tool.GitHistory }{}, &fakeShell{}, tool.NewJobs(), t.TempDir()
	})
	all := append(strings.Fields(names(w.reg)), mcp.FindName, mcp.CallName)
	slices.Sort(all)
	if known := config.ToolNames(); !slices.Equal(all, known) {
		t.Errorf("the settings know %q, there are %q", known, all)
	}
}
