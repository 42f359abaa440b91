package record

import (
	"errors"
	"os"
	"path/filepath"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// File is a record on disk. Close or Discard ends it.
type File struct {
	*Writer
	fs   *disk.FS
	path string
	file *disk.File
}

// Create makes a new file at path, which only its owner may read, and returns a
// record in it. A file that is there already is never touched. Errors are i18n
// errors. fs makes the calls; redact and failed are as in NewWriter, but what
// failed is told is an i18n error that names the file. A line that cannot be
// written whole leaves nothing of itself.
func Create(fs *disk.FS, path string, redact func(string) string, failed func(error)) (*File, error) {
	h, err := fs.Create(path)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil, i18n.E("record.exists", path).Of(err)
	case err != nil:
		return nil, i18n.E("record.create", path, err)
	}
	f := &File{fs: fs, path: path, file: h}
	f.Writer = NewWriter(f, redact, failed)
	return f, nil
}

// Write appends a line; it is for the Writer. It never appends a part of one.
func (f *File) Write(line []byte) (int, error) {
	if _, err := f.file.Append(line); err != nil {
		return 0, i18n.E("record.write", f.path, err)
	}
	return len(line), nil
}

// Close makes the record durable and releases the file. Answers that come later
// are not recorded.
func (f *File) Close() error {
	f.end()
	err := f.file.Sync()
	if err == nil {
		err = f.fs.SyncDir(filepath.Dir(f.path))
	}
	if err = errors.Join(err, f.file.Close()); err != nil {
		return i18n.E("record.write", f.path, err)
	}
	return nil
}

// Discard removes the file: nothing came of the run that it was for.
func (f *File) Discard() error {
	f.end()
	if err := errors.Join(f.file.Close(), f.fs.Remove(f.path)); err != nil {
		return i18n.E("record.write", f.path, err)
	}
	return nil
}

// end lets no further line in.
func (f *File) end() {
	f.mu.Lock()
	f.broken = true
	f.mu.Unlock()
}
