package contextstore

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"toritsugi/internal/disk"

	"toritsugi/internal/contextstore/jsonl"
)

// Records is the name of a small file of JSON lines of one type in a context's
// directory. Unlike a Journal it is opened for each line, so that somebody who does
// not own the context may append to it, too.
type Records[T any] string

// Append appends a line, redacted; durable has it survive a power cut. A torn line
// before it gets its line end first, so that only the torn one is lost.
func (n Records[T]) Append(s *Store, dir string, v T, durable bool) error {
	raw, err := jsonl.Marshal(v)
	if err != nil {
		return err
	}
	line, err := jsonl.Redact(raw, func(text string) string { return jsonl.Valid(s.Redact(text)) })
	if err != nil {
		return err
	}
	f, err := s.FS.OpenAppend(n.path(dir))
	if err != nil {
		return err
	}
	if size := f.Size(); size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err = f.Append(append(line, '\n')); err == nil && durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Create makes the file where it is missing: an empty one says that there is nothing.
func (n Records[T]) Create(s *Store, dir string) error {
	f, err := s.FS.OpenAppend(n.path(dir))
	if err != nil {
		return err
	}
	return f.Close()
}

// Each calls f for each line, oldest first; a torn one is passed over. there tells
// whether the file is.
func (n Records[T]) Each(dir string, f func(T)) (there bool, err error) {
	raw, err := ReadFile(dir, string(n))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(raw)) {
		var v T
		if json.Unmarshal([]byte(line), &v) == nil {
			f(v)
		}
	}
	return true, nil
}

// ReadFile reads a small file of a context whose directory was dir when it was found, wherever
// the context lies now: fs.ErrNotExist says that it has no such file.
func ReadFile(dir, name string) (raw []byte, err error) {
	for range moves {
		raw, err = disk.Read(filepath.Join(dir, name), disk.MaxWhole)
		if !errors.Is(err, fs.ErrNotExist) || disk.Exists(dir) {
			return raw, err
		}
		now, ferr := FindDir(filepath.Dir(filepath.Dir(dir)), filepath.Base(dir))
		if errors.Is(ferr, ErrNotFound) {
			return nil, err
		}
		if ferr != nil {
			return nil, ferr
		}
		dir = now
	}
	return nil, err
}

func (n Records[T]) path(dir string) string { return filepath.Join(dir, string(n)) }
