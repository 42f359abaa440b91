package disktest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"toritsugi/internal/disk"
)

// Recorder keeps the trace of what is done below one base directory, and in
// between what the program acknowledged. Safe for concurrent use.
type Recorder struct {
	base string

	mu      sync.Mutex
	entries []entry
}

// Ack is a promise of the program: from here on Value must survive under Name.
type Ack struct {
	Name  string
	Value any
}

// entry is an event, or an ack where that is set.
type entry struct {
	event disk.Event
	ack   *Ack
}

// NewRecorder records what happens in base, an empty directory that itself
// survives every power cut. Tell it of each FS with Watch.
func NewRecorder(base string) (*Recorder, error) {
	abs, err := filepath.Abs(base)
	return &Recorder{base: abs}, err
}

// Watch makes fs tell the recorder its effects and spares it the kernel's
// syncs: the model says what is durable. Several FS, one after the other, are
// several processes in the same directory.
func (r *Recorder) Watch(fs *disk.FS) *disk.FS {
	fs.Trace = r.event
	fs.Flush = NoFlush
	return fs
}

// NoFlush stands for a sync where nothing depends on the kernel's.
func NoFlush(*os.File) error { return nil }

func (r *Recorder) event(e disk.Event) {
	e.Data = bytes.Clone(e.Data)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, entry{event: e})
}

// Ack records that the program has acknowledged something.
func (r *Recorder) Ack(name string, value any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, entry{ack: &Ack{name, value}})
}

// Len is the length of the trace so far, events and acks.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.entries)
}

// String is the trace for people, one event or ack per line.
func (r *Recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for i, e := range r.entries {
		if e.ack != nil {
			fmt.Fprintf(&b, "%4d ACK %s %v\n", i, e.ack.Name, e.ack.Value)
		} else {
			fmt.Fprintf(&b, "%4d %s\n", i, r.describe(e.event))
		}
	}
	return b.String()
}

func (r *Recorder) describe(e disk.Event) string {
	s := fmt.Sprintf("%s %s", e.Kind, r.rel(e.Path))
	switch e.Kind {
	case disk.Wrote:
		s += fmt.Sprintf(" %d bytes at %d", len(e.Data), e.Offset)
	case disk.Truncated:
		s += fmt.Sprintf(" to %d", e.Offset)
	case disk.Renamed:
		s += " to " + r.rel(e.To)
	}
	return s
}

func (r *Recorder) rel(path string) string {
	if rel, err := filepath.Rel(r.base, path); err == nil {
		return rel
	}
	return path
}
