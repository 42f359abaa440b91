package project

import (
	"path"
	"slices"
	"strings"

	"toritsugi/internal/workspace"
)

// facts are what the walk over the names sees of how a project is built.
type facts struct {
	root    map[string]workspace.Entry // files in the root that say something
	modules []string                   // directories with a go.mod, "" for the root
	goTests []string                   // directories with Go tests, some twice
	pyTests []workspace.Entry          // the first of Python's
	pyDirs  map[string]bool            // directories with Python tests: "", tests, test, and "/" for any other
	pyInit  map[string]bool            // tests or test is a package
	conf    bool                       // there is a conftest.py
	specs   bool                       // there is spec/…_spec.rb
	more    bool                       // there are more directories of one kind than are kept
}

func newFacts() facts {
	return facts{root: map[string]workspace.Entry{}, pyDirs: map[string]bool{}, pyInit: map[string]bool{}}
}

// Bounds of the facts.
const (
	maxModules = 200
	maxGoTests = 50_000
	maxPyTests = 30
	maxRootEnt = 200
)

// rootNames are files of the root that are looked at.
var rootNames = set("go.mod", "go.sum", "go.work", "package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", ".yarnrc.yml", "bun.lock", "bun.lockb",
	"pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile", "Cargo.toml", "Cargo.lock", "GNUmakefile", "makefile", "Makefile",
	"gradlew", "build.gradle", "build.gradle.kts", "mvnw", "pom.xml", "mix.exs", "mix.lock", "composer.json", "composer.lock", "phpunit.xml", "phpunit.xml.dist", "Gemfile", "Gemfile.lock", "uv.lock", "poetry.lock", ".rspec")

// requirements reports whether a file lists packages for pip, by its path.
func requirements(p string) bool {
	return path.Ext(p) == ".txt" && (path.Dir(p) == "requirements" || path.Dir(p) == "." && strings.Contains(p, "requirements"))
}

// add notes what a file says by its name. Files of the class foreign do not come
// here.
func (f *facts) add(e workspace.Entry, dir, name string, whose class) {
	if at := path.Join(dir, name); (dir == "" && rootNames[name] || requirements(at)) && len(f.root) < maxRootEnt {
		f.root[at] = e
	}
	if dir == "spec" || strings.HasPrefix(dir, "spec/") {
		f.specs = f.specs || strings.HasSuffix(name, "_spec.rb")
	}
	if name == "go.mod" {
		if len(f.modules) < maxModules {
			f.modules = append(f.modules, dir)
		} else {
			f.more = true
		}
	}
	if whose != own {
		return
	}
	switch {
	case strings.HasSuffix(name, "_test.go"):
		if n := len(f.goTests); n == 0 || f.goTests[n-1] != dir && n < maxGoTests {
			f.goTests = append(f.goTests, dir)
		}
	case path.Ext(name) == ".py":
		f.python(e, dir, name)
	}
}

func (f *facts) python(e workspace.Entry, dir, name string) {
	switch {
	case name == "conftest.py":
		f.conf = true
	case name == "__init__.py":
		f.pyInit[dir] = f.pyInit[dir] || dir == "tests" || dir == "test"
	case strings.HasPrefix(name, "test_") || strings.HasSuffix(name, "_test.py"):
		where := "/"
		if strings.HasPrefix(name, "test_") && (dir == "" || dir == "tests" || dir == "test") {
			where = dir // there unittest finds it
		}
		f.pyDirs[where] = true
		if len(f.pyTests) < maxPyTests {
			f.pyTests = append(f.pyTests, e)
		}
	}
}

// tested reports whether there are Go tests in a module: below its directory, and
// not in a module in it.
func (f *facts) tested(module string) bool {
	return slices.ContainsFunc(f.goTests, func(d string) bool {
		return below(d, module) && !slices.ContainsFunc(f.modules, func(m string) bool { return m != module && below(m, module) && below(d, m) })
	})
}

// below reports whether a directory is another one or in it.
func below(d, up string) bool { return up == "" || d == up || strings.HasPrefix(d, up+"/") }

func (f *facts) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { _, ok := f.root[n]; return ok })
}
