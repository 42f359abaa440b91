package workspace

import (
	"context"
	"io"
	"strconv"
)

// Review writes what a commit changes since Base with that many lines around each
// change, whatever has become of the tree since. Every file is text, whatever it
// holds and whatever attributes say, so that none of them hides a change. It
// streams.
func (w *Workspace) Review(ctx context.Context, commit string, lines int, to io.Writer) error {
	args := append(diffArgs(), "--text", "--unified="+strconv.Itoa(lines), w.meta.Base, commit, "--")
	_, err := w.repo.run(ctx, call{args: args, out: to})
	return err
}
