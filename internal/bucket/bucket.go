// Package bucket keeps objects by name in a directory, in a bucket of an S3-compatible server or in a
// container of Azure Blob Storage. Who uses it says what the names mean, and which may go.
package bucket

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
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

// Options say which place is meant.
type Options struct {
	Place string   // a directory, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX
	S3    S3       // of s3://
	Azure Azure    // of azure://
	FS    *disk.FS // of a directory; nil for a new one
	HTTP  *http.Client
	Now   func() time.Time
	Tries int           // of a request that the server cannot answer for now; 0 for 6
	Pause time.Duration // before the second of them, longer before each further one; 0 for 500 ms
}

// Name is what a place is remembered by, however it was written.
func Name(place string) string {
	kind, path, ok := strings.Cut(place, "://")
	if ok {
		name, prefix, _ := strings.Cut(path, "/")
		return strings.TrimSuffix(kind+"://"+name+"/"+strings.Trim(prefix, "/"), "/")
	}
	if place == "" {
		return ""
	}
	if abs, err := filepath.Abs(place); err == nil {
		place = abs
	}
	if real, err := filepath.EvalSymlinks(place); err == nil {
		place = real
	}
	return place
}

// Open names a place; nothing is read or written yet.
func Open(o Options) (Place, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Tries, o.Pause = cmp.Or(o.Tries, 6), cmp.Or(o.Pause, 500*time.Millisecond)
	switch kind, _, ok := strings.Cut(o.Place, "://"); {
	case !ok:
		return openDirectory(o)
	case kind == "s3":
		return openS3(o)
	case kind == "azure":
		return openAzure(o)
	}
	return nil, i18n.E("bucket.kind", o.Place)
}

func openDirectory(o Options) (Place, error) {
	path, err := filepath.Abs(o.Place)
	if err != nil {
		return nil, err
	}
	d := &Directory{path: path, fs: o.FS}
	if d.fs == nil {
		d.fs = &disk.FS{}
	}
	return d, nil
}

// Directory is a place in a file system.
type Directory struct {
	path string
	fs   *disk.FS
}

func (d *Directory) String() string { return d.path }

func (d *Directory) file(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

func (d *Directory) Put(_ context.Context, name string, data []byte) error {
	path := d.file(name)
	if err := d.fs.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return d.fs.Replace(path, data, true)
}

func (d *Directory) Get(_ context.Context, name string, most int64) ([]byte, error) {
	return disk.Read(d.file(name), most)
}

func (d *Directory) Has(_ context.Context, name string, size int64) (bool, error) {
	st, err := os.Lstat(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Mode().IsRegular() && st.Size() == size, err
}

func (d *Directory) Each(ctx context.Context, prefix string, f func(Object) error) error {
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

func (d *Directory) Remove(_ context.Context, name string) error { return d.fs.Remove(d.file(name)) }

// Inside reports whether a directory place is a directory or lies below it, links followed.
func (d *Directory) Inside(base string) (bool, error) {
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
