package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// TestConformance runs the scenarios for clients of the protocol's own suite that
// each revision requires, at the version of the suite in testdata/npm: the first that
// knows both. The client is this test's program, which uses a Manager as a run does,
// and Login as a person does. All of them pass.
func TestConformance(t *testing.T) {
	t.Parallel()
	suite := npm(t, "everything")[1]
	dir, _, _ := strings.Cut(suite, "@modelcontextprotocol")
	script := filepath.Join(dir, "@modelcontextprotocol/conformance/dist/index.js")
	if _, err := os.Stat(script); err != nil {
		t.Skip("the conformance suite is not installed; scripts/setup.sh installs it")
	}
	none := filepath.Join(t.TempDir(), "none.yaml") // extensions that are not required fail without it
	if err := os.WriteFile(none, []byte("client: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "node", "--import", "./testdata/globsync.mjs", script, "client", "--command", exe, "--requirements", revision,
				"--timeout", "300000", "--expected-failures", none)
			cmd.Env = append(os.Environ(), "MCP_CONFORM=1", "NO_COLOR=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// conform does as the client of the suite what a run would do with a server.
func conform(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "conform")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		ToolCalls    []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	s := mcp.Server{Name: "suite", URL: address, OAuth: mcp.OAuth{ClientID: given.ClientID, ClientSecret: given.ClientSecret}}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	if scenario == "auth/basic-cimd" {
		s.OAuth.ClientID = "https://conformance-test.local/client-metadata.json" // nobody fetches it
	}
	if strings.HasPrefix(scenario, "auth/") {
		if err := logIn(ctx, s, dir, nil); err != nil {
			return err
		}
	}
	m, err := mcp.Open(ctx, []mcp.Server{s}, mcp.Options{Dir: dir, Elicit: func(context.Context, mcp.Elicitation) (string, error) { return "yes", nil }})
	if err != nil {
		return err
	}
	defer m.Close()
	if s := m.Status()[0]; s.State != mcp.Ready {
		return errors.New(s.Reason)
	}
	reg, err := tool.NewRegistry(tool.Limits{}, m.Tools()...)
	if err != nil {
		return err
	}
	call := func(name, args string) tool.Result {
		res, err := reg.Call(ctx, name, args)
		fmt.Fprintln(os.Stderr, name, args, res.IsError, res.Text, err)
		return res
	}
	for _, c := range given.ToolCalls {
		call(mcp.Name("suite", c.Name), string(c.Arguments))
	}
	for _, d := range reg.Definitions() {
		args := "{}"
		switch {
		case len(given.ToolCalls) > 0:
			continue
		case strings.Contains(string(d.Schema), `"region"`):
			args = `{"region":"us-west1"}`
		case d.Name == "suite__add_numbers":
			args = `{"a":5,"b":3}`
		}
		res := call(d.Name, args)
		// What a person is told to do, they do, up to twice.
		for i := 0; i < 2 && strings.Contains(res.Text, "a person must run: tori mcp login suite"); i++ {
			var scopes []string
			if _, list, ok := strings.Cut(res.Text, `--scope "`); ok {
				list, _, _ = strings.Cut(list, `"`)
				scopes = strings.Fields(list)
			}
			if err := logIn(ctx, s, dir, scopes); err != nil {
				return err
			}
			res = call(d.Name, args)
		}
	}
	if scenario != "http-standard-headers" {
		return nil
	}
	_, uri, _ := strings.Cut(call("suite__read_resource", "{}").Text, "- ")
	uri, _, _ = strings.Cut(uri, ": ")
	call("suite__read_resource", fmt.Sprintf(`{"uri":%q}`, uri))
	prompts, err := m.Prompts(ctx, "suite")
	if err != nil {
		return err
	}
	_, err = m.Prompt(ctx, "suite", prompts[0].Name, nil)
	return err
}

// logIn is a person whose browser is sent on at once.
func logIn(ctx context.Context, s mcp.Server, dir string, scopes []string) error {
	_, err := mcp.Login(ctx, s, mcp.LoginOptions{Dir: dir, Disk: new(disk.FS), Scopes: scopes, Learn: func(...string) {}, Strange: func() {}, Show: func(address string) {
		go func() {
			resp, err := http.Get(address)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}()
	}})
	return err
}
