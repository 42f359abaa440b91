package scan

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// What decides over the checks beside the code that they check: whoever changes it
// may have made them pass.
func TestWhatDecidesOverChecks(t *testing.T) {
	t.Parallel()
	const main = "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n\nfunc TestA(t *testing.T) {\n\tf(t)\n}\n"
	const project = "[project]\nname = \"x\"\n\n[tool.pytest.ini_options]\naddopts = \"\"\n\n[tool.ruff]\nline-length = 80\n"
	for name, c := range map[string]struct {
		check string
		file  file
		want  string // the finding, "" where it may be changed freely
	}{
		"TestMain that runs nothing":      {"go test ./...", file{"main_test.go", "", "package a\n\nimport \"testing\"\n\nfunc TestMain(m *testing.M) {\n}\n"}, "test_main main_test.go:5"},
		"TestMain among tests":            {"make test", file{"a_test.go", goOne, goOne + "\nfunc TestMain(m *testing.M) { panic(1) }\n"}, "test_main a_test.go:12"},
		"TestMain runs no more":           {"go test ./...", file{"a_test.go", main, "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n}\n\nfunc TestA(t *testing.T) {\n\tf(t)\n}\n"}, "test_main a_test.go:-9"},
		"TestMain, spaced":                {"go test ./...", file{"main_test.go", "", "package a\n\nimport \"testing\"\n\n  func  /* x */ TestMain (m *testing.M) {}\n"}, "test_main main_test.go:5"},
		"TestMain, broken":                {"go test ./...", file{"main_test.go", "", "package a\n\nimport \"testing\"\n\nfunc\nTestMain(m *testing.M) {}\n"}, "test_main main_test.go:5"},
		"a variable of Exit":              {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nvar end = os.Exit\n"}, "ends_tests a_test.go:5"},
		"a variable of Args":              {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nvar _ = append(os.Args[:1], \"-test.run=^$\")\n"}, "ends_tests a_test.go:5"},
		"init in a line":                  {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nfunc init() { os.Args = nil }\n"}, "ends_tests a_test.go:5"},
		"another name of os":              {"go test ./...", file{"a_test.go", "", "package a\n\nimport sys \"os\"\n\nfunc init() {\n\tsys.Exit(0)\n}\n"}, "ends_tests a_test.go:5"},
		"os without its name":             {"go test ./...", file{"a_test.go", "", "package a\n\nimport . \"os\"\n\nfunc init() {\n\tExit(0)\n}\n"}, "ends_tests a_test.go:5"},
		"a block of variables":            {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nvar (\n\ta = 1\n\tb = append(\n\t\tos.Args[:1],\n\t\t\"-test.run=^$\",\n\t)\n)\n"}, "ends_tests a_test.go:5"},
		"an init of several lines":        {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nfunc init() {\n\tos.Args = []string{os.Args[0], \"-test.run=^$\"}\n}\n"}, "ends_tests a_test.go:5"},
		"a helper of init":                {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nfunc init() { help() }\n\nfunc help() { os.Args = os.Args[:1] }\n"}, "ends_tests a_test.go:7"},
		"flags of the tests":              {"go test ./...", file{"a_test.go", "", "package a\n\nimport (\n\t\"flag\"\n\t\"testing\"\n)\n\nfunc init() {\n\ttesting.Init()\n\t_ = flag.Set(\"test.run\", \"^$\")\n}\n"}, "ends_tests a_test.go:8"},
		"a code that may be 0":            {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nfunc help(n int) {\n\tos.Exit(n - n)\n}\n"}, "ends_tests a_test.go:5"},
		"another program":                 {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"syscall\"\n\nfunc init() {\n\t_ = syscall.Exec(\"/bin/true\", nil, nil)\n}\n"}, "ends_tests a_test.go:5"},
		"what TestMain calls":             {"go test ./...", file{"a_test.go", "package a\n\nimport \"testing\"\n\nfunc run(m *testing.M) int {\n\treturn m.Run()\n}\n", "package a\n\nimport \"testing\"\n\nfunc run(m *testing.M) int {\n\treturn 0\n}\n"}, "test_main a_test.go:6"},
		"another os below TestMain":       {"go test ./...", file{"a_test.go", "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n", "package a\n\nimport (\n\tos \"example.com/none\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n"}, "test_main a_test.go:0"},
		"behind a long line":              {"go test ./...", file{"a_test.go", "", "package a\n\n/*" + strings.Repeat("x", 2*maxLine) + "*/\n\nfunc TestMain() {}\n"}, "unreadable a_test.go:1"},
		"deeper than people write":        {"go test ./...", file{"a_test.go", "", "package a\n\nvar x = " + strings.Repeat("(\n", 2000) + "1" + strings.Repeat(")", 2000) + "\n"}, "unreadable a_test.go:1"},
		"a line of another file":          {"go test ./...", file{"a_test.go", "", "package a\n\n//line x.go:900\nfunc TestMain() {}\n"}, "test_main a_test.go:4"},
		"an end with an error":            {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nfunc TestA(t *testing.T) {\n\tif f() {\n\t\tos.Exit(2)\n\t}\n\tcmd(os.Args[0], \"-test.run=TestB\")\n}\n"}, ""},
		"a flag of ours":                  {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"flag\"\n\nvar update = flag.Bool(\"update\", false, \"\")\n"}, ""},
		"arguments within a test":         {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nfunc TestA(t *testing.T) {\n\tos.Args = []string{\"a\", \"b\"}\n\tmain()\n}\n"}, ""},
		"a build constraint":              {"go test ./...", file{"a_test.go", goOne, "//go:build never\n\n" + goOne}, "build_constraint a_test.go:1"},
		"a build constraint that went":    {"go test ./...", file{"a_test.go", "//go:build never\n\n" + goOne, goOne}, ""},
		"a build constraint, new file":    {"go test ./...", file{"a_test.go", "", "//go:build never\n\n" + goOne}, ""},
		"a test beside TestMain":          {"go test ./...", file{"a_test.go", main, main + "\nvar x = 1\n\nfunc TestB(t *testing.T) {\n\tif g() != 2 {\n\t\tt.Error()\n\t}\n}\n"}, ""},
		"end of the program in init":      {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nfunc init() {\n\tos.Exit(0)\n}\n"}, "ends_tests a_test.go:5"},
		"end of the program in Python":    {"pytest", file{"test_a.py", "", "import os\nos._exit(0)\n"}, "ends_tests test_a.py:2"},
		"end of the program in a literal": {"pytest", file{"test_a.py", "", "s = '''\nos._exit(0)\n'''\n"}, ""},
		"unittest's main":                 {"python3 -m unittest", file{"test_a.py", "", "import sys, unittest\nsys.exit(unittest.main())\n"}, ""},
		"end of the program in Node":      {"npm test", file{"a.test.js", "", "process.exit(0)\n"}, "ends_tests a.test.js:1"},
		"end of a program":                {"go test ./...", file{"main.go", "", "package main\n\nimport \"os\"\n\nfunc main() {\n\tos.Exit(0)\n}\n"}, ""},
		"one test only":                   {"npm test", file{"a.test.js", "it('a', () => {\n})\n", "it.only('a', () => {\n})\n"}, "focus_added a.test.js:1"},

		"conftest":               {"python3 -m pytest", file{"tests/conftest.py", "", "def pytest_collection_modifyitems(items):\n    items[:] = []\n"}, "test_config tests/conftest.py:1"},
		"pytest.ini":             {"pytest", file{"pytest.ini", "", "[pytest]\naddopts = --collect-only\n"}, "test_config pytest.ini:1"},
		"pytest.ini, by make":    {"make test", file{"pytest.ini", "", "[pytest]\naddopts = --collect-only\n"}, "test_config pytest.ini:1"},
		"pytest.ini, of others":  {"go test ./...", file{"pytest.ini", "", "[pytest]\naddopts = --collect-only\n"}, ""},
		"tox.ini":                {"tox", file{"tox.ini", "a\n", "b\n"}, "test_config tox.ini:1"},
		"setup.cfg":              {"uv run pytest", file{"setup.cfg", "a\n", "b\n"}, "test_config setup.cfg:1"},
		"sitecustomize":          {"pytest", file{"sitecustomize.py", "", "import os\n"}, "test_config sitecustomize.py:1"},
		"unittest":               {"python3 -m unittest", file{"unittest.py", "", "x = 1\n"}, "check_file unittest.py:1"},
		"unittest, a package":    {"python3 -m unittest", file{"unittest/__init__.py", "", "x = 1\n"}, "test_config unittest/__init__.py:1"},
		"unit tests":             {"python3 -m unittest", file{"tests/unittest/test_a.py", "", "def test_a():\n    assert f()\n"}, ""},
		"pytest":                 {"python3 -m pytest", file{"src/pytest.py", "", "x = 1\n"}, "test_config src/pytest.py:1"},
		"pytest's core":          {"pytest", file{"_pytest/__init__.py", "", "x = 1\n"}, "test_config _pytest/__init__.py:1"},
		"load_tests":             {"python3 -m unittest", file{"tests/test_a.py", "", "x = 1\ndef load_tests(a, b, c):\n    return a\n"}, "test_config tests/test_a.py:2"},
		"load_tests, imported":   {"python3 -m unittest", file{"a.py", "", "from b import c as load_tests\n"}, "test_config a.py:1"},
		"the tests' package":     {"python3 -m unittest", file{"tests/__init__.py", "", "# tests\n\nimport x\n"}, "test_config tests/__init__.py:3"},
		"a package, empty":       {"python3 -m unittest", file{"tests/__init__.py", "", "# tests\n"}, ""},
		"pyproject, pytest":      {"pytest", file{"pyproject.toml", project, "[project]\nname = \"x\"\n\n[tool.pytest.ini_options]\naddopts = \"--co\"\n\n[tool.ruff]\nline-length = 80\n"}, "test_config pyproject.toml:-5"},
		"pyproject, new section": {"pytest", file{"pyproject.toml", "[project]\nname = \"x\"\n", "[project]\nname = \"x\"\n\n[tool.pytest.ini_options]\naddopts = \"--co\"\n"}, "test_config pyproject.toml:4"},
		"pyproject, other":       {"pytest", file{"pyproject.toml", project, "[project]\nname = \"y\"\n\n[tool.pytest.ini_options]\naddopts = \"\"\n\n[tool.ruff]\nline-length = 90\n"}, ""},

		"npmrc, shell":                   {"npm test", file{".npmrc", "", "script-shell=/bin/true\n"}, "runner .npmrc:1"},
		"npmrc, options":                 {"pnpm test", file{".npmrc", "a=b\n", "a=b\nnode-options = --require ./x.js\n"}, "runner .npmrc:2"},
		"npmrc, registry":                {"npm test", file{".npmrc", "", "registry=https://r.example\n"}, "runner .npmrc:1"},
		"a module that came along":       {"npm test", file{"node_modules/jest/index.js", "", "process.exitCode = 0\n"}, "runner node_modules/jest/index.js:1"},
		"a package that came along":      {"npm test", file{"node_modules/jest/package.json", "", "{\n  \"main\": \"x.js\"\n}\n"}, "runner node_modules/jest/package.json:1"},
		"scripts":                        {"npm test", file{"package.json", "{\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n", "{\n  \"scripts\": {\n    \"test\": \"true\"\n  }\n}\n"}, "scripts package.json:-3"},
		"scripts below":                  {"./check.sh", file{"web/package.json", "{\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n", "{\n  \"scripts\": {\n    \"test\": \"true\"\n  }\n}\n"}, "scripts web/package.json:-3"},
		"scripts, Go":                    {"go test ./...", file{"package.json", "{\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n", "{\n  \"scripts\": {\n    \"test\": \"true\"\n  }\n}\n"}, ""},
		"a dependency":                   {"npm test", file{"package.json", "{\n  \"dependencies\": {\n    \"a\": \"^1.2.3\"\n  }\n}\n", "{\n  \"dependencies\": {\n    \"a\": \"^1.2.4\"\n  }\n}\n"}, ""},
		"jest":                           {"npm test", file{"jest.config.ts", "a\n", "b\n"}, "test_config jest.config.ts:1"},
		"vitest":                         {"npx vitest run", file{"web/vitest.config.mts", "a\n", "b\n"}, "test_config web/vitest.config.mts:1"},
		"cargo's runner":                 {"cargo test", file{".cargo/config.toml", "", "[target.x86_64-unknown-linux-gnu]\nrunner = \"true\"\n"}, "runner .cargo/config.toml:1"},
		"cargo's runner, in a directory": {"cargo test", file{"x/.cargo/config", "", "[target.x]\nrunner = \"true\"\n"}, "runner x/.cargo/config:1"},
		"gradle's wrapper":               {"./gradlew test", file{"gradlew", "a\n", "b\n"}, "runner gradlew:1"},
		"gradle, ignored failures":       {"./gradlew test", file{"build.gradle", "a\n", "a\ntest { ignoreFailures = true }\n"}, "test_config build.gradle:2"},
		"gradle, a dependency":           {"./gradlew test", file{"build.gradle", "a\n", "a\nimplementation 'x:y:1'\n"}, ""},
		"maven, skipped tests":           {"mvn -B test", file{"pom.xml", "<a>\n</a>\n", "<a>\n<skipTests>true</skipTests>\n</a>\n"}, "test_config pom.xml:2"},
		"cmake":                          {"cmake -B b && ctest", file{"CMakeLists.txt", "a\n", "a\nset_tests_properties(x PROPERTIES DISABLED TRUE)\n"}, "test_config CMakeLists.txt:2"},

		"make's file":          {"make test", file{"Makefile", "test:\n\tgo test ./...\n", "test:\n\ttrue\n"}, "build Makefile:2"},
		"make's file below":    {"make test", file{"sub/Makefile", "test:\n\tgo test ./...\n", "test:\n\ttrue\n"}, "build sub/Makefile:2"},
		"make's included file": {"make -C x test", file{"rules.mk", "a\n", "b\n"}, "build rules.mk:1"},
		"make's file, go test": {"go test ./...", file{"Makefile", "test:\n\tgo test ./...\n", "test:\n\ttrue\n"}, ""},

		"GOFLAGS":            {"go test ./...", file{"go.env", "", "GOFLAGS=-run=^$\n"}, "environment go.env:1"},
		"GOFLAGS, exported":  {"go test ./...", file{".envrc", "", "export A=b\nexport GOFLAGS='-run=^$'\n"}, "environment .envrc:2"},
		"NODE_OPTIONS":       {"npm test", file{"web/.env.test", "", "NODE_OPTIONS=--require=./x.js\n"}, "environment web/.env.test:1"},
		"PYTEST_ADDOPTS":     {"make test", file{".env", "PYTEST_ADDOPTS=\n", "PYTEST_ADDOPTS=--co\n"}, "environment .env:-1"},
		"a variable of ours": {"make test", file{".env", "", "DATABASE_URL=sqlite:x.db\n"}, ""},
		"a script":           {"./tests/run.sh", file{"tests/run.sh", "", "exit 0\n"}, "check_file tests/run.sh:1"},
		"a script, by bash":  {"bash tests/run.sh", file{"tests/run.sh", "", "exit 0\n"}, "check_file tests/run.sh:1"},
		"a test":             {"pytest tests/test_a.py", file{"tests/test_a.py", "", "def test_b():\n    assert f()\n"}, ""},
		"nothing runs it":    {"test -f README.md", file{"conftest.py", "", "x = 1\n"}, ""},
		"no checks":          {"", file{"conftest.py", "", "x = 1\n"}, ""},
	} {
		got := ""
		r := scanned(t, Options{Checks: []string{c.check}}, c.file)
		for i, f := range r.Findings {
			if f.Decides() {
				got += short(Report{Findings: r.Findings[i : i+1]})[0]
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What the product does when it is loaded ends its tests, too; what a program does
// when it is started does not.
func TestAProductThatEndsItsTests(t *testing.T) {
	t.Parallel()
	const head = "package a\n\nimport (\n\t\"os\"\n\t\"syscall\"\n)\n\n"
	was := head + "func init() {\n\tif reexec() {\n\t\tos.Exit(main())\n\t}\n}\n"
	for name, c := range map[string]struct {
		files []file
		want  string
	}{
		"init":                      {[]file{{"b.go", "", head + "func init() { os.Exit(0) }\n"}}, "ends_tests b.go:8"},
		"a helper":                  {[]file{{"b.go", "", head + "func init() { end() }\n\nfunc end() {\n\tdefer os.Exit(0)\n}\n"}}, "ends_tests b.go:10"},
		"a helper of another file":  {[]file{{"b.go", "", head + "func init() { end() }\n"}, {"c.go", "", head + "func end() { os.Exit(n) }\n"}}, "ends_tests c.go:8"},
		"a helper that was there":   {[]file{{"b.go", head + "func run() { os.Exit(n()) }\n", head + "func run() { os.Exit(n()) }\n\nvar _ = do(run)\n"}}, "ends_tests b.go:0"},
		"of another package":        {[]file{{"b.go", "", "package a\n\nimport \"example.com/m/in/c\"\n\nvar x = c.End()\n"}, {"in/c/c.go", "", head + "func End() int { os.Exit(0); return 1 }\n"}}, "ends_tests in/c/c.go:8"},
		"from a test":               {[]file{{"b_test.go", "", head + "func init() { end() }\n"}, {"c.go", "", head + "func end() { os.Exit(0) }\n"}}, "ends_tests c.go:8"},
		"a method":                  {[]file{{"b.go", "", head + "var _ = t{}.end()\n\nfunc (t) end() int {\n\tos.Exit(0)\n\treturn 1\n}\n"}}, "ends_tests b.go:10"},
		"a function at once":        {[]file{{"b.go", "", head + "var _ = func() int { os.Exit(0x0); return 1 }()\n"}}, "ends_tests b.go:8"},
		"a variable":                {[]file{{"b.go", "", head + "var end = os.Exit\n\nfunc init() { end(256) }\n"}}, "ends_tests b.go:8"},
		"another program":           {[]file{{"b.go", "", head + "func init() { _ = syscall.Exec(\"/bin/true\", nil, nil) }\n"}}, "ends_tests b.go:8"},
		"what no test notices":      {[]file{{"b.go", "", head + "func Add() { syscall.Exit(0) }\n"}}, "ends_tests b.go:8"},
		"arguments":                 {[]file{{"b.go", "", head + "func init() { os.Args = os.Args[:1] }\n"}}, "ends_tests b.go:8"},
		"a flag of the tests":       {[]file{{"b.go", "", "package a\n\nimport \"flag\"\n\nfunc init() { flag.Set(\"test.run\", \"^$\") }\n"}}, "ends_tests b.go:5"},
		"longer than is judged":     {[]file{{"b.go", "", head + "func init() { os.Exit(0) }\n" + strings.Repeat("// x\n", maxGo/5)}}, "ends_tests b.go:8"},
		"main":                      {[]file{{"main.go", "", head + "var exit = os.Exit\n\nfunc main() { os.Exit(run()) }\n\nfunc usage() { os.Exit(0) }\n\nfunc init() { flags.Usage = nil; name = os.Args[0]; fatal() }\n\nfunc fatal() { os.Exit(2) }\n"}}, ""},
		"a command that is kept":    {[]file{{"main.go", "", head + "var root = &cmd{Run: func() { os.Exit(run()) }}\n\nfunc init() { root.Add(x) }\n"}}, ""},
		"beside one that was there": {[]file{{"b.go", was, was + "\nfunc x() {}\n"}}, ""},

		"Python":                      {[]file{{"a.py", "", "import sys\nsys.exit(0)\n"}}, "ends_tests a.py:2"},
		"Python, in a block":          {[]file{{"a.py", "", "import sys\n\ndef f():\n    sys.exit(0)\n\nclass A:\n    try:\n        raise SystemExit\n    finally:\n        x = 1\n"}}, "ends_tests a.py:8"},
		"Python, anywhere":            {[]file{{"a.py", "", "import os\n\ndef add(a, b):\n    os._exit(0)\n"}}, "ends_tests a.py:4"},
		"Python, at the end":          {[]file{{"a.py", "", "import atexit, os\natexit.register(os._exit, 0)\n"}}, "ends_tests a.py:2"},
		"Python's main":               {[]file{{"a.py", "", "import sys\n\ndef main(\n  a,\n):\n    sys.exit(0)\n\nif __name__ == \"__main__\":\n    main()\n    sys.exit(0)\n"}}, ""},
		"Python's programs":           {[]file{{"p/__main__.py", "", "exit(0)\n"}, {"bin/a.py", "", "exit(0)\n"}, {"c.py", "#!/usr/bin/python3\n", "#!/usr/bin/python3\nexit(0)\n"}}, ""},
		"JavaScript":                  {[]file{{"a.js", "", "const x = {\n  a: 1,\n};\nprocess.exit(0);\n"}}, "ends_tests a.js:4"},
		"JavaScript, in blocks":       {[]file{{"a.ts", "", "if (x) {\n  (function () {\n    process.exit()\n  })()\n}\n"}}, "ends_tests a.ts:3"},
		"JavaScript, the code of all": {[]file{{"a.mjs", "", "process.on('exit', () => { process.exitCode = 0 })\n"}}, "ends_tests a.mjs:1"},
		"JavaScript's main":           {[]file{{"a.js", "", "function main() {\n  if (help) {\n    process.exit(0)\n  }\n}\nmain().then(() => process.exit(0))\nprocess.on('SIGTERM', () => {\n  process.exit(0)\n})\nif (require.main === module) {\n  process.exit(0)\n}\n"}}, ""},
		"Ruby":                        {[]file{{"lib/a.rb", "", "exit\ndef f\n  exit\nend\n"}}, "ends_tests lib/a.rb:1"},
		"Ruby, at the end":            {[]file{{"lib/a.rb", "", "at_exit { exit!(0) }\n"}}, "ends_tests lib/a.rb:1"},
		"PHP":                         {[]file{{"src/a.php", "", "<?php\nif (!defined('X')) exit;\nexit(0);\n"}}, "ends_tests src/a.php:3"},
	} {
		got := ""
		r := scanned(t, Options{Checks: []string{"make test"}}, c.files...)
		for i, f := range r.Findings {
			if f.Decides() {
				got += short(Report{Findings: r.Findings[i : i+1]})[0]
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What a link points at is compiled as a test, and is not in the patch.
func TestALinkedTestDecides(t *testing.T) {
	t.Parallel()
	r, err := Patch(strings.NewReader("diff --git a/a_test.go b/a_test.go\nnew file mode 120000\nindex 0000000..1111111\n--- /dev/null\n+++ b/a_test.go\n@@ -0,0 +1 @@\n+x.txt\n\\ No newline at end of file\n"), Options{})
	if err != nil || len(r.Findings) != 1 || !r.Findings[0].Decides() {
		t.Error(r.Findings, err)
	}
}

// A file decides, too, that a recipe or a script names, which the check runs.
func TestWhatAChecksScriptsNameDecides(t *testing.T) {
	t.Parallel()
	base := map[string]string{
		"Makefile": "PY ?= python3\nRUN = $(PY) tests/run.py \\\n\t--all\n\n.PHONY: test\nall: test\n\ntest: unit ; @./a.bin\nunit: obj.o\n\t@$(RUN)\n\t-sh scripts/test.sh $<\n" +
			"obj.o: main.c\n\tcc -o $@ src/main.c\nsub:\n\t$(MAKE) -C deep test\nother:\n\tpython3 gen.py\ninclude build/rules.inc\n",
		"build/rules.inc":  "-include more.inc\nlint:\n\t./tools/lint\n",
		"deep/Makefile":    "test:\n\tcd x && ./run.pl\n",
		"scripts/test.sh":  "#!/bin/bash\nset -e\ncd \"$(dirname \"$0\")\"\nexec python3 -m checks.all \"$HERE/inner.py\"\n",
		"tools/lint":       "#!/usr/bin/env bash\nperl tools/l.pl\n",
		"web/package.json": `{"scripts":{"test":"npm run unit","pretest":"sh ./pre.sh","unit":"node scripts/all.js","build":"node build.js"}}`,
	}
	for _, c := range []struct {
		check, file string
		decides     bool
	}{
		{"make test", "build/rules.inc", true},
		{"make lint", "more.inc", true},
		{"make", "tests/run.py", true},
		{"make unit", "tests/run.py", true},
		{"make test", "a.bin", true},
		{"env X=1 make test", "scripts/test.sh", true},
		{"make test", "scripts/inner.py", true},
		{"make test", "checks/all.py", true},
		{"make lint", "tools/lint", true},
		{"make lint", "tools/l.pl", true},
		{"make sub", "deep/x/run.pl", true},
		{"cd deep && make test", "deep/x/run.pl", true},
		{"cd web && npm test", "web/scripts/all.js", true},
		{"npm --prefix web test", "web/pre.sh", true},
		{"python tests/run.py", "tests/run.py", true},
		{"python3 -u tests/run.py", "tests/run.py", true},
		{"sh scripts/test.sh", "scripts/test.sh", true},
		{"make -f checks.inc", "checks.inc", true},
		{"make test", "src/main.c", false},
		{"make test", "gen.py", false},
		{"make test", "tests/test_a.py", false},
		{"npm --prefix web test", "web/build.js", false},
		{"python3 tests/test_a.py", "tests/test_a.py", false},
		{"go test ./...", "tests/run.py", false},
	} {
		r := scanned(t, Options{Checks: []string{c.check}, Before: func(path string) (string, error) { return base[path], nil }}, file{c.file, "a = 1\n", "a = 2\n"})
		if got := len(r.Findings) > 0 && r.Findings[0].Decides(); got != c.decides {
			t.Errorf("%s, %s: %v", c.check, c.file, got)
		}
	}
	if _, err := Patch(strings.NewReader(""), Options{Checks: []string{"make test"}, Before: func(string) (string, error) { return "", io.ErrClosedPipe }}); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}
