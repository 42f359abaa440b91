package main

import (
	"bufio"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMain lets the test binary be the processes that the program starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"ledger", "launch", "-ledger-only", "llm-server", "chat"}, os.Args[1]) {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestLedgerParts: each part, small, answers all that the report prints of it;
// the parts check themselves that what they measured gave the right answer.
func TestLedgerParts(t *testing.T) {
	t.Parallel()
	for _, p := range ledgerParts() {
		p.size = map[string]int{partAppend: 5, partLong: 3000, partRows: 3000, partIdle: 5, partMemory: 200}[p.name]
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{self: self, dir: t.TempDir()}
			s, err := b.ledgerPart(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			(&report{w: &out}).ledger(map[string]sample{p.name: s})
			if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") || strings.Count(out.String(), "\n") < 5 {
				t.Errorf("%v gives\n%s", s, &out)
			}
			check := map[string]func() bool{
				partAppend: func() bool { return s[turnSyncs] == 2 && s[turnRows] == 1 && s[appendBytes] > 1400 },
				partLong: func() bool {
					return s[openSince] > 1000 && s[resumeOwn] > 100_000 && s[warmRead] == 0 && s[countRead] < 10_000 && s[allRead] > 400_000
				},
				partRows: func() bool { return s[rowsNaive] > 0 && s[listPrefix+"by key"] > 0 },
				partIdle: func() bool { return s[idleGoroutines] >= 1 && s[idleFiles] >= 4 },
				partMemory: func() bool {
					return s[requestCuts] > 0 && s[requestCuts] <= s[decisions] && s[turnRead] == 0 && s[memoryNaive] > s[memoryThen] && s[requestNaive] > s[requestMany]
				},
			}[p.name]
			if !check() {
				t.Errorf("%v", s)
			}
			if left, err := os.ReadDir(b.dir); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
}

// TestInterruptLeavesNothing: Ctrl-C in the middle of a part.
func TestInterruptLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-ledger-only", "-ledger", partLong, "-dir", dir)
	says, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(says).Scan() {
		t.Error("it says nothing of what it does")
	}
	if found, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted run ends as if it were whole")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestParseParts(t *testing.T) {
	t.Parallel()
	if got, err := parseParts("idle, append"); err != nil || !slices.Equal(got, []string{partIdle, partAppend}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := parseParts(""); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := parseParts("idle,x"); err == nil {
		t.Errorf("%v", got)
	}
}

// TestLedgerReport: each budget that is exceeded is marked and counted, and no
// other.
func TestLedgerReport(t *testing.T) {
	t.Parallel()
	within := map[string]sample{
		partAppend: {atOnce: 64, appendBytes: 1500, floorOne: 100, appendOne: 600, floorMany: 50, appendMany: 550, turnSyncs: 2, turnRows: 1, peak: 40},
		partLong: {longCount: 1, openTime: 100, openRead: 110, openFewRead: 100, resumeTime: 5, resumeRead: 20, resumeOwn: 10, rangeTime: 5, rangeRead: 20, rangeOwn: 10,
			allTime: 9, countTime: 1, peak: 40},
		partRows: {rowsCount: 1, rowsNaive: 9000, listPrefix + "a": 50, statsPrefix + "b": 50, seedPrefix + "c": 2000},
		partIdle: {idleCount: 1000, idleMemory: 64},
	}
	for _, c := range []struct {
		part, name string
		value      float64
		over       int
	}{
		{partAppend, turnSyncs, 2, 0},
		{partAppend, turnSyncs, 2.02, 1},
		{partAppend, turnRows, 1.01, 1},
		{partAppend, appendOne, 610, 1},
		{partAppend, appendMany, 560, 1},
		{partLong, openTime, 101, 1},
		{partLong, openRead, 112, 1},
		{partLong, resumeTime, 5.1, 1},
		{partLong, resumeRead, 21, 1},
		{partLong, warmRead, 1, 1},
		{partLong, rangeTime, 5.1, 1},
		{partLong, rangeRead, 21, 1},
		{partLong, peak, 41, 1},
		{partRows, listPrefix + "a", 51, 1},
		{partRows, statsPrefix + "b", 51, 1},
		{partRows, seedPrefix + "c", 2020, 1},
		{partIdle, idleMemory, 65, 1},
	} {
		all := map[string]sample{}
		for name, s := range within {
			all[name] = maps.Clone(s)
		}
		all[c.part][c.name] = c.value
		var out strings.Builder
		r := &report{w: &out}
		r.ledger(all)
		if r.over != c.over || strings.Count(out.String(), "OVER") != c.over {
			t.Errorf("%s %v: %d over, want %d:\n%s", c.name, c.value, r.over, c.over, &out)
		}
	}
}

func TestRound(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]float64{1234.5: 1230, 0.012345: 0.0123, 0: 0, 99.96: 100, math.Inf(1): math.Inf(1)} {
		if got := round(f); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", f, got, want)
		}
	}
}
