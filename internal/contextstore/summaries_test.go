package contextstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

// talk appends n messages of four tokens each.
func talk(t *testing.T, c *Context, n int) {
	t.Helper()
	for range n {
		if _, err := c.Append(Message{Role: "user", Content: "sixteen letters."}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSummariesAreNumberedCountedAndSynced(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	talk(t, c, 20)
	before := s.FS.Counts().Syncs
	one, err := c.AppendSummary(Summary{StartSeq: 2, EndSeq: 10, Summary: "used hunter2hunter2\xff", OriginalTokens: 12000, SummaryTokens: 800, Final: true, Ratio: 9})
	if err != nil {
		t.Fatal(err)
	}
	if one.ID != 1 || one.Ratio != 0.067 || one.Summary != "used [SECRET]\ufffd" || one.Timestamp.IsZero() || one.Final {
		t.Errorf("%+v", one)
	}
	if n := s.FS.Counts().Syncs - before; n == 0 {
		t.Error("it was not synced")
	}
	two, err := c.AppendSummary(Summary{StartSeq: 2, EndSeq: 15, Summary: "eight chars and more"})
	if err != nil {
		t.Fatal(err)
	}
	if two.ID != 2 || two.OriginalTokens != 14*4 || two.SummaryTokens != 5 || two.Ratio != 0.089 {
		t.Errorf("%+v", two)
	}
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	if err != nil || v.State.CompressionCount != 2 || c.State().CompressionCount != 2 {
		t.Errorf("state.json counts %d, the owner %d: %v", v.State.CompressionCount, c.State().CompressionCount, err)
	}
	sameSummaries(t, c, v, &two)

	if err := c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "all done"}); err != nil {
		t.Fatal(err)
	}
	if v, err = Find(s.BaseDir, c.UUID(), Viewer{Admin: true}); err != nil {
		t.Fatal(err)
	}
	last, err := v.LastFinal()
	if err != nil || last == nil || last.ID != 3 || last.StartSeq != 1 || last.EndSeq != 20 || last.Summary != "all done" || last.OriginalTokens != 80 || last.Ratio != 0.025 {
		t.Fatalf("%+v %v", last, err)
	}
	sameSummaries(t, c, v, &two)
	if v.State.CompressionCount != 2 {
		t.Errorf("the final summary is no compression: %d", v.State.CompressionCount)
	}
}

// sameSummaries checks what the owner and everyone else read.
func sameSummaries(t *testing.T, c *Context, v View, latest *Summary) {
	t.Helper()
	for name, s := range map[string]interface {
		LatestSummary() (*Summary, error)
	}{"owner": c, "view": v} {
		l, err := s.LatestSummary()
		if d := cmp.Diff(latest, l); d != "" || err != nil {
			t.Errorf("%s: latest: %s %v", name, d, err)
		}
	}
}

func TestSummaryOfWhatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	talk(t, c, 3)
	for name, sum := range map[string]Summary{
		"from 0":        {StartSeq: 0, EndSeq: 2, Summary: "s"},
		"backwards":     {StartSeq: 3, EndSeq: 2, Summary: "s"},
		"past the end":  {StartSeq: 1, EndSeq: 4, Summary: "s"},
		"without words": {StartSeq: 1, EndSeq: 2, Summary: " \n"},
	} {
		if got, err := c.AppendSummary(sum); err == nil || got != (Summary{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	sameSummaries(t, c, v, nil)
	if n := c.State().CompressionCount; n != 0 {
		t.Errorf("%d compressions", n)
	}
}

// A summary that a kill tore is set aside before the next is written, and what
// is there is counted again where a kill came between summary and counter.
func TestSummariesAfterAKill(t *testing.T) {
	t.Parallel()
	c := begin(t, open(t, Options{}))
	talk(t, c, 9)
	left := `{"id":1,"start_seq":2,"end_seq":3,"summary":"one"}` + "\n" + `{"id":2,"start_seq":2,"end_seq":5,"summary":"two"}` + "\n" + `{"id":3,"start_seq":2,"end_se`
	if err := kernel.WriteFile(filepath.Join(c.Dir(), Summaries), []byte(left), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := c.LatestSummary(); err != nil || s == nil || s.ID != 2 {
		t.Fatalf("%+v %v", s, err)
	}
	s, err := c.AppendSummary(Summary{StartSeq: 2, EndSeq: 8, Summary: "three"})
	if err != nil || s.ID != 3 || c.State().CompressionCount != 3 {
		t.Errorf("%+v, %d compressions, %v", s, c.State().CompressionCount, err)
	}
}

func TestSummaryThatIsNotWrittenCountsNothing(t *testing.T) {
	t.Parallel()
	var full bool
	fs := &disk.FS{Before: func(op disk.Op) error {
		if full && op.Kind == disk.Append && strings.HasSuffix(op.Path, Summaries) {
			return &disk.ShortWrite{N: 7, Err: syscall.ENOSPC}
		}
		return nil
	}}
	c := begin(t, open(t, Options{FS: fs}))
	talk(t, c, 9)
	full = true
	if _, err := c.AppendSummary(Summary{StartSeq: 2, EndSeq: 5, Summary: "s"}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if n := c.State().CompressionCount; n != 0 {
		t.Errorf("%d compressions", n)
	}
	full = false
	if s, err := c.AppendSummary(Summary{StartSeq: 2, EndSeq: 5, Summary: "s"}); err != nil || s.ID != 1 {
		t.Errorf("%+v %v", s, err)
	}
}

// A log that another writer began has no running totals: its lines are read.
func TestTokensAcrossAChangeOfHands(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	talk(t, c, 1)
	abandon(c)
	var b []byte
	for i := 1; i <= 2000; i++ {
		b = fmt.Appendf(b, `{"seq": %d, "role": "user", "content": "x", "timestamp": "2024-01-15T10:30:01.5+00:00", "token_count": 7}`+"\n", i)
	}
	for name, data := range map[string][]byte{Messages: b, StateFile: nil} {
		if err := kernel.WriteFile(filepath.Join(c.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, _, err := s.Claim(t.Context(), c.UUID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	talk(t, c, 5)
	if n, err := tokensOf(c.MessageLog(), 1999, 2003); n != 2*7+3*4 || err != nil {
		t.Errorf("tokens across the change of hands: %d, %v", n, err)
	}
}
