package checkrun

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLastWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "",
		"one\ntwo\n":                     "two",
		"one\n\n  \n":                    "one",
		"half| and half":                 "half and half",
		"one\nha|lf|\n|\n":               "half",
		strings.Repeat("x", 4<<10):       strings.Repeat("x", 1<<10),
		"a\n" + strings.Repeat("長", 400): strings.Repeat("長", 341),
	} {
		w := &lastWords{}
		for part := range strings.SplitSeq(text, "|") {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Error(n, err)
			}
		}
		if got := w.String(); got != want {
			t.Errorf("%.40q: %.40q", text, got)
		}
	}
}

// A command that takes long is heard of twice a minute, and not after its end.
func TestGoing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := &Runner{Log: slog.New(slog.NewTextHandler(&log, nil))}
		said := &lastWords{}
		stop := r.going("Setup", said)
		time.Sleep(29 * time.Second)
		_, _ = said.Write([]byte("fetching left-pad\n"))
		time.Sleep(32 * time.Second)
		stop()
		time.Sleep(time.Hour)
		if got := log.String(); strings.Count(got, `msg="Setup goes on: fetching left-pad"`) != 2 || !strings.Contains(got, "seconds=60") {
			t.Error(got)
		}
	})
}
