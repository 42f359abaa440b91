package workspace

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// While git looks at the tree or writes it, what else may write to it stands
// still, once for each step and never twice at a time.
func TestTheTreeRests(t *testing.T) {
	t.Parallel()
	resting, rests := false, 0
	var fails error
	w, err := Create(t.Context(), CreateOptions{Box: walls(), Source: inspect(t, newRepo(t, "repo")), Dir: filepath.Join(t.TempDir(), "w"), Branch: "b",
		Rest: func(context.Context) (func(), error) {
			if resting {
				t.Error("what rests is asked to rest")
			}
			if fails != nil {
				return nil, fails
			}
			resting = true
			rests++
			return func() { resting = false }, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	ctx := t.Context()
	rests = 0
	first := snap(t, w, "first")
	for name, do := range map[string]func() error{
		"snapshot": func() error { _, err := w.Snapshot(ctx, "step"); return err },
		"commit":   func() error { commit(t, w, "x"); return nil },
		"status":   func() error { _, err := w.ChangedFiles(ctx); return err },
		"diff":     func() error { _, err := w.Diff(ctx, DiffOptions{}); return err },
		"back":     func() error { _, err := w.RestoreTo(ctx, first.ID); return err },
	} {
		write(t, filepath.Join(w.Tree(), "new"), name)
		before := rests
		if err := do(); err != nil || rests != before+1 || resting {
			t.Errorf("%s: %v, %d rests, resting: %t", name, err, rests-before, resting)
		}
	}
	fails = errors.New("they will not")
	if _, err := w.Snapshot(ctx, "step"); !errors.Is(err, fails) {
		t.Errorf("%v", err)
	}
}
