package agent

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
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
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing is written to house.db
	FreeDay(ctx, store, contextstore.DayLimits{All: contextstore.Amount{Turns: 1}}, v, slog.New(slog.NewTextHandler(&log, nil)))
	summary, _, err := (&delivery.Service{Store: store, Lang: i18n.English}).Changed(ctx, v, task.Outcome{Status: task.Stopped}, func() string { return RecordedSummary(store, v) })
	if err != nil || !strings.Contains(summary, "Outcome: stopped.") {
		t.Errorf("%q: %v", summary, err)
	}
	if !strings.Contains(log.String(), "stays held") || !strings.Contains(log.String(), id) {
		t.Errorf("logged: %s", &log)
	}
}
