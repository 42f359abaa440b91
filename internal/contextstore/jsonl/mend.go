package jsonl

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"toritsugi/internal/disk"
)

// GoodEnd finds, from the end, where the last JSON object of the first size bytes of r
// ends, its newline included; size+1 where only that is missing. It reads as far back as
// there are lines that are none.
func GoodEnd(r io.ReaderAt, size int64) (good int64, err error) {
	err = Back(r, size, func(at int64, line []byte) bool {
		if Check(line) != nil {
			return true
		}
		good = at + int64(len(line)) + 1
		return false
	})
	return good, err
}

// RepairEnd makes a file end with a whole line, given where its good lines end: it adds
// the newline that the last one lacks, or cuts off what follows and keeps it in
// path.cut. Nothing is synced but that.
func RepairEnd(fs *disk.FS, path string, f *disk.File, good int64) error {
	switch size := f.Size(); {
	case good > size:
		_, err := f.Append([]byte("\n"))
		return err
	case good < size:
		if err := SetAside(fs, path+".cut", io.NewSectionReader(f, good, size-good)); err != nil {
			return err
		}
		return f.Truncate(good)
	}
	return nil
}

// SetAside appends what is cut off a file to another one and makes it durable:
// a line that cannot be read here may still tell a person something. A file that
// is no plain one is refused.
func SetAside(fs *disk.FS, path string, r io.Reader) error {
	if st, err := disk.Lstat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no plain file", path)
	}
	f, err := fs.OpenAppend(path)
	if err != nil {
		return err
	}
	buf := make([]byte, block)
	for err == nil {
		var n int
		n, err = r.Read(buf)
		if n > 0 {
			if _, werr := f.Append(buf[:n]); werr != nil {
				return errors.Join(werr, f.Close())
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return fs.SyncDir(filepath.Dir(path))
}
