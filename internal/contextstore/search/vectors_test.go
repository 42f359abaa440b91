package search

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/task"
)

// meaning is a model for embeddings of a few words: those of one line mean the same, in either language.
type meaning struct {
	mu    sync.Mutex
	asked []string
	err   error
	stop  func() // called when it is asked
}

var means = [][]string{{"login", "session", "サインイン"}, {"expires", "timeout", "期限"}, {"invoice", "pdf", "請求書"}, {"slow", "latency", "遅い"}}

func (m *meaning) embed(_ context.Context, texts []string) (all [][]float32, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, texts...)
	if m.stop != nil {
		m.stop()
	}
	for _, t := range texts {
		v := make([]float32, 64)
		for i, words := range means {
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(t), w) }) {
				v[i] += 3
			}
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(t))
		v[8+h.Sum32()%56]++
		all = append(all, v)
	}
	return all, m.err
}

func (m *meaning) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.asked
	m.asked = nil
	return all
}

// withVectors is the search.db of a house as a process with a model has it.
func (h *house) withVectors(v Vectors) *DB {
	h.t.Helper()
	d, err := Open(h.t.Context(), Options{BaseDir: h.base, Vectors: v})
	must(h.t, err)
	h.t.Cleanup(func() { _ = d.Close() })
	must(h.t, d.CatchUp(h.t.Context(), nil))
	return d
}

// alike are the titles of the runs that are similar, in their order.
func alike(t *testing.T, d *DB, l Like) (all []string) {
	t.Helper()
	l.Key = task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "issue", ID: "new"}
	matches, err := d.Similar(t.Context(), admin, l, 3)
	must(t, err)
	for _, m := range matches {
		if m.Score < Threshold || m.Score > 1 {
			t.Error(m.Score)
		}
		all = append(all, m.View.Metadata.Title)
	}
	return all
}

func TestSimilarByMeaning(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	login := h.ended(aRun{title: "Login session expires", request: "Users are thrown out."})
	for i := range 40 {
		h.ended(aRun{title: fmt.Sprintf("Chore %c%c", 'a'+i%26, 'a'+i/26), request: "Tidy."})
	}
	h.ended(aRun{title: "Session login expires", repo: "gadgets"})
	m := &meaning{}
	v := Vectors{Model: "ollama/a", Embed: m.embed}
	d := h.withVectors(v)
	asked := Like{Title: "サインインの期限がおかしい"}
	if all := alike(t, d, asked); all != nil {
		t.Error("before there are vectors:", all)
	}
	m.take()
	must(t, d.embed(t.Context()))
	if sent := m.take(); len(sent) != 42 || !slices.Contains(sent, "Login session expires\nUsers are thrown out.") {
		t.Errorf("%d texts: %q", len(sent), sent)
	}
	must(t, d.embed(t.Context()))
	if sent := m.take(); sent != nil {
		t.Errorf("again: %q", sent)
	}
	if all := alike(t, d, asked); !slices.Equal(all, []string{"Login session expires"}) {
		t.Error(all)
	}
	if sent := m.take(); !slices.Equal(sent, []string{asked.Title}) {
		t.Errorf("%q", sent)
	}
	if all := alike(t, h.opened(), asked); all != nil {
		t.Error("without a model:", all)
	}
	dir, err := contextstore.FindDir(h.base, login)
	must(t, err)
	view, err := contextstore.ReadView(dir)
	must(t, err)
	like, err := LikeOf(view)
	must(t, err)
	h.ended(aRun{title: "サインインの期限がおかしい"})
	must(t, d.CatchUp(t.Context(), nil))
	must(t, d.embed(t.Context()))
	m.take()
	if all := alike(t, h.withVectors(Vectors{Model: "ollama/a"}), like); !slices.Contains(all, "サインインの期限がおかしい") {
		t.Error("by the vector of a run, without a model at hand:", all)
	}
	m.err = errors.New("down")
	if all := alike(t, d, asked); !slices.Equal(all, []string{"サインインの期限がおかしい"}) {
		t.Error("by its words, the model being down:", all)
	}
	if all := alike(t, d, Like{Title: "Login session expires"}); len(all) == 0 || all[0] != "Login session expires" {
		t.Error("by its words, the model being down:", all)
	}
}

// What was made is not made again: after a stop, for runs that come, change or go; by another model all of it is.
func TestVectorsAreKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	var uuids []string
	for i := range embeddedRuns + 5 {
		uuids = append(uuids, h.ended(aRun{title: fmt.Sprintf("Run %d", i), request: "secret of the house"}))
	}
	m := &meaning{}
	d := h.withVectors(Vectors{Model: "ollama/a", Embed: m.embed})
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	m.stop = func() {
		if calls++; calls == 2 {
			cancel()
			m.err = context.Canceled
		}
	}
	if err := d.embed(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.stop, m.err = nil, nil
	if sent := m.take(); len(sent) != embeddedRuns+5 || !strings.HasPrefix(sent[0], fmt.Sprintf("Run %d\n", embeddedRuns+4)) {
		t.Errorf("%q", sent)
	}
	must(t, d.embed(t.Context()))
	if sent := m.take(); len(sent) != 5 {
		t.Errorf("after the stop: %q", sent)
	}
	must(t, d.Update(t.Context(), uuids[3]))
	must(t, d.embed(t.Context()))
	if sent := m.take(); len(sent) != 1 || !strings.HasPrefix(sent[0], "Run 3\n") {
		t.Errorf("after a change: %q", sent)
	}
	dir, err := contextstore.FindDir(h.base, uuids[3])
	must(t, err)
	must(t, os.RemoveAll(dir))
	must(t, d.Update(t.Context(), uuids[3]))
	if n := vectorCount(t, d); n != embeddedRuns+4 {
		t.Errorf("%d vectors", n)
	}
	var refused []string
	other := h.withVectors(Vectors{Model: "openai/b", Embed: m.embed, May: func(v contextstore.View) bool {
		if v.Metadata.Title == "Run 5" {
			refused = append(refused, v.Metadata.Title)
			return false
		}
		return true
	}})
	must(t, other.embed(t.Context()))
	must(t, other.embed(t.Context()))
	if sent := m.take(); len(sent) != embeddedRuns+3 || len(refused) != 1 || slices.ContainsFunc(sent, func(s string) bool { return strings.HasPrefix(s, "Run 5\n") }) {
		t.Errorf("by another model: %d, refused %q", len(sent), refused)
	}
	if n := vectorCount(t, d); n != embeddedRuns+4 {
		t.Errorf("%d vectors", n)
	}
	if _, err := Rebuild(t.Context(), Options{BaseDir: t.TempDir()}, nil); err != nil {
		t.Error(err)
	}
}

// A text that the model refuses keeps no other one back, and is not asked for again; where the model takes
// nothing, nothing is settled.
func TestATextThatIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for i := range embeddedRuns + 2 {
		h.ended(aRun{title: fmt.Sprintf("Run %d", i), request: []string{"Tidy.", "poison"}[i/(embeddedRuns+1)]})
	}
	m := &meaning{}
	down := true
	d := h.withVectors(Vectors{Model: "ollama/a", Embed: func(ctx context.Context, texts []string) ([][]float32, error) {
		all, _ := m.embed(ctx, texts)
		if down || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "poison") }) {
			return nil, errors.New("500: unsupported value: NaN")
		}
		return all, nil
	}})
	must(t, d.embed(t.Context()))
	if sent := m.take(); vectorCount(t, d) != 0 || len(sent) > embeddedRuns+2 {
		t.Errorf("a model that is down: %d vectors, %d texts", vectorCount(t, d), len(sent))
	}
	down = false
	must(t, d.embed(t.Context()))
	if n := vectorCount(t, d); n != embeddedRuns+2 {
		t.Errorf("%d vectors", n)
	}
	m.take()
	must(t, d.embed(t.Context()))
	if sent := m.take(); sent != nil {
		t.Errorf("again: %q", sent)
	}
}

func vectorCount(t *testing.T, d *DB) (n int) {
	t.Helper()
	must(t, d.file.Use(func(h *database.Handles) error {
		return h.R.QueryRowContext(t.Context(), `SELECT count(*) FROM vectors`).Scan(&n)
	}))
	return n
}

// Of a few runs the distances tell nothing.
func TestFewVectors(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for i := range fewVectors - 1 {
		h.ended(aRun{title: []string{"Login session expires", "Chore"}[min(i, 1)] + strings.Repeat("!", i), request: "x"})
	}
	m := &meaning{}
	d := h.withVectors(Vectors{Model: "ollama/a", Embed: m.embed})
	must(t, d.embed(t.Context()))
	if all := alike(t, d, Like{Title: "サインインの期限"}); all != nil {
		t.Error(all)
	}
}

func TestCosine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 2, -3}, []float32{2, 4, -6}, 1}, {[]float32{1, 0}, []float32{0, 5}, 0}, {[]float32{1, -1}, []float32{-3, 3}, -1},
		{[]float32{0, 0}, []float32{1, 1}, 0}, {[]float32{1, 1}, []float32{1, 0}, math.Sqrt2 / 2}, {nil, nil, 0},
	} {
		if got := cosine(packed(c.a), packed(c.b)); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%v %v: %v", c.a, c.b, got)
		}
	}
}

// A request is embedded by its beginning, in whole characters.
func TestEmbeddedText(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"":                         "T",
		" a\n":                     "T\n a",
		strings.Repeat("あ", 1000):  "T\n" + strings.Repeat("あ", embeddedRunes),
		strings.Repeat("𠮟b", 1000): "T\n" + strings.Repeat("𠮟b", embeddedRunes/2),
	} {
		if got := (Like{Title: "T", Body: body}).text(); got != want {
			t.Errorf("%q", got)
		}
	}
}
