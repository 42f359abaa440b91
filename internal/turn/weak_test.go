package turn

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/texttool"
	"toritsugi/internal/tool"
)

// opens is a client of one conversation.
type opens struct {
	llm.Client
	conv llm.Conversation
}

func (o opens) Open(llm.Settings) llm.Conversation { return o.conv }

// prompt is a shell that says what it was given.
type prompt struct{}

func (prompt) Run(_ context.Context, script, _, dir string, _ time.Duration, out io.Writer) (tool.ShellExit, error) {
	_, err := io.WriteString(out, "ran "+script+" in "+dir+"\n")
	return tool.ShellExit{}, err
}

// What weak models say for what they mean is done at once: each of these
// conversations takes as many requests as if it had been said right.
func TestWeakModels(t *testing.T) {
	t.Parallel()
	const file = "package a\n\nfunc Limit() int {\n\treturn 10\n}\n"
	edited := strings.ReplaceAll(file, "10", "20")
	native := func(name, args string) func() (*llm.Reply, error) {
		return say("", llm.ToolCall{ID: "c1", Name: name, Arguments: args})
	}
	for name, c := range map[string]struct {
		answer func() (*llm.Reply, error)
		want   string // of the result
		file   string // a.go afterwards, "" for unchanged
	}{
		"numbers as text":           {native("read_file", `{"path":"a.go","start_line":"3","end_line":"4"}`), "lines 3-4 of 5", ""},
		"booleans as text":          {native("edit_file", `{"path":"a.go","old_text":"return 10","new_text":"return 20","replace_all":"false"}`), "Edited a.go", edited},
		"a list of one":             {native("shell", `{"command":["ls"]}`), "ran ", ""},
		"encoded twice":             {native("edit_file", `"{\"path\":\"a.go\",\"old_text\":\"return 10\",\"new_text\":\"return 20\"}"`), "Edited a.go", edited},
		"arguments in arguments":    {native("read_file", `{"arguments":{"path":"a.go"}}`), "a.go: 5 lines", ""},
		"cmd":                       {native("shell", `{"cmd":"ls","timeout":"30"}`), "ran ", ""},
		"another shell":             {native("bash", `{"command":"ls"}`), "ran ", ""},
		"old_string, new_string":    {native("edit_file", `{"file_path":"a.go","old_string":"return 10","new_string":"return 20"}`), "Edited a.go", edited},
		"str_replace":               {native("str_replace", `{"path":"a.go","old_str":"return 10","new_str":"return 20"}`), "Edited a.go", edited},
		"out of range":              {native("grep", `{"pattern":"Limit","limit":5000,"context":-1}`), "[context -1 was too small and was taken as not given; limit 5000 was too large; 1000 was used]", ""},
		"null for nothing":          {native("read_file", `{"path":"a.go","start_line":null,"end_line":null}`), "a.go: 5 lines", ""},
		"/workspace":                {native("read_file", `{"path":"/workspace/a.go"}`), "a.go: 5 lines", ""},
		"the root":                  {native("edit_file", `{"path":"/a.go","old_text":"return 10","new_text":"return 20"}`), "Edited a.go", edited},
		"line numbers in old_text":  {native("edit_file", `{"path":"a.go","old_text":"3\tfunc Limit() int {\n4\t\treturn 10","new_text":"3\tfunc Limit() int {\n4\t\treturn 20"}`), "Edited a.go", edited},
		"an edit that is there":     {native("edit_file", `{"path":"a.go","old_text":"func Limits() int {","new_text":"func Limit() int {"}`), "nothing was changed: old_text is not in the file, and new_text is, once, at line 3", ""},
		"JSON as Python writes it":  {native("edit_file", `{'path': 'a.go', 'old_text': 'return 10', 'new_text': 'return 20', 'replace_all': False}`), "Edited a.go", edited},
		"line breaks in a text":     {native("write_file", "{\"path\":\"a.go\",\"content\":\"package a\n\"}"), "a.go", "package a\n"},
		"open_file":                 {native("open_file", `{"path":"a.go"}`), "a.go: 5 lines", ""},
		"a tool that was":           {native("glob", `{"pattern":"*.go"}`), "a.go\n", ""},
		"marked text":               {say("I edit.\n<tool_call>\n{\"name\": \"edit_file\", \"arguments\": {\"path\": \"a.go\", \"old_text\": \"return 10\", \"new_text\": \"return 20\"}}\n</tool_call>"), "Edited a.go", edited},
		"bare text":                 {say(`{"name": "read_file", "arguments": {"path": "a.go"}}`), "a.go: 5 lines", ""},
		"fenced text after thought": {say("<think>I must look.</think>\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.go\",}}\n```"), "a.go: 5 lines", ""},
		"two calls as text":         {say("<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a.go\"}}</tool_call>\n<tool_call>{\"name\":\"grep\",\"arguments\":{\"pattern\":\"Limit\"}}</tool_call>"), "a.go\n3: func Limit", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(file), 0o644); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = root.Close() })
			tools, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root, Shell: prompt{}})...)
			if err != nil {
				t.Fatal(err)
			}
			b := setup(t, nil, c.answer, say("Done."))
			var set llm.Settings
			for _, d := range tools.Definitions() {
				set.Tools = append(set.Tools, llm.Tool{Name: d.Name, Schema: d.Schema})
			}
			b.openWith(t, texttool.Lift(opens{conv: b.model}).Open(set), tools)
			answer, err := b.loop.Run(t.Context())
			if err != nil || answer.Content != "Done." || len(b.model.sent) != 2 {
				t.Fatalf("%d requests: %+v, %v", len(b.model.sent), answer, err)
			}
			result := b.model.msgs[len(b.model.msgs)-2]
			if result.Role != llm.RoleTool || result.ToolName == "bash" || !strings.Contains(result.Content, c.want) {
				t.Errorf("the result is %+v, want %s", result, c.want)
			}
			want := c.file
			if want == "" {
				want = file
			}
			if got, err := os.ReadFile(filepath.Join(dir, "a.go")); err != nil || string(got) != want {
				t.Errorf("a.go is %q, %v", got, err)
			}
		})
	}
}

// Calls as text beside a native one are run as others are, and what cannot be read is
// told; what is a call already is not made twice, and an example is none.
func TestCallsAsTextBesideACall(t *testing.T) {
	t.Parallel()
	look := llm.ToolCall{ID: "call_1", Name: "read_file", Arguments: `{"path": "a.go"}`}
	for name, c := range map[string]struct {
		text  string
		calls string // that were run
		told  bool
	}{
		"another tool":    {"I edit.\n" + `{"name":"write_file","arguments":{"path":"b.go","content":"x"}}`, "write_file read_file", false},
		"the marks":       {"<tool_call>" + `{"name":"write_file","arguments":{"path":"b.go","content":"x"}}` + "</tool_call>", "write_file read_file", false},
		"the same":        {"I look.\n" + `{"name":"read_file","arguments":{"path":"a.go"}}`, "read_file", false},
		"broken":          {"I edit.\n" + `{"name":"write_file","arguments":{"path":"b.go","con`, "read_file", true},
		"no tool of ours": {"I look.\n" + `{"name":"peek","arguments":{}}`, "read_file", true},
		"in the middle":   {"First\n" + `{"name":"write_file","arguments":{"path":"b.go","content":"x"}}` + "\nthen I look.", "read_file", true},
		"an example":      {"Models write `{\"name\":\"write_file\",\"arguments\":{\"path\":\"b.go\"}}` in a line.", "read_file", false},
		"a manifest":      {"It holds\n```json\n{\"name\": \"left-pad\", \"version\": \"1\"}\n```", "read_file", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = root.Close() })
			tools, err := tool.NewRegistry(tool.Limits{}, tool.Builtins(tool.Env{Root: root})...)
			if err != nil {
				t.Fatal(err)
			}
			b := setup(t, nil, say(c.text, look), say("Done."))
			var set llm.Settings
			for _, d := range tools.Definitions() {
				set.Tools = append(set.Tools, llm.Tool{Name: d.Name, Schema: d.Schema})
			}
			b.openWith(t, texttool.Lift(opens{conv: b.model}).Open(set), tools)
			if answer, err := b.loop.Run(t.Context()); err != nil || answer.Content != "Done." {
				t.Fatalf("%+v, %v", answer, err)
			}
			var ran []string
			ids, told := map[string]bool{}, false
			for _, m := range b.model.msgs {
				if m.Role == llm.RoleTool {
					ran = append(ran, m.ToolName)
					ids[m.ToolCallID] = true
				}
				told = told || m.Content == unreadBeside
			}
			if got := strings.Join(ran, " "); got != c.calls || told != c.told || len(ids) != len(ran) {
				t.Errorf("ran %s, told %v, %v", got, told, ids)
			}
		})
	}
}

// A call as text that cannot be read does not end the work: the model is asked for
// it, once.
func TestACallThatCannotBeReadIsAskedFor(t *testing.T) {
	t.Parallel()
	broken := say("I edit the file.\n{\"name\": \"edit_file\", \"arguments\": {\"path\": \"a.go\", \"old_text\": \"x")
	b := setup(t, nil, broken, say("It was an example."))
	if answer, err := b.loop.Run(t.Context()); err != nil || answer.Content != "It was an example." || b.model.msgs[3].Content != unreadCall {
		t.Errorf("%+v, %v", answer, err)
	}
	b = setup(t, nil, broken, broken, say("not heard"))
	if answer, err := b.loop.Run(t.Context()); err != nil || len(b.model.sent) != 2 || !strings.HasPrefix(answer.Content, "I edit") {
		t.Errorf("%d requests: %+v, %v", len(b.model.sent), answer, err)
	}
}
