package project

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	type files map[string]string
	var scripts strings.Builder
	const script = `{"scripts":{"test":"jest","lint":"eslint ."}}`
	for name, c := range map[string]struct {
		files  files
		checks string // separated by "; ", those that stand for one behind " | "
		setup  string
		notes  string
	}{
		"nothing":                  {files{"README.md": "x"}, "", "", ""},
		"go":                       {files{"go.mod": "module x\n"}, "go test ./...", "", ""},
		"go with modules":          {files{"go.mod": "", "go.sum": "", "sub/go.mod": "", "sub/x/a_test.go": "", "sub/deep/go.mod": "", "none/go.mod": "", "none/in/go.mod": "", "none/in/b_test.go": "", "examples/e/go.mod": "", "examples/e/e_test.go": "", "testdata/m/go.mod": "", "testdata/m/m_test.go": "", "vendor/v/go.mod": "", "vendor/v/v_test.go": "", "a b/go.mod": "", "a b/c_test.go": ""}, "go test ./...; cd 'a b' && go test ./...; cd none/in && go test ./...; cd sub && go test ./...", "go mod download", ""},
		"go.work":                  {files{"go.work": "go 1.24\nuse (\n\t./a // one\n\t\"b/c\"\n\t../out\n\t./gone\n)\nuse .\n", "go.mod": "", "a/go.mod": "", "b/c/go.mod": ""}, "go test ./a/... ./b/c/... ./...", "go mod download", ""},
		"go.work of nothing":       {files{"go.work": "use ./gone\n", "go.mod": ""}, "go test ./...", "go mod download", ""},
		"many modules":             {files{"1/go.mod": "", "1/a_test.go": "", "2/go.mod": "", "2/a_test.go": "", "3/go.mod": "", "3/a_test.go": "", "4/go.mod": "", "4/a_test.go": "", "5/go.mod": "", "5/a_test.go": "", "6/go.mod": "", "6/a_test.go": ""}, "cd 1 && go test ./...; cd 2 && go test ./...; cd 3 && go test ./...; cd 4 && go test ./...; cd 5 && go test ./...", "", "not all Go modules in directories are checked"},
		"npm":                      {files{"package.json": script, "package-lock.json": "{}"}, "npm test", "npm ci", ""},
		"npm, by default":          {files{"package.json": script}, "npm test", "", ""},
		"npm's own default":        {files{"package.json": `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`}, "", "", ""},
		"no test script":           {files{"package.json": `{"scripts":{"build":"tsc"}}`}, "", "", ""},
		"pnpm":                     {files{"package.json": script, "pnpm-lock.yaml": ""}, "pnpm test", "pnpm install --frozen-lockfile", ""},
		"yarn":                     {files{"package.json": script, "yarn.lock": ""}, "yarn test", "yarn install --frozen-lockfile", ""},
		"yarn, newer":              {files{"package.json": script, "yarn.lock": "", ".yarnrc.yml": ""}, "yarn test", "yarn install --immutable", ""},
		"bun":                      {files{"package.json": script, "bun.lock": ""}, "bun run test", "bun install --frozen-lockfile", ""},
		"a manager by name":        {files{"package.json": `{"packageManager":"pnpm@9.1.0","scripts":{"test":"x"}}`, "package-lock.json": "{}"}, "pnpm test", "", ""},
		"a package that is broken": {files{"package.json": `{"scripts":`}, "", "", "package.json cannot be read: unexpected end of JSON input"},
		"scripts of another kind":  {files{"package.json": `{"scripts":{"test":["x"]}}`}, "", "", ""},
		"pytest by its settings":   {files{"pyproject.toml": "[tool.pytest.ini_options]\n", "tests/test_a.py": "def test(): pass"}, ".venv/bin/python3 -m pytest | python3 -m pytest", "", ""},
		"uv":                       {files{"uv.lock": "", "requirements.txt": "x==1"}, "", "uv sync --frozen --no-python-downloads", ""},
		"poetry":                   {files{"poetry.lock": ""}, "", "POETRY_VIRTUALENVS_IN_PROJECT=true poetry sync", ""},
		"pytest by its import":     {files{"lib/test_a.py": "import pytest", "requirements.txt": "x==1"}, ".venv/bin/python3 -m pytest | python3 -m pytest", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt", ""},
		"requirements of tests":    {files{"requirements.txt": "", "requirements-dev.txt": "", "requirements/test.txt": "", "requirements/docs.txt": "", "latest-requirements.txt": "", "lib/requirements.txt": ""}, "", "python3 -m venv .venv && .venv/bin/pip install -r requirements-dev.txt -r requirements.txt -r requirements/test.txt", ""},
		"plain functions":          {files{"tests/test_a.py": "def test_a(): pass"}, ".venv/bin/python3 -m pytest | python3 -m pytest", "", ""},
		"unittest":                 {files{"setup.py": "", "tests/test_a.py": "import unittest"}, ".venv/bin/python3 -m unittest discover -s tests | python3 -m unittest discover -s tests", "", ""},
		"unittest in a package":    {files{"test/__init__.py": "", "test/test_a.py": "import unittest"}, ".venv/bin/python3 -m unittest discover -s test -t . | python3 -m unittest discover -s test -t .", "", ""},
		"unittest in the root":     {files{"test_a.py": "import unittest"}, ".venv/bin/python3 -m unittest | python3 -m unittest", "", ""},
		"unittest where it hides":  {files{"src/a/test_a.py": "import unittest"}, "", "", ""},
		"python without tests":     {files{"pyproject.toml": "pytest", "a.py": "", "testing.py": "", "lib/tester.py": ""}, "", "", ""},
		"cargo":                    {files{"Cargo.toml": "[package]\n", "Cargo.lock": ""}, "cargo test", "cargo fetch --locked", ""},
		"a workspace of cargo":     {files{"Cargo.toml": "[workspace]\nmembers = []\n"}, "cargo test --workspace", "", ""},
		"gradle":                   {files{"build.gradle.kts": "", "gradlew": "#!/bin/sh", "pom.xml": ""}, "sh ./gradlew test", "sh ./gradlew testClasses && { sh ./gradlew test --continue --tests none.None || :; }", ""},
		"maven":                    {files{"pom.xml": ""}, "mvn -B test", "mvn -B test -Dtest='*#none' -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false", ""},
		"maven's wrapper":          {files{"pom.xml": "", "mvnw": "#!/bin/sh"}, "./mvnw -B test", "./mvnw -B test -Dtest='*#none' -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false", ""},
		"elixir":                   {files{"mix.exs": "", "mix.lock": ""}, "mix test", "mix deps.get", ""},
		"composer":                 {files{"composer.json": `{"scripts":{"test":["@php x"]}}`}, "composer test", "", ""},
		"phpunit":                  {files{"composer.json": `{}`, "phpunit.xml.dist": ""}, "vendor/bin/phpunit", "", ""},
		"rspec":                    {files{"Gemfile": "gem 'rspec'", "spec/a/b_spec.rb": "", "Gemfile.lock": ""}, "bundle exec rspec", "bundle config set --local path vendor/bundle && bundle install", ""},
		"ruby without specs":       {files{"Gemfile": "gem 'rspec'"}, "", "", ""},
		"several languages":        {files{"go.mod": "", "package.json": script, "Cargo.toml": ""}, "go test ./...; npm test; cargo test", "", ""},
		"make":                     {files{"Makefile": ".PHONY: test\nall:\n\ttrue\ncheck test: all\n\tgo test\n", "go.mod": "", "package.json": script}, "make test | go test ./... | npm test", "", ""},
		"make without the target":  {files{"Makefile": ".PHONY: test\ntest := x\ntest ::= y\nX = test: z\n# test: c\ntests: all\n\ttest: no\n", "go.mod": ""}, "go test ./...", "", ""},
		"the first makefile":       {files{"GNUmakefile": "all:\n", "Makefile": "test:\n", "go.mod": ""}, "go test ./...", "", ""},
		"make, and nothing else":   {files{"makefile": "test::\n\ttrue\n"}, "make test", "", ""},
		"named":                    {files{"AGENTS.md": "# Tests\n\n```sh\nnot this\n```\n\n```tori-checks\n# quick\nmake lint\n\n  go test -short ./...  \n```\n", "go.mod": "", "Makefile": "test:\n"}, "make lint; go test -short ./...", "", ""},
		"named by a link":          {files{"CLAUDE.md": "-> docs/a.md", "docs/a.md": "~~~~ tori-checks\nx\n~~~~", "go.mod": ""}, "x", "", ""},
		"named below the root":     {files{"sub/AGENTS.md": "```tori-checks\nx\n```", "go.mod": ""}, "go test ./...", "", ""},
		"named, and not closed":    {files{"AGENTS.md": "```tori-checks\nx\n", "go.mod": ""}, "go test ./...", "", "AGENTS.md: its block tori-checks is not closed"},
		"named, without any":       {files{"AGENTS.md": "```tori-checks\n```\n", "go.mod": ""}, "go test ./...", "", ""},
		"a guess is not a name":    {files{"AGENTS.md": "## Checks\n\n- `rm -rf /`\n\n```sh\nrm -rf /\n```\n"}, "", "", ""},
		"a link for a manifest":    {files{"Makefile": "-> other", "other": "test:\n", "go.mod": ""}, "go test ./...", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := b.read(c.files, Options{})
			var got []string
			for _, ch := range p.Checks {
				s := ch.Command
				for _, e := range ch.Else {
					s += " | " + e.Command
				}
				got = append(got, s)
				if ch.Source == "" || (ch.Probe == "") != (ch.Program == "") {
					t.Errorf("%+v", ch)
				}
				fmt.Fprintf(&scripts, "%s\n%s\n", ch.Command, ch.Probe)
			}
			if s := strings.Join(got, "; "); s != c.checks {
				t.Errorf("checks %q, want %q", s, c.checks)
			}
			if s := strings.Join(p.ToInstall(), "; "); s != c.setup {
				t.Errorf("setup %q, want %q", s, c.setup)
			}
			if s := strings.Join(p.Notes, "; "); s != c.notes {
				t.Errorf("notes %q, want %q", s, c.notes)
			}
		})
	}
	if out, err := exec.Command("sh", "-n", "-c", scripts.String()).CombinedOutput(); err != nil {
		t.Errorf("%v: %s in\n%s", err, out, scripts.String())
	}
}

// A block with more than a project needs is not believed.
func TestNamedChecksAreBounded(t *testing.T) {
	t.Parallel()
	block := func(lines ...string) string { return "```tori-checks\n" + strings.Join(lines, "\n") + "\n```\n" }
	for _, bad := range []string{block(slices.Repeat([]string{"x"}, maxNamed+1)...), block(strings.Repeat("x", maxCommand+1)), block("a\x00b"), block("a\x1bb")} {
		if commands, problem := namedChecks(bad); commands != nil || problem == "" {
			t.Errorf("%.100q: %q %q", bad, commands, problem)
		}
	}
	if commands, problem := namedChecks("````tori-checks\n```\n````\n" + block("second")); fmt.Sprint(commands) != "[```]" || problem != "" {
		t.Errorf("%q %q", commands, problem)
	}
}

// Python is run for real where it is there: what is detected finds the tests.
func TestUnittestFindsTheTests(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	b := newBed(t)
	p := b.read(map[string]string{"lib.py": "answer = 42\n", "tests/test_lib.py": "import unittest, lib\nclass T(unittest.TestCase):\n    def test_answer(self):\n        self.assertEqual(lib.answer, 41)\n"}, Options{})
	commit := b.commit(map[string]string{"lib.py": "answer = 42\n", "tests/test_lib.py": "import unittest, lib\nclass T(unittest.TestCase):\n    def test_answer(self):\n        self.assertEqual(lib.answer, 41)\n"})
	dir := t.TempDir()
	git(t, dir, "", "--git-dir="+b.GitDir(), "--work-tree="+dir, "checkout", "-q", commit, "--", ".")
	c := p.Checks[0].Else[0]
	if err := exec.Command("sh", "-c", c.Probe).Run(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", c.Command)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "42 != 41") {
		t.Errorf("%v %s", err, out)
	}
}
