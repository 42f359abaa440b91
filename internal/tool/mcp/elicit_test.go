package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// forms are what people answer to a form, and what the server is told of it.
var forms = []struct{ schema, said, told string }{
	{`{}`, "Yes.", "accept"},
	{`{}`, "> Answer yes or no.\n\nはい", "accept"},
	{`{}`, "no", "decline|people declined"},
	{`{}`, "why?", "decline|did not say yes, but: why?"},
	{`{"name":{"type":"string"}}`, "Ada: the first", "accept map[name:Ada: the first]"},
	{`{"name":{"type":"string"}}`, "name: Ada", "accept map[name:Ada]"},
	{`{"name":{"type":"string"}}`, "decline", "decline|people declined"},
	{`{"n":{"type":"integer"}}`, "12", "accept map[n:12]"},
	{`{"n":{"type":"integer"}}`, "twelve", "decline|does not fit the field n"},
	{`{"n":{"type":"integer","minimum":20}}`, "12", "does not match requested schema"},
	{`{"sure":{"type":"boolean"}}`, "no", "accept map[sure:false]"},
	{`{"sure":{"type":"boolean"}}`, "perhaps", "decline|neither yes nor no"},
	{`{"c":{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}}`, "green", "accept map[c:g]"},
	{`{"c":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}}`, "1", "accept map[c:r]"},
	{`{"c":{"type":"array","items":{"type":"string","enum":["r","g","b"]}}}`, "r, b", "accept map[c:[r b]]"},
	{`{"c":{"type":"string","enum":["r","g"]}}`, "blue", `decline|"blue" is none of r, g`},
	{`{"a":{"type":"string","default":"z"},"b":{"type":"number","default":1.5}}`, "OK!", "accept map[a:z b:1.5]"},
	{`{"a":{"type":"string","default":"z"},"b":{"type":"number","default":1.5}}`, "No.", "decline|people declined"},
	{`{"a":{"type":"string","default":"z"},"b":{"type":"number","default":1.5}}`, "what is b?", "decline|none of its fields: what is b?"},
	{`{"a":{"type":"string"},"b":{"type":"number"}}`, "yes", "decline|without the field a"},
	{`{"a":{"type":"string"},"b":{"type":"number","default":1.5}}`, "- a：x", "accept map[a:x b:1.5]"},
	{`{"a":{"type":"string"},"b":{"type":"number"}}`, "A: x\nb = 2.5", "accept map[a:x b:2.5]"},
}

// required are the fields of a form that have no default.
func required(schema string) []string {
	var fields map[string]map[string]any
	_ = json.Unmarshal([]byte(schema), &fields)
	var all []string
	for name, f := range fields {
		if f["default"] == nil {
			all = append(all, name)
		}
	}
	return all
}

// TestElicitation has people asked by a server that speaks the protocol of 2025.
func TestElicitation(t *testing.T) {
	t.Parallel()
	for _, tc := range forms {
		t.Run(tc.said, func(t *testing.T) {
			t.Parallel()
			var asked mcp.Elicitation
			m := open(t, mcp.Options{Start: (&within{}).start, Elicit: func(_ context.Context, e mcp.Elicitation) (string, error) {
				asked = e
				return tc.said, nil
			}}, mode("asks people"))
			schema, _ := json.Marshal(obj{"type": "object", "properties": json.RawMessage(tc.schema), "required": slices.Concat([]string{}, required(tc.schema))})
			args, _ := json.Marshal(obj{"text": string(schema)})
			r := call(t, m, mcp.Name("asks people", "form"), string(args))
			told, note, _ := strings.Cut(tc.told, "|")
			action, content, _ := strings.Cut(told, " ")
			switch {
			case strings.Contains(told, "requested schema"): // the SDK refuses it
			case content == "" && note == "":
				says(t, r, false, "told map[action:"+action+"]")
			case content == "":
				says(t, r, false, "told map[action:"+action+"]", note, "was given no answer")
			default:
				says(t, r, false, "told map[action:"+action+" content:"+content+"]")
			}
			if asked.Message != "Which one?" || asked.Server != "asks people" || asked.Tool != mcp.Name("asks people", "form") {
				t.Errorf("%+v", asked)
			}
		})
	}
}

// TestElicitationNobodyKnows is one where people owe the answer, or cannot be asked.
func TestElicitationNobodyKnows(t *testing.T) {
	t.Parallel()
	name, args := mcp.Name("asks people", "form"), `{"text":"{\"type\":\"object\",\"properties\":{}}"}`
	var id string
	m := open(t, mcp.Options{Start: (&within{}).start, Elicit: func(ctx context.Context, _ mcp.Elicitation) (string, error) {
		id = tool.CallID(ctx)
		return "", &tool.WaitError{For: "an answer"}
	}}, mode("asks people"))
	var waits *tool.WaitError
	if _, err := registry(t, m.Tools()).Call(tool.WithCall(t.Context(), "7.c1"), name, args); !errors.As(err, &waits) || waits.For != "an answer" || id != "7.c1" {
		t.Errorf("%v, call %q", err, id)
	}
	m = open(t, mcp.Options{Start: (&within{}).start, Elicit: func(context.Context, mcp.Elicitation) (string, error) { return "", errors.New("nobody is there") }}, mode("asks people"))
	says(t, call(t, m, name, args), false, "told map[action:cancel]", "was given no answer: nobody is there.]")
	m = open(t, mcp.Options{Start: (&within{}).start}, mode("asks people"))
	says(t, call(t, m, name, args), false, "told <nil>") // it got an error
}

// TestElicitationOfAnAddress has people open an address, by the error of 2025, and
// makes the call again.
func TestElicitationOfAnAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"https://h.example/login?x=1": "opened", "javascript:alert(1)": "not one to be shown", "http://h.example/": "not one to be shown"} {
		var asked mcp.Elicitation
		m := open(t, mcp.Options{Start: (&within{}).start, Elicit: func(_ context.Context, e mcp.Elicitation) (string, error) {
			asked = e
			return "done", nil
		}}, mode("asks people"))
		says(t, call(t, m, mcp.Name("asks people", "open"), `{"text":"`+address+`"}`), want != "opened", want)
		if want == "opened" && asked.URL != address {
			t.Errorf("%+v", asked)
		}
	}
}

// TestElicitationInRounds has people asked by a server that speaks the protocol of
// 2026: the result asks, and the call is made again with the answers.
func TestElicitationInRounds(t *testing.T) {
	t.Parallel()
	s := sdk.NewServer(&sdk.Implementation{Name: "rounds", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "drop"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		if a, ok := r.Params.InputResponses["sure"].(*sdk.ElicitResult); ok {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "told " + a.Action}}}, nil, nil
		}
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"sure": &sdk.ElicitParams{Message: "Sure?"}}}, nil, nil
	})
	web := serveHTTP(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true}))
	said, err := "yes", error(nil)
	m := open(t, mcp.Options{Elicit: func(context.Context, mcp.Elicitation) (string, error) { return said, err }}, mcp.Server{Name: "rounds", URL: web.URL})
	says(t, call(t, m, "rounds__drop", ""), false, "told accept")
	said = "no"
	says(t, call(t, m, "rounds__drop", ""), false, "told decline", "people declined")
	err = &tool.WaitError{For: "an answer"}
	if _, err := registry(t, m.Tools()).Call(t.Context(), "rounds__drop", ""); !errors.As(err, new(*tool.WaitError)) {
		t.Error(err)
	}
}
