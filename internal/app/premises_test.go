package app

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// marks are those of a house.db that has no more.
type marks map[string]string

func (m marks) Mark(_ context.Context, _, name string) (string, error) { return m[name], nil }

func (m marks) NearLimits(context.Context, contextstore.DayLimits, float64, time.Time) ([]contextstore.DayUse, error) {
	return nil, nil
}

// What is at a limit is not beyond it, 0 is no limit, and too few runs say nothing.
func TestPremises(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*premises)
		backup marks // of house.db
		want   string
	}{
		"all is well":          {func(*premises) {}, nil, ""},
		"nothing was measured": {func(p *premises) { p.sums = nil }, nil, ""},
		"10 GB":                {func(p *premises) { p.sums.Used = 10e9 }, nil, ""},
		"more":                 {func(p *premises) { p.sums.Used = 10e9 + 1 }, nil, "disk_used"},
		"50 GB":                {func(p *premises) { p.sums.Used = 50e9 + 1 }, nil, "disk_critical disk_used"},
		"any size": {func(p *premises) {
			p.sums.Used = 50e9 + 1
			p.cfg.Monitor.Alerts.DiskWarnGB, p.cfg.Monitor.Alerts.DiskCriticalGB = 0, 0
		}, nil, ""},
		"2 GB free":           {func(p *premises) { p.free = 2e9 }, nil, ""},
		"less":                {func(p *premises) { p.free = 2e9 - 1 }, nil, "disk_room"},
		"100 wait":            {func(p *premises) { p.sums.Tasks[task.Queued] = 100 }, nil, ""},
		"101 wait":            {func(p *premises) { p.sums.Tasks[task.Queued] = 101 }, nil, "waiting"},
		"101 wait for people": {func(p *premises) { p.sums.Tasks[task.AwaitingApproval] = 101 }, nil, ""},
		"any number":          {func(p *premises) { p.sums.Tasks[task.Queued] = 101; p.cfg.Monitor.Alerts.RunningTasks = 0 }, nil, ""},
		"10 %":                {func(p *premises) { p.sums.Ended, p.sums.Failed = 20, 2 }, nil, ""},
		"11 %":                {func(p *premises) { p.sums.Ended, p.sums.Failed = 27, 3 }, nil, "failures"},
		"too few":             {func(p *premises) { p.sums.Ended, p.sums.Failed = 19, 19 }, nil, ""},
		"any share":           {func(p *premises) { p.sums.Ended, p.sums.Failed = 20, 20; p.cfg.Monitor.Alerts.FailureRate = 0 }, nil, ""},
		"twice as long":       {func(p *premises) { p.sums.Mean, p.sums.Before = 2*time.Minute, time.Minute }, nil, ""},
		"longer":              {func(p *premises) { p.sums.Mean, p.sums.Before = 2*time.Minute+1, time.Minute }, nil, "slow"},
		"no runs before":      {func(p *premises) { p.sums.Mean, p.sums.Before = time.Hour, 0 }, nil, ""},
		"a backup":            {func(*premises) {}, marks{"made": "2026-03-03T00:00:00Z", "verified": "2026-03-03T00:00:00Z"}, ""},
		"an old one":          {func(*premises) {}, marks{"made": "2026-03-02T23:59:59Z", "verified": "2026-03-03T00:00:00Z"}, "backup_late"},
		"not verified":        {func(*premises) {}, marks{"made": "2026-03-04T00:00:00Z"}, "backup_unverified"},
		"damaged":             {func(*premises) {}, marks{"made": "2026-03-04T00:00:00Z", "verified": "2026-03-04T00:00:00Z", damageMark("/backups"): "no room"}, "backup_failed"},
		"it failed":           {func(*premises) {}, marks{"made": "2026-03-04T00:00:00Z", "verified": "2026-03-04T00:00:00Z", "backup": "no room"}, "backup_failed"},
		"no backups":          {func(p *premises) { p.cfg.Backup.Dir = "" }, marks{damageMark("/backups"): "no room"}, ""},
		"of any age":          {func(p *premises) { p.cfg.Monitor.Alerts.BackupHours = 0 }, marks{"made": "2020-03-02T23:59:59Z"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse("c.yaml", nil, func(string) string { return "" }, nil)
			if err != nil {
				t.Fatal(err)
			}
			p := premises{base: t.TempDir(), cfg: cfg, now: now, free: 1 << 40, sums: &figures{Tasks: map[task.Status]int64{}}}
			if c.backup != nil {
				p.house, cfg.Backup.Dir = c.backup, "/backups"
			}
			c.change(&p)
			all, err := p.wrong(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, a := range all {
				names = append(names, a.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}
