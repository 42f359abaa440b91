package conversation

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/models"
)

// The events have the fixed names and fields, what is absent is null, and each is a record
// of the log; no secret and no text of the user's is in them.
func TestEvents(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := open(t, i18n.English, "terminal", func(_ *house, o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	h.plays("worker", "no JSON from hanako@example.com", output(planResult, map[string]any{"fit": false, "suggested_route": "OPS"}), "bad", "no classifier")
	h.cast.scripts["worker"][2] = says("bad", "bad")
	h.plays("chat", "a", "b", "c")
	h.hears("hello hunter2-hunter2")
	h.hears("/plan do")
	want := map[string]string{
		"router.decision":  "at classifier_confidence classifier_route confidence event evidence initial_route local_only session_id source turn_id",
		"classifier.error": "at error_reason event raw session_id turn_id",
		"worker.success":   "at confidence error event fit needs_next_loop risk route session_id turn_id",
		"worker.fail":      "at confidence error event fit needs_next_loop risk route session_id turn_id",
		"route.override":   "at by event from session_id to turn_id",
		"loop.stop":        "at elapsed event final_route loops session_id stop_reason turn_id",
		"final.route":      "at error_reason event final_route initial_route reroute_used session_id turn_id worker_calls",
	}
	seen := map[string]bool{}
	for _, v := range h.events() {
		name, _ := v["event"].(string)
		seen[name] = true
		if got := strings.Join(slices.Sorted(maps.Keys(v)), " "); got != want[name] {
			t.Errorf("%s has %s", name, got)
		}
		if !strings.Contains(log.String(), "msg="+name) {
			t.Errorf("%s is not in the log", name)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("only %v", seen)
	}
	h.tells("classifier.error", "error_reason raw turn_id", `error_reason="invalid_output" raw="no JSON from [EMAIL]" turn_id="`+h.id+`#1"`)
	h.tells("worker.fail", "needs_next_loop risk confidence fit", "needs_next_loop=null risk=null confidence=null fit=null")
	if strings.Contains(log.String(), "hunter2") {
		t.Error("a secret is in the log")
	}
}

// The events of a turn are one write to their file, in their order, also where it was
// stopped; those before a worker or a job are on disk when it begins.
func TestEventsAreWrittenTogether(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		during string // what is on disk when the leg or the job begins
		all    string
		writes int
	}{
		"/chat hello": {"", "router.decision loop.stop final.route", 1},
		"/chat stop":  {"", "router.decision loop.stop final.route", 1},
		"/plan do":    {"router.decision", "router.decision worker.success loop.stop final.route", 2},
		"/code2 do":   {"router.decision", "router.decision loop.stop final.route", 2},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var h *house
			names := func() string {
				var all []string
				for _, v := range h.events() {
					all = append(all, v["event"].(string))
				}
				return strings.Join(all, " ")
			}
			begins := func() {
				if got := names(); got != c.during {
					t.Errorf("when it begins: %q", got)
				}
			}
			h = open(t, i18n.English, "terminal", func(h *house, o *Options) { o.Jobs = deskAt{h.desk, begins} })
			writes := 0
			h.fs.Trace = func(e disk.Event) {
				if e.Kind == disk.Wrote && filepath.Base(e.Path) == eventsFile {
					writes++
				}
			}
			h.cast.made = func(u models.Use) string {
				switch {
				case u.Role == "worker":
					begins()
					return says(output(planResult, nil))
				case text == "/chat stop":
					stop()
				case c.during == "":
					begins()
				}
				return says("Well.")
			}
			if err := h.Handle(ctx, h.message(text)); err != nil {
				t.Fatal(err)
			}
			if got := names(); got != c.all || writes != c.writes {
				t.Errorf("%q by %d writes", got, writes)
			}
		})
	}
}

// deskAt is a desk that tells when a job begins.
type deskAt struct {
	*desk
	begins func()
}

func (d deskAt) Start(ctx context.Context, j Job) (string, error) {
	d.begins()
	return d.desk.Start(ctx, j)
}
