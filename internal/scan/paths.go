package scan

import (
	"path"
	"slices"
	"strings"
)

// path judges a file by its name.
func (f *fileScan) path() {
	c := f.c
	if c.link && !c.deleted && strings.HasSuffix(c.name, ".go") { // go compiles what it points at, which may be elsewhere
		why := EndsTests
		if f.test {
			why = TestMain
		}
		f.s.add(candidate{Finding: Finding{Kind: TestWeakened, Why: why, Path: f.name}})
	}
	if k, why, ok := f.judge(f.name); ok {
		n := len(f.s.kept[k])
		f.s.add(candidate{Finding: Finding{Kind: k, Why: why, Path: f.name}})
		if k == ChecksConfig && len(f.s.kept[k]) > n {
			f.whole = n + 1
		}
		return
	}
	if path.Base(f.name) == "package.json" { // its lines tell
		f.pack.watched, f.pack.decides = true, f.s.runs("node")
	}
	if golden(c.name) && !c.created {
		f.s.add(candidate{Finding: Finding{Kind: GoldenChanged, Why: Golden, Path: f.name}})
	}
}

func (f *fileScan) judge(name string) (Kind, Why, bool) {
	if f.s.files[name] {
		return ChecksConfig, CheckFile, true
	}
	if why, ok := f.deciding(name); ok {
		return ChecksConfig, why, true
	}
	if continuous(name) {
		return CITouched, CI, true
	}
	if why, ok := building(name); ok {
		return BuildTouched, why, true
	}
	return "", "", false
}

// continuous reports whether a file tells a build service what to do.
func continuous(name string) bool {
	low := strings.ToLower(name)
	dirs := []string{".github/workflows/", ".github/actions/", ".gitea/workflows/", ".forgejo/workflows/", ".circleci/", ".buildkite/", ".woodpecker/", ".tekton/", ".gitlab/ci/", ".teamcity/"}
	if slices.ContainsFunc(dirs, func(dir string) bool { return strings.Contains("/"+low, "/"+dir) }) {
		return true
	}
	base := path.Base(low)
	switch base {
	case ".travis.yml", "appveyor.yml", ".appveyor.yml", "azure-pipelines.yml", "azure-pipelines.yaml", "bitbucket-pipelines.yml", ".drone.yml",
		".cirrus.yml", ".woodpecker.yml", "cloudbuild.yaml", "buildspec.yml", "jenkinsfile", ".build.yml":
		return true
	}
	return strings.HasPrefix(base, ".gitlab-ci") || strings.HasPrefix(base, "jenkinsfile.") || strings.HasPrefix(base, "azure-pipelines") ||
		strings.HasPrefix(low, ".github/dependabot") || strings.HasSuffix(base, ".gitlab-ci.yml")
}

// building reports whether a file decides how the project is built, tested or
// linted, and what of it.
func building(name string) (Why, bool) {
	base := strings.ToLower(path.Base(name))
	switch base {
	case "go.mod", "go.work", "cargo.toml", "requirements.txt", "pipfile", "gemfile", "composer.json", "mix.exs", "package.swift", "pubspec.yaml", "environment.yml", "deno.json":
		return Dependencies, true
	case "makefile", "gnumakefile", "justfile", "taskfile.yml", "taskfile.yaml", "rakefile", "cmakelists.txt", "meson.build", "configure.ac",
		"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "pom.xml", "build.sbt", "build.rs", "build.xml", "setup.py", "pyproject.toml",
		"build.bazel", "workspace.bazel", "module.bazel", "magefile.go", "noxfile.py", "gulpfile.js", "gruntfile.js", "lerna.json", "nx.json", "turbo.json",
		"compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml", "containerfile", ".dockerignore", "tsconfig.json":
		return Build, true
	case "conftest.py", "pytest.ini", "tox.ini", "setup.cfg", ".coveragerc", "phpunit.xml", "phpunit.xml.dist", ".rspec", ".mocharc.json", ".mocharc.js", ".mocharc.yml",
		"codecov.yml", ".codecov.yml", "nextest.toml", "karma.conf.js", ".nycrc", ".nycrc.json":
		return TestConfig, true
	case ".golangci.yml", ".golangci.yaml", ".golangci.toml", ".flake8", ".pylintrc", "pylintrc", "mypy.ini", "ruff.toml", ".ruff.toml", "clippy.toml", ".clippy.toml",
		"rustfmt.toml", ".rustfmt.toml", ".rubocop.yml", "biome.json", "tslint.json", ".clang-tidy", ".clang-format", "phpstan.neon", "phpcs.xml", ".shellcheckrc",
		"checkstyle.xml", ".editorconfig", ".swiftlint.yml", "analysis_options.yaml", ".credo.exs", "pyrightconfig.json", ".hadolint.yaml", ".markdownlint.json":
		return LintConfig, true
	case ".gitattributes", ".gitmodules", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".lintstagedrc":
		return Hooks, true
	}
	switch {
	case strings.HasPrefix(base, "dockerfile"), strings.HasSuffix(base, ".dockerfile"), strings.HasSuffix(base, ".mk"):
		return Build, true
	case strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt"):
		return Dependencies, true
	case anyPrefix(base, "jest.config.", "jest.setup.", "vitest.config.", "vitest.workspace.", "playwright.config.", "cypress.config.", "karma.conf."):
		return TestConfig, true
	case anyPrefix(base, ".eslintrc", "eslint.config.", ".prettierrc", "prettier.config.", ".stylelintrc", "stylelint.config."):
		return LintConfig, true
	case anyPrefix(base, "webpack.config.", "vite.config.", "rollup.config.", "babel.config.", ".babelrc", "esbuild.config."), strings.HasPrefix(base, "tsconfig.") && strings.HasSuffix(base, ".json"):
		return Build, true
	}
	// Git that runs in a bare repository has its configuration in force.
	if in := path.Dir(name); strings.HasSuffix(in, ".git/hooks") || strings.HasSuffix(in, ".git") && anyPrefix(base, "config", "commondir") {
		return Hooks, true
	}
	for dir := range strings.SplitSeq(path.Dir(name), "/") {
		switch dir {
		case ".husky", ".githooks", "githooks", ".git-hooks":
			return Hooks, true
		}
	}
	return "", false
}

func anyPrefix(s string, all ...string) bool {
	return slices.ContainsFunc(all, func(p string) bool { return strings.HasPrefix(s, p) })
}

func anyOf(s string, all ...string) bool {
	return slices.ContainsFunc(all, func(p string) bool { return strings.Contains(s, p) })
}

// golden reports whether a file holds what tests compare with.
func golden(name string) bool {
	base := strings.ToLower(path.Base(name))
	if strings.HasSuffix(base, ".snap") || strings.HasSuffix(base, ".ambr") || anyOf(base, ".golden", ".approved.", ".expected", "-snapshot.") {
		return true
	}
	below := false // testdata, where names mean more
	for dir := range strings.SplitSeq(path.Dir(name), "/") {
		switch strings.ToLower(dir) {
		case "__snapshots__", "__image_snapshots__", "golden", "goldens", "goldenfiles", "__screenshots__":
			return true
		case "testdata", "fixtures", "__fixtures__":
			below = true
		case "snapshots", "expected", "want":
			if below || IsTest(path.Dir(name)+"/x.py") {
				return true
			}
		}
	}
	return below && anyPrefix(base, "want", "expected", "golden")
}

// IsCode reports whether a file is code of a language whose tests are known.
func IsCode(name string) bool {
	l := languageOf(name)
	return l != nil && dialectOf(l.family) != nil
}

// IsTest reports whether a file is code of tests, by where it is and what it is called.
func IsTest(name string) bool {
	dir, base := path.Split(name)
	low, ext := strings.ToLower(base), strings.ToLower(path.Ext(base))
	stem := strings.TrimSuffix(base, path.Ext(base))
	dirs := strings.Split(strings.ToLower(strings.Trim(dir, "/")), "/")
	data := slices.ContainsFunc(dirs, func(d string) bool {
		return d == "testdata" || d == "fixtures" || d == "__fixtures__" || d == "__snapshots__"
	})
	switch {
	case ext == ".txtar":
		return data
	case data && ext != ".go":
		return false
	case ext == ".go":
		return strings.HasSuffix(low, "_test.go")
	case ext == ".bats":
		return true
	}
	l := languageOf(name)
	if l == nil || dialectOf(l.family) == nil {
		return false
	}
	if testName(strings.ToLower(stem)) || camelTest(stem) && l.family != "python" && l.family != "c" {
		return true
	}
	for _, d := range dirs {
		switch d {
		case "test", "tests", "__tests__", "spec", "specs", "e2e", "cypress", "androidtest", "unittests", "testing":
			return l.family != "shell" || d != "testing"
		}
	}
	return strings.HasSuffix(dirs[len(dirs)-1], ".tests")
}

// testName is the convention of most languages.
func testName(stem string) bool {
	return strings.HasPrefix(stem, "test_") || strings.HasSuffix(stem, "_test") || strings.HasSuffix(stem, "_tests") || strings.HasSuffix(stem, "_spec") ||
		strings.HasSuffix(stem, ".test") || strings.HasSuffix(stem, ".spec") || strings.HasSuffix(stem, ".cy") || stem == "tests" || stem == "test"
}

// camelTest is that of Java and its like.
func camelTest(stem string) bool {
	ends := []string{"Test", "Tests", "TestCase", "Spec", "IT"}
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(stem, end) && len(stem) > len(end) }) ||
		strings.HasPrefix(stem, "Test") && len(stem) > 4 && stem[4] >= 'A' && stem[4] <= 'Z'
}
