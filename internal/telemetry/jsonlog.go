package telemetry

import (
	"io"
	"log/slog"
	"strings"
)

// NewJSONLogger is NewLogger for programs: one object a line, with time (RFC 3339), level,
// msg, uuid (whole, which without its hyphens is the trace's id) and the record's other attributes.
func NewJSONLogger(w io.Writer, level slog.Level, redact func(string) string) *slog.Logger {
	// What names a value may tell that it is a secret.
	named := func(key, value string) string {
		masked := redact(key + "=" + value)
		return strings.TrimPrefix(masked, key+"=")
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 {
			switch a.Key {
			case slog.TimeKey, slog.LevelKey, "uuid":
				return a
			case slog.MessageKey:
				return slog.String(a.Key, redact(a.Value.String()))
			}
		}
		switch a.Value.Kind() {
		case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindInt64, slog.KindUint64, slog.KindTime, slog.KindGroup:
		default: // as text, as NewLogger has it
			a.Value = slog.StringValue(named(a.Key, a.Value.String()))
		}
		return a
	}}))
}
