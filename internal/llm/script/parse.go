package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/document"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

const maxDelay = time.Hour

// finishWords are what a written step may say of its end; a recorded one may
// hold any word of a vendor.
var finishWords = []string{llm.FinishStop, llm.FinishToolCalls, llm.FinishLength, llm.FinishContentFilter}

// generatedID is the id of a call whose script gives none.
func generatedID(step, call int) string { return fmt.Sprintf("call_%d_%d", step+1, call+1) }

func delayOf(ms int64) (time.Duration, bool) {
	return time.Duration(ms) * time.Millisecond, ms >= 0 && ms <= maxDelay.Milliseconds()
}

// recorded is what a step needs of a message of the ledger.
type recorded struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
	Opaque    string `json:"provider_parts"`
	Finish    string `json:"finish_reason"`
	Usage     *spent `json:"usage"`
	By        string `json:"answered_by"`
	DelayMS   int64  `json:"delay_ms"`
	ToolCalls []struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"tool_calls"`
}

// spent is a usage as the ledger and scripts write it.
type spent struct {
	Prompt     int    `json:"prompt_tokens" yaml:"prompt_tokens"`
	Completion int    `json:"completion_tokens" yaml:"completion_tokens"`
	Total      *int   `json:"total_tokens" yaml:"total_tokens"` // nil is the sum of the two
	Cached     int    `json:"cached_tokens" yaml:"cached_tokens"`
	CacheWrite int    `json:"cache_write_tokens" yaml:"cache_write_tokens"`
	Reasoning  int    `json:"reasoning_tokens" yaml:"reasoning_tokens"`
	Cost       *int64 `json:"cost_micro_usd" yaml:"cost_micro_usd"`
	Estimated  bool   `json:"estimated" yaml:"-"`
}

// usage is what a provider reported: nil where it reported nothing and the
// counts are an estimate of ours. It fails where a count is negative.
func (s *spent) usage() (*llm.Usage, error) {
	if s == nil || s.Estimated {
		return nil, nil
	}
	u := &llm.Usage{PromptTokens: s.Prompt, CompletionTokens: s.Completion, TotalTokens: s.Prompt + s.Completion,
		CachedTokens: s.Cached, CacheWriteTokens: s.CacheWrite, ReasoningTokens: s.Reasoning, Cost: s.Cost}
	if s.Total != nil {
		u.TotalTokens = *s.Total
	}
	if min(s.Prompt, s.Completion, u.TotalTokens, s.Cached, s.CacheWrite, s.Reasoning) < 0 || s.Cost != nil && *s.Cost < 0 {
		return nil, i18n.E("script.usage")
	}
	return u, nil
}

func parseJSONL(name string, data []byte) ([]step, error) {
	var steps []step
	asked := false
	for n := 1; len(data) > 0; n++ {
		var text []byte
		text, data, _ = bytes.Cut(data, []byte{'\n'})
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		var m recorded
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, i18n.E("script.syntax", name, n, i18n.E("script.line_json", err))
		}
		switch m.Role {
		case llm.RoleAssistant:
			s, err := m.step()
			if err != nil {
				return nil, i18n.E("script.syntax", name, n, err)
			}
			steps = append(steps, s)
		case llm.RoleUser:
			if !asked {
				asked, steps = true, nil
			}
		case "":
			return nil, i18n.E("script.syntax", name, n, i18n.E("script.line_json", errors.New(`"role" is missing`)))
		}
	}
	return steps, nil
}

func (m *recorded) step() (step, error) {
	delay, ok := delayOf(m.DelayMS)
	if !ok {
		return step{}, i18n.E("script.delay")
	}
	usage, err := m.Usage.usage()
	if err != nil {
		return step{}, err
	}
	s := step{say: m.Content, reasoning: m.Reasoning, opaque: m.Opaque, finish: m.Finish, usage: usage, by: m.By, delay: delay}
	for _, c := range m.ToolCalls {
		if c.Name == "" {
			return step{}, i18n.E("script.call_name")
		}
		// A text is what the model wrote, and is replayed as it is, valid or not.
		args := "{}"
		switch {
		case len(c.Arguments) == 0 || string(c.Arguments) == "null":
		case c.Arguments[0] == '"':
			if err := json.Unmarshal(c.Arguments, &args); err != nil {
				return step{}, i18n.E("script.line_json", err)
			}
		case c.Arguments[0] == '{':
			var b bytes.Buffer
			if err := json.Compact(&b, c.Arguments); err != nil {
				return step{}, i18n.E("script.line_json", err)
			}
			args = b.String()
		default:
			return step{}, i18n.E("script.call_args", c.Name)
		}
		s.calls = append(s.calls, llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: args})
	}
	return s, nil
}

// written is a step of a YAML script.
type written struct {
	Say     string `yaml:"say"`
	Finish  string `yaml:"finish"`
	Usage   *spent `yaml:"usage"`
	DelayMS int64  `yaml:"delay_ms"`
	Calls   []struct {
		Tool string        `yaml:"tool"`
		ID   string        `yaml:"id"`
		Args yaml.MapSlice `yaml:"args"`
	} `yaml:"calls"`
}

func parseYAML(name string, data []byte) ([]step, error) {
	file, err := document.Parse(data)
	if err != nil {
		return nil, yamlError(name, err)
	}
	var lines []int
	var all []written
	if len(file.Docs) > 0 && file.Docs[0].Body != nil {
		list, ok := file.Docs[0].Body.(*ast.SequenceNode)
		if !ok {
			return nil, i18n.E("script.syntax", name, document.Line(file.Docs[0].Body), i18n.E("script.steps"))
		}
		for _, v := range list.Values {
			lines = append(lines, document.Line(v))
		}
		if err := yaml.NodeToValue(list, &all, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
			return nil, yamlError(name, err)
		}
	}
	steps := make([]step, 0, len(all))
	left := maxArguments
	for i, w := range all {
		s, err := w.step(left)
		for _, c := range s.calls {
			left -= len(c.Arguments)
		}
		if err != nil {
			n := 1
			if i < len(lines) {
				n = lines[i]
			}
			return nil, i18n.E("script.syntax", name, n, err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// maxArguments is how long the arguments of all calls of a script of YAML may be
// together, in bytes of JSON: names for lists of names are as many as one likes.
const maxArguments = 16 << 20

func (w *written) step(left int) (step, error) {
	delay, ok := delayOf(w.DelayMS)
	switch {
	case !ok:
		return step{}, i18n.E("script.delay")
	case w.Say == "" && len(w.Calls) == 0 && w.Finish == "":
		return step{}, i18n.E("script.step_empty")
	case w.Finish != "" && !slices.Contains(finishWords, w.Finish):
		return step{}, i18n.E("script.finish", strings.Join(finishWords, ", "))
	}
	usage, err := w.Usage.usage()
	if err != nil {
		return step{}, err
	}
	s := step{say: w.Say, finish: w.Finish, usage: usage, delay: delay}
	for _, c := range w.Calls {
		if c.Tool == "" {
			return step{}, i18n.E("script.call_name")
		}
		args, err := appendJSON(nil, c.Args, left)
		if err != nil {
			return step{}, i18n.E("script.yaml", err)
		}
		left -= len(args)
		s.calls = append(s.calls, llm.ToolCall{ID: c.ID, Name: c.Tool, Arguments: string(args)})
	}
	return s, nil
}

// appendJSON appends a YAML value as JSON, with its keys in the order written, to
// at most most bytes.
func appendJSON(b []byte, v any, most int) ([]byte, error) {
	if len(b) > most {
		return nil, i18n.E("script.arguments", maxArguments>>20)
	}
	var err error
	switch v := v.(type) {
	case yaml.MapSlice:
		b = append(b, '{')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			switch item.Key.(type) {
			case yaml.MapSlice, []any:
				return nil, i18n.E("script.key")
			}
			if b, err = appendJSON(b, fmt.Sprint(item.Key), most); err != nil {
				return nil, err
			}
			if b, err = appendJSON(append(b, ':'), item.Value, most); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, e, most); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is no JSON number", v)
		}
	}
	text, err := jsonl.Marshal(v)
	return append(b, text...), err
}

// yamlError names the file and the line.
func yamlError(name string, err error) error {
	at := new(document.Error)
	if !errors.As(err, &at) {
		at = document.Explain(err)
	}
	return i18n.E("script.syntax", name, at.Line, i18n.E("script.yaml", at.Why))
}
