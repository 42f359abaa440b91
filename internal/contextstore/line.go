package contextstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/checks"
	"toritsugi/internal/redact"

	"toritsugi/internal/contextstore/jsonl"
)

// Time is a timestamp in the ledger's one format.
type Time = jsonl.Time

// Message is a line of messages.jsonl: store-v3 §3.2's fields, then ours.
type Message struct {
	Seq       int64  `json:"seq"` // from 1, without gaps
	Role      string `json:"role"`
	ToolName  string `json:"tool_name,omitempty"`
	Content   string `json:"content"`
	Timestamp Time   `json:"timestamp"`
	Tokens    int    `json:"tokens"` // estimate: 4 characters = 1 token (store-v3 §3.2)
	Sum       int64  `json:"sum"`    // of tokens up to this line, so that counting is O(1)

	ToolCallID   redact.Opaque `json:"tool_call_id,omitempty"`
	ToolCalls    []ToolCall    `json:"tool_calls,omitempty"`
	Reasoning    string        `json:"reasoning_content,omitempty"`
	Provider     redact.Opaque `json:"provider_parts,omitempty"` // what the provider wants back as it was, in its own form
	FinishReason string        `json:"finish_reason,omitempty"`  // where it is not what the message shows: stop, or tool_calls beside calls
	Usage        *Usage        `json:"usage,omitempty"`
	AnsweredBy   string        `json:"answered_by,omitempty"` // PROVIDER/MODEL, where it is not the one of metadata.json
	Failed       bool          `json:"failed,omitempty"`      // of a tool message: the call failed
	Images       []Image       `json:"images,omitempty"`      // of a user message
	Kind         string        `json:"kind,omitempty"`        // what a user message of the run's own asks for: plan, subtask, reflect …
	Summarized   bool          `json:"summarized,omitempty"`
	Pinned       bool          `json:"pinned,omitempty"` // of a user message: what people said who may speak; it stays in the window

	Offset int64 `json:"-"` // where the line begins in messages.jsonl, bytes
}

// asked stands between the result of a call and what the model is asked with it.
const asked = "\n\n[plan]\n"

// Ask has a tool message ask the model for something of a kind besides. Result
// gives both back.
func (m *Message) Ask(kind, text string) { m.Kind, m.Content = kind, m.Content+asked+text }

// Result is the content of a message without what is asked with it, and that. Who
// shows part of a message cuts what it returns, not the content.
func (m *Message) Result() (result, question string) {
	if i := strings.LastIndex(m.Content, asked); m.Role == "tool" && m.Kind != "" && i >= 0 {
		return m.Content[:i], m.Content[i+len(asked):]
	}
	return m.Content, ""
}

// ToolCall is a call of an assistant message; Arguments is the model's own text.
type ToolCall struct {
	ID        redact.Opaque `json:"id"`
	Name      string        `json:"name"`
	Arguments string        `json:"arguments"`
}

// Image is a picture of a message. Its content lies beside the logs.
type Image struct {
	Path      string `json:"path,omitempty"` // below the context's directory; "" where it was left out
	MediaType string `json:"media_type,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	Source    string `json:"source,omitempty"`  // where it came from, as its owner named it
	Dropped   string `json:"dropped,omitempty"` // why it was left out: empty_path, read_failed, file_too_large, unsupported_type …
}

// Usage is what the provider reported for the call that gave a message, in tokens.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens,omitempty"`       // where it is not the sum of the two
	Cached     int `json:"cached_tokens,omitempty"`      // of the prompt, read from a cache
	CacheWrite int `json:"cache_write_tokens,omitempty"` // of the prompt, written to a cache
	Reasoning  int `json:"reasoning_tokens,omitempty"`   // of the completion
	// Cost is in millionths of a US dollar; nil where no price was known.
	Cost *int64 `json:"cost_micro_usd,omitempty"`

	Estimated bool `json:"estimated,omitempty"` // ours: the provider reported nothing
}

// Sum is the tokens of the whole call.
func (u *Usage) Sum() int64 {
	if u == nil {
		return 0
	}
	return int64(max(u.Total, u.Prompt+u.Completion))
}

// Summary is a line of summaries.jsonl (store-v3 §3.3), then ours. Final marks the
// summary of the whole run, which the window ignores.
type Summary struct {
	ID             int64   `json:"id"`
	StartSeq       int64   `json:"start_seq"`
	EndSeq         int64   `json:"end_seq"`
	Summary        string  `json:"summary"`
	OriginalTokens int64   `json:"original_tokens"`
	SummaryTokens  int64   `json:"summary_tokens"`
	Ratio          float64 `json:"ratio"`
	Timestamp      Time    `json:"timestamp"`
	Final          bool    `json:"final,omitempty"`

	Outcome    string `json:"outcome,omitempty"`     // of a final one: the status that state.json has of the run, or Unverified
	Extractive bool   `json:"extractive,omitempty"`  // put together from the records, without a model
	AnsweredBy string `json:"answered_by,omitempty"` // PROVIDER/MODEL that wrote it, where that is on record
	Usage      *Usage `json:"usage,omitempty"`       // of the calls for it, and of those before it that gave no summary
	// Calls is how many those were, where it is not the one of a usage.
	Calls    int64 `json:"calls,omitempty"`
	Unpriced int64 `json:"unpriced_calls,omitempty"` // of them, where the price of others was known
}

// ToolRun is a line of tools.jsonl: one finished call (store-v3 §3.4).
type ToolRun struct {
	Seq        int64           `json:"seq"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args"`
	Result     string          `json:"result,omitempty"`
	Status     string          `json:"status"` // success or error
	Error      string          `json:"error,omitempty"`
	DurationMS int64           `json:"duration_ms"`
	Timestamp  Time            `json:"timestamp"`
	CallID     redact.Opaque   `json:"call_id"`
}

// The types of a WindowEvent.
const (
	WindowMask     = "mask"     // old tool output and bulky arguments became stubs
	WindowSummary  = "summary"  // a summary took the place of messages
	WindowTruncate = "truncate" // messages left without a summary
	WindowClip     = "clip"     // messages that are too long are shown in part
)

// WindowEvent is a line of window.jsonl: a decision about what the model sees,
// written before the request that follows it (DESIGN §3). It holds all that was
// decided so far, so that the last line alone says what is shown: the messages
// at the front, the summary, the note, and the messages from FromSeq on. A line
// with the first seven fields alone, as an earlier version wrote it, is one of
// type truncate.
type WindowEvent struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	FromSeq   int64  `json:"from_seq"` // first message behind the front that is shown
	Offset    int64  `json:"offset"`   // of message from_seq in messages.jsonl, bytes
	Dropped   int64  `json:"dropped"`  // messages that are neither shown nor covered by the summary
	Reason    string `json:"reason"`
	Timestamp Time   `json:"timestamp"`

	MaskSeq   int64    `json:"mask_seq,omitempty"`        // what is old of the messages up to it is shown as stubs
	Summary   int64    `json:"summary,omitempty"`         // id of the summary in force, 0 for none
	Note      string   `json:"note,omitempty"`            // what the model reads of what was dropped
	Pinned    []string `json:"pinned,omitempty"`          // identifiers that the summary in force had to keep
	ClipSeq   int64    `json:"clip_seq,omitempty"`        // messages up to it are cut to clip_bytes
	ClipBytes int      `json:"clip_bytes,omitempty"`      // of a message's text that are shown
	Tokens    int64    `json:"tokens,omitempty"`          // of the request before the decision, estimated
	Freed     int64    `json:"freed,omitempty"`           // of them, by the decision
	Rate      float64  `json:"units_per_token,omitempty"` // of the estimate, as calibrated by then
	AtSeq     int64    `json:"at_seq,omitempty"`          // the last message when it was decided; later ones were asked for with it

	Kept     []Kept `json:"kept,omitempty"`      // pinned messages before from_seq that are shown, the oldest first
	KeptLess int64  `json:"kept_less,omitempty"` // pinned messages before those, of which only the number is shown
}

// Kept is a message that is shown though those around it are not.
type Kept struct {
	Seq    int64 `json:"seq"`
	Offset int64 `json:"offset"`          // of its line in messages.jsonl, bytes
	Bytes  int   `json:"bytes"`           // of its text
	Shown  int   `json:"shown,omitempty"` // bytes of its text that are shown; 0 for all
}

// CheckRun is a line of checks.jsonl: one check command that ran to its end.
type CheckRun struct {
	Seq        int64    `json:"seq"`
	Round      int      `json:"round"`            // 0 before the first change, then 1, 2 …
	Setup      bool     `json:"setup,omitempty"`  // no check: it made the workspace ready
	Beside     bool     `json:"beside,omitempty"` // it was run beside the model's first turns, which are told of it when it has failed
	Cached     *Time    `json:"cached,omitempty"` // when it was run, for an earlier run of the same base; nil for now
	Command    string   `json:"command"`
	ExitCode   int      `json:"exit_code"`
	TimedOut   bool     `json:"timed_out,omitempty"`
	Limit      string   `json:"limit,omitempty"`   // of the sandbox, that the command was ended for (sandbox.Exit)
	Bound      string   `json:"bound,omitempty"`   // how much it allows
	Commit     string   `json:"commit,omitempty"`  // that the tree had, "" for the base
	Failing    []string `json:"failing,omitempty"` // names of failing tests, where the output tells them: the first ones
	Output     string   `json:"output"`            // the last part
	DurationMS int64    `json:"duration_ms"`
	Timestamp  Time     `json:"timestamp"`

	FailedSet checks.Set `json:"failed_set,omitzero"` // of all failing tests
	Ran       int        `json:"ran,omitempty"`       // tests, where the output tells
	Counted   bool       `json:"counted,omitempty"`   // the output says how many, which may be 0
	Packages  bool       `json:"packages,omitempty"`  // Ran counts packages
	Missing   []string   `json:"missing,omitempty"`   // what failures say is not there: a program, a module, the network
	Excused   []string   `json:"excused,omitempty"`   // tests that the change adds and that fail for one of those of the base
}

// Passed reports whether the command ended with exit code 0 in time and within its limits.
func (c CheckRun) Passed() bool { return c.ExitCode == 0 && !c.TimedOut && c.Limit == "" }

// CountTokens estimates the tokens of a text: its characters / 4 (store-v3 §4.2).
func CountTokens(s string) int { return utf8.RuneCountInString(s) / 4 }

// message20 are the names of store-v2 §3.3 that differ from store-v3's.
type message20 struct {
	TokenCount   int             `json:"token_count"`
	IsSummarized bool            `json:"is_summarized"`
	FunctionCall *functionCall20 `json:"function_call"`
}

type functionCall20 struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a text, or the object itself
}

// call is the function call as a tool call; it has no id.
func (f *functionCall20) call() ToolCall {
	c := ToolCall{Name: f.Name}
	if json.Unmarshal(f.Arguments, &c.Arguments) != nil {
		c.Arguments = string(f.Arguments)
	}
	return c
}

// DecodeMessage reads a line of messages.jsonl in either edition. What is not
// valid JSON, or has no seq from 1 on or no role, is an error.
func DecodeMessage(line []byte) (Message, error) {
	var m struct {
		Message
		message20
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return Message{}, err
	}
	if m.Seq < 1 || m.Role == "" {
		return Message{}, fmt.Errorf("no seq or role")
	}
	if m.Tokens == 0 {
		m.Tokens = m.TokenCount
	}
	if m.FunctionCall != nil && len(m.ToolCalls) == 0 {
		m.ToolCalls = []ToolCall{m.FunctionCall.call()}
	}
	m.Summarized = m.Summarized || m.IsSummarized
	return m.Message, nil
}

// summary20 are the names of store-v2 §3.4 that differ from store-v3's.
type summary20 struct {
	SummaryID        int64   `json:"summary_id"`
	CompressionRatio float64 `json:"compression_ratio"`
	CreatedAt        Time    `json:"created_at"`
}

// DecodeSummary reads a line of summaries.jsonl in either edition. What is not
// valid JSON, or has no id from 1 on, is an error.
func DecodeSummary(line []byte) (Summary, error) {
	var s struct {
		summary20
		Summary
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return Summary{}, err
	}
	if s.ID == 0 {
		s.ID, s.Ratio, s.Timestamp = s.SummaryID, s.CompressionRatio, s.CreatedAt
	}
	if s.ID < 1 {
		return Summary{}, fmt.Errorf("no id")
	}
	return s.Summary, nil
}

// DecodeToolRun reads a line of tools.jsonl in either edition. What is not valid
// JSON, or has no seq from 1 on, is an error.
func DecodeToolRun(line []byte) (ToolRun, error) {
	var t struct {
		ToolRun
		ToolName  string          `json:"tool_name"`
		Arguments json.RawMessage `json:"arguments"`
		Result    json.RawMessage `json:"result"` // an object in store-v2
	}
	if err := json.Unmarshal(line, &t); err != nil {
		return ToolRun{}, err
	}
	if t.Seq < 1 {
		return ToolRun{}, fmt.Errorf("no seq")
	}
	if t.Tool == "" {
		t.Tool = t.ToolName
	}
	if len(t.Args) == 0 {
		t.Args = t.Arguments
	}
	if len(t.Result) > 0 && json.Unmarshal(t.Result, &t.ToolRun.Result) != nil {
		t.ToolRun.Result = string(t.Result)
	}
	return t.ToolRun, nil
}
