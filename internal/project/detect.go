package project

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/workspace"
)

// Check is a command that a project's files let expect to judge it.
type Check struct {
	Command string
	Program string // what it needs, for people: npm, pytest …; "" for one that the project names itself
	Probe   string // shell: succeeds where Program can be used; "" where nobody has to ask
	Source  string // what says so: a path, for people
	// Else stand for it where its program is missing.
	Else []Check
	// Reuse is, of a setup, what stands for it where a checkout has that.
	Reuse workspace.Reuse
}

// detected is what the files of the root let expect.
type detected struct {
	checks []Check
	setup  []Check
	notes  []string
}

// maxChecks is how many checks are detected at most, maxNestedGo how many of
// them for Go modules in directories.
const (
	maxChecks   = 10
	maxNestedGo = 5
	maxManifest = 256 << 10 // bytes of a file that are read
)

// detect decides on checks and setup. What the rules of the root name in a block
// tori-checks counts first, then a target test of the makefile, then what each
// language has.
func detect(ctx context.Context, l *loader, s *survey) (d detected, err error) {
	m, err := readManifests(ctx, l, s)
	if err != nil {
		return d, err
	}
	d.setup = m.setup()
	if d.checks = m.named(&d); d.checks != nil {
		return d, nil
	}
	d.checks = m.languages(&d)
	if n := len(d.checks); n > maxChecks {
		d.notes = append(d.notes, fmt.Sprintf("%d more checks are left out", n-maxChecks))
		d.checks = d.checks[:maxChecks]
	}
	if name := m.makeTest(); name != "" {
		d.checks = []Check{{Command: "make test", Program: "make", Probe: program("make"), Source: name, Else: d.checks}}
	}
	return d, nil
}

// languages are what each language has.
func (m *manifests) languages(d *detected) (all []Check) {
	for _, find := range []func(*detected) []Check{m.golang, m.node, m.python, m.rust, m.jvm, m.others} {
		all = append(all, find(d)...)
	}
	return all
}

// program is a probe for a program on the PATH.
func program(name string) string { return "command -v " + name }

// manifests are the contents of the files that tell of a project.
type manifests struct {
	*facts
	texts map[string]string // by path
	rules []workspace.Entry // of the root
}

func readManifests(ctx context.Context, l *loader, s *survey) (*manifests, error) {
	m := &manifests{facts: &s.facts, texts: map[string]string{}}
	var all []workspace.Entry
	for _, name := range slices.Sorted(maps.Keys(s.facts.root)) {
		all = append(all, s.facts.root[name])
	}
	for _, c := range s.rules.root {
		w := []ruleEntry{{Rule{Path: c.Path}, c}}
		if err := l.follow(ctx, w); err != nil {
			return nil, err
		}
		if c.ID = w[0].entry.ID; c.ID != "" {
			m.rules = append(m.rules, c)
		}
	}
	all = slices.Concat(all, m.rules, s.facts.pyTests)
	var ids []string
	for _, e := range all {
		if e.Mode != workspace.ModeLink || slices.Contains(m.rules, e) {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	blobs, err := l.repo.Blobs(ctx, slices.Compact(ids), maxManifest)
	for _, e := range all {
		m.texts[e.Path] = strings.TrimPrefix(string(blobs[e.ID].Data), "\uFEFF")
	}
	return m, err
}

// named are the checks that a file of rules in the root names.
func (m *manifests) named(d *detected) (all []Check) {
	for _, e := range m.rules {
		commands, problem := namedChecks(m.texts[e.Path])
		if problem != "" {
			d.notes = append(d.notes, e.Path+": "+problem)
		}
		for _, c := range commands {
			all = append(all, Check{Command: c, Source: e.Path})
		}
		if all != nil {
			break
		}
	}
	return all
}

// makeTest is the makefile that has a target test, "" for none.
func (m *manifests) makeTest() string {
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} { // make takes the first of them
		if !m.has(name) {
			continue
		}
		for line := range strings.Lines(m.texts[name]) {
			targets, rest, rule := strings.Cut(line, ":")
			rest = strings.TrimLeft(rest, ":")
			if rule && !strings.HasPrefix(line, "\t") && !strings.ContainsAny(targets, "=#") && !strings.HasPrefix(rest, "=") && slices.Contains(strings.Fields(targets), "test") {
				return name
			}
		}
		return ""
	}
	return ""
}

// golang are the checks of Go: of the modules that go.work names together, or of
// the root and of each other module with tests.
func (m *manifests) golang(d *detected) (all []Check) {
	check := func(command, source string) Check {
		return Check{Command: command, Program: "go", Probe: program("go"), Source: source}
	}
	if m.has("go.work") {
		var patterns []string
		for _, use := range uses(m.texts["go.work"]) {
			switch dir := path.Clean(use); {
			case dir == "." && m.has("go.mod"):
				patterns = append(patterns, "./...")
			case slices.Contains(m.modules, dir):
				patterns = append(patterns, word("./"+dir+"/..."))
			}
		}
		if patterns != nil {
			return []Check{check("go test "+strings.Join(patterns, " "), "go.work")}
		}
	}
	if m.has("go.mod") {
		all = append(all, check("go test ./...", "go.mod"))
	}
	left := 0
	for _, dir := range m.modules {
		if dir == "" || hasExample(dir) || classOf(dir) != own || !m.tested(dir) {
			continue
		}
		if left++; left <= maxNestedGo {
			all = append(all, check("cd "+word(dir)+" && go test ./...", dir+"/go.mod"))
		}
	}
	if left > maxNestedGo || m.more {
		d.notes = append(d.notes, "not all Go modules in directories are checked")
	}
	return all
}

// hasExample tells modules that go test of the root would leave out, too, and
// examples, which need what is not there.
func hasExample(dir string) bool {
	return slices.ContainsFunc(strings.Split(dir, "/"), func(p string) bool {
		return strings.HasPrefix(p, "_") || strings.HasPrefix(p, ".") || strings.HasPrefix(strings.ToLower(p), "example")
	})
}

// uses are the directories that a go.work names.
func uses(text string) (all []string) {
	block := false
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case block && f[0] == ")":
			block = false
		case block:
			all = append(all, strings.Trim(f[0], `"`+"`"))
		case f[0] == "use" && len(f) > 1 && f[1] == "(" || f[0] == "use(":
			block = true
		case f[0] == "use" && len(f) > 1:
			all = append(all, strings.Trim(f[1], `"`+"`"))
		}
	}
	return all[:min(len(all), maxModules)]
}

// word is one word of a shell command.
func word(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// node is the test script of package.json, run by the manager that the lock file
// is of.
func (m *manifests) node(d *detected) []Check {
	if !m.has("package.json") {
		return nil
	}
	var p struct {
		Scripts map[string]json.RawMessage `json:"scripts"`
	}
	if err := json.Unmarshal([]byte(m.texts["package.json"]), &p); err != nil {
		d.notes = append(d.notes, "package.json cannot be read: "+err.Error())
		return nil
	}
	var script string
	if json.Unmarshal(p.Scripts["test"], &script) != nil || strings.TrimSpace(script) == "" || strings.Contains(script, "no test specified") {
		return nil
	}
	manager := m.manager()
	command := manager + " test"
	if manager == "bun" {
		command = "bun run test" // bun test is something else
	}
	return []Check{{Command: command, Program: manager, Probe: program(manager), Source: "package.json"}}
}

// manager is the package manager of a project for Node.
func (m *manifests) manager() string {
	var p struct {
		Manager string `json:"packageManager"`
	}
	if json.Unmarshal([]byte(m.texts["package.json"]), &p) == nil {
		if name, _, _ := strings.Cut(p.Manager, "@"); slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, name) {
			return name
		}
	}
	switch {
	case m.has("pnpm-lock.yaml"):
		return "pnpm"
	case m.has("yarn.lock"):
		return "yarn"
	case m.has("bun.lock", "bun.lockb"):
		return "bun"
	}
	return "npm"
}

var pytestWord = lazyregexp.New(`\bpytest\b`)

// python is pytest where there are tests and anything speaks of it, or where they
// are plain functions; unittest where all that is there speaks of that.
func (m *manifests) python(*detected) []Check {
	if len(m.pyDirs) == 0 {
		return nil
	}
	source, pytest, unit := "", m.conf, false
	for _, name := range slices.Sorted(maps.Keys(m.root)) {
		switch name {
		case "pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile", "setup.py":
		default:
			if !requirements(name) {
				continue
			}
		}
		source = cmp.Or(source, name)
		pytest = pytest || name == "pytest.ini" || pytestWord().MatchString(m.texts[name])
	}
	for _, e := range m.pyTests {
		pytest = pytest || pytestWord().MatchString(m.texts[e.Path])
		unit = unit || strings.Contains(m.texts[e.Path], "unittest")
	}
	source = cmp.Or(source, m.pyTests[0].Path)
	if pytest || !unit {
		return []Check{pyCheck(".venv/bin/python3", "-m pytest", "pytest", source, pyCheck("python3", "-m pytest", "pytest", source))}
	}
	args := ""
	for _, dir := range []string{"tests", "test"} {
		switch {
		case !m.pyDirs[dir] || args != "":
		case m.pyInit[dir]:
			args = " discover -s " + dir + " -t ."
		default:
			args = " discover -s " + dir
		}
	}
	if args == "" && !m.pyDirs[""] {
		return nil // unittest would find nothing, and call that success
	}
	return []Check{pyCheck(".venv/bin/python3", "-m unittest"+args, "unittest", source, pyCheck("python3", "-m unittest"+args, "unittest", source))}
}

// pyCheck is a check by a module of Python. It is looked for without what the
// directory holds.
func pyCheck(interpreter, args, module, source string, other ...Check) Check {
	name := "python3"
	if module == "pytest" {
		name = "pytest"
	}
	return Check{Command: interpreter + " " + args, Program: name, Probe: interpreter + " -I -c 'import " + module + "'", Source: source, Else: other}
}

var workspaceTable = lazyregexp.New(`(?m)^\s*\[workspace[\].]`)

func (m *manifests) rust(*detected) []Check {
	if !m.has("Cargo.toml") {
		return nil
	}
	command := "cargo test"
	if workspaceTable().MatchString(m.texts["Cargo.toml"]) {
		command += " --workspace"
	}
	return []Check{{Command: command, Program: "cargo", Probe: program("cargo"), Source: "Cargo.toml"}}
}

// jvm is Gradle or Maven.
func (m *manifests) jvm(*detected) []Check {
	c, build := m.builder()
	switch build {
	case "":
		return nil
	case "pom.xml":
		c.Command += " -B"
	}
	c.Command += " test"
	return []Check{c}
}

// builder starts Gradle or Maven, by the wrapper where there is one, which needs
// Java; build is the file that they read.
func (m *manifests) builder() (c Check, build string) {
	for _, name := range []string{"build.gradle.kts", "build.gradle", "pom.xml"} {
		if build == "" && m.has(name) {
			build = name
		}
	}
	wrapper, tool := "gradlew", "gradle"
	if build == "pom.xml" {
		wrapper, tool = "mvnw", "mvn"
	}
	c = Check{Command: tool, Program: tool, Probe: program(tool), Source: build}
	if m.has(wrapper) {
		c.Command, c.Program, c.Probe = "sh ./"+wrapper, "java", program("java")
		if m.root[wrapper].Mode == workspace.ModeProgram {
			c.Command = "./" + wrapper
		}
	}
	return c, build
}

// others are Elixir, PHP and Ruby.
func (m *manifests) others(*detected) (all []Check) {
	if m.has("mix.exs") {
		all = append(all, Check{Command: "mix test", Program: "mix", Probe: program("mix"), Source: "mix.exs"})
	}
	if m.has("composer.json") {
		var p struct {
			Scripts map[string]json.RawMessage `json:"scripts"`
		}
		if json.Unmarshal([]byte(m.texts["composer.json"]), &p) == nil && len(bytes.TrimSpace(p.Scripts["test"])) > 0 {
			all = append(all, Check{Command: "composer test", Program: "composer", Probe: program("composer"), Source: "composer.json"})
		} else if m.has("phpunit.xml", "phpunit.xml.dist") {
			all = append(all, Check{Command: "vendor/bin/phpunit", Program: "phpunit", Probe: "command -v php && test -f vendor/bin/phpunit", Source: "composer.json"})
		}
	}
	if m.has("Gemfile") && m.specs && (m.has(".rspec") || strings.Contains(m.texts["Gemfile"], "rspec")) {
		all = append(all, Check{Command: "bundle exec rspec", Program: "bundle", Probe: program("bundle"), Source: "Gemfile"})
	}
	return all
}

// forTests matches the lists of what tests need.
var forTests = lazyregexp.New(`\b(?:dev|develop|development|tests?|testing)\b`)

// loads are the commands that load what is named by the files behind them, of which
// those with a + between them have to be there together. Of the rows of one language
// the first counts. $build is Gradle or
// Maven, which resolve what tests need as they begin them; $lists are Python's requirements.
var loads = [][4]string{
	{"go", "go", "go mod download", "go.mod+go.sum go.work"},
	{"node", "npm", "npm ci", "package.json+package-lock.json package.json+npm-shrinkwrap.json"},
	{"node", "yarn", "yarn install --immutable", "package.json+.yarnrc.yml+yarn.lock"},
	{"node", "yarn", "yarn install --frozen-lockfile", "package.json+yarn.lock"},
	{"node", "pnpm", "pnpm install --frozen-lockfile", "package.json+pnpm-lock.yaml"},
	{"node", "bun", "bun install --frozen-lockfile", "package.json+bun.lock package.json+bun.lockb"},
	{"python", "uv", "uv sync --frozen --no-python-downloads", "uv.lock"},
	{"python", "poetry", "POETRY_VIRTUALENVS_IN_PROJECT=true poetry sync", "poetry.lock"},
	{"python", "python3", "python3 -m venv .venv && .venv/bin/pip install$lists", "$lists"},
	{"rust", "cargo", "cargo fetch --locked", "Cargo.lock"},
	{"java", "", "$build testClasses && { $build test --continue --tests none.None || :; }", "build.gradle.kts build.gradle"},
	{"java", "", "$build -B test -Dtest='*#none' -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false", "pom.xml"},
	{"elixir", "mix", "mix deps.get", "mix.lock"},
	{"php", "composer", "composer install", "composer.lock"},
	{"ruby", "bundle", "bundle config set --local path vendor/bundle && bundle install", "Gemfile.lock"},
}

// products are what the loads of a language leave in the project's root, what of it
// they write last, and what succeeds where it can be used.
var products = map[string][3]string{
	"node":   {"node_modules", "node_modules/.package-lock.json node_modules/.yarn-integrity node_modules/.yarn-state.yml node_modules/.modules.yaml", "node -e ''"},
	"python": {".venv", ".venv/lib/python*/site-packages", ".venv/bin/python3 -c ''"},
}

var severalPackages = lazyregexp.New(`"workspaces"\s*:`)

// setup are the commands that load what the project needs.
func (m *manifests) setup() (all []Check) {
	language, manager := "", m.manager()
	build, _ := m.builder()
	lists, install := "", ""
	for _, name := range slices.Sorted(maps.Keys(m.root)) {
		if requirements(name) && (name == "requirements.txt" || forTests().MatchString(name)) {
			lists, install = lists+"+"+name, install+" -r "+word(name)
		}
	}
	for _, l := range loads {
		if l[0] == language || l[0] == "node" && l[1] != manager {
			continue
		}
		for files := range strings.FieldsSeq(strings.Replace(l[3], "$lists", strings.TrimPrefix(lists, "+"), 1)) {
			names := strings.Split(files, "+")
			if l[0] == language || slices.ContainsFunc(names, func(n string) bool { return !m.has(n) }) {
				continue
			}
			language = l[0]
			c := Check{Command: strings.Replace(l[2], "$lists", install, 1), Program: l[1], Probe: program(l[1]), Source: names[len(names)-1]}
			several := language == "node" && (m.has("pnpm-workspace.yaml") || severalPackages().MatchString(m.texts["package.json"])) // each has its own
			if p, ok := products[language]; ok && !several {
				c.Reuse = workspace.Reuse{Locks: names[len(names)-1:], Product: p[0], Marks: strings.Fields(p[1]), Proof: p[2]}
			}
			if l[3] == "$lists" {
				c.Reuse.Locks = names
			}
			if language == "java" {
				c.Command, c.Program, c.Probe = strings.ReplaceAll(l[2], "$build", build.Command), build.Program, build.Probe
			}
			all = append(all, c)
		}
	}
	return all
}
