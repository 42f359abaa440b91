package app

import (
	"slices"
	"testing"

	"toritsugi/internal/broker"
	"toritsugi/internal/config"
	"toritsugi/internal/redact"
)

// A key in the address of a server counts as much as one in a header.
func TestFactsOfServers(t *testing.T) {
	t.Parallel()
	file := "c.yaml"
	data := []byte("mcp_servers:\n- {mcp_server_name: a, url: 'https://a.example/mcp?api_key=0123-a-canary'}\n- {mcp_server_name: b, url: 'https://b.example/mcp?page=0123456789'}\n")
	none := func(string) string { return "" }
	cfg, err := config.Parse(file, data, none, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &system{cfg: cfg, redact: redact.New(cfg.Secrets(), nil), env: Env{Getenv: none}}
	sensitive := slices.DeleteFunc(s.facts(), func(f broker.Fact) bool { return f.Leg != broker.Sensitive })
	want := []broker.Fact{{Leg: broker.Sensitive, What: broker.SecretEnvironment, Detail: "address of a"}}
	if !slices.Equal(sensitive, want) {
		t.Errorf("got %+v", sensitive)
	}
	if got := s.redact.String("GET https://a.example/mcp?api_key=0123-a-canary: refused"); got == "GET https://a.example/mcp?api_key=0123-a-canary: refused" {
		t.Errorf("not masked: %s", got)
	}
}
