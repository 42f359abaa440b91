package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(request))
	if err != nil {
		return "", call, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", call, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // the status says it too
		return "", call, fmt.Errorf("the server refused (%s): %s", res.Status, b)
	}
	var content, args strings.Builder
	done := false
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			done = true
			continue // to the end, so that the connection is kept
		}
		var d floorDelta
		if err := json.Unmarshal(data, &d); err != nil {
			return "", call, err
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
	}
	if err := lines.Err(); err != nil {
		return "", call, err
	}
	if !done {
		return "", call, errors.New("the answer was cut off")
	}
	call.Function.Arguments = args.String()
	return content.String(), call, nil
}
