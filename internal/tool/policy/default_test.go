package policy

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "write default.json anew")

// fileRules are the rules of default.yaml.
func fileRules(t *testing.T) []Rule {
	t.Helper()
	data, err := os.ReadFile("default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Parse("default.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// The rules of the program are those of default.yaml; -update makes them so.
func TestDefaultIsTheFile(t *testing.T) {
	t.Parallel()
	want := fileRules(t)
	if *update {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("default.json", append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got := Default()
	for i := range got {
		if !got[i].sound {
			t.Errorf("%s would be checked again", got[i].Name)
		}
		got[i].sound = false
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("default.json is not what default.yaml says: go test ./internal/tool/policy -run TestDefaultIsTheFile -update")
	}
}

// Another name of the workspace is the workspace, where it is one.
func TestAnotherNameOfTheWorkspace(t *testing.T) {
	t.Parallel()
	p := defaultPolicy(t)
	for script, want := range map[string]Decision{
		"rm -rf /workspace/build": Allow, "cd /workspace && rm -rf build": Allow, "rm -rf /workspace": Ask,
		"rm -rf /workspaces/x": Ask, "rm -rf /workspace/../x": Forbid, "cp a /workspace/.git/config": Forbid,
	} {
		place := testPlace
		place.Also = "/workspace"
		if got := p.Judge(script, place).Decision; got != want {
			t.Errorf("%s is %s, want %s", script, got, want)
		}
		place.Also = ""
		if got := p.Judge(script, place).Decision; got < want || want == Allow && got == Allow {
			t.Errorf("%s without that name is %s", script, got)
		}
		place = Place{Workspace: "/workspace/a", Also: "/workspace"}
		if got := p.Judge("rm -rf /workspace/b", place).Decision; got != Ask {
			t.Errorf("beside a workspace below it: %s", got)
		}
	}
}
