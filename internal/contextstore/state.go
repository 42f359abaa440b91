package contextstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Format is the number of the on-disk format this program writes; a context
// with a newer one is refused (DESIGN §2.8).
const Format = 1

// The files of a context. Messages to RequestLog are its logs.
const (
	MetadataFile  = "metadata.json"
	StateFile     = "state.json"
	LockFile      = ".lock"
	Messages      = "messages.jsonl"
	Summaries     = "summaries.jsonl"
	Tools         = "tools.jsonl"
	Window        = "window.jsonl"
	Checks        = "checks.jsonl"
	RequestLog    = "effects.jsonl"   // what was to leave the house, and what the run touched; opened when it is written to, no checkpoint knows of it
	keptFile      = "state.json.kept" // what state.json last said durably
	stateLockFile = ".state.lock"
	requestFile   = "request.json"
)

// Metadata is metadata.json: written once, never rewritten (store-v3 §3.1).
type Metadata struct {
	UUID      string         `json:"uuid"`
	TaskKey   task.Key       `json:"task_key"`
	CreatedAt Time           `json:"created_at"`
	ProcessID int            `json:"process_id"`
	Hostname  string         `json:"hostname"`
	Config    MetadataConfig `json:"config"`
	User      string         `json:"user,omitempty"`

	Format int             `json:"format"`
	Title  string          `json:"title,omitempty"`
	Run    json.RawMessage `json:"run,omitempty"` // what the run needs to be taken up again; the agent's own
}

// MetadataConfig are the settings in force when the task was made.
type MetadataConfig struct {
	Provider             string  `json:"llm_provider"`
	Model                string  `json:"model"`
	ContextLength        int     `json:"context_length"`
	CompressionThreshold float64 `json:"compression_threshold"`
	MaxMemoryMessages    int     `json:"max_memory_messages"`
}

// The values of state.json's status (store-v2 §3.2), besides those of the row.
const (
	Initializing = "initializing"
	Processing   = "processing"
	Compressing  = "compressing"
	Completing   = "completing"
	Timeout      = "timeout" // of a run that failed because its time was up

	Unverified = "unverified" // Summary.Outcome of a run that is completed, and not all that it did is verified
)

// State is state.json: store-v2 §3.2's keys, always present, then ours. With
// the task status, owner and checkpoint in it the row can be rebuilt.
type State struct {
	Status               string  `json:"status"`
	StartedAt            Time    `json:"started_at"`
	UpdatedAt            Time    `json:"updated_at"`
	CompletedAt          Time    `json:"completed_at"`
	LLMCallCount         int64   `json:"llm_call_count"`
	ToolCallCount        int64   `json:"tool_call_count"`
	TotalTokensUsed      int64   `json:"total_tokens_used"`
	CurrentContextTokens int64   `json:"current_context_tokens"`
	CompressionCount     int64   `json:"compression_count"`
	LastActivity         string  `json:"last_activity"`
	Error                *string `json:"error"`

	TaskStatus   task.Status     `json:"task_status"`
	Generation   int64           `json:"generation"`
	ProcessID    int             `json:"process_id"`
	Hostname     string          `json:"hostname"`
	BootID       string          `json:"boot_id"`       // start of the machine in which the last owner claimed
	MessageCount int64           `json:"message_count"` // lines of messages.jsonl that the counters above know of
	Bytes        int64           `json:"bytes"`         // of the context's logs
	Failures     int64           `json:"compression_failures"`
	ActiveMS     int64           `json:"active_ms"`     // time in an owner's hands, pauses not counted
	Recoveries   int64           `json:"recoveries"`    // how often an owner of it has died since somebody last set it going
	CommittedSeq int64           `json:"committed_seq"` // the answer whose work is commit; what is in the tree beyond it is no work
	Commit       string          `json:"commit"`
	Unverified   bool            `json:"unverified,omitempty"` // completed, and not all that it did is verified
	Phase        string          `json:"phase"`                // "" or "ending" between the commit point and the end of a transition
	Outbox       []Effect        `json:"outbox"`               // what the world must see of transitions; acknowledged in house.db
	Files        map[string]Mark `json:"files"`

	Spending
}

// Effect is one outward effect of a transition: it is committed with the
// status, and delivered as often as it takes, once in effect (PROTOCOL "End,
// pause, wait").
type Effect struct {
	Key  string          `json:"key"`  // idempotency key, which the delivery leaves as its marker
	Kind string          `json:"kind"` // push, comment, label …; decides who delivers it
	Data json.RawMessage `json:"data"` // the deliverer's own
}

// Mark is how much of a file was good at the last checkpoint.
type Mark struct {
	Bytes int64 `json:"bytes"`
	Seq   int64 `json:"seq"`
}

const phaseEnding = "ending"

// ErrNewerFormat says that a newer program wrote a context.
var ErrNewerFormat = errors.New("newer format")

// ReadMetadata reads a context's metadata.json. A newer format is refused: ErrNewerFormat.
func ReadMetadata(dir string) (Metadata, error) {
	var m Metadata
	if err := readJSON(filepath.Join(dir, MetadataFile), &m); err != nil {
		return m, err
	}
	if m.Format > Format {
		return m, i18n.E("contextstore.newer_format", dir, m.Format, Format).Of(ErrNewerFormat)
	}
	return m, nil
}

// ReadState reads a context's state.json. With the error of one that cannot be
// read comes what it last said durably, as far as that is known: an unsynced
// replace may be lost with the power. A missing one wraps os.ErrNotExist.
func ReadState(dir string) (State, error) {
	var s, kept State
	err := readJSON(filepath.Join(dir, StateFile), &s)
	if err == nil {
		return s, nil
	}
	if readJSON(filepath.Join(dir, keptFile), &kept) != nil {
		return State{}, err
	}
	return kept, err
}

func readJSON(path string, v any) error {
	b, err := disk.Read(path, disk.MaxWhole)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
