package scan

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// Decides reports whether the checks may pass because of what the finding is
// about, and of nothing else.
func (f Finding) Decides() bool {
	return f.Kind == ChecksConfig || f.Why == TestMain || f.Why == Unreadable || f.Why == EndsTests || f.Why == BuildConstraint || f.Why == FocusAdded
}

// decider is a kind of file that decides over the checks of a tool, whatever the
// code is that they check.
type decider struct {
	tool    string                // "" for any
	names   string                // patterns of the ends of paths, in lower case; with a slash at the end, of a directory around
	lines   func() *regexp.Regexp // what a changed line of it holds; nil for any change
	section func() *regexp.Regexp // or the [section] that it stands in
	why     Why
}

var deciders = []decider{
	{tool: "python", names: "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini tox.toml setup.cfg noxfile.py sitecustomize.py usercustomize.py " +
		"unittest.py* unittest/__init__.py pytest.py* pytest/__init__.py _pytest/__init__.py", why: TestConfig},
	{tool: "python", names: "*.py", why: TestConfig, lines: lazyregexp.New(`\bload_tests\b`)},
	{tool: "python", names: "test/__init__.py tests/__init__.py", why: TestConfig, lines: lazyregexp.New(`^\s*[^#\s]`)},
	{tool: "python", names: "pyproject.toml", why: TestConfig, section: lazyregexp.New(`^tool\.(pytest|tox|nox|hatch\.envs|poe|taskipy|pdm\.scripts)\b`),
		lines: lazyregexp.New(`^\s*\[+tool\.(pytest|tox)\b|^\s*(addopts|testpaths|python_(files|classes|functions)|norecursedirs|collect_ignore)\s*=`)},
	{tool: "node", names: "jest.config.* jest.setup.* jest.preset.* vitest.config.* vitest.setup.* vitest.workspace.* vite.config.* .mocharc* karma.conf.* playwright.config.* cypress.config.* " +
		"bunfig.toml .yarnrc .yarnrc.yml .pnpmfile.cjs deno.json deno.jsonc", why: TestConfig},
	{tool: "node", names: ".npmrc node_modules/", why: Runner},
	{tool: "rust", names: ".cargo/config .cargo/config.toml rust-toolchain rust-toolchain.toml", why: Runner},
	{tool: "rust", names: "nextest.toml", why: TestConfig},
	{tool: "jvm", names: "gradlew gradlew.bat mvnw mvnw.cmd gradle-wrapper.properties gradle-wrapper.jar maven-wrapper.properties maven-wrapper.jar gradle.properties .mvn/*", why: Runner},
	{tool: "jvm", names: "pom.xml *.gradle *.gradle.kts", why: TestConfig, lines: lazyregexp.New(`(?i)skip|surefire|failsafe|failureignore|ignorefailures|onlyif|enabled\s*=|exclude|<groups>|<test|usejunit|\btests?\s*(\{|\()`)},
	{tool: "ruby", names: ".rspec rakefile", why: TestConfig},
	{tool: "php", names: "phpunit.xml phpunit.xml.dist", why: TestConfig},
	{tool: "php", names: "composer.json", why: Scripts, lines: lazyregexp.New(`"((pre-|post-)?test\b[\w:-]*|scripts)"`)},
	{tool: "cmake", names: "cmakelists.txt *.cmake", why: TestConfig, lines: lazyregexp.New(`(?i)\badd_test|enable_testing|tests_properties|discover_tests|\bctest`)},
	{tool: "make", names: "makefile gnumakefile *.mk justfile taskfile.yml taskfile.yaml", why: Build},
	{tool: "golangci-lint", names: ".golangci.yml .golangci.yaml .golangci.toml", why: LintConfig},
	{names: ".env .envrc .env.* *.env mise.toml .mise.toml", why: Environment, lines: lazyregexp.New(`\b(GO(FLAGS|ENV|TOOLCHAIN|EXE|WORK)|(NODE|JAVA_TOOL|_JAVA)_OPTIONS|PYTEST_(ADDOPTS|PLUGINS)|PYTHON(PATH|STARTUP|OPTIMIZE|HOME)|` +
		`RUST(C_WRAPPER|C_WORKSPACE_WRAPPER|FLAGS|DOCFLAGS)|CARGO_\w+|(?i:npm_config_\w+)|(GNU)?MAKEFLAGS|(MAVEN|GRADLE)_(OPTS|ARGS)|RUBY(OPT|LIB)|SPEC_OPTS|TESTOPTS|LD_PRELOAD|LD_LIBRARY_PATH|BASH_ENV|ENV|PATH|SHELL)["']?\s*[+?:]?=`)},
}

// decides reports whether a file is of a decider's kind.
func (d decider) decides(name string) bool {
	low := strings.ToLower(name)
	for p := range strings.FieldsSeq(d.names) {
		end := path.Base(low)
		if strings.HasSuffix(p, "/") && strings.Contains("/"+low, "/"+p) {
			return true
		}
		if strings.Contains(p, "/") {
			end = path.Join(path.Base(path.Dir(low)), end)
		}
		if ok, err := path.Match(p, end); ok && err == nil {
			return true
		}
	}
	return false
}

// toolsOf lists whose tests a check runs; "" among them means anybody's, as of a
// script that is not known.
func toolsOf(command string) (all []string) {
	for _, words := range calls(command) {
		for i, w := range words[:min(len(words), 4)] { // npx jest, uv run pytest
			tool, known := toolOf(path.Base(w))
			if known || i == 0 {
				all = append(all, tool)
			}
			if known {
				break
			}
		}
	}
	return slices.DeleteFunc(all, func(tool string) bool { return tool == nobody })
}

// nobody runs no tests.
const nobody = "-"

func toolOf(program string) (tool string, known bool) {
	switch program {
	case "go", "golangci-lint":
		return program, true
	case "make", "gmake", "just", "task", "cmake", "ctest": // which run anything
		return "", true
	case "npm", "npx", "pnpm", "yarn", "bun", "bunx", "node", "deno", "jest", "vitest", "mocha", "ava":
		return "node", true
	case "pytest", "py.test", "tox", "nox", "uv", "poetry", "hatch", "pdm", "pipenv", "ruff", "mypy":
		return "python", true
	case "cargo":
		return "rust", true
	case "gradle", "gradlew", "mvn", "mvnw":
		return "jvm", true
	case "bundle", "rspec", "rake", "ruby":
		return "ruby", true
	case "composer", "phpunit", "php":
		return "php", true
	case "test", "[", "grep", "echo", "printf", "cd", "true", "cat", "export", "set", "ls", "head", "diff", "cmp", "mkdir", "rm", "touch",
		"cc", "gcc", "g++", "c++", "clang", "clang++", "rustc", "javac", "tsc", "gofmt", "goimports": // and what compilers read is what is checked
		return nobody, true
	}
	if strings.HasPrefix(program, "python") {
		return "python", true
	}
	return "", false
}

// runs reports whether the checks run tests of a tool.
func (s *scanner) runs(tool string) bool {
	return slices.ContainsFunc(s.tools, func(t string) bool { return t == "" || t == tool || tool == "" })
}

// deciding looks for a decider of a file; one that any change makes decide is
// told at once, the other watches the lines.
func (f *fileScan) deciding(name string) (Why, bool) {
	for i, d := range deciders {
		if !d.decides(name) || !f.s.runs(d.tool) {
			continue
		}
		if d.lines == nil {
			return d.why, true
		}
		f.decider = &deciders[i]
	}
	return "", false
}

var tomlSection = lazyregexp.New(`^\s*\[+\s*([^\]]+?)\s*\]`)

// decide looks at a line of a file of which some lines decide.
func (f *fileScan) decide(l *line) {
	if f.whole > 0 && (l.op == '+' || l.op == '-') && strings.TrimSpace(l.text) != "" {
		told := &f.s.kept[ChecksConfig][f.whole-1].Finding
		if path := told.Path; told.Line == 0 || told.Old && l.op == '+' { // what was added tells more
			*told = f.at(ChecksConfig, told.Why, l)
			told.Path = path
		}
	}
	d := f.decider
	if d == nil {
		return
	}
	if d.section != nil {
		if m := tomlSection().FindStringSubmatch(l.text); m != nil {
			f.section = m[1]
		}
	}
	if l.op == ' ' || strings.TrimSpace(l.text) == "" || !d.lines().MatchString(l.text) && (d.section == nil || !d.section().MatchString(f.section)) {
		return
	}
	f.s.add(candidate{Finding: f.at(ChecksConfig, d.why, l)})
	f.decider = nil // once is enough
}
