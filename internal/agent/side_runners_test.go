package agent

import (
	"context"
	"errors"
	"slices"
	"testing"

	"toritsugi/internal/sandbox"
)

// restful is a sandbox that takes notes of its rests.
type restful struct {
	sandbox.Runner
	name  string
	fails error
	notes *[]string
}

func (r restful) Suspend(context.Context) (func(), error) {
	if r.fails != nil {
		return nil, r.fails
	}
	*r.notes = append(*r.notes, "rest "+r.name)
	return func() { *r.notes = append(*r.notes, "resume "+r.name) }, nil
}

// All that runs beside the model stands still together, or nothing does.
func TestStill(t *testing.T) {
	t.Parallel()
	var b sideRunners
	var notes []string
	next := sandbox.Runner(restful{name: "jobs", notes: &notes})
	shell := b.recording(func(sandbox.Spec) (sandbox.Runner, error) { return next, nil })
	made := func() {
		if _, err := shell(sandbox.Spec{}); err != nil {
			t.Fatal(err)
		}
	}
	made()
	next = restful{name: "server", notes: &notes}
	made()
	resume, err := b.suspend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resume()
	want := []string{"rest jobs", "rest server", "resume server", "resume jobs"}
	if !slices.Equal(notes, want) {
		t.Errorf("%q", notes)
	}
	notes, next = nil, restful{fails: errors.New("no"), notes: &notes}
	made()
	if _, err := b.suspend(t.Context()); err == nil || !slices.Equal(notes, want) {
		t.Errorf("%v, %q", err, notes)
	}
}
