package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// logged is what was logged, by several at once.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

// searching is a system with these settings in a base directory, and what it logs.
func searching(t *testing.T, base, settings string) (*system, *logged) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("language: en\ncontext_storage: {base_dir: "+base+", durability: os}\n"+settings), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &logged{}
	s := &system{opt: RunOptions{Config: file}, env: Env{Getenv: func(string) string { return "" }, Log: log, Lang: i18n.English, Now: time.Now, Notice: func(string, ...any) {}}, fs: &disk.FS{}}
	for _, do := range []func() error{s.settle, s.openModels, func() error { return s.open(t.Context()) }} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = s.store.Close(); _ = s.models.Close() })
	return s, log
}

// end makes a run that ended.
func end(t *testing.T, s *system, id, title string, run string) contextstore.View {
	t.Helper()
	uuid, err := s.store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "issue", ID: id}, Title: title, Run: []byte(run)})
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.store.Claim(t.Context(), uuid)
	if err == nil {
		err = c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "done"})
	}
	v, verr := s.store.View(uuid)
	if err != nil || verr != nil {
		t.Fatal(err, verr)
	}
	return v
}

// A run is told of one that means the same in other words; where the model is down, of one of the same words, and
// that is logged once.
func TestSimilarByEmbeddings(t *testing.T) {
	t.Parallel()
	srv := llmtest.NewServer(t, nil)
	srv.Embed = func(text string) []float32 {
		v := []float32{0, 1, float32(len(text)) / 100}
		if strings.Contains(text, "Login") || strings.Contains(text, "サインイン") {
			v[0] = 5
		}
		return v
	}
	base := t.TempDir()
	s, log := searching(t, base, "llm: {openai: {base_url: '"+srv.URL+"', api_key: k}}\nsearch: {similar: {enabled: true, embeddings: openai/e}}\n")
	end(t, s, "1", "Login expires", "{}")
	for i := range 20 {
		end(t, s, fmt.Sprint(i+2), fmt.Sprint("Chore ", i), "{}")
	}
	key := task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "issue", ID: "new"}
	told := func(title string) (all []string) {
		t.Helper()
		found, err := s.similar(t.Context(), key, title, "", 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range found {
			all = append(all, v.Metadata.Title)
		}
		return all
	}
	until(t, "a run that means the same", func() bool { return strings.Join(told("サインインが切れる"), "|") == "Login expires" })
	down, log2 := searching(t, base, "llm: {openai: {base_url: 'http://127.0.0.1:1/v1', api_key: k}}\nsearch: {similar: {enabled: true, embeddings: openai/e}}\n")
	s = down
	for range 3 {
		if all := told("サインインが切れる"); all != nil {
			t.Error(all)
		}
		if all := told("Login expires"); len(all) != 1 {
			t.Error(all)
		}
	}
	if n := log2.count("similar runs are found by their words alone"); n != 1 || log.count("words alone") != 0 {
		t.Errorf("told %d times", n)
	}
}

// What was to stay on this machine is not given to a model in a cloud.
func TestMayBeEmbedded(t *testing.T) {
	t.Parallel()
	for place, want := range map[string][3]bool{"https://api.example.com/v1": {true, false, false}, "http://127.0.0.1:1/v1": {true, true, true}} {
		s, _ := searching(t, t.TempDir(), "llm: {openai: {base_url: '"+place+"', api_key: k}}\nsearch: {similar: {embeddings: openai/e}}\n")
		v := end(t, s, "1", "a", "{}")
		got := [3]bool{s.vectors.May(v)}
		v.Metadata.Run = []byte(`{"local_only":true}`)
		got[1] = s.vectors.May(v)
		v.Metadata.Run = nil
		got[2] = s.vectors.May(v)
		if got != want {
			t.Error(place, got)
		}
	}
}
