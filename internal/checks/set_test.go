package checks

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A set is what a map of the names would be, in whatever order and however often
// they come, and also from a file.
func TestSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", "TestX/1", "TestX/2", "x.py::t[1]", "x.py::t[2]", "長い", ""}))
		of := func(label string) ([]string, Set) {
			all := names.Draw(t, label)
			s := SetOf(all...)
			raw, err := json.Marshal(s)
			var back Set
			if err != nil || json.Unmarshal(raw, &back) != nil || !back.Equal(s) {
				t.Fatalf("%s: %v", raw, err)
			}
			slices.Sort(all)
			return slices.Compact(all), back
		}
		a, x := of("a")
		b, y := of("b")
		gone := slices.DeleteFunc(slices.Clone(a), func(n string) bool { return slices.Contains(b, n) })
		if x.Len() != len(a) || x.Less(y) != len(gone) || x.Less(x) != 0 || x.Less(Set{}) != len(a) || x.Equal(y) != slices.Equal(a, b) {
			t.Fatalf("%q and %q: %d, %d", a, b, x.Len(), x.Less(y))
		}
		for _, n := range a {
			if !x.Has(n) || y.Has(n) != slices.Contains(b, n) {
				t.Fatalf("%q", n)
			}
		}
	})
	for _, raw := range []string{`"AAA="`, `1`, `"!"`} {
		if err := json.Unmarshal([]byte(raw), &Set{}); err == nil {
			t.Errorf("%s is taken", raw)
		}
	}
}

// What is known of 100,000 tests that fail takes 800 kB; of more tests than a set
// holds it is known that there are more.
func TestLargeSets(t *testing.T) {
	const n = 100_000
	var b setBuilder
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range n {
		b.add(fmt.Sprint("TestA/case ", i))
	}
	s := b.set()
	b = setBuilder{}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); s.Len() != n || got > 1<<20 {
		t.Errorf("%d tests take %d bytes", s.Len(), got)
	}
	full, other := Set{sums: s.sums, over: true}, SetOf()
	if full.Less(s) != 1 || s.Less(full) != 0 || full.Less(other) != n+1 {
		t.Error("more tests than it holds hide something")
	}
}

// A test with a parameter is told by it, but for where an object lies.
func TestParameters(t *testing.T) {
	t.Parallel()
	base := SetOf("a.py::t[<O at 0x7f3a12bc>-1]", "TestX/empty")
	for name, known := range map[string]bool{"a.py::t[<O at 0x55aa00ff>-1]": true, "a.py::t[<O at 0x55aa00ff>-2]": false, "TestX/empty": true, "TestX/empty#01": false, "TestX": false, "TestY/empty": false} {
		if base.Has(name) != known {
			t.Errorf("%s: %v", name, !known)
		}
	}
}

// New failures are told by name, however many others there were before and
// wherever they stand, and none of them is lost.
func TestNewFailuresComeFirst(t *testing.T) {
	t.Parallel()
	outputs := map[string]func(names []string) string{
		"go": func(names []string) string {
			var b strings.Builder
			for _, n := range names {
				fmt.Fprintf(&b, "--- FAIL: Test%s (0.00s)\n    x_test.go:1: wrong %s\n", n, n)
			}
			return b.String() + "FAIL\nFAIL\tm/p\t0.1s\n"
		},
		"pytest": func(names []string) string {
			var b strings.Builder
			b.WriteString("=========== short test summary info ===========\n")
			for _, n := range names {
				fmt.Fprintf(&b, "FAILED a.py::test_%s - wrong %s\n", n, n)
			}
			return b.String() + fmt.Sprintf("=========== %d failed in 1.0s ===========\n", len(names))
		},
		"cargo": func(names []string) string {
			var b strings.Builder
			for _, n := range names {
				fmt.Fprintf(&b, "test t::%s ... FAILED\n", n)
			}
			return b.String() + fmt.Sprintf("test result: FAILED. 0 passed; %d failed; 0 ignored;\n", len(names))
		},
	}
	for name, of := range outputs {
		var old []string
		for i := range 2000 {
			old = append(old, fmt.Sprintf("old%d", i))
		}
		base := parse([]byte(of(old)), 4096)
		p := Against(base.Set, "")
		_, _ = p.Write([]byte(of(append(slices.Clone(old), "new"))))
		s := p.Summary()
		if base.Set.Len() != 2000 || base.More != 1800 || s.Set.Len() != 2001 || s.Failed != 2001 || s.Set.Less(base.Set) != 1 || base.Set.Less(s.Set) != 0 {
			t.Errorf("%s: %d, then %d, %d of them new", name, base.Set.Len(), s.Set.Len(), s.Set.Less(base.Set))
		}
		if f := s.Failures[0]; !strings.HasSuffix(f.Name, "new") || f.Known || !s.Failures[1].Known {
			t.Errorf("%s: %+v", name, f)
		}
		if text := s.Text(2000); !strings.Contains(text, "\n1. "+s.Failures[0].Name) || !strings.Contains(text, "failed before as well") || strings.Contains(text, "\n2. ") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Failures of one reason are told once.
func TestOneReason(t *testing.T) {
	t.Parallel()
	var s Summary
	for i := range 5 {
		s.Failures = append(s.Failures, Failure{Name: fmt.Sprint("Test", i), Message: "no database", Excerpt: "dial"}, Failure{Name: fmt.Sprint("Own", i), Message: fmt.Sprint("wrong ", i)})
	}
	s.Failed = 10
	text := s.Text(4000)
	if strings.Count(text, "no database") != 1 || !strings.Contains(text, "1. Test0: no database\n   and 4 more for the same reason: Test1, Test2, Test3, Test4\n") || !strings.Contains(text, "6. Own4: wrong 4\n") {
		t.Error(text)
	}
}

// Nor do addresses, times, temporary files and lines make another reason of one; paths
// are those of the tree.
func TestIncidental(t *testing.T) {
	t.Parallel()
	p := Against(Set{}, "/srv/run 1/tree")
	for i := range 3 {
		_, _ = fmt.Fprintf(p, "--- FAIL: Test%d (0.0%ds)\n    a_test.go:1%d: /srv/run 1/tree/sub/a.go:%d: open /tmp/Test%d/00%d/db: refused by 0xc0000%d1234 after %d.5s\n", i, i, i, i, i, i, i, i)
	}
	_, _ = fmt.Fprint(p, "--- FAIL: TestOther (0.0s)\n    a_test.go:19: open /tmp/TestOther/001/cache: refused\nFAIL\nFAIL\ta\t0.1s\n")
	s := p.Summary()
	want := "1. a.Test0 (a_test.go:10): sub/a.go:0: open /tmp/Test0/000/db: refused by 0xc000001234 after 0.5s\n   and 2 more for the same reason: a.Test1, a.Test2\n"
	if text := s.Text(4000); !strings.Contains(text, want) || !strings.Contains(text, "2. a.TestOther") || strings.Contains(s.Tail, "/srv") {
		t.Error(text, s.Tail)
	}
	p = Against(Set{}, "/srv/tree")
	_, _ = fmt.Fprint(p, "Error: cannot load\n    at file:///srv/tree/src/a.mjs:3:5\n    at /srv/tree/b.js:1\n")
	if s := p.Summary(); s.Tail != "Error: cannot load\n    at src/a.mjs:3:5\n    at b.js:1\n" {
		t.Errorf("%q", s.Tail)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`exec: "docker": executable file not found in $PATH`:                                                                         "program docker",
		"sh: 1: node: not found":                                                                                                     "program node",
		"/bin/bash: line 1: cargo: command not found":                                                                                "program cargo",
		"E   FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'":                                                       "program ffmpeg",
		"E   FileNotFoundError: [Errno 2] No such file or directory: '/tmp/out/x.txt'":                                               "",
		"Error: spawn chromium ENOENT":                                                                                               "program chromium",
		"E   ModuleNotFoundError: No module named 'yaml'":                                                                            "module yaml",
		"Cannot find module 'left-pad' from 'src/a.test.js'":                                                                         "module left-pad",
		"Cannot find module './orders' from 'src/a.test.js'":                                                                         "",
		"x.go:3:8: no required module provides package github.com/a/b; to add it:":                                                   "module github.com/a/b",
		"dial tcp: lookup example.com: no such host":                                                                                 "network",
		"dial udp 1.1.1.1:53: connect: network is unreachable":                                                                       "network",
		"urllib3: Temporary failure in name resolution":                                                                              "network",
		"error: failed to get `tiny-dep` as a dependency of package `p v0.1.0 (/w)`":                                                 "module tiny-dep",
		"error: no matching package named `tiny_dep` found":                                                                          "module tiny_dep",
		"a.go:3:8: cannot find module providing package example.com/m/b: import lookup disabled":                                     "module example.com/m/b",
		"a_test.go:6:2: missing go.sum entry for module providing package example.com/m/b (imported by m); to add:":                  "module example.com/m/b",
		"go: example.com/m@v1.9.0: missing go.sum entry for go.mod file; to add it:":                                                 "module example.com/m",
		"go: example.com/m@v1.9.0: module lookup disabled by GOPROXY=off":                                                            "module example.com/m",
		`a_test.go:6:2: example.com/m@v1.9.0: Get "https://proxy.golang.org/x.zip": dial tcp: lookup proxy.golang.org: no such host`: "module example.com/m",
		"[ERROR] Failed to execute goal on project p: Could not resolve dependencies for project g:p:jar:1: The following artifacts could not be resolved: org.junit:junit-api:jar:5.1 (absent)": "module junit-api",
		"[ERROR] Could not find artifact org.junit:junit-api:jar:5.1 in central":     "module junit-api",
		"  > Could not resolve org.junit:junit-api:5.1.":                             "module junit-api",
		"Could not find gem 'rspec-core (~> 3.0)' in locally installed gems.":        "module rspec-core",
		"Could not find rspec-core-3.12.1, diff-lcs-1.5.0 in locally installed gems": "module rspec-core",
		"Could not find a file": "",
		"key not found":         "",
		"want 3, got 4":         "",
		"open testdata/x: no such file or directory": "",
		"error: user not found: 42":                  "",
	} {
		if got := Missing(line); got != want {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// go names the modules that it could not load before it says so, and not there.
func TestMissingModulesOfGo(t *testing.T) {
	t.Parallel()
	const out = "go: downloading github.com/stretchr/testify v1.9.0\n# m\na_test.go:6:2: %s\nFAIL\tm [setup failed]\nFAIL\n"
	for said, want := range map[string][]string{
		"module lookup disabled by GOPROXY=off": {"module github.com/stretchr/testify"},
		"undefined: x":                          nil,
		`github.com/stretchr/testify@v1.9.0: Get "http://127.0.0.1:9/x.zip": dial tcp 127.0.0.1:9: connect: connection refused`: {"module github.com/stretchr/testify"},
	} {
		p := Against(Set{}, "")
		_, _ = fmt.Fprintf(p, out, said)
		if got := p.Summary().Missing; !slices.Equal(got, want) {
			t.Errorf("%s: %q", said, got)
		}
	}
	p := Against(Set{}, "")
	_, _ = fmt.Fprint(p, "go: example.com/m@v1.9.0: module lookup disabled by GOPROXY=off\n")
	if got := p.Summary().Missing; !slices.Equal(got, []string{"module example.com/m"}) {
		t.Errorf("%q", got)
	}
}

// How many tests ran is told, or how many packages where go test does not list
// the tests that passed.
func TestRan(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]struct {
		n        int
		packages bool
	}{
		"ok  \tm/a\t0.1s\nok  \tm/b\t0.1s [no tests to run]\n?   \tm/c\t[no test files]\nok  \tm/d\t(cached)\n": {2, true},
		"ok  \tm/a\t0.1s\n--- FAIL: TestX (0.00s)\n    x_test.go:1: y\nFAIL\nFAIL\tm/b\t0.1s\n":                 {2, true},
		"--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\nPASS\nok  \tm/a\t0.1s\n":                             {2, false},
		"=========== 86 passed, 2 failed, 3 skipped in 1.0s ===========\n":                                      {88, false},
		"nothing\n": {},
	} {
		if s := parse([]byte(out), 7); s.Ran != want.n || s.Packages != want.packages {
			t.Errorf("%q: %d, %v", out, s.Ran, s.Packages)
		}
	}
}
