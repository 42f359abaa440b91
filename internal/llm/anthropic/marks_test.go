package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/llm"
)

// What Marks tells is where the marks stand in what is sent.
func TestMarksAreWhereTheyAreTold(t *testing.T) {
	t.Parallel()
	for _, roles := range []string{"su", "u", "sau", "suat", "suatuat", "suatt", "suau", "suatatu", "s"} {
		c, err := newClient(Config{Provider: "anthropic", Model: "m", BaseURL: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		v := c.Open(llm.Settings{}).(*conversation)
		var all []llm.Message
		for i, r := range roles {
			m := llm.Message{Content: fmt.Sprintf("text-%d.", i)}
			switch r {
			case 's':
				m.Role = llm.RoleSystem
			case 'u':
				m.Role = llm.RoleUser
			case 't':
				m.Role, m.ToolCallID = llm.RoleTool, fmt.Sprint("c", strings.LastIndex(roles[:i], "a"), "-", i)
			case 'a':
				m.Role = llm.RoleAssistant
				for j := i + 1; j < len(roles) && roles[j] == 't'; j++ {
					m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: fmt.Sprint("c", i, "-", j), Name: "shell", Arguments: "{}"})
				}
			}
			all = append(all, m)
			v.Append(m)
		}
		sent := bytes.Join(v.request(t.Context()), nil)
		var body struct {
			System   []map[string]any
			Messages []struct{ Content []map[string]any }
		}
		if err := json.Unmarshal(sent, &body); err != nil {
			t.Fatalf("%s: %v\n%s", roles, err, sent)
		}
		blocks := body.System
		for _, m := range body.Messages {
			blocks = append(blocks, m.Content...)
		}
		var got []int
		for _, b := range blocks {
			if b["cache_control"] == nil {
				continue
			}
			at := slices.IndexFunc(all, func(m llm.Message) bool { return b["text"] == m.Content || b["content"] == m.Content })
			if at >= 0 { // else a line of ours, behind the last of them
				got = append(got, at)
			}
		}
		if want := Marks(all); !slices.Equal(got, want) && roles != "s" {
			t.Errorf("%s: the marks stand behind %v, told are %v\n%s", roles, got, want, sent)
		}
	}
}
