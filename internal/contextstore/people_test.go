package contextstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
)

// Whoever reads is not told of a link that this process removed, nor for long of one that another
// did; a read that fails tells of nobody.
func TestLinksAreKnownAWhile(t *testing.T) {
	engines(t, func(t *testing.T) {
		now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		s := open(t, Options{Now: clock})
		other := open(t, Options{BaseDir: s.BaseDir, Now: clock})
		linked := func(want int) {
			t.Helper()
			if all, err := s.Links(t.Context()); err != nil || len(all) != want {
				t.Errorf("%+v, %v", all, err)
			}
		}
		remove := func(s *Store, who string) {
			t.Helper()
			if was, err := s.RemoveLink(t.Context(), who); err != nil || !was {
				t.Error(was, err)
			}
		}
		linked(0)
		for _, who := range []string{"slack:U1", "slack:U2"} {
			must(t, s.OfferLink(t.Context(), who, "github:hanako", now.Add(time.Minute)))
			_, err := s.TakeLink(t.Context(), who, who)
			must(t, err)
		}
		linked(2)
		remove(s, "slack:U1")
		linked(1)
		remove(other, "slack:U2")
		linked(1)
		now = now.Add(linksKept)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if all, err := s.Links(ended); !errors.Is(err, context.Canceled) || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		linked(0)
		now = now.Add(-time.Hour) // the clock is set back
		must(t, other.OfferLink(t.Context(), "c", "github:hanako", now.Add(time.Minute)))
		_, err := other.TakeLink(t.Context(), "c", "slack:U1")
		must(t, err)
		linked(1)
	})
}

// A code links one person, once, until its time is over; who says many that there are not has to
// wait, though one of theirs is right then.
func TestLinks(t *testing.T) {
	engines(t, func(t *testing.T) {
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
		for _, read := range []func() ([]Link, error){func() ([]Link, error) { return s.Links(t.Context()) }, func() ([]Link, error) {
			return LinksAt(t.Context(), s.BaseDir)
		}} {
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
	})
}

func TestFollowers(t *testing.T) {
	engines(t, func(t *testing.T) {
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
	})
}

// Before anything works on a server there is no house.db, as there is none in a new directory.
func TestNothingOnAServerYet(t *testing.T) {
	t.Parallel()
	server, err := database.Dial(t.Context(), database.ServerOptions{URL: pgtest.URL(t)})
	must(t, err)
	t.Cleanup(server.Close)
	base := t.TempDir()
	t.Cleanup(server.Serve(base))
	if all, err := LinksAt(t.Context(), base); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	if err := VerifyHouseDB(t.Context(), base); err != nil {
		t.Error(err)
	}
}
