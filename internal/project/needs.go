package project

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Needs finds which of the programs and modules that are missing, as package checks
// names them, the files of a commit's root name as dependencies: by each the file, a
// manifest rather than a lock file. setup are the commands that would install them.
func Needs(ctx context.Context, repo Repository, commit string, missing []string) (named map[string]string, setup []string, err error) {
	s := newSurvey(Options{})
	if err := repo.Files(ctx, commit, s.add); err != nil {
		return nil, nil, fmt.Errorf("look for what the project needs: %w", err)
	}
	m, err := readManifests(ctx, &loader{repo: repo, commit: commit}, s)
	if err != nil {
		return nil, nil, fmt.Errorf("look for what the project needs: %w", err)
	}
	named = map[string]string{}
	machine := m.languages(&detected{}) // what these begin with is none of the project's
	for _, what := range missing {
		if slices.ContainsFunc(machine, func(c Check) bool { return "program "+c.Program == what && c.Probe == program(c.Program) }) {
			continue
		}
		if file := m.naming(what); file != "" {
			named[what] = file
		}
	}
	return named, (&Project{Setup: m.setup()}).ToInstall(), nil
}

// notManifests are files of rootNames that name programs and no dependencies.
var notManifests = set("GNUmakefile", "makefile", "Makefile", "gradlew", "mvnw", "pytest.ini", "phpunit.xml", "phpunit.xml.dist", ".rspec", ".yarnrc.yml")

// naming is the file that names what is missing, "" for none: by its name, or, of a
// module that is a part of another, by that one's.
func (m *manifests) naming(what string) string {
	_, name, _ := strings.Cut(what, " ") // program NAME, module NAME
	files := slices.DeleteFunc(slices.Sorted(maps.Keys(m.root)), func(f string) bool { return notManifests[f] })
	slices.SortStableFunc(files, func(a, b string) int { return dullness(a) - dullness(b) })
	for ; name != "" && name != "."; name = upper(name) {
		// PyYAML is imported as yaml, python-dateutil as dateutil.
		parts := regexp.MustCompile(`[-_.]`).Split(name, -1)
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		word := regexp.MustCompile(`(?i)(?:^|[^\w@/.-])(?:py|python-)?` + strings.Join(parts, "[-_.]") + `(?:$|[^\w/-])`)
		for _, f := range files {
			if word.MatchString(m.texts[f]) {
				return f
			}
		}
	}
	return ""
}

// dullness is higher for lock files.
func dullness(file string) int {
	if dullNames[strings.ToLower(path.Base(file))] {
		return 1
	}
	return 0
}

// upper is the module that one is a part of: a of a.b, @a/b of @a/b/c, "" for none. A
// host, or the scope of a package, is none.
func upper(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		if name = name[:i]; !strings.Contains(name, "/") && strings.ContainsAny(name, ".@") {
			return ""
		}
		return name
	}
	return name[:max(0, strings.LastIndexByte(name, '.'))]
}
