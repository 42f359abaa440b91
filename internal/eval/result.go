package eval

import (
	"toritsugi/internal/contextstore"
	"toritsugi/internal/memory"
)

// Mode is what works on a case.
type Mode string

// The modes.
const (
	House Mode = "house" // everything that a run has, with a plan or without as the settings or the answers say
	Plan  Mode = "plan"  // the house, led by a plan
	Plain Mode = "plain" // the house without one
	Bare  Mode = "bare"  // a loop with a shell, on the same model
)

// What became of a case, beside the statuses of a run.
const (
	Skipped     = "skipped"     // it needs what is not here
	Errored     = "error"       // it could not be run to an end
	Interrupted = "interrupted" // nobody waited for its end
)

// Result is what became of one case in one mode.
type Result struct {
	Case    string `json:"case"`
	Mode    Mode   `json:"mode"`
	Outcome string `json:"outcome"` // a status of a run, or one of the above
	Reason  string `json:"reason,omitempty"`
	// Resolved is whether the work was handed over as done and the hidden check
	// passes on it.
	Resolved bool    `json:"resolved"`
	Verdict  Verdict `json:"hidden_check"`
	// Checks are those that the house ran itself after the last change.
	Checks Checks `json:"checks"`
	Taken
	UUID string `json:"uuid,omitempty"`
	Dir  string `json:"dir,omitempty"` // what is left of it, where it is kept
}

// Verdict is how the hidden check ended.
type Verdict struct {
	Ran      bool   `json:"ran"`
	ExitCode int    `json:"exit_code"`
	TimedOut bool   `json:"timed_out,omitempty"`
	Limit    string `json:"limit,omitempty"`  // of the sandbox, that it was ended for
	Output   string `json:"output,omitempty"` // the last part
}

// Passed reports whether the check ran and found nothing wrong.
func (v Verdict) Passed() bool { return v.Ran && v.ExitCode == 0 && !v.TimedOut && v.Limit == "" }

// Checks counts commands.
type Checks struct {
	Run    int `json:"run"`
	Passed int `json:"passed"`
}

// Taken is what one case took, or all of them.
type Taken struct {
	Turns     int64 `json:"turns"` // calls of the model
	ToolCalls int64 `json:"tool_calls"`
	contextstore.Spending
	// Estimated is what the requests took, which a script reports nothing of.
	Estimated memory.TokenUsage `json:"estimated"`
	Millis    int64             `json:"ms"` // wall time, without the hidden check
}

func (t *Taken) add(o Taken) {
	t.Turns += o.Turns
	t.ToolCalls += o.ToolCalls
	t.PromptTokens += o.PromptTokens
	t.CachedTokens += o.CachedTokens
	t.CacheWriteTokens += o.CacheWriteTokens
	t.CompletionTokens += o.CompletionTokens
	t.ReasoningTokens += o.ReasoningTokens
	t.CostMicroUSD += o.CostMicroUSD
	t.UnpricedCalls += o.UnpricedCalls
	t.Millis += o.Millis
	t.Estimated.Add(o.Estimated)
}

// Total sums up one mode. What was skipped or interrupted is in Cases and in
// nothing else.
type Total struct {
	Total    bool   `json:"total"` // true: tells it from a case
	Mode     Mode   `json:"mode"`
	Model    string `json:"model"`
	Scripted bool   `json:"scripted"` // no model was called
	Cases    int    `json:"cases"`
	Ran      int    `json:"ran"`
	Resolved int    `json:"resolved"`
	Skipped  int    `json:"skipped"`
	Errors   int    `json:"errors"`
	Taken
}

// Sum is the total of the results of a mode.
func Sum(all []Result, m Mode, by Model) Total {
	t := Total{Total: true, Mode: m, Model: by.Name, Scripted: by.Scripted}
	for _, r := range all {
		if r.Mode != m {
			continue
		}
		t.Cases++
		switch r.Outcome {
		case Skipped:
			t.Skipped++
			continue
		case Interrupted:
			continue
		case Errored:
			t.Errors++
		default:
			t.Ran++
		}
		if r.Resolved {
			t.Resolved++
		}
		t.add(r.Taken)
	}
	return t
}
