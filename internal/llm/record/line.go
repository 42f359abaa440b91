package record

import (
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/llm"
)

// line is an answer as a script holds it: the fields of the ledger's message
// that are of the answer itself, by the ledger's names (contextstore.Message).
type line struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	ToolCalls []call `json:"tool_calls,omitempty"`
	Reasoning string `json:"reasoning_content,omitempty"`
	Opaque    string `json:"provider_parts,omitempty"`
	Finish    string `json:"finish_reason,omitempty"` // where the calls do not imply it
	Usage     *usage `json:"usage,omitempty"`
	By        string `json:"answered_by,omitempty"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type usage struct {
	Prompt     int    `json:"prompt_tokens"`
	Completion int    `json:"completion_tokens"`
	Total      *int   `json:"total_tokens,omitempty"` // where it is not the sum of the two
	Cached     int    `json:"cached_tokens,omitempty"`
	CacheWrite int    `json:"cache_write_tokens,omitempty"`
	Reasoning  int    `json:"reasoning_tokens,omitempty"`
	Cost       *int64 `json:"cost_micro_usd,omitempty"`
}

// appendLine appends reply to b as one line of compact JSON. The texts are
// masked as the ledger masks them: whole fields, and all but what a provider
// wants back byte for byte.
func appendLine(b []byte, reply *llm.Reply, redact func(string) string) ([]byte, error) {
	clean := func(s string) string { return jsonl.Valid(redact(s)) }
	m := &reply.Message
	l := line{Role: llm.RoleAssistant, Content: clean(m.Content), Reasoning: clean(m.Reasoning), Opaque: jsonl.Valid(m.Opaque), By: clean(reply.By)}
	for _, c := range m.ToolCalls {
		l.ToolCalls = append(l.ToolCalls, call{ID: jsonl.Valid(c.ID), Name: clean(c.Name), Arguments: clean(c.Arguments)})
	}
	if implied := len(m.ToolCalls) > 0 && reply.FinishReason == llm.FinishToolCalls ||
		len(m.ToolCalls) == 0 && reply.FinishReason == llm.FinishStop; !implied {
		l.Finish = clean(reply.FinishReason)
	}
	if u := reply.Usage; u != nil {
		l.Usage = &usage{Prompt: u.PromptTokens, Completion: u.CompletionTokens, Cached: u.CachedTokens,
			CacheWrite: u.CacheWriteTokens, Reasoning: u.ReasoningTokens, Cost: u.Cost}
		if total := u.TotalTokens; total != u.PromptTokens+u.CompletionTokens {
			l.Usage.Total = &total
		}
	}
	return jsonl.Append(b, l)
}
