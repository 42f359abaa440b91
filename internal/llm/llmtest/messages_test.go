package llmtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestMessagesAreRefused: what Anthropic's API refuses is refused here.
func TestMessagesAreRefused(t *testing.T) {
	t.Parallel()
	const head, tool = `{"model":"m","max_tokens":9,`, `"tools":[{"name":"f","input_schema":{"type":"object"}}],`
	user := func(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }
	answer := func(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
	const text, use, result = `{"type":"text","text":"a"}`, `{"type":"tool_use","id":"x","name":"f","input":{}}`, `{"type":"tool_result","tool_use_id":"x"}`
	turns := func(list ...string) string { return `"messages":[` + strings.Join(list, ",") + `]}` }
	marked := `{"type":"text","text":"a"` + CacheMark + `}`
	for _, c := range []struct{ body, says string }{
		{head + turns(user(text)), ""},
		{head + tool + turns(user(text), answer(use), user(result+","+text)), ""},
		{`{"model":"m",` + turns(user(text)), "max_tokens"},
		{head + `"n":1,` + turns(user(text)), "n"},
		{head + `"tools":[],` + turns(user(text)), "minItems"},
		{head + `"tools":[{"name":"f","input_schema":{}}],` + turns(user(text)), "type"},
		{head + `"tools":[{"name":"f.g","input_schema":{"type":"object"}}],` + turns(user(text)), "pattern"},
		{head + `"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"f","input_schema":{"type":"object"}}],` + turns(user(text)), "unique"},
		{head + `"system":"S",` + turns(user(text)), "system"},
		{head + turns(), "minItems"},
		{head + turns(user("")), "minItems"},
		{head + turns(user(`{"type":"text","text":""}`)), "oneOf"},
		{head + turns(user(`{"type":"text","text":" \n"}`)), "non-whitespace"},
		{head + turns(answer(text), user(text)), "the first"},
		{head + turns(user(text), answer(text)), "the last"},
		{head + turns(user(text), user(text)), "alternate"},
		{head + turns(`{"role":"system","content":[`+text+`]}`), "enum"},
		{head + turns(user(text), answer(use), user(result)), "must define tools"},
		{head + tool + turns(user(text), answer(use), user(text)), "without tool_result"},
		{head + tool + turns(user(text), answer(use), user(text+","+result)), "without tool_result"},
		{head + tool + turns(user(text), answer(use+","+strings.Replace(use, `"x"`, `"y"`, 1)), user(result)), "without tool_result"},
		{head + tool + turns(user(result)), "without its tool_use"},
		{head + tool + turns(user(text), answer(use+","+use), user(result+","+result)), "unique"},
		{head + tool + turns(user(text), answer(use), user(strings.Replace(result, `"x"`, `"y"`, 1))), "unexpected"},
		{head + tool + turns(user(text), answer(strings.Replace(use, `"x"`, `"a b"`, 1)), user(result)), "oneOf"},
		{head + tool + turns(user(text), answer(strings.Replace(use, `{}`, `"{}"`, 1)), user(result)), "oneOf"},
		{head + turns(user(use)), "cannot stand"},
		{head + turns(user(text), answer(`{"type":"thinking","thinking":"T","signature":"wrong"},`+text), user(text)), "signature"},
		{head + turns(user(text), answer(text+`,{"type":"redacted_thinking","data":"D"}`), user(text)), "final block"},
		{head + turns(user(strings.Repeat(marked+",", 4)+marked)), "maximum of 4"},
		{head + turns(user(`{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AA=="}}`)), "oneOf"},
	} {
		r, err := ParseMessages([]byte(c.body))
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s\n%+v, %v; want %q", c.body, r, err, c.says)
		}
	}
}

func TestMessagesRaw(t *testing.T) {
	t.Parallel()
	body := `{"model":"\"messages\":","max_tokens":9,"system":[{"type":"text","text":"S"` + CacheMark + `}],"messages":[{"role":"user","content":[{"type":"text","text":"a"` + CacheMark + `}]}],"stream":true}`
	r, err := ParseMessages([]byte(body))
	want := `["system":[{"type":"text","text":"S"` + CacheMark + `}],"messages":[{"role":"user","content":[{"type":"text","text":"a"]`
	if err != nil || string(r.Raw) != want || len(r.Messages) != 2 || !r.Stream {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestCloseJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``: ``, `{"a":[{"b":"]\"}"`: `{"a":[{"b":"]\"}"}]}`, `[1,{}`: `[1,{}]`, `{}`: `{}`,
	} {
		if got := CloseJSON([]byte(in)); string(got) != want {
			t.Errorf("%s became %s", in, got)
		}
	}
}

func TestMessagesErrors(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{400: "invalid_request_error", 529: "overloaded_error", 500: "api_error"} {
		b, err := json.Marshal(messagesError(status, "", "m"))
		if err != nil || !strings.Contains(string(b), fmt.Sprintf(`"error":{"message":"m","type":%q}`, want)) {
			t.Errorf("%v, %s", err, b)
		}
	}
}
