package scan

import (
	"strings"

	"toritsugi/internal/lazyregexp"
)

// packageFile finds out whether the scripts in a package.json change, or how its
// tools are set; versions are nothing to look at.
type packageFile struct {
	watched bool
	decides bool   // a check runs them
	told    bool   // once is enough
	section string // of two levels at most, "" for none
	level   int    // indentation of its name
}

var (
	member  = lazyregexp.New(`^(\s*)"([^"]+)"\s*:\s*(.*)$`)
	version = lazyregexp.New(`^"([\^~<>=v]*\d[\w.*-]*( .*)?|\*|latest|next|workspace:.*|npm:.*|file:.*|link:.*|git.*|https?:.*)",?$`)
)

func (p *packageFile) line(f *fileScan, l *line) {
	if !p.watched || p.told {
		return
	}
	m := member().FindStringSubmatch(l.text)
	if m == nil {
		if strings.HasPrefix(strings.TrimSpace(l.text), "}") && p.section != "" && indentOf(l.text) <= p.level {
			p.section = ""
		}
		return
	}
	indent, name, value := len(m[1]), m[2], m[3]
	if strings.HasPrefix(value, "{") && (p.section == "" || indent <= p.level) {
		p.section, p.level = name, indent
	}
	if l.op == ' ' || !p.matters(name, value) {
		return
	}
	p.told = true
	kind := BuildTouched
	if p.decides {
		kind = ChecksConfig
	}
	f.s.add(candidate{Finding: f.at(kind, Scripts, l)})
}

// matters reports whether a member decides what is run.
func (p *packageFile) matters(name, value string) bool {
	switch p.section {
	case "scripts", "jest", "mocha", "ava", "vitest", "nyc", "c8", "husky", "lint-staged", "eslintConfig", "simple-git-hooks", "pre-commit":
		return true
	case "":
	default:
		return false
	}
	switch name {
	case "test", "build", "lint", "check", "ci", "typecheck", "start", "prepare", "install", "postinstall", "preinstall", "pretest", "posttest", "prebuild", "postbuild":
		return strings.HasPrefix(value, `"`) && !version().MatchString(strings.TrimSpace(value))
	}
	return strings.HasPrefix(name, "test:") || strings.HasPrefix(name, "build:") || strings.HasPrefix(name, "lint:")
}
