package contextstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/task"
)

// The sums are those of what one may see, and the same from tasks.db and from the directories.
func TestSumIsOfWhatOneMaySee(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	s := open(t, Options{})
	for n, user := range []string{"ken", "Ken", "hanako", "hanako"} {
		k := key
		k.ID = fmt.Sprint(n)
		id, err := s.Enqueue(t.Context(), Metadata{TaskKey: k, User: user})
		must(t, err)
		if n == 3 {
			continue // it has not ended
		}
		c, _, err := s.Claim(t.Context(), id)
		must(t, err)
		must(t, c.Transition(t.Context(), []task.Outcome{{Status: task.Completed}, {Status: task.Failed, Reason: "the checks failed"}, {Status: task.Completed}}[n]))
	}
	today := DayOf(s.Now())
	sorted := func(s Stats) string {
		var all []string
		for _, groups := range [][]Group{s.Statuses, s.Users, s.Repos, s.Models, s.Days} {
			part := []string{}
			for _, g := range groups {
				part = append(part, fmt.Sprint(g))
			}
			slices.Sort(part)
			all = append(all, strings.Join(part, "\n"))
		}
		return strings.Join(all, "\n\n")
	}
	filters := []StatsFilter{{}, {User: "hanako"}, {Repo: "demo"}, {Repo: "abc/demo", Status: task.Completed}, {From: today}, {To: "2001-01-01"}, {User: "ken", From: today, To: today}, {Status: task.Queued}}
	indexed := map[StatsFilter]string{}
	for _, f := range filters {
		got, scanned, err := Sum(t.Context(), s.BaseDir, Viewer{Admin: true}, f, "2000-01-01")
		must(t, err)
		ends, err := SumEnds(t.Context(), s.BaseDir, Viewer{Admin: true}, f)
		must(t, err)
		if indexed[f] = sorted(got) + fmt.Sprint(ends); scanned {
			t.Errorf("%+v: the directories were read", f)
		}
	}
	for who, want := range map[Viewer]int64{{User: "ken"}: 2, {User: "x"}: 0, {}: 0, {User: "x", Account: "hanako"}: 2} {
		got, _, err := Sum(t.Context(), s.BaseDir, who, StatsFilter{}, "2000-01-01")
		must(t, err)
		var n int64
		for _, g := range got.Statuses {
			n += g.Tasks
		}
		if n != want {
			t.Errorf("%+v sees %d, want %d", who, n, want)
		}
	}
	base := s.BaseDir
	must(t, s.Close())
	removeIndex(t, s)
	for _, f := range filters {
		got, scanned, err := Sum(t.Context(), base, Viewer{Admin: true}, f, "2000-01-01")
		must(t, err)
		ends, err := SumEnds(t.Context(), base, Viewer{Admin: true}, f)
		must(t, err)
		if sorted(got)+fmt.Sprint(ends) != indexed[f] || !scanned {
			t.Errorf("%+v, scanned %v:\n%s\nby the index:\n%s", f, scanned, sorted(got)+fmt.Sprint(ends), indexed[f])
		}
	}
}
