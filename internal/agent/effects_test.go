package agent

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// What somebody stops is stopped also where what it held cannot be given back.
func TestAStopDoesNotNeedTheDay(t *testing.T) {
	t.Parallel()
	store, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	id, err := store.Enqueue(t.Context(), contextstore.Metadata{Title: "T", TaskKey: task.Key{ID: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.View(id)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a := &Agent{Store: store, Lang: i18n.English, Log: slog.New(slog.NewTextHandler(&log, nil)), DayLimits: contextstore.DayLimits{All: contextstore.Amount{Turns: 1}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is written to house.db
	summary, _, err := a.Changed(ctx, v, task.Outcome{Status: task.Stopped})
	if err != nil || !strings.Contains(summary, "Outcome: stopped.") {
		t.Errorf("%q: %v", summary, err)
	}
	if !strings.Contains(log.String(), "stays held") || !strings.Contains(log.String(), id) {
		t.Errorf("logged: %s", &log)
	}
}
