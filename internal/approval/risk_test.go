package approval

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/workspace"
)

func kindsOf(risks []Risk) (kinds []RiskKind) {
	for _, r := range risks {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}

func newFile(path, mode, text string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode %[2]s\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1,%[3]d @@\n+%[4]s\n", path, mode, strings.Count(text, "\n+")+1, text)
}

// Each risk is found in the patch, the commands and the target alone, whatever the coder
// says.
func TestRisks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	lines := "x" + strings.Repeat("\n+x", 500)
	for name, c := range map[string]struct {
		change func(*Draft)
		want   []RiskKind
	}{
		"none": {func(*Draft) {}, nil},
		"delete": {func(d *Draft) {
			d.Patch = []byte("diff --git a/README.md b/README.md\ndeleted file mode 100644\n--- a/README.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-hello\n")
		}, []RiskKind{Delete}},
		"rename": {func(d *Draft) {
			d.Patch = []byte("diff --git a/README.md b/R.md\nsimilarity index 100%\nrename from README.md\nrename to R.md\n")
		}, []RiskKind{Rename}},
		"mode": {func(d *Draft) {
			d.Patch = []byte("diff --git a/README.md b/README.md\nold mode 100644\nnew mode 100755\n")
		}, []RiskKind{ModeChange}},
		"program":   {func(d *Draft) { d.Patch = []byte(newFile("run", "100755", "#!/bin/sh")) }, []RiskKind{ModeChange}},
		"link":      {func(d *Draft) { d.Patch = []byte(newFile("l", "120000", "README.md\n\\ No newline at end of file")) }, []RiskKind{Symlink}},
		"ci":        {func(d *Draft) { d.Patch = []byte(newFile(".github/workflows/x.yml", "100644", "on: push")) }, []RiskKind{CIFile}},
		"migration": {func(d *Draft) { d.Patch = []byte(newFile("db/migrate/1.rb", "100644", "x")) }, []RiskKind{Migration}},
		"lock":      {func(d *Draft) { d.Patch = []byte(newFile("web/package-lock.json", "100644", "{}")) }, []RiskKind{LockFile}},
		"build":     {func(d *Draft) { d.Patch = []byte("--- a/go.mod\n+++ b/go.mod\n@@ -1 +1,2 @@\n module x\n+go 1.26\n") }, []RiskKind{BuildFile}},
		"lines":     {func(d *Draft) { d.Patch = []byte(newFile("x", "100644", lines)) }, []RiskKind{WideOverwrite}},
		"share": {func(d *Draft) {
			d.Patch = []byte("--- a/docs/a.md\n+++ b/docs/a.md\n@@ -1,3 +1,3 @@\n-one\n-two\n+1\n+2\n three\n")
		}, []RiskKind{WideOverwrite}},
		"not half": {func(d *Draft) {
			d.Patch = []byte("--- a/docs/a.md\n+++ b/docs/a.md\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n three\n")
		}, nil},
		"files": {func(d *Draft) {
			d.Patch = nil
			for i := range 21 {
				d.Patch = append(d.Patch, newFile(fmt.Sprintf("f%d", i), "100644", "x")...)
			}
		}, []RiskKind{WideOverwrite}},
		"address":  {func(d *Draft) { d.Patch = []byte(newFile("x", "100644", "write to a.person@example.com")) }, []RiskKind{SendSensitive}},
		"title":    {func(d *Draft) { d.Title = "for a.person@example.com" }, []RiskKind{SendSensitive}},
		"commands": {func(d *Draft) { d.Commands = []string{"go generate ./..."} }, []RiskKind{Commands}},
		"cost":     {func(d *Draft) { d.Cost = Cost{Tokens: 15999, Hint: 2} }, []RiskKind{CostOverLimit}},
		"no cost":  {func(d *Draft) { d.Cost = Cost{Tokens: 16000} }, nil},
		"public":   {func(d *Draft) { d.Deliver, d.Visibility = PullRequest, Public }, []RiskKind{PushPublic}},
		"unknown":  {func(d *Draft) { d.Deliver, d.Visibility = PullRequest, "" }, []RiskKind{PushPublic}},
		"private":  {func(d *Draft) { d.Deliver, d.Visibility = PullRequest, Private }, nil},
		"here":     {func(d *Draft) { d.Deliver, d.Visibility = Worktree, Public }, nil},
	} {
		d := h.draft(docsPatch)
		c.change(&d)
		p, err := h.judge(t.Context(), d, h.base)
		if err != nil || !slices.Equal(kindsOf(p.Risks), c.want) {
			t.Errorf("%s: %+v %v", name, p.Risks, err)
		}
	}
	// Of a binary file nothing is read but that it is one.
	a := assessment{patch: &workspace.Patch{Files: []workspace.PatchFile{{Path: "logo.png", Action: workspace.PatchCreate, Binary: true}}}, wide: h.Settings.Wide, personal: h.Sanitizer.Personal()}
	if got := kindsOf(a.risks()); !slices.Equal(got, []RiskKind{Binary}) {
		t.Error(got)
	}
}

// Every risk has a text in both languages, and details are cut.
func TestRiskText(t *testing.T) {
	t.Parallel()
	for _, k := range RiskKinds() {
		for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
			if text := (Risk{Kind: k}).Text(l); strings.Contains(text, "approval.risk") {
				t.Errorf("%s: %s", l, text)
			}
		}
	}
	r := Risk{Kind: Delete, Details: []string{"a", "b"}, Count: 9}
	if r.Text(i18n.English) != "deletes files: a, b and 7 more" || r.Text(i18n.Japanese) != "ファイルを削除する: a, b ほか 7 件" {
		t.Error(r.Text(i18n.English), r.Text(i18n.Japanese))
	}
}

func TestPathKinds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]RiskKind{
		".github/workflows/a.yml": CIFile, ".gitlab-ci.yml": CIFile, "Jenkinsfile": CIFile, "ci/Jenkinsfile": CIFile,
		"Makefile": BuildFile, "sub/Dockerfile.prod": BuildFile, "docker-compose.dev.yml": BuildFile, "x/CMakeLists.txt": BuildFile, "vite.config.ts": BuildFile, ".gitmodules": BuildFile,
		"go.sum": LockFile, "a/yarn.lock": LockFile, "app/migrations/0001_init.py": Migration,
		"docs/a.md": "", "src/makefile.go": "", "docs/migrations.md": "", "workflows/x.yml": "",
	} {
		got := pathKinds(name)
		if want == "" && len(got) != 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("%s: %v, want %q", name, got, want)
		}
	}
}
