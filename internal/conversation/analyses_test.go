package conversation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/i18n"
)

// Records are kept by ANALYZE, found by words and by source, and a user sees their own.
func TestAnalyses(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("worker", output(`{"data_type":"csv","findings":["monday is 100% high"],"structured":{"mean":4}}`, nil), output(analyzeResult, nil), output(analyzeResult, nil))
	h.plays("chat", "a", "b", "c", "d", "e")
	h.hears("/analyze sales of the northern region\nday,n\nmon,9")
	h.hears("/analyze other things\n1,2")
	find := func(user string, words ...string) (titles []string) {
		t.Helper()
		all, err := h.analyses.Find(t.Context(), user, words, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if !json.Valid(a.Record) || len(a.Source) != 64 || a.Session != h.id || !a.Created.Equal(start) {
				t.Errorf("%+v", a)
			}
			titles = append(titles, a.Title)
		}
		return titles
	}
	for _, c := range []struct {
		user, words, want string
	}{
		{"terminal:hanako", "", "other things; sales of the northern region"},
		{"", "northern", "sales of the northern region"},
		{"terminal:hanako", "MONDAY sales", "sales of the northern region"},
		{"terminal:hanako", "100%", "sales of the northern region"},
		{"terminal:hanako", "%", "sales of the northern region"},
		{"terminal:hanako", "_", "other things; sales of the northern region"}, // data_type
		{"terminal:taro", "", ""},
	} {
		if got := strings.Join(find(c.user, strings.Fields(c.words)...), "; "); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	// Chat is offered what a message is about, or what came as it did before.
	h.hears("/chat how did the sales in the northern region go?")
	if asked := h.last("chat").asked(); !strings.Contains(asked, "For reference") || !strings.Contains(asked, `"mean":4`) {
		t.Error(asked)
	}
	h.hears("/chat   other things\n\n1,2")
	if asked := h.last("chat").asked(); !strings.Contains(asked, "Task: other things (2026-03-01)") {
		t.Error(asked)
	}
	m := h.message("/chat how did the sales in the northern region go?")
	m.User = "terminal:taro"
	if err := h.Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if asked := h.last("chat").asked(); strings.Contains(asked, "For reference") {
		t.Error("another's analysis is shown")
	}
	st, err := os.Stat(filepath.Join(h.store.BaseDir, "sessions", "analyses.db"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// Without a file there are no records, and none is made by looking; two processes may add
// at once.
func TestAnalysesOfSeveral(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	one, two := NewAnalyses(base), NewAnalyses(base)
	if all, err := one.Find(t.Context(), "", nil, 9); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
	if err := one.Forget(t.Context(), time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(base, "sessions")); !os.IsNotExist(err) {
		t.Error(err)
	}
	var all sync.WaitGroup
	for _, a := range []*Analyses{one, two} {
		all.Go(func() {
			for range 20 {
				if err := a.Add(t.Context(), Analysis{Session: "s", User: "u", Title: "売上の傾向", Record: json.RawMessage("{}"), Created: start}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, err := two.Find(t.Context(), "u", []string{"売上"}, 100); err != nil || len(got) != 40 {
		t.Errorf("%d, %v", len(got), err)
	}
	if a, err := one.About(t.Context(), "u", "先月の売上の傾向はどうでしたか"); err != nil || a == nil {
		t.Errorf("%v, %v", a, err)
	}
	if a, err := one.About(t.Context(), "u", "今日の天気はどうですか"); err != nil || a != nil {
		t.Errorf("%v, %v", a, err)
	}
	for _, a := range []*Analyses{one, two} {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
