package workspace

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk/disktest"
)

// Whatever the configuration of a user's repository says, no git outside the
// sandbox hears it: nothing is run, no other file is opened, and the work is done.
// git is one that does not know GIT_NO_LAZY_FETCH.
func TestHostileConfiguration(t *testing.T) {
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	old := t.TempDir()
	disktest.Program(t, filepath.Join(old, "git"), "#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec "+real+" \"$@\"\n")
	t.Setenv("PATH", old+":"+os.Getenv("PATH"))
	const missing = "1111111111111111111111111111111111111111"
	promises := "[extensions]\n\tpartialClone = origin\n[core]\n\trepositoryformatversion = 1\n" +
		"[remote \"origin\"]\n\turl = /nonexistent\n\tpromisor = true\n\tpartialclonefilter = blob:none\n\tuploadpack = %[1]s\n"
	for name, c := range map[string]struct {
		config string // %[1]s is a trap, %[2]s a pipe that nobody writes to, %[3]s another file of the user
		head   string // where the branch stands instead
		key    string // of the error that Inspect gives
	}{
		"a missing commit is fetched": {config: promises, head: missing, key: "workspace.lost_commit"},
		"a promise":                   {config: promises},
		"a promise of a remote only":  {config: strings.Replace(promises, "partialClone", "noop", 1), head: missing, key: "workspace.lost_commit"},
		"lists of objects to pass":    {config: "[fetch]\n\tfsckObjects = true\n[transfer]\n\tfsckObjects = true\n[fetch \"fsck\"]\n\tskipList = %[3]s\n[fsck]\n\tskipList = %[3]s\n[receive \"fsck\"]\n\tskipList = %[3]s\n"},
		"such a list that waits":      {config: "[fetch]\n\tfsckObjects = true\n[fetch \"fsck\"]\n\tskipList = %[2]s\n"},
		"a bundle":                    {config: "[fetch]\n\tbundleURI = %[2]s\n"},
		"an included pipe":            {config: "[include]\n\tpath = %[2]s\n"},
		"one of a user's directory":   {config: "[include]\n\tpath = ~root/..%[2]s\n"},
		"one of the prefix":           {config: "[include]\n\tpath = \"%%(prefix)/../../../../../../..%[2]s\"\n"},
		"one on a condition":          {config: "[includeIf \"gitdir:/**\"]\n\tpath = %[2]s\n[includeIf \"onbranch:**\"]\n\tpath = %[2]s\n[includeIf \"hasconfig:remote.*.url:**\"]\n\tpath = %[2]s\n"},
		"a file that is no setting":   {config: "[include]\n\tpath = %[3]s\n"},
		"it includes itself":          {config: "[include]\n\tpath = config\n"},
		"programs":                    {config: "[core]\n\tsshCommand = %[1]s\n\tgitProxy = %[1]s\n\talternateRefsCommand = %[1]s\n[uploadpack]\n\tpackObjectsHook = %[1]s\n[gpg]\n\tprogram = %[1]s\n[hook \"x\"]\n\tevent = reference-transaction\n\tcommand = %[1]s\n"},
		"files":                       {config: "[core]\n\tattributesFile = %[2]s\n\texcludesFile = %[2]s\n[mailmap]\n\tfile = %[2]s\n[blame]\n\tignoreRevsFile = %[2]s\n[http]\n\tcookieFile = %[2]s\n[commit]\n\ttemplate = %[2]s\n"},
		"other addresses":             {config: "[url \"ext::%[1]s \"]\n\tinsteadOf = /\n[protocol]\n\tallow = always\n"},
		"other names of refs":         {config: "[fetch]\n\tprune = true\n[transfer]\n\thideRefs = refs\n[uploadpack]\n\thideRefs = refs\n"},
		"settings of this work tree":  {config: "[extensions]\n\tworktreeConfig = true\n"},
		"a format that nobody knows":  {config: "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trunThis = %[1]s\n", key: "workspace.extension"},
		"refs in a place of its own":  {config: "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = files://%[3]s\n", key: "workspace.extension"},
		"a version that nobody knows": {config: "[core]\n\trepositoryformatversion = 7\n", key: "workspace.unreadable"},
		"a value of several lines":    {config: "[core]\n\tautocrlf = \"false\\n[core]\\n\\tsshCommand = %[1]s\"\n"},
		"a real one of many years":    {config: "[remote \"origin\"]\n\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\trebase = true\n[pull]\n\trebase = true\n[alias]\n\tst = !%[1]s\n[credential]\n\thelper = store\n[lfs]\n\trepositoryformatversion = 0\n[lfs \"https://example.org\"]\n\taccess = basic\n[filter \"lfs\"]\n\tclean = %[1]s\n\tprocess = %[1]s\n\trequired = true\n[submodule]\n\tactive = .\n[gui]\n\twmstate = normal\n[sendemail]\n\tsmtpserver = x\n[merge]\n\ttool = vimdiff\n[gc]\n\tauto = 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			trace, pipe, secret := filepath.Join(dir, "trace"), filepath.Join(dir, "pipe"), filepath.Join(dir, "secret")
			run := trap(t, filepath.Join(dir, "run"), trace)
			write(t, secret, "private words\n")
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			path := newRepo(t, "repo")
			f, err := os.OpenFile(filepath.Join(path, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = fmt.Fprintf(f, c.config+"#%.0[1]s%.0[2]s%.0[3]s\n", run, pipe, secret)
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(path, ".git/config.worktree"), "[core]\n\tsshCommand = "+run+"\n[fetch]\n\tbundleURI = "+pipe+"\n")
			if c.head != "" {
				write(t, filepath.Join(path, ".git/refs/heads/main"), c.head+"\n")
			}
			ctx, end := context.WithTimeout(t.Context(), 2*time.Minute) // of one that waits at the pipe
			defer end()
			id, err := wholeWay(ctx, t, path)
			if key(err) != c.key || c.key == "" && err != nil {
				t.Errorf("%v", err)
			}
			if err != nil && strings.Contains(err.Error(), "private") {
				t.Errorf("it quotes a file: %v", err)
			}
			if got, err := os.ReadFile(trace); err == nil {
				t.Errorf("executed:\n%s", got)
			}
			if err == nil {
				if at, err := os.ReadFile(filepath.Join(path, ".git/refs/heads/tori/issue-1-x")); err != nil || strings.TrimSpace(string(at)) != id {
					t.Errorf("delivered %s, %v", at, err)
				}
			}
		})
	}
}

// wholeWay takes a repository from the look at it to a branch that is delivered,
// whose commit it returns.
func wholeWay(ctx context.Context, t *testing.T, path string) (string, error) {
	t.Helper()
	s, err := Inspect(ctx, path, InspectOptions{Box: walls()})
	if err != nil {
		return "", err
	}
	if _, err := FreeBranch(ctx, s, "tori/issue-1-x"); err != nil {
		return "", err
	}
	w, err := Create(ctx, CreateOptions{Box: walls(), Source: s, Dir: filepath.Join(t.TempDir(), "w"), Branch: "tori/issue-1-x"})
	if err != nil {
		return "", err
	}
	defer func() { _ = w.Close() }()
	write(t, filepath.Join(w.Tree(), "f"), "x\n")
	id, err := w.Commit(ctx, CommitOptions{Message: "x", When: when})
	if err == nil {
		err = w.CheckDeliver(ctx)
	}
	if err == nil {
		err = w.Deliver(ctx)
	}
	return id, err
}

// A git that is ended takes along what it started.
func TestEndedGit(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nexec 3>" + pipe + "\necho >&3\nsleep 1000 </dev/null >/dev/null 2>&1 &\nwait\n"
	disktest.Program(t, filepath.Join(dir, "git"), script)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	held, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := nowhere.git(ctx, "fetch")
		ended <- err
	}()
	if err := held.SetReadDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	for n := 0; n == 0; { // it has begun
		if n, err = held.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := held.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // somebody has it open
		t.Errorf("what it started goes on: %v", err)
	}
}

// What is left out of a tree is bounded in number and in bytes, for it is kept.
func TestTooManyApart(t *testing.T) {
	t.Parallel()
	var l looker
	for range maxApart {
		if err := l.leave(&l.nested, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.leave(&l.large, "b"); key(err) != "workspace.too_many_apart" || !strings.Contains(err.Error(), "b") {
		t.Errorf("number: %v", err)
	}
	dir := t.TempDir()
	below := strings.Repeat(strings.Repeat("d", 199)+"/", 14)
	if err := os.MkdirAll(filepath.Join(dir, below), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxApartBytes/len(below) + 1 {
		if err := os.WriteFile(filepath.Join(dir, below, strconv.Itoa(i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := lookAt(t.Context(), dir, maphash.MakeSeed(), nil, 0, 100, time.Now()); key(err) != "workspace.too_many_apart" {
		t.Errorf("bytes: %v", err)
	}
	var p rawParser
	for range maxChanges/(len(below)+64) + 1 {
		if err := errors.Join(p.record([]byte(":000000 100644 0 1 A")), p.record([]byte(below))); err != nil {
			if key(err) != "workspace.too_many_changes" {
				t.Error(err)
			}
			return
		}
	}
	t.Error("changes have no end")
}
