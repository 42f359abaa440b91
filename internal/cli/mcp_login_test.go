package cli

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/tool/mcp/mcptest"
)

// A person logs in at a server, a run uses that, and who must log in again is
// told how. No token is anywhere but in the file of the login, though the server
// says it.
func TestLoginAtAServer(t *testing.T) {
	t.Parallel()
	tools := sdk.NewServer(&sdk.Implementation{Name: "remote", Version: "1"}, nil)
	sdk.AddTool(tools, &sdk.Tool{Name: "who"}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "you sent " + strings.TrimPrefix(r.Extra.Header.Get("Authorization"), "Bearer ")}}}, nil, nil
	})
	tools.AddPrompt(&sdk.Prompt{Name: "review", Arguments: []*sdk.PromptArgument{{Name: "what", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Review " + r.Params.Arguments["what"] + "."}}}}, nil
	})
	a := mcptest.NewAuthority(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return tools }, nil))
	model := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() == 0 {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "remote__who", Arguments: `{}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h := newHouse(t, model.URL, "")
	conf, err := readFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	h.write("config.yaml", string(conf)+fmt.Sprintf("planning: {enabled: false}\nmcp_servers:\n  - {mcp_server_name: remote, url: %q}\n  - {mcp_server_name: own, command: [cat]}\n", a.URL+"/mcp"))
	where := []string{"--config", h.config, "--base-dir", h.base()}
	verb := func(code int, args ...string) string {
		return h.tori(code, append(append([]string{"mcp"}, args...), where...)...)
	}

	if out := h.tori(exitFailed, append([]string{"mcp", "login", "own"}, where...)...); !strings.Contains(out, "is a program, which needs no login") {
		t.Error(out)
	}
	if out := verb(exitUsage, "login", "remotte"); !strings.Contains(out, "did you mean remote?") {
		t.Error(out)
	}
	p := h.start(append([]string{"mcp", "login", "remote", "--no-browser"}, where...)...)
	address := regexp.MustCompile(`http://\S+/authorize\S+`)
	h.until("the address", func() bool { return address.MatchString(p.out.String()) })
	resp, err := http.Get(address.FindString(p.out.String())) //nolint:noctx // as a browser does
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if code := p.code(); code != exitOK || !strings.Contains(p.out.String(), "Logged in at remote, which lists 1 tools") {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}

	var said strings.Builder
	run := h.start(h.args...)
	if code := run.code(); code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, run.out.String())
	}
	said.WriteString(p.out.String() + run.out.String() + verb(exitFailed, "list"))
	if got := string(h.stored()); !strings.Contains(got, "you sent [REDACTED]") {
		t.Errorf("messages:\n%s", got)
	}
	token := regexp.MustCompile(`(access|refresh)-[A-Z2-7]{20}`)
	err = filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "/mcp/logins/") {
			return err
		}
		b, err := readFile(path)
		said.WriteString(path + ":\n" + string(b))
		return err
	})
	if at := token.FindString(said.String()); err != nil || at != "" {
		t.Errorf("%v, a token is in %s", err, said.String())
	}

	if out := verb(exitOK, "prompt", "remote") + verb(exitOK, "prompt", "remote", "review", "what=it"); !strings.Contains(out, "review what=…\n") || !strings.Contains(out, "Review it.\n") {
		t.Error(out)
	}

	a.Withdraw(true, true)
	if out := verb(exitFailed, "list"); !strings.Contains(out, "a person must run: tori mcp login remote") {
		t.Error(out)
	}
	if out := verb(exitOK, "logout", "remote"); !strings.Contains(out, "removed from this machine") {
		t.Error(out)
	}
	if out := verb(exitFailed, "logout", "remote"); !strings.Contains(out, "There is no login at remote") {
		t.Error(out)
	}
	audit, err := readFile(filepath.Join(h.base(), "audit.jsonl"))
	if err != nil || strings.Count(string(audit), "_server") != 2 {
		t.Errorf("%v:\n%s", err, audit)
	}
}
