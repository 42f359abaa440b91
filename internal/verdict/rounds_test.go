package verdict

import (
	"testing"

	"toritsugi/internal/contextstore"
)

// Rounds of checks that ended well, and after which somebody said something, cost
// no attempt, whichever owner of the run saw them.
func TestAttempt(t *testing.T) {
	t.Parallel()
	const green, red, broken, idle = "green", "red", "broken", "idle"
	at := func(n int, how string) []contextstore.CheckRun {
		code := func(failed bool) int {
			if failed {
				return 1
			}
			return 0
		}
		commit := "c"
		if how == idle {
			commit = ""
		}
		return []contextstore.CheckRun{{Round: n, Command: "old", ExitCode: code(how != green), Commit: commit}, {Round: n, Command: "new", ExitCode: code(how == broken), Commit: commit}}
	}
	before := at(0, red)
	for _, c := range []struct {
		rounds []string
		want   int // of the next one
	}{
		{nil, 1},
		{[]string{green}, 1},
		{[]string{green, green, green, green}, 1},
		{[]string{broken}, 2},
		{[]string{broken, green, broken}, 3},
		{[]string{red}, 1}, // it was red: that is handed over as it is
		{[]string{red, red, red}, 1},
		{[]string{idle}, 2}, // nothing was changed: it is sent back once
		{[]string{idle, idle, idle}, 2},
		{[]string{green, broken, red}, 2},
	} {
		all := before
		for i, how := range c.rounds {
			all = append(all, at(i+1, how)...)
		}
		if got := Attempt(before, all, len(c.rounds)+1); got != c.want {
			t.Errorf("%v: %d, not %d", c.rounds, got, c.want)
		}
	}
}
