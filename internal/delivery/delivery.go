// Package delivery hands over what runs made: branch, pull request, comment, labels. A Run
// decides where its work goes on and what may go out, and puts it into its outbox; a Service
// delivers that, without an agent, as often as it takes, once in effect.
package delivery

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"toritsugi/internal/approval"
	"toritsugi/internal/blobs"
	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Service delivers for all runs. Its fields are set once and not changed.
type Service struct {
	Store         *contextstore.Store
	Hosts         map[string]*Host                               // that are served, by the source of task keys
	ByHand        func(contextstore.Metadata, order.Order) *Host // of a run of tori run
	Rules         Rules
	Box           workspace.Box              // where git looks at the tree of a workspace
	Secrets       func(text string) []string // what in a patch looks like a secret, as people may see it
	Author        Author
	BranchPattern string
	Lang          i18n.Lang // of what is posted and stored
	Now           func() time.Time
	Log           *slog.Logger
	// Approvals decide about what goes beyond what was asked for; nil where nothing does.
	Approvals func() (*approval.Jobs, error)
	Blobs     *blobs.Store // that keeps workspaces; nil where they are this machine's alone
}

// Author is who commits and comments.
type Author struct{ Name, Email string }

// Run is what one run hands over, and where. It is its owner's alone.
type Run struct {
	*Service
	Ledger    *contextstore.Context
	Order     order.Order
	Host      *Host
	Place     Place                // once Open decided it
	Workspace *workspace.Workspace // once Open opened it
	Broker    *broker.Broker       // once OpenBroker did
	Delivers  bool                 // the branch goes out
	Lost      bool                 // Open found no workspace, or one from before the run went on elsewhere
	Restored  *blobs.Snapshot      // what the workspace was made from again; nil where it is new, or was there
	Keeper    *blobs.Keeper        // of the workspace, from Restore on; nil where nothing keeps it

	item     *forge.Item
	issue    *forge.Item // that the draft was opened for
	proposal *pullEffect
	onward   *taskEffect // nil where the work does not go on elsewhere
	review   *forge.ReviewPost
	answers  []contextstore.Effect // to remarks
}

// NewRun is what the run of a context hands over; the error says that nobody knows
// where to.
func (s *Service) NewRun(c *contextstore.Context) (*Run, error) {
	h, o, err := s.HostOf(c.Metadata())
	return &Run{Service: s, Ledger: c, Host: h, Order: o}, err
}

// Here reports whether the work stays on this machine: its branch goes into a
// repository here, and no pull request is opened.
func (r *Run) Here() bool { return r.Host.Code == nil }

// key is the run's task as its forge has it.
func (r *Run) key() task.Key { return r.Ledger.Metadata().TaskKey.Item() }

// Reviews reports whether the run reviews a pull request, and changes nothing.
func (r *Run) Reviews() bool { return r.Ledger.Metadata().TaskKey.Type == task.TypeReview }

// Handler makes one effect happen and returns what came of it, for people: a
// URL, a commit. It looks for the effect's key first and does nothing where the
// effect is there already.
type Handler func(ctx context.Context, uuid string, e contextstore.Effect) (result string, err error)

// The kinds of effects. Those of tori run are push and comment.
const (
	EffectPush    = "push"
	EffectPull    = "pull_request"
	EffectTask    = "task"
	EffectComment = "comment"
	EffectLabels  = "labels"
	EffectReview  = "review"
)

// Handlers deliver the effects, by kind.
func (s *Service) Handlers() map[string]Handler {
	return map[string]Handler{EffectPush: hosted(s, s.deliverBranch), EffectPull: hosted(s, s.deliverProposal), EffectTask: s.deliverTask,
		EffectComment: s.deliverComment, EffectLabels: s.deliverLabels, EffectReview: hosted(s, s.deliverReview)}
}

// hosted is the handler of effects that go to the host of their run, by what delivers their data.
func hosted[T any](s *Service, deliver func(ctx context.Context, uuid string, h *Host, k task.Key, data T) (string, error)) Handler {
	return func(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
		data, err := readEffect[T](e)
		if err != nil {
			return "", err
		}
		h, k, err := s.hostOf(uuid)
		if err != nil {
			return "", err
		}
		return deliver(ctx, uuid, h, k, data)
	}
}

// NotDelivered begins the result of an effect that the other side will never
// take; what follows says why.
const NotDelivered = "! "

// NewEffect is an effect of a kind, known by its key.
func NewEffect(key, kind string, data any) (contextstore.Effect, error) {
	raw, err := json.Marshal(data)
	return contextstore.Effect{Key: key, Kind: kind, Data: raw}, err
}
