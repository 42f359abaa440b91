package scan

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// behind finds the files that commands name, and those that what they run names:
// recipes of makefiles, scripts of shells and of package.json. They are read as they
// were before the change: one that it touches is a finding itself.
type behind struct {
	read func(path string) (string, error) // "" where there is no such file; nil reads nothing
	all  map[string]bool
	done map[string]bool // what was followed
	left int             // files that are still read
	err  error
}

// maxBehind is the most files that are read.
const maxBehind = 50

func (b *behind) text(name string) string {
	if b.read == nil || b.left == 0 || b.err != nil || strings.HasPrefix(name, "..") {
		return ""
	}
	b.left--
	text, err := b.read(name)
	b.err = err
	return text
}

// first reports whether something is met for the first time.
func (b *behind) first(what ...string) bool {
	key := strings.Join(what, "\x00")
	seen := b.done[key]
	b.done[key] = true
	return !seen
}

// command follows a command, or a shell script, that runs in one of dirs.
func (b *behind) command(dirs []string, command string) {
	if !b.first(append(dirs, command)...) {
		return
	}
	for _, words := range calls(command) {
		if words[0] == "cd" && len(words) == 2 {
			dirs = slices.Concat(dirs, in(dirs, words[1:]))
		}
		for _, f := range in(dirs, filesOf(words)) {
			if b.all[f] = true; b.first("script", f) {
				if text := b.text(f); shellScript(f, text) {
					b.command(append(slices.Clone(dirs), path.Dir(f)), text)
				}
			}
		}
		for i, w := range words[:min(len(words), 4)] { // as in env, time, xvfb-run
			switch path.Base(w) {
			case "make", "gmake":
				b.make(dirs, words[i+1:])
			case "npm", "pnpm", "yarn", "bun":
				b.scripts(dirs, words[i+1:])
			default:
				continue
			}
			break
		}
	}
}

// in are names in each of dirs.
func in(dirs, names []string) (all []string) {
	for _, d := range dirs {
		for _, n := range names {
			all = append(all, path.Join(d, n))
		}
	}
	return all
}

func shellScript(name, text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	return strings.HasSuffix(name, ".sh") || strings.HasSuffix(name, ".bash") || bang().MatchString(line)
}

var bang = lazyregexp.New(`^#!.*\b(ba|da|z|k)?sh\b`)

// scripts follows those of package.json that a call of npm and its like names.
func (b *behind) scripts(dirs, words []string) {
	for i, w := range words[:max(0, len(words)-1)] {
		if w == "-C" || w == "--prefix" || w == "--cwd" {
			dirs = in(dirs, words[i+1:i+2])
		}
	}
	for _, d := range dirs {
		var file struct{ Scripts map[string]string }
		if err := json.Unmarshal([]byte(b.text(path.Join(d, "package.json"))), &file); err != nil {
			continue // npm would not run it either
		}
		for name, script := range file.Scripts {
			bare := strings.TrimPrefix(strings.TrimPrefix(name, "pre"), "post")
			if slices.ContainsFunc(words, func(w string) bool { return w == name || w == bare || w == "t" && bare == "test" }) {
				b.command([]string{d}, script)
			}
		}
	}
}

// make follows the recipes of what a call of make asks for, and of what that needs.
func (b *behind) make(dirs, words []string) {
	files, targets := []string{"GNUmakefile", "makefile", "Makefile"}, []string(nil)
	for i, w := range words {
		switch before := words[max(0, i-1)]; {
		case before == "-C" && i > 0:
			dirs = in(dirs, []string{w})
		case before == "-f" && i > 0:
			files = []string{w}
			for _, f := range in(dirs, files) {
				b.all[f] = true
			}
		case !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") && w != "":
			targets = append(targets, w)
		}
	}
	for _, d := range dirs {
		m := makefile{vars: map[string]string{"MAKE": "make"}, rules: map[string]*rule{}, read: map[string]bool{}}
		for _, f := range in([]string{d}, files) {
			m.include(b, d, f)
		}
		if len(targets) == 0 {
			targets = []string{m.goal}
		}
		for todo := slices.Clone(targets); len(todo) > 0; todo = todo[1:] {
			r := m.rules[todo[0]]
			if r == nil || !b.first("target", d, todo[0]) {
				continue
			}
			needs := strings.Fields(m.expand(r.needs))
			todo = append(todo, needs...)
			for _, c := range r.recipe {
				c = strings.NewReplacer("$<", strings.Join(needs[:min(len(needs), 1)], ""), "$^", strings.Join(needs, " "), "$@", todo[0], "$$", "$").Replace(m.expand(c))
				b.command([]string{d}, strings.TrimLeft(c, "@+- \t"))
			}
		}
	}
}

// makefile is what is understood of one and of those that it includes.
type makefile struct {
	vars  map[string]string
	rules map[string]*rule
	goal  string // the first target
	read  map[string]bool
}

type rule struct {
	needs  string
	recipe []string
}

var (
	makeSet     = lazyregexp.New(`^\s*(?:export\s+|override\s+)*([\w.-]+)\s*[:?+]*=\s*(.*)$`)
	makeInclude = lazyregexp.New(`^\s*[s-]?include\s+(.*)$`)
	makeRule    = lazyregexp.New(`^([^\s#:=][^:=#]*)::?([^=].*)?$`)
	makeVar     = lazyregexp.New(`\$[({]([\w.-]+)[)}]`)
)

// expand replaces the variables of a text, and those of their values.
func (m *makefile) expand(s string) string {
	for range 4 {
		if len(s) > maxLine {
			break
		}
		s = makeVar().ReplaceAllStringFunc(s, func(v string) string { return m.vars[v[2:len(v)-1]] })
	}
	return s
}

// include reads a makefile in a directory.
func (m *makefile) include(b *behind, dir, name string) {
	if m.read[name] {
		return
	}
	m.read[name] = true
	var current []*rule
	for l := range strings.Lines(strings.ReplaceAll(b.text(name), "\\\n", " ")) {
		l = strings.TrimRight(l, "\r\n")
		if recipe, ok := strings.CutPrefix(l, "\t"); ok {
			for _, r := range current {
				r.recipe = append(r.recipe, recipe)
			}
		} else if found := makeInclude().FindStringSubmatch(l); found != nil {
			for _, f := range in([]string{dir}, strings.Fields(m.expand(found[1]))) {
				b.all[f] = true
				m.include(b, dir, f)
			}
		} else if found := makeSet().FindStringSubmatch(l); found != nil {
			m.vars[found[1]] = strings.TrimSpace(m.vars[found[1]] + " " + found[2])
		} else if found := makeRule().FindStringSubmatch(l); found != nil {
			current = nil
			needs, inline, _ := strings.Cut(found[2], ";")
			for _, t := range strings.Fields(m.expand(found[1])) {
				if m.goal == "" && !strings.HasPrefix(t, ".") {
					m.goal = t
				}
				r := m.rules[t]
				if r == nil {
					r = &rule{}
					m.rules[t] = r
				}
				r.needs += " " + needs
				r.recipe = append(r.recipe, inline)
				current = append(current, r)
			}
		}
	}
}
