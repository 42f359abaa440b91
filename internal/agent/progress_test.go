package agent

import (
	"slices"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
)

// What an earlier run left is no word of the run that takes it over: its history
// is the same whether it is taken up or goes on.
func TestHistoryHasNoInheritedWords(t *testing.T) {
	t.Parallel()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "folder", Type: "issue", ID: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, m := range []contextstore.Message{
		{Role: llm.RoleSystem, Content: "rules"}, {Role: llm.RoleAssistant, Content: "an earlier run wrote 41"}, {Role: llm.RoleUser, Content: "the request"},
		{Role: llm.RoleAssistant, Content: "I look."}, {Role: llm.RoleAssistant, Content: "It is 42."},
	} {
		if _, err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []struct {
		most int
		want []string
		more bool
	}{{100, []string{"I look.", "It is 42."}, false}, {4, []string{"I look.", "It is 42."}, false}, {1, []string{"It is 42."}, true}} {
		r := &run{Agent: &Agent{Store: s, Progress: Progress{MaxHistory: k.most}}, ledger: c, out: &delivery.Run{Host: &delivery.Host{}}}
		if r.start, err = memory.ReadFirstMessages(c); err != nil || !r.start.Heir {
			t.Fatal(r.start, err)
		}
		if err := r.track(); err != nil {
			t.Fatal(err)
		}
		var got []string
		h := r.screen.tracker.History()
		for _, e := range h.Entries {
			if e.Kind == progress.KindSaid {
				got = append(got, e.Text)
			}
		}
		if !slices.Equal(got, k.want) || h.More != k.more {
			t.Errorf("%d: %q, more %t", k.most, got, h.More)
		}
	}
}
