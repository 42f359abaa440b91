package scan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"github.com/google/go-cmp/cmp"
)

// file is a file before and after; "" for none.
type file struct{ name, old, now string }

// patchOf is what git diff --no-renames --unified=1048576 writes of files.
func patchOf(t testing.TB, files ...file) string {
	t.Helper()
	var b strings.Builder
	for _, f := range files {
		from, to := "a/"+f.name, "b/"+f.name
		fmt.Fprintf(&b, "diff --git %s %s\n", from, to)
		switch {
		case f.old == "":
			from = "/dev/null"
			b.WriteString("new file mode 100644\nindex 0000000..1111111\n")
		case f.now == "":
			to = "/dev/null"
			b.WriteString("deleted file mode 100644\nindex 1111111..0000000\n")
		default:
			b.WriteString("index 1111111..2222222 100644\n")
		}
		edits := udiff.Lines(f.old, f.now)
		diff, err := udiff.ToUnified(from, to, f.old, edits, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(diff)
	}
	return b.String()
}

func scanned(t testing.TB, opts Options, files ...file) Report {
	t.Helper()
	r, err := Patch(strings.NewReader(patchOf(t, files...)), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// short is a finding in the form of the tables below.
func short(r Report) []string {
	var all []string
	for _, f := range r.Findings {
		old := ""
		if f.Old {
			old = "-"
		}
		all = append(all, fmt.Sprintf("%s %s:%s%d", f.Why, f.Path, old, f.Line))
	}
	return all
}

func TestOffences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, line, why string }{
		{"a.go", "// TODO(ann): handle the error", "marker"},
		{"a.go", "x := 1 // FIXME: wrong", "marker"},
		{"a.go", "/* XXX: later */", "marker"},
		{"a.go", "// HACK until the server is mended", "marker"},
		{"a.go", "// TODO", "marker"},
		{"a.go", "// the limit is TBD", "marker"},
		{"a.go", "// It works. TODO: measure", "marker"},
		{"a.go", "// TODO 後で直す", "marker"},
		{"a.go", "// TODO：エラー処理", "marker"},
		{"a.go", "//TODO tidy this up", "marker"},
		{"a.go", "s := \"TODO\" // TODO: name it", "marker"},
		{"a.go", "func f() { panic(\"not implemented\") }", "not_implemented"},
		{"a.go", "\tpanic(\"TODO: parse\")", "not_implemented"},
		{"a.go", "\tpanic(fmt.Sprintf(\"%s is not yet implemented\", s))", "not_implemented"},
		{"a.go", "\treturn nil, errors.New(\"not implemented\")", "not_implemented"},
		{"a.go", "// ... existing code ...", "elision"},
		{"a.go", "\t// ... rest of the implementation", "elision"},
		{"a.go", "\t// rest of the code remains unchanged", "elision"},
		{"a.go", "\t...", "elision"},
		{"a.go", "\t// your code here", "promise"},
		{"a.go", "\t// implementation here", "promise"},
		{"a.go", "\t// Add your validation logic here", "promise"},
		{"a.go", "\t// not implemented yet", "promise"},
		{"a.go", "\t// placeholder implementation", "promise"},
		{"a.go", "\t// In a real implementation, this would call the service.", "promise"},
		{"a.go", "\t// 実装予定", "promise"},
		{"a.go", "\t// ここに実装", "promise"},
		{"a.go", "\t// ここに処理を書く", "promise"},
		{"a.go", "\t// 未実装", "promise"},
		{"a.go", "\t// 既存のコードはそのまま", "elision"},
		{"a.go", "\t// （以下省略）", "elision"},
		{"a.py", "# TODO: finish", "marker"},
		{"a.py", "x = '#'  # TODO finish", "marker"},
		{"a.py", "def f():\n    raise NotImplementedError", "not_implemented"},
		{"a.py", "def f():\n    raise NotImplementedError(\"not implemented yet\")", "not_implemented"},
		{"a.py", "def f():\n    raise NotImplementedError(\n        \"TODO: the fast way\"\n    )", "not_implemented"},
		{"a.py", "class A:\n    def f(self):\n        raise NotImplementedError()", "not_implemented"},
		{"a.py", "def f(a,\n      b):\n    pass", "empty_body"},
		{"a.py", "def f(): ...", "empty_body"},
		{"a.py", "class A:\n    def f(self) -> int:\n        \"\"\"Adds.\"\"\"\n        ...", "empty_body"},
		{"a.py", "async def f():\n    \"\"\"\n    TODO: write\n    \"\"\"\n    pass\n\n\nx = 1", "empty_body"},
		{"tests/test_a.py", "def test_sum():\n    pass", "empty_body"},
		{"a.ts", "throw new Error('Not implemented');", "not_implemented"},
		{"a.js", "throw new Error(`add: not implemented yet`)", "not_implemented"},
		{"a.ts", "throw new Error(\"Method not implemented.\");", "not_implemented"},
		{"a.tsx", "<p>{/* TODO: translate */}</p>", "marker"},
		{"a.js", "const r = /\\/\\//; // TODO: escape", "marker"},
		{"a.js", "const s = `${a} // not a comment`; // FIXME: no", "marker"},
		{"a.vue", "<!-- TODO: a table -->", "marker"},
		{"a.rs", "todo!()", "not_implemented"},
		{"a.rs", "fn f<'a>(x: &'a str) -> u8 { unimplemented!(\"later\") }", "not_implemented"},
		{"a.rs", "/* a /* nested */ TODO: comment */", "marker"},
		{"A.java", "throw new UnsupportedOperationException(\"Not implemented yet\");", "not_implemented"},
		{"A.java", "// TODO Auto-generated method stub", "marker"},
		{"A.kt", "fun f(): Int = TODO(\"later\")", "not_implemented"},
		{"A.cs", "throw new NotImplementedException();", "not_implemented"},
		{"a.scala", "def f: Int = ???", "not_implemented"},
		{"a.swift", "fatalError(\"f has not been implemented\")\nfatalError(\"not implemented\")", "not_implemented"},
		{"a.c", "/* TODO: free it */", "marker"},
		{"a.c", "assert(0 && \"not implemented\");", "not_implemented"},
		{"a.h", "#error \"not implemented\"", "not_implemented"},
		{"a.rb", "# TODO: cache", "marker"},
		{"a.rb", "def area\n  raise NotImplementedError\nend", "not_implemented"},
		{"a.php", "throw new \\Exception('Not implemented');", "not_implemented"},
		{"a.php", "# TODO: cache", "marker"},
		{"a.sh", "echo \"$#\" # TODO: usage", "marker"},
		{"a.sql", "-- TODO: an index", "marker"},
		{"a.html", "<!-- your code here -->", "promise"},
		{"a.html", "<script>\n// TODO: load\n</script>", "marker"},
		{"a.el", ";; TODO: autoload", "marker"},
		{"a.lua", "--[[ TODO: tables ]]", "marker"},
		{"a.hs", "{- TODO: laziness -}", "marker"},
		{"a.yaml", "key: value # TODO: right value", "marker"},
		{"Dockerfile", "# TODO: pin", "marker"},
		{"README.md", "<!-- TODO: write -->", "marker"},
		{"a.unknown", "// ... existing code ...", "elision"},
	} {
		r := scanned(t, Options{}, file{c.name, "", c.line + "\n"})
		var got []string
		for _, f := range r.Findings {
			if f.Kind == Placeholder {
				got = append(got, string(f.Why))
			}
		}
		if len(got) != 1 || got[0] != c.why {
			t.Errorf("%s %q: %v, want %s", c.name, c.line, got, c.why)
		}
	}
}

func TestLegitimate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text string }{
		{"a.go", "// pass is what the user typed; TODOs are not looked for\nfunc pass(args ...string) { use(args...) }"},
		{"a.go", "s := \"// TODO: not a comment\"\nr := `\n// TODO: nor this\n`\nc := '\"' // fine"},
		{"a.go", "// marked finds TODO and its like in comments.\n// TODO comments are reported, TODO/FIXME are markers.\n// A line with `TODO: x` or \"FIXME: y\" is quoted."},
		{"a.go", "// The value is sha-XXX or 192.168.XXX.XXX\n// TODO-12 is a ticket\n// XXX-XXXX is a telephone number"},
		{"a.go", "// The rest of the code relies on it.\n// The code here is careful.\n// existing code calls it twice\n// ... and so on"},
		{"a.go", "// 未実装の方式はエラーにする\n// TODOコメントを数える\n// 省略時は既定の値\n// Promise is \"your code here\", 実装予定"},
		{"a.go", "func (f *fakeStore) Get() { panic(\"not implemented\") }"},
		{"a.go", "func (UnimplementedServer) Get() { panic(\"not implemented\") }"},
		{"a.go", "panic(\"unreachable\")\nreturn errors.New(\"method not allowed\")\nhttp.Error(w, \"not implemented\", 501)"},
		{"a_test.go", "package a\n\ntype double struct{}\nfunc (double) Get() { panic(\"not implemented\") }\nconst src = `package a\n\n// TODO: found by the scanner\nfunc f() { panic(\"not implemented\") }\n`"},
		{"scan_test.py", "SOURCE = '''\n# TODO: found\ndef f():\n    pass\n'''\n\ndef test_scan():\n    assert scan(SOURCE) == ['# TODO: found']"},
		{"a.py", "from abc import ABC, abstractmethod\n\nclass Shape(ABC):\n    @abstractmethod\n    def area(self):\n        raise NotImplementedError\n\n    @abstractmethod\n    def name(self): ...\n\n    @property\n    @abstractmethod\n    def size(self) -> int:\n        pass"},
		{"a.py", "class Reader(Protocol):\n    def read(self, n: int) -> bytes: ...\n\n    def close(self) -> None:\n        ..."},
		{"a.py", "class Shape:\n    def area(self):\n        raise NotImplementedError\n\nclass Circle(Shape):\n    def area(self):\n        return 3"},
		{"a.py", "class Shape:\n    def area(self):\n        \"\"\"Must be overridden by subclasses.\"\"\"\n        raise NotImplementedError\n    def other(self):\n        raise NotImplementedError(\"subclasses must implement it\")"},
		{"a.py", "@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\ndef f(x):\n    return x"},
		{"a.pyi", "def f(x: int) -> int: ...\nclass A:\n    def g(self) -> None: ..."},
		{"a.py", "class ParseError(Exception):\n    pass\n\nclass Empty: ...\n\ntry:\n    f()\nexcept OSError:\n    pass\n\nfor x in y:\n    pass"},
		{"a.py", "x[..., 0]\ny: tuple[int, ...] = (1,)\nz: Callable[..., int]\nprint(...)\nPath = str  # the pass of a mountain"},
		{"a.py", "def f(x):\n    if x:\n        pass\n    else:\n        g()"},
		{"a.py", "def on_close(self):\n    pass  # nothing to do\n\ndef __init__(self):\n    pass\n\n@click.group()\ndef cli():\n    pass\n\ndef outer():\n    def callback(*args):\n        pass\n    return callback"},
		{"a.py", "def f(kind):\n    if kind == 'a':\n        return 1\n    raise NotImplementedError(f'kind {kind} is not supported')\n\ntry:\n    g()\nexcept NotImplementedError:\n    h()\nwith pytest.raises(NotImplementedError):\n    pass"},
		{"a.py", "def f():\n    \"\"\"\n    # TODO: in a doc string\n    pass\n    \"\"\"\n    return '#' + \"TODO\""},
		{"a.js", "f(...args); const a = [...b, ...c]; const o = {...p};\nconst t = 'TODO'; const u = `// TODO: x`;\nconst v = \"http://example.com\"; // an address"},
		{"a.js", "const r = /[/*]TODO: x/; const q = a / b; // divided"},
		{"a.ts", "abstract class Shape {\n  area(): number { throw new Error('Not implemented'); }\n}"},
		{"a.ts", "try { f() } catch (e) {}\nthrow new Error('Not found');"},
		{"a.jsx", "<p>Don't {x} the TODO list</p>"},
		{"a.rs", "fn f<'a>(x: &'a str) -> char { '\\'' } // 'a is a lifetime\nlet s = \"todo!()\"; let r = r#\"todo!() // TODO: x\"#;\nlet x = 0..=9; f(..);"},
		{"A.java", "int f(String... xs) { return 0; } // TODOs are listed elsewhere\nString s = \"// TODO: x\";\nthrow new UnsupportedOperationException(\"read only\");"},
		{"a.c", "int printf(const char *f, ...);\nchar *s = \"/* TODO: x */\"; char c = '\"'; /* fine */"},
		{"a.rb", "module Shape\n  def area\n    raise NotImplementedError, \"#{self.class} must implement area\"\n  end\nend\ns = '# TODO: x'"},
		{"a.php", "#[Attribute]\n$s = '// TODO: x';\nthrow new Exception('Not found');"},
		{"a.sh", "echo \"# TODO: x\"\ncat <<EOF\n# TODO: in a document\nEOF\necho $# ${x#TODO} 'a\n# TODO: literal\n'"},
		{"a.sql", "INSERT INTO t VALUES ('-- TODO: x', 'it''s');"},
		{"a.html", "<p>TODO list app</p><input accept=\"image/*\" placeholder=\"TODO\">\n<a href=\"//example.com\">x</a>\n<p>TODO: buy milk</p>"},
		{"README.md", "# TODO\n\n- TODO: what to do\n\n```go\n// ... existing code ...\n// TODO: x\n```"},
		{"notes.txt", "TODO: nothing here is code"},
		{"data.json", "{\"TODO\": \"// TODO: x\"}"},
		{"a.yaml", "---\ntitle: don't # it is a title\nurl: http://x/#TODO\n...\n"},
		{"vendor/x/a.go", "// TODO: theirs\npanic(\"not implemented\")"},
		{"a.pb.go", "// TODO: generated"},
		{"a.lisp", "(setq c ?\\; s \"; TODO: x\")"},
		{"a.mod/x.css", "a { content: \"/* TODO: x */\"; } /* fine */"},
	} {
		r := scanned(t, Options{}, file{c.name, "", c.text + "\n"})
		if len(r.Findings) != 0 {
			t.Errorf("%s:\n%s\n%v", c.name, c.text, short(r))
		}
	}
}

// What was there before is nobody's doing, wherever it stands now.
func TestOnlyWhatIsNewCounts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x()\n", 20)
	for name, c := range map[string]struct {
		files []file
		want  []string
	}{
		"context": {[]file{{"a.go", "// TODO: old\nf()\n", "// TODO: old\ng()\n"}}, nil},
		"removed": {[]file{{"a.go", "// TODO: old\nf()\n", "f()\n"}}, nil},
		"moved": {[]file{
			{"z.go", "// TODO: old\n" + long, long},
			{"a.go", long, long + "\t//  TODO: old\n"},
		}, nil},
		"the code beside it changed": {[]file{{"a.go", "f() // TODO: old\n", "g() // TODO: old\n"}}, nil},
		"copied":                     {[]file{{"a.go", "// TODO: old\n" + long, long + "// TODO: old\nx()\n// TODO: old\n"}}, []string{"marker a.go:23"}},
		"an empty function moved": {[]file{
			{"a.py", "def f(x):\n    pass\n\n\nx = 1\n", "x = 1\n"}, {"b.py", "y = 1\n", "y = 1\n\n\ndef f(x):\n    pass\n"},
		}, nil},
		"a body became pass": {[]file{{"a.py", "def f(x):\n    return g(x)\n\n\nx = 1\n", "def f(x):\n    pass\n\n\nx = 1\n"}}, []string{"empty_body a.py:2"}},
		"within a doc string that began before": {[]file{{"a.py",
			"def f():\n    \"\"\"\n    a\n    b\n    c\n    d\n    e\n    \"\"\"\n    return 1\n", "def f():\n    \"\"\"\n    a\n    b\n    c\n    d\n    # TODO: x\n    e\n    \"\"\"\n    return 1\n"}}, nil},
		"within a raw string that began before": {[]file{{"a_test.go",
			"package a\n\nvar s = `\na\nb\nc\nd\ne\n`\n\nfunc f() {}\n", "package a\n\nvar s = `\na\nb\nc\nd\n// TODO: x\ne\n`\n\nfunc f() {}\n"}}, nil},
		"after a comment that began before": {[]file{{"a.c",
			"/*\n * a\n * b\n * c\n * d\n */\nf();\ng();\n", "/*\n * a\n * b\n * c\n * d\n */\nf();\ng(); // TODO: x\n"}}, []string{"marker a.c:8"}},
	} {
		r := scanned(t, Options{}, c.files...)
		if diff := cmp.Diff(c.want, short(r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if n := r.Counts[Placeholder]; n != len(c.want) {
			t.Errorf("%s: counted %d", name, n)
		}
	}
}
