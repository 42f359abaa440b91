// Package house tests the code itself: which package may import which, that each says what it
// is for, that what is read is bounded, and that citations lead somewhere.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// floors is the order of the house (DESIGN §1): a package imports only packages
// of lower floors. A parent stands below the members of its family, contextstore above those
// that it is built of.
var floors = map[string]float64{
	"task":                    0,
	"spelling":                1.0,
	"lazyregexp":              0,
	"loosejson":               1.0,
	"i18n":                    1.0,
	"redact":                  1.1,
	"disk":                    1.2,
	"disk/disktest":           1.25,
	"document":                1.25,
	"bucket":                  1.3,
	"bucket/buckettest":       1.35,
	"checks":                  1.3,
	"config":                  1.3,
	"contextstore/jsonl":      1.9,
	"contextstore/filelock":   1.9,
	"contextstore/database":   1.95,
	"contextstore/index":      1.97,
	"contextstore/tables":     1.98,
	"contextstore":            2.0,
	"contextstore/fsck":       2.06,
	"contextstore/search":     2.05,
	"contextstore/migrate":    2.05,
	"llm":                     2.0,
	"llm/wire":                2.05,
	"llm/gauge":               2.05,
	"llm/anthropic":           2.1,
	"llm/openai":              2.1,
	"llm/ollama":              2.1,
	"llm/script":              2.1,
	"llm/llmtest":             2.1,
	"llm/endpoint":            2.1,
	"llm/texttool":            2.1,
	"llm/cloud":               2.15,
	"llm/price":               2.15,
	"llm/record":              2.15,
	"llm/image":               2.15,
	"models":                  3.0,
	"userconfig":              3.0,
	"scan":                    2.5,
	"verdict":                 2.5,
	"sandbox":                 2.0,
	"telemetry":               2.0,
	"workspace":               3.0,
	"blobs":                   3.1,
	"project":                 3.5,
	"forge":                   2.9,
	"forge/folder":            3.0,
	"forge/rest":              3.05,
	"forge/gitea":             3.1,
	"forge/github":            3.1,
	"forge/gitlab":            3.1,
	"forge/forgetest":         3.2,
	"forge/gittest":           3.15,
	"forge/gitea/giteatest":   3.2,
	"forge/github/githubtest": 3.2,
	"forge/gitlab/gitlabtest": 3.2,
	"forge/hook":              3.1,
	"channel":                 3.0,
	"channel/line":            3.1,
	"channel/terminal":        3.1,
	"channel/slack":           3.1,
	"channel/webhook":         3.1,
	"channel/channeltest":     3.1,
	"channel/inbox":           3.2,
	"queue":                   4.0,
	"tool/policy":             3.9,
	"tool":                    4.0,
	"tool/mcp":                4.1,
	"tool/mcp/mcptest":        4.3,
	"tool/confined":           4.2,
	"tool/web":                4.7,
	"broker":                  4.6,
	"memory":                  5.0,
	"contract":                5.15,
	"routing":                 5.1,
	"approval":                5.2,
	"turn":                    6.0,
	"planning":                7.0,
	"progress":                7.5,
	"order":                   3.0,
	"delivery":                7.6,
	"dialogue":                7.7,
	"checkrun":                7.7,
	"agent":                   8.0,
	"job":                     8.3,
	"conversation":            8.2,
	"dispatch":                9.0,
	"backup":                  10.0,
	"ops":                     10.0,
	"web":                     10.1,
	"app":                     11.0,
	"eval":                    11.5,
	"cli":                     12.0,
	"house":                   99,

	"contextstore/database/pgtest": 1.96,
	"contextstore/ancestortest":    1.96,
}

// eachPackage calls f for each directory with Go files below internal/.
func eachPackage(t *testing.T, f func(name, dir string)) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return filepath.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil || len(files) == 0 {
			return err
		}
		rel, err := filepath.Rel(root, path)
		f(filepath.ToSlash(rel), path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportsGoDown(t *testing.T) {
	t.Parallel()
	const ours = "toritsugi/internal/"
	checked := 0
	eachPackage(t, func(name, dir string) {
		floor, known := floors[name]
		if !known {
			t.Errorf("package %s has no floor: give it one in this test, in the order of the design", name)
			return
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, imp := range tree.Imports {
				path, _ := strconv.Unquote(imp.Path.Value)
				if !strings.HasPrefix(path, ours) {
					continue
				}
				checked++
				below := strings.TrimPrefix(path, ours)
				if floors[below] >= floor {
					t.Errorf("%s (floor %g) imports %s (floor %g): imports go down only", name, floor, below, floors[below])
				}
			}
		}
	})
	if checked < 20 {
		t.Errorf("only %d imports seen: the walk misses the code", checked)
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	eachPackage(t, func(name, dir string) {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		var docs []string
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") && name != "house" {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if tree.Doc != nil {
				docs = append(docs, filepath.Base(file))
				if len(tree.Doc.List) > 3 {
					t.Errorf("the comment of package %s has %d lines, three say what it is for and what may happen in it", name, len(tree.Doc.List))
				}
			}
		}
		if len(docs) != 1 {
			t.Errorf("package %s has %d package comments (%v), want one", name, len(docs), docs)
		}
	})
}

// whole are files that may read something whole without saying how much of it: what
// the kernel tells, what is bounded before, and doubles that tests speak to.
var whole = []string{"sandbox/", "disk/plain.go", "tool/mcp/unknown.go", "llm/llmtest/", "forge/github/githubtest/", "contextstore/lock.go", "contextstore/tables/lock.go", "contextstore/orphans.go", "scan/gotest.go"}

// What is read whole is bounded (disk.Read, io.LimitReader), and YAML is parsed where
// its cost is known (document.Parse).
func TestInputsAreBounded(t *testing.T) {
	t.Parallel()
	eachPackage(t, func(name, dir string) {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, file := range files {
			at := name + "/" + filepath.Base(file)
			if strings.HasSuffix(file, "_test.go") || slices.ContainsFunc(whole, func(w string) bool { return strings.HasPrefix(at, w) }) {
				continue
			}
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch f := called(call); f {
				case "os.ReadFile":
					t.Errorf("%s: %s has no bound; disk.Read has", set.Position(n.Pos()), f)
				case "io.ReadAll":
					if inner, ok := call.Args[0].(*ast.CallExpr); !ok || called(inner) != "io.LimitReader" && called(inner) != "io.NewSectionReader" {
						t.Errorf("%s: %s has no bound; disk.ReadAll and io.LimitReader have", set.Position(n.Pos()), f)
					}
				case "yaml.Unmarshal", "yaml.UnmarshalWithOptions", "yaml.NewDecoder", "parser.ParseBytes", "yamlparser.ParseBytes", "parser.ParseFile":
					t.Errorf("%s: %s has no bound; document.Parse has", set.Position(n.Pos()), f)
				}
				return true
			})
		}
	})
}

// called is the name of a function of a package, as it is called.
func called(c *ast.CallExpr) string {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	p, ok := f.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return p.Name + "." + f.Sel.Name
}

func TestNoRoomIsEmpty(t *testing.T) {
	t.Parallel()
	for name := range floors {
		if files, _ := filepath.Glob(filepath.Join("..", name, "*.go")); len(files) == 0 {
			t.Errorf("floor of %s, which is not there", name)
		}
	}
	if _, err := os.Stat("../../go.mod"); err != nil {
		t.Fatal(err)
	}
}
