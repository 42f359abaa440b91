package checkrun

import (
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/delivery"
	"toritsugi/internal/project"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/workspace"
)

// A check whose program is missing is replaced by what stands for it, and told
// where nothing does.
func TestChoose(t *testing.T) {
	t.Parallel()
	check := func(name string, other ...project.Check) project.Check {
		return project.Check{Command: name, Program: name, Probe: "has " + name, Else: other}
	}
	all := []project.Check{check("make", check("go"), check("venv", check("pytest"))), {Command: "named"}}
	for _, c := range []struct{ without, chosen, notRun string }{
		{"", "make named", ""},
		{"go", "make named", ""},
		{"make", "go venv named", ""},
		{"make venv", "go pytest named", ""},
		{"make go venv pytest", "named", "go pytest"},
	} {
		var without []string
		for _, w := range strings.Fields(c.without) {
			without = append(without, "has "+w)
		}
		chosen, notRun := choose(all, without)
		names := func(all []project.Check) string {
			var n []string
			for _, c := range all {
				n = append(n, c.Command)
			}
			return strings.Join(n, " ")
		}
		if names(chosen) != c.chosen || names(notRun) != c.notRun {
			t.Errorf("without %q: %q and %q", c.without, names(chosen), names(notRun))
		}
	}
	if got := probes(append(all, check("go"))); !slices.Equal(got, []string{"has go", "has make", "has pytest", "has venv"}) {
		t.Errorf("%q", got)
	}
}

// Programs are looked for where checks run, with nothing but shell.
func TestWithout(t *testing.T) {
	t.Parallel()
	w := goWorkspace(t)
	r := &Runner{Shell: func(s sandbox.Spec) (sandbox.Runner, error) { return sandbox.Unconfined(s), nil }, Workspace: w}
	r.Spec = sandbox.Spec{Workspace: w.Tree(), Scratch: t.TempDir()}
	got, err := r.without(t.Context(), []string{"command -v sh", "command -v no-such-program", "echo has-3; false", "true; exit 0", "cat; read x"})
	if want := []string{"command -v no-such-program", "echo has-3; false", "cat; read x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v", got, err)
	}
	if got, err := r.without(t.Context(), nil); got != nil || err != nil {
		t.Errorf("%q %v", got, err)
	}
}

func TestBeginning(t *testing.T) {
	t.Parallel()
	b := &HeadBuffer{Most: 3}
	for _, s := range []string{"ab", "cd", "ef"} {
		if n, err := b.Write([]byte(s)); n != 2 || err != nil {
			t.Error(n, err)
		}
	}
	if b.String() != "abc" {
		t.Errorf("%q", b.String())
	}
	var _ project.Repository = (*workspace.Workspace)(nil)
}

// Where a run's own branch is another's, only the commit that the base branch had
// counts, and nothing where there is none.
func TestTrustedCommit(t *testing.T) {
	t.Parallel()
	w := goWorkspace(t)
	for _, c := range []struct {
		place delivery.Place
		want  string
	}{{delivery.Place{}, w.Base()}, {delivery.Place{Exists: true, Trusted: "abc"}, "abc"}, {delivery.Place{Exists: true}, ""}} {
		if got := (&delivery.Run{Workspace: w, Place: c.place}).TrustedCommit(); got != c.want {
			t.Errorf("%+v: %q", c.place, got)
		}
	}
}
