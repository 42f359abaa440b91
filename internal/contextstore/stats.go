package contextstore

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"toritsugi/internal/contextstore/index"
)

// What runs took, summed up.
type (
	Totals      = index.Totals
	StatsFilter = index.StatsFilter
	Group       = index.Group
	Stats       = index.Stats
	Ends        = index.Ends
	Failure     = index.Failure
)

// Sum sums up the runs that a filter takes, of those that the viewer may see; days from since on
// alone. It reads the counters of tasks.db where that holds every context, else all directories
// (scanned). Memory grows with users, repositories, models and days, not with runs.
func Sum(ctx context.Context, base string, who Viewer, f StatsFilter, since string) (s Stats, scanned bool, err error) {
	if who.Admin { // names are compared by case there
		i, err := openWhole(ctx, base)
		if err == nil {
			s, err = i.Stats(ctx, f, since)
			err = errors.Join(err, i.Close())
		}
		if err == nil {
			return s, false, nil
		}
	}
	sums := [5]map[Group]*Totals{}
	for i := range sums {
		sums[i] = map[Group]*Totals{}
	}
	err = eachTaken(ctx, base, who, f, func(r Row, repo, day string) {
		for i, name := range []string{string(r.Status), r.User, repo, r.Model, day} {
			if i == 4 && (!r.Status.Final() || day < since) {
				continue
			}
			k := Group{Name: name, Status: r.Status}
			if sums[i][k] == nil {
				sums[i][k] = &Totals{}
			}
			sums[i][k].Plus(index.TotalsOf(r))
		}
	})
	for i, to := range []*[]Group{&s.Statuses, &s.Users, &s.Repos, &s.Models, &s.Days} {
		for k, t := range sums[i] {
			*to = append(*to, Group{Name: k.Name, Status: k.Status, Totals: *t})
		}
		slices.SortFunc(*to, func(a, b Group) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Status, b.Status))
		})
	}
	return s, true, err
}

// SumEnds tells how the runs ended that a filter takes, of those that the viewer may see. It reads
// the rows of tasks.db where that holds every context, else all directories.
func SumEnds(ctx context.Context, base string, who Viewer, f StatsFilter) (e Ends, err error) {
	if who.Admin {
		i, err := openWhole(ctx, base)
		if err == nil {
			e, err = i.Ends(ctx, f)
			err = errors.Join(err, i.Close())
		}
		if err == nil {
			return e, nil
		}
	}
	e = index.NewEnds()
	err = eachTaken(ctx, base, who, f, func(r Row, _, _ string) {
		if r.Status.Final() {
			e.Add(r)
		}
	})
	slices.SortFunc(e.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Reason, b.Reason))
	})
	return e, err
}

// eachTaken calls f with the rows of the directories that a filter takes.
func eachTaken(ctx context.Context, base string, who Viewer, f StatsFilter, took func(r Row, repo, day string)) (err error) {
	var l Looker
	defer func() { err = errors.Join(err, l.Close()) }()
	return walk(base, func(dir string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := l.View(dir)
		if err != nil || !who.MaySee(v.Metadata) {
			return nil //nolint:nilerr // tori check tells of it
		}
		v.State.TaskStatus = v.Status()
		r := RowOf(v.Metadata, v.State)
		repo, day := strings.TrimPrefix(r.Key.Owner+"/"+r.Key.Repo, "/"), ""
		if !r.CompletedAt.IsZero() {
			day = DayOf(r.CompletedAt.Time)
		}
		if takesSum(f, r, repo, day) {
			took(r, repo, day)
		}
		return nil
	})
}

// takesSum reports whether the filter takes a run, as the index would.
func takesSum(f StatsFilter, r Row, repo, day string) bool {
	same := func(want, have string) bool { return want == "" || want == have }
	return same(f.User, r.User) && same(string(f.Status), string(r.Status)) && same(f.Model, r.Model) &&
		(same(f.Repo, repo) || strings.HasSuffix(repo, "/"+f.Repo)) &&
		(f.From == "" || day >= f.From && r.Status.Final()) && (f.To == "" || day != "" && day <= f.To && r.Status.Final())
}

// maxMeasured is how many contexts of one directory DiskUse looks at.
const maxMeasured = 500

// DiskUse is what the files of the contexts in some of the status directories take that the viewer
// may see. It looks at maxMeasured contexts; where there are more, measured is how many of them it saw
// and whole is false.
func DiskUse(base string, dirs []string, who Viewer) (bytes, measured int64, whole bool, err error) {
	looked := 0
	err = Walk(base, dirs, func(dir string) error {
		if looked++; looked > maxMeasured {
			return errEnough
		}
		if !who.maySeeDir(dir) {
			return nil
		}
		measured++
		n, err := sizeOf(dir)
		bytes += n
		if errors.Is(err, os.ErrNotExist) { // it moved on
			return nil
		}
		return err
	})
	if errors.Is(err, errEnough) {
		return bytes, measured, false, nil
	}
	return bytes, measured, err == nil, err
}

// LiveDirs are the status directories of runs that have not ended.
func LiveDirs() []string { return slices.Clone(liveDirs) }
