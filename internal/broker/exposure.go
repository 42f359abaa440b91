package broker

import (
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
)

// Leg is one of the three that must not meet without a person: who feeds a run,
// reads what it can read, and hears what it says, has all that it has.
type Leg string

// The legs of the trifecta.
const (
	Untrusted Leg = "untrusted" // text that strangers wrote
	Sensitive Leg = "sensitive" // what strangers must not get
	Outward   Leg = "outward"   // a way out, beyond the draft and the branch of the task itself
)

// AllLegs lists the legs in a fixed order.
func AllLegs() []Leg { return []Leg{Untrusted, Sensitive, Outward} }

// Fact is something a run has come into touch with.
type Fact struct {
	Leg    Leg
	What   string // one of the constants below
	Detail string // which one, for people: a name, never a value
}

// The facts that are known of.
const (
	StrangerText      = "stranger_text"      // Untrusted: of an author who may not write to the repository
	UntrustedServer   = "mcp_server"         // Untrusted: an MCP server that no setting calls trusted
	RepositoryFiles   = "repository_files"   // Untrusted where the settings say so
	SecretEnvironment = "secret_environment" // Sensitive: a secret granted to the tools
	PrivateRepository = "private_repository" // Sensitive
	HomePath          = "home_path"          // Sensitive: a path granted to the tools
	OpenNetwork       = "network"            // Outward: tools that reach hosts beyond the house
)

// maxFacts bounds how many facts of one kind are kept; what is beyond says
// nothing new about the legs.
const maxFacts = 32

// Report tells of something the run has come into touch with. A fact is
// recorded once. RepositoryFiles counts only where the settings say so.
func (b *Broker) Report(f Fact) error {
	if !slices.Contains(AllLegs(), f.Leg) {
		return fmt.Errorf("fact %s: no leg %q", f.What, f.Leg)
	}
	f.Detail = cut(b.o.Filter.shown(f.Detail), 200)
	if f.What == RepositoryFiles && !b.o.Settings.RepositoryUntrusted {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.facts[f] || b.many(f) {
		return nil
	}
	if err := b.o.Recorder.Append(contextstore.EffectRecord{Type: contextstore.EffectFact, Leg: string(f.Leg), Fact: f.What, Detail: f.Detail}); err != nil {
		return fmt.Errorf("record fact %s of %s: %w", f.What, b.o.Scope.Task, err)
	}
	b.note(f)
	return nil
}

func (b *Broker) many(f Fact) bool {
	n := 0
	for g := range b.facts {
		if g.Leg == f.Leg && g.What == f.What {
			n++
		}
	}
	return n >= maxFacts
}

func (b *Broker) note(f Fact) {
	b.facts[f] = true
	b.legs[f.Leg] = true
}

// Exposure lists the legs that the run has so far, in their order.
func (b *Broker) Exposure() []Leg {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.exposure(false)
}

func (b *Broker) exposure(outward bool) []Leg {
	return slices.DeleteFunc(AllLegs(), func(l Leg) bool { return !b.legs[l] && (l != Outward || !outward) })
}

// legsWith are the legs of the run once r is done. A request that stays with
// the task's own branch and draft is never one that completes the three, also
// where the run has a way out besides.
func (b *Broker) legsWith(r Request) []Leg {
	if b.outward(r) {
		return b.exposure(true)
	}
	return slices.DeleteFunc(b.exposure(false), func(l Leg) bool { return l == Outward })
}

// outward reports whether a request reaches people or machines beyond the
// branch and the draft of its own task.
func (b *Broker) outward(r Request) bool {
	switch r.Kind {
	case Push:
		return false
	case PullRequest:
		return !r.Draft
	case Comment:
		return !b.o.Scope.Private
	}
	return true
}

// why names the facts that make the first two legs.
func (b *Broker) why() string {
	var all []string
	for f := range b.facts {
		if f.Leg == Outward {
			continue
		}
		s := f.What
		if f.Detail != "" {
			s += " (" + f.Detail + ")"
		}
		all = append(all, s)
	}
	slices.Sort(all)
	if len(all) > 6 {
		all = append(all[:6], "…")
	}
	return strings.Join(all, ", ")
}
