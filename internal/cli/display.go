package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"unicode/utf8"

	"toritsugi/internal/redact"
)

// display is the one way out to the user. Of what passes through it, much was
// written by models and strangers; nothing of that steers the terminal. What does,
// the live view and the progress of a long look, goes past it to the file.
type display struct {
	w    io.Writer
	json bool // what steers is escaped, for programs to have it, and not dropped

	mu     sync.Mutex
	tail   []byte // the beginning of a character whose end has not come yet
	failed error  // the first error of writing, unless the reader went away
}

// lost is why not all that was printed was written, nil where all of it was.
func (s *display) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// onDisplay lets what is written to w pass through a display.
func onDisplay(w io.Writer) *display {
	if s, ok := w.(*display); ok {
		return s
	}
	return &display{w: w}
}

// file is what is behind a display, if that is a file.
func file(w io.Writer) (f *os.File, ok bool) {
	if s, is := w.(*display); is {
		w = s.w
	}
	f, ok = w.(*os.File)
	return f, ok
}

// Write writes p but for what steers a terminal, and bytes that are no text.
func (s *display) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := p
	if len(s.tail) > 0 {
		text = slices.Concat(s.tail, p)
	}
	whole := len(text)
	for n := 1; n <= min(utf8.UTFMax-1, len(text)); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				whole -= n
			}
			break
		}
	}
	s.tail = bytes.Clone(text[whole:])
	text = text[:whole]
	if !utf8.Valid(text) || bytes.ContainsFunc(text, redact.Steers) {
		text = s.clean(text)
	}
	if _, err := s.w.Write(text); err != nil {
		if s.failed == nil && !errors.Is(err, syscall.EPIPE) {
			s.failed = err
		}
		return 0, err
	}
	return len(p), nil
}

func (s *display) clean(text []byte) []byte {
	var b []byte
	for _, r := range string(text) { // bytes that are none become the mark of that
		switch {
		case !redact.Steers(r):
			b = utf8.AppendRune(b, r)
		case s.json:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}
