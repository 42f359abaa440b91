package confined

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/sandbox"
)

// interpreters are programs whose first argument that is no option is a program, too.
var interpreters = lazyregexp.New(`^(node|nodejs|deno|bun|tsx|python[0-9.]*|pypy[0-9.]*|ruby|perl|php|java|lua|(ba|da|z)?sh)$`)

// serverProgram is what a server's command needs to be started in the sandbox.
type serverProgram struct {
	argv []string // the program by its whole path where the sandbox's PATH does not find it
	dir  string   // of the program then, for what stands beside it; "" else
	own  []string // directories, or single files, outside the system's that are its own
}

// findProgram finds the program of argv in path, a PATH, and its script where
// it is an interpreter.
func findProgram(argv []string, path string) serverProgram {
	p := serverProgram{argv: slices.Clone(argv)}
	if !strings.Contains(argv[0], "/") && lookIn(sandbox.SystemPath, argv[0]) == "" {
		if file := lookIn(path, argv[0]); file != "" {
			p.argv[0], p.dir = file, filepath.Dir(file)
		}
	}
	files := p.argv[:1]
	if interpreters().MatchString(filepath.Base(argv[0])) {
		if i := slices.IndexFunc(argv[1:], func(s string) bool { return !strings.HasPrefix(s, "-") }); i >= 0 {
			files = append(slices.Clone(files), argv[1+i])
		}
	}
	home, _ := os.UserHomeDir() // none is none to keep
	for _, f := range files {
		real, err := filepath.EvalSymlinks(f)
		if err != nil || !filepath.IsAbs(f) || !regular(real) {
			continue
		}
		for _, f := range []string{filepath.Clean(f), real} {
			if own := packageOf(f, home); !ofSystem(f) && !slices.Contains(p.own, own) {
				p.own = append(p.own, own)
			}
		}
	}
	return p
}

// lookIn returns the file of a program in a PATH, "" for none.
func lookIn(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && regular(file) {
			return file
		}
	}
	return ""
}

func regular(file string) bool {
	st, err := os.Stat(file)
	return err == nil && st.Mode().IsRegular()
}

// ofSystem reports whether every command in the sandbox sees a file.
func ofSystem(file string) bool {
	return slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"}, func(d string) bool { return strings.HasPrefix(file, d) })
}

// packageOf is the directory of what a program is installed as: all modules beside
// it, the nearest package of Node or environment of Python, the parent of bin and
// lib, or else the directory that it lies in. It is the file itself where that
// would be a home or a directory that many share.
func packageOf(file, home string) string {
	if i := strings.Index(file, "/node_modules/"); i >= 0 {
		return file[:i] + "/node_modules"
	}
	there := func(name ...string) bool {
		_, err := os.Stat(filepath.Join(name...))
		return err == nil
	}
	shared := func(dir string) bool {
		return filepath.Dir(dir) == "/" || strings.HasPrefix(home+"/", dir+"/") || filepath.Base(dir) == ".local"
	}
	dir := filepath.Dir(file)
	for d := dir; !shared(d); d = filepath.Dir(d) {
		if there(d, "package.json") || there(d, "pyvenv.cfg") || d != dir && filepath.Base(dir) == "bin" && d == filepath.Dir(dir) && there(d, "lib") {
			return d
		}
	}
	if shared(dir) {
		return file
	}
	return dir
}

// hint says what a program that failed may have wanted; "" where nothing can be said.
func (p serverProgram) hint(code int) string {
	outside := func(word string) bool {
		_, err := os.Stat(word)
		return err == nil && filepath.IsAbs(word) && !ofSystem(word)
	}
	switch {
	case code == 0:
		return ""
	case code == 127:
		return "; a program that is not on the PATH is named in mcp_servers[].command by its whole path"
	case len(p.own) > 0:
		return fmt.Sprintf("; besides the system's directories it reads %s, and what sandbox.read_only_paths names", strings.Join(p.own, ", "))
	case slices.ContainsFunc(p.argv, outside):
		return "; it reads the system's directories, and what sandbox.read_only_paths names"
	}
	return ""
}
