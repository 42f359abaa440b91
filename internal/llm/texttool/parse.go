package texttool

import (
	"cmp"
	"encoding/json"
	"strings"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/llm"
)

// maxTries is how many times parse begins to read an object that then turns
// out to be none; it bounds the work on text that is made to cost some.
const maxTries = 200

// lookAhead is how far into broken JSON a call is looked for, in bytes.
const lookAhead = 4096

// parse takes the calls out of an answer. It reads, with prose around them or
// none, in a fence or bare, one or several objects of the forms
//
//	{"call_tool": [{"tool": "f", "args": {…}}]}    or a single call for the list
//	{"command": {"tool": "f", "args": {…}}}
//	{"function_call": {"name": "f", "arguments": {…}}}    or a list, or "tool_calls"
//	{"tool": "f", "args": {…}} and {"name": "f", "arguments": {…}}    where f is offered
//
// with arguments also as a text that holds JSON. What looks like a call and is
// not JSON becomes a call whose arguments are the text as it stands, so that
// the one who runs it says what is wrong with them. text is what remains, or
// the comment where nothing does; without calls it is the answer unchanged,
// but for a mere {"done": true, "comment": "…"}.
func parse(answer string, offered map[string]bool) (text string, calls []llm.ToolCall) {
	if text, calls = lift(answer, offered); len(calls) > 0 {
		return text, calls
	}
	var prose strings.Builder
	comment, kept, tries := "", 0, 0
	for at := 0; tries < maxTries; {
		i := strings.IndexByte(answer[at:], '{')
		if i < 0 {
			break
		}
		at += i
		if !begins(answer[at:]) {
			at++
			continue
		}
		raw, err := first(answer[at:])
		end := at + len(raw)
		var o object
		switch {
		case err == nil:
			if json.Unmarshal(raw, &o) != nil || !o.read(offered) {
				at = end
				continue
			}
		case looksLikeCall().MatchString(answer[at:min(len(answer), at+lookAhead)]):
			end = brokenEnd(answer, at)
			o.calls = []llm.ToolCall{{Name: brokenName(answer[at:end]), Arguments: strings.TrimSpace(answer[at:end])}}
		default:
			tries++
			at++
			continue
		}
		calls = append(calls, o.calls...)
		comment = cmp.Or(comment, strings.TrimSpace(o.Comment))
		from, to := widen(answer, at, end)
		prose.WriteString(answer[kept:max(from, kept)])
		kept, at = to, to
	}
	if len(calls) == 0 {
		return unwrap(answer), nil
	}
	prose.WriteString(answer[kept:])
	text = strings.TrimRight(prose.String(), " \t\r\n")
	if strings.TrimSpace(text) == "" {
		text = comment
	}
	return text, calls
}

// begins reports whether s may be an object with members.
func begins(s string) bool {
	s = strings.TrimLeft(s[1:], " \t\r\n")
	return s != "" && s[0] == '"'
}

// first is the JSON value that s begins with.
func first(s string) (raw json.RawMessage, err error) {
	dec := json.NewDecoder(strings.NewReader(s))
	err = dec.Decode(&raw)
	return raw, err
}

// object is an answer's object in any of the forms.
type object struct {
	Comment  string          `json:"comment"`
	Done     bool            `json:"done"`
	CallTool json.RawMessage `json:"call_tool"`
	Command  json.RawMessage `json:"command"`
	Function json.RawMessage `json:"function_call"`
	Calls    json.RawMessage `json:"tool_calls"`
	single

	calls []llm.ToolCall
}

// single is one call in any of the forms.
type single struct {
	ID         string          `json:"id"`
	Tool       string          `json:"tool"`
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args"`
	Arguments  json.RawMessage `json:"arguments"`
	Parameters json.RawMessage `json:"parameters"`
	Inner      *single         `json:"function"` // as in tool_calls
}

// read collects the calls of o and reports whether there are any.
func (o *object) read(offered map[string]bool) bool {
	for _, raw := range []json.RawMessage{o.CallTool, o.Command, o.Function, o.Calls} {
		var list []single
		if json.Unmarshal(raw, &list) != nil {
			list = make([]single, 1)
			if json.Unmarshal(raw, &list[0]) != nil {
				continue
			}
		}
		for i := range list {
			if c := list[i].call(); c.Name != "" {
				o.calls = append(o.calls, c)
			}
		}
	}
	if len(o.calls) == 0 {
		if c := o.call(); offered[c.Name] && (o.Args != nil || o.Arguments != nil || o.Parameters != nil) {
			o.calls = append(o.calls, c)
		}
	}
	return len(o.calls) > 0
}

func (s *single) call() llm.ToolCall {
	c := llm.ToolCall{ID: s.ID, Name: cmp.Or(s.Tool, s.Name)}
	if s.Inner != nil {
		inner := s.Inner.call()
		inner.ID = s.ID
		return inner
	}
	c.Arguments = "{}"
	for _, raw := range []json.RawMessage{s.Args, s.Arguments, s.Parameters} {
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		var text string
		if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		c.Arguments = text
		break
	}
	return c
}

// looksLikeCall matches the beginning of what was meant to be a call.
var looksLikeCall = lazyregexp.New(`^\{\s*"(call_tool|function_call|tool_calls|command"\s*:\s*\{\s*"tool|tool|comment"\s*:[^{]*"(call_tool|function_call|command))"\s*:`)

var brokenNamePattern = lazyregexp.New(`"(?:tool|name)"\s*:\s*"([A-Za-z0-9_.\-]{1,128})"`)

// brokenName is the tool that broken JSON seems to call.
func brokenName(s string) string {
	if m := brokenNamePattern().FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return "unreadable_call"
}

// brokenEnd is where a broken object ends: at the fence that closes its block,
// else with the answer.
func brokenEnd(answer string, at int) int {
	if i := strings.Index(answer[at:], "\n```"); i >= 0 {
		return at + i
	}
	return len(answer)
}

var (
	openFence  = lazyregexp.New("(?:```[A-Za-z]*|<tool_call>)[ \t]*\r?\n?[ \t\r\n]*$")
	closeFence = lazyregexp.New("^[ \t\r\n]*(?:```|</tool_call>)")
)

// widen takes the fence around answer[from:to] into it.
func widen(answer string, from, to int) (int, int) {
	before := max(0, from-64)
	if m := openFence().FindStringIndex(answer[before:from]); m != nil {
		from = before + m[0]
		if m := closeFence().FindStringIndex(answer[to:]); m != nil {
			to += m[1]
		}
	}
	return from, to
}

// unwrap is the comment of an answer that is {"done": true, "comment": "…"}
// and nothing else, else the answer.
func unwrap(answer string) string {
	s := strings.TrimSpace(answer)
	if inner, found := strings.CutPrefix(s, "```json"); found {
		s = strings.TrimSpace(strings.TrimSuffix(inner, "```"))
	}
	var all map[string]json.RawMessage
	var o object
	if !strings.HasPrefix(s, "{") || json.Unmarshal([]byte(s), &all) != nil || json.Unmarshal([]byte(s), &o) != nil {
		return answer
	}
	if o.Done && strings.TrimSpace(o.Comment) != "" && len(all) == 2 {
		return o.Comment
	}
	return answer
}
