package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/forgetest"
	"toritsugi/internal/task"
)

// world is a folder of issues, and people with editors.
type world struct {
	forgetest.World // what a folder has not
	t               *testing.T
	dir             string
	now             time.Time
	last            int
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
}

var house = forge.Repo{Owner: "me", Name: "house"}

func (w *world) open() *Forge {
	w.t.Helper()
	f, err := Open(Options{Dir: w.dir, Repo: house, Branch: "trunk", Now: func() time.Time { return w.now }})
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *world) path(id string) string { return filepath.Join(w.dir, id+".md") }

// write saves a file as an editor does, at the world's time.
func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(path, w.now, w.now); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) issue(id string) whole {
	w.t.Helper()
	i, err := readWhole(w.path(id))
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

func (w *world) Open(by forge.Person, title, body string, labels ...string) string {
	w.last++
	id := fmt.Sprint(w.last)
	w.write(w.path(id), "---\ntitle: "+quoted(title)+"\nauthor: "+by.Login+"\nlabels: "+flow(labels)+"\n---\n\n"+body+"\n")
	return id
}

func (w *world) React(forge.Person, string, string, string) { w.t.Fatal("files have no reactions") }

func (w *world) Label(_ forge.Person, id, label string) { w.labels(id, []string{label}, nil) }

func (w *world) Unlabel(_ forge.Person, id, label string) { w.labels(id, nil, []string{label}) }

func (w *world) labels(id string, add, remove []string) {
	w.t.Helper()
	text, err := editLabels(w.path(id), []byte(read(w.t, w.path(id))), add, remove)
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(w.path(id), string(text))
}

// Comment writes an entry and returns its place in the file.
func (w *world) Comment(by forge.Person, id, body string) string {
	w.t.Helper()
	entry, err := format(Comment{Author: by.Login, Time: w.now, Body: body})
	if err != nil {
		w.t.Fatal(err)
	}
	path := CommentsPath(w.path(id))
	text := string(entry)
	if old, err := os.ReadFile(path); err == nil {
		text = string(old) + "\n" + text
	}
	w.write(path, text)
	return body
}

// change rewrites the one entry that f wants changed; false drops it.
func (w *world) change(id string, f func(Comment, forge.Comment) (string, bool)) {
	w.t.Helper()
	all, _, err := w.open().Comments(w.t.Context(), w.open().key(id))
	if err != nil {
		w.t.Fatal(err)
	}
	var parts []string
	for n, c := range w.issue(id).Comments {
		body, keep := f(c, all[n])
		if !keep {
			continue
		}
		c.Body = body
		entry, err := format(c)
		if err != nil {
			w.t.Fatal(err)
		}
		parts = append(parts, string(entry))
	}
	w.write(CommentsPath(w.path(id)), strings.Join(parts, "\n"))
}

func (w *world) Edit(_ forge.Person, id, note, body string) {
	w.change(id, func(c Comment, _ forge.Comment) (string, bool) {
		if c.Body == note {
			return body, true
		}
		return c.Body, true
	})
}

func (w *world) Delete(_ forge.Person, id, note string) {
	w.change(id, func(c Comment, as forge.Comment) (string, bool) { return c.Body, as.ID != note })
}

func (w *world) Notes(id string) []string {
	var all []string
	for _, c := range w.issue(id).Comments {
		if c.Marker != "" {
			c.Body += "\n\n<!-- tori:" + c.Marker + " -->"
		}
		all = append(all, c.Body)
	}
	return all
}

func (w *world) LabelsOf(id string) []string { return w.issue(id).Labels }
func (w *world) Pass(d time.Duration)        { w.now = w.now.Add(d) }

func TestContract(t *testing.T) {
	t.Parallel()
	forgetest.Run(t, func(t *testing.T) forgetest.Fixture {
		w := newWorld(t)
		return forgetest.Fixture{
			Forge: w.open(), Reopen: func() forge.Tracker { return w.open() }, Repo: house, Main: "trunk", World: w,
			Lacks: map[forgetest.Feature]string{
				forgetest.Accounts: "files have no numbers of people", forgetest.Events: "files have no history", forgetest.Labels: "a label is where it is named",
				forgetest.Assignees: "the front matter has none", forgetest.Closing: "a file is there or not", forgetest.Pulls: "it has no branches",
				forgetest.Checks: "it has no CI", forgetest.Remotes: "it is no server", forgetest.Signs: "text has none",
				forgetest.Changes: "looking costs nobody anything",
			},
		}
	})
}

func TestLabelsKeepTheRest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"flow":              {"---\nid: 7 # seven\nlabels: [a, \"b ]\", agent]  # keep\ntitle: T\n---\nbody", "---\nid: 7 # seven\nlabels: [a, \"b ]\", new label]  # keep\ntitle: T\n---\nbody"},
		"flow over lines":   {"---\nlabels: [a,\n  agent, # it's ]\n  'b]'\n]\ntitle: T\n---\nbody", "---\nlabels: [a, \"b]\", new label]\ntitle: T\n---\nbody"},
		"block":             {"---\nlabels:\n  - a # first\n  # about the agent\n  - agent\n  - \"c\"\n# end\ntitle: T\n---\nbody", "---\nlabels:\n  - a # first\n  # about the agent\n  - \"c\"\n  - new label\n# end\ntitle: T\n---\nbody"},
		"block at the left": {"---\ntitle: T\n\"labels\" :\n- agent\n---\nbody", "---\ntitle: T\n\"labels\" :\n- new label\n---\nbody"},
		"block, CRLF, mark": {"\uFEFF---\r\nlabels:\r\n    - agent\r\n    - a\r\n...\r\nbody\r\n", "\uFEFF---\r\nlabels:\r\n    - a\r\n    - new label\r\n...\r\nbody\r\n"},
		"folded":            {"---\nlabels:\n  - >-\n    agent\n  - a\n---\nbody", "---\nlabels:\n  - a\n  - new label\n---\nbody"},
		"no labels":         {"---\ntitle: T\n---\nbody", "---\ntitle: T\nlabels: [new label]\n---\nbody"},
		"empty":             {"---\nlabels: []\n---\nbody", "---\nlabels: [new label]\n---\nbody"},
		"no front matter":   {"# T\r\n\r\nbody", "---\r\nlabels: [new label]\r\n---\r\n# T\r\n\r\nbody"},
		"a rule":            {"---\n\nA rule.\n", "---\nlabels: [new label]\n---\n---\n\nA rule.\n"},
		"empty matter":      {"---\n---\nbody", "---\nlabels: [new label]\n---\nbody"},
	} {
		got, err := editLabels("x.md", []byte(c.text), []string{"new label"}, []string{"AGENT"})
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
			continue
		}
		again, err := editLabels("x.md", got, []string{"new label"}, []string{"agent"})
		if err != nil || string(again) != string(got) {
			t.Errorf("%s again: %q, %v", name, again, err)
		}
		none, err := editLabels("x.md", got, nil, []string{"new label", "a", "c", "b ]", "b]"})
		if i, perr := parseIssue("x.md", "x.md", none); err != nil || perr != nil || len(i.Labels) != 0 {
			t.Errorf("%s without any: %q, %v, %v", name, none, err, perr)
		}
	}
	for _, odd := range []string{"---\n{id: 5, labels: [agent]}\n---\nx", "---\nlabels: &a [agent]\n---\nx", "---\nlabels: !!seq [agent]\n---\nx"} {
		if got, err := editLabels("x.md", []byte(odd), []string{"b"}, nil); err == nil {
			t.Errorf("%q became %q", odd, got)
		}
	}
}

func FuzzLabels(f *testing.F) {
	f.Add("---\nlabels: [a, \"b\"]\n---\nbody", "c", "a")
	f.Add("---\nlabels:\n- a\n  # x\n- 'b'\n---\nbody", "c d", "b")
	f.Fuzz(func(t *testing.T, text, add, remove string) {
		defer disktest.Bounded(t, len(text))()
		before, err := parseIssue("x.md", "x.md", []byte(text))
		if err != nil {
			return
		}
		got, err := editLabels("x.md", []byte(text), []string{add}, []string{remove})
		if err != nil {
			return
		}
		after, err := parseIssue("x.md", "x.md", got)
		if err != nil || !slices.Equal(after.Labels, labelsAfter(before.Labels, []string{add}, []string{remove})) || after.Body != before.Body || after.Title != before.Title {
			t.Errorf("%q became %q: %v", text, got, err)
		}
	})
}

func TestLabelsWhileSomebodyWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Open(forge.Person{Login: "ken"}, "x", "x", "agent")
	data := []byte(read(t, w.path(id)))
	w.write(w.path(id), "the other's text")
	if err := replace(w.path(id), data, func() error { return errChanged }); !errors.Is(err, errChanged) || read(t, w.path(id)) != "the other's text" {
		t.Errorf("%v: %q", err, read(t, w.path(id)))
	}
	left, err := filepath.Glob(filepath.Join(w.dir, ".tori-*"))
	if err != nil || left != nil {
		t.Errorf("%q, %v", left, err)
	}
}

func TestBrokenFilesDoNotHideOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.open()
	good := w.Open(forge.Person{Login: "ken"}, "x", "x", "agent")
	w.write(filepath.Join(w.dir, "30-bad.md"), "---\nlable: x\n---\nx")
	w.write(filepath.Join(w.dir, "1-again.md"), "---\nlabels: [agent]\n---\nx")
	for _, hidden := range []string{".hidden.md", "notes.txt", "1.comments.md"} {
		w.write(filepath.Join(w.dir, hidden), "---\nlable: x\n---\nx")
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(w.dir, "40.md")); err != nil {
		t.Fatal(err)
	}
	got, err := f.Triggered(t.Context(), house, forge.Trigger{Label: "agent"})
	if len(got) != 1 || !forge.Is(err, forge.Invalid) || !strings.Contains(err.Error(), "2 issues") {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := f.Item(t.Context(), f.key("30")); !forge.Is(err, forge.Invalid) || !strings.Contains(err.Error(), "lable") {
		t.Error(err)
	}
	if _, err := f.Item(t.Context(), f.key("40")); !forge.Is(err, forge.NotFound) {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(w.dir, "30-bad.md")); err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(w.dir, "1-again.md"), "---\nid: 2\nlabels: [agent]\n---\nx")
	if got, err := f.Triggered(t.Context(), house, forge.Trigger{Label: "agent"}); len(got) != 2 || err != nil || good != "1" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPostKeepsOthersBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.open()
	id := w.Open(forge.Person{Login: "ken"}, "x", "x", "agent")
	path := CommentsPath(w.path(id))
	before := "people write\r\n\x83\x00 anything\r\n\r\n## ken — 2026-01-01T00:00:00Z\r\nours? no\r\n\r\n<!-- tori:m -->\r\n"
	w.write(path, before)
	if _, err := f.Post(t.Context(), f.key(id), "m", "first"); err != nil {
		t.Fatal(err)
	}
	after := "\nlate words without an end"
	w.write(path, read(t, path)+after)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	c, err := f.Post(t.Context(), f.key(id), "m", "second\n\n<!-- tori:m -->")
	if err != nil {
		t.Fatal(err)
	}
	want := before + "\n## tori — 2026-03-04T05:06:07Z\n\nsecond\n\n\\<!-- tori:m -->\n\n<!-- tori:m -->\n" + after
	if got := read(t, path); got != want || c.Marker != "m" {
		t.Errorf("%q\n%q, %+v", got, want, c)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// What was seen of an issue is known over restarts: since when it bears a label,
// whatever else is written in it, and when something was said that has no date, or
// a wrong one.
func TestMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marks := brief{}
	open := func() *Forge { f := w.open(); f.Remember(marks); return f }
	id := w.Open(forge.Person{Login: "ken"}, "x", "x", "agent")
	asked := func() time.Time {
		t.Helper()
		a, err := open().Asked(t.Context(), w.open().key(id), forge.Trigger{Label: "Agent"})
		if err != nil {
			t.Fatal(err)
		}
		return a.At
	}
	first := asked()
	w.Pass(time.Minute)
	w.write(w.path(id), read(t, w.path(id))+"more\n")
	if at := asked(); !at.Equal(first) {
		t.Errorf("an edit of the text asked again: %s, %s", first, at)
	}
	if err := open().SetLabels(t.Context(), w.open().key(id), []string{"busy"}, []string{"agent"}); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
	w.labels(id, []string{"agent"}, nil)
	if at := asked(); !at.Equal(w.now) {
		t.Errorf("put on again at %s, not %s", at, w.now)
	}

	if err := os.Rename(w.path(id), w.path(id)+"x"); err != nil {
		t.Fatal(err)
	}
	if _, err := open().Item(t.Context(), w.open().key(id)); !forge.Is(err, forge.Gone) {
		t.Error(err)
	}
	w.write(w.path(id), "---\nlabels: [")
	if _, err := open().Post(t.Context(), w.open().key(id), "m", "text"); !forge.Is(err, forge.Unavailable) {
		t.Error(err)
	}
	if err := os.Rename(w.path(id)+"x", w.path(id)); err != nil {
		t.Fatal(err)
	}

	path := CommentsPath(w.path(id))
	edited := func() (all []string) {
		t.Helper()
		said, err := open().CommentsSince(t.Context(), house, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range said {
			all = append(all, fmt.Sprint(c.Author.Login, " ", c.Author.Bot, " ", c.Edited.Sub(first)))
		}
		slices.Sort(all)
		return all
	}
	w.write(path, "no date\n\n/stop\n\n/retry\nnow\n")
	edited()
	w.Pass(time.Minute)
	w.write(path, read(t, path)+"\n## ken — 2020-01-01T00:00:00Z\n\nan old date\n")
	edited()
	w.Pass(time.Minute)
	w.write(path, read(t, path)+"\n## tori — "+w.now.Format(time.RFC3339)+"\n\nhalf of what we sa")
	want := []string{" false 2m0s", " false 2m0s", " false 2m0s", "ken false 3m0s", "tori true 4m0s"}
	if got := edited(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func (f *Forge) key(id string) task.Key {
	return task.Key{Source: "folder", Owner: house.Owner, Repo: house.Name, Type: "issue", ID: id}
}
