package agent

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/workspace"
)

// Where a sandbox cannot open the network to registries alone, whoever reads how
// the run ended is told what to set.
func TestSetupWithoutAnAllowList(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{sandbox.KindLandlock, sandbox.KindNone} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := &Agent{Registries: []string{"registry.npmjs.org"}, Shell: func(s sandbox.Spec) (sandbox.Runner, error) { return wall{sandbox.Unconfined(s)}, nil }}
			if kind == sandbox.KindLandlock {
				box, err := sandbox.Choose(t.Context(), sandbox.Options{Prefer: kind})
				if err != nil {
					t.Skip(err)
				}
				a.Shell = box.Runner
				a.Online = func(s sandbox.Spec, hosts []string) (sandbox.Runner, error) {
					s.Network = sandbox.Network{AllowHosts: hosts}
					return box.Runner(s)
				}
			}
			r := &run{Agent: a}
			err := r.runSetup(t.Context(), sandbox.Spec{Workspace: t.TempDir()}, workspace.SetupCommand{Run: "npm ci", Network: true}, t.TempDir(), nil)
			var own *taskError
			if !errors.As(err, &own) {
				t.Fatalf("%v", err)
			}
			for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
				for _, want := range []string{"npm ci", "workspace.setup_network", "sandbox.mode", "none"} {
					if text := l.Error(own.error); !strings.Contains(text, want) {
						t.Errorf("%s is missing: %s", want, text)
					}
				}
			}
		})
	}
	// So is whoever configures a server of tools.
	o := ServerOptions{Online: func(sandbox.Spec, []string) (sandbox.Runner, error) {
		return nil, i18n.E("sandbox.no_allow_list", sandbox.KindLandlock)
	}}
	if _, err := o.runner(sandbox.Spec{}, []string{"api.example.com"}); !isKey(err, "agent.server_network") {
		t.Errorf("%v", err)
	}
	if isKey(os.ErrNotExist, "agent.server_network") || isKey(nil, "") {
		t.Error("any error is taken for it")
	}
}

// wall is a runner that says that it confines.
type wall struct{ sandbox.Runner }

func (wall) Confined() bool                       { return true }
func (wall) Close() error                         { return nil }
func (wall) Rest(context.Context) (func(), error) { return func() {}, nil }
