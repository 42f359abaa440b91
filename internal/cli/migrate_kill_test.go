package cli

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/llm"
	"toritsugi/internal/task"
)

// Contexts go from files into SQLite, on to PostgreSQL and back into files, by processes that are killed
// on the way: every file is byte by byte what it was, and the listing is the same.
func TestMigrateKilled(t *testing.T) {
	skipShort(t, "it moves many contexts by processes that are killed")
	t.Parallel()
	n, kills := 60, 3
	if soak, err := strconv.Atoi(os.Getenv("TORI_SOAK_MIGRATE")); err == nil {
		n, kills = soak, 10
	}
	dir := t.TempDir()
	first := filepath.Join(dir, "first")
	manyRuns(t, first, n)
	listing := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "tori", append([]string{"tasks", "--json", "--limit", strconv.Itoa(min(n, 1000))}, args...)...)
		cmd.Env = append(os.Environ(), "LANG=C.UTF-8", "HOME="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return string(out)
	}
	want, list := filesOf(t, first), listing("--base-dir", first)
	if strings.Count(list, "\n") < n {
		t.Fatalf("%d lines", strings.Count(list, "\n"))
	}
	places := []string{"jsonl:" + first, "sqlite:" + filepath.Join(dir, "second", "ledger.db"), pgtest.URL(t), "jsonl:" + filepath.Join(dir, "last")}
	for leg := range len(places) - 1 {
		var took time.Duration
		for killed := 0; ; {
			cmd := exec.CommandContext(t.Context(), "tori", "migrate", "--from", places[leg], "--to", places[leg+1])
			cmd.Env = append(os.Environ(), "LANG=C.UTF-8", "HOME="+dir)
			var out shared
			cmd.Stdout, cmd.Stderr = &out, &out
			began := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if killed < kills {
				killed++
				time.Sleep(time.Duration(rand.Int64N(int64(max(took, time.Duration(n)*4*time.Millisecond)))))
				_ = cmd.Process.Kill()
			}
			err := cmd.Wait()
			took = time.Since(began)
			if err == nil {
				t.Logf("%s: %d kills, then %s", strings.SplitN(places[leg+1], ":", 2)[0], killed, took.Round(time.Millisecond))
				break
			}
			if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.Exited() {
				t.Fatalf("%v\n%s", err, out.String())
			}
		}
	}
	last := filepath.Join(dir, "last")
	if got := filesOf(t, last); !maps.Equal(got, want) {
		t.Errorf("%d files, not %d, or others", len(got), len(want))
	}
	if got := listing("--base-dir", last); got != strings.ReplaceAll(list, first, last) {
		t.Errorf("the listing is another one:\n%.2000s\nnot\n%.2000s", got, list)
	}
	cmd := exec.CommandContext(t.Context(), "tori", "check", "--base-dir", last)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// manyRuns makes contexts that have ended, and some that wait.
func manyRuns(t *testing.T, base string, n int) {
	t.Helper()
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, NoSync: true, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		id, err := s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "o", Repo: fmt.Sprint("r", i%7), Type: task.TypeIssue, ID: strconv.Itoa(i)}, User: "ken", Title: fmt.Sprint("Task ", i, " 改善")})
		if err == nil && i%5 != 0 {
			var c *contextstore.Context
			if c, _, err = s.Claim(t.Context(), id); err == nil {
				for range 1 + i%4 {
					_, err = c.Append(contextstore.Message{Role: llm.RoleUser, Content: strings.Repeat("some words, いくつかの言葉\x00 ", 1+i%50)}, contextstore.Message{Role: llm.RoleAssistant, Content: "done"})
				}
				err = errors.Join(err, c.Transition(t.Context(), task.Outcome{Status: task.Completed, Reason: "done", Summary: fmt.Sprint("Summary of ", i)}))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// filesOf are the hashes of the files of contexts, by their paths.
func filesOf(t *testing.T, base string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	if err := filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(base, path)
		if err != nil || e.IsDir() || !strings.Contains(rel, "/") {
			return err
		}
		b, err := os.ReadFile(path)
		all[rel] = sha256.Sum256(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
