// Package web is what a daemon shows of itself over HTTP: that it lives, that it can take
// work, and its figures. It reads and changes nothing. What vendors of channels call
// is beside it, within the same bounds.
package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/task"
)

// Daemon is who is shown.
type Daemon interface {
	Counts() dispatch.Counts
	Busy() int
	// Tasks counts the runs that have not ended.
	Tasks(ctx context.Context) (map[Group]int, error)
	// Ready says why no work can be taken now, nothing where it can.
	Ready() []string
	// Waiting counts the events of channels that wait or are worked on; ok is false
	// where there is no channel.
	Waiting() (n int, ok bool)
	// Alerts counts by name what is wrong and was told.
	Alerts() map[Alert]int
	// House tells of what is kept, and how it is looked after.
	House(ctx context.Context) (House, error)
}

// Alert is a kind of alert.
type Alert struct{ Name, Level string }

// House is what is kept, and how it is looked after. What is not known is zero.
type House struct {
	Used             int64             // bytes of all runs
	Night            map[string]Upkeep // by step of the nightly work
	Backup, Verified time.Time         // when one last succeeded
}

// Upkeep is how a step of the nightly work went the last time.
type Upkeep struct {
	At     time.Time
	Failed bool
}

// Group is what runs are counted by: the channel of a conversation's jobs, "" for all other
// runs, and their status.
type Group struct {
	Channel string
	Status  task.Status
}

// Statuses are those of runs that have not ended.
func Statuses() []task.Status {
	return []task.Status{task.Queued, task.Running, task.Paused, task.AwaitingApproval}
}

// Hook is a page that others call with what they have to say: "POST /webhooks/line".
type Hook struct {
	Pattern string // of http.ServeMux
	Handler http.Handler
	Most    int64 // bytes of a request; 0 is channel.MaxRequest
}

// New returns the pages of a daemon, /healthz, /readyz and /metrics, and hooks, for who calls
// it by an address, by localhost or by one of names, in lower case.
func New(d Daemon, hooks []Hook, names ...string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := d.Ready(); len(why) > 0 {
			say(w, http.StatusServiceUnavailable, strings.Join(why, "\n"))
			return
		}
		say(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", metrics(d))
	for _, h := range hooks {
		mux.Handle(h.Pattern, http.MaxBytesHandler(h.Handler, cmp.Or(h.Most, channel.MaxRequest)))
	}
	return called(names, mux)
}

func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text) // who asked is gone
}
