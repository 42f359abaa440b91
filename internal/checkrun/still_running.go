package checkrun

import (
	"bytes"
	"cmp"
	"sync"
	"time"

	"toritsugi/internal/progress"
)

// goingEvery is how often it is told that a command of ours still runs.
const goingEvery = 30 * time.Second

// lastLine keeps the last line of what is written, as far as 1 KiB of it.
type lastLine struct {
	mu   sync.Mutex
	line []byte
	open bool // the line may go on
}

// Write implements io.Writer; it takes all.
func (w *lastLine) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range bytes.Lines(p) {
		if text := bytes.TrimSpace(line); len(text) > 0 || w.open {
			if !w.open {
				w.line = w.line[:0]
			}
			w.line = append(w.line, line[:min(len(line), max(0, 1<<10-len(w.line)))]...)
		}
		w.open = !bytes.HasSuffix(line, []byte("\n"))
	}
	return len(p), nil
}

// String is the line, on one.
func (w *lastLine) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return progress.OneLine(string(bytes.ToValidUTF8(w.line, nil)))
}

// going logs every goingEvery that what runs, with the last line that it printed,
// until stop is called.
func (r *Runner) going(what string, said *lastLine) (stop func()) {
	began, done, over := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		t := time.NewTicker(goingEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				r.Log.Info(what+" goes on: "+cmp.Or(progress.Cut(r.Store.Redact(said.String()), 200), "it has printed nothing yet"), "seconds", int(time.Since(began).Seconds()))
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-over }
}
