package contextstore_test

import (
	"context"
	"fmt"
	"os"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// The life of a run: it is enqueued, claimed, written to, and ended by the one
// transition. Who reads it later needs no store.
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

	key := task.Key{Source: "folder", Owner: "me", Repo: "widgets", Type: "issue", ID: "12"}
	uuid, err := store.Enqueue(ctx, contextstore.Metadata{TaskKey: key, Title: "Empty input"})
	if err != nil {
		panic(err)
	}
	run, _, err := store.Claim(ctx, uuid)
	if err != nil {
		panic(err)
	}
	said, err := run.Append(contextstore.Message{Role: "user", Content: "My token is ghp_012345678901234567890123456789abcdef."})
	if err != nil {
		panic(err)
	}
	fmt.Println(said[0].Seq, said[0].Content)
	if err := run.Transition(ctx, task.Outcome{Status: task.Completed, Summary: "Done."}); err != nil {
		panic(err)
	}

	all, err := contextstore.List(ctx, base, contextstore.Viewer{Admin: true}, contextstore.Filter{Limit: 10})
	if err != nil {
		panic(err)
	}
	for _, v := range all.Views {
		fmt.Println(v.Metadata.TaskKey, v.Status(), v.State.MessageCount)
	}
	// Output:
	// 1 My token is [GITHUB_TOKEN].
	// folder/me/widgets#12 completed 1
}
