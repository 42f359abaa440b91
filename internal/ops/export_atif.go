package ops

import (
	"bufio"
	"encoding/json"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/llm"
)

// atifVersion is the version of the Agent Trajectory Interchange Format of Harbor that is
// written (its RFC 0001, https://harborframework.com/docs/trajectory-format).
const atifVersion = "ATIF-v1.4"

type atifAgent struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Model   string `json:"model_name,omitempty"`
}

type atifStep struct {
	ID          int              `json:"step_id"`
	Timestamp   string           `json:"timestamp,omitempty"`
	Source      string           `json:"source"` // system, user or agent
	Model       string           `json:"model_name,omitempty"`
	Message     string           `json:"message"`
	Reasoning   string           `json:"reasoning_content,omitempty"`
	Calls       []atifCall       `json:"tool_calls,omitempty"`
	Observation *atifObservation `json:"observation,omitempty"`
	Metrics     *atifMetrics     `json:"metrics,omitempty"`
}

type atifCall struct {
	ID        string          `json:"tool_call_id"`
	Name      string          `json:"function_name"`
	Arguments json.RawMessage `json:"arguments"` // an object
}

type atifObservation struct {
	Results []atifResult `json:"results"`
}

type atifResult struct {
	Call    string `json:"source_call_id,omitempty"`
	Content string `json:"content"`
}

type atifMetrics struct {
	Prompt     int      `json:"prompt_tokens"`
	Completion int      `json:"completion_tokens"`
	Cached     int      `json:"cached_tokens,omitempty"`
	Cost       *float64 `json:"cost_usd,omitempty"`
}

type atifTotals struct {
	Prompt     int64   `json:"total_prompt_tokens"`
	Completion int64   `json:"total_completion_tokens"`
	Cached     int64   `json:"total_cached_tokens"`
	Cost       float64 `json:"total_cost_usd"`
	Steps      int     `json:"total_steps"`
}

// exportATIF writes the messages of a run as a trajectory. An answer of the model, its calls and their
// results are one step; results that belong to no call of the step before carry none.
func exportATIF(w *bufio.Writer, v opened, o ExportOptions) error {
	head, err := jsonl.Marshal(struct {
		Schema  string         `json:"schema_version"`
		Session string         `json:"session_id"`
		Agent   atifAgent      `json:"agent"`
		Extra   map[string]any `json:"extra"`
	}{atifVersion, v.Metadata.UUID, atifAgent{"tori", o.Version, modelOf(v.View)},
		map[string]any{"task": v.Metadata.TaskKey, "status": v.Status()}})
	if err != nil {
		return err
	}
	_, _ = w.Write(head[:len(head)-1]) // errors stay with the writer
	_, _ = w.WriteString(`,"steps":[`)
	n := 0
	var open *atifStep
	flush := func() error {
		if open == nil {
			return nil
		}
		n++
		open.ID = n
		raw, err := jsonl.Marshal(open)
		if err != nil {
			return err
		}
		if n > 1 {
			_ = w.WriteByte(',')
		}
		_ = w.WriteByte('\n')
		_, err = w.Write(raw)
		open = nil
		return err
	}
	err = v.lines(contextstore.Messages, func(line []byte) error {
		m, err := contextstore.DecodeMessage(line)
		if err != nil {
			return nil //nolint:nilerr // tori check tells of it
		}
		if m.Role == llm.RoleTool {
			open = open.observe(m)
			return nil
		}
		if err := flush(); err != nil {
			return err
		}
		open = stepOf(m)
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	st := v.State
	totals, err := jsonl.Marshal(atifTotals{st.PromptTokens, st.CompletionTokens, st.CachedTokens, float64(st.CostMicroUSD) / 1e6, n})
	if err != nil {
		return err
	}
	_, _ = w.WriteString("],\"final_metrics\":")
	_, _ = w.Write(totals)
	_, err = w.WriteString("}\n")
	return err
}

func stepOf(m contextstore.Message) *atifStep {
	s := &atifStep{Timestamp: m.Timestamp.String(), Source: m.Role, Message: m.Content}
	if m.Role != llm.RoleAssistant {
		return s
	}
	s.Source, s.Reasoning, s.Model = "agent", m.Reasoning, m.AnsweredBy
	for _, c := range m.ToolCalls {
		args := json.RawMessage(c.Arguments)
		if jsonl.Check(args) != nil { // a model may call with what is no object
			args, _ = json.Marshal(map[string]string{"text": c.Arguments})
		}
		s.Calls = append(s.Calls, atifCall{string(c.ID), c.Name, args})
	}
	if u := m.Usage; u != nil {
		s.Metrics = &atifMetrics{Prompt: u.Prompt, Completion: u.Completion, Cached: u.Cached}
		if u.Cost != nil {
			usd := float64(*u.Cost) / 1e6
			s.Metrics.Cost = &usd
		}
	}
	return s
}

// observe adds a tool's result to a step; one without a step gets its own.
func (s *atifStep) observe(m contextstore.Message) *atifStep {
	if s == nil {
		s = &atifStep{Timestamp: m.Timestamp.String(), Source: llm.RoleSystem}
	}
	r := atifResult{Content: m.Content}
	for _, c := range s.Calls {
		if c.ID == string(m.ToolCallID) {
			r.Call = c.ID
		}
	}
	if s.Observation == nil {
		s.Observation = &atifObservation{}
	}
	s.Observation.Results = append(s.Observation.Results, r)
	return s
}
