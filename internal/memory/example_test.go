package memory_test

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/memory"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// A window is assembled from the ledger once and appended to after that. Whoever
// takes the run up after a crash sends the same bytes.
func Example() {
	base, err := os.MkdirTemp("", "contexts-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(base) }()
	ctx := context.Background()
	store, err := contextstore.Open(ctx, contextstore.Options{BaseDir: base, Redact: redact.New(nil, nil).String})
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
	model, err := script.Parse("none.yaml", []byte("- say: Done.\n"))
	if err != nil {
		panic(err)
	}

	policy := memory.Policy{Limit: 8000}
	first := model.Open(llm.Settings{})
	window, err := memory.Open(run, first, policy)
	if err != nil {
		panic(err)
	}
	written, err := run.Append(contextstore.Message{Role: "system", Content: "You work on one task."}, contextstore.Message{Role: "user", Content: "Fix the parser."})
	if err != nil {
		panic(err)
	}
	for _, m := range written {
		window.Add(m)
	}

	second := model.Open(llm.Settings{})
	if _, err := memory.Open(run, second, policy); err != nil {
		panic(err)
	}
	fmt.Println("the same bytes:", len(first.Serialized()) > 0 && bytes.Equal(first.Serialized(), second.Serialized()))
	// Output:
	// the same bytes: true
}
