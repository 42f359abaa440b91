package folder

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
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
		return i18n.E("folder.is_link")
	case err != nil:
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return i18n.E("folder.not_regular")
	}
	head := make([]byte, len(progressMark))
	n, err := io.ReadFull(f, head)
	if n > 0 && !bytes.Equal(head, []byte(progressMark)) || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return i18n.E("folder.not_progress")
	}
	return nil
}

// swap puts a file with a text in the place of path. Until then it has one name
// beside it, so that what a kill leaves goes with the next write. Of two processes
// that write at once one fails.
func swap(path, text string) error {
	tmp := temporary(path)
	switch st, err := os.Lstat(tmp); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !st.Mode().IsRegular(): // not ours
		return i18n.E("folder.in_the_way", tmp)
	default:
		if err := os.Remove(tmp); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(0o644) // as comments files are
	}
	if err == nil && !atPath(f, tmp) { // else what another process has begun would be shown
		err = fs.ErrExist
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp) // else the next write does
	}
	return err
}

// temporary is the name of what is on its way to path: short, however long that is.
func temporary(path string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(filepath.Base(path))) // never fails
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".tori-%016x.tmp", h.Sum64()))
}
