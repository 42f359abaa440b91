package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"toritsugi/internal/disk"
)

// maxRewritten is the largest file in which a work tree's path is looked for,
// in bytes: scripts and settings, not programs.
const maxRewritten = 128 << 10

// copier copies files between two directories and leaves neither, whatever
// links are in them. Where old is set, it becomes new in links and small texts:
// the scripts of a virtualenv name the place they were made for.
type copier struct {
	from, to *os.Root
	old, new []byte
	link     bool    // regular files become hard links to those of from, which nobody writes to any more
	room     *budget // nil for no bound
}

// budget is how much may still be copied.
type budget struct {
	files int
	bytes int64
}

var errTooMuch = errors.New("more than is copied")

// take takes one entry of a size from the budget.
func (b *budget) take(size int64) error {
	if b == nil {
		return nil
	}
	if b.files--; b.files < 0 {
		return fmt.Errorf("%w: too many files", errTooMuch)
	}
	if b.bytes -= size; b.bytes < 0 {
		return fmt.Errorf("%w: too many bytes", errTooMuch)
	}
	return nil
}

// copy copies name and all below it. Devices, pipes and sockets are left out;
// set-user-id bits are dropped.
func (c *copier) copy(ctx context.Context, name string) error {
	name = strings.TrimSuffix(name, "/")
	if dir := path.Dir(name); dir != "." {
		if err := c.to.MkdirAll(dir, disk.DirMode); err != nil {
			return err
		}
	}
	if err := c.any(ctx, name); err != nil {
		return fmt.Errorf("copy %q: %w", name, err)
	}
	return nil
}

// any copies whatever is at p. A link is never followed: what it is, is asked
// of the link itself.
func (c *copier) any(ctx context.Context, p string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := c.from.Lstat(p)
	if err != nil {
		return err
	}
	size := info.Size()
	if !info.Mode().IsRegular() || c.link {
		size = 0
	}
	if err := c.room.take(size); err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return c.dir(ctx, p, info)
	case info.Mode().IsRegular():
		return c.file(p, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := c.from.Readlink(p)
		if err != nil {
			return err
		}
		if rest, ok := strings.CutPrefix(target, string(c.old)+"/"); ok && c.old != nil {
			target = string(c.new) + "/" + rest
		}
		return c.to.Symlink(target, p)
	}
	return nil
}

// dir copies a directory; its mode comes last, for it may forbid to write.
func (c *copier) dir(ctx context.Context, p string, info fs.FileInfo) error {
	if err := c.to.Mkdir(p, disk.DirMode); err != nil {
		return err
	}
	if err := eachEntry(c.from, p, func(e fs.DirEntry) error { return c.any(ctx, path.Join(p, e.Name())) }); err != nil {
		return err
	}
	return errors.Join(c.to.Chtimes(p, info.ModTime(), info.ModTime()), c.to.Chmod(p, info.Mode().Perm()))
}

func (c *copier) file(p string, info fs.FileInfo) (err error) {
	if c.link { // neither path has a link in it: from was walked, and to is ours
		return os.Link(filepath.Join(c.from.Name(), p), filepath.Join(c.to.Name(), p))
	}
	in, err := disk.OpenIn(c.from, p, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := c.to.OpenFile(p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, disk.FileMode)
	if err != nil {
		return err
	}
	if c.old != nil && info.Size() <= maxRewritten {
		var data []byte
		if data, err = disk.ReadAll(in, p, maxRewritten); err == nil {
			if bytes.Contains(data, c.old) && bytes.IndexByte(data, 0) < 0 {
				data = bytes.ReplaceAll(data, c.old, c.new)
			}
			_, err = out.Write(data)
		}
	} else {
		_, err = io.Copy(out, in)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return errors.Join(c.to.Chtimes(p, info.ModTime(), info.ModTime()), c.to.Chmod(p, info.Mode().Perm()))
}
