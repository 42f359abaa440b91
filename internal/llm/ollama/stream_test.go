package ollama

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// FuzzAnswer: whatever a server sends is an answer or an error, the same for
// the same bytes, and an answer can be appended and sent back.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(said + done))
	f.Add([]byte(`{"model":"m","message":{"role":"assistant","thinking":"h","tool_calls":[{"id":"call_1","function":{"name":"f","arguments":{"a":"\ud800"}}},{"id":"call_1"}]}}` + "\n" + done))
	f.Add([]byte(`{"error":{"message":1}}`))
	f.Add([]byte("{\"model\":\"m\",\"message\":{\"content\":\"\xff\x00\"},\"done\":true,\"prompt_eval_count\":-1,\"eval_count\":1e3}"))
	f.Add([]byte("\r\n \xEF\xBB\xBF{}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		defer disktest.Bounded(t, len(body))()
		c := answering(t, Config{}, string(body))
		var streamed strings.Builder
		v := c.Open(llm.Settings{})
		v.Append(user("x"))
		reply, err := v.Send(context.Background(), func(s string) { streamed.WriteString(s) })
		if (reply == nil) == (err == nil) {
			t.Fatalf("%v, %v", reply, err)
		}
		if err != nil {
			return
		}
		if streamed.String() != reply.Message.Content || reply.FinishReason == "" {
			t.Errorf("streamed %q, reply %+v", streamed.String(), reply)
		}
		ids := map[string]bool{}
		for _, call := range reply.Message.ToolCalls {
			if call.ID == "" || ids[call.ID] || !utf8.ValidString(call.Arguments) {
				t.Errorf("call %+v", call)
			}
			ids[call.ID] = true
		}
		v.Append(reply.Message)
		if _, err := llmtest.ParseOllama(append(bytes.Clone(v.(*conversation).B), `],"options":{"num_ctx":8192}}`...)); err != nil {
			t.Error(err)
		}
	})
}
