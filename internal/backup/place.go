package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Place keeps objects by name, such as data/ab/ab12…. A name that is there is there whole.
type Place interface {
	// String names the place for people.
	String() string
	// Put writes an object, over one of its name; when it returns, that is durable.
	Put(ctx context.Context, name string, data []byte) error
	// Get reads an object of at most most bytes: fs.ErrNotExist, *disk.TooLargeError.
	Get(ctx context.Context, name string, most int64) ([]byte, error)
	// Has reports whether there is an object of that size.
	Has(ctx context.Context, name string, size int64) (bool, error)
	// Each calls f with each object whose name begins with prefix, which ends in a slash, in no
	// order; leftovers of writes that were cut short are among them.
	Each(ctx context.Context, prefix string, f func(Object) error) error
	// Remove removes an object; that there is none is no error.
	Remove(ctx context.Context, name string) error
}

// Object is what a place has of a name.
type Object struct {
	Name string
	At   time.Time // written
}

// bucketScheme begins the name of a bucket.
const bucketScheme = "s3://"

func openPlace(o Options, now func() time.Time) (Place, error) {
	if name, ok := strings.CutPrefix(o.Place, bucketScheme); ok {
		return openBucket(name, o.S3, o.HTTP, now)
	}
	path, err := filepath.Abs(o.Place)
	if err != nil || o.Place == "" {
		return nil, errors.Join(i18n.E("backup.no_place"), err)
	}
	d := &directory{path: path, fs: o.FS}
	if d.fs == nil {
		d.fs = &disk.FS{}
	}
	return d, nil
}

// directory is a place in a file system.
type directory struct {
	path string
	fs   *disk.FS
}

func (d *directory) String() string { return d.path }

func (d *directory) file(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

func (d *directory) Put(_ context.Context, name string, data []byte) error {
	path := d.file(name)
	if err := d.fs.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return d.fs.Replace(path, data, true)
}

func (d *directory) Get(_ context.Context, name string, most int64) ([]byte, error) {
	return disk.Read(d.file(name), most)
}

func (d *directory) Has(_ context.Context, name string, size int64) (bool, error) {
	st, err := os.Lstat(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Mode().IsRegular() && st.Size() == size, err
}

func (d *directory) Each(ctx context.Context, prefix string, f func(Object) error) error {
	err := filepath.WalkDir(d.file(prefix), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, rerr := filepath.Rel(d.path, path)
		if err := errors.Join(err, rerr); err != nil {
			return err
		}
		return f(Object{filepath.ToSlash(name), st.ModTime()})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *directory) Remove(_ context.Context, name string) error { return d.fs.Remove(d.file(name)) }

// inside reports whether a directory place is a directory or lies below it, links followed.
func (d *directory) inside(base string) (bool, error) {
	rest, at := "", d.path
	for { // as far as it is there
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			at = filepath.Join(real, rest)
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(at) == at {
			return false, err
		}
		at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
	}
	base, err := filepath.EvalSymlinks(base)
	if err != nil {
		return false, err
	}
	way, err := filepath.Rel(base, at)
	return err == nil && filepath.IsLocal(way), err
}
