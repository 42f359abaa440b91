package ops

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/models"
	"toritsugi/internal/task"
)

// How a house is fits one screen of 80 columns, in both languages.
func TestPrintHealth(t *testing.T) {
	at := time.Date(2026, 3, 4, 3, 0, 5, 0, time.Local)
	h := Health{Status: "critical", Models: models.Health{Ready: true}, Alerts: []HealthAlert{
		{Name: "unreachable", About: "github", Level: "critical", Docs: "docs/operations.md#unreachable", Since: contextstore.Time{Time: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)},
			Text: "github: not reached since 2026-03-04T11:00:00Z\nLook at the network and at the log; what is asked for there is taken up when it \x1b[31manswers."},
		{Name: "waiting", Level: "warning", Docs: "docs/operations.md#waiting", Text: "101 runs wait"},
	}, House: &House{BaseDir: "/b", Serve: true, Tasks: map[task.Status]int64{task.Queued: 1101, task.Running: 3}, Used: 12_300_000_000, Free: 40_000_000_000,
		Night: []Night{{Step: "retention", At: at}, {Step: "vacuum", At: at.Add(time.Second)}}, Backup: &Backup{LastSuccess: at}}}
	const want = `CRITICAL: alerts: 2
critical  unreachable github (told since 2026-03-04 12:00:00)
          github: not reached since 2026-03-04T11:00:00Z
          Look at the network and at the log; what is asked for there is taken
          up when it [31manswers.
          docs/operations.md#unreachable
warning   waiting
          101 runs wait
          docs/operations.md#waiting
tori serve: running
runs: 3 running, 1,101 queued, 0 waiting for people, 0 paused
disk: the runs take 12.3 GB, 40.0 GB are free
nightly work: last at 2026-03-04 03:00
backup: 2026-03-04 03:00, verified: never
ready: every model in use can be called
`
	for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
		var b bytes.Buffer
		if err := PrintHealth(&b, h, ModelsOptions{Lang: lang, Mask: mask}); err != nil {
			t.Fatal(err)
		}
		if lang == i18n.English && b.String() != want {
			t.Error(cmp.Diff(want, b.String()))
		}
		for line := range strings.Lines(b.String()) {
			if n := columns(strings.TrimSpace(line)); n > 80 || strings.Contains(line, "health.") || strings.Contains(line, "%!") || strings.ContainsRune(line, 0x1b) {
				t.Errorf("%d columns: %q", n, line)
			}
		}
	}
	var b bytes.Buffer
	if err := PrintHealth(&b, h, ModelsOptions{JSON: true, Mask: mask}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Status string
		Ready  bool
		Alerts []struct{ Name, About, Level, Since string }
		House  struct {
			Tasks  map[string]int64
			Backup struct {
				LastSuccess  string  `json:"last_success"`
				LastVerified *string `json:"last_verified"`
			}
			Maintenance []struct{ Step string }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Status != "critical" || !got.Ready || len(got.Alerts) != 2 || got.Alerts[0].Since != "2026-03-04T12:00:00.000000Z" || got.Alerts[0].About != "github" || got.House.Tasks["queued"] != 1101 ||
		got.House.Backup.LastVerified != nil || len(got.House.Maintenance) != 2 {
		t.Errorf("%+v\n%s", got, b.String())
	}
}
