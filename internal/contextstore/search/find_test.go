package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/tables"
	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// house is a store whose clock goes on by a day with each run.
type house struct {
	*contextstore.Store
	t    testing.TB
	now  time.Time
	base string
}

func newHouse(t testing.TB, texts contextstore.Texts) *house {
	t.Helper()
	h := &house{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), base: t.TempDir()}
	h.open(texts)
	return h
}

func (h *house) open(texts contextstore.Texts) {
	h.t.Helper()
	var err error
	h.Store, err = contextstore.Open(h.t.Context(), contextstore.Options{BaseDir: h.base, NoSync: true, Redact: func(s string) string { return s },
		Now: func() time.Time { return h.now }, Texts: texts})
	must(h.t, err)
	h.t.Cleanup(func() { _ = h.Close() })
}

// aRun is a run that ended.
type aRun struct {
	repo, user, title, request, says, tool, plan, summary string
	status                                                task.Status
}

// ended makes a run that ended, a day after the one before it.
func (h *house) ended(r aRun) (uuid string) {
	h.t.Helper()
	h.now = h.now.AddDate(0, 0, 1)
	if r.repo == "" {
		r.repo = "widgets"
	}
	if r.status == "" {
		r.status = task.Completed
	}
	uuid, err := h.Enqueue(h.t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "acme", Repo: r.repo, Type: "issue", ID: h.now.Format("0102")},
		User: r.user, Title: r.title})
	must(h.t, err)
	c, _, err := h.Claim(h.t.Context(), uuid)
	must(h.t, err)
	_, err = c.Append(contextstore.Message{Role: "system", Content: "You are systematic."}, contextstore.Message{Role: "user", Content: "# Task: " + r.title + "\n\n<issue>\n" + r.request + "\n</issue>\n"},
		contextstore.Message{Role: "assistant", Content: r.says, ToolCalls: []contextstore.ToolCall{{ID: "1", Name: "shell", Arguments: `{"command":"ls"}`}}},
		contextstore.Message{Role: "tool", ToolCallID: "1", ToolName: "shell", Content: "answered by a tool: " + r.tool})
	must(h.t, err)
	args, err := json.Marshal(map[string]string{"command": "run\n" + r.tool})
	must(h.t, err)
	must(h.t, c.AppendTools(contextstore.ToolRun{Tool: "shell", Args: args, Result: "ok", Status: "success", CallID: "1"}))
	if r.plan != "" {
		j, _, err := c.OpenJournal(filepath.Join("planning", uuid+".jsonl"))
		must(h.t, err)
		line, err := j.Encode(map[string]any{"type": "plan", "task_uuid": uuid, "plan": map[string]any{"goal": r.plan}})
		must(h.t, err)
		must(h.t, errors.Join(j.Append(line), j.Close()))
	}
	must(h.t, c.Transition(h.t.Context(), task.Outcome{Status: r.status, Summary: r.summary}))
	return uuid
}

// opened is the search.db of a house, up to date.
func (h *house) opened() *DB {
	h.t.Helper()
	d, err := Open(h.t.Context(), Options{BaseDir: h.base})
	must(h.t, err)
	h.t.Cleanup(func() { _ = d.Close() })
	must(h.t, d.CatchUp(h.t.Context(), nil))
	return d
}

var admin = contextstore.Viewer{Admin: true}

// titles are the titles of what is found, each with where.
func titles(t testing.TB, d *DB, who contextstore.Viewer, f Filter, words ...string) (all []string) {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 10
	}
	hits, _, err := d.Find(t.Context(), who, Parse(words), f)
	must(t, err)
	for _, h := range hits {
		all = append(all, fmt.Sprintf("%s: %s [%d]", h.View.Metadata.Title, h.Line.Part, h.Line.Number))
	}
	return all
}

func TestFind(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.ended(aRun{user: "hanako", title: "Login fails", request: "二要素認証の期限が切れない", says: "I look at sessionTimeout.", tool: "grep -rn zebra", plan: "Shorten the lifetime", summary: "Expiry is checked now."})
	h.ended(aRun{user: "taro", repo: "gadgets", title: "Faster export", request: "The export of 10,000 rows takes a minute.", says: "The login is not touched.", summary: "Rows are streamed.", status: task.Failed})
	h.ended(aRun{user: "taro", title: "Third", request: "nothing of it", says: "nor here", summary: "認証は変えていない"})
	d := h.opened()
	for _, c := range []struct {
		words string
		f     Filter
		want  []string
	}{
		{"login", Filter{}, []string{"Faster export: messages [3]", "Login fails: title [0]"}},
		{"認証", Filter{}, []string{"Third: summary [1]", "Login fails: request [2]"}},
		{"証", Filter{}, []string{"Third: summary [1]", "Login fails: request [2]"}},
		{"timeout", Filter{}, []string{"Login fails: messages [3]"}},
		{"timeo*", Filter{}, []string{"Login fails: messages [3]"}},
		{"ti*", Filter{}, nil},
		{"lifetime", Filter{}, []string{"Login fails: plan [1]"}},
		{"login lifetime", Filter{}, []string{"Login fails: title [0]"}},
		{"login rows", Filter{}, []string{"Faster export: summary [1]"}},
		{"zebra", Filter{}, nil},
		{"zebra", Filter{In: "tools"}, []string{"Login fails: tools [1]"}},
		{"systematic", Filter{}, nil},
		{"login", Filter{In: "messages"}, []string{"Faster export: messages [3]", "Login fails: request [2]"}},
		{"login", Filter{In: "summaries"}, nil},
		{"login", Filter{User: "HANAKO"}, []string{"Login fails: title [0]"}},
		{"login", Filter{Status: task.Failed}, []string{"Faster export: messages [3]"}},
		{"login", Filter{Repo: "acme/widgets"}, []string{"Login fails: title [0]"}},
		{"login", Filter{Repo: "Gadgets"}, []string{"Faster export: messages [3]"}},
		{"login", Filter{Repo: "cme/widgets"}, nil},
		{"login", Filter{From: "2026-03-03"}, []string{"Faster export: messages [3]"}},
		{"login", Filter{To: "2026-03-02"}, []string{"Login fails: title [0]"}},
		{"login", Filter{From: "2026-03-02", To: "2026-03-02"}, []string{"Login fails: title [0]"}},
		{"login", Filter{Limit: 1}, []string{"Faster export: messages [3]"}},
		{"10,000", Filter{}, []string{"Faster export: request [2]"}},
	} {
		if got := titles(t, d, admin, c.f, strings.Fields(c.words)...); !slices.Equal(got, c.want) {
			t.Errorf("%s %+v: %q, want %q", c.words, c.f, got, c.want)
		}
	}
	hits, more, err := d.Find(t.Context(), admin, Parse([]string{"login"}), Filter{Limit: 1})
	if err != nil || !more || len(hits) != 1 || hits[0].Text != "The login is not touched." || !slices.Equal(hits[0].Marks, [][2]int{{4, 9}}) || hits[0].Line.File != contextstore.Messages {
		t.Error(hits, more, err)
	}
	for _, f := range []Filter{{In: "mails", Limit: 1}, {Status: task.Running, Limit: 1}} {
		if _, _, err := d.Find(t.Context(), admin, Parse([]string{"x"}), f); err == nil {
			t.Errorf("%+v is taken", f)
		}
	}
}

// What a viewer may not see is not found, as it is not shown.
func TestFindShowsWhatOneMaySee(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.ended(aRun{user: "hanako", title: "Secret plans"})
	h.ended(aRun{user: "slack:U1", title: "More plans"})
	d := h.opened()
	for _, c := range []struct {
		who  contextstore.Viewer
		want []string
	}{
		{contextstore.Viewer{}, nil},
		{contextstore.Viewer{User: "taro"}, nil},
		{contextstore.Viewer{User: "Hanako"}, []string{"Secret plans: title [0]"}},
		{contextstore.Viewer{User: "hanako", Account: "slack:U1"}, []string{"More plans: title [0]", "Secret plans: title [0]"}},
		{admin, []string{"More plans: title [0]", "Secret plans: title [0]"}},
	} {
		if got := titles(t, d, c.who, Filter{}, "plans"); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.who, got, c.want)
		}
		if got := titles(t, d, c.who, Filter{User: "hanako"}, "plans"); len(got) > 1 {
			t.Errorf("%+v: %q", c.who, got)
		}
	}
}

// Texts change after the end, and go: what the database knew of them is no hit any more, whether it
// was told or not.
func TestFilesAreTheTruth(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprint("told=", told), func(t *testing.T) {
			t.Parallel()
			var texts contextstore.Texts
			h := newHouse(t, nil)
			if told {
				keeper := NewKeeper(Options{BaseDir: h.base}, func(err error) { t.Error(err) })
				must(t, h.Close())
				h.open(keeper)
				texts = keeper
			}
			d := h.opened()
			id := h.ended(aRun{title: "Quick fox", says: "jumps over", summary: "It landed."})
			h.ended(aRun{title: "Slow fox", says: "jumps later", summary: "It will rest."})
			must(t, h.AppendFinal(t.Context(), id, contextstore.Summary{Summary: "A model says that it leapt."}))
			look := func(words string, want ...string) {
				t.Helper()
				if told {
					texts.(*Keeper).wait()
				}
				must(t, d.CatchUp(t.Context(), nil))
				if got := titles(t, d, admin, Filter{}, strings.Fields(words)...); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", words, got, want)
				}
			}
			look("leapt", "Quick fox: summary [2]")
			look("landed")
			look("jumps", "Slow fox: messages [3]", "Quick fox: messages [3]")
			h.now = h.now.AddDate(0, 0, 31)
			must(t, h.Retain(t.Context(), contextstore.Retention{Gzip: time.Hour}, false, func(contextstore.Retained) {}))
			look("jumps", "Slow fox: messages [3]", "Quick fox: messages [3]")
			must(t, h.Retain(t.Context(), contextstore.Retention{Slim: time.Hour}, false, func(contextstore.Retained) {}))
			look("jumps")
			look("leapt", "Quick fox: summary [2]")
			must(t, h.Retain(t.Context(), contextstore.Retention{Delete: time.Hour}, false, func(contextstore.Retained) {}))
			look("fox")
			if n, err := d.count(t.Context()); err != nil || n != 0 {
				t.Error("runs that are kept:", n, err)
			}
		})
	}
}

// wait waits until nothing is noted.
func (k *Keeper) wait() {
	for {
		k.mu.Lock()
		idle := k.idle
		k.mu.Unlock()
		if idle == nil {
			return
		}
		<-idle
	}
}

// A deleted search.db is made anew, also while it is open, and Rebuild gives the same.
func TestSearchDBCanBeDeleted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for n := range 3 {
		h.ended(aRun{title: fmt.Sprint("Run ", n), says: "common words"})
	}
	d := h.opened()
	want := titles(t, d, admin, Filter{}, "common")
	if len(want) != 3 {
		t.Fatal(want)
	}
	path := filepath.Join(h.base, File)
	for _, damage := range []func() error{
		func() error { return os.Remove(path) },
		func() error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	} {
		must(t, damage())
		must(t, d.CatchUp(t.Context(), nil))
		if got := titles(t, d, admin, Filter{}, "common"); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st.Mode(), err)
	}
	must(t, errors.Join(d.Close(), h.Close()))
	for name, content := range map[string][]byte{"none": nil, "garbage": []byte(strings.Repeat("no database ", 1000))} {
		if content != nil {
			must(t, os.WriteFile(path, content, 0o600))
			if _, err := Open(t.Context(), Options{BaseDir: h.base}); err == nil || !strings.Contains(err.Error(), "tori reindex") {
				t.Errorf("%s: %v", name, err)
			}
		}
		runs, err := Rebuild(t.Context(), Options{BaseDir: h.base}, nil)
		if err != nil || runs != 3 {
			t.Fatal(name, runs, err)
		}
		d := h.opened()
		if got := titles(t, d, admin, Filter{}, "common"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		must(t, d.Close())
	}
}

// Where nothing can be written, what is there is found; where there is nothing, that is said.
func TestFindWithoutWriting(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.ended(aRun{title: "Old"})
	must(t, h.opened().Close())
	h.ended(aRun{title: "Older than old"})
	must(t, h.Close())
	if os.Geteuid() == 0 { // who writes everywhere, but leaves alone what is another's
		must(t, os.Chown(h.base, 4711, -1))
	}
	must(t, os.Chmod(h.base, 0o500))
	t.Cleanup(func() { _ = os.Chmod(h.base, 0o700) })
	d := h.opened()
	if got := titles(t, d, admin, Filter{}, "old"); len(got) != 1 || d.ReadOnly() == nil {
		t.Error(got, d.ReadOnly())
	}
	must(t, errors.Join(d.Close(), os.Chmod(h.base, 0o700), os.Remove(filepath.Join(h.base, File)), os.Chmod(h.base, 0o500)))
	if _, err := Open(t.Context(), Options{BaseDir: h.base}); err == nil || !strings.Contains(err.Error(), "run tori search once") {
		t.Error(err)
	}
}

// A run whose files are damaged is passed over, and keeps no other from being found.
func TestDamagedRuns(t *testing.T) {
	t.Parallel()
	for kind, mount := range map[string]func(t *testing.T, base string){"files": func(*testing.T, string) {}, "tables": func(t *testing.T, base string) {
		d, err := tables.OpenSQLite(t.Context(), tables.Options{Base: base}, true)
		must(t, err)
		t.Cleanup(func() { must(t, d.Close()) })
		t.Cleanup(disk.Mount(base, d))
	}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := &house{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), base: t.TempDir()}
			mount(t, h.base)
			h.open(nil)
			for _, name := range []string{contextstore.MetadataFile, contextstore.Messages, contextstore.Summaries, contextstore.Tools} {
				id := h.ended(aRun{title: "Harmed " + name, says: "said"})
				must(t, (&disk.FS{}).Replace(filepath.Join(h.base, contextstore.DirCompleted, id, name), []byte("{\"seq\":\x00\n\n[[[\n"), false))
			}
			h.ended(aRun{title: "Whole", says: "said"})
			runs, found := int64(5), 3 // the title of one, and the words of another, are gone
			if kind == "files" {
				dir := filepath.Join(h.base, contextstore.DirCompleted, h.ended(aRun{title: "No file", says: "said"}), contextstore.Summaries)
				must(t, errors.Join(os.Remove(dir), os.Mkdir(dir, 0o700)))
				runs, found = 6, 4
			}
			d := h.opened()
			if got := titles(t, d, admin, Filter{}, "said"); len(got) != found {
				t.Errorf("%q", got)
			}
			if n, err := d.count(t.Context()); n != runs || err != nil {
				t.Error("a damaged run would be read again at each look:", n, err)
			}
		})
	}
}

// Several processes put the same runs in at once, while others end: each is there once.
func TestManyCatchUpAtOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for n := range 20 {
		h.ended(aRun{title: fmt.Sprint("Run ", n)})
	}
	keeper := NewKeeper(Options{BaseDir: h.base}, func(err error) { t.Error(err) })
	keeper.Fill()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			d, err := Open(t.Context(), Options{BaseDir: h.base})
			if err == nil {
				err = errors.Join(d.CatchUp(t.Context(), nil), d.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	keeper.Changed(h.ended(aRun{title: "Run last"}))
	wg.Wait()
	must(t, keeper.Close())
	keeper.Changed("after its end") // nothing happens
	d := h.opened()
	if got := titles(t, d, admin, Filter{Limit: 100}, "run"); len(got) != 21 {
		t.Errorf("%d runs: %q", len(got), got)
	}
	if n, err := d.count(t.Context()); n != 21 || err != nil {
		t.Error(n, err)
	}
}

// A fill that is cut short leaves what it had written whole, and the next one goes on.
func TestFillIsCutShort(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	const runs = batchRuns + 20
	first := h.ended(aRun{title: "Run 0"})
	for n := 1; n < runs; n++ { // copies of it
		uuid := fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)
		from, to := filepath.Join(h.base, contextstore.DirCompleted, first), filepath.Join(h.base, contextstore.DirCompleted, uuid)
		must(t, os.CopyFS(to, os.DirFS(from)))
		raw, err := os.ReadFile(filepath.Join(to, contextstore.MetadataFile))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(to, contextstore.MetadataFile), []byte(strings.ReplaceAll(string(raw), first, uuid)), 0o600))
	}
	d, err := Open(t.Context(), Options{BaseDir: h.base})
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	ctx, cut := context.WithCancel(t.Context())
	err = d.CatchUp(ctx, func(n int64) {
		if n == batchRuns+5 {
			cut()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if n, err := d.count(t.Context()); n != batchRuns || err != nil {
		t.Error("runs after the cut:", n, err)
	}
	read := int64(0)
	must(t, d.CatchUp(t.Context(), func(n int64) { read = n }))
	if n, err := d.count(t.Context()); n != runs || read != runs-batchRuns || err != nil {
		t.Error("runs in the end:", n, "read again:", read, err)
	}
	if got := titles(t, d, admin, Filter{Limit: 1000}, "run"); len(got) != runs {
		t.Error(len(got), "are found")
	}
}
