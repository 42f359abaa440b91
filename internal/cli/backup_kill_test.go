package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/task"
)

// killed runs tori with args and kills it at an instant within some time of its beginning, or of a
// file being there that the pattern names, and reports whether it had ended by itself before.
func (h *house) killed(within time.Duration, pattern string, args ...string) (ended bool) {
	h.t.Helper()
	p, done := h.start(append(args, "--config", h.config)...), make(chan int, 1)
	go func() { done <- p.code() }()
	for there := pattern == ""; !there; {
		select {
		case code := <-done:
			return code == exitOK
		default:
			found, _ := filepath.Glob(pattern)
			there = len(found) > 0
		}
	}
	<-time.After(rand.N(within)) //nolint:gosec // an instant
	_ = p.Process.Kill()
	return <-done == exitOK
}

// fill puts runs into a base directory that ended some time ago, and returns the uuid of the last one.
func (h *house) fill(base string, runs int, ago time.Duration) (uuid string) {
	h.t.Helper()
	s, err := contextstore.Open(h.t.Context(), contextstore.Options{BaseDir: base, Redact: func(s string) string { return s }, NoSync: true, Now: func() time.Time { return time.Now().Add(-ago) }})
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

// ledger are the hashes of what a base directory holds of runs, conversations and settings, of
// house.db, and of the audit but for what a restore and a check add.
func (h *house) ledger(base string) map[string][32]byte {
	h.t.Helper()
	all := filesOf(h.t, base)
	maps.DeleteFunc(all, func(path string, _ [32]byte) bool {
		top, _, _ := strings.Cut(path, "/")
		return !slices.Contains([]string{contextstore.DirCompleted, "sessions", "mcp", "histories"}, top)
	})
	for _, name := range []string{"audit.jsonl", contextstore.HouseDBFile} {
		b, err := os.ReadFile(filepath.Join(base, name))
		if err != nil && !os.IsNotExist(err) {
			h.t.Fatal(err)
		}
		if b = ofRestores.ReplaceAll(b, nil); len(b) > 0 {
			all[name] = sha256.Sum256(b)
		}
	}
	return all
}

// unlike are the files that two ledgers have not alike.
func unlike(a, b map[string][32]byte) (all []string) {
	both := maps.Clone(b)
	maps.Copy(both, a)
	for path := range both {
		if a[path] != b[path] {
			all = append(all, path)
		}
	}
	return all
}

var ofRestores = regexp.MustCompile(`(?m)^.*"action":"(restore|check)".*\n`)

// backupKills is how many processes are killed of each kind: a few, or as many as TORI_SOAK_BACKUP says.
func backupKills() int {
	if soak, err := strconv.Atoi(os.Getenv("TORI_SOAK_BACKUP")); err == nil {
		return soak
	}
	return 2
}

// backedUp is a house with ended runs, a conversation and a backup of both.
func backedUp(t *testing.T) (h *house, one, place string) {
	h = newHouse(t, "http://127.0.0.1:1", "")
	h.env = append(h.env, "TORI_PLANNING_HISTORY_DIRECTORY=histories") // which are moved run by run
	one, place = h.fill(h.base(), 15, 0), filepath.Join(h.dir, "place")
	runs, err := os.ReadDir(filepath.Join(h.base(), contextstore.DirCompleted))
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		h.write(filepath.Join("ctx/histories", run.Name()+".jsonl"), `{"type":"plan"}`+"\n")
	}
	h.write("ctx/mcp/pins.json", "{}\n")
	h.write("ctx/sessions/terminal%3Ax/messages.jsonl", `{"seq":1,"role":"user","content":"hello","timestamp":"2024-01-01T00:00:00.000000Z"}`+"\n")
	return h, one, place
}

// tori backup is killed at random instants: the generations that there are by then are whole, and
// the next call makes one.
func TestBackupKilled(t *testing.T) {
	skipShort(t, "a process after the other is killed")
	t.Parallel()
	h, _, place := backedUp(t)
	began := time.Now()
	h.tori(0, "backup", filepath.Join(h.dir, "measured"))
	took := time.Since(began)
	for i := range 2 * backupKills() {
		h.killed(took, "", "backup", place, "--base-dir", h.base())
		p := h.start("backup", "verify", place, "--base-dir", h.base(), "--config", h.config)
		if code := p.code(); code != exitOK && !strings.Contains(p.out.String(), "there is no backup in") {
			t.Fatalf("kill %d: exit code %d:\n%s", i, code, p.out.String())
		}
	}
	h.tori(0, "backup", place)
	if out := h.tori(0, "backup", "verify", place); strings.Contains(out, "cannot") {
		t.Fatal(out)
	}
	h.nothingLeft(h.base())
	for i, from := range []string{place, filepath.Join(h.dir, "measured")} {
		to := filepath.Join(h.dir, fmt.Sprint("to", i))
		h.tori(0, "restore", from, "--to", to)
		want, got := h.ledger(h.base()), h.ledger(to)
		delete(want, "audit.jsonl") // backups are in it
		delete(got, "audit.jsonl")
		delete(want, contextstore.HouseDBFile) // copied without its free pages
		delete(got, contextstore.HouseDBFile)
		if !maps.Equal(got, want) {
			t.Errorf("%s: %q", from, unlike(got, want))
		}
	}
}

// nothingLeft demands that nothing is left of what was cut short.
func (h *house) nothingLeft(base string) {
	h.t.Helper()
	p := h.start("cleanup", "--base-dir", base, "--config", h.config)
	if code := p.code(); code != exitOK {
		h.t.Fatalf("tori cleanup: %d\n%s", code, p.out.String())
	}
	for path := range filesOf(h.t, base) {
		if strings.HasPrefix(path, ".") || strings.HasSuffix(path, ".tmp") {
			h.t.Errorf("%s is left in %s", path, base)
		}
	}
}

// tori restore is killed at random instants, or where it moves things, up to three times: of all
// there is, or of one run; where there is nothing, beside other runs, or over something else. There
// is what was there, or what was to come, or nobody can open it; the next call ends it, and nothing is lost.
func TestRestoreKilled(t *testing.T) {
	skipShort(t, "a process after the other is killed")
	t.Parallel()
	h, one, place := backedUp(t)
	h.tori(0, "backup", place)
	measured, other := filepath.Join(h.dir, "measured"), filepath.Join(h.dir, "other")
	began := time.Now()
	h.tori(0, "restore", place, "--to", measured)
	took := time.Since(began)
	h.fill(other, 2, 0)
	all, run := h.ledger(measured), filepath.Join(contextstore.DirCompleted, one)
	mine := func(path string, _ [32]byte) bool { return strings.Contains(path, one) }
	cut := 0
	for i := range 4 * backupKills() {
		dir, args := filepath.Join(h.dir, fmt.Sprint("to", i)), []string(nil)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if i%4 > 0 {
			h.copied(other, dir)
			args = []string{"--force"}
		}
		if i%4 > 1 {
			args = append(args, "--task", one)
		}
		if i%4 == 3 { // another state of it is there
			h.copied(filepath.Join(measured, run), filepath.Join(dir, run))
			for _, name := range []string{filepath.Join(run, "note.txt"), filepath.Join("histories", one+".jsonl.gz")} {
				if err := (&disk.FS{}).MkdirAll(filepath.Dir(filepath.Join(dir, name))); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte("other"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		before, after := h.ledger(dir), maps.Clone(all)
		if i%4 > 1 {
			after = maps.Clone(before)
			maps.DeleteFunc(after, mine)
			for path, sum := range all {
				if mine(path, sum) {
					after[path] = sum
				}
			}
		}
		args = append([]string{"restore", place, "--to", dir}, args...)
		note, ended := filepath.Join(dir, ".restore*", "commit.json"), false
		for range 1 + rand.N(3) { //nolint:gosec // how often
			if i/4%2 == 0 {
				ended = h.killed(took, "", args...)
			} else {
				ended = h.killed(time.Millisecond>>rand.N(8), note, args...) //nolint:gosec // soon, or sooner
			}
			got := h.ledger(dir)
			if noted, _ := filepath.Glob(note); len(noted) > 0 {
				cut++
				p := h.start("tasks", "--base-dir", dir, "--config", h.config)
				if code := p.code(); i%4 < 2 && code == exitOK {
					t.Fatalf("%q is killed while it moves things, and %s can be opened:\n%s", args, dir, p.out.String())
				}
				if i%4 < 2 {
					continue
				}
				others := maps.Clone(before) // the run itself may be beside its place
				maps.DeleteFunc(others, mine)
				if maps.DeleteFunc(got, mine); !maps.Equal(got, others) {
					t.Fatalf("%q is killed: of others %q", args, unlike(got, others))
				}
				p = h.start("check", "--base-dir", dir, "--config", h.config)
				if code := p.code(); code != exitDamage || !strings.Contains(p.out.String(), "--task "+one) {
					t.Errorf("%q is killed while it moves things: tori check: %d\n%s", args, code, p.out.String())
				}
				continue
			}
			if !maps.Equal(got, after) && (ended || !maps.Equal(got, before)) {
				t.Fatalf("%q is killed (or has ended: %v): of what was there %q, of what was to come %q", args, ended, unlike(got, before), unlike(got, after))
			}
			if ended {
				break
			}
		}
		if !ended {
			p := h.start(append(args, "--config", h.config)...)
			if code := p.code(); code != exitOK && !strings.Contains(p.out.String(), "is in use already") { // it was killed behind its end
				t.Fatalf("%q again: exit code %d:\n%s", args, code, p.out.String())
			}
		}
		if got := h.ledger(dir); !maps.Equal(got, after) {
			t.Errorf("%q: %q", args, unlike(got, after))
		}
		kept := func(path string, sum [32]byte) bool {
			at, _ := filepath.Glob(filepath.Join(dir, "before-restore-*", strings.Replace(path, "histories/", "planning/", 1)))
			return after[path] == sum || slices.ContainsFunc(at, func(at string) bool {
				b, err := os.ReadFile(at)
				return err == nil && sha256.Sum256(ofRestores.ReplaceAll(b, nil)) == sum
			})
		}
		for path, sum := range before {
			if !kept(path, sum) {
				t.Errorf("%q: %s is lost", args, path)
			}
		}
		p := h.start("check", "--base-dir", dir, "--config", h.config)
		if code := p.code(); code != exitOK {
			t.Errorf("%q: tori check: %d\n%s", args, code, p.out.String())
		}
		h.nothingLeft(dir)
	}
	t.Logf("%d restores, %d killed while they moved things", 4*backupKills(), cut)
}

// copied copies a tree of files that only their owner can read.
func (h *house) copied(from, to string) {
	h.t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = filepath.Walk(to, func(p string, st os.FileInfo, err error) error { return errors.Join(err, disk.RestrictToOwner(p, st)) })
	}
	if err != nil {
		h.t.Fatal(err)
	}
}
