package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"toritsugi/internal/disk"
)

// fillUpper makes a layer what the base's is. What is so already stays: to make
// and remove thousands of files for each check costs a file system more than to
// look at them.
func (w *Workspace) fillUpper(ctx context.Context, to string) error {
	base, err := os.OpenRoot(w.layer(LayerBase))
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }()
	top, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = top.Close() }()
	if err := keepOnly(top, func(d fs.DirEntry) bool { return d.IsDir() && d.Name() == goBuild }); err != nil {
		return err
	}
	b := &budget{maxSeedFiles, maxSeedBytes}
	if err := layGoBuild(ctx, base, top, b); err != nil {
		return err
	}
	return layParts(ctx, base, top, b)
}

// keepOnly removes what is in a directory and not wanted.
func keepOnly(dir *os.Root, wanted func(fs.DirEntry) bool) error {
	return eachEntry(dir, ".", func(d fs.DirEntry) error {
		if wanted(d) {
			return nil
		}
		if dir.RemoveAll(d.Name()) == nil {
			return nil
		}
		return removeAll(filepath.Join(dir.Name(), d.Name()))
	})
}

// layGoBuild lays the go command's cache: the entries of its index are copied,
// and the outputs that they name, which are known by the hash of what they hold
// and never changed, are linked to. For what is missing or cannot be used, the
// go command builds anew.
func layGoBuild(ctx context.Context, base, top *os.Root, b *budget) error {
	st, err := base.Lstat(goBuild)
	if errors.Is(err, fs.ErrNotExist) {
		return top.RemoveAll(goBuild)
	}
	if err != nil || !st.IsDir() {
		return err
	}
	parts := map[string]bool{}
	if err := layDir(ctx, base, top, goBuild, b, func(d fs.DirEntry) bool {
		part := d.IsDir() && len(d.Name()) == 2
		if part {
			parts[d.Name()] = true
		}
		return part
	}); err != nil {
		return err
	}
	for name := range parts {
		if err := layDir(ctx, base, top, path.Join(goBuild, name), b, func(fs.DirEntry) bool { return false }); err != nil {
			return err
		}
	}
	return nil
}

// layDir makes one directory of top what base's is; directories that are laid
// by another call are left as they are.
func layDir(ctx context.Context, base, top *os.Root, p string, b *budget, another func(fs.DirEntry) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := top.MkdirAll(p, disk.DirMode); err != nil {
		return err
	}
	from, err := base.OpenRoot(p)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := top.OpenRoot(p)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	want := map[string]fs.DirEntry{}
	if err := eachEntry(from, ".", func(d fs.DirEntry) error {
		want[d.Name()] = d
		return b.take(0)
	}); err != nil {
		return err
	}
	there := map[string]bool{}
	if err := keepOnly(to, func(d fs.DirEntry) bool {
		w, ok := want[d.Name()]
		there[d.Name()] = ok && (another(w) && d.IsDir() || sameEntry(from, to, w, d))
		return there[d.Name()]
	}); err != nil {
		return err
	}
	for name, d := range want {
		if there[name] || another(d) {
			continue
		}
		if isOutput(d) {
			err = to.Symlink(filepath.Join(from.Name(), name), name)
		} else {
			err = layIndex(from, to, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isOutput reports what the go command's cache names in its index.
func isOutput(d fs.DirEntry) bool {
	return strings.HasSuffix(d.Name(), "-d") && (d.IsDir() || d.Type().IsRegular())
}

// sameEntry reports that is, of to, is what would be laid there for d, of from.
func sameEntry(from, to *os.Root, d, is fs.DirEntry) bool {
	if isOutput(d) {
		at, err := to.Readlink(is.Name())
		return err == nil && at == filepath.Join(from.Name(), d.Name())
	}
	info, err := is.Info()
	if err != nil || !d.Type().IsRegular() || !info.Mode().IsRegular() || info.Mode().Perm() != disk.FileMode {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Nlink != 1 || info.Size() >= maxIndex {
		return false
	}
	a, err := readIndex(from, d.Name())
	if err != nil {
		return false
	}
	b, err := readIndex(to, d.Name())
	return err == nil && bytes.Equal(a, b)
}

// maxIndex is more than an entry of the index in the go command's cache has, in
// bytes.
const maxIndex = 16 << 10

func readIndex(dir *os.Root, name string) ([]byte, error) {
	f, err := disk.OpenIn(dir, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxIndex))
	return data, errors.Join(err, f.Close())
}

// layIndex copies one small file.
func layIndex(from, to *os.Root, d fs.DirEntry) error {
	if !d.Type().IsRegular() {
		return nil
	}
	data, err := readIndex(from, d.Name())
	if err != nil || len(data) == maxIndex {
		return err
	}
	return to.WriteFile(d.Name(), data, disk.FileMode)
}

// layParts lays the caches of other tools, each below a name of its own: a small
// one is copied, of a large one there is the base's, read-only. Gradle's is its
// home, which it has to write to.
func layParts(ctx context.Context, base, top *os.Root, b *budget) error {
	if err := top.MkdirAll(xdg, disk.DirMode); err != nil {
		return err
	}
	if _, err := base.Lstat(xdg); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return eachEntry(base, xdg, func(d fs.DirEntry) error {
		p := path.Join(xdg, d.Name())
		part := &budget{maxPartFiles, maxPartBytes}
		if d.Name() == "gradle" {
			part = b
		}
		c := copier{from: base, to: top, room: part}
		err := c.copy(ctx, p)
		if !errors.Is(err, errTooMuch) {
			return err
		}
		if err := top.RemoveAll(p); err != nil {
			return err
		}
		if err := b.take(0); err != nil {
			return err
		}
		return top.Symlink(filepath.Join(base.Name(), p), p)
	})
}

// eachEntry calls each with what is in a directory.
func eachEntry(root *os.Root, name string, each func(fs.DirEntry) error) error {
	f, err := disk.OpenDir(root, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for {
		list, err := f.ReadDir(1000)
		for _, d := range list {
			if err := each(d); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
