package ops

import (
	"bytes"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
)

func TestSandboxCheck(t *testing.T) {
	t.Parallel()
	probes := []sandbox.Probe{
		{Name: "a", Wall: "files", Outcome: sandbox.OutcomeBlocked, Detail: "no"},
		{Name: "b", Wall: "network", Outcome: sandbox.OutcomeContained, Detail: "odd \x1b[31m"},
		{Name: "c", Wall: "kernel", Outcome: sandbox.OutcomeUnavailable, Detail: "none"},
		{Name: "d", Wall: "git", Outcome: sandbox.OutcomeEscaped, Detail: "out"},
	}
	for _, c := range []struct {
		o    SandboxOptions
		want []string
		not  []string
	}{
		{SandboxOptions{Lang: i18n.English}, []string{"Sandbox: bwrap", "contained b (network)", "unavailable c", "ESCAPED d (git): out", "4 attempts: 1 blocked, 1 contained, 1 not possible here, 1 escaped"}, []string{"blocked a", "\x1b"}},
		{SandboxOptions{Lang: i18n.English, All: true}, []string{"blocked a (files): no"}, nil},
		{SandboxOptions{Lang: i18n.Japanese}, []string{"突破 d (git)", "試行 4 件"}, []string{"%!"}},
		{SandboxOptions{JSON: true}, []string{`"outcome":"blocked"`, `"attempts":4,"blocked":1,"contained":1,"escaped":1,"kind":"bwrap","type":"summary","unavailable":1`}, []string{"Sandbox", "\x1b"}},
	} {
		var out bytes.Buffer
		escaped, err := SandboxCheck(&out, "bwrap", probes, c.o)
		if err != nil || escaped != 1 {
			t.Errorf("%+v: %d, %v", c.o, escaped, err)
		}
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%+v: no %q in\n%s", c.o, w, out.String())
			}
		}
		for _, w := range c.not {
			if strings.Contains(out.String(), w) {
				t.Errorf("%+v: %q in\n%s", c.o, w, out.String())
			}
		}
	}
}
