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
	"syscall"
	"time"

	"toritsugi/internal/i18n"
)

// safeConfig is given with every call and wins over the repository's own
// configuration: nothing that a repository or a tree says may start a program,
// reach the network, or leave a process behind.
var safeConfig = []string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.untrackedCache=false",
	"core.fsync=all",
	"core.sshCommand=false",
	"core.editor=false",
	"core.pager=cat",
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"core.quotePath=false",
	"credential.helper=",
	"protocol.ext.allow=never",
	"submodule.recurse=false",
	"fetch.recurseSubmodules=false",
	"fetch.writeCommitGraph=false",
	"diff.ignoreSubmodules=all",
	"gc.auto=0",
	"maintenance.auto=false",
	"commit.gpgSign=false",
	"tag.gpgSign=false",
	"log.showSignature=false",
	"safe.directory=*", // we name the directories ourselves; nothing in them is executed
}

// repo is a repository as our git sees it: always by explicit paths, so that
// no .git in the tree decides where git looks.
type repo struct {
	gitDir   string
	workTree string   // "" for none
	hold     *os.File // inherited by each git, may be nil; not ours to close
}

// call is one run of git.
type call struct {
	args  []string
	cfg   string   // one more setting, which wins over safeConfig
	dir   string   // working directory, "" for "/"
	env   []string // more variables
	stdin []byte
	out   io.Writer // nil collects the output
	write bool      // may take locks that a mere reader leaves alone
	hold  *os.File  // inherited by git and what it starts
}

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
	where := []string{"--git-dir=" + r.gitDir}
	if r.workTree != "" {
		where = append(where, "--work-tree="+r.workTree)
		if c.dir == "" {
			c.dir = r.workTree
		}
	}
	c.args, c.hold = append(where, c.args...), r.hold
	return runGit(ctx, verb, c)
}

// runGit executes git with an environment of its own. The goroutine keeps its
// thread because Pdeathsig is about the death of the thread.
func runGit(ctx context.Context, verb string, c call) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	args := make([]string, 0, 2*len(safeConfig)+len(c.args)+1)
	for _, kv := range safeConfig {
		args = append(args, "-c", kv)
	}
	if c.cfg != "" {
		args = append(args, "-c", c.cfg)
	}
	cmd := exec.CommandContext(ctx, "git", append(args, c.args...)...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = append(gitEnv(c.write), c.env...)
	// A group of its own: Ctrl-C in the terminal is for us to act on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // lets git remove its lock files
	cmd.WaitDelay = 5 * time.Second
	if c.hold != nil {
		cmd.ExtraFiles = []*os.File{c.hold}
	}
	if c.stdin != nil {
		cmd.Stdin = bytes.NewReader(c.stdin)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if c.out != nil {
		cmd.Stdout = c.out
	}
	complaint := &tail{max: 4 << 10}
	cmd.Stderr = complaint
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	var ee *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", i18n.E("workspace.no_git")
	case errors.As(err, &ee):
		return out.String(), &gitError{verb, ee.ExitCode(), strings.TrimSpace(string(complaint.b))}
	case err != nil:
		return "", fmt.Errorf("git %s: %w", verb, err)
	}
	return out.String(), nil
}

// gitEnv is everything git knows of the world. HOME is nowhere, so that no
// file of the user's is read.
func gitEnv(write bool) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=/nonexistent",
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1", // refs/replace must not change what a commit means
		"GIT_NO_LAZY_FETCH=1",
	}
	if !write {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	return env
}

// line is the one value that a git command printed. Only the line's end goes:
// a path may end with a space or a newline of its own.
func line(s string) string { return strings.TrimSuffix(s, "\n") }

// tail keeps the last max bytes written to it: git says last why it gave up.
type tail struct {
	b   []byte
	max int
}

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - t.max; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// literal makes a pathspec that matches path and what is below it, and nothing else.
func literal(path string) string { return ":(top,literal)" + filepath.ToSlash(path) }

// exclude is the pathspec that leaves path out.
func exclude(path string) string { return ":(top,literal,exclude)" + path }
