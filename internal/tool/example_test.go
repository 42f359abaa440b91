package tool_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"toritsugi/internal/tool"
)

// The registry calls a tool by name, with the model's own text as arguments. A
// failure is a result that tells the model what to do.
func Example() {
	dir, err := os.MkdirTemp("", "workspace-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module widgets\n\ngo 1.26\n"), 0o600); err != nil {
		panic(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer func() { _ = root.Close() }()
	tools, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root})...)
	if err != nil {
		panic(err)
	}
	for _, args := range []string{`{"pattern":"^module"}`, `{"pattern":"x","path":"../.."}`} {
		r, err := tools.Call(context.Background(), "grep", args)
		if err != nil {
			panic(err) // only where ctx ended, or people are waited for
		}
		fmt.Printf("failed %v: %s\n", r.IsError, r.Text)
	}
	// Output:
	// failed false: go.mod
	// 1: module widgets
	// [1 matching line in 1 file searched]
	//
	// failed true: ../.. leads out of the workspace. Use a path relative to the workspace, without "..".
}
