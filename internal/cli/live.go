package cli

import (
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
	"toritsugi/internal/progress"
)

// live keeps a few lines at the bottom of a terminal, below what is written through
// it, which scrolls above them. It moves the cursor up and erases; it takes over
// neither the keyboard nor the signals, and hides nothing, so that a process that is
// killed leaves a terminal that works (docs/decisions/021-the-live-view.md).
//
// Its methods may be called from any goroutine.
type live struct {
	lang i18n.Lang
	now  func() time.Time
	size func() (columns, rows int) // of the terminal; 0, 0 where nobody knows
	cont chan os.Signal             // SIGCONT; nil hears of none

	mu     sync.Mutex
	w      io.Writer
	report func() progress.Report // nil while there is nothing to show
	lines  []string               // that stand there; nil for none
	wide   int                    // how wide the terminal was then
	open   bool                   // what was written last ended within a line
}

const (
	liveEvery = 250 * time.Millisecond // between redraws
	liveLines = 12                     // most of them
	// liveMargin is how many columns stay free at the right: for the ^C that a
	// terminal prints where the cursor is.
	liveMargin = 4
)

// watchable reports whether a live view may be drawn on a file.
func watchable(f *os.File, getenv func(string) string) bool {
	return getenv("TERM") != "dumb" && getenv("TERM") != "" && isTerminal(f)
}

// live lets what is printed from here on go above a live view, where the terminal
// can show one; watch is nil where it cannot, and nothing is changed.
func (c *console) live(quiet bool) (watch func(func() progress.Report) func()) {
	f, ok := file(c.err)
	if !ok || quiet || !watchable(f, c.getenv) {
		return nil
	}
	v := newLive(f, c.lang)
	c.err = onDisplay(v)
	if out, ok := file(c.out); ok && isTerminal(out) {
		c.out = onDisplay(v.beside(out))
	}
	return v.watch
}

// isTerminal reports whether a file is one.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// newLive returns a live view on a terminal that shows nothing yet.
func newLive(f *os.File, l i18n.Lang) *live {
	return &live{lang: l, now: time.Now, w: f, cont: make(chan os.Signal, 1), size: func() (int, int) {
		ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0, 0
		}
		return int(ws.Col), int(ws.Row)
	}}
}

// watch shows a run until stop is called, which leaves nothing of it.
func (v *live) watch(report func() progress.Report) (stop func()) {
	v.mu.Lock()
	v.report = report
	v.mu.Unlock()
	v.redraw()
	end := make(chan struct{})
	if v.cont != nil {
		signal.Notify(v.cont, syscall.SIGCONT)
	}
	var done sync.WaitGroup
	done.Go(func() {
		t := time.NewTicker(liveEvery)
		defer t.Stop()
		for {
			select {
			case <-end:
				return
			case <-v.cont:
				v.forget()
			case <-t.C:
			}
			v.redraw()
		}
	})
	return func() {
		close(end)
		done.Wait()
		if v.cont != nil {
			signal.Stop(v.cont)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.put(v.erase(), nil)
		v.report = nil
	}
}

// redraw draws the view where it changed.
func (v *live) redraw() {
	v.mu.Lock()
	report := v.report
	v.mu.Unlock()
	if report == nil {
		return
	}
	rep := report() // which may wait for others who write here
	v.mu.Lock()
	defer v.mu.Unlock()
	columns, rows := v.size()
	lines := rep.Lines(v.lang, columns-liveMargin, min(rows-2, liveLines), v.now())
	if v.report == nil || v.open || columns == v.wide && strings.Join(lines, "\n") == strings.Join(v.lines, "\n") {
		return
	}
	before := v.erase()
	v.wide = columns
	v.put(before, lines)
}

// Write writes above the view.
func (v *live) Write(p []byte) (int, error) { return v.above(v.w, p) }

// beside returns a writer to another file that is the same terminal.
func (v *live) beside(w io.Writer) io.Writer { return besides{v, w} }

type besides struct {
	v *live
	w io.Writer
}

func (b besides) Write(p []byte) (int, error) { return b.v.above(b.w, p) }

// above writes to w, which the terminal shows above the view.
func (v *live) above(w io.Writer, p []byte) (n int, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(p) == 0 || v.lines == nil {
		v.open = len(p) > 0 && p[len(p)-1] != '\n' || len(p) == 0 && v.open
		return w.Write(p)
	}
	lines := v.lines
	if v.open = p[len(p)-1] != '\n'; v.open {
		lines = nil
	}
	if w != v.w {
		v.put(v.erase(), nil)
		n, err = w.Write(p)
		v.put("", lines)
		return n, err
	}
	v.put(v.erase()+string(p), lines) // at once, so that nothing flickers
	return len(p), nil
}

// forget takes the view for gone: somebody else has written on the terminal.
func (v *live) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lines = nil
}

// erase is what takes the view off the terminal, and leaves the cursor where it
// began. The caller holds mu.
func (v *live) erase() string {
	if len(v.lines) == 0 {
		return ""
	}
	columns, _ := v.size()
	rows := 0
	for _, line := range v.lines {
		rows++
		if columns > 0 && columns < v.wide { // the terminal has wrapped what stood there
			rows += max(progress.Width(line)-1, 0) / columns
		}
	}
	up := ""
	if rows > 1 {
		up = "\x1b[" + strconv.Itoa(rows-1) + "A"
	}
	return "\r" + up + "\x1b[J"
}

// put writes what erases the old view, and the new one. The caller holds mu.
func (v *live) put(erase string, lines []string) {
	v.lines = lines
	if out := erase + strings.Join(lines, "\n"); out != "" {
		_, _ = io.WriteString(v.w, out) // a terminal that is gone is no reason to end
	}
}
