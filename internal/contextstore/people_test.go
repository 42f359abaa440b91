package contextstore

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// A code links one person, once, until its time is over; who says many that there are not has to
// wait, though one of theirs is right then.
func TestLinks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	s := open(t, Options{Now: func() time.Time { return now }})
	take := func(code, who string, want error) {
		t.Helper()
		l, err := s.TakeLink(t.Context(), code, who)
		if !errors.Is(err, want) || want == nil && l.Account != "github:hanako" {
			t.Errorf("%s by %s: %+v, %v", code, who, l, err)
		}
	}
	for _, code := range []string{"c1", "c2", "c3"} {
		must(t, s.OfferLink(t.Context(), code, "github:hanako", now.Add(10*time.Minute)))
	}
	take("c1", "slack:U1", nil)
	take("c1", "slack:U1", nil) // cut short, and said again
	take("c1", "slack:U2", ErrNoCode)
	for range MaxTries {
		take("wrong", "slack:U3", ErrNoCode)
	}
	take("c2", "slack:U3", ErrTooManyTries)
	take("c2", "line:U1", nil)
	now = now.Add(10 * time.Minute)
	take("c3", "slack:U2", ErrNoCode)
	now = now.Add(time.Hour)
	must(t, s.OfferLink(t.Context(), "c4", "github:hanako", now.Add(time.Minute)))
	take("c4", "slack:U3", nil)
	for _, read := range []func() ([]Link, error){func() ([]Link, error) { return s.Links(t.Context()) }, func() ([]Link, error) { return LinksAt(t.Context(), s.BaseDir) }} {
		all, err := read()
		if err != nil || len(all) != 3 || all[0].Who != "line:U1" || all[2].Account != "github:hanako" || !all[2].At.Equal(now) {
			t.Errorf("%+v, %v", all, err)
		}
	}
	for _, want := range []bool{true, false} {
		if was, err := s.RemoveLink(t.Context(), "line:U1"); err != nil || was != want {
			t.Errorf("%v, %v", was, err)
		}
	}
	if all, err := LinksAt(t.Context(), t.TempDir()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	for n := range maxCodes + 1 {
		if err := s.OfferLink(t.Context(), strings.Repeat("x", n), "github:hanako", now.Add(time.Hour)); err != nil {
			if !strings.Contains(err.Error(), "codes") {
				t.Error(err)
			}
			return
		}
	}
	t.Error("there is no end of codes")
}

func TestFollowers(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	a, b := Follower{"u1", "slack:T1:C1:1", "m1", "ja"}, Follower{"u1", "terminal:hanako:0", "m2", "en"}
	for _, f := range []Follower{b, a, {"u1", "slack:T1:C1:1", "m3", "en"}} {
		must(t, s.Follow(t.Context(), f))
	}
	if all, err := s.Followers(t.Context()); err != nil || len(all) != 2 || all[0] != a || all[1] != b {
		t.Errorf("%+v, %v", all, err)
	}
	must(t, s.Unfollow(t.Context(), a))
	if all, err := s.Followers(t.Context()); err != nil || len(all) != 1 || all[0] != b {
		t.Errorf("%+v, %v", all, err)
	}
}
