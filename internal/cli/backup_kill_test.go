package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// killed runs tori with args and kills it at an instant within some time, and reports whether it had
// ended by itself before.
func (h *house) killed(within time.Duration, args ...string) (ended bool) {
	h.t.Helper()
	p := h.start(append(args, "--config", h.config)...)
	<-time.After(rand.N(within)) //nolint:gosec // an instant
	_ = p.Process.Kill()
	return p.code() == exitOK
}

// listed are the runs that tori tasks has of a base directory.
func (h *house) listed(base string) (all []string) {
	h.t.Helper()
	if _, err := os.Stat(base); os.IsNotExist(err) {
		return nil
	}
	l, err := list(h.t.Context(), base)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, v := range l.Views {
		all = append(all, fmt.Sprint(v.Metadata.UUID, v.Status(), v.State.MessageCount))
	}
	slices.Sort(all)
	return all
}

// fill puts ended runs into a base directory, and returns the uuid of the last one.
func (h *house) fill(base string, runs int) (uuid string) {
	h.t.Helper()
	s, err := contextstore.Open(h.t.Context(), contextstore.Options{BaseDir: base, Redact: func(s string) string { return s }, NoSync: true})
	must := func(err error) {
		h.t.Helper()
		if err != nil {
			h.t.Fatal(err)
		}
	}
	must(err)
	for n := range runs {
		uuid, err = s.Enqueue(h.t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "folder", Owner: "a", Repo: "r", Type: "issue", ID: fmt.Sprint(n)}, Title: "one", Run: []byte("{}")})
		must(err)
		c, _, err := s.Claim(h.t.Context(), uuid)
		must(err)
		_, err = c.Append(contextstore.Message{Role: "user", Content: strings.Repeat("please ", 2000)})
		must(err)
		must(c.Transition(h.t.Context(), task.Outcome{Status: task.Completed, Summary: "done"}))
	}
	must(s.Close())
	return uuid
}

// tori backup and tori restore are killed at random instants. What is whole then is all there, and
// the next call does the rest.
func TestBackupAndRestoreKilled(t *testing.T) {
	skipShort(t, "a process after the other is killed")
	t.Parallel()
	const runs, kills = 15, 6
	h := newHouse(t, "http://127.0.0.1:1", "")
	one, place := h.fill(h.base(), runs), filepath.Join(h.dir, "place")
	want := h.listed(h.base())
	began := time.Now()
	h.tori(0, "backup", filepath.Join(h.dir, "measured"))
	took := time.Since(began)
	for range kills {
		h.killed(took, "backup", place, "--base-dir", h.base())
		p := h.start("backup", "verify", place, "--base-dir", h.base(), "--config", h.config)
		if code := p.code(); code != exitOK && !strings.Contains(p.out.String(), "there is no backup in") {
			t.Fatalf("exit code %d:\n%s", code, p.out.String())
		}
	}
	h.tori(0, "backup", place)
	if out := h.tori(0, "backup", "verify", place); strings.Contains(out, "cannot") {
		t.Fatal(out)
	}

	began = time.Now()
	h.tori(0, "restore", place, "--to", filepath.Join(h.dir, "measured-again"))
	took = time.Since(began)
	for i := range kills {
		dir, before, after, args := filepath.Join(h.dir, fmt.Sprint("to", i)), []string(nil), want, []string(nil)
		if i%3 > 0 { // over something else, or one run beside it
			h.fill(dir, 2)
			before, args = h.listed(dir), []string{"--force"}
		}
		if i%3 == 2 {
			at := slices.IndexFunc(want, func(s string) bool { return strings.HasPrefix(s, one) })
			after, args = append([]string{want[at]}, before...), []string{"--task", one}
			slices.Sort(after)
		}
		args = append([]string{"restore", place, "--to", dir}, args...)
		ended := h.killed(took, args...)
		got := h.listed(dir)
		if ended && !slices.Equal(got, after) || !slices.Equal(got, before) && !slices.Equal(got, after) && len(got) > 0 {
			t.Fatalf("%q is killed: %d runs are listed", args, len(got))
		}
		if !ended {
			p := h.start(append(args, "--config", h.config)...)
			if code := p.code(); code != exitOK && !strings.Contains(p.out.String(), "is in use already") { // it was killed behind its end
				t.Fatalf("%q again: exit code %d:\n%s", args, code, p.out.String())
			}
		}
		if got := h.listed(dir); !slices.Equal(got, after) {
			t.Errorf("%q: %d runs are listed, not %d", args, len(got), len(after))
		}
		p := h.start("check", "--base-dir", dir, "--config", h.config)
		if code := p.code(); code != exitOK {
			t.Errorf("%q: tori check: %d\n%s", args, code, p.out.String())
		}
	}
}
