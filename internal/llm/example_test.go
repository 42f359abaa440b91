package llm_test

import (
	"context"
	"fmt"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/script"
)

// A conversation only grows, so that what was sent once is the beginning of what is
// sent next. The script stands for a model; every provider is used the same way.
func Example() {
	client, err := script.Parse("greeting.yaml", []byte("- calls: [{tool: clock, args: {}}]\n- say: It is noon.\n"))
	if err != nil {
		panic(err)
	}
	clock := llm.Tool{Name: "clock", Description: "Tells the time.", Schema: []byte(`{"type":"object"}`)}
	conv := client.Open(llm.Settings{Tools: []llm.Tool{clock}})
	conv.Append(llm.Message{Role: llm.RoleUser, Content: "What time is it?"})
	for {
		reply, err := conv.Send(context.Background(), nil)
		if err != nil {
			panic(err)
		}
		conv.Append(reply.Message)
		for _, call := range reply.Message.ToolCalls {
			fmt.Println(call.Name, call.Arguments)
			conv.Append(llm.Message{Role: llm.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: "12:00"})
		}
		if len(reply.Message.ToolCalls) == 0 {
			fmt.Println(reply.Message.Content)
			return
		}
	}
	// Output:
	// clock {}
	// It is noon.
}
