package policy

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
)

func TestDefaultRulesAreSound(t *testing.T) {
	t.Parallel()
	rules := fileRules(t)
	for i := range rules {
		if err := rules[i].check(); err != nil {
			t.Error(err)
		}
		if r := rules[i]; r.Reason.Japanese == r.Reason.English {
			t.Errorf("%s: no Japanese reason", r.Name)
		}
	}
	if len(rules) < 50 {
		t.Errorf("only %d rules", len(rules))
	}
}

const oneRule = `- name: no-make
  decision: forbid
  reason: {en: "because", ja: "理由"}
  programs: [make]
  match: [make all]
  not_match: [cmake]
`

// Errors say where, of which rule, and which example does not behave.
func TestErrorsOfRules(t *testing.T) {
	t.Parallel()
	change := func(old, text string) string {
		if !strings.Contains(oneRule, old) {
			t.Fatalf("%q is not in the rule", old)
		}
		return strings.Replace(oneRule, old, text, 1)
	}
	for name, c := range map[string]struct {
		data string
		key  string
		says []string
	}{
		"a match that is none":     {change("[make all]", "[make all, gmake]"), "policy.match", []string{"r.yaml:1", "no-make", "gmake"}},
		"a match in doubt":         {change("[make]", "[make]\n  flags: [-n]") + "", "policy.match", []string{"no-make", "make all"}},
		"a not_match that is one":  {change("[cmake]", "[cmake, 'nice make']"), "policy.not_match", []string{"r.yaml:1", "no-make", "nice make"}},
		"another field":            {change("[make]", "[make]\n  args: [all]") + "", "", nil},
		"no match":                 {change("  match: [make all]\n", ""), "policy.field", []string{"no-make", "match"}},
		"no not_match":             {change("  not_match: [cmake]\n", ""), "policy.field", []string{"not_match"}},
		"no reason":                {change(`  reason: {en: "because", ja: "理由"}`+"\n", ""), "policy.field", []string{"reason"}},
		"unknown decision":         {change("forbid", "deny"), "policy.field", []string{"deny", "allow, ask, forbid"}},
		"unknown field":            {change("programs:", "program:"), "policy.syntax", []string{"r.yaml:"}},
		"unknown class":            {change("programs: [make]", "writes: [somewhere]"), "policy.field", []string{"somewhere", "workspace"}},
		"unknown kind":             {change("programs: [make]", "opaque: [some]"), "policy.field", []string{"some", "any"}},
		"a flag without a dash":    {change("[make]", "[make]\n  flags: [n]"), "policy.field", []string{"flags", "-x"}},
		"a relative path":          {change("programs: [make]", "programs: [./make]"), "policy.field", []string{"./make"}},
		"about everything":         {change("  programs: [make]\n", ""), "policy.field", []string{"programs"}},
		"a reserved name":          {change("no-make", RuleNone), "policy.field", []string{"name"}},
		"no list":                  {"name: x\n", "policy.syntax", []string{"r.yaml:1"}},
		"no YAML":                  {"- name: [", "policy.syntax", []string{"r.yaml:"}},
		"twice":                    {oneRule + oneRule, "policy.twice", []string{"r.yaml:7", "no-make"}},
		"not UTF-8":                {"- name: \xff", "policy.syntax", []string{"UTF-8"}},
		"too large":                {"#" + strings.Repeat("x", maxFile), "policy.too_large", []string{"1024"}},
		"too deep":                 {strings.Repeat("[", 5000), "policy.syntax", []string{":1:"}},
		"an empty rule":            {"-\n", "policy.syntax", nil},
		"good":                     {oneRule, "", nil},
		"empty":                    {"", "", nil},
		"only a comment":           {"# nothing\n", "", nil},
		"the line of a later rule": {oneRule + strings.Replace(change("[make all]", "[x]"), "no-make", "b", 1), "policy.match", []string{"r.yaml:7", " b:"}},
	} {
		rules, err := Parse("r.yaml", []byte(c.data))
		if err == nil {
			_, err = New(rules)
		}
		if c.key == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != c.key {
			t.Errorf("%s: %v, want %s", name, err, c.key)
			continue
		}
		for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
			text := l.Error(err)
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %q is not in %q", name, want, text)
				}
			}
			if strings.Contains(text, "%!") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// A rule of the same name takes the place of a default one, and only that way
// is a verdict made milder.
func TestLaterRulesReplace(t *testing.T) {
	t.Parallel()
	rules := Default()
	mine, err := Parse("mine.yaml", []byte(`
- name: containers
  decision: allow
  reason: ours
  programs: [docker]
  match: [docker ps]
  not_match: [podman ps]
- name: more
  decision: allow
  reason: ours
  programs: [git, frob]
  match: [git push, frob]
  not_match: [ls]
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(rules, mine)
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]Decision{"docker ps": Allow, "frob x": Allow, "git push": Forbid, "podman ps": Ask} {
		if v := p.Judge(script, testPlace); v.Decision != want {
			t.Errorf("%s: %v\n%s", script, v.Decision, v.Text(i18n.English))
		}
	}
	if got := p.rules; len(got) != len(rules)+1 || slices.ContainsFunc(got, func(r Rule) bool { return r.Name == "containers" && r.File != "mine.yaml" }) {
		t.Errorf("%d rules of %d", len(got), len(rules))
	}
}

func TestTextOfVerdicts(t *testing.T) {
	t.Parallel()
	p := defaultPolicy(t)
	for _, c := range []struct{ script, en, ja string }{
		{"ls", "", ""},
		{"ls\nsh -c 'git  push'", "Not run: forbidden here.\n- line 2: `git push` (within sh -c): rule git-push: branches are pushed by the daemon when the task is done.",
			"実行しません。ここでは禁止されています。\n- 2 行目: `git push`（sh -c の中）: 規則 git-push: ブランチの push はタスク終了後にデーモンが行います。"},
		{"$X", "A rule asks for a person's agreement:\n- line 1: `$X`: what command this is cannot be known before it runs; rule opaque: what it runs cannot be told beforehand; write the command out in plain words.",
			"規則は人の同意を求めています:\n- 1 行目: `$X`: どのコマンドになるかは実行するまで分かりません。規則 opaque: 何を実行するか事前に分かりません。コマンドをそのまま書いてください。"},
		{"frob", "A rule asks for a person's agreement:\n- line 1: `frob`: no rule is about frob", "規則は人の同意を求めています:\n- 1 行目: `frob`: frob についての規則がありません"},
		{"git \"$A\"", "A rule asks for a person's agreement:\n- line 1: `git \"$A\"`: it cannot be told whether rule git-push is about it: branches are pushed by the daemon when the task is done. Write the words out instead of computing them",
			"規則は人の同意を求めています:\n- 1 行目: `git \"$A\"`: 規則 git-push に当てはまるか判断できません: ブランチの push はタスク終了後にデーモンが行います。 計算で組み立てずに、そのまま書いてください"},
	} {
		v := p.Judge(c.script, testPlace)
		if got := v.Text(i18n.English); got != c.en {
			t.Errorf("%s:\n%s\nwant\n%s", c.script, got, c.en)
		}
		if got := v.Text(i18n.Japanese); got != c.ja {
			t.Errorf("%s:\n%s\nwant\n%s", c.script, got, c.ja)
		}
	}
	// Many findings are counted, not shown.
	var many strings.Builder
	for i := range 50 {
		many.WriteString("git push " + strings.Repeat("x", i) + "\n")
	}
	v := p.Judge(many.String(), testPlace)
	if len(v.Findings) != MaxFindings || v.More != 50-MaxFindings || !strings.HasSuffix(v.Text(i18n.English), "and 30 more") {
		t.Errorf("%d findings, %d more", len(v.Findings), v.More)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(oneRule))
	file, err := os.ReadFile("default.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file[:3000])
	f.Add([]byte("- {name: a, decision: ask, words: [[a, b], [c]], max_args: 1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer disktest.Bounded(t, len(data))()
		rules, err := Parse("x", data)
		if err == nil && len(rules) < 20 {
			_, err = New(rules)
		}
		var e *i18n.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%v", err)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	p := defaultPolicy(b)
	script := "cd internal && go vet ./... && go test ./... -run 'TestA|TestB' 2>&1 | tail -50"
	b.ReportAllocs()
	for b.Loop() {
		if v := p.Judge(script, testPlace); v.Decision != Allow {
			b.Fatal(v.Text(i18n.English))
		}
	}
}
