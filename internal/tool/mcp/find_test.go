package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// plainTool is a tool that tells its arguments.
type plainTool tool.Definition

func (p plainTool) Definition() tool.Definition { return tool.Definition(p) }

func (p plainTool) Call(_ context.Context, args json.RawMessage) (tool.Result, error) {
	return tool.Text(p.Name + " got " + string(args)), nil
}

const numberSchema = `{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}`

func many() []tool.Tool {
	var all []tool.Tool
	for _, d := range []tool.Definition{
		{Name: "gh__get_issue", Description: "Get one issue of a repository.", Schema: json.RawMessage(numberSchema), ReadOnly: true},
		{Name: "gh__listPullRequests", Description: "List the pull requests of a repository.", Schema: json.RawMessage(`{"type":"object"}`)},
		{Name: "db__query", Description: "Run a query against the database.", Schema: json.RawMessage(`{"type":"object","properties":{"sql":{"type":"string"}}}`)},
		{Name: "web__shot", Description: "スクリーンショットを撮る。Takes a screenshot of a page.", Schema: json.RawMessage(`{"type":"object"}`)},
	} {
		all = append(all, plainTool(d))
	}
	for i := range 30 {
		all = append(all, plainTool{Name: fmt.Sprintf("misc__tool_%02d", i), Description: "Does something else entirely.", Schema: json.RawMessage(`{"type":"object"}`)})
	}
	return all
}

func deferred(t *testing.T) *tool.Registry {
	t.Helper()
	tools, err := mcp.Defer(tool.Limits{}, 100, []string{"misc__tool_0?"}, many())
	if err != nil {
		t.Fatal(err)
	}
	return registry(t, tools)
}

func ask(t *testing.T, r *tool.Registry, name, args string) tool.Result {
	t.Helper()
	res, err := r.Call(t.Context(), name, args)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestWithinTheBudgetNothingIsDeferred(t *testing.T) {
	t.Parallel()
	core := []string{"misc__tool_0?"} // are not counted
	rest := slices.DeleteFunc(many(), func(t tool.Tool) bool { return strings.HasPrefix(t.Definition().Name, "misc__tool_0") })
	tools, err := mcp.Defer(tool.Limits{}, mcp.Tokens(rest), core, many())
	if err != nil || len(tools) != len(many()) {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}

// TestDeferredAndDenied: what may not be used costs nothing, is not found, and
// is refused with the reason however it is called.
func TestDeferredAndDenied(t *testing.T) {
	t.Parallel()
	rules := tool.Access{Of: "role chat", Deny: []string{"gh__*", "misc__tool_01"}}
	tools, err := mcp.Defer(tool.Limits{}, 100, []string{"misc__tool_0?"}, many(), rules)
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry(t, tools).Restrict(rules)
	if err != nil {
		t.Fatal(err)
	}
	const refused = "may not be used here: role chat denies "
	says(t, ask(t, r, "gh__get_issue", `{"number":1}`), true, refused+"gh__*")
	says(t, ask(t, r, "misc__tool_01", "{}"), true, refused+"misc__tool_01")
	says(t, ask(t, r, "call_tool", `{"name":"gh__get_issue","arguments":{"number":1}}`), true, refused+"gh__*")
	says(t, ask(t, r, "call_tool", `{"name":"db__query","arguments":{}}`), false, "db__query got")
	if text := ask(t, r, "find_tools", `{"query":"gh__get_issue repository"}`).Text; strings.Contains(text, "gh__") {
		t.Errorf("found: %s", text)
	}
	only := tool.Access{Of: "x", Allow: []string{"db__*", "web__*"}}
	if tools, err = mcp.Defer(tool.Limits{}, 200, nil, many(), only); err != nil || len(tools) != len(many()) {
		t.Errorf("%d tools where those allowed are few, %v", len(tools), err)
	}
	none := tool.Access{Of: "x", Allow: []string{"misc__tool_00"}}
	if tools, err = mcp.Defer(tool.Limits{}, 1, []string{"misc__tool_00"}, many(), none); err != nil || len(tools) != len(many()) {
		t.Errorf("%d tools where nothing is left to defer, %v", len(tools), err)
	}
}

func TestDeferredTools(t *testing.T) {
	t.Parallel()
	r := deferred(t)
	var got []string
	for _, d := range r.Definitions() {
		got = append(got, d.Name)
	}
	want := []string{"call_tool", "find_tools"}
	for i := range 10 {
		want = append(want, fmt.Sprintf("misc__tool_%02d", i))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if r.ReadOnly("call_tool") || !r.ReadOnly("find_tools") {
		t.Error("what only reads is wrong")
	}
	says(t, ask(t, r, "call_tool", `{"name":"gh__get_issue","arguments":{"number":7}}`), false, `gh__get_issue got {"number":7}`)
	says(t, ask(t, r, "call_tool", `{"name":"gh__listPullRequests"}`), false, "gh__listPullRequests got {}")
	says(t, ask(t, r, "call_tool", `{"name":"gh__get_issue","arguments":{"number":"x"}}`), true, "The arguments of gh__get_issue are not valid")
	says(t, ask(t, r, "call_tool", `{"name":"gh__get_issues"}`), true, `There is no tool named "gh__get_issues" here`, "find_tools")
	says(t, ask(t, r, "call_tool", `{"name":"misc__tool_01"}`), true, "called by their own names")
	says(t, ask(t, r, "call_tool", `{"name":"call_tool"}`), true, "There is no tool")
	// By its own name, as models do once they have found it.
	says(t, ask(t, r, "gh__get_issue", `{"number":7}`), false, `gh__get_issue got {"number":7}`)
	says(t, ask(t, r, "gh__get_issue", `{"number":"x"}`), true, "The arguments of gh__get_issue are not valid")
	if !r.ReadOnly("gh__get_issue") {
		t.Error("a deferred tool that only reads does not count as one")
	}
	says(t, ask(t, r, "gh__get_isue", "{}"), true, "Did you mean gh__get_issue?", "Known tools: call_tool, find_tools, misc__tool_00, ")
	if text := ask(t, r, "nothing", "{}").Text; strings.Contains(text, "db__query") {
		t.Errorf("deferred tools are listed: %s", text)
	}
}

// TestFoundToolsFit: what is found is whole, as far as a result may go.
func TestFoundToolsFit(t *testing.T) {
	t.Parallel()
	long := func(name string, n int) tool.Tool {
		return plainTool{Name: name, Description: strings.Repeat("word ", n), Schema: json.RawMessage(`{"type":"object"}`)}
	}
	limits := tool.Limits{MaxOutput: 2048}
	tools, err := mcp.Defer(limits, 0, nil, []tool.Tool{long("a__one", 150), long("a__two", 150), long("a__three", 150), long("b__large", 900)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.NewRegistry(limits, tools...)
	if err != nil {
		t.Fatal(err)
	}
	text := ask(t, r, "find_tools", `{"query":"one two three"}`).Text
	if !strings.HasPrefix(text, "3 of 4 tools match; the best 2 are shown.") || strings.Count(text, "Arguments: {") != 2 {
		t.Errorf("found:\n%s", text)
	}
	says(t, ask(t, r, "find_tools", `{"query":"large"}`), false, "1 of 4 tools match.", "b__large")
}

func TestFindTools(t *testing.T) {
	t.Parallel()
	r := deferred(t)
	for query, first := range map[string]string{
		"pull requests":            "gh__listPullRequests",
		"get an issue":             "gh__get_issue",
		"database sql":             "db__query",
		"screenshot":               "web__shot",
		"スクリーンショットを撮る":             "web__shot",
		"ISSUES":                   "gh__get_issue",
		"misc__tool_25":            "misc__tool_25",
		"see db__query, web__shot": "db__query",
	} {
		res := ask(t, r, "find_tools", `{"query":"`+query+`"}`)
		_, list, _ := strings.Cut(res.Text, "\n\n")
		if !strings.HasPrefix(list, first) {
			t.Errorf("%s: %s", query, res.Text)
		}
		if again := ask(t, r, "find_tools", `{"query":"`+query+`"}`); again.Text != res.Text {
			t.Errorf("%s: another answer the second time", query)
		}
	}
	want := `20 of 24 tools match; the best 2 are shown. Call one with call_tool.

misc__tool_10
Does something else entirely.
Arguments: {"type":"object"}

misc__tool_11
Does something else entirely.
Arguments: {"type":"object"}
`
	if diff := cmp.Diff(want, ask(t, r, "find_tools", `{"query":"something","limit":2.0}`).Text); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	says(t, ask(t, r, "find_tools", `{"query":"get_issue"}`), false, "gh__get_issue (changes nothing)\nGet one issue", "Arguments: "+numberSchema)
	says(t, ask(t, r, "find_tools", `{"query":"¿?"}`), false, "No tool matches. The 24 tools are:\ndb__query\n")
}
