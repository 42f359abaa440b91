package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
)

// Box says how git is confined that looks at files which others wrote: in a
// sandbox of its own, which the commands of the task do not see (docs/decisions/023).
type Box struct {
	Shell    func(sandbox.Spec) (sandbox.Runner, error)
	MemoryMB int // of each process and of all together; 0 for defaultMemory
	// MaxFileMB is the size, in MiB, above which a file is in no snapshot and no
	// commit; 0 for defaultMaxFile.
	MaxFileMB int
}

func (b Box) maxFile() int64 { return int64(cmp.Or(b.MaxFileMB, defaultMaxFile)) << 20 }

// What git may take in the sandbox; a checkout may be large.
const (
	defaultMemory  = 2 << 10 // MiB
	defaultMaxFile = 256     // MiB
	maxWritten     = 64 << 30
	maxMade        = 10_000_000
	// maxStored is how many bytes all snapshots of a run may take: as many as its
	// commands may write.
	maxStored = sandbox.DefaultDisk
	maxDepth  = 4096 // descriptors: git has a directory and all above it open, and a path has fewer
)

// What each git in the sandbox may take of a processor, many times what it needs:
// matching patterns of .gitignore and .gitattributes, git takes as long as who wrote
// them likes.
const (
	cpuUnseen  = 10 * time.Minute // of a tree that nobody has looked at yet
	cpuLeast   = time.Minute      // of one that somebody has, with what follows
	cpuPerPath = 500 * time.Microsecond
	cpuPerMiB  = 50 * time.Millisecond
	// wallPerCPU is how much longer it may take where it waits for a disk, or for
	// others on a processor.
	wallPerCPU = 10
)

// box is the sandbox of git, made when it is first needed.
type box struct {
	Box
	spec sandbox.Spec
	repo repo // read in it, with what that borrows from

	stored int64 // see maxStored

	mu     sync.Mutex
	runner sandbox.Runner
	closed bool
	cpu    time.Duration // what a git may take
}

// newBox prepares the sandbox of a git that may write to dirs, the first of
// which is where it stands, and read a repository.
func newBox(b Box, r repo, dirs ...string) *box {
	env := map[string]string{"GIT_OPTIONAL_LOCKS": "0"}
	for _, kv := range slices.Concat(neutralEnv(), settings(0, split(safeConfig))) {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	if b.MemoryMB == 0 {
		b.MemoryMB = defaultMemory
	}
	return &box{Box: b, repo: r, stored: maxStored, cpu: cpuUnseen, spec: sandbox.Spec{
		Workspace: dirs[0], Writable: dirs[1:], ReadOnly: []string{r.gitDir}, Env: env, MemoryMB: b.MemoryMB,
		Limits: sandbox.Limits{Disk: maxWritten, NewFiles: maxMade, OpenFiles: maxDepth},
	}}
}

// setting is one of git's.
type setting struct{ key, value string }

// split makes settings of words as git -c takes them.
func split(all []string) []setting {
	cfg := make([]setting, len(all))
	for i, kv := range all {
		cfg[i].key, cfg[i].value, _ = strings.Cut(kv, "=")
	}
	return cfg
}

// settings are variables that give git settings, the first of which is number n.
func settings(n int, cfg []setting) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(n+len(cfg))}
	for i, s := range cfg {
		at := strconv.Itoa(n + i)
		env = append(env, "GIT_CONFIG_KEY_"+at+"="+s.key, "GIT_CONFIG_VALUE_"+at+"="+s.value)
	}
	return env
}

// looked takes note of how large the tree is. One that was larger may be laid again.
func (b *box) looked(l look) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := cpuLeast + time.Duration(l.paths)*cpuPerPath + time.Duration(l.bytes>>20)*cpuPerMiB
	if b.cpu == cpuUnseen || of > b.cpu {
		b.cpu = of
	}
}

// open returns the sandbox, and what a git in it may take of a processor.
func (b *box) open(ctx context.Context) (r sandbox.Runner, cpu time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, 0, errors.New("the workspace is closed")
	case b.Shell == nil:
		return nil, 0, errors.New("git on a work tree needs a sandbox")
	case b.runner != nil:
		return b.runner, b.cpu, nil
	}
	borrowed, err := alternates(ctx, filepath.Join(b.repo.gitDir, "objects"))
	if err != nil {
		return nil, 0, err
	}
	spec := b.spec
	spec.ReadOnly = slices.Concat(spec.ReadOnly, borrowed)
	if r, err = b.Shell(spec); err != nil {
		return nil, 0, fmt.Errorf("sandbox of git: %w", err)
	}
	b.runner = r
	return r, b.cpu, nil
}

// depth is how deep a directory may lie for git to enter it, with all above it open.
func (b *box) depth() int {
	most := b.spec.Limits.OpenFiles
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		most = min(most, int(min(files.Max, math.MaxInt32))/2) // as the sandbox has it
	}
	return most - 64 // which git opens besides
}

// close ends the sandbox and what is in it.
func (b *box) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.runner == nil {
		return nil
	}
	err := b.runner.Close()
	b.runner = nil
	return err
}

// tree is a repository with a work tree. Whatever reads or writes files in one,
// an index, or a git directory that such a git has written, runs in the sandbox.
type tree struct {
	box      *box
	gitDir   string
	workTree string
	env      []string
}

// run runs git on t.
func (t tree) run(ctx context.Context, c call) (string, error) {
	return t.script(ctx, c.args[0], `exec git "$@"`, c)
}

// scripted is a script as a gitter.
type scripted struct {
	tree
	verb, text string
}

func (s scripted) run(ctx context.Context, c call) (string, error) {
	return s.script(ctx, s.verb, s.text, c)
}

// exports bounds each git and makes variables of the arguments before "--".
const exports = `ulimit -S -t "$1" 2>&-; shift; until [ "$1" = -- ]; do export "$1"; shift; done; shift; `

// script runs a script of sh, in which each git is on t, and c.args are its
// arguments. verb names it in errors.
func (t tree) script(ctx context.Context, verb, script string, c call) (string, error) {
	runner, cpu, err := t.box.open(ctx)
	if err != nil {
		return "", fmt.Errorf("git %s: %w", verb, err)
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	args := slices.Concat([]string{"/bin/sh", "-c", exports + script, "sh", strconv.Itoa(int(cpu.Seconds()) + 1), "GIT_DIR=" + t.gitDir, "GIT_WORK_TREE=" + t.workTree},
		t.env, c.env, settings(len(safeConfig), split(c.cfg)), []string{"--"}, c.args)
	most := min(wallPerCPU*cpu, maxTime)
	p, err := runner.Start(limited, sandbox.Command{Args: args, Timeout: most})
	if err != nil {
		return "", fmt.Errorf("git %s: %w", verb, err)
	}
	var out collected
	if c.out == nil {
		c.out = &out
	}
	complaint := &tail{max: maxComplaint}
	var pipes sync.WaitGroup
	pipes.Go(func() {
		_, _ = io.Copy(p.Stdin, cmp.Or[io.Reader](c.in, bytes.NewReader(c.stdin))) // git says what it misses
		_ = p.Stdin.Close()
	})
	pipes.Go(func() { _, _ = io.Copy(complaint, p.Stderr) })
	_, werr := io.Copy(c.out, p.Stdout)
	if werr != nil {
		cancel()
	}
	exit, err := p.Wait()
	_ = p.Stdin.Close()
	pipes.Wait()
	_ = errors.Join(p.Stdout.Close(), p.Stderr.Close())
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case werr != nil:
		return "", fmt.Errorf("git %s: %w", verb, werr)
	case err != nil:
		return "", fmt.Errorf("git %s: %w", verb, err)
	case exit.TimedOut:
		return "", i18n.E("workspace.git_time", verb, most)
	case exit.Code == 128+int(unix.SIGXCPU):
		return "", i18n.E("workspace.git_time", verb, cpu.Round(time.Second))
	case exit.Limit != "":
		return "", &gitError{verb, exit.Code, fmt.Sprintf("it went past the limit of the sandbox on %s: %s", exit.Limit, exit.Bound)}
	case exit.Code == 127:
		return "", i18n.E("workspace.no_git")
	case exit.Code != 0, complaint.short: // git leaves the directory out, and goes on
		return out.String(), &gitError{verb, exit.Code, complaint.text(nil)}
	}
	return out.String(), nil
}
