package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// sdkServer has TestMain be a server of the official SDK, instead of tori.
const sdkServer = "SDK_SERVER"

func serveSDK() {
	s := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, nil)
	type in struct {
		A int `json:"a" jsonschema:"one number"`
		B int `json:"b" jsonschema:"another one"`
	}
	type sum struct {
		Sum int `json:"sum"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "Adds two numbers."}, func(_ context.Context, _ *sdk.CallToolRequest, n in) (*sdk.CallToolResult, sum, error) {
		return nil, sum{n.A + n.B}, nil
	})
	_ = s.Run(context.Background(), &sdk.StdioTransport{}) // ends with the run
}

// The public npm servers and one of the official Go SDK together, with a model of
// 8,192 tokens: what they offer leaves room, is found, and is called by its own name
// and by call_tool; none of the programs lies where the system's do.
func TestServersInAWindowOf8192(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed; scripts/setup.sh installs it")
	}
	modules, err := filepath.Abs("../tool/mcp/testdata/npm/node_modules/@modelcontextprotocol")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "server-everything")); err != nil {
		t.Skip("the public MCP servers are not installed; scripts/setup.sh installs them")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, "http://127.0.0.1:1", "")
	notes := filepath.Join(h.dir, "notes")
	h.settings("provider: openai, openai: {model: m, api_key: key-for-a-test, context_length: 8192}", fmt.Sprintf(`checks: []
planning: {enabled: false}
mcp_servers:
  - {mcp_server_name: every, command: [node, %[1]s/server-everything/dist/index.js, stdio]}
  - {mcp_server_name: files, command: [node, %[1]s/server-filesystem/dist/index.js, .]}
  - {mcp_server_name: memory, command: [node, %[1]s/server-memory/dist/index.js], state: %[2]s, env: {MEMORY_FILE_PATH: %[2]s/memory.jsonl}}
  - {mcp_server_name: sdk, command: [%[3]s], env: {%[4]s: "1"}}`, modules, notes, exe, sdkServer))
	script := h.write("script.yaml", `
- calls: [{tool: find_tools, args: {query: add two numbers}}]
- calls:
    - {tool: sdk__add, args: {a: 2, b: 40}}
    - {tool: every__echo, args: {message: こんにちは}}
    - {tool: files__read_text_file, args: {path: README.md}}
    - {tool: call_tool, args: {name: memory__create_entities, arguments: {entities: [{name: tori, entityType: gate, observations: [is red]}]}}}
- say: Seen.
`)
	h.ends(exitOK, "^completed: ", append(h.args, "--script", script)...)
	v := h.only()
	offered, err := agent.Offered(v.Dir)
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, o := range offered {
		names += " " + o.Name
	}
	if tokens := llm.ToolsBytes(offered) / 4; tokens > 8192/4 || strings.Contains(names, "__") || !strings.Contains(names, "find_tools") {
		t.Errorf("%d tokens of tools:%s", tokens, names)
	}
	var found string
	results := map[string]string{}
	if err := v.Tail("messages.jsonl", 100, func(line []byte) error {
		var m contextstore.Message
		err := json.Unmarshal(line, &m)
		switch {
		case m.Role != llm.RoleTool:
		case m.ToolName == "find_tools":
			found = m.Content
		default:
			results[m.ToolName] = m.Content
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(found, "\nsdk__add\nAdds two numbers.") || len(found)/4 > 8192/4 {
		t.Errorf("found %s", found)
	}
	for name, want := range map[string]string{"sdk__add": `{"sum":42}`, "every__echo": "Echo: こんにちは", "files__read_text_file": "hello\n"} {
		if results[name] != want {
			t.Errorf("%s: %q", name, results[name])
		}
	}
	if b, err := readFile(filepath.Join(notes, "memory.jsonl")); err != nil || !strings.Contains(string(b), `"tori"`) {
		t.Errorf("%q, %v; %q", b, err, results)
	}
}
