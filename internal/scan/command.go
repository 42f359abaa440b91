package scan

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Named lists the files that a check command names, or that decide what it does
// by being where its tool looks: for Options.CheckFiles, sorted. Paths are as
// they would be in the top directory; whether they exist is not looked at. A
// command that is no shell script names its words.
func Named(command string) []string {
	var all []string
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil {
		all = named(strings.Fields(command))
	} else {
		syntax.Walk(file, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.CallExpr); ok {
				var words []string
				for _, w := range call.Args {
					words = append(words, plain(w))
				}
				all = append(all, named(words)...)
			}
			return true
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// plain is a word without its quotes; "" where it depends on something.
func plain(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, p := range part.Parts {
				lit, ok := p.(*syntax.Lit)
				if !ok {
					return ""
				}
				b.WriteString(lit.Value)
			}
		default:
			return ""
		}
	}
	return b.String()
}

// named are the files of one call.
func named(words []string) []string {
	var all []string
	for _, w := range words {
		if _, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(w, "-") {
			w = value
		}
		if w == "" || strings.HasPrefix(w, "-") || strings.HasPrefix(w, "/") || strings.ContainsAny(w, "*?\x00\n") || strings.HasSuffix(w, "...") {
			continue
		}
		if p := path.Clean(w); p != "." && !strings.HasPrefix(p, "..") && (strings.Contains(p, "/") || strings.Contains(p, ".")) {
			all = append(all, p)
		}
	}
	for i, w := range words {
		if i < 4 { // npx jest, uv run pytest, python -m pytest
			all = append(all, reads(path.Base(w))...)
		}
	}
	return all
}

// reads are the files that a program takes its orders from.
func reads(program string) []string {
	switch program {
	case "make", "gmake":
		return []string{"Makefile", "GNUmakefile", "makefile"}
	case "just":
		return []string{"justfile"}
	case "task":
		return []string{"Taskfile.yml", "Taskfile.yaml"}
	case "npm", "pnpm", "yarn", "bun":
		return []string{"package.json"}
	case "pytest", "py.test":
		return []string{"pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "conftest.py"}
	case "tox":
		return []string{"tox.ini", "pyproject.toml", "setup.cfg"}
	case "nox":
		return []string{"noxfile.py"}
	case "jest":
		return []string{"package.json", "jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs", "jest.config.json"}
	case "vitest":
		return []string{"vitest.config.ts", "vitest.config.js", "vitest.config.mts", "vite.config.ts", "vite.config.js"}
	case "golangci-lint":
		return []string{".golangci.yml", ".golangci.yaml", ".golangci.toml"}
	case "mvn":
		return []string{"pom.xml"}
	case "gradle", "gradlew":
		return []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}
	case "rake":
		return []string{"Rakefile"}
	case "rspec":
		return []string{".rspec"}
	case "phpunit":
		return []string{"phpunit.xml", "phpunit.xml.dist"}
	case "cmake", "ctest":
		return []string{"CMakeLists.txt"}
	}
	return nil
}
