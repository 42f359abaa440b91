package anthropic

import (
	"bytes"
	"context"
	"fmt"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// form is the form of one answer: a tool beside those that are offered, which
// must be called. The zero form asks for none.
type form struct {
	name string
	tool []byte // as it is offered
}

// form is the form of the answer that ctx asks for. A conversation that thinks
// has none, because the API forces no tool then, and takes no thinking back where
// none is asked for; nor has one whose answers have a form already.
// Source: "Extended thinking with tool use" of Anthropic's documentation.
func (v *conversation) form(ctx context.Context) (f form, err error) {
	schema := llm.Form(ctx)
	if schema == nil || v.answer != "" || v.mayThink {
		return form{}, nil
	}
	f.name = v.names.free("final_answer")
	f.tool = wire.AppendString([]byte(`{"name":`), f.name)
	f.tool = wire.AppendString(append(f.tool, `,"description":`...), answerDescription)
	if f.tool, err = appendSchema(append(f.tool, `,"input_schema":`...), schema); err != nil {
		return form{}, fmt.Errorf("the schema of the answer: %w", err)
	}
	f.tool = append(f.tool, '}')
	return f, nil
}

// shaped is a body in parts that asks for an answer of a form: behind the mark
// of the other tools, which the vendor's cache still knows.
func (v *conversation) shaped(f form, parts [][]byte) [][]byte {
	if f.name == "" {
		return parts
	}
	choice := appendForced([]byte{']'}, f.name)
	last := len(parts) - 1 // up to where the output limit stands, or all of it
	rest := parts[last]
	if v.offered == 0 { // the list of tools stands behind the messages, as that of none
		rest = bytes.TrimSuffix(bytes.TrimSuffix(rest, []byte{'}'}), []byte(noTools))
		return append(parts[:last:last], rest, []byte(`,"tools":[`), f.tool, choice, []byte{'}'})
	}
	at := v.offered
	if last > 0 {
		at -= v.pace.to
	}
	return append(parts[:last:last], rest[:at], []byte{','}, f.tool, choice, rest[at+1:])
}
