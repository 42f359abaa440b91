package checkrun

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/redact"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
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
		w := &lastLine{}
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

// long is a command that prints little and takes long.
type long struct{ sandbox.Runner }

// Run implements sandbox.Runner.
func (long) Run(_ context.Context, c sandbox.Command) (sandbox.Exit, error) {
	time.Sleep(29 * time.Second)
	_, err := io.WriteString(c.Output, "fetching left-pad for ken@example.com\n")
	time.Sleep(32 * time.Second)
	return sandbox.Exit{}, err
}

// A command that takes long is heard of twice a minute, with what it prints, and not
// after its end.
func TestGoing(t *testing.T) {
	t.Parallel()
	z := redact.New(nil, nil)
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: t.TempDir(), NoSync: true, Redact: z.String})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "7"}})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Claim(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	w := goWorkspace(t)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := &Runner{Store: s, Filter: z.Writer, Workspace: w, Ledger: c, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now}
		if _, err := r.runCheck(context.Background(), long{}, Check{Command: "npm ci"}, contextstore.CheckRun{Setup: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := log.String(); strings.Count(got, `msg="Setup goes on: fetching left-pad for [EMAIL]"`) != 2 || !strings.Contains(got, "seconds=60") {
			t.Error(got)
		}
	})
}
