package routing

import "time"

// Event lines of a session, as package conversation writes them to its events.jsonl and
// tori routes stats reads them (route §7.1, spec/facts §7b).
const (
	EventDecision        = "router.decision"
	EventClassifierError = "classifier.error"
	EventOverride        = "route.override"
)

// Who overrides a route.
const (
	ByCommand = "command" // a person sent the next message elsewhere
	ByReroute = "reroute" // a worker's or Chat's suggestion was followed
)

// DecisionEvent is the line of a router.decision.
type DecisionEvent struct {
	Event                string    `json:"event"` // EventDecision
	At                   time.Time `json:"at"`
	SessionID            string    `json:"session_id"`
	TurnID               string    `json:"turn_id"`
	InitialRoute         Route     `json:"initial_route"`
	Source               Source    `json:"source"`
	Confidence           float64   `json:"confidence"`
	Evidence             []string  `json:"evidence"` // as in Decision, masked
	ClassifierRoute      *Route    `json:"classifier_route"`
	ClassifierConfidence *float64  `json:"classifier_confidence"`
	LocalOnly            bool      `json:"local_only"`
}

// OverrideEvent is the line of a route.override: what From had answered went on to To.
type OverrideEvent struct {
	Event     string    `json:"event"` // EventOverride
	At        time.Time `json:"at"`
	SessionID string    `json:"session_id"`
	TurnID    string    `json:"turn_id"` // in which it happened
	From      Route     `json:"from"`    // route of the latest decision for it in this session
	To        Route     `json:"to"`
	By        string    `json:"by"` // ByCommand or ByReroute
}

// Event returns the decision's line.
func (d Decision) Event(at time.Time, session, turn string) DecisionEvent {
	e := DecisionEvent{Event: EventDecision, At: at, SessionID: session, TurnID: turn, InitialRoute: d.PrimaryRoute, Source: d.Source, Confidence: d.Confidence,
		Evidence: d.Evidence, LocalOnly: d.Flags.LocalOnly}
	if c := d.Classified; c != nil && c.Route != "" {
		e.ClassifierRoute, e.ClassifierConfidence = &c.Route, &c.Confidence
	}
	return e
}
