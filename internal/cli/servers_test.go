package cli

import (
	"strings"
	"syscall"
	"testing"
)

// wordServer is a server of tools, as an item of mcp_servers.
const wordServer = `mcp_servers:
  - mcp_server_name: words
    command: [sh, -c, 'eval "$SERVER"']
    env:
      SERVER: |
        while read -r line; do
          id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
          case $line in
          *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
          *'"tools/list"'*) r='{"tools":[{"name":"say","description":"Says a word.","inputSchema":{"type":"object","properties":{}}}]}' ;;
          *) r= ;;
          esac
          if [ -n "$id" ] && [ -n "$r" ]; then printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"; fi
          if [ -n "$id" ] && [ -z "$r" ]; then printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id"; fi
        done
`

// A run that is paused ends its servers, which is no loss that anybody has to
// read of, and starts none again.
func TestPauseEndsServersSilently(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]func(h *house, p *process){
		"from outside": func(h *house, _ *process) { h.tori(0, "pause", h.only().Metadata.UUID) },
		"by Ctrl-C":    func(_ *house, p *process) { _ = p.Process.Signal(syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, sleeper(t).URL, "")
			b, err := readFile(h.config)
			if err != nil {
				t.Fatal(err)
			}
			h.write("config.yaml", string(b)+wordServer)
			p := h.start(h.args...)
			h.await("workspaces/*/tree/began")
			pause(h, p)
			if code := p.code(); code != exitPaused {
				t.Fatalf("exit code %d:\n%s", code, p.out.String())
			}
			out := p.out.String()
			if strings.Count(out, "MCP server ready") != 1 || strings.Contains(out, "lost") || strings.Contains(out, "greeted") {
				t.Errorf("said:\n%s", out)
			}
		})
	}
}
