package anthropic

import (
	"encoding/json"
	"fmt"
	"strconv"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// noTools is sent where none are offered but calls were made: the API refuses
// blocks of tools without any tool.
const noTools = `,"tools":[{"name":"none","description":"No tool can be called any more.","input_schema":{"type":"object","properties":{}}}]`

// encodeHead sets the lead and returns what stands between the output limit and the
// tape. It fails where a tool's schema is not a JSON object. Source:
// CreateMessageParams of Anthropic's API description.
func (v *conversation) encodeHead(set llm.Settings) ([]byte, error) {
	v.lead = append(wire.AppendString([]byte(`{"model":`), v.client.sent), `,"max_tokens":`...)
	tools := set.Tools
	if len(tools) == 0 {
		return []byte{','}, nil
	}
	var b []byte
	open := `,"tools":[`
	for i, t := range tools {
		b = wire.AppendString(append(b, open+`{"name":`...), v.names.offer(t.Name))
		open = ","
		if t.Description != "" {
			b = wire.AppendString(append(b, `,"description":`...), t.Description)
		}
		var err error
		if b, err = appendSchema(append(b, `,"input_schema":`...), t.Schema); err != nil {
			return b, fmt.Errorf("the schema of the tool %s: %w", t.Name, err)
		}
		if i == len(tools)-1 {
			b = append(b, cacheMark...)
		}
		b = append(b, '}')
	}
	return append(b, "],"...), nil
}

// appendPace appends what can differ from call to call: the output limit, with
// what stands behind it.
func (c *client) appendPace(b []byte, limit int, thinks bool) []byte {
	thinking := ""
	switch {
	case !thinks:
	case c.thinking == Adaptive:
		thinking = `,"thinking":{"type":"adaptive"}`
	default:
		limit += c.thinking // the API counts both together
		thinking = `,"thinking":{"type":"enabled","budget_tokens":` + strconv.Itoa(c.thinking) + `}`
	}
	b = append(append(strconv.AppendInt(b, int64(limit), 10), `,"stream":true`...), thinking...)
	if c.temperature != nil && !thinks {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *c.temperature, 'f', -1, 64)
	}
	return b
}

// appendSchema appends an input schema, which the API demands to say that it
// is of an object.
func appendSchema(b []byte, schema json.RawMessage) ([]byte, error) {
	start := len(b)
	b, err := wire.AppendSchema(b, schema)
	if err != nil {
		return b, fmt.Errorf("not JSON: %w", err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(b[start:], &top); err != nil || top == nil {
		return b, fmt.Errorf("not a JSON object: %.80s", b[start:])
	}
	if _, ok := top["type"]; ok {
		return b, nil
	}
	rest := string(b[start+1:])
	b = append(b[:start], `{"type":"object"`...)
	if len(top) > 0 {
		b = append(b, ',')
	}
	return append(b, rest...), nil
}

// names are tools' names as offered and as the API accepts them.
type names struct{ wire, ours map[string]string }

func (n *names) none() bool { return len(n.ours) == 0 }

// offer returns the name under which a tool is offered: the API accepts 64
// letters, digits, _ and -, and no name twice.
func (n *names) offer(name string) string {
	if n.wire == nil {
		n.wire, n.ours = map[string]string{}, map[string]string{}
	}
	plain := wire.PlainName(name)
	if _, taken := n.ours[plain]; taken || plain != name {
		plain = plain[:min(len(plain), 47)] + "_" + hash(name+strconv.Itoa(len(n.ours)))
	}
	n.wire[name], n.ours[plain] = plain, name
	return plain
}

// sent is the name that a call of a tool is written with.
func (n *names) sent(name string) string {
	if plain, ok := n.wire[name]; ok {
		return plain
	}
	return wire.PlainName(name)
}

// called is the tool that a call names.
func (n *names) called(plain string) string {
	if name, ok := n.ours[plain]; ok {
		return name
	}
	return plain
}
