package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"toritsugi/internal/contextstore"
)

// What looks at all runs there are does not take more memory where there are many: runs that
// retention left nothing of but what tells of them, copied from one that the program made, whose rows
// are written by tori reindex. With TORI_SOAK_RUNS as many as that says.
func TestManyRuns(t *testing.T) {
	skipShort(t, "verbs that look at many runs, one after the other")
	t.Parallel()
	n := 500
	if soak, err := strconv.Atoi(os.Getenv("TORI_SOAK_RUNS")); err == nil {
		n = soak
	}
	const mostMiB = 250 // the index is sorted in 64, and 47 are the program
	h := newHouse(t, "http://127.0.0.1:1", "")
	one := h.fill(h.base(), 1, 40*24*time.Hour)
	h.tori(0, "cleanup")
	dir := filepath.Join(h.base(), contextstore.DirCompleted, one)
	if !contextstore.Slimmed(dir) {
		t.Fatal("retention took nothing from the run")
	}
	began := time.Now()
	h.multiply(dir, n-1)
	t.Logf("%d runs made in %s", n, time.Since(began).Round(time.Millisecond))
	place, to := filepath.Join(h.dir, "place"), filepath.Join(h.dir, "to")
	verbs := [][]string{{"reindex"}, {"tasks"}, {"tasks", "--status", "failed"}, {"stats"}, {"search", "nineteen"}, {"search", "nineteen"}, {"check"}, {"cleanup", "--dry-run"}}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(h.dir, &disk); err != nil {
		t.Fatal(err)
	}
	copies := disk.Files == 0 || disk.Ffree > 9*uint64(n) // of each run five files and a directory, and a backup's object
	if copies {
		verbs = append(verbs, [][]string{{"backup", place}, {"backup", place}, {"backup", "verify", place}, {"restore", place, "--to", to}, {"tasks"}}...)
	} else {
		t.Logf("no backup: the file system has room for %d files", disk.Ffree)
	}
	for _, args := range verbs {
		base := h.base()
		if _, err := os.Stat(filepath.Join(to, contextstore.HouseDBFile)); err == nil {
			base = to
		}
		if args = append(args, "--config", h.config); !slices.Contains(args, "--to") {
			args = append(args, "--base-dir", base)
		}
		p := h.start(args...)
		began := time.Now()
		code := p.code()
		used := p.ProcessState.SysUsage().(*syscall.Rusage)
		t.Logf("%8s %6d MiB %7s of processors  tori %s", time.Since(began).Round(time.Millisecond), used.Maxrss>>10,
			(p.ProcessState.UserTime() + p.ProcessState.SystemTime()).Round(time.Millisecond), strings.Join(args[:min(len(args), 3)], " "))
		if code != exitOK || used.Maxrss>>10 > mostMiB {
			t.Errorf("tori %q: exit code %d, %d MiB\n%.2000s", args, code, used.Maxrss>>10, p.out.String())
		}
	}
	if l, err := list(t.Context(), to); copies && (err != nil || l.Total != n || l.Scanned) {
		t.Errorf("%d runs came back, scanned: %v, %v", l.Total, l.Scanned, err)
	}
}

// multiply copies a run so many times, each under a uuid and with words of its own.
func (h *house) multiply(dir string, copies int) {
	h.t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type().IsRegular() && err == nil {
			files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
		}
	}
	var state struct {
		CompletedAt contextstore.Time `json:"completed_at"`
	}
	if err == nil {
		err = json.Unmarshal(files["state.json"], &state)
	}
	ended := func(ago time.Duration) string {
		b, _ := json.Marshal(contextstore.Time{Time: state.CompletedAt.Add(-ago)})
		return `"completed_at":` + string(b)
	}
	words := []string{"eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"}
	for i := range copies {
		if err != nil {
			h.t.Fatal(err)
		}
		id := uuid.NewString()
		to := filepath.Join(filepath.Dir(dir), id)
		err = os.Mkdir(to, 0o700)
		word := func() string { return words[rand.N(len(words))] } //nolint:gosec // a word
		new := strings.NewReplacer(filepath.Base(dir), id, `"title":"one"`, fmt.Sprintf(`"title":"Task %d of %s"`, i, word()), `"id":"0"`, fmt.Sprintf(`"id":"%d"`, i), ended(0), ended(time.Duration(i)*time.Second), "done", fmt.Sprintf("%s done with %s", word(), word()))
		for name, b := range files {
			if err == nil {
				var out bytes.Buffer
				_, err = new.WriteString(&out, string(b))
				if err == nil {
					err = os.WriteFile(filepath.Join(to, name), out.Bytes(), 0o600)
				}
			}
		}
	}
}
