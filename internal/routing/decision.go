package routing

import (
	"context"
	"time"

	"toritsugi/internal/channel"
)

// Source is where a decision came from (route §4.2).
type Source string

// The sources.
const (
	FromCommand    Source = "command"
	FromRules      Source = "rules"
	FromClassifier Source = "classifier"
	FromFallback   Source = "fallback"
	FromLine       Source = "line_forced_chat"
)

// Held says why the route that was wanted is not the one that runs.
type Held string

// Why a route is held.
const (
	HeldLocal Held = "local_only"   // coding while local: Chat says so and names /cloud
	HeldBare  Held = "bare_command" // /code without a text: Chat asks what to do
	HeldEntry Held = "entry"        // the channel's messages all go to Chat; Wanted is a hint in its material
)

// Flags of a decision.
type Flags struct {
	LocalOnly bool `json:"local_only"`
}

// Decision is RoutingDecision of the contracts (route §4.2), with what it is based on.
type Decision struct {
	// PrimaryRoute is who begins; never a coder under Flags.LocalOnly.
	PrimaryRoute Route   `json:"primary_route"`
	Source       Source  `json:"source"`
	Confidence   float64 `json:"confidence"` // 0 to 1
	Reason       string  `json:"reason"`     // a rule's name, a command, what the classifier said, why there was none
	// Evidence is what speaks for it: the label of a rule and the piece of the message
	// that it found, or the classifier's pieces. It quotes the message, unmasked.
	Evidence []string `json:"evidence"`
	Flags    Flags    `json:"flags"`

	// Text is the message without its command, byte for byte.
	Text string `json:"-"`
	// Command is what the message asks for by a command, nil for none. Where it is
	// neither nil nor a ToRoute nothing was routed and PrimaryRoute is "": the command is
	// carried out, and the Rest of a Local, if any, is routed as a message of its own.
	Command Command `json:"-"`
	// Coder is Code1, Code2 or Code3 where PrimaryRoute is coding, else "".
	Coder Route `json:"-"`
	// Wanted is the route that Held keeps from running; both "" where there is none.
	Wanted Route `json:"-"`
	Held   Held  `json:"-"`
	// Rule is the name of the rule that hit, Label its evidence label; "" for none.
	Rule, Label string `json:"-"`
	// Classified is what became of the classifier's call, nil where there was none.
	Classified *Classified `json:"-"`
}

// Settings of a Router.
type Settings struct {
	Classifier           bool    // routing.classifier.enabled
	MinConfidence        float64 // routing.classifier.min_confidence
	MinConfidenceForCode float64 // routing.classifier.min_confidence_for_code
	Fallback             Route   // routing.fallback_route; "" is Chat
}

// Ask calls the model of the classifier once, at temperature 0, with at most
// ClassifierTokens tokens of answer.
type Ask func(ctx context.Context, system, user string) (string, error)

// ClassifierTokens is the longest answer of the classifier (spec/chat §3).
const ClassifierTokens = 300

// Input is a message and how it is to be routed.
type Input struct {
	Channel   channel.Kind
	Text      string
	LocalOnly bool // of the session
	// ToChat sends all but control commands to Chat: channels.*.entry is chat. It is
	// always so for LINE.
	ToChat bool
	// Ask is nil where no classifier is to be called.
	Ask Ask
}

// Router decides by commands, dictionary, classifier, fallback, in this order (route
// §2.1). It is safe for concurrent use.
type Router struct {
	rules *Rules
	s     Settings
}

// New returns a router with the dictionary of rules.
func New(rules *Rules, s Settings) *Router {
	if s.Fallback == "" {
		s.Fallback = Chat
	}
	return &Router{rules, s}
}

// Event lines of a session, as package conversation writes them to its events.jsonl and
// tori routes stats reads them (route §7.1, spec/facts §7b).
const (
	EventDecision        = "router.decision"
	EventClassifierError = "classifier.error"
	EventOverride        = "route.override"
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

// OverrideEvent is the line of a route.override: somebody sent by a command to another
// route what the one before had answered, or a reroute did.
type OverrideEvent struct {
	Event     string    `json:"event"` // EventOverride
	At        time.Time `json:"at"`
	SessionID string    `json:"session_id"`
	TurnID    string    `json:"turn_id"` // of the turn whose decision is overridden
	From      Route     `json:"from"`
	To        Route     `json:"to"`
	By        string    `json:"by"` // "command" or "reroute"
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

// Decide routes a message. It never fails: what goes wrong is in the decision.
func (r *Router) Decide(ctx context.Context, in Input) Decision { return Decision{} }
