// Package contract is what the legs of a conversation hand each other: what a worker is
// given and gives back, and what a coder proposes, as Go types with a JSON Schema each
// (route §4, §5; spec/facts §4, §5). It reads what models write and calls none.
package contract

import (
	"embed"
	"encoding/json"
	"strings"

	"toritsugi/internal/channel"
	"toritsugi/internal/routing"
)

//go:embed schemas/*.json
var schemas embed.FS

// Input is what a worker is given: WorkerInput (spec/facts §4).
type Input struct {
	Route    routing.Route `json:"route"`
	Session  Session       `json:"session"`
	UserText string        `json:"user_text"`
	Context  Context       `json:"context"`
	Flags    Flags         `json:"flags"`
	Limits   Limits        `json:"limits"`
	Tooling  Tooling       `json:"tooling"`
}

// Session is where the work comes from.
type Session struct {
	SessionID string       `json:"session_id"`
	Channel   channel.Kind `json:"channel"`
	TargetOS  string       `json:"target_os"` // linux, windows, mac or unknown
	Timezone  string       `json:"timezone,omitempty"`
	Now       string       `json:"now_iso,omitempty"`
	Repo      *Repo        `json:"repo_hint,omitempty"`
}

// Repo is the session's repository.
type Repo struct {
	Name string `json:"name"`
	Path string `json:"path,omitempty"`
}

// Context is what was said before.
type Context struct {
	ShortMemory string `json:"short_memory"`
	RecentTurns []Turn `json:"recent_turns"`
	// FormerResult is what the same worker came to in the loop before; nil for none.
	FormerResult json.RawMessage `json:"former_result,omitempty"`
}

// Turn is one text of somebody; Role is user or assistant.
type Turn struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Flags are the session's.
type Flags struct {
	LocalOnly        bool           `json:"local_only"`
	PrevPrimaryRoute *routing.Route `json:"prev_primary_route"`
}

// Limits are what the answer may have.
type Limits struct {
	MaxResultChars int `json:"max_result_chars"`
	MaxQuestions   int `json:"max_questions"`
	MaxNextActions int `json:"max_next_actions"`
}

// Tooling is what the worker has.
type Tooling struct {
	WebSearch bool `json:"web_search_available"`
	RepoRead  bool `json:"repo_read_available"`
}

// Output is what a worker gives back: WorkerOutput (route §4.4).
type Output struct {
	Result        json.RawMessage `json:"result"` // nil where the work fits another route
	NeedsNextLoop bool            `json:"needs_next_loop"`
	Why           string          `json:"why"`
	NextActions   []string        `json:"next_actions"`       // at most 3
	Questions     []string        `json:"questions_for_user"` // at most 3
	Confidence    float64         `json:"confidence"`         // 0 to 1
	Risk          string          `json:"risk"`               // low, medium or high
	Fit           *bool           `json:"fit,omitempty"`
	Suggested     string          `json:"suggested_route,omitempty"`
}

// Loop is what routing goes by.
func (o Output) Loop() routing.Result {
	return routing.Result{NeedsNextLoop: o.NeedsNextLoop, Confidence: o.Confidence, Risk: o.Risk, Questions: o.Questions, Fit: o.Fit, SuggestedRoute: o.Suggested}
}

// Coder is what a coder proposes (route §5.1). JobID is the program's, whatever the
// model wrote.
type Coder struct {
	JobID        string    `json:"job_id"`
	Plan         string    `json:"plan"`
	Patch        string    `json:"patch,omitempty"` // a unified diff
	Files        []File    `json:"files,omitempty"`
	Commands     []Command `json:"commands,omitempty"`
	Risk         Risk      `json:"risk"`
	NeedApproval bool      `json:"need_approval"`
	CostHint     *CostHint `json:"cost_hint,omitempty"`
	TaskType     string    `json:"task_type,omitempty"` // design, codegen, review or refactor; "" was not said
	Notes        []string  `json:"notes,omitempty"`     // at most 5
	Tests        []string  `json:"tests,omitempty"`     // at most 5

	Remarks []string `json:"-"` // for the model: what of its proposal was not known and is left out
}

// File is a file in place of a patch.
type File struct {
	Path    string `json:"path"`
	Action  string `json:"action"` // create, modify or delete
	Content string `json:"content,omitempty"`
}

// Command is a command that a coder wants run after the patch.
type Command struct {
	OS    string `json:"os,omitempty"`
	Shell string `json:"shell,omitempty"`
	Cmd   string `json:"cmd"`
	Why   string `json:"why,omitempty"`
}

// Risk is what a coder says of the risk; the program computes its own.
type Risk struct {
	Destructive   bool     `json:"destructive"`
	Compatibility []string `json:"compatibility_issues"`
	Rollback      bool     `json:"rollback_possible"`
}

// CostHint is what a coder thinks that its proposal costs.
type CostHint struct {
	EstimatedTokens int  `json:"estimated_tokens"`
	NearLimit       bool `json:"near_limit"`
}

// Output is a proposal as a worker's answer, after which the loop ends (spec/chat §6).
func (c Coder) Output() (Output, error) {
	raw, err := json.Marshal(c)
	risk := routing.RiskLow
	switch {
	case c.Risk.Destructive:
		risk = routing.RiskHigh
	case !c.Risk.Rollback || len(c.Risk.Compatibility) > 0:
		risk = routing.RiskMedium
	}
	return Output{Result: raw, Why: firstLine(c.Plan), NextActions: []string{}, Questions: []string{}, Confidence: 1, Risk: risk}, err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// MaxAnswer is the longest answer of a worker that is read, in bytes, maxProposal the longest
// proposal: a patch may have 8 MiB, and more of them within JSON.
const (
	MaxAnswer   = 1 << 20
	maxProposal = 24 << 20
)

// ReadOutput reads a worker's answer, the JSON in it wherever it stands. Lists that are
// longer than they may be are cut. One that only says which route the work fits (spec/chat §5) needs
// nothing else. The error says to the model all that is wrong.
func ReadOutput(route routing.Route, answer string) (Output, error) {
	c, err := outputOf(route)
	if err != nil {
		return Output{}, err
	}
	var o Output
	if _, err := c.read(answer, &o); err != nil {
		if u, ok := readUnfit(answer); ok {
			return u, nil
		}
		return Output{}, err
	}
	return o, nil
}

// readUnfit reads a worker's answer that the work is not of its kind: with the route that is, and no
// result. Who does not say how sure that is, is not.
func readUnfit(answer string) (Output, bool) {
	c, err := unfit()
	if err != nil {
		return Output{}, false // its test says so
	}
	o := Output{NextActions: []string{}, Questions: []string{}, Risk: routing.RiskLow}
	if _, err := c.read(answer, &o); err != nil || o.Fit == nil || *o.Fit {
		return Output{}, false
	}
	o.Result, o.NeedsNextLoop = nil, false
	_, known := routing.ParseRoute(o.Suggested)
	return o, known
}

// ReadCoder reads a proposal: the arguments of a call, or what a model without tools wrote
// as text. What is optional and cannot be read is left out, but for what is to be done: patch,
// files and commands are read whole. A risk that it does not tell is none. The error says to the
// model all that is wrong.
func ReadCoder(answer string) (Coder, error) {
	c, err := coder()
	if err != nil {
		return Coder{}, err
	}
	p := Coder{Risk: Risk{Rollback: true, Compatibility: []string{}}}
	p.Remarks, err = c.read(answer, &p)
	return p, err
}

// patchNames are other names that models have for the patch.
var patchNames = map[string]string{"diff": "patch", "unified_diff": "patch", "patch_text": "patch"}

// CoderSchema is the JSON Schema of a proposal as models are shown it: of the arguments of
// propose.
func CoderSchema() json.RawMessage {
	c, err := coder()
	if err != nil {
		return nil // its test says so
	}
	return c.shown
}

// ShownOutput is what a model is told of the answer that is expected for a route.
func ShownOutput(route routing.Route) (string, error) {
	c, err := outputOf(route)
	if err != nil {
		return "", err
	}
	return string(c.shown), nil
}

// AnswerError says to a model what is wrong with its answer.
type AnswerError struct{ Problem string }

func (e *AnswerError) Error() string { return "the answer does not keep to the contract: " + e.Problem }
