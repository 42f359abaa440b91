package project

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/workspace"
)

// mapOf is the map of paths, which are put into git's order.
func mapOf(depth int, paths ...string) *FileMap {
	slices.Sort(paths)
	b := newBuilder()
	for _, p := range paths {
		i := strings.LastIndexByte(p, '/')
		b.add(p[:max(i, 0)], p[i+1:])
	}
	return b.finish(depth)
}

func body(m *FileMap, budget int) string {
	text := m.Text(budget, "")
	return text[max(strings.Index(text, "\n./")+1, 0):]
}

func TestMap(t *testing.T) {
	t.Parallel()
	many := func(dir string, n int, ext string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("%sf%04d%s", dir, i, ext))
		}
		return all
	}
	for name, c := range map[string]struct {
		paths  []string
		depth  int
		budget int
		want   string
	}{
		"nothing":           {nil, -1, 1000, "./\n"},
		"all of it":         {[]string{"go.mod", "go.sum", "cmd/tori/main.go", "internal/a/a.go", "internal/a/a_test.go", "internal/b/x/b.go", "vendor/q/q.go"}, -1, 1000, "./: go.mod go.sum\ncmd/tori/: main.go\ninternal/\n a/: a.go a_test.go\n b/x/: b.go\nvendor/q/ (1)\n"},
		"data is counted":   {[]string{"a.go", "a/testdata/x/y.json", "a/testdata/z.json", "a/a.go", "locales/de.json", "web/node_modules/q/q.js", "web/w.ts"}, -1, 1000, "./: a.go\na/: a.go\n testdata/ (2)\nlocales/ (1)\nweb/: w.ts\n node_modules/q/ (1)\n"},
		"odd names":         {[]string{"a b", "new\nline", "<x>", "d (1)/+3", "\xff", "長い"}, -1, 1000, "./: \"\\x3cx>\" \"a b\" \"new\\nline\" 長い \"\\xff\"\n\"d (1)\"/: \"+3\"\n"},
		"the root only":     {[]string{"a", "b/c", "b/d/e"}, 0, 1000, "./: a\nb/ (2)\n"},
		"two deep":          {[]string{"a", "b/c", "b/d/e"}, 1, 1000, "./: a\nb/: c\n d/ (1)\n"},
		"foreign code last": {slices.Concat(many("node_modules/", 30, ".js"), many("src/", 30, ".js")), -1, 500, "./\nnode_modules/ (30)\nsrc/: *f0029.js\n"},
		"binaries last":     {slices.Concat(many("", 40, ".png"), []string{"main.c", "zlib.c"}), -1, 320, "./: main.c zlib.c f0000.png*+3*\n"},
	} {
		got := body(mapOf(c.depth, c.paths...), c.budget)
		want := "^" + strings.ReplaceAll(regexp.QuoteMeta(c.want), `\*`, `[^\n]*`) + "$"
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	m := mapOf(-1, slices.Concat(many("big/", 5000, ".go"), []string{"small/a.go", "small/b.go"}, many("top", 3, ".go"))...)
	if text := body(m, 2000); !strings.Contains(text, "small/: a.go b.go\n") || !regexp.MustCompile(`\nbig/: f0000.go .* \+\d+\n`).MatchString(text) || len(text) < 1500 {
		t.Errorf("a large directory leaves no room, or takes none:\n%s", text)
	}
	if got := mapOf(4, "a/b.go").Text(1000, ""); !strings.HasPrefix(got, "1 file in 1 directory.\n") {
		t.Error(got)
	}
	if m.Text(50, "") != "" {
		t.Error("a map in no room")
	}
}

// A directory that the task names is told with how much it is, wherever it lies.
func TestMapOfNamedDirectories(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 200 {
		paths = append(paths, fmt.Sprintf("pkg/p%03d/a.go", i), fmt.Sprintf("pkg/p%03d/testdata/golden/%d.txt", i, i), fmt.Sprintf("node_modules/m%03d/lib/x.js", i))
	}
	m := mapOf(-1, paths...)
	for about, want := range map[string]string{
		"Files in pkg/p150/testdata are read twice": "Likely files: pkg/p150/testdata/golden/ (1)\n",
		"see `p042/` and the m007/lib directory":    "Likely files: node_modules/m007/lib/ (1) pkg/p042/ (2)\n",
		"golden/ is wrong":                          "Likely files: pkg/p000/testdata/golden/ (1) pkg/p001/testdata/golden/ (1) pkg/p002/testdata/golden/ (1) pkg/p003/testdata/golden/ (1)\n",
		"either/or, and p042 or 1/2":                "",
	} {
		text := m.Text(700, about)
		i := strings.Index(text, "Likely files")
		if want == "" && i >= 0 || want != "" && (i < 0 || !strings.HasPrefix(text[i:], want)) || len(text) > 700 {
			t.Errorf("%s:\n%s", about, text)
		}
	}
}

// The map of a large repository, as a model sees it; UPDATE_GOLDEN=1 writes it anew.
func TestMapGolden(t *testing.T) {
	t.Parallel()
	var paths []string
	for i := range 40 {
		for j := range 25 {
			paths = append(paths, fmt.Sprintf("services/team%02d/handler%02d.go", i, j))
		}
		paths = append(paths, fmt.Sprintf("services/team%02d/testdata/case.json", i), fmt.Sprintf("web/locales/l%02d.json", i), fmt.Sprintf("vendor/lib%02d/lib.go", i))
	}
	paths = append(paths, "README.md", "LICENSE", "go.mod", "go.sum", ".golangci.yml", ".github/workflows/ci.yml", "cmd/server/main.go", "cmd/server/flags.go", "internal/auth/token_refresh.go", "internal/auth/token_refresh_test.go", "internal/auth/login.go",
		"docs/auth.md", "web/src/index.tsx", "web/src/Login.tsx", "web/dist/app.js")
	p := &Project{Map: mapOf(-1, paths...)}
	got := p.Prompt(20_000, "Tokens are not refreshed after login\nSince 1.4 the session ends; auth/token_refresh.go sets no timer.")
	golden := filepath.Join("testdata", "map.golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || got != string(want) {
		t.Errorf("%v; got\n%s\nwant\n%s", err, got, want)
	}
	if len(got) > maxMap {
		t.Errorf("%d bytes", len(got))
	}
}

// Whatever a repository looks like: the text keeps to its budget, is the same
// each time, and accounts for each file once.
func TestMapLaws(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{"a", "b", "src", "vendor", "x.go", "y.png", "go.sum", "a b", "日本", "<issue", "z"})
	rapid.Check(t, func(t *rapid.T) {
		seen := map[string]bool{}
		var paths []string
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			p := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(t, "path"), "/")
			taken := seen[p]
			for q := range seen { // a file is no directory
				taken = taken || strings.HasPrefix(q, p+"/") || strings.HasPrefix(p, q+"/")
			}
			if !taken {
				seen[p], paths = true, append(paths, p)
			}
		}
		// git's order: a directory counts as its name with a slash.
		budget, depth := rapid.IntRange(0, 3000).Draw(t, "budget"), rapid.IntRange(-1, 3).Draw(t, "depth")
		about := strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "about"), rapid.SampledFrom([]string{" ", "/"}).Draw(t, "between"))
		text := mapOf(depth, slices.Clone(paths)...).Text(budget, about)
		if len(text) > budget {
			t.Fatalf("%d bytes of %d:\n%s", len(text), budget, text)
		}
		if text != mapOf(depth, slices.Clone(paths)...).Text(budget, about) {
			t.Fatal("two texts of one map")
		}
		if text == "" {
			return
		}
		if n := accounted(text); n != len(paths) {
			t.Fatalf("%d of %d files:\n%s\n%q", n, len(paths), text, paths)
		}
	})
}

// What a task names comes first: by path, as traces write it, or by rare words of
// identifiers and names; what many names have tells nothing, and data is named
// only where the task does it by path.
func TestWhatTheTaskNames(t *testing.T) {
	t.Parallel()
	paths := []string{"README.md", "cmd/tool/main.go", "internal/decode/block_scalar.go", "internal/decode/block_scalar_test.go", "internal/decode/decode.go", "internal/emit/emitter.go",
		"testdata/scalar.yaml", "web/src/LoginForm.tsx", "docs/parser.md"}
	for i := range 60 {
		paths = append(paths, fmt.Sprintf("gen%02d/value_%c.go", i, 'a'+i%26))
	}
	for about, want := range map[string]string{
		"Block scalars keep CR characters":                          "Likely files: internal/decode/block_scalar.go internal/decode/block_scalar_test.go",
		"panic in /home/me/x/internal/emit/emitter.go:12":           "Likely files: internal/emit/emitter.go",
		"`blockScalar` is read twice, see testdata/scalar.yaml":     "Likely files: testdata/scalar.yaml internal/decode/block_scalar.go internal/decode/block_scalar_test.go",
		"loginForm ignores Enter":                                   "Likely files: web/src/LoginForm.tsx",
		"ログインできない（LoginForm）":                                       "Likely files: web/src/LoginForm.tsx",
		"a value is wrong":                                          "",
		"Trailing space\n\n>>> from internal.emit.emitter import X": "Likely files: internal/emit/emitter.go",
		"LoginForm ignores Enter\n\nThe parser is fine.":            "Likely files: web/src/LoginForm.tsx",
		"It fails\n\n```\ntype Main struct{}\n```":                  "",
		"": "",
	} {
		text := mapOf(-1, slices.Clone(paths)...).Text(900, about)
		_, got, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(got, strings.TrimPrefix(want+"\n", "\n")+"Entry points: cmd/tool/main.go\n./") {
			t.Errorf("%q:\n%.300s", about, got)
		}
	}
}

// accounted adds up what the lines of a map say.
func accounted(text string) (n int) {
	lines := text[strings.Index(text, "\n./")+1:]
	number := func(s string) int { k, _ := strconv.Atoi(s); return k }
	count := regexp.MustCompile(`^ *(?:"(?:[^"\\]|\\.)*"|[^":() ]+)/ \((\d+)\)$`)
	word := regexp.MustCompile(`^"(?:[^"\\]|\\.)*"|^[^ ]+`)
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		if m := count.FindStringSubmatch(line); m != nil {
			n += number(m[1])
			continue
		}
		i := strings.Index(line, "/: ")
		if i < 0 {
			continue
		}
		for rest := line[i+3:]; rest != ""; {
			w := word.FindString(rest)
			if rest = strings.TrimPrefix(rest[len(w):], " "); w[0] == '+' {
				n += number(w[1:])
			} else {
				n++
			}
		}
	}
	return n
}

// A repository with more names than are kept is a map all the same, of what lies
// high up.
func TestMapIsBounded(t *testing.T) {
	t.Parallel()
	b := newBuilder()
	n := 0
	add := func(dir, name string) { b.add(dir, name); n++ }
	for i := range 3000 {
		for j := range 30 {
			add(fmt.Sprintf("src/a%04d/b%04d/c", i, j), "file.go")
		}
	}
	for i := range 5000 {
		add("z", fmt.Sprintf("file%d.go", i))
	}
	add(strings.Repeat("deep/", 500)+"x", "y")
	add("zz", "last.go")
	m := b.finish(-1)
	if m.root.cost() > maxKept+maxKept/8 || m.root.all != n || m.Files != n {
		t.Errorf("%d bytes are kept, %d files of %d", m.root.cost(), m.root.all, n)
	}
	if text := m.Text(20_000, ""); !strings.Contains(text, "zz/: last.go\n") || accounted(text) != n {
		t.Errorf("%d: %.2000s", accounted(text), text)
	}
}

// 100,000 files in 5,000 directories, as in a large monorepo: what the reading
// of a project takes, git included.
func BenchmarkRead100k(b *testing.B) {
	w := newBed(b)
	id := git(b, w.Tree(), "@x.md\n", "--git-dir="+w.GitDir(), "hash-object", "-w", "--stdin")
	var index strings.Builder
	for i := range 5000 {
		for j := range 20 {
			fmt.Fprintf(&index, "100644 %s\tservices/team%02d/service%03d/src/main/java/com/example/File%02d.java\x00", id, i%50, i/50, j)
		}
		if i%100 == 0 {
			fmt.Fprintf(&index, "100644 %s\tservices/team%02d/AGENTS.md\x00", id, i/100)
		}
	}
	commit := w.index(index.String())
	for name, run := range map[string]func() string{
		"read": func() string {
			p, err := Read(b.Context(), w, commit, all)
			if err != nil {
				b.Fatal(err)
			}
			return p.Prompt(60_000, "")
		},
		"names-alone": func() string { return drain(b, w, commit) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			text := ""
			for b.Loop() {
				text = run()
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-after")
			b.ReportMetric(float64(len(text)), "prompt-bytes")
		})
	}
}

func drain(b *testing.B, w bed, commit string) string {
	if err := w.Files(b.Context(), commit, func(workspace.Entry) error { return nil }); err != nil {
		b.Fatal(err)
	}
	return ""
}
