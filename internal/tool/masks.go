package tool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
)

// What the model sees is masked, what the files hold is not (DESIGN §2 law 7).
// A token that a model copies back would destroy the real text.

// mask is a masking token and how often a text has it.
type mask struct {
	token string
	n     int
}

// tokens returns the masking tokens of s.
func (w *space) tokens(s string) []mask {
	var masks []mask
	for w.masks != nil {
		token, ok := w.masks(s)
		n := strings.Count(s, token)
		if !ok || len(token) < 2 || n == 0 {
			break
		}
		masks = append(masks, mask{token, n})
		s = strings.ReplaceAll(s, token, " ")
	}
	return masks
}

// newMask returns a token that content has more often than the file now has
// it, or "". The count matters: a file may hold the token itself in one place
// and, in another, the text that was shown as the token.
func (w *space) newMask(content, rel string, created bool) string {
	for _, m := range w.tokens(content) {
		if created || m.n > w.occurrences(rel, m.token) {
			return m.token
		}
	}
	return ""
}

// occurrences counts token in the file rel; 0 where it cannot be read.
func (w *space) occurrences(rel, token string) int {
	f, _, problem := w.open(rel)
	if problem != "" {
		return 0
	}
	defer func() { _ = f.Close() }() // it was only read
	count, buf, held := 0, make([]byte, readBuffer+len(token)), 0
	for {
		n, err := f.Read(buf[held:])
		chunk := buf[:held+n]
		for {
			i := bytes.Index(chunk, []byte(token))
			if i < 0 {
				break
			}
			count++
			chunk = chunk[i+len(token):]
		}
		held = copy(buf, chunk[max(0, len(chunk)-len(token)+1):])
		if errors.Is(err, io.EOF) || err != nil {
			return count
		}
	}
}

func (w *space) maskRefused(shown, token string) Result {
	return Failf("%s was not written: the text contains %s, which stands for text that was masked before you saw it. "+
		"Writing it would destroy the real text. Use edit_file on a region that leaves the original text untouched.", shown, token)
}

// ended returns ctx's error where it ended, which is the only error of a call.
func ended(ctx context.Context, problem string) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	return Failf("%s", problem), nil
}
