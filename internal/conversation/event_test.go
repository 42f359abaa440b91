package conversation

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
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
