package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
)

// TestTextsAreThere looks for every text that is named in code: by what makes texts and errors (T, E,
// Recorded), whole or by the beginning of its key, and what a call to a forge does.
func TestTextsAreThere(t *testing.T) {
	t.Parallel()
	keys := i18n.Keys()
	begins := func(s string) bool {
		n, whole := slices.BinarySearch(keys, s)
		return whole || n < len(keys) && strings.HasPrefix(keys[n], s)
	}
	doing := regexp.MustCompile(`^[a-z]+\.(do|said|advice)_[a-z_]+$`)
	checked := 0
	eachPackage(t, func(name, dir string) {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, file := range files {
			if name == "i18n" || strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			check := func(n ast.Expr, before string) {
				known := func(s string) bool { _, found := slices.BinarySearch(keys, s); return found }
				if sum, ok := n.(*ast.BinaryExpr); ok {
					n, known = sum.X, begins
				}
				text, ok := n.(*ast.BasicLit)
				if !ok || text.Kind != token.STRING {
					return
				}
				key, _ := strconv.Unquote(text.Value)
				if checked++; !known(before + key) {
					t.Errorf("%s: there is no text %s", set.Position(n.Pos()), before+key)
				}
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					if key, err := strconv.Unquote(n.Value); err == nil && doing.MatchString(key) {
						check(n, "")
					}
				case *ast.CallExpr:
					f, ok := n.Fun.(*ast.SelectorExpr)
					switch {
					case !ok || len(n.Args) == 0:
					case f.Sel.Name == "T", called(n) == "i18n.E":
						check(n.Args[0], "")
						for _, arg := range n.Args[1:] {
							if called := regexp.MustCompile(`^(.*\.)?Err[A-Z]`); called.MatchString(types.ExprString(arg)) {
								t.Errorf("%s: %s is English and for callers: it is the error's kind (Of) and no part of the text", set.Position(arg.Pos()), types.ExprString(arg))
							}
						}
					case called(n) == "i18n.Recorded":
						check(n.Args[0], "recorded.")
					}
				}
				return true
			})
		}
	})
	if checked < 1000 {
		t.Errorf("only %d texts seen: the walk misses the code", checked)
	}
}
