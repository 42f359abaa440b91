package tool

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// session is what lasts from one command to the next: the directory and the
// exported variables. Each command is a shell of its own in a sandbox of its
// own, so it is told what was, in front of its script, and says at its end what
// is, in its output between two marks that are taken out again.
type session struct {
	w  *workspaceFiles
	mu sync.Mutex

	dir  string            // relative to the workspace
	set  map[string]string // exported since the run began
	gone map[string]bool   // taken away since
}

// Bounds of what a command may leave, in bytes.
const (
	maxSession = 24 << 10 // names and values, as they are written before the next script
	maxReport  = 1 << 20  // all that a command says of its environment
)

func newSession(w *workspaceFiles) *session {
	return &session{w: w, dir: ".", set: map[string]string{}, gone: map[string]bool{}}
}

// begun is a command as it is to be run.
type begun struct {
	script string
	input  string   // what the script reads
	own    *reports // takes what it says of itself out of the output
}

// begin returns the script that runs command in what the session has become,
// and, with report, says at its end what it leaves.
func (s *session) begin(command string, report bool, out io.Writer) begun {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b, vars strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.set)) {
		fmt.Fprintf(&vars, "export %s=%s\n", k, quoted(s.set[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(s.gone)) {
		fmt.Fprintf(&vars, "unset %s\n", k)
	}
	if vars.Len() > 0 {
		// A script is an argument, which everybody on the machine can see in the
		// list of processes, and a variable may hold a token.
		b.WriteString(`eval "$(command -p cat)"; exec </dev/null; `)
	}
	fd := freeDescriptor(command)
	r := &reports{out: &terminal{out: out}, mark: newMark()}
	if report && fd != 0 {
		env := ""
		fmt.Fprintf(&b, "exec %d>&1; ", fd)
		if r.variables = mayAssign(command); r.variables {
			env = "command -p env -0; "
			fmt.Fprintf(&b, "{ printf '\\000%s<'; %sprintf '\\000%s>'; } >&%d 2>/dev/null; ", r.mark, env, r.mark, fd)
		}
		fmt.Fprintf(&b, "trap %s EXIT; ", quoted(fmt.Sprintf("{ set +eux; command cd -P .; command printf '\\000%s<%%s\\000' \"$PWD\"; "+
			"%scommand printf '\\000%s>'; } 2>/dev/null >&%d", r.mark, env, r.mark, fd)))
	}
	if strings.Contains(command, "|") {
		b.WriteString("case $BASH_VERSION in ?*) set -o pipefail ;; *) if (set -o pipefail) 2>/dev/null; then set -o pipefail; fi ;; esac; ")
	}
	// As text for eval the command keeps its own line numbers, and what is wrong
	// with it is not shown together with what stands before it.
	b.WriteString("eval " + quoted(command))
	return begun{b.String(), vars.String(), r}
}

// mayAssign reports whether a command has anything by which sh changes a
// variable. Most have not, and need not start env twice.
func mayAssign(command string) bool {
	words := []string{"=", "export", "unset", ". ", ".\t", "source", "eval", "declare", "typeset", "read", "for", "select", "getopts", "printf -v", "printf '-v", "printf \"-v", "mapfile", "let", "((", "coproc", "wait", "set"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(command, word) })
}

// freeDescriptor is one that command does not use by its number, 0 for none.
func freeDescriptor(command string) int {
	for fd := 9; fd > 3; fd-- {
		if !strings.Contains(command, fmt.Sprintf("%d>", fd)) && !strings.Contains(command, fmt.Sprintf("%d<", fd)) {
			return fd
		}
	}
	return 0
}

// newMark is text that no output has by chance.
func newMark() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "tori:" + hex.EncodeToString(b[:])
}

// quoted is s as one word of sh.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// reports passes on the output of a command without what it says of itself
// between NUL mark < and NUL mark >.
type reports struct {
	out       *terminal
	mark      string
	variables bool // the command says its environment, before and after

	held []byte   // may be the beginning of a mark, or is a report under way
	in   bool     // held is a report
	all  [][]byte // those that were whole
	over bool     // one was too long
}

// Write fails only where out does.
func (r *reports) Write(p []byte) (int, error) {
	r.held = append(r.held, p...)
	for {
		if r.in {
			end := bytes.Index(r.held, []byte("\x00"+r.mark+">"))
			if end < 0 {
				if len(r.held) > maxReport {
					r.over, r.in = true, false
					r.held = r.held[:0]
				}
				return len(p), nil
			}
			r.all = append(r.all, slices.Clone(r.held[:end]))
			r.held = append(r.held[:0], r.held[end+len(r.mark)+2:]...)
			r.in = false
		}
		mark := []byte("\x00" + r.mark + "<")
		i := bytes.Index(r.held, mark)
		if i >= 0 {
			if err := r.pass(i); err != nil {
				return 0, err
			}
			r.held = append(r.held[:0], r.held[len(mark):]...)
			r.in = true
			continue
		}
		// What may still become a mark waits.
		keep := 0
		if j := bytes.LastIndexByte(r.held, 0); j >= 0 && bytes.HasPrefix(mark, r.held[j:]) {
			keep = len(r.held) - j
		}
		return len(p), r.pass(len(r.held) - keep)
	}
}

func (r *reports) pass(n int) error {
	if n == 0 {
		return nil
	}
	_, err := r.out.Write(r.held[:n])
	r.held = append(r.held[:0], r.held[n:]...)
	return err
}

// flush passes on what waits, once the command has ended. A report that was cut
// off is dropped.
func (r *reports) flush() error {
	if r.in {
		return r.out.flush()
	}
	return errors.Join(r.pass(len(r.held)), r.out.flush())
}

// end takes over what a command left, where it said so, and returns what the
// model should know of it, "" for nothing.
func (s *session) end(r *reports) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.over {
		return "its variables were too large and are not kept"
	}
	want := 1
	if r.variables {
		want = 2
	}
	if len(r.all) != want {
		return ""
	}
	pwd, after, _ := bytes.Cut(r.all[want-1], []byte{0})
	note := s.changeDir(string(pwd))
	if r.variables && !s.keep(variables(r.all[0]), variables(after)) {
		note = join(note, fmt.Sprintf("the exported variables are longer than %d bytes and are not kept", maxSession))
	}
	return note
}

// changeDir takes over the directory in which a command ended.
func (s *session) changeDir(pwd string) string {
	for _, top := range s.w.dirs {
		for _, name := range []func(string) string{filepath.Clean, realPath} { // the first is the usual one
			rel, err := filepath.Rel(name(top), pwd)
			if err != nil || !filepath.IsLocal(rel) || !filepath.IsAbs(pwd) {
				continue
			}
			s.dir = filepath.ToSlash(rel)
			return ""
		}
	}
	s.dir = "."
	return clip(s.w.shown(pwd), 200) + " is outside of the workspace; the next command runs in the workspace"
}

func realPath(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	return p
}

// keep takes over what a command changed in its environment; false where that
// is too much, and then nothing is.
func (s *session) keep(before, after map[string]string) bool {
	set, gone := maps.Clone(s.set), maps.Clone(s.gone)
	for k, v := range after {
		if was, had := before[k]; !had || was != v {
			set[k] = v
			delete(gone, k)
		}
	}
	for k := range before {
		if _, has := after[k]; !has {
			delete(set, k)
			gone[k] = true
		}
	}
	size := 0
	for k, v := range set {
		size += len(k) + len(quoted(v))
	}
	for k := range gone {
		size += len(k)
	}
	if size > maxSession {
		return false
	}
	s.set, s.gone = set, gone
	return true
}

// variables parses the output of env -0 but for what each shell sets anew.
func variables(b []byte) map[string]string {
	vars := map[string]string{}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		k, v, ok := strings.Cut(string(kv), "=")
		if !ok || !isVariable(k) {
			continue
		}
		switch k {
		case "_", "PWD", "OLDPWD", "SHLVL", "BASHOPTS", "SHELLOPTS", "BASHPID", "PPID", "UID", "EUID":
			continue
		}
		vars[k] = v
	}
	return vars
}

// isVariable reports whether sh can assign to k.
func isVariable(k string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	return k != "" && strings.Contains(letters, k[:1]) && strings.Trim(k, letters+"0123456789") == ""
}

// where returns the directory that the next command runs in, and gone, the one
// it was left in, where that is no more.
func (s *session) where() (dir, gone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != "." {
		info, err := s.w.root.Stat(s.dir)
		if err != nil || !info.IsDir() {
			gone, s.dir = s.dir, "."
		}
	}
	return s.dir, gone
}

// join puts two notes together.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
