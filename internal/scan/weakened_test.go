package scan

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goTests = `package a

import "testing"

func TestOne(t *testing.T) {
	one := compute(1)
	if one != 1 {
		t.Errorf("one: %d", one)
	}
}

func TestTwo(t *testing.T) {
	two := compute(2)
	if two != 2 {
		t.Errorf("two: %d", two)
	}
	if err := check(two); err != nil {
		t.Fatal(err)
	}
}
`

const goOne = `package a

import "testing"

func TestOne(t *testing.T) {
	one := compute(1)
	if one != 1 {
		t.Errorf("one: %d", one)
	}
}
`

const goTwo = `package a

import "testing"

func TestTwo(t *testing.T) {
	two := compute(2)
	if two != 2 {
		t.Errorf("two: %d", two)
	}
	if err := check(two); err != nil {
		t.Fatal(err)
	}
}
`

const goTwoRenamed = `package a

import "testing"

func TestTheSecond(t *testing.T) {
	two := compute(2)
	if two != 2 {
		t.Errorf("two: %d", two)
	}
	if err := check(two); err != nil {
		t.Fatal(err)
	}
}
`

func TestWeakenedTests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []file
		want  []string
	}{
		"removed":             {[]file{{"a_test.go", goTests, goOne}}, []string{"test_removed a_test.go:-12"}},
		"file deleted":        {[]file{{"a_test.go", goTests, ""}}, []string{"test_file_deleted a_test.go:-1"}},
		"moved":               {[]file{{"a_test.go", goTests, goOne}, {"b_test.go", "", goTwo}}, nil},
		"moved, seen before":  {[]file{{"A_test.go", "", goTwo}, {"a_test.go", goTests, goOne}}, nil},
		"moved and renamed":   {[]file{{"a_test.go", goTests, goOne}, {"b_test.go", "", goTwoRenamed}}, nil},
		"renamed":             {[]file{{"a_test.go", goTwo, goTwoRenamed}}, nil},
		"file moved":          {[]file{{"a_test.go", goTests, ""}, {"x/b_test.go", "", goTests}}, nil},
		"moved out of tests":  {[]file{{"a_test.go", goTests, ""}, {"a.go.txt", "", goTests}}, []string{"test_file_deleted a_test.go:-1"}},
		"commented out":       {[]file{{"a_test.go", "package a\n\nfunc TestA(t *testing.T) {\n}\n", "package a\n\n// func TestA(t *testing.T) {\n// }\n"}}, []string{"test_removed a_test.go:-3"}},
		"a helper is no test": {[]file{{"help_test.go", "package a\n\nfunc help() {}\n", ""}}, nil},
		"in a literal":        {[]file{{"a_test.go", "package a\n\nvar s = `\nfunc TestA(t *testing.T) {\n}\n`\n", "package a\n\nvar s = ``\n"}}, nil},

		"skip":              {[]file{{"a_test.go", "package a\n\nfunc TestA(t *testing.T) {\n\tf(t)\n}\n", "package a\n\nfunc TestA(t *testing.T) {\n\tt.Skip()\n\tf(t)\n}\n"}}, []string{"skip_added a_test.go:4"}},
		"conditional, old":  {[]file{{"a_test.go", "package a\n\nfunc TestA(t *testing.T) {\n\tf(t)\n}\n", "package a\n\nfunc TestA(t *testing.T) {\n\tif no() {\n\t\tt.Skip()\n\t}\n\tf(t)\n}\n"}}, []string{"skip_added a_test.go:5"}},
		"conditional, new":  {[]file{{"a_test.go", "", "package a\n\nfunc TestA(t *testing.T) {\n\tif testing.Short() {\n\t\tt.Skip()\n\t}\n\tf(t)\n}\n"}}, nil},
		"pytest":            {[]file{{"test_a.py", "def test_a():\n    assert f()\n", "@pytest.mark.skip\ndef test_a():\n    assert f()\n"}}, []string{"skip_added test_a.py:1"}},
		"pytest xfail":      {[]file{{"tests/a.py", "def test_a():\n    assert f()\n", "@pytest.mark.xfail(reason='x')\ndef test_a():\n    assert f()\n"}}, []string{"skip_added tests/a.py:1"}},
		"skipif, old":       {[]file{{"test_a.py", "def test_a():\n    assert f()\n", "@pytest.mark.skipif(True)\ndef test_a():\n    assert f()\n"}}, []string{"skip_added test_a.py:1"}},
		"skipif, new":       {[]file{{"test_a.py", "", "@pytest.mark.skipif(windows, reason='x')\ndef test_a():\n    assert f()\n"}}, nil},
		"it.skip":           {[]file{{"a.test.ts", "it('a', () => { expect(f()).toBe(1) })\n", "it.skip('a', () => { expect(f()).toBe(1) })\n"}}, []string{"skip_added a.test.ts:1"}},
		"xit":               {[]file{{"a.spec.js", "it('a', () => {\n})\n", "xit('a', () => {\n})\n"}}, []string{"skip_added a.spec.js:1"}},
		".only":             {[]file{{"a.spec.js", "it('a', () => {\n})\n", "it.only('a', () => {\n})\n"}}, []string{"focus_added a.spec.js:1"}},
		"fit of a model":    {[]file{{"a.spec.js", "", "it('a', () => {\n  model.fit(x, y)\n  skipLines(2)\n})\n"}}, nil},
		"rust ignore":       {[]file{{"tests/a.rs", "#[test]\nfn a() {\n}\n", "#[test]\n#[ignore]\nfn a() {\n}\n"}}, []string{"skip_added tests/a.rs:2"}},
		"rust mark removed": {[]file{{"src/a.rs", "#[test]\nfn a() {\n}\n", "fn a() {\n}\n"}}, []string{"test_removed src/a.rs:-1"}},
		"rust removed":      {[]file{{"src/a.rs", "fn f() {}\n#[test]\nfn a() {\n    assert!(f());\n}\n", "fn f() {}\n"}}, []string{"test_removed src/a.rs:-2"}},
		"junit disabled":    {[]file{{"ATest.java", "@Test\nvoid a() {\n}\n", "@Test\n@Disabled\nvoid a() {\n}\n"}}, []string{"skip_added ATest.java:2"}},
		"junit removed":     {[]file{{"ATest.java", "class ATest {\n  @Test\n  void a() {\n  }\n}\n", "class ATest {\n}\n"}}, []string{"test_removed ATest.java:-2"}},
		"junit timeout":     {[]file{{"ATest.java", "  @Test\n  void a() {\n  }\n", "  @Test(timeout = 5)\n  void a() {\n  }\n"}}, nil},
		"rspec":             {[]file{{"a_spec.rb", "it 'a' do\n  expect(f).to eq 1\nend\n", "it 'a' do\n  skip\n  expect(f).to eq 1\nend\n"}}, []string{"skip_added a_spec.rb:2"}},
		"phpunit":           {[]file{{"ATest.php", "public function testA() {\n}\n", "public function testA() {\n  $this->markTestSkipped('x');\n}\n"}}, []string{"skip_added ATest.php:2"}},
		"gtest":             {[]file{{"a_test.cc", "TEST(A, B) {\n  EXPECT_EQ(f(), 1);\n}\n", "TEST(A, DISABLED_B) {\n  EXPECT_EQ(f(), 1);\n}\n"}}, []string{"skip_added a_test.cc:1"}},

		"fewer":          {[]file{{"test_a.py", "def test_a():\n    assert f(1)\n    assert f(2)\n    g()\n", "def test_a():\n    assert f(1)\n    g()\n"}}, []string{"fewer_assertions test_a.py:-3"}},
		"changed":        {[]file{{"test_a.py", "def test_a():\n    assert f(1) == 2\n", "def test_a():\n    assert f(1) == 3\n"}}, nil},
		"split":          {[]file{{"test_a.py", "def test_a():\n    assert f(1)\n    assert f(2)\n", "def test_a():\n    assert f(1)\n\ndef test_b():\n    assert f(2)\n"}}, nil},
		"errors passed":  {[]file{{"a_test.go", "package a\n\nfunc TestA(t *testing.T) {\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n", "package a\n\nfunc TestA(t *testing.T) {\n}\n"}}, nil},
		"trivial":        {[]file{{"test_a.py", "def test_a():\n    assert f(1)\n", "def test_a():\n    assert True\n"}}, []string{"trivial_assertion test_a.py:2"}},
		"trivial in js":  {[]file{{"a.test.js", "", "test('a', () => { expect(true).toBe(true) })\n"}}, []string{"trivial_assertion a.test.js:1"}},
		"trivial rust":   {[]file{{"tests/a.rs", "", "#[test]\nfn a() {\n    assert!(true);\n}\n"}}, []string{"trivial_assertion tests/a.rs:3"}},
		"no test at all": {[]file{{"a.py", "def f():\n    assert x\n    assert y\n", "def f():\n    assert True\n"}}, nil},
		"script":         {[]file{{"x/testdata/script/a.txtar", "exec tori\n", ""}}, []string{"test_file_deleted x/testdata/script/a.txtar:-1"}},
	} {
		if diff := cmp.Diff(c.want, short(scanned(t, Options{}, c.files...))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Of the tests that a patch adds the names are known: of those that were renamed, moved
// or changed none was added.
func TestAddedTests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []file
		want  []string
	}{
		"beside others":      {[]file{{"a_test.go", goOne, goTests}}, []string{"TestTwo"}},
		"in new files":       {[]file{{"a_test.go", "", goOne}, {"test_b.py", "", "def test_b():\n    assert f()\n"}}, []string{"TestOne", "test_b"}},
		"in the product":     {[]file{{"src/a.rs", "fn f() {}\n", "fn f() {}\n#[test]\nfn a() {\n    assert!(f());\n}\n"}}, []string{"a"}},
		"renamed":            {[]file{{"a_test.go", goTwo, goTwoRenamed}}, nil},
		"moved":              {[]file{{"a_test.go", goTests, goOne}, {"b_test.go", "", goTwo}}, nil},
		"changed":            {[]file{{"test_a.py", "def test_a():\n    assert f(1) == 2\n", "def test_a():\n    assert f(1) == 3\n"}}, nil},
		"a helper":           {[]file{{"help_test.go", "package a\n", "package a\n\nfunc help() {}\n"}}, nil},
		"twice by one name":  {[]file{{"a_test.go", "", goOne}, {"b/a_test.go", "", goOne}}, []string{"TestOne"}},
		"only in a comment":  {[]file{{"a_test.go", "package a\n", "package a\n\n// func TestA(t *testing.T) {}\n"}}, nil},
		"in what is no test": {[]file{{"a.py", "", "def test_b():\n    assert f()\n"}}, nil},
	} {
		if diff := cmp.Diff(c.want, scanned(t, Options{}, c.files...).Added); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestHowManyWereLost(t *testing.T) {
	t.Parallel()
	r := scanned(t, Options{}, file{"a_test.go", goTests, ""},
		file{"test_a.py", "def test_a():\n    assert f(1)\n    assert f(2)\n    assert f(3)\n", "def test_a():\n    assert f(1)\n"})
	want := []Finding{
		{Kind: TestWeakened, Why: FileDeleted, Path: "a_test.go", Line: 1, Old: true, Text: "package a", Lost: 2},
		{Kind: TestWeakened, Why: FewerAssertions, Path: "test_a.py", Line: 3, Old: true, Text: "assert f(2)", Lost: 2},
	}
	if diff := cmp.Diff(want, r.Findings); diff != "" {
		t.Error(diff)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		".github/workflows/ci.yml":        "ci_touched ci",
		"sub/.gitlab-ci.yml":              "ci_touched ci",
		".gitea/workflows/x.yaml":         "ci_touched ci",
		".forgejo/workflows/x.yaml":       "ci_touched ci",
		".circleci/config.yml":            "ci_touched ci",
		"Jenkinsfile":                     "ci_touched ci",
		"azure-pipelines.yml":             "ci_touched ci",
		"Makefile":                        "build_touched build",
		"Dockerfile.dev":                  "build_touched build",
		"pyproject.toml":                  "build_touched build",
		"go.mod":                          "build_touched dependencies",
		"x/Cargo.toml":                    "build_touched dependencies",
		"tests/conftest.py":               "build_touched test_config",
		"tox.ini":                         "build_touched test_config",
		"pytest.ini":                      "build_touched test_config",
		"setup.cfg":                       "build_touched test_config",
		"jest.config.ts":                  "build_touched test_config",
		"vitest.config.mts":               "build_touched test_config",
		".golangci.yml":                   "build_touched lint_config",
		".eslintrc.json":                  "build_touched lint_config",
		".gitattributes":                  "build_touched hooks",
		".husky/pre-commit":               "build_touched hooks",
		"testdata/a.git/config":           "build_touched hooks",
		"testdata/a.git/hooks/update":     "build_touched hooks",
		"testdata/a.git/HEAD":             "",
		"scripts/check.sh":                "checks_config check_file",
		"x/__snapshots__/a.test.js.snap":  "golden_changed golden",
		"x/testdata/a.golden":             "golden_changed golden",
		"x/testdata/expected/a.txt":       "golden_changed golden",
		"main.go":                         "",
		"go.sum":                          "",
		"docs/makefile.md":                "",
		".github/ISSUE_TEMPLATE/bug.md":   "",
		"internal/scan/testdata/in.patch": "",
	} {
		r := scanned(t, Options{Checks: []string{"go run scripts/check.sh"}}, file{name, "a\n", "b\n"})
		got := ""
		for _, f := range r.Findings {
			got += string(f.Kind) + " " + string(f.Why)
			if (f.Line != 0 || f.Text != "") != (f.Kind == ChecksConfig) { // of what decides, where
				t.Errorf("%s: line %d %q", name, f.Line, f.Text)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r := scanned(t, Options{}, file{"x/testdata/new.golden", "", "b\n"}); len(r.Findings) != 0 {
		t.Errorf("a new one: %v", short(r))
	}
}

func TestPackageJSON(t *testing.T) {
	t.Parallel()
	const before = "{\n  \"name\": \"x\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\n    \"build\": \"tsc\",\n    \"test\": \"jest\"\n  },\n  \"dependencies\": {\n    \"build\": \"^1.2.3\",\n    \"a\": \"^1.2.3\"\n  }\n}\n"
	for name, c := range map[string]struct{ now, want string }{
		"scripts":      {"{\n  \"name\": \"x\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\n    \"build\": \"tsc\",\n    \"test\": \"true\"\n  },\n  \"dependencies\": {\n    \"build\": \"^1.2.3\",\n    \"a\": \"^1.2.3\"\n  }\n}\n", "scripts package.json:-6"},
		"dependencies": {"{\n  \"name\": \"x\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\n    \"build\": \"tsc\",\n    \"test\": \"jest\"\n  },\n  \"dependencies\": {\n    \"build\": \"^2.2.3\",\n    \"a\": \"^1.2.3\"\n  }\n}\n", ""},
		"version":      {"{\n  \"name\": \"x\",\n  \"version\": \"1.0.1\",\n  \"scripts\": {\n    \"build\": \"tsc\",\n    \"test\": \"jest\"\n  },\n  \"dependencies\": {\n    \"build\": \"^1.2.3\",\n    \"a\": \"^1.2.3\"\n  }\n}\n", ""},
	} {
		got := short(scanned(t, Options{}, file{"package.json", before, c.now}))
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"go test ./...":                       nil,
		"./scripts/check.sh --fast":           {"scripts/check.sh"},
		"make test && bash 'ci/run it.sh'":    {"ci/run it.sh"},
		"ruff check --config=lint/ruff.toml":  {"lint/ruff.toml"},
		"cd x; python -m nox -s \"$SESSION\"": {"nox.py", "x/nox.py"},
		"broken ( ./a.sh":                     {"a.sh"},
		"./a.sh /etc/passwd ../up.txt":        {"a.sh"},
		"test -f a.txt && grep -q b c.txt":    nil,
		"pytest tests/test_a.py":              nil,
	} {
		all := map[string]bool{}
		(&behind{all: all, done: map[string]bool{}}).command([]string{"."}, command)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(all))); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}
