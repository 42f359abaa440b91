package agent

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/dialogue"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
	"toritsugi/internal/tool"
	"toritsugi/internal/workspace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// mostToolTokens is what the definitions of the tools that are always there may
// take of every request, in tokens of four bytes.
const mostToolTokens = 1000

// What every request begins with, as it is sent, and what it costs.
func TestToolsAsSent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	own := tool.Builtins(tool.Env{Root: root, Shell: shell{}, Jobs: tool.NewJobs(), Git: (*workspace.Workspace)(nil)})
	asking := dialogue.New(nil, dialogue.Settings{Asking: &dialogue.Asking{}}, 0)
	reg, err := tool.NewRegistry(tool.Limits{}, slices.Concat(own, []tool.Tool{&memory.Recall{}}, asking.Tools(), planning.Tools())...)
	if err != nil {
		t.Fatal(err)
	}
	text, bytes := "", 0
	for _, d := range reg.Definitions() {
		// As internal/llm/openai writes them.
		name, _ := json.Marshal(d.Name)
		description, _ := json.Marshal(d.Description)
		line := fmt.Sprintf(`{"type":"function","function":{"name":%s,"description":%s,"parameters":%s}},`, name, description, d.Schema)
		bytes += len(line)
		text += line + "\n"
		var schema any
		if err := json.Unmarshal(d.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		typed(t, d.Name, schema)
	}
	text += fmt.Sprintf("%d tools, %d tokens\n", len(reg.Definitions()), bytes/4)
	const golden = "testdata/tools.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("(-want +got), rewrite with -update:\n%s", diff)
	}
	if bytes/4 > mostToolTokens {
		t.Errorf("the tools take %d tokens of every request, the most is %d", bytes/4, mostToolTokens)
	}
}

// typed fails where a part of a schema has no type, or a bound that servers which
// make a grammar of it refuse (llama.cpp repeats a rule so many times).
func typed(t *testing.T, at string, schema any) {
	t.Helper()
	s, ok := schema.(map[string]any)
	if !ok || s["type"] == nil {
		t.Errorf("%s has no type: %v", at, schema)
		return
	}
	for _, bound := range []string{"maxLength", "maxItems", "minItems", "minLength"} {
		if n, _ := s[bound].(float64); n > 100 {
			t.Errorf("%s: %s is %v", at, bound, n)
		}
	}
	if items, there := s["items"]; there {
		typed(t, at+"[]", items)
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		typed(t, at+"."+name, p)
	}
}
