package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/task"
)

// What is at a limit is not beyond it, 0 is no limit, and too few runs say nothing.
func TestPremises(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*premises)
		backup string
		want   string
	}{
		"all is well":          {func(*premises) {}, "", ""},
		"nothing was measured": {func(p *premises) { p.sums = nil }, "", ""},
		"10 GB":                {func(p *premises) { p.sums.Used = 10e9 }, "", ""},
		"more":                 {func(p *premises) { p.sums.Used = 10e9 + 1 }, "", "disk_used"},
		"50 GB":                {func(p *premises) { p.sums.Used = 50e9 + 1 }, "", "disk_critical disk_used"},
		"any size": {func(p *premises) {
			p.sums.Used = 50e9 + 1
			p.cfg.Monitor.Alerts.DiskWarnGB, p.cfg.Monitor.Alerts.DiskCriticalGB = 0, 0
		}, "", ""},
		"2 GB free":           {func(p *premises) { p.free = 2e9 }, "", ""},
		"less":                {func(p *premises) { p.free = 2e9 - 1 }, "", "disk_room"},
		"100 wait":            {func(p *premises) { p.sums.Tasks[task.Queued] = 100 }, "", ""},
		"101 wait":            {func(p *premises) { p.sums.Tasks[task.Queued] = 101 }, "", "waiting"},
		"101 wait for people": {func(p *premises) { p.sums.Tasks[task.AwaitingApproval] = 101 }, "", ""},
		"any number":          {func(p *premises) { p.sums.Tasks[task.Queued] = 101; p.cfg.Monitor.Alerts.RunningTasks = 0 }, "", ""},
		"10 %":                {func(p *premises) { p.sums.Ended, p.sums.Failed = 20, 2 }, "", ""},
		"11 %":                {func(p *premises) { p.sums.Ended, p.sums.Failed = 27, 3 }, "", "failures"},
		"too few":             {func(p *premises) { p.sums.Ended, p.sums.Failed = 19, 19 }, "", ""},
		"any share":           {func(p *premises) { p.sums.Ended, p.sums.Failed = 20, 20; p.cfg.Monitor.Alerts.FailureRate = 0 }, "", ""},
		"twice as long":       {func(p *premises) { p.sums.Mean, p.sums.Before = 2*time.Minute, time.Minute }, "", ""},
		"longer":              {func(p *premises) { p.sums.Mean, p.sums.Before = 2*time.Minute+1, time.Minute }, "", "slow"},
		"no runs before":      {func(p *premises) { p.sums.Mean, p.sums.Before = time.Hour, 0 }, "", ""},
		"a backup":            {func(*premises) {}, `{"last_success":"2026-03-03T00:00:00Z","last_verified":"2026-03-03T00:00:00Z"}`, ""},
		"an old one":          {func(*premises) {}, `{"last_success":"2026-03-02T23:59:59Z","last_verified":"2026-03-03T00:00:00Z"}`, "backup_late"},
		"not verified":        {func(*premises) {}, `{"last_success":"2026-03-04T00:00:00Z"}`, "backup_unverified"},
		"it failed":           {func(*premises) {}, `{"last_success":"2026-03-04T00:00:00Z","last_verified":"2026-03-04T00:00:00Z","error":"no room"}`, "backup_failed"},
		"unreadable":          {func(*premises) {}, `{`, "backup_failed"},
		"of any age":          {func(p *premises) { p.cfg.Monitor.Alerts.BackupHours = 0 }, `{"last_success":"2020-03-02T23:59:59Z"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse("c.yaml", nil, func(string) string { return "" }, nil)
			if err != nil {
				t.Fatal(err)
			}
			p := premises{base: t.TempDir(), cfg: cfg, now: now, free: 1 << 40, sums: &figures{Tasks: map[task.Status]int64{}}}
			c.change(&p)
			if c.backup != "" {
				if err := os.WriteFile(filepath.Join(p.base, backupFile), []byte(c.backup), 0o600); err != nil {
					t.Fatal(err)
				}
			}
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
