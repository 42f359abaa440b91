package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// write lays files into a directory, over whatever is there: what stands in the
// way of a path, a link or a file in the place of a directory, goes. Nothing
// outside the directory is reached.
func write(dir string, files []File) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only names are looked up in it
	for _, f := range files {
		if err := writeFile(root, f); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}

func writeFile(root *os.Root, f File) error {
	for i, r := range f.Path {
		if r != '/' {
			continue
		}
		parent := f.Path[:i]
		if st, err := root.Lstat(parent); err == nil && st.IsDir() {
			continue
		}
		if err := root.RemoveAll(parent); err != nil {
			return err
		}
		if err := root.Mkdir(parent, 0o700); err != nil {
			return err
		}
	}
	if err := root.RemoveAll(f.Path); err != nil {
		return err
	}
	return root.WriteFile(f.Path, f.Data, f.Mode()|0o600)
}

// git runs git on what only we and the house wrote, with nobody's settings.
func (r *runner) git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	// A fixed time and author give the same commits each time.
	cmd.Env = []string{"PATH=" + r.o.Env.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=eval", "GIT_AUTHOR_EMAIL=eval@localhost", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME=eval", "GIT_COMMITTER_EMAIL=eval@localhost", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z"}
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return errors.Join(err, ctx.Err())
}

// repository makes the base commit of a case.
func (r *runner) repository(ctx context.Context, c *Case, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := write(dir, c.Repo); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "--quiet", "--template=", "--initial-branch=main"}, {"add", "--all", "--force"}, {"commit", "--quiet", "--message=Start"}} {
		if err := r.git(ctx, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// copyPlain copies files and links, named relative to from, into to. Links are
// copied as links; nothing is followed.
func copyPlain(from, to string, names []string) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // only read from
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = dst.Close() }() // only names are looked up in it
	for _, n := range names {
		if err := copyOne(src, dst, n); err != nil {
			return fmt.Errorf("copy %s: %w", n, err)
		}
	}
	return nil
}

func copyOne(src, dst *os.Root, name string) error {
	st, err := src.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) { // listed, and removed
		return nil
	}
	if err != nil {
		return err
	}
	if err := dst.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		to, err := src.Readlink(name)
		if err != nil {
			return err
		}
		return dst.Symlink(to, name)
	case !st.Mode().IsRegular():
		return nil
	}
	in, err := src.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read from
	out, err := dst.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, st.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// removeAll removes a directory, also where a command took away the right to.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(p, 0o700) //nolint:gosec // to be removed
		}
		return nil
	})
	return os.RemoveAll(dir)
}
