package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
)

// screen is a terminal as far as a live view needs one: it wraps, scrolls, and
// understands carriage return, line feed, cursor up and erase to the end.
type screen struct {
	t          *testing.T
	mu         sync.Mutex
	cols, rows int
	lines      [][]rune // of all that was shown; the last rows of them are on the screen
	x, y       int      // y counts from the first line that was ever shown
	writes     int
	raw        bytes.Buffer
}

func newScreen(t *testing.T, cols, rows int) *screen {
	return &screen{t: t, cols: cols, rows: rows, lines: [][]rune{nil}}
}

func (s *screen) top() int { return max(len(s.lines)-s.rows, 0) }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	s.raw.Write(p)
	text := []rune(string(p))
	for i := 0; i < len(text); i++ {
		switch r := text[i]; r {
		case '\r':
			s.x = 0
		case '\n':
			s.down()
		case 0x1b:
			n, j := 0, i+2
			for ; text[j] >= '0' && text[j] <= '9'; j++ {
				n = 10*n + int(text[j]-'0')
			}
			switch {
			case text[i+1] == '[' && text[j] == 'A':
				s.y = max(s.y-n, s.top())
			case text[i+1] == '[' && text[j] == 'J':
				s.lines[s.y] = s.lines[s.y][:min(s.x, len(s.lines[s.y]))]
				s.lines = s.lines[:s.y+1]
			default:
				s.t.Errorf("an unknown sequence: %q", string(text[i:j+1]))
			}
			i = j
		default:
			w := progress.Width(string(r))
			if s.x+w > s.cols {
				s.down()
			}
			line := s.lines[s.y]
			for len(line) < s.x+w {
				line = append(line, ' ')
			}
			line[s.x] = r
			for k := 1; k < w; k++ {
				line[s.x+k] = 0
			}
			s.lines[s.y] = line
			s.x += w
		}
	}
	return len(p), nil
}

// down is a line feed of a terminal that returns the carriage, too.
func (s *screen) down() {
	s.x, s.y = 0, s.y+1
	if s.y == len(s.lines) {
		s.lines = append(s.lines, nil)
	}
}

// String is all that was ever shown and not erased, scrolled away or not.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, line := range s.lines {
		b.WriteString(strings.TrimRight(strings.ReplaceAll(string(line), "\x00", ""), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func (s *screen) size() (int, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cols, s.rows
}

func (s *screen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// liveRun is a run that a live view shows on a screen.
type liveRun struct {
	mu  sync.Mutex
	rep progress.Report
}

func (r *liveRun) report() progress.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rep
}

func (r *liveRun) is(f func(*progress.Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.rep)
}

func liveOn(s *screen) *live {
	return &live{lang: i18n.English, now: time.Now, w: s, size: s.size}
}

func working() *liveRun {
	return &liveRun{rep: progress.Report{Stage: progress.Working, Phase: planning.PhaseExecution, Understood: &progress.Understanding{}, Current: "two", Started: time.Now(), Calls: 3,
		Items: []planning.Item{{ID: "one", Text: "Look", Status: planning.Done}, {ID: "two", Text: "答えを書く"}}}}
}

const twoItems = "[x] Plan > [>] Work > Verification > Done subtask 2/2\n[x] one: Look\n[>] two: 答えを書く\n"

// What is written scrolls above the view, which stays at the bottom, changes as the
// run does, at most every so often, and is gone at the end.
func TestLiveView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(t, 80, 24)
		v, r := liveOn(s), working()
		fmt.Fprintln(v, "before")
		stop := v.watch(r.report)
		is := func(what, want string) {
			t.Helper()
			synctest.Wait()
			if got := s.String(); got != want {
				t.Errorf("%s:\n%s\n-- want\n%s", what, got, want)
			}
		}
		is("at first", "before\n"+twoItems+"3 calls, 0 tools, 0 tokens, 0:00")
		fmt.Fprintln(v, "a log line")
		fmt.Fprintln(v.beside(s), strings.Repeat("long ", 20)) // wraps
		is("written above", "before\na log line\n"+strings.Repeat("long ", 16)[:79]+"\nlong long long long\n"+twoItems+"3 calls, 0 tools, 0 tokens, 0:00")
		was := s.count()
		for range 1000 {
			r.is(func(r *progress.Report) { r.Calls++ })
			time.Sleep(time.Millisecond / 2)
		}
		synctest.Wait()
		if n := s.count() - was; n > 3 {
			t.Errorf("%d redraws in half a second", n)
		}
		time.Sleep(500 * time.Millisecond)
		was = s.count()
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if n := s.count() - was; n > 1 {
			t.Errorf("%d redraws where only the seconds change", n)
		}
		r.is(func(r *progress.Report) {
			r.Items[1].Status, r.Phase, r.Current, r.Worked = planning.Done, planning.PhaseVerification, "", true
		})
		time.Sleep(liveEvery)
		is("later", "before\na log line\n"+strings.Repeat("long ", 16)[:79]+"\nlong long long long\n[x] Plan > [x] Work > [>] Verification > Done\n[x] one: Look\n[x] two: 答えを書く\n1003 calls, 0 tools, 0 tokens, 0:02")
		stop()
		fmt.Fprintln(v, "after")
		is("at the end", "before\na log line\n"+strings.Repeat("long ", 16)[:79]+"\nlong long long long\nafter")
	})
}

// On a screen that is full the view does not run away; ^C behind it, a line that is
// written in pieces, and another size leave nothing behind.
func TestLiveViewHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(t, 60, 8)
		v, r := liveOn(s), working()
		stop := v.watch(r.report)
		var want []string
		for n := range 100 {
			want = append(want, fmt.Sprint("line ", n))
			fmt.Fprintln(v, want[n])
		}
		fmt.Fprint(s, "^C")
		fmt.Fprint(v, "Paus")
		time.Sleep(2 * liveEvery) // nothing is drawn into the line
		fmt.Fprint(v, "ing …\n")
		want = append(want, "Pausing …")
		time.Sleep(liveEvery)
		synctest.Wait()
		if got := s.String(); !strings.HasPrefix(got, strings.Join(want, "\n")+"\n[x] Plan") || strings.Count(got, "[x] Plan") != 1 {
			t.Errorf("%s", got)
		}
		s.mu.Lock()
		s.cols = 120 // wider: what stands there stays as it is
		s.mu.Unlock()
		time.Sleep(liveEvery)
		stop()
		if got := s.String(); got != strings.Join(want, "\n") {
			t.Errorf("%s", got)
		}
		s.mu.Lock()
		s.rows = 3 // no room for two lines and what is written
		s.mu.Unlock()
		stop = v.watch(r.report)
		synctest.Wait()
		if got := s.String(); strings.Count(got, "\n") != 101 {
			t.Errorf("%s", got)
		}
		stop()
	})
}

// Where the terminal became narrower it has wrapped the view; all of that goes.
func TestLiveViewIsWrapped(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	v := liveOn(s)
	v.wide, v.lines = 80, []string{strings.Repeat("x", 70), "short"}
	s.cols = 30
	if got := v.erase(); got != "\r\x1b[3A\x1b[J" {
		t.Errorf("%q", got)
	}
	if v.lines = nil; v.erase() != "" {
		t.Error("what is not there is erased")
	}
}

// A pipe, a file, a dumb terminal and -q see no view.
func TestNoLiveView(t *testing.T) {
	t.Parallel()
	env := func(term string) func(string) string {
		return func(k string) string { return map[string]string{"TERM": term}[k] }
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	master, slave := pty(t)
	defer func() { _, _ = master.Close(), slave.Close() }()
	for _, c := range []struct {
		f     *os.File
		term  string
		quiet bool
		want  bool
	}{{w, "xterm", false, false}, {slave, "dumb", false, false}, {slave, "", false, false}, {slave, "xterm", true, false}, {slave, "xterm", false, true}} {
		con := &console{out: w, err: c.f, lang: i18n.English, getenv: env(c.term)}
		if got := con.live(c.quiet) != nil; got != c.want || (con.err != c.f) != c.want || con.out != w {
			t.Errorf("%s, TERM=%s, quiet %t: %t", c.f.Name(), c.term, c.quiet, got)
		}
	}
	con := &console{out: slave, err: slave, lang: i18n.English, getenv: env("xterm")}
	if con.live(false) == nil || con.out == slave {
		t.Error("what is printed on the same terminal goes through the view, too")
	}
}
