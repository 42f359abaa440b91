package contextstore

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/task"
)

// A line that cannot be read takes no other one with it, wherever it stands: what
// follows it is there for the next owner, and its numbers go on.
func TestALineThatIsDamagedWithinAFile(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(line string) string{
		"garbage": func(line string) string { return strings.Repeat("#", len(line)-1) + "\n" },
		"NUL":     func(line string) string { return strings.Repeat("\x00", len(line)-1) + "\n" },
		"half": func(line string) string {
			return line[:len(line)/2] + strings.Repeat(" ", len(line)-len(line)/2-1) + "\n"
		},
	} {
		for at := 2; at <= 7; at++ {
			base, dir := healthy(t, task.Running)
			forget := at%2 == 0 // the checkpoint: all of it is behind that
			if forget {
				edit(t, filepath.Join(dir, StateFile), `"messages.jsonl":{"bytes":`, `"messages.jsonl":{"bytes":0,"seq":0},"x":{"bytes":`)
			}
			path := filepath.Join(dir, Messages)
			b, err := readFile(path)
			must(t, err)
			all := strings.SplitAfter(strings.TrimSuffix(string(b), "\n")+"\n", "\n")
			all = all[:len(all)-1]
			all[at-1] = spoil(all[at-1])
			must(t, kernel.WriteFile(path, []byte(strings.Join(all, "")), 0o600))
			s := open(t, Options{BaseDir: base})
			c, repairs, err := s.Claim(t.Context(), filepath.Base(dir))
			must(t, err)
			m, err := c.Append(Message{Role: "user", Content: "go on"})
			must(t, err)
			var seqs, want []int64
			must(t, c.Messages(0, func(m Message) bool { seqs = append(seqs, m.Seq); return true }))
			for n := range int64(len(all)) + 1 {
				if n+1 != int64(at) {
					want = append(want, n+1)
				}
			}
			if !slices.Equal(seqs, want) || m[0].Seq != int64(len(all))+1 {
				t.Errorf("%s in line %d: the messages are %v, the next is %d", name, at, seqs, m[0].Seq)
			}
			if _, err := kernel.Stat(path + ".cut"); err == nil {
				t.Errorf("%s in line %d: something was cut off", name, at)
			}
			if forget != strings.Contains(strings.Join(repairs, "\n"), "1 lines cannot be read; what follows them is kept") {
				t.Errorf("%s in line %d: %q", name, at, repairs)
			}
			must(t, c.Close())
			must(t, s.Close())
			if got := kinds(check(t, base, false)); !slices.Contains(got, "garbage") && !slices.Contains(got, "nul") {
				t.Errorf("%s in line %d: tori check finds %v", name, at, got)
			}
		}
	}
}

// The other logs of a run lose no more than the line that is damaged either: the next
// owner reads what follows it, and goes on with the next number.
func TestALineThatIsDamagedInAnotherLog(t *testing.T) {
	t.Parallel()
	logs := map[string]struct {
		write func(c *Context) error
		count func(c *Context) (n int, next int64, err error) // what can be read, and the last number
	}{
		Tools: {func(c *Context) error {
			return c.AppendTools(ToolRun{Tool: "shell", Status: "success", Args: []byte("{}")})
		}, func(c *Context) (int, int64, error) {
			all, err := c.LastTools(9)
			return len(all), c.tools.seq, err
		}},
		Checks: {func(c *Context) error { return c.AppendCheck(CheckRun{Command: "true"}) }, func(c *Context) (int, int64, error) {
			all, err := c.Checks()
			return len(all), all[len(all)-1].Seq, err
		}},
		Summaries: {func(c *Context) error {
			_, err := c.AppendSummary(Summary{StartSeq: 1, EndSeq: 2, Summary: "they began"})
			return err
		}, func(c *Context) (n int, last int64, err error) {
			s, err := c.lastSummary(func(Summary) bool { return true })
			if err != nil || s == nil {
				return 0, 0, err
			}
			last = s.ID
			for id := range last {
				s, _ := c.SummaryOf(id + 1)
				n += map[bool]int{true: 1}[s != nil]
			}
			return n, last, err
		}},
		Window: {func(c *Context) error { return c.AppendWindow(WindowEvent{Type: WindowTruncate, FromSeq: 2}) }, func(c *Context) (int, int64, error) {
			e, err := c.LastWindow()
			return 4, e.ID, err // it is read from its end alone
		}},
		RequestLog: {func(c *Context) error { return c.Effects().Append(EffectRecord{Type: EffectFact}) }, func(c *Context) (n int, last int64, err error) {
			v := View{Dir: c.Dir()}
			last, err = v.Last(RequestLog, func(b []byte) int64 { seq, _ := numbered(b); return seq })
			return 4, last, err // a reader of it refuses: TestEffectsAfterACrash
		}},
	}
	for name, log := range logs {
		for how, put := range map[string]string{"garbage": "not JSON", "half": `{"seq":2,"id":2,"to`, "NUL": "\x00\x00"} {
			if name == Tools && how == "NUL" {
				continue // see TestNULsOfAWriteThatWasNotSynced
			}
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				base, dir := healthy(t, task.Running)
				path := filepath.Join(dir, name)
				must(t, kernel.RemoveAll(path))
				s := open(t, Options{BaseDir: base})
				claim := func() *Context {
					must(t, kernel.Remove(filepath.Join(dir, StateFile))) // with the checkpoint
					c, _, err := s.Claim(t.Context(), filepath.Base(dir))
					must(t, err)
					return c
				}
				c := claim()
				for range 3 {
					must(t, log.write(c))
				}
				must(t, c.Close())
				edit(t, path, lineOf(t, path, 1), put+"\n")
				c = claim()
				must(t, log.write(c))
				if n, last, err := log.count(c); err != nil || last != 4 || n != 3 && n != 4 {
					t.Errorf("%d lines, the last is %d: %v", n, last, err)
				}
				must(t, c.Close())
			})
		}
	}
}

// NULs in the place of a write that was never acknowledged are cut off with what
// follows it: that is told by the number, and of the calls by the NULs alone.
func TestNULsOfAWriteThatWasNotSynced(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]string{
		Checks: `{"seq":2,"command":"true"}`, Window: `{"id":2,"type":"truncate"}`, Tools: `{"seq":3,"tool":"shell"}`,
	} {
		base, dir := healthy(t, task.Running)
		path := filepath.Join(dir, name)
		must(t, kernel.WriteFile(path, []byte(lineOf(t, path, 0)+"\x00\x00\n"+second+"\n"), 0o600))
		must(t, kernel.Remove(filepath.Join(dir, StateFile)))
		s := open(t, Options{BaseDir: base})
		c, _, err := s.Claim(t.Context(), filepath.Base(dir))
		must(t, err)
		if cut, err := readFile(path + ".cut"); err != nil || string(cut) != "\x00\x00\n"+second+"\n" {
			t.Errorf("%s: %q, %v", name, cut, err)
		}
		must(t, c.Close())
	}
}

// A line that somebody put between two messages takes none with it either.
func TestALineThatIsPutBetween(t *testing.T) {
	t.Parallel()
	base, dir := healthy(t, task.Running)
	path := filepath.Join(dir, Messages)
	edit(t, path, `{"seq":4,`, "not JSON\n"+`{"seq":4,`)
	must(t, kernel.Remove(filepath.Join(dir, StateFile)))
	s := open(t, Options{BaseDir: base})
	c, _, err := s.Claim(t.Context(), filepath.Base(dir))
	must(t, err)
	m, err := c.Append(Message{Role: "user", Content: "go on"})
	must(t, err)
	if n := len(all(t, c)); n != 9 || m[0].Seq != 9 {
		t.Errorf("%d messages, the last is %d", n, m[0].Seq)
	}
	must(t, c.Close())
}

// A decision about the window that cannot be read is none: the one before it holds.
func TestALatestDecisionThatCannotBeRead(t *testing.T) {
	t.Parallel()
	base, dir := healthy(t, task.Running)
	path := filepath.Join(dir, Window)
	must(t, kernel.WriteFile(path, []byte(strings.Repeat("#", len(lineOf(t, path, 1)))+"\n"), 0o600))
	s := open(t, Options{BaseDir: base})
	c, _, err := s.Claim(t.Context(), filepath.Base(dir))
	must(t, err)
	if e, err := c.LastWindow(); err != nil || e != nil {
		t.Errorf("%+v %v", e, err)
	}
	must(t, c.Close())
}
