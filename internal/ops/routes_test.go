package ops

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
)

// sessionEvents writes the events of a session below base.
func sessionEvents(t *testing.T, base, session string, lines ...any) {
	t.Helper()
	var b bytes.Buffer
	for _, l := range lines {
		if s, ok := l.(string); ok {
			b.WriteString(s + "\n")
			continue
		}
		j, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(j, '\n'))
	}
	dir := filepath.Join(base, "sessions", session)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRouteStats(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	decided := func(d routing.Decision) routing.DecisionEvent { return d.Event(at, "s", "t") }
	override := func(from, to routing.Route, by string) routing.OverrideEvent {
		return routing.OverrideEvent{Event: routing.EventOverride, At: at, SessionID: "s", TurnID: "t", From: from, To: to, By: by}
	}
	rule := decided(routing.Decision{PrimaryRoute: routing.Ops, Source: routing.FromRules, Confidence: 1, Evidence: []string{"ops_docker", "docker"}})
	command := decided(routing.Decision{PrimaryRoute: routing.Code, Source: routing.FromCommand, Confidence: 1, Evidence: []string{"/code"}})
	unsure := decided(routing.Decision{PrimaryRoute: routing.Chat, Source: routing.FromFallback, Classified: &routing.Classified{Route: routing.Plan, Confidence: 0.4}})
	sessionEvents(t, base, "one", rule, `{"event":"worker.success"}`, override(routing.Ops, routing.Plan, routing.ByReroute), unsure, command, override(routing.Chat, routing.Code, routing.ByCommand),
		override(routing.Chat, routing.Code, routing.ByCommand), rule)
	sessionEvents(t, base, "two", rule, `{"event":"router.decision","at":`, strings.Repeat("x", maxEvent+1), override(routing.Analyze, routing.Chat, routing.ByCommand), override(routing.Ops, routing.Chat, routing.ByCommand))
	sessionEvents(t, base, "three")
	s, err := ReadRouteStats(base)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := RoutesStats(&out, base, s, RoutesOptions{Lang: i18n.English}); err != nil {
		t.Fatal(err)
	}
	want := `5 decisions in 2 sessions; overridden: a user's command or a reroute led elsewhere
SOURCE     BY                     ROUTE    MESSAGES OVERRIDDEN  TO
rules      ops_docker             OPS             3    2 (66%)  CHAT 1, PLAN 1
command    /code                  CODE            1          0  
fallback   said PLAN              CHAT            1   1 (100%)  CODE 1
2 lines could not be read
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	if err := RoutesStats(&out, base, s, RoutesOptions{JSON: true, Lang: i18n.English}); err != nil {
		t.Fatal(err)
	}
	if want := `{"source":"rules","by":"ops_docker","route":"OPS","messages":3,"overridden":2,"to":{"CHAT":1,"PLAN":1},"rerouted":1}`; !strings.HasPrefix(out.String(), want+"\n") || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%s", out.String())
	}

	empty, err := ReadRouteStats(t.TempDir())
	if err != nil || empty.Messages != 0 {
		t.Errorf("%+v, %v", empty, err)
	}
}
