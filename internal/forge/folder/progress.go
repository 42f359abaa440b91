package folder

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
)

const (
	progressSuffix = ".progress.md"
	// progressMark is the beginning of a progress file: only what bears it is ours
	// to replace.
	progressMark = "<!-- tori:progress -->\n"
)

// ProgressPath is the file beside the issue that shows how far the work on it is:
// "12-fix.progress.md" for "12-fix.md".
func ProgressPath(issue string) string {
	return strings.TrimSuffix(CommentsPath(issue), commentsSuffix) + progressSuffix
}

// WriteProgress puts a text in the place of what the progress file of the issue at
// path showed: whoever reads it finds the old text or the new one, whole. It is not
// synced; what a power cut takes is written again. A file that we did not write, and
// what is no plain file, is left alone and an error.
func WriteProgress(path, text string) error {
	path = ProgressPath(path)
	err := ours(path)
	if err == nil {
		err = swap(path, progressMark+"\n"+cleanBody(text)+"\n")
	}
	if err != nil {
		return i18n.E("folder.no_progress", path, err)
	}
	return nil
}

// ours reports that the file at path may be replaced: it is not there, is empty, as
// after a power cut, or bears our mark.
func ours(path string) error {
	// Neither a pipe is waited for nor a link followed.
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, unix.ELOOP):
		return errors.New("it is a symbolic link")
	case err != nil:
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	head := make([]byte, len(progressMark))
	n, err := io.ReadFull(f, head)
	if n > 0 && !bytes.Equal(head, []byte(progressMark)) || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return i18n.E("folder.not_progress")
	}
	return nil
}

// swap puts a file with a text in the place of path.
func swap(path, text string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tori-*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // where it was not renamed
	_, err = tmp.WriteString(text)
	if err == nil {
		err = tmp.Chmod(0o644) // as comments files are
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
