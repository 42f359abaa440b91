package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A logger that was handed out early carries what became known since, and its
// own attributes.
func TestLater(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l, with := Later(NewLogger(&b, slog.LevelInfo, func(s string) string { return s }))
	own := l.With("role", "task").WithGroup("g")
	l.Info("one")
	own.Info("two", "k", "v")
	l.Debug("not seen")
	with("uuid", "12345678-1234")
	l.Info("three")
	own.Info("four", "k", "v")
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("%q", lines)
	}
	for i, want := range []struct {
		has, not string
	}{{"one", "uuid"}, {"role=task", "uuid"}, {"[uuid:12345678]", "role"}, {"[uuid:12345678]", ""}} {
		if !strings.Contains(lines[i], want.has) || want.not != "" && strings.Contains(lines[i], want.not) {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	if !strings.Contains(lines[3], "role=task") {
		t.Errorf("%s", lines[3])
	}
}
