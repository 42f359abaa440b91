package terminal

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
)

const (
	maxHistory = 256 << 10 // bytes of the file; of a longer one the older half goes
	maxKept    = 8 << 10   // bytes of a message that is worth keeping
)

// history is what a person has sent, in a file of lines that are JSON strings.
type history struct {
	path  string // "" keeps nothing
	mask  func(string) string
	all   []string
	at    int    // which of them is shown, len(all) for none
	draft string // what was being written before one was shown
}

// openHistory reads a history. One that cannot be read is empty: it is a comfort.
func openHistory(path string, mask func(string) string) *history {
	h := &history{path: path, mask: mask}
	if path == "" {
		return h
	}
	raw, err := disk.Read(path, 4*maxHistory)
	if err != nil {
		return h
	}
	if len(raw) > maxHistory {
		raw = raw[len(raw)-maxHistory/2:]
		raw = raw[bytes.IndexByte(raw, '\n')+1:]
		h.rewrite(raw)
	}
	for l := range bytes.SplitSeq(raw, []byte("\n")) {
		var s string
		if json.Unmarshal(l, &s) == nil && s != "" {
			h.all = append(h.all, s)
		}
	}
	h.at = len(h.all)
	return h
}

// rewrite replaces the file, or leaves it as it is.
func (h *history) rewrite(raw []byte) {
	f, err := os.CreateTemp(filepath.Dir(h.path), ".chat-*") // 0600
	if err != nil {
		return
	}
	_, err = f.Write(raw)
	if shut := f.Close(); err != nil || shut != nil || os.Rename(f.Name(), h.path) != nil {
		_ = os.Remove(f.Name())
	}
}

// add keeps a message that was sent, with its secrets masked.
func (h *history) add(text string) error {
	if text = h.mask(text); len(text) > maxKept || strings.TrimSpace(text) == "" || len(h.all) > 0 && h.all[len(h.all)-1] == text {
		h.at = len(h.all)
		return nil
	}
	h.all = append(h.all, text)
	h.at = len(h.all)
	if h.path == "" {
		return nil
	}
	l, err := json.Marshal(text)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(l, '\n'))
	if shut := f.Close(); err == nil {
		err = shut
	}
	return err
}

// move shows an older (-1) or newer (1) message in the editor.
func (h *history) move(by int, e *editor) {
	if h.at+by < 0 || h.at+by > len(h.all) {
		return
	}
	if h.at == len(h.all) {
		h.draft = e.text
	}
	if h.at += by; h.at == len(h.all) {
		e.set(h.draft)
		return
	}
	e.set(h.all[h.at])
}
