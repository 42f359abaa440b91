package turn_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/memory"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
)

// The loop of a run: the model's answer is on disk before its calls run, their
// results before it is asked again.
func Example() {
	base, err := os.MkdirTemp("", "run-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(base) }()
	ctx := context.Background()
	store, err := contextstore.Open(ctx, contextstore.Options{BaseDir: filepath.Join(base, "contexts"), Redact: redact.New(nil, nil).String})
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
	uuid, err := store.Enqueue(ctx, contextstore.Metadata{TaskKey: task.Key{Source: "folder", Owner: "me", Repo: "widgets", Type: "issue", ID: "12"}})
	if err != nil {
		panic(err)
	}
	run, _, err := store.Claim(ctx, uuid)
	if err != nil {
		panic(err)
	}
	defer func() { _ = run.Close() }()
	if _, err := run.Append(contextstore.Message{Role: "system", Content: "You work on one task."}, contextstore.Message{Role: "user", Content: "Write a greeting."}); err != nil {
		panic(err)
	}

	tree := filepath.Join(base, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		panic(err)
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		panic(err)
	}
	defer func() { _ = root.Close() }()
	tools, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root})...)
	if err != nil {
		panic(err)
	}
	model, err := script.Parse("greeting.yaml", []byte("- calls: [{tool: write_file, args: {path: hello.txt, content: Hello}}]\n- say: The greeting is written.\n"))
	if err != nil {
		panic(err)
	}
	window, err := memory.Open(run, model.Open(llm.Settings{}), memory.Policy{Limit: 8000})
	if err != nil {
		panic(err)
	}

	loop := turn.New(turn.Settings{Ledger: run, Window: window, Tools: tools, Budget: turn.Budget{Turns: 10}, Log: slog.New(slog.DiscardHandler), Now: time.Now, Scripted: true}, turn.NoDirector{})
	answer, err := loop.Run(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Content)
	if err := run.Messages(0, func(m contextstore.Message) bool {
		fmt.Printf("%d %s: %d calls\n", m.Seq, m.Role, len(m.ToolCalls))
		return true
	}); err != nil {
		panic(err)
	}
	// Output:
	// The greeting is written.
	// 1 system: 0 calls
	// 2 user: 0 calls
	// 3 assistant: 1 calls
	// 4 tool: 0 calls
	// 5 assistant: 0 calls
}
