package rest

import (
	"context"
	"net/url"
	"slices"
	"time"
)

// Getter is a Call, or what reads as one does.
type Getter interface {
	Get(ctx context.Context, at string, q url.Values, v any) (*Answer, error)
}

// EachPage reads a list page by page until use returns false. What leaves a list between
// two pages moves the rest up by one, so this is for lists that hardly ever shrink.
func EachPage[T any](ctx context.Context, d Getter, at string, q url.Values, use func(*T) bool) error {
	for n := 1; n <= MostPages; n++ {
		var v T
		if a, err := d.Get(ctx, at, Page(q, n), &v); err != nil || !use(&v) || a.link("next") == nil {
			return err
		}
	}
	return nil
}

// Forward is EachPage for pages that are lists.
func Forward[T any](ctx context.Context, d Getter, at string, q url.Values, use func([]*T) bool) error {
	return EachPage(ctx, d, at, q, func(p *[]*T) bool { return use(Present(*p)) })
}

// Pages reads a whole list.
func Pages[T any](ctx context.Context, d Getter, at string, q url.Values) (all []*T, err error) {
	err = Forward(ctx, d, at, q, func(p []*T) bool { all = append(all, p...); return true })
	return all, err
}

// Backward reads a list that grows at its end from there, page by page, until
// use returns false; within a page the order stays. Nothing is lost where
// something is taken out meanwhile: what moves up goes where is read next. It
// returns how long the list is, at least: of more than 10,000 GitLab does not tell.
func Backward[T any](ctx context.Context, d Getter, at string, q url.Values, use func([]*T) bool) (length int, err error) {
	var first []*T
	a, err := d.Get(ctx, at, Page(q, 1), &first)
	if err != nil {
		return 0, err
	}
	more, last := true, a.last()
	switch {
	case last <= 1 && a.link("next") == nil:
		use(Present(first))
		return len(first), nil
	case last <= 1 && q.Get("sort") != "": // a list that can be turned round
		turned := Page(q, 1)
		turned.Set("sort", "desc")
		err := Forward(ctx, d, at, turned, func(p []*T) bool {
			length += len(p)
			slices.Reverse(p)
			more = use(p)
			return more
		})
		if !more {
			length = max(length, mostCounted)
		}
		return length, err
	case last <= 1: // a server that does not tell where the end is
		all, err := Pages[T](ctx, d, at, q)
		if err == nil {
			use(all)
		}
		return len(all), err
	}
	for n := min(last, MostPages); n >= 1 && more; n-- {
		var v []*T
		if _, err := d.Get(ctx, at, Page(q, n), &v); err != nil {
			return 0, err
		}
		if length == 0 {
			// What is added meanwhile comes after: it is read with the next look.
			length = (n-1)*PerPage + len(v)
		}
		more = use(Present(v))
	}
	return length, nil
}

// mostCounted is how far GitLab counts. Source: GitLab docs, "Pagination".
const mostCounted = 10_000

// Since reads a list ordered by the time of the last change, from a time on, each element
// once; since is the query's name for that time. It goes on from the last
// time seen, not from the last place: what changes or leaves meanwhile moves no other one
// out of sight. It stops after most.
func Since[T any](ctx context.Context, d Getter, at string, q url.Values, since string, from time.Time, most int, id func(*T) int64, changed func(*T) time.Time) ([]*T, error) {
	var all []*T
	seen := map[int64]bool{}
	for n := 1; ; {
		page := Page(q, n)
		if !from.IsZero() {
			page.Set(since, Stamp(from))
		}
		var v []*T
		a, err := d.Get(ctx, at, page, &v)
		if err != nil {
			return nil, err
		}
		v = Present(v)
		for _, e := range v {
			if !seen[id(e)] {
				seen[id(e)] = true
				all = append(all, e)
			}
		}
		if a.link("next") == nil || len(v) == 0 || len(all) >= most || n > MostPages {
			return all, nil
		}
		// A second back, for those of the same second.
		if next := changed(v[len(v)-1]).Truncate(time.Second).Add(-time.Second); next.After(from) {
			from, n = next, 1
		} else {
			n++
		}
	}
}
