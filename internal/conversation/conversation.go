// Package conversation answers messages: a session each, whose turns go by routing to workers,
// coders and Chat, who writes what the user reads (route §1, §8; spec/chat). It changes nothing
// of a repository; what a coder proposes is a job, which others carry out.
package conversation

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/routing"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/web"
)

// Models makes the clients of legs. *models.Models is one.
type Models interface {
	Client(ctx context.Context, u models.Use) (llm.Client, models.Spec, error)
	Spec(ctx context.Context, u models.Use) (models.Spec, error)
	// Loaded reports whether a call begins at once: false where a local server has yet
	// to load the model, or does not answer.
	Loaded(ctx context.Context, s *models.Spec) bool
}

// Jobs begins what coders do, and tells of it. Its runs outlive turns.
type Jobs interface {
	// Start accepts a job and returns its id; the run goes on by itself and ends in
	// Engine.Finish. An error that a user reads refuses it.
	Start(ctx context.Context, j Job) (id string, err error)
	// List returns the jobs of a session that have not ended, the oldest first; behind them the
	// runs of a forge that it is told of.
	List(ctx context.Context, sessionID string) ([]Running, error)
	// Stop ends a job of the session, or such a run; by is the user who wants it.
	Stop(ctx context.Context, sessionID, id, by string) error
}

// Job is what a coder is to propose.
type Job struct {
	SessionID  string
	Channel    channel.Kind
	User       string
	ReplyTo    string        // the message that asked for it
	Route      routing.Route // CODE1, CODE2 or CODE3
	Role       string        // of routing.llm
	Repository Repository
	LocalOnly  bool
	Task       string         // what is to be done, without secrets
	Input      contract.Input // the same with what was said before
	Prompt     string         // what the coder is told of its work, in the language of the house
}

// Running is a job as people see it.
type Running struct {
	ID, Title string
	Route     routing.Route // "" for a run of a forge
	State     string        // in the language of the house
	Waits     bool          // for a decision of people: nothing goes on
	Since     time.Time
	ReplyTo   string // the message that asked for it
}

// Finished is a job that came to an end.
type Finished struct {
	SessionID string
	ReplyTo   string
	ID, Title string
	Route     routing.Route
	Proposal  *contract.Coder // nil where there is none
	Err       error           // why there is none
	Stopped   bool            // somebody had the job stopped before there was one
}

// Approvals decides about proposals.
type Approvals interface {
	// Decide records what a message, or the press of a button, decides; the hash is "" where it
	// was not said. The error is one that a user reads; the proposal then is as it was.
	Decide(ctx context.Context, m channel.Message, d channel.Decision) (channel.Approval, error)
	// Told says that the people of the session were told what was decided about a job: what
	// was granted is begun, so that they hear of its end behind that.
	Told(ctx context.Context, job string)
	// Auto sets or ends what the session grants by itself, and says so.
	Auto(ctx context.Context, sessionID, user string, a routing.AutoApprove) (told string, err error)
}

// Repository is one that sessions may work on (spec/chat §1).
type Repository struct {
	Name     string
	Path     string   // of its work tree, "" for one of a forge
	URL      string   // "github:acme/widgets", "" for one of this machine
	Base     string   // branch that work starts from; "" for the one that is checked out, or the forge's default
	Users    []string // who may name it; empty for everybody
	Channels []string // those that are mapped to it, as session ids begin: "slack:T1:C1"; empty for none
}

// Options are what an Engine works with. Jobs and Approvals may be nil: nothing is coded
// then, or nothing decided, and the user is told so.
type Options struct {
	Store     *contextstore.Store
	Models    Models
	Router    *routing.Router
	Limits    routing.Limits
	Cloud     []string              // security.cloud_allowed_routes
	ToChat    map[channel.Kind]bool // channels.*.entry is chat
	Jobs      Jobs
	Approvals Approvals
	People    People        // nil: nobody links accounts
	Issues    Issues        // nil: no runs of forges are begun
	Web       *web.Web      // what RESEARCH looks things up with; nil: nothing
	Access    []tool.Access // which tools workers may use

	Repositories []Repository
	// Tree opens the files of a repository of a forge as its base has them now; whoever
	// reads calls done. nil where no forge is set up.
	Tree func(ctx context.Context, r Repository) (root *os.Root, done func(), err error)
	Here *Repository // where the program was started, for sessions of the terminal; nil for nowhere

	PromptsDir  string // chat.prompts_dir; "" for the built-in ones
	RecentTurns int
	Cutover     time.Duration // after midnight, when a session's day ends
	Retention   time.Duration
	Zone        *time.Location

	Lang   i18n.Lang
	Redact func(string) string // of what coders are given
	Strict func(string) string // of what is stored, sent to people, and shown to all other models
	// Settled is how much of an answer that grows Strict masks by itself (redact.Sanitizer).
	Settled func(string) int
	Set     func(role string) bool
	Quiet   func(channel.Kind) bool // people of a channel are not to be told now what they did not just ask for; nil: never
	Opened  func(sessionID string)  // hears of a session that somebody looks at again; nil for nobody
	Log     *slog.Logger
	Now     func() time.Time
}

// Engine answers messages. It is safe for concurrent use: the turns of a session follow
// each other, sessions do not wait for each other.
type Engine struct {
	Options
	*shared
	prompts  *prompts
	analyses *Analyses
}

// shared is what the engines of one process have in common, whatever language they speak.
type shared struct {
	mu       sync.Mutex
	channels map[channel.Kind]channel.Channel
	lanes    map[string]*turnQueue
	spoken   map[i18n.Lang]*prompts  // of In
	answered map[string]time.Time    // when a model answered last, by PROVIDER/MODEL
	postings channel.Turns           // posts of a session, one after the other
	refused  channel.Recent[refused] // by session
}

var _ channel.EventHandler = (*Engine)(nil)

// New returns an Engine. It opens nothing: a session is read when it is spoken in.
func New(o Options) (*Engine, error) {
	switch {
	case o.Store == nil, o.Models == nil, o.Router == nil, o.Redact == nil, o.Strict == nil, o.Settled == nil:
		return nil, errors.New("conversation: a store, models, a router and masks are needed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Set == nil {
		o.Set = func(string) bool { return true }
	}
	if o.RecentTurns == 0 {
		o.RecentTurns = 5
	}
	if o.PromptsDir != "" {
		if _, err := os.Stat(o.PromptsDir); err != nil {
			return nil, i18n.E("conversation.prompts_dir", o.PromptsDir, err)
		}
	}
	e := &Engine{Options: o, shared: &shared{channels: map[channel.Kind]channel.Channel{}, lanes: map[string]*turnQueue{}, spoken: map[i18n.Lang]*prompts{}, answered: map[string]time.Time{}, refused: channel.Recent[refused]{Most: maxRefused}}}
	e.prompts = newPrompts(o.PromptsDir, o.Lang, o.Log)
	e.analyses = NewAnalyses(o.Store.BaseDir)
	return e, nil
}

// In is the engine as it speaks a language. It shares all but that with e, and is not closed.
func (e *Engine) In(l i18n.Lang) *Engine {
	o := *e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.spoken[l] == nil {
		e.spoken[l] = newPrompts(e.PromptsDir, l, e.Log)
	}
	o.Lang, o.prompts = l, e.spoken[l]
	return &o
}

// Unloaded says which files of prompts are not in force as they are now, by their paths, and
// why.
func (e *Engine) Unloaded() map[string]error {
	all := map[string]error{}
	e.prompts.trouble(all)
	e.mu.Lock()
	spoken := slices.Collect(maps.Values(e.spoken))
	e.mu.Unlock()
	for _, p := range spoken {
		p.trouble(all)
	}
	return all
}

// Close releases what was opened. Turns that run are the callers'.
func (e *Engine) Close() error { return e.analyses.Close() }

// Add makes c the channel that posts of its kind go to.
func (e *Engine) Add(c channel.Channel) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.channels[c.Kind()] = c
}

// channel is the channel of a session, nil where there is none.
func (e *Engine) channel(kind channel.Kind) channel.Channel {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.channels[kind]
}
