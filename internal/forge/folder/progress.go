package folder

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
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

// ShowProgress implements forge.Progress.
func (f *Forge) ShowProgress(ctx context.Context, k task.Key, text string) error {
	e, err := f.find(ctx, k)
	if err != nil {
		return err
	}
	return writeProgress(e.path, text)
}

// writeProgress puts a text in the place of what the progress file of the issue at
// path showed: whoever reads it finds the old text or the new one, whole. It is not
// synced; what a power cut takes is written again. A file that we did not write, and
// what is no plain file, is left alone and an error.
func writeProgress(path, text string) error {
	path = ProgressPath(path)
	b, err := besideOf(path)
	if err != nil {
		return i18n.E("folder.no_progress", path, err)
	}
	defer b.close()
	if err = b.ours(); err == nil {
		err = b.swap(0o644, func(f *os.File) error { // as comments files are
			_, err := f.WriteString(progressMark + "\n" + cleanBody(text) + "\n")
			return err
		}, nil)
	}
	if err != nil {
		return i18n.E("folder.no_progress", path, err)
	}
	return nil
}

// ours reports that a progress file may be replaced: it is not there, is empty, as
// after a power cut, or bears our mark.
func (b beside) ours() error {
	f, err := b.open(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	head := make([]byte, len(progressMark))
	n, err := io.ReadFull(f, head)
	if n > 0 && !bytes.Equal(head, []byte(progressMark)) || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return i18n.E("folder.not_progress")
	}
	return nil
}
