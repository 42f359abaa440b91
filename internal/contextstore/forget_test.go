package contextstore

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/task"
)

// house.db forgets a run a month after the last moment at which it could have been there, and no
// other: not one that is kept, nor what is noted of anything but runs.
func TestForget(t *testing.T) {
	engines(t, func(t *testing.T) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		s := clocked(t, &now)
		day := 24 * time.Hour
		r := Retention{Delete: 10 * day, Rules: []RetentionRule{{Status: task.Failed, Delete: 20 * day}}}
		other := "github/" + strings.Repeat("a", 29) // as long as a uuid
		must(t, s.SetMark(t.Context(), other, "comments", "1"))
		run := func(id string) string {
			uuid, err := s.Enqueue(t.Context(), Metadata{TaskKey: task.Key{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: id}})
			must(t, err)
			c, _, err := s.Claim(t.Context(), uuid)
			must(t, err)
			e := Effect{Key: "push/" + uuid, Kind: "push", Data: json.RawMessage(`{}`)}
			must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "s"}, e))
			must(t, s.Acknowledge(t.Context(), uuid, e, "done"))
			must(t, s.SetMark(t.Context(), uuid, "act", "who"))
			return uuid
		}
		known := func(uuid string) string {
			t.Helper()
			acked, err := s.Delivered(t.Context(), uuid)
			must(t, err)
			mark, err := s.Mark(t.Context(), uuid, "act")
			must(t, err)
			return acked["push/"+uuid] + " " + mark
		}
		gone, kept := run("1"), run("2")
		_, err := s.Keep(t.Context(), kept, "me", false)
		must(t, err)
		start := now
		for _, at := range []struct {
			after time.Duration
			want  string
		}{{11 * day, "done who"}, {50*day - time.Hour, "done who"}, {50*day + time.Hour, " "}} {
			now = start.Add(at.after)
			must(t, s.Retain(t.Context(), r, false, func(Retained) {}))
			must(t, s.Forget(t.Context(), r))
			if got := known(gone); got != at.want {
				t.Errorf("after %v: %q of the run that is gone, not %q", at.after, got, at.want)
			}
			if got := known(kept); got != "done who" {
				t.Errorf("after %v: %q of the run that is kept", at.after, got)
			}
		}
		if mark, err := s.Mark(t.Context(), other, "comments"); err != nil || mark != "1" {
			t.Errorf("%q, %v", mark, err)
		}
	})
}

// More runs than are looked at together are forgotten, those that are there passed over.
func TestForgetMany(t *testing.T) {
	engines(t, func(t *testing.T) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		s := clocked(t, &now)
		there := ended(t, s, key, task.Outcome{Status: task.Completed, Summary: "s"})
		must(t, s.SetMark(t.Context(), there, "act", "who"))
		must(t, execIn(filepath.Join(s.BaseDir, HouseDBFile), `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < 1199)
			INSERT INTO outbox_acks (key, uuid, kind, acked_at) SELECT 'k' || i, printf('%08x-0000-4000-8000-000000000000', i * 3579139), 'push', '2026-01-01T00:00:00.000000Z' FROM n`))
		now = now.AddDate(1, 0, 0)
		acks := func() (n int) {
			must(t, s.houseDB.use(t.Context(), func(h *database.Handles) error {
				return h.R.QueryRowContext(t.Context(), `SELECT count(*) FROM outbox_acks`).Scan(&n)
			}))
			return n
		}
		for i, want := range []int{1200, 0} { // 0 days remove none
			must(t, s.Forget(t.Context(), Retention{Delete: time.Duration(i) * time.Hour}))
			if n := acks(); n != want {
				t.Errorf("%d are left, not %d", n, want)
			}
		}
		if mark, err := s.Mark(t.Context(), there, "act"); err != nil || mark != "who" {
			t.Errorf("%q, %v", mark, err)
		}
	})
}
