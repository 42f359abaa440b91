package texttool

import (
	"fmt"
	"testing"

	"toritsugi/internal/disk/disktest"
)

func TestLift(t *testing.T) {
	t.Parallel()
	offered := map[string]bool{"read_file": true, "shell": true}
	const quoted = "To read a file write\n```\n<tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>\n```\nand wait."
	for answer, want := range map[string]string{
		// the marks that models are taught
		"<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>":                                                                                  `"" read_file {"path": "a"}`,
		"I look.\n<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}</tool_call>\n<tool_call>{\"name\":\"shell\",\"arguments\":{\"command\":\"ls\"}}</tool_call>": `"I look." read_file {"path":"a"} shell {"command":"ls"}`,
		"<tool_call>{'name': 'shell', 'arguments': {'command': 'ls',}}":                                                                                                           `"" shell {"command": "ls"}`,
		"<think>\nmaybe {\"name\": \"x\"}\n</think>\n<tool_call>{\"name\":\"shell\",\"parameters\":{\"command\":\"ls\"}}</tool_call>":                                             `"" shell {"command":"ls"}`,
		// all that is said
		`{"name": "shell", "arguments": {"command": "ls"}}`:                                             `"" shell {"command": "ls"}`,
		`{"name": "shell", "arguments": "{\"command\": \"ls\"}"}`:                                       `"" shell {"command": "ls"}`,
		"```json\n{\"tool\": \"shell\", \"args\": {\"command\": \"ls\"}}\n```":                          `"" shell {"command": "ls"}`,
		`[{"name":"read_file","arguments":{"path":"a"}},{"name":"shell","arguments":{"command":"ls"}}]`: `"" read_file {"path":"a"} shell {"command":"ls"}`,
		"so I run it</think>{\"name\":\"shell\",\"arguments\":{\"command\":\"ls\"}}":                    `"" shell {"command":"ls"}`,
		// words, and a block at the end
		"I look.\n\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```\n\nAnd:\n```\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}\n```": `"I look.\n\n\n\nAnd:" read_file {"path": "a"} shell {"command": "ls"}`,
		"It was\n```go\nfunc main() {}\n```\nNow:\n```json\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}\n```":                                                 "",
		"```json\n{\"name\": \"rm\", \"arguments\": {}}\n```": "",
		// words, and objects on lines of their own at the end
		"I look.\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}":                                          `"I look." read_file {"path": "a"}`,
		"Now:\n{\"tool\":\"shell\",\"args\":{\"command\":\"ls\"}}\n{\"tool\":\"shell\",\"args\":{\"command\":\"pwd\"}}": `"Now:" shell {"command":"ls"} shell {"command":"pwd"}`,
		"{\"tool\":\"shell\",\"args\":{\"command\":\"ls\"}}\n{\"tool\":\"read_file\",\"args\":{\"path\":\"a\"}}":        `"" shell {"command":"ls"} read_file {"path":"a"}`,
		"Now:\n{\"tool\":\"shell\",\"args\":{\"command\":\"ls\"}}\nand then I am done.":                                 "",
		"Now:\n{\"tool\":\"shell\",\"args\":{\"command\":\"ls\"}}\n{\"version\":3}":                                     "",
		// prose, quotations and what is no call
		"I would call {\"name\": \"shell\", \"arguments\": {\"command\": \"rm -rf x\"}} here.":          "",
		"Done.\n```json\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}\n```\nThat is it.": "",
		quoted: "",
		"Models write `<tool_call>{\"name\":\"shell\",\"arguments\":{}}</tool_call>`.": "",
		`{"name": "rm", "arguments": {"path": "a"}}`:                                   "",
		`{"name": "shell", "arguments": "ls"}`:                                         "",
		`{"name": "shell", "version": 3}`:                                              "",
		`{"phase": "planning", "actions": [{"tool": "shell", "args": {}}]}`:            "",
		"<tool_call>{\"name\":\"shell\",\"arguments\":{\"command\":\"cat > x <<E":      "", // cut off
		"<tool_call>not JSON</tool_call>":                                              "",
		"":                                                                             "",
	} {
		text, calls := lift(answer, offered)
		got := ""
		if len(calls) > 0 {
			got = fmt.Sprintf("%q", text)
		} else if text != answer {
			t.Errorf("%q became %q", answer, text)
		}
		for _, c := range calls {
			got += " " + c.Name + " " + c.Arguments
		}
		if got != want {
			t.Errorf("%q\n got %s\nwant %s", answer, got, want)
		}
	}
}

func TestUnread(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		"I edit it.\n{\"name\": \"edit_file\", \"arguments\": {\"path\": \"a\", \"old_text\": \"": true,
		"<tool_call>{\"name\": \"edit_file\", \"arguments\": {\"path\": </tool_call>":             true,
		"Now:\n```json\n{\"tool\": \"shell\", \"args\": {}}\n```\n":                               true,
		`{"name": "open_the_file", "arguments": {}}`:                                              true,
		"It is\n```json\n{\"name\": \"left-pad\", \"version\": 3}\n```\nin the manifest.":         false,
		"Before:\n{\"tool_calls\": [":                                                             true,
		"The fix is in a.go. It reads {\"name\": \"x\"} from the file.":                           false,
		"```go\nfunc main() {}\n```":                                                              false,
		`{"phase": "planning", "actions": [{"tool": "shell"}]}`:                                   false,
		"{\n  \"phase\": \"planning\",\n  \"actions\": [\n    {\"tool\": \"shell\"}\n  ]\n}":      false,
		"Done.": false, "": false,
	} {
		if Unread(answer) != want {
			t.Errorf("%q: %v", answer, !want)
		}
	}
}

func FuzzLift(f *testing.F) {
	f.Add("<tool_call>{\"name\":\"a\",\"arguments\":{}}</tool_call>")
	f.Add("</think>[{\"tool\":\"a\",\"args\":{}}]")
	f.Fuzz(func(t *testing.T, answer string) {
		defer disktest.Bounded(t, len(answer))()
		text, calls := lift(answer, map[string]bool{"a": true})
		if len(calls) == 0 && text != answer {
			t.Errorf("%q became %q", answer, text)
		}
		for _, c := range calls {
			if c.Name != "a" {
				t.Errorf("%q calls %q", answer, c.Name)
			}
		}
		Unread(answer)
	})
}
