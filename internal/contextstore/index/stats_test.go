package index

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/task"
)

// Whatever is asked for, the counters say what the rows do.
func TestStatsAreTheRows(t *testing.T) {
	engines(t, func(t *testing.T, open func() *Index) {
		i := open()
		rnd := rand.New(rand.NewPCG(3, 4))
		for n := range 400 {
			r := aTask(rnd, n, 400)
			r.User, r.Key.Repo, r.Key.Owner, r.Model = "user"+strconv.Itoa(n%3), "repo"+strconv.Itoa(n%4), "owner", "model"+strconv.Itoa(n%5)
			if r.Status == task.Failed {
				r.Error = []string{"", "the checks failed", strings.Repeat("長", 2*maxReason)}[n%3]
			}
			if n%50 == 0 {
				r.Status, r.CompletedAt, r.Key.ID = task.Queued, jsonl.Time{}, strconv.Itoa(n)+"-open"
			}
			if err := i.Insert(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		rows := rowsIn(t, i)
		for _, user := range []string{"", "user1"} {
			for _, repo := range []string{"", "repo2", "owner/repo2", "epo2"} {
				for _, model := range []string{"", "model3"} {
					for _, status := range []task.Status{"", task.Failed, task.Completed, task.Queued} {
						for _, days := range [][2]string{{}, {"2023-05-10", "2023-05-20"}, {"2023-05-10", "2024-02-15"}, {"2024-02-01", ""}, {"", "2024-02-29"}, {"2023-03-01", "2023-03-31"}, {"2023-03-31", "2023-04-01"}} {
							f := StatsFilter{User: user, Repo: repo, Model: model, Status: status, From: days[0], To: days[1]}
							got, err := i.Stats(t.Context(), f, "2024-01-01")
							if err != nil {
								t.Fatal(f, err)
							}
							want := statsOf(rows, f, "2024-01-01")
							ends, err := i.Ends(t.Context(), f)
							if wanted := endsOf(rows, f); err != nil || fmt.Sprint(ends) != fmt.Sprint(wanted) {
								t.Fatalf("%+v, %v:\ngot  %v\nwant %v", f, err, ends, wanted)
							}
							for name, pair := range map[string][2][]Group{"statuses": {got.Statuses, want.Statuses}, "users": {got.Users, want.Users}, "repos": {got.Repos, want.Repos}, "models": {got.Models, want.Models}, "days": {got.Days, want.Days}} {
								for _, all := range pair {
									slices.SortFunc(all, func(a, b Group) int { return cmp.Compare(a.Name+string(a.Status), b.Name+string(b.Status)) })
								}
								if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
									t.Fatalf("%+v %s:\ngot  %v\nwant %v", f, name, pair[0], pair[1])
								}
							}
						}
					}
				}
			}
		}
	})
}

func taken(r Row, f StatsFilter) (repo, day string, ok bool) {
	repo = r.Key.Owner + "/" + r.Key.Repo
	if !r.CompletedAt.IsZero() {
		day = r.CompletedAt.UTC().Format(time.DateOnly)
	}
	left := f.User != "" && f.User != r.User || f.Status != "" && f.Status != r.Status || f.Model != "" && f.Model != r.Model ||
		f.Repo != "" && f.Repo != repo && !strings.HasSuffix(repo, "/"+f.Repo) || f.From != "" && day < f.From || f.To != "" && (day == "" || day > f.To)
	return repo, day, !left
}

func endsOf(rows []Row, f StatsFilter) (e Ends) {
	e = NewEnds()
	for _, r := range rows {
		if _, _, ok := taken(r, f); ok && r.Status.Final() {
			e.Add(r)
		}
	}
	slices.SortFunc(e.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Reason, b.Reason))
	})
	return e
}

func statsOf(rows []Row, f StatsFilter, since string) (s Stats) {
	add := func(to *[]Group, name string, r Row) {
		k := slices.IndexFunc(*to, func(g Group) bool { return g.Name == name && g.Status == r.Status })
		if k < 0 {
			k = len(*to)
			*to = append(*to, Group{Name: name, Status: r.Status})
		}
		(*to)[k].Plus(TotalsOf(r))
	}
	for _, r := range rows {
		repo, day, ok := taken(r, f)
		if !ok {
			continue
		}
		add(&s.Statuses, string(r.Status), r)
		add(&s.Users, r.User, r)
		add(&s.Repos, repo, r)
		add(&s.Models, r.Model, r)
		if r.Status.Final() && day >= since {
			add(&s.Days, day, r)
		}
	}
	return s
}
