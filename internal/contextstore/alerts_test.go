package contextstore

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAlerts(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		begun := Time{Time: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
		a, b := Alert{Name: "unreachable", About: "github", Text: "not reached", Begun: begun}, Alert{Name: "disk_full", Text: "no room", Begun: begun}
		is := func(want ...Alert) {
			t.Helper()
			got, err := open(t, Options{BaseDir: s.BaseDir}).Alerts(t.Context())
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Error(d, err)
			}
		}
		is()
		must(t, s.PutAlert(t.Context(), a))
		must(t, s.PutAlert(t.Context(), b))
		is(b, a)
		a.Told, a.Ended = true, Time{Time: begun.Add(time.Hour)}
		must(t, s.PutAlert(t.Context(), a))
		is(b, a)
		must(t, s.DropAlert(t.Context(), a))
		is(b)
	})
}

func TestGivenUpSince(t *testing.T) {
	engines(t, func(t *testing.T) {
		now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		s := open(t, Options{Now: func() time.Time { return now }})
		for _, id := range []string{"a", "b", "c", "d"} {
			fresh, err := s.ChangeInbox(t.Context(), []Incoming{{Channel: "slack", ID: id, Body: []byte("x"), ReceivedAt: Time{Time: now}}}, nil)
			must(t, err)
			failed := "broken"
			if id == "d" {
				failed = ""
			}
			_, err = s.ChangeInbox(t.Context(), nil, []Settled{{Seq: fresh[0].Seq, Failed: failed}})
			must(t, err)
			now = now.Add(time.Hour)
		}
		for age, want := range map[time.Duration][]GivenUp{5 * time.Hour: {{"slack", 3, "c"}}, 3 * time.Hour: {{"slack", 2, "c"}}, time.Hour: nil} {
			got, err := s.GivenUpSince(t.Context(), now.Add(-age))
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Error(age, d, err)
			}
		}
	})
}
