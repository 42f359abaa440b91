package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"
)

// Like is what runs are compared with.
type Like struct {
	Key   task.Key // runs on other tasks of its repository are compared
	UUID  string   // of the run that is compared; "" for one that has not begun
	Title string
	Body  string
}

// Match is a run that is like another.
type Match struct {
	View contextstore.View
	// Score is the share of what is told by the words of the one that the other has too, 0 to 1; with a model for
	// embeddings two thirds of it and one of how near they are.
	Score float64
}

// Threshold is the Score from which on a run is called similar: see decision 081. Of one that has a vector it is
// NearThreshold: see decision 086.
const (
	Threshold     = 0.175
	NearThreshold = 0.2
)

// What is compared: of the request so many bytes, of its terms the first so many, and so many runs
// that hold most of those terms that tell the most.
const (
	comparedBytes = 1000
	comparedTerms = 48
	tellingTerms  = 16
	candidates    = 24
)

// Similar returns runs on other tasks of the same repository that ended and are like what is asked for, that the
// viewer may see: at most n with a Score of Threshold or more, or of NearThreshold, the likest first. Source: store-v2 §10.2.
func (d *DB) Similar(ctx context.Context, who contextstore.Viewer, l Like, n int) (all []Match, err error) {
	if _, err := d.file.Check(ctx); err != nil {
		return nil, err
	}
	want := termsOf(l.Title, l.Body)
	if len(want) == 0 {
		return nil, nil
	}
	weights, found, err := d.candidates(ctx, l.Key, want)
	var near nearness
	if err == nil {
		var nearest []ref
		near, nearest, err = d.near(ctx, l)
		found = append(found, nearest...)
	}
	if err != nil {
		return nil, fmt.Errorf("look for similar runs in %s: %w", d.file.Path, err)
	}
	seen := map[string]bool{}
	for _, r := range found {
		if seen[r.uuid] {
			continue
		}
		seen[r.uuid] = true
		v, ok := d.see(who, r.uuid)
		k := v.Metadata.TaskKey
		if !ok || k == l.Key || k.Source != l.Key.Source || k.Owner != l.Key.Owner || k.Repo != l.Key.Repo {
			continue
		}
		o, err := LikeOf(v)
		if err != nil {
			return nil, err
		}
		score, least := share(weights, want, termsOf(o.Title, o.Body)), Threshold
		if by, ok := near[r.id]; ok {
			score, least = (2*score+by)/3, NearThreshold
		}
		if score >= least {
			all = append(all, Match{v, score})
		}
	}
	slices.SortStableFunc(all, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.View.State.CompletedAt.Compare(a.View.State.CompletedAt.Time))
	})
	return all[:min(len(all), n)], nil
}

// LikeOf is a run as others are compared with it: its title and what it was asked; of one whose
// messages were removed its summary.
func LikeOf(v contextstore.View) (l Like, err error) {
	l = Like{Key: v.Metadata.TaskKey, UUID: v.Metadata.UUID, Title: v.Metadata.Title}
	err = conversation(v, func(p Part, _ int64, text string) bool {
		if p == Request {
			l.Body = text
			if m := asked().FindStringSubmatch(text); m != nil {
				l.Body = m[1]
			}
		}
		return l.Body == ""
	})
	if l.Body == "" && err == nil {
		s, ferr := v.LastFinal()
		if s != nil {
			l.Body = s.Summary
		}
		if !errors.Is(ferr, contextstore.ErrDamaged) {
			err = ferr
		}
	}
	return l, err
}

// asked finds, in the first message of a run, what was asked for.
var asked = lazyregexp.New(`(?s)<(?:issue|pull_request)>\n(.*?)\n</(?:issue|pull_request)>`)

// termsOf are the terms that a task is compared by, those of its title first.
func termsOf(title, body string) (terms []string) {
	for _, text := range []string{title, clip(body, comparedBytes)} {
		main, _ := split(text)
		for _, t := range main {
			if len(terms) < comparedTerms && utf8.RuneCountInString(t.term) > 1 && !slices.Contains(terms, t.term) {
				terms = append(terms, t.term)
			}
		}
	}
	return terms
}

// candidates are the runs of a repository that hold most of what tells something of some terms (BM25, of
// titles above all), and what each term tells: the rarer it is, the more.
func (d *DB) candidates(ctx context.Context, k task.Key, terms []string) (weights map[string]float64, found []ref, err error) {
	weights = map[string]float64{}
	var telling []string // that there are
	err = d.file.Use(func(h *database.Handles) error {
		var runs float64
		if err := h.R.QueryRowContext(ctx, `SELECT count(*) FROM runs`).Scan(&runs); err != nil {
			return err
		}
		df, err := h.R.PrepareContext(ctx, `SELECT coalesce(sum(doc), 0) FROM terms WHERE term=?`)
		if err != nil {
			return err
		}
		defer func() { _ = df.Close() }()
		for _, t := range terms {
			var docs float64
			if err := df.QueryRowContext(ctx, t).Scan(&docs); err != nil {
				return err
			}
			if docs > 0 {
				telling = append(telling, t)
			}
			weights[t] = weigh(t, math.Log1p((runs-docs+0.5)/(docs+0.5)))
		}
		if len(telling) == 0 {
			return nil
		}
		slices.SortStableFunc(telling, func(a, b string) int { return cmp.Compare(weights[b], weights[a]) })
		telling = telling[:min(len(telling), tellingTerms)]
		match := `facet : ` + placeOf(k) + ` AND {title request summary} : ("` + strings.Join(telling, `" OR "`) + `")`
		found, err = database.Read(ctx, h.R, refOf, `SELECT runs.id, runs.uuid FROM (SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts, 0, 6, 2, 1) LIMIT ?) AS found
			JOIN runs ON runs.id = found.rowid`, match, candidates)
		return err
	})
	return weights, found, err
}

// weigh lessens the weight of a term that tells little in every house, however rare it is in a small one.
func weigh(term string, idf float64) float64 {
	if common()[term] || !strings.ContainsFunc(term, func(r rune) bool { return r < 'ぁ' || r > 'ん' }) {
		return idf / 10
	}
	return idf
}

// common are words of English that most requests have.
var common = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a add after all also an and any are as at be been but by can change code could do does each error fails file files fix for from get has have how if in into
		is issue it its make more must no not now of on only or please problem run see should so some test tests than that the their then there these they this to update use used we
		when where which will with without would you`) {
		m[stem(w)] = true
	}
	return m
})

// share is how much of the weight of the terms that are wanted the others have.
func share(weights map[string]float64, want, have []string) float64 {
	var got, all float64
	for _, t := range want {
		all += weights[t]
		if slices.Contains(have, t) {
			got += weights[t]
		}
	}
	if all == 0 {
		return 0
	}
	return got / all
}
