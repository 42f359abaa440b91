package scan

import "testing"

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
		"a test beside TestMain":          {"go test ./...", file{"a_test.go", main, main + "\nvar x = 1\n\nfunc TestB(t *testing.T) {\n\tif g() != 2 {\n\t\tt.Error()\n\t}\n}\n"}, ""},
		"end of the program in init":      {"go test ./...", file{"a_test.go", "", "package a\n\nimport \"os\"\n\nfunc init() {\n\tos.Exit(0)\n}\n"}, "ends_tests a_test.go:6"},
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
		"pyproject, pytest":      {"pytest", file{"pyproject.toml", project, "[project]\nname = \"x\"\n\n[tool.pytest.ini_options]\naddopts = \"--co\"\n\n[tool.ruff]\nline-length = 80\n"}, "test_config pyproject.toml:-5"},
		"pyproject, new section": {"pytest", file{"pyproject.toml", "[project]\nname = \"x\"\n", "[project]\nname = \"x\"\n\n[tool.pytest.ini_options]\naddopts = \"--co\"\n"}, "test_config pyproject.toml:4"},
		"pyproject, other":       {"pytest", file{"pyproject.toml", project, "[project]\nname = \"y\"\n\n[tool.pytest.ini_options]\naddopts = \"\"\n\n[tool.ruff]\nline-length = 90\n"}, ""},

		"npmrc, shell":                   {"npm test", file{".npmrc", "", "script-shell=/bin/true\n"}, "runner .npmrc:1"},
		"npmrc, options":                 {"pnpm test", file{".npmrc", "a=b\n", "a=b\nnode-options = --require ./x.js\n"}, "runner .npmrc:2"},
		"npmrc, registry":                {"npm test", file{".npmrc", "", "registry=https://r.example\n"}, ""},
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
