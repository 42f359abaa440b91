package ops

import (
	"cmp"
	"encoding/json"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/i18n"
	"toritsugi/internal/memory"
)

// windowHead is what tori memory --json begins with; messages and decisions
// follow, one by one, so that they are not held twice.
type windowHead struct {
	UUID    string        `json:"uuid"`
	Status  string        `json:"status"`
	LastSeq int64         `json:"last_seq"`
	Answer  *windowAnswer `json:"answer"` // null: none has come yet
	Model   string        `json:"model"`

	Tokens     int      `json:"tokens"` // of the request, estimated
	ToolTokens int      `json:"tool_tokens"`
	Rate       float64  `json:"units_per_token"`
	Calibrated bool     `json:"calibrated"`
	Summary    int64    `json:"summary"` // id of the one in force, 0 for none
	Decision   int64    `json:"decision"`
	Pinned     []string `json:"pinned"`

	Tools       []windowTool   `json:"tools"`
	Breakpoints *windowMarks   `json:"cache_breakpoints"` // null: the provider takes none
	Damaged     []windowDamage `json:"damaged"`
}

type windowAnswer struct {
	Seq       int64               `json:"seq"`
	Timestamp contextstore.Time   `json:"timestamp"`
	Usage     *contextstore.Usage `json:"usage,omitempty"`
}

type windowTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Bytes       int             `json:"bytes"`
}

type windowMarks struct {
	Tools  bool    `json:"tools"`  // one stands behind the definitions of tools
	Behind []int64 `json:"behind"` // numbers of messages; 0 is what stands for others
}

type windowDamage struct {
	File   string `json:"file"`
	Offset *int64 `json:"offset,omitempty"` // bytes
	What   string `json:"what"`
}

type windowMessage struct {
	Part    string `json:"part"`
	Seq     int64  `json:"seq,omitempty"`
	Tokens  int    `json:"estimated_tokens"`
	Stored  int    `json:"tokens"` // as messages.jsonl has them: of the whole text
	Masked  bool   `json:"masked,omitempty"`
	Clipped bool   `json:"clipped,omitempty"`
	memory.Sent
}

type windowDecision struct {
	contextstore.WindowEvent
	First  int64 `json:"first_seq,omitempty"`
	To     int64 `json:"last_seq,omitempty"`
	Before int64 `json:"tokens_before,omitempty"`
	After  int64 `json:"tokens_after,omitempty"`
}

// json prints all of it as one object.
func (w *window) json(p *printer) error {
	head := windowHead{UUID: w.view.Metadata.UUID, Status: string(w.view.Status()), LastSeq: w.Last, Model: w.model, Tokens: w.Tokens, ToolTokens: w.Tools,
		Rate: w.Rate, Calibrated: w.Calibrated, Pinned: []string{}, Tools: []windowTool{}}
	if a := w.Answer; a != nil {
		head.Answer = &windowAnswer{a.Seq, a.Timestamp, a.Usage}
	}
	if e := w.Event; e != nil {
		head.Summary, head.Decision = e.Summary, e.ID
		head.Pinned = append(head.Pinned, e.Pinned...)
	}
	for _, t := range w.tools {
		head.Tools = append(head.Tools, windowTool{t.Name, t.Description, t.Schema, t.Bytes()})
	}
	if seqs, _, known := w.breakpoints(); known {
		head.Breakpoints = &windowMarks{len(w.tools) > 0, seqs}
	}
	head.Damaged = shownDamage(w.damaged, w.opt.Lang)
	b := encoded(p, head)
	if p.err != nil {
		return p.err
	}
	p.raw(string(b[:len(b)-1]) + `,"messages":[`)
	for i, s := range w.Shown {
		p.raw(comma(i) + string(encoded(p, windowMessage{s.Part, s.Seq, s.Tokens, s.Stored, s.Masked, s.Clipped, memory.Form(s.Message, false)})))
	}
	p.printf("],\"decisions\":[")
	n := 0
	err := w.Decisions(func(d memory.Decision) bool {
		p.raw(comma(n) + string(encoded(p, windowDecision{d.WindowEvent, d.First, d.To, d.Tokens, max(d.Tokens-d.Freed, 0)})))
		n++
		return p.err == nil
	})
	p.printf("]}\n")
	return err
}

func shownDamage(all []contextstore.Damage, lang i18n.Lang) []windowDamage {
	out := make([]windowDamage, len(all))
	for i, d := range all {
		out[i] = windowDamage{File: d.File, What: lang.Error(d.Why)}
		if d.Offset >= 0 {
			out[i].Offset = &d.Offset
		}
	}
	return out
}

// lines prints the messages alone, one object to a line.
func (w *window) lines(p *printer) {
	for _, s := range w.Shown {
		p.json(struct {
			Seq int64 `json:"seq,omitempty"`
			memory.Sent
		}{s.Seq, memory.Form(s.Message, false)})
	}
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// encoded is v as JSON, with <, > and & as they are.
func encoded(p *printer, v any) []byte {
	b, err := jsonl.Marshal(v)
	p.err = cmp.Or(p.err, err)
	return b
}
