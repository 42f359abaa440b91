package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
)

// safeConfig is given with every call, of repo and of tree, and wins over the
// repository's own configuration: nothing that a repository or a tree says may
// start a program, reach the network, or leave a process behind.
var safeConfig = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.fsync=all",
	"core.sshCommand=false",
	"core.askPass=",
	"core.alternateRefsCommand=true", // a program; this one names no refs
	"core.editor=false",
	"core.pager=cat",
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"core.quotePath=false",
	"credential.helper=",
	"protocol.allow=never", // GIT_ALLOW_PROTOCOL names what each call may speak
	"submodule.recurse=false",
	"fetch.recurseSubmodules=false",
	"fetch.writeCommitGraph=false",
	"diff.ignoreSubmodules=all",
	"gc.auto=0",
	"maintenance.auto=false",
	"commit.gpgSign=false",
	"tag.gpgSign=false",
	"log.showSignature=false",
	// Memory does not grow with the repository: large files stream, and packs
	// are made by one thread with a window of bounded size.
	"core.bigFileThreshold=32m",
	"core.packedGitLimit=128m",
	"core.packedGitWindowSize=16m",
	"core.deltaBaseCacheLimit=64m",
	"pack.threads=1",
	"pack.windowMemory=64m",
	"checkout.workers=0", // as many as there are processors
}

// repo is a git directory as git outside the sandbox sees it: objects, refs and
// configuration, by an explicit path. It never has a work tree or reads an
// index, for those hold what others wrote; git on these is of type tree.
type repo struct {
	gitDir string
	hold   *os.File // inherited by each git, may be nil; not ours to close
	of     *Source  // whose it is, nil for ours
}

// call is one run of git.
type call struct {
	args    []string
	cfg     []string // more settings, which win over safeConfig
	dir     string   // working directory, "" for "/"; of repo only
	env     []string // more variables
	stdin   []byte
	in      io.Reader // instead of stdin
	out     io.Writer // nil collects the output, at most maxCollected
	write   bool      // may take locks that a mere reader leaves alone
	hold    *os.File  // inherited by git and what it starts
	secret  *os.File  // inherited as descriptor secretFD; see Remote
	secrets []string  // what must not stand in an error
	remote  bool      // it waits for another machine
}

// uploadPack is the other half of a clone or fetch from a Source, which takes no
// settings from this one, and of the variables only what is not git's: commonVar
// names Source.commonDir. Its argument is the directory.
const uploadPack = `--upload-pack=f() { GIT_COMMON_DIR="$` + commonVar + `" GIT_GRAFT_FILE=/nonexistent git -c safe.directory=* -c core.hooksPath=/dev/null -c core.fsmonitor=false upload-pack "$1"; }; f`

const commonVar = "TORI_COMMON_DIR"

// secretFD is where the login of a remote is inherited.
const secretFD = 4

// maxCollected is the most that is kept of what a git prints, in bytes; what
// may be longer is streamed.
const maxCollected = 16 << 20

// What git may take outside the sandbox: objects are strangers' as well. The
// figures are of each process, far above what a large repository needs.
const (
	maxMemory  = 4 << 30  // bytes of its own
	maxFile    = 64 << 30 // bytes of a file that it writes, such as a pack
	maxTime    = time.Hour
	remoteTime = 6 * time.Hour // of one that waits for a network
)

// gitError is a git that ended with a status other than 0.
type gitError struct {
	verb   string
	code   int
	stderr string
}

func (e *gitError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("git %s: exit status %d", e.verb, e.code)
	}
	return fmt.Sprintf("git %s: %s", e.verb, e.stderr)
}

// Unfit reports whether git does not take what is in a tree.
func Unfit(err error) bool {
	e := (*gitError)(nil)
	return errors.As(err, &e) && e.verb == "add"
}

// exitCode returns the status of git if err is one of a git that ran, else -1.
func exitCode(err error) int {
	if e := (*gitError)(nil); errors.As(err, &e) {
		return e.code
	}
	return -1
}

// git runs a read-only git and returns its output.
func (r repo) git(ctx context.Context, args ...string) (string, error) {
	return r.run(ctx, call{args: args})
}

// run runs git on r.
func (r repo) run(ctx context.Context, c call) (string, error) {
	verb := c.args[0]
	c.args, c.hold = append([]string{"--git-dir=" + r.gitDir}, c.args...), r.hold
	if r.of == nil {
		return runGit(ctx, verb, c)
	}
	common, remove, err := r.of.commonDir()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", verb, err)
	}
	defer remove()
	c.env = append(c.env, "GIT_COMMON_DIR="+common)
	out, err := runGit(ctx, verb, c)
	if e := (*gitError)(nil); errors.As(err, &e) { // people know it by its own name
		e.stderr = strings.ReplaceAll(e.stderr, common, r.of.common)
	}
	return out, err
}

// runGit executes git with an environment of its own. The goroutine keeps its
// thread because Pdeathsig is about the death of the thread.
func runGit(ctx context.Context, verb string, c call) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	most := maxTime
	if c.remote {
		most = remoteTime
	}
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	args := make([]string, 0, 2*len(safeConfig)+len(c.args)+1)
	for _, kv := range safeConfig {
		args = append(args, "-c", kv)
	}
	for _, kv := range c.cfg {
		args = append(args, "-c", kv)
	}
	cmd := exec.CommandContext(limited, "git", append(args, c.args...)...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = append(gitEnv(c.write), c.env...)
	// A group of its own: Ctrl-C in the terminal is for us to act on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGTERM) } // lets git remove its lock files, and ends what it started
	cmd.WaitDelay = 5 * time.Second
	if c.hold != nil || c.secret != nil {
		cmd.ExtraFiles = []*os.File{c.hold, c.secret}[:1+b2i(c.secret != nil)]
	}
	if cmd.Stdin = c.in; c.stdin != nil {
		cmd.Stdin = bytes.NewReader(c.stdin)
	}
	var out collected
	cmd.Stdout = poured{&out}
	if c.out != nil {
		cmd.Stdout = poured{c.out}
	}
	complaint := &tail{max: maxComplaint + longest(c.secrets)}
	cmd.Stderr = poured{complaint}
	err := cmd.Start()
	if err == nil {
		err = errors.Join(confine(cmd.Process.Pid), cmd.Wait())
		if limited.Err() != nil {
			_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // what did not end of the other
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if limited.Err() != nil {
		return "", fmt.Errorf("git %s: ended after %s", verb, most)
	}
	var ee *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", i18n.E("workspace.no_git")
	case errors.As(err, &ee):
		return out.String(), &gitError{verb, ee.ExitCode(), complaint.text(c.secrets)}
	case err != nil:
		return "", fmt.Errorf("git %s: %w", verb, err)
	}
	return out.String(), nil
}

// confine bounds what a git outside the sandbox may take.
func confine(pid int) error {
	for what, most := range map[int]uint64{unix.RLIMIT_DATA: maxMemory, unix.RLIMIT_FSIZE: maxFile, unix.RLIMIT_CORE: 0} {
		var old unix.Rlimit
		err := unix.Prlimit(pid, what, nil, &old)
		if err == nil {
			most = min(most, old.Max)
			err = unix.Prlimit(pid, what, &unix.Rlimit{Cur: most, Max: most}, nil)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
			return fmt.Errorf("bound git: %w", err)
		}
	}
	return nil
}

// gitEnv is everything git outside the sandbox knows of the world.
func gitEnv(write bool) []string {
	env := append([]string{"PATH=" + os.Getenv("PATH"), "GIT_IMPLICIT_WORK_TREE=0"}, neutralEnv()...)
	if !write {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	return env
}

// neutralEnv keeps git from what is not the repository's. HOME is nowhere, so
// that no file of the user's is read.
func neutralEnv() []string {
	return []string{
		"HOME=/nonexistent",
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=", // set and empty: nothing is asked, nor is core.askPass looked at
		"GIT_SSH_COMMAND=false",
		"GIT_ALLOW_PROTOCOL=file",
		"GIT_NO_REPLACE_OBJECTS=1",    // refs/replace must not change what a commit means,
		"GIT_GRAFT_FILE=/nonexistent", // nor info/grafts
		"GIT_NO_LAZY_FETCH=1",
	}
}

// line is the one value that a git command printed. Only the line's end goes:
// a path may end with a space or a newline of its own.
func line(s string) string { return strings.TrimSuffix(s, "\n") }

// poured has os/exec fill a writer through a buffer of buffers: most gits say
// little.
type poured struct{ to io.Writer }

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (p poured) Write(b []byte) (int, error) { return p.to.Write(b) }

func (p poured) ReadFrom(r io.Reader) (int64, error) {
	buf, _ := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{p.to}, r, buf[:])
}

// collected is the output of a git that was not streamed.
type collected struct{ bytes.Buffer }

func (c *collected) Write(p []byte) (int, error) {
	if c.Len()+len(p) > maxCollected {
		return 0, fmt.Errorf("more than %d MiB of output", maxCollected>>20)
	}
	return c.Buffer.Write(p)
}

// maxComplaint is how much is kept of what a failing git says, in bytes.
const maxComplaint = 4 << 10

// tail keeps the last max bytes written to it: git says last why it gave up.
type tail struct {
	b     []byte
	max   int
	short bool // of descriptors, as git says in a mere warning
}

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.short = t.short || bytes.Contains(t.b, []byte(": Too many open files\n"))
	if over := len(t.b) - t.max; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// text is what was written, without secrets and without what a terminal would
// act on: a server's words are in it. max holds one secret more than is shown,
// so that none is cut in two.
func (t *tail) text(secrets []string) string {
	s := string(t.b)
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, "[REDACTED]")
	}
	if over := len(s) - maxComplaint; over > 0 {
		s = s[over:]
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.TrimSpace(s)
}

func longest(all []string) (n int) {
	for _, s := range all {
		n = max(n, len(s))
	}
	return n
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// literal makes a pathspec that matches path and what is below it, and nothing else.
func literal(path string) string { return ":(top,literal)" + filepath.ToSlash(path) }

// exclude is the pathspec that leaves path out.
func exclude(path string) string { return ":(top,literal,exclude)" + path }

// maxRecord is the longest record that is taken from git, in bytes: a path of
// the kernel's 4096 and what git says of it.
const maxRecord = 64 << 10

// gitter is a repo or a tree.
type gitter interface {
	run(ctx context.Context, c call) (string, error)
}

// records runs git and calls each with every record of its output that ends
// with a NUL, without it, as they come; the slice is valid during the call. An
// error of each ends git and is returned.
func records(ctx context.Context, r gitter, c call, each func(rec []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &recordWriter{each: each, stop: cancel}
	c.out = w
	_, err := r.run(ctx, c)
	switch {
	case w.err != nil:
		return w.err
	case err == nil && len(bytes.TrimSpace(w.part)) > 0:
		return fmt.Errorf("git %s: output ends in the middle of %q", c.args[0], w.part[:min(len(w.part), 100)])
	}
	return err
}

type recordWriter struct {
	each func([]byte) error
	stop func()
	part []byte
	err  error
}

func (w *recordWriter) Write(p []byte) (int, error) {
	for rest := p; ; {
		rec, after, found := bytes.Cut(rest, []byte{0})
		w.part = append(w.part, rec...)
		if len(w.part) > maxRecord {
			w.err = fmt.Errorf("git printed a record of more than %d KiB", maxRecord>>10)
		}
		if w.err == nil && !found {
			return len(p), nil
		}
		if w.err == nil {
			w.err = w.each(w.part)
		}
		if w.err != nil {
			w.stop()
			return 0, w.err
		}
		w.part, rest = w.part[:0], after
	}
}
