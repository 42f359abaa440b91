package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/dispatch"
	"toritsugi/internal/task"
)

type stub struct{ why []string }

func (stub) Busy() int            { return 3 }
func (stub) Waiting() (int, bool) { return 12, true }
func (stub) Counts() dispatch.Counts {
	return dispatch.Counts{Began: 7, Ended: map[task.Status]int64{task.Completed: 5}, Polls: map[string]dispatch.Polls{"github": {All: 9, At: time.Unix(1_800_000_000, 0)}},
		Free: 1 << 30}
}
func (stub) Tasks(context.Context) (map[Group]int, error) {
	return map[Group]int{{Status: task.Queued}: 9, {"terminal", task.Queued}: 2, {"terminal", task.AwaitingApproval}: 1}, nil
}
func (stub) Alerts() map[Alert]int { return map[Alert]int{{"unreachable", "critical"}: 2} }
func (s stub) Ready() []string     { return s.why }
func (stub) House(context.Context) (House, error) {
	at := time.Unix(1_800_000_000, 0)
	return House{Used: 1 << 20, Night: map[string]Upkeep{"index": {at, true}}, Backup: at, Verified: at}, nil
}

func TestPages(t *testing.T) {
	t.Parallel()
	get := func(d Daemon, method, path string) (int, string) {
		srv := httptest.NewServer(New(d, nil))
		defer srv.Close()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = a.Body.Close() }()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(b)
	}
	for _, c := range []struct {
		d            Daemon
		method, path string
		code         int
		want         string
	}{
		{stub{}, "GET", "/healthz", 200, "ok"},
		{stub{}, "GET", "/readyz", 200, "ok"},
		{stub{[]string{"github: not reached yet"}}, "GET", "/readyz", 503, "github: not reached yet"},
		{stub{}, "POST", "/healthz", 405, ""},
		{stub{}, "GET", "/", 404, ""},
	} {
		if code, body := get(c.d, c.method, c.path); code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %q", c.method, c.path, code, body)
		}
	}
	_, body := get(stub{}, "GET", "/metrics")
	for _, want := range []string{`tori_tasks{status="queued"} 11`, `tori_tasks{status="running"} 0`, `tori_tasks{status="awaiting_approval"} 1`,
		`tori_chat_jobs{channel="terminal",status="queued"} 2`, `tori_chat_jobs{channel="terminal",status="awaiting_approval"} 1`, "tori_workers_busy 3", "tori_runs_begun_total 7", `tori_runs_ended_total{status="completed"} 5`,
		`tori_polls_total{source="github"} 9`, `tori_poll_success_timestamp_seconds{source="github"} 1.8e+09`, "tori_inbox_events 12", `tori_alerts{level="critical",name="unreachable"} 2`, "tori_runs_bytes 1.048576e+06",
		`tori_maintenance_timestamp_seconds{step="index"} 1.8e+09`, `tori_maintenance_failed{step="index"} 1`, "tori_backup_timestamp_seconds 1.8e+09", "tori_backup_verified_timestamp_seconds 1.8e+09", "tori_disk_free_bytes 1.073741824e+09", "go_goroutines"} {
		if !strings.Contains(body, want+"\n") && !strings.Contains(body, want+" ") {
			t.Errorf("%q is missing", want)
		}
	}
}
