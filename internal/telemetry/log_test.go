package telemetry

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

func TestLineIsTheSpecifiedOne(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := NewLogger(&b, slog.LevelInfo, func(s string) string { return strings.ReplaceAll(s, "hunter2", "[SECRET]") })
	run := log.With("uuid", "550e8400-e29b-41d4-a716-446655440000")
	run.Info("LLM call #1: 250 tokens")
	run.Debug("not shown")
	run.Warn("two\nlines", "key", "hunter2", "text", "a b")
	log.Info("no \x1b[31mtask", "text", "\x1b]0;owned\a")
	want := []string{
		`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d INFO \[uuid:550e8400\] LLM call #1: 250 tokens$`,
		`^.{19} WARN \[uuid:550e8400\] two\\nlines key=\[SECRET\] text="a b"$`,
		`^.{19} INFO no \\x1b\[31mtask text="\\x1b\]0;owned\\a"$`,
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%q", lines)
	}
	for i, w := range want {
		if !regexp.MustCompile(w).MatchString(lines[i]) {
			t.Errorf("line %q does not match %s", lines[i], w)
		}
	}
}
