package tool_test

import (
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/tool"
)

func names(r *tool.Registry) string {
	var all []string
	for _, d := range r.Definitions() {
		all = append(all, d.Name)
	}
	return strings.Join(all, " ")
}

func TestRestrict(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, func(e *tool.Env) { e.Git = fakeGit{} })
	for _, c := range []struct {
		rules []tool.Access
		want  string
	}{
		{nil, "edit_file git grep list_files read_file write_file"},
		{[]tool.Access{{Of: "x"}}, "edit_file git grep list_files read_file write_file"},
		{[]tool.Access{{Of: "x", Allow: []string{"git_*", "g*"}}}, "git grep list_files"},
		{[]tool.Access{{Of: "x", Allow: []string{"*_file"}, Deny: []string{"write_*"}}}, "edit_file read_file"},
		{[]tool.Access{{Of: "x", Allow: []string{"git_*"}}, {Of: "y", Deny: []string{"*_diff"}}}, "git"},
		{[]tool.Access{{Of: "x", Allow: []string{"nothing"}}}, ""},
	} {
		r, err := w.reg.Restrict(c.rules...)
		if err != nil || names(r) != c.want {
			t.Errorf("%v leaves %s (%v)", c.rules, names(r), err)
		}
	}
	r, err := w.reg.Restrict(tool.Access{Of: "role chat", Deny: []string{"write_*"}})
	if err != nil {
		t.Fatal(err)
	}
	if r, err = r.Restrict(tool.Access{Of: "the project", Allow: []string{"read_file"}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"write_file": "The tool write_file may not be used here: role chat denies write_*. Do it another way, or say that it cannot be done.",
		"grep":       "The tool grep may not be used here: the project allows only read_file. Do it another way, or say that it cannot be done.",
		"nothing":    `There is no tool named "nothing". Known tools: read_file.`,
	} {
		if res, err := r.Call(t.Context(), name, "{}"); err != nil || !res.IsError || res.Text != want {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if r.ReadOnly(name) {
			t.Errorf("%s is said to be read-only", name)
		}
	}
	for _, bad := range []string{"[a", ""} {
		if _, err := w.reg.Restrict(tool.Access{Of: "x", Deny: []string{bad}}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestDefinitionsAreSorted by name, so that what a provider caches stays.
func TestDefinitionsAreSorted(t *testing.T) {
	t.Parallel()
	if !slices.IsSortedFunc(newWorkspace(t, nil, nil).reg.Definitions(), func(a, b tool.Definition) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the order is not by name")
	}
}

// Rules that name what was a tool of its own mean that part of the tool that took
// its place, by whatever name it is called.
func TestRulesForPartsOfATool(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, map[string]string{"a.go": "x"}, func(e *tool.Env) { e.Git, e.Limits.SpillDir = fakeGit{}, t.TempDir() })
	const refused = "may not be used here"
	for _, c := range []struct {
		rule             tool.Access
		name, args, want string
	}{
		{tool.Access{Of: "x", Deny: []string{"git_log"}}, "git", `{"command":"log"}`, "The tool git_log " + refused + ": x denies git_log"},
		{tool.Access{Of: "x", Deny: []string{"git_log"}}, "git", `{"command":"show","revision":"HEAD"}`, "The tool git_log " + refused},
		{tool.Access{Of: "x", Deny: []string{"git_log"}}, "git_log", `{}`, refused},
		{tool.Access{Of: "x", Deny: []string{"git_log"}}, "git_diff", `{}`, "diff of"},
		{tool.Access{Of: "x", Deny: []string{"git_*"}}, "git_diff", `{}`, "The tool git_diff " + refused + ": x denies git_*"},
		{tool.Access{Of: "x", Deny: []string{"git_*"}}, "git", `{"command":"diff"}`, "The tool git " + refused},
		{tool.Access{Of: "x", Deny: []string{"git"}}, "git_status", `{}`, refused},
		{tool.Access{Of: "x", Allow: []string{"git_status"}}, "git", `{"command":"status"}`, "Nothing is changed."},
		{tool.Access{Of: "x", Allow: []string{"git_status"}}, "git", `{"command":"blame","path":"a.go"}`, "x allows only git_status"},
		{tool.Access{Of: "x", Allow: []string{"git"}}, "git", `{"command":"log"}`, "log"},
		{tool.Access{Of: "x", Deny: []string{"glob"}}, "list_files", `{"pattern":"*.go"}`, "The tool glob " + refused},
		{tool.Access{Of: "x", Deny: []string{"glob"}}, "list_files", `{}`, "a.go"},
		{tool.Access{Of: "x", Allow: []string{"glob"}}, "list_files", `{}`, "The tool list_files " + refused},
		{tool.Access{Of: "x", Allow: []string{"glob"}}, "glob", `{"pattern":"*.go"}`, "a.go"},
		{tool.Access{Of: "x", Deny: []string{"read_output"}}, "recall", `{"ref":"output-000001"}`, "The tool read_output " + refused},
		{tool.Access{Of: "x", Deny: []string{"read_output"}}, "recall", `{"ref":"m-1"}`, "There is nothing by the reference"},
		{tool.Access{Of: "x", Deny: []string{"shell"}}, "bash", `{"command":"ls"}`, `There is no tool named "bash"`},
		{tool.Access{Of: "x", Deny: []string{"read_file"}}, "open_file", `{"path":"a.go"}`, "The tool open_file " + refused},
	} {
		r, err := w.reg.Restrict(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := r.Call(t.Context(), c.name, c.args); err != nil || !strings.Contains(res.Text, c.want) {
			t.Errorf("%+v: %s %s: %s, %v", c.rule, c.name, c.args, res.Text, err)
		}
	}
}
