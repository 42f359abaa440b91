package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/workspace"
)

// Deliver is where a granted patch goes (spec/chat §1 "chat.deliver").
type Deliver string

// The targets.
const (
	PullRequest Deliver = "pull_request" // a branch and a draft at the forge
	Branch      Deliver = "branch"       // a branch of a repository of this machine
	Worktree    Deliver = "worktree"     // the files at hand
)

// TaskType is what kind of work a proposal is (spec/chat §7).
type TaskType string

// The task types.
const (
	Design   TaskType = "design"
	Codegen  TaskType = "codegen"
	Refactor TaskType = "refactor"
	Review   TaskType = "review"
)

// TypeOf is the task type of a leg's proposal. A coder may say refactor or review; review
// counts only without a patch, refactor only with one.
func TypeOf(leg, said string, patch bool) TaskType {
	switch t := TaskType(strings.ToLower(strings.TrimSpace(said))); {
	case t == Review && !patch, t == Refactor && patch:
		return t
	case leg == "CODE1":
		return Design
	}
	return Codegen
}

// Draft is what a coder's leg proposed, before it is judged. What the model said is data.
type Draft struct {
	Session   string // "terminal:hanako:1a2b3c4d"; "" for none
	Requester string // "slack:U1", "github:123"
	Title     string
	Summary   []string // one to three lines
	Plan      string
	Patch     []byte // the raw bytes of the model's call; empty for a review
	Commands  []string
	Notes     []string
	Tests     []string
	Checks    []string // that the project has by its settings or its base; whether their programs are installed is not known yet
	CoderRisk string   // in the coder's words
	Type      TaskType

	Base       string // a commit, for worktree a git tree
	Repository string // "github:acme/widgets", or a path
	Deliver    Deliver
	Onto       string // branch that it goes to; "" for a new one
	Visibility Visibility
	Cost       Cost
	Reverts    string // the job that it takes back, "" for none
}

// Visibility says who can see what is delivered.
type Visibility string

// The visibilities. What is not known counts as public (spec/chat §7 "push_public").
const (
	Private Visibility = "private" // and repositories of this machine
	Public  Visibility = "public"
)

// Cost is what a job has taken and is expected to take.
type Cost struct {
	Tokens   int64 `json:"tokens,omitempty"`
	MicroUSD int64 `json:"micro_usd,omitempty"` // as far as prices are known
	Hint     int64 `json:"hint_tokens,omitempty"`
	Near     bool  `json:"near_limit,omitempty"` // as the coder said
}

// Proposal is proposal.json of a context: what people decide about. It is replaced as a
// whole where a proposal is made anew while it waits.
type Proposal struct {
	Format int               `json:"format"`
	Job    string            `json:"job_id"`
	Run    string            `json:"uuid"`
	At     contextstore.Time `json:"proposed_at"`

	Session   string   `json:"session_id,omitempty"`
	Requester string   `json:"requester"`
	Title     string   `json:"title"`
	Summary   []string `json:"summary,omitempty"`
	Plan      string   `json:"plan,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	Tests     []string `json:"tests,omitempty"`
	Checks    []string `json:"checks,omitempty"`
	CoderRisk string   `json:"coder_risk,omitempty"`
	Type      TaskType `json:"task_type"`

	Patch    string   `json:"patch_sha256,omitempty"` // of the raw bytes; "" for a review
	Files    []File   `json:"files,omitempty"`
	Commands []string `json:"commands,omitempty"`
	Risks    []Risk   `json:"risks,omitempty"`

	Base       string  `json:"base"`
	Repository string  `json:"repository"`
	Deliver    Deliver `json:"deliver"`
	Onto       string  `json:"onto,omitempty"`
	Policy     string  `json:"policy_version"`
	Cost       Cost    `json:"cost"`
	Reverts    string  `json:"reverts,omitempty"`

	Judged *Judged `json:"judged,omitempty"` // nil where no plan led the coder, or it is not judged yet
}

// Judged is what a coder's own verification came to, by the patch alone: no check has run.
// It is shown, and no part of what an approval is bound to.
type Judged struct {
	Subtasks int      `json:"subtasks"` // of the plan that led the coder
	Criteria int      `json:"criteria"`
	Met      int      `json:"met"`            // of these
	Open     []string `json:"open,omitempty"` // what remains to be done, or was not judged
}

// File is what a proposal does to one file.
type File struct {
	Path    string                `json:"path"`
	From    string                `json:"from,omitempty"`
	Action  workspace.PatchAction `json:"action"`
	Added   int                   `json:"added"`
	Removed int                   `json:"removed"`
	Mode    string                `json:"mode,omitempty"` // that it gets
	Binary  bool                  `json:"binary,omitempty"`
}

// proposalFormat is the number of the form of proposal.json.
const proposalFormat = 1

// Hash is what an approval is bound to: SHA-256 of the normal form of the patch, the
// commands, base, repository, target and policy version, in hex (spec/chat §7). The normal
// form of a patch is the bytes that are stored: a Draft's, with the counts of its hunks right.
func (p Proposal) Hash() string {
	b, err := json.Marshal([]any{"tori-approval-1", p.Patch, p.Commands, p.Base, p.Repository, p.Deliver, p.Onto, p.Policy})
	if err != nil {
		return "" // strings only
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ShortHash is how much of a hash a button or a command carries, in digits.
const ShortHash = 12

// Short is the beginning of the hash, as people carry it.
func (p Proposal) Short() string { return p.Hash()[:ShortHash] }

// Grantable reports whether there is anything to apply: a proposal without a diff is
// shown and cannot be granted (spec/chat §6).
func (p Proposal) Grantable() bool { return p.Patch != "" }
