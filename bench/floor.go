package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// The floor is the least an agent can be: it keeps the request in memory, adds
// to it, and runs what it is told. What a turn costs here no agent can save.

const floorHead = `{"model":"bench","stream":true,"tools":[{"type":"function","function":{"name":"sh","description":"Runs a command.",` +
	`"parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}}],"messages":[`

// floorCost is what a floor run says of itself on standard output.
type floorCost struct {
	Turns  int   `json:"turns"`
	ToolUS int64 `json:"tool_us"` // within exec
	selfCPU
}

// floorDelta is what the floor understands of an event.
type floorDelta struct {
	Choices []struct {
		Delta struct {
			Content   string
			ToolCalls []floorCall `json:"tool_calls"`
		}
	}
}

type floorCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// floorMessage is a message the floor sends back.
type floorMessage struct {
	Role      string      `json:"role"`
	Content   string      `json:"content"`
	ToolCalls []floorCall `json:"tool_calls,omitempty"`
	CallID    string      `json:"tool_call_id,omitempty"`
}

// runFloor takes turns with the server at base until it answers with a text.
func runFloor(ctx context.Context, base, prompt string) (floorCost, error) {
	var cost floorCost
	request := []byte(floorHead)
	say := func(m floorMessage) {
		if n := len(request); request[n-1] != '[' {
			request = append(request, ',')
		}
		b, _ := json.Marshal(m) // strings always encode
		request = append(request, b...)
	}
	say(floorMessage{Role: "user", Content: prompt})
	for {
		text, call, err := floorAsk(ctx, base+"/chat/completions", append(request, "]}"...))
		if err != nil || call.ID == "" {
			return cost, err
		}
		say(floorMessage{Role: "assistant", Content: text, ToolCalls: []floorCall{call}})
		var args struct{ Command string }
		if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil {
			return cost, fmt.Errorf("arguments of %s: %w", call.ID, err)
		}
		start := time.Now()
		out, err := exec.CommandContext(ctx, "sh", "-c", args.Command).CombinedOutput()
		cost.ToolUS += time.Since(start).Microseconds()
		if err != nil {
			return cost, fmt.Errorf("run %q: %w: %s", args.Command, err, out)
		}
		say(floorMessage{Role: "tool", Content: string(out), CallID: call.ID})
		cost.Turns++
	}
}

// floorAsk posts the request and puts the streamed answer together.
func floorAsk(ctx context.Context, url string, request []byte) (text string, call floorCall, err error) {
	var content, args strings.Builder
	done := false
	err = post(ctx, http.DefaultClient, url, http.Header{"Content-Type": {"application/json"}}, request, func(line []byte) error {
		data, ok := bytes.CutPrefix(line, dataPrefix)
		if !ok {
			return nil
		}
		if string(data) == "[DONE]" {
			done = true
			return nil // to the end, so that the connection is kept
		}
		var d floorDelta
		if err := json.Unmarshal(data, &d); err != nil {
			return err
		}
		for _, choice := range d.Choices {
			content.WriteString(choice.Delta.Content)
			for _, c := range choice.Delta.ToolCalls {
				if c.ID != "" {
					call = c
				}
				args.WriteString(c.Function.Arguments)
			}
		}
		return nil
	})
	if err != nil {
		return "", call, err
	}
	if !done {
		return "", call, errors.New("the answer was cut off")
	}
	call.Function.Arguments = args.String()
	return content.String(), call, nil
}
