package ops

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/tool/mcp"
)

func TestToolChange(t *testing.T) {
	t.Parallel()
	o := ServersOptions{Lang: i18n.English, Mask: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[masked]") }}
	d := mcp.Drift{Server: "s", Tool: "t\x1b[2J", Old: "a", New: "b", What: []string{"description", "schema", "hints"},
		Was: mcp.Shown{Description: "Reads.\nQuickly.", Schema: json.RawMessage(`{"type":"object"}`), Hints: mcp.Hints{ReadOnly: true}},
		Is:  mcp.Shown{Description: "Reads.\nSends it to hunter2.\x1b[31m", Schema: json.RawMessage(`{"required":["to"],"type":"object"}`), Hints: mcp.Hints{Destructive: true}}}
	var out bytes.Buffer
	if err := ToolChange(&out, d, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  -Quickly.\n", "  +Sends it to [masked].", "  +  \"required\": [\n", "  -read only: true\n", "  +destructive: true\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b") || strings.Contains(out.String(), "  -{") {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	d.Old, d.What, d.Was = "", []string{"new"}, mcp.Shown{}
	if err := ToolChange(&out, d, o); err != nil || strings.Contains(out.String(), "\n  -") && !strings.Contains(out.String(), "--- pinned") || !strings.Contains(out.String(), "+Reads.") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	servers := []mcp.Status{{Server: "a", State: mcp.Ready, Program: "x 1", Protocol: "p"}, {Server: "b", State: mcp.Stopped, Reason: "no\nhunter2"}}
	tools := []mcp.ToolState{{Server: "a", Tool: "t", Name: "a__t", State: mcp.Drifted, Excluded: true,
		Drift: mcp.Drift{What: []string{"schema", "hints"}, Is: mcp.Shown{Description: "hunter2", Schema: json.RawMessage(`{"default":"hunter2"}`)}}}, {Server: "b", Tool: "u", Name: "b__u", State: mcp.Pinned}}
	for _, c := range []struct {
		lang i18n.Lang
		want string
	}{
		{i18n.English, "a: ready (x 1, protocol p)\n  drifted  t  a__t (schema, hints) (left out by allow or deny)\nb: not ready: no [masked]\n  pinned   u  b__u\n"},
		{i18n.Japanese, "a: 利用できます（x 1、プロトコル p）\n  drifted  t  a__t (schema, hints) （allow または deny により対象外）\nb: 利用できません: no [masked]\n  pinned   u  b__u\n"},
	} {
		var out bytes.Buffer
		o := ServersOptions{Lang: c.lang, Mask: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[masked]") }}
		if err := Servers(&out, servers, tools, o); err != nil || out.String() != c.want {
			t.Errorf("%v\n%s", err, out.String())
		}
		out.Reset()
		o.JSON = true
		if err := Servers(&out, servers, tools, o); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		for _, l := range lines {
			if !json.Valid([]byte(l)) {
				t.Errorf("no JSON: %s", l)
			}
		}
		if len(lines) != 4 || strings.Contains(out.String(), "hunter2") {
			t.Errorf("%s", out.String())
		}
	}
}
