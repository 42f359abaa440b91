package memory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/llm"
	scripted "toritsugi/internal/llm/script"
	"toritsugi/internal/redact"
)

// Trajectory is a recorded run: what it began with, and what the model said,
// called and saw turn by turn.
type Trajectory struct {
	Source   string
	recorded *recordedRun
}

// recordedRun is a recorded run as messages of the ledger; each turn begins with
// the answer. No two calls have the same id, by which the script model finds
// its answers.
type recordedRun struct {
	opening []contextstore.Message
	turns   [][]contextstore.Message
}

// spoken is a text of a trajectory.
type spoken struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// trajectory is a line of a file of trajectories.
type trajectory struct {
	Source  string   `json:"source"`
	Opening []spoken `json:"opening"`
	Turns   []struct {
		Text      string `json:"text"`
		ToolCalls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"` // an object, or its text
		} `json:"tool_calls"`
		Observations []spoken `json:"observations"`
	} `json:"turns"`
}

// maxTrajectory is the most bytes of one line.
const maxTrajectory = 256 << 20

// ReadTrajectories reads recorded runs: trajectories, one to a line, or the one
// run whose messages.jsonl it is. A line that is neither is an error that names
// it, but for what a kill left of the last line of a messages.jsonl.
func ReadTrajectories(r io.Reader) (all []Trajectory, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxTrajectory)
	var own *ownRun
	var torn error
	for n := 1; s.Scan(); n++ {
		line := s.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if torn != nil {
			return nil, torn
		}
		if n == 1 || own != nil {
			m, err := contextstore.DecodeMessage(line)
			switch {
			case err == nil && own == nil:
				own = &ownRun{ids: map[redact.Opaque]redact.Opaque{}}
				fallthrough
			case err == nil:
				own.add(m)
				continue
			case own != nil:
				torn = fmt.Errorf("line %d: %w", n, err)
				continue
			}
		}
		t, err := decodeTrajectory(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, t)
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if own != nil {
		if len(own.run.turns) == 0 {
			return nil, errors.New("no answer of a model in it")
		}
		all = append(all, Trajectory{"messages.jsonl", &own.run})
	}
	if len(all) == 0 {
		return nil, errors.New("no recorded run in it")
	}
	return all, nil
}

func decodeTrajectory(line []byte) (Trajectory, error) {
	var t trajectory
	if err := json.Unmarshal(line, &t); err != nil {
		return Trajectory{}, err
	}
	if len(t.Turns) == 0 {
		return Trajectory{}, errors.New("no turns")
	}
	run := &recordedRun{}
	for _, m := range t.Opening {
		run.opening = append(run.opening, contextstore.Message{Role: m.Role, Content: m.Content})
	}
	for i := range t.Turns {
		run.turns = append(run.turns, t.messages(i))
	}
	return Trajectory{t.Source, run}, nil
}

// messages are those of the n-th turn. What the recorded run saw without a call
// is the result of one that only says so.
func (t *trajectory) messages(n int) []contextstore.Message {
	turn := &t.Turns[n]
	answer := contextstore.Message{Role: llm.RoleAssistant, Content: turn.Text}
	call := func(name, arguments string) {
		if name == "" {
			name = noName
		}
		answer.ToolCalls = append(answer.ToolCalls, contextstore.ToolCall{ID: callID(n, len(answer.ToolCalls)), Name: name, Arguments: arguments})
	}
	for _, c := range turn.ToolCalls {
		arguments := string(c.Arguments)
		var text string
		if json.Unmarshal(c.Arguments, &text) == nil {
			arguments = text
		}
		call(c.Name, arguments)
	}
	for len(answer.ToolCalls) < len(turn.Observations) {
		call(noName, "")
	}
	all := []contextstore.Message{answer}
	for i, c := range answer.ToolCalls {
		content := "No result is on record."
		if i < len(turn.Observations) {
			content = turn.Observations[i].Content
		}
		all = append(all, contextstore.Message{Role: llm.RoleTool, ToolCallID: c.ID, ToolName: c.Name, Content: content})
	}
	return all
}

// noName is the name of a call that has none on record.
const noName = "act"

func callID(turn, call int) redact.Opaque {
	return redact.Opaque(fmt.Sprintf("call_%d_%d", turn, call))
}

// ownRun takes the messages of a run of this house apart.
type ownRun struct {
	run   recordedRun
	ids   map[redact.Opaque]redact.Opaque // of the latest answer's calls
	asked bool
}

// add takes the next message. Images are left out: what they cost depends on
// their pixels. Of what the provider reported nothing is taken: it is true of the
// requests that were sent then.
func (o *ownRun) add(m contextstore.Message) {
	kept := contextstore.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, Provider: m.Provider, ToolName: m.ToolName, Failed: m.Failed}
	o.asked = o.asked || m.Role == llm.RoleUser
	switch {
	case m.Role == llm.RoleAssistant && o.asked: // before that it says what was inherited
		clear(o.ids)
		for i, c := range m.ToolCalls {
			id := callID(len(o.run.turns), i)
			o.ids[c.ID] = id
			if c.Name == "" {
				c.Name = noName
			}
			kept.ToolCalls = append(kept.ToolCalls, contextstore.ToolCall{ID: id, Name: c.Name, Arguments: c.Arguments})
		}
		o.run.turns = append(o.run.turns, []contextstore.Message{kept})
		return
	case m.Role == llm.RoleTool:
		kept.ToolCallID = o.ids[m.ToolCallID]
	}
	if n := len(o.run.turns); n > 0 {
		o.run.turns[n-1] = append(o.run.turns[n-1], kept)
	} else {
		o.run.opening = append(o.run.opening, kept)
	}
}

// asked reports whether somebody asks for something in the opening.
func (r *recordedRun) asked() bool {
	return slices.ContainsFunc(r.opening, func(m contextstore.Message) bool { return m.Role == llm.RoleUser })
}

// script is the script model of the recorded answers.
func (r *recordedRun) script() (llm.Client, error) {
	var lines []byte
	for _, turn := range r.turns {
		var err error
		if lines, err = jsonl.Append(lines, turn[0]); err != nil {
			return nil, err
		}
	}
	return scripted.Parse("recorded.jsonl", lines)
}

// played is a conversation with the script model. It serialises as the texts of
// its messages alone: what providers write around them differs.
type played struct {
	transcript
	script   llm.Conversation
	headless bool // nobody asks for anything in the opening
}

func (p *played) Append(m llm.Message) {
	p.transcript.Append(m)
	p.script.Append(m)
}

func (p *played) Reset() {
	p.transcript.Reset()
	p.script.Reset()
	if p.headless { // the script counts what was answered since a person asked
		p.script.Append(llm.Message{Role: llm.RoleUser})
	}
}

func (p *played) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	return p.script.Send(ctx, onText)
}

// transcript is a conversation that is never sent.
type transcript struct{ b []byte }

// Append takes of what the model thought the form that its provider takes back.
func (t *transcript) Append(m llm.Message) {
	if m.Opaque != "" {
		t.b = append(t.b, m.Opaque...)
	} else {
		t.b = append(t.b, m.Reasoning...)
	}
	t.b = append(append(t.b, m.Content...), '\n')
	for _, c := range m.ToolCalls {
		t.b = append(append(t.b, c.Name...), c.Arguments...)
	}
}

func (t *transcript) Reset()             { t.b = t.b[:0] }
func (t *transcript) Serialized() []byte { return t.b }
func (t *transcript) Send(context.Context, func(string)) (*llm.Reply, error) {
	return nil, errors.New("no model is called here")
}
