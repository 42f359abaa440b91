package contextstore

import (
	"testing"
	"time"

	"toritsugi/internal/task"
)

// BenchmarkPut is the cost of the one row update of a turn.
func BenchmarkPut(b *testing.B) {
	s, err := Open(b.Context(), Options{BaseDir: b.TempDir(), Redact: func(s string) string { return s }})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	now := Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	m := Metadata{UUID: "550e8400-e29b-41d4-a716-446655440000", TaskKey: task.Key{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: "1"}, CreatedAt: now, User: "ken"}
	st := State{Status: Processing, TaskStatus: task.Running, StartedAt: now, UpdatedAt: now, Generation: 1, Hostname: "h", ProcessID: 7}
	b.ResetTimer()
	for range b.N {
		st.LLMCallCount++
		st.ToolCallCount += 2
		st.TotalTokensUsed += 1234
		st.UpdatedAt = Time{Time: st.UpdatedAt.Add(time.Second)}
		if err := s.index.put(b.Context(), m, st); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen is the start of a process on a directory that others made.
func BenchmarkOpen(b *testing.B) {
	o := Options{BaseDir: b.TempDir(), Redact: func(s string) string { return s }}
	for range b.N + 1 {
		s, err := Open(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
