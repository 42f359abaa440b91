// Package routing decides who answers a message: a command, else the dictionary, else the
// classifier, else Chat (route §2). It reads what models say of routes (a delegation, a
// proposal) and rules the loop of a turn. It has no side effects; models come in as functions.
package routing

import (
	"slices"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/cloud"
)

// Route is a kind of work (route §2, §3.4).
type Route string

// The routes. Code is a coder that is chosen by content (Coder); Code1 to Code3 fix it.
const (
	Chat     Route = "CHAT"
	Plan     Route = "PLAN"
	Analyze  Route = "ANALYZE"
	Ops      Route = "OPS"
	Research Route = "RESEARCH"
	Code     Route = "CODE"
	Code1    Route = "CODE1"
	Code2    Route = "CODE2"
	Code3    Route = "CODE3"
)

// Classify is the leg of the classifier, for Policy.Leg alone: no decision names it.
const Classify Route = "CLASSIFY"

// routes are all that a decision may name; the first six are the classifier's labels.
var routes = []Route{Chat, Plan, Analyze, Ops, Research, Code, Code1, Code2, Code3}

// ParseRoute reads the name of a route in any case, with spaces around it.
func ParseRoute(s string) (Route, bool) {
	r := Route(strings.ToUpper(strings.TrimSpace(s)))
	return r, slices.Contains(routes, r)
}

// Coding reports whether r is Code or one of its coders.
func (r Route) Coding() bool { return r == Code || r == Code1 || r == Code2 || r == Code3 }

// Policy is what a session's flag and the settings allow. It is asked before each leg:
// classifier, workers, coders, delegations, reroutes, Chat and its summariser.
type Policy struct {
	LocalOnly   bool     // of the session: /local
	CloudRoutes []string // security.cloud_allowed_routes
}

// Leg says why a leg of route may not run with a model, nil where it may; cloud says
// whether that model is in a cloud. The classifier's leg is Classify, the summariser of a
// chat counts as Chat. Coding is forbidden under LocalOnly whoever would do it (route §5).
// The error is an *i18n.Error; that of coding is the fixed text of spec/chat §3.
func (p Policy) Leg(route Route, inCloud bool) error {
	if p.LocalOnly && route.Coding() {
		return i18n.E("routing.local_only")
	}
	if !inCloud {
		return nil
	}
	return cloud.Allowed(string(route), p.LocalOnly, p.CloudRoutes)
}
