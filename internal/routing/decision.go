package routing

import (
	"cmp"
	"context"
	"strings"

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
	// Denied says that the message follows the denial of a proposal: it may tell what is to
	// be different, which shows nothing of code by itself.
	Denied bool
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
	s.Fallback = cmp.Or(s.Fallback, Chat)
	return &Router{rules, s}
}

// Trouble is why the dictionary's file as it is now is not in force, nil where it is.
func (r *Router) Trouble() error { return r.rules.Trouble() }

// Decide routes a message. It never fails: what goes wrong is in the decision.
func (r *Router) Decide(ctx context.Context, in Input) Decision {
	d := Decision{Command: ParseCommand(in.Text), Text: in.Text, Flags: Flags{in.LocalOnly}, Evidence: []string{}}
	toChat := in.ToChat || in.Channel == channel.LINE // route §2.6
	switch c := d.Command.(type) {
	case nil:
		d.byRules(r.rules.Current())
		if d.PrimaryRoute == "" && !toChat {
			d.byClassifier(ctx, r, in)
		}
		if d.PrimaryRoute == "" {
			d.PrimaryRoute, d.Source = r.s.Fallback, FromFallback
		}
	case ToRoute:
		name := "/" + strings.ToLower(string(c.Route))
		d.Text, d.PrimaryRoute, d.Source, d.Confidence, d.Reason, d.Evidence = c.Rest, c.Route, FromCommand, 1, name, []string{name}
		if c.Rest == "" {
			d.hold(HeldBare)
		}
	default:
		if l, ok := c.(Local); ok {
			d.Text = l.Rest
		}
		d.Source, d.Confidence = FromCommand, 1
		return d
	}
	if toChat {
		d.toChat(in.Channel)
	}
	if (Policy{LocalOnly: in.LocalOnly}).Leg(cmp.Or(d.Wanted, d.PrimaryRoute), false) != nil {
		d.hold(HeldLocal)
	}
	switch {
	case d.PrimaryRoute == Code:
		d.Coder = Coder(d.Text)
	case d.PrimaryRoute.Coding():
		d.Coder = d.PrimaryRoute
	}
	return d
}

// byRules asks the dictionary.
func (d *Decision) byRules(rules *Dictionary) {
	hit, ok := rules.Match(d.Text)
	if !ok {
		d.Reason = "no_rule"
		return
	}
	d.PrimaryRoute, d.Source, d.Confidence, d.Reason, d.Rule, d.Label = hit.Route, FromRules, 1, hit.Rule, hit.Rule, hit.Label
	d.Evidence = []string{hit.Label}
	if hit.Fragment != "" {
		d.Evidence = append(d.Evidence, hit.Fragment)
	}
}

// byClassifier asks the model, where there is one and something to ask about. Whatever
// it says that is not followed ends with Chat.
func (d *Decision) byClassifier(ctx context.Context, r *Router, in Input) {
	if !r.s.Classifier || in.Ask == nil || strings.TrimSpace(d.Text) == "" {
		return
	}
	c := r.classify(ctx, in.Ask, d.Text, in.Denied)
	d.Classified = c
	if c.Error != "" {
		d.PrimaryRoute, d.Source, d.Reason = Chat, FromFallback, string(c.Error)
		return
	}
	d.PrimaryRoute, d.Source, d.Confidence, d.Reason, d.Evidence = c.Route, FromClassifier, c.Confidence, c.reason, c.evidence
}

// toChat sends the message to Chat, with its route as a hint (spec/chat §3).
func (d *Decision) toChat(kind channel.Kind) {
	if d.PrimaryRoute != Chat {
		d.hold(HeldEntry)
	}
	d.Source, d.Reason = FromFallback, "entry=chat"
	if kind == channel.LINE {
		d.Source, d.Reason = FromLine, "channel=line"
	}
	d.Confidence, d.Evidence = 1, []string{d.Reason}
}

// hold lets Chat answer in place of the route that was wanted.
func (d *Decision) hold(why Held) {
	d.Wanted, d.PrimaryRoute, d.Held = cmp.Or(d.Wanted, d.PrimaryRoute), Chat, why
}
