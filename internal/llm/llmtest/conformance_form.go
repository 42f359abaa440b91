package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm"
)

const formed = `{"b":"x","a":[]}`

// formOfOne: a form for one call changes nothing of what was appended.
func formOfOne(t *testing.T, build Factory) {
	c := build(t, Options{}, Answer{Text: formed}).start()
	before := bytes.Clone(c.Serialized())
	reply, err := c.Send(llm.WithForm(t.Context(), json.RawMessage(strictSchema)), nil)
	if err != nil || reply.Message.Content != formed || len(reply.Message.ToolCalls) != 0 || reply.FinishReason != llm.FinishStop {
		t.Errorf("got %+v, %v", reply, err)
	}
	if !bytes.Equal(before, c.Serialized()) {
		t.Errorf("was %s\nis  %s", before, c.Serialized())
	}
}

// formOnWire: one call of a conversation carries the form, with tools and
// without; those before and after it are what they would be.
func formOnWire(t *testing.T, build Factory) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(strictSchema)); err != nil {
		t.Fatal(err)
	}
	ctx := llm.WithForm(t.Context(), json.RawMessage(strictSchema))
	for _, tools := range [][]llm.Tool{{{Name: "add"}, {Name: "final_answer"}}, nil} {
		rig := build(t, Options{}, Answer{Text: "Well."}, Answer{Text: formed}, Answer{Text: "Done."})
		c := rig.start(tools...)
		c.Append(llm.Message{Role: llm.RoleAssistant, Content: "I add.", ToolCalls: twoCalls[:1]})
		c.Append(llm.Message{Role: llm.RoleTool, ToolCallID: "call_x", ToolName: "add", Content: "5"})
		c.Append(send(t, c).Message)
		c.Append(user("Once more, as JSON."))
		reply, err := c.Send(ctx, nil)
		if err != nil || reply.Message.Content != formed || len(reply.Message.ToolCalls) != 0 || reply.FinishReason != llm.FinishStop {
			t.Fatalf("got %+v, %v", reply, err)
		}
		c.Append(reply.Message)
		c.Append(user("Go on."))
		send(t, c)
		r := rig.Requests()
		for i, want := range []string{"", compact.String(), ""} {
			if string(r[i].Schema) != want {
				t.Errorf("%d tools, call %d: schema %s, want %s", len(tools), i+1, r[i].Schema, want)
			}
		}
		if !rig.lacks(Strictness) && !r[1].Strict {
			t.Error("the form is not kept strictly")
		}
		if !cmp.Equal(r[0].Tools, r[2].Tools) || len(r[1].Tools) < len(tools) || !cmp.Equal(r[0].Tools[:len(tools)], r[1].Tools[:len(tools)]) {
			t.Errorf("tools %q, %q, %q", r[0].Tools, r[1].Tools, r[2].Tools)
		}
		CheckPrefix(t, r)
		var e *llm.Error
		if _, err := c.Send(llm.WithForm(ctx, json.RawMessage("{")), nil); !errors.As(err, &e) || e.Kind != llm.KindBadRequest {
			t.Errorf("a form that is not JSON: %v", err)
		}
		if n := len(r); len(rig.Requests()) != n {
			t.Error("a form that is not JSON was sent")
		}
	}
	own := `{"type":"object","properties":{"c":{}}}`
	rig := build(t, Options{}, Answer{Text: `{"c":1}`})
	c := rig.Client.Open(llm.Settings{Schema: json.RawMessage(own)})
	c.Append(user("Go."))
	if _, err := c.Send(ctx, nil); err != nil || string(rig.Requests()[0].Schema) != own {
		t.Errorf("%v, schema %s: the form of all answers stays", err, rig.Requests()[0].Schema)
	}
	if _, err := c.Send(llm.WithForm(ctx, nil), nil); err != nil || string(rig.Requests()[1].Schema) != own {
		t.Errorf("%v: no form", err)
	}
}
