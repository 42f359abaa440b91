package redact

import (
	"bytes"
	"io"
)

// maxHeld is how much a Writer holds back to see a secret whole, in bytes.
const maxHeld = 64 << 10

// Writer returns a writer that masks what passes through it to w. It works on
// whole lines, and on private key blocks whole, so that no secret is cut in two
// by how the text arrives; a longer line is masked in pieces of 64 KiB. Close
// writes what is held back and does not close w.
func (z *Sanitizer) Writer(w io.Writer) io.WriteCloser { return &writer{z: z, w: w} }

type writer struct {
	z    *Sanitizer
	w    io.Writer
	held []byte
}

func (w *writer) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	n := bytes.LastIndexByte(w.held, '\n') + 1
	if begin := bytes.LastIndex(w.held[:n], []byte("-----BEGIN ")); begin >= 0 && !bytes.Contains(w.held[begin:n], []byte("-----END ")) {
		n = bytes.LastIndexByte(w.held[:begin], '\n') + 1
	}
	if n == 0 && len(w.held) > maxHeld {
		n = len(w.held)
	}
	return len(p), w.flush(n)
}

func (w *writer) flush(n int) error {
	if n == 0 {
		return nil
	}
	_, err := w.w.Write(w.z.Bytes(w.held[:n]))
	w.held = append(w.held[:0], w.held[n:]...)
	return err
}

// Close writes what is held back.
func (w *writer) Close() error { return w.flush(len(w.held)) }
