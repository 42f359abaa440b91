package checkrun

import (
	"errors"
	"strings"
	"testing"

	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/workspace"
)

// Where a sandbox cannot open the network to registries alone, whoever reads how
// the run ended is told what to set.
func TestSetupWithoutAnAllowList(t *testing.T) {
	t.Parallel()
	box, err := sandbox.Choose(t.Context(), sandbox.Options{Prefer: sandbox.KindLandlock})
	if err != nil {
		t.Skip(err)
	}
	r := &Runner{Settings: Settings{Registries: []string{"registry.npmjs.org"}}, Shell: box.Runner}
	err = r.runSetup(t.Context(), sandbox.Spec{Workspace: t.TempDir()}, workspace.SetupCommand{Run: "npm ci", Network: true}, t.TempDir(), nil)
	var own *delivery.TaskError
	if !errors.As(err, &own) {
		t.Fatalf("%v", err)
	}
	for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
		for _, want := range []string{"npm ci", "workspace.setup_network", "sandbox.mode", "none"} {
			if text := l.Error(own.Err); !strings.Contains(text, want) {
				t.Errorf("%s is missing: %s", want, text)
			}
		}
	}
}
