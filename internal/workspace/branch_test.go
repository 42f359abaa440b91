package workspace

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBranchName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, id, title, want string }{
		{"", "12", "Fix the Parser!", "tori/issue-12-fix-the-parser"},
		{"", "12", "日本語だけ", "tori/issue-12"},
		{"", "12", "", "tori/issue-12"},
		{"", "12", "修正 fix: パーサ v2", "tori/issue-12-fix-v2"},
		{"", "a/b..c", "x", "tori/issue-a-b-c-x"},
		{"", "12", strings.Repeat("word ", 30), "tori/issue-12-word-word-word-word-word-word-word-word"},
		{"{slug}", "1", "x.lock", "x-lock"},
		{"x/{id}.lock", "1", "", "x/1"},
		{"作業/{id}", "1", "", "作業/1"},
		{"HEAD", "1", "", "tori-" + shortHash("HEAD\x001")},
		{"//", "1", "", "tori-" + shortHash("//\x001")},
	} {
		if got := BranchName(c.pattern, c.id, c.title); got != c.want {
			t.Errorf("%q %q %q: %q, want %q", c.pattern, c.id, c.title, got, c.want)
		}
	}
	if a, b := BranchName("", "課題一", ""), BranchName("", "課題二", ""); a == b {
		t.Errorf("two ids, one branch %s", a)
	}
}

// Whatever goes in, git takes what comes out.
func TestBranchNameLaw(t *testing.T) {
	t.Parallel()
	var names []string
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[a-z./@{}~^:\\ \-]{0,12}(\{id\}|\{slug\}|\.lock|/)*`)).Draw(t, "pattern")
		names = append(names, BranchName(pattern, rapid.String().Draw(t, "id"), rapid.String().Draw(t, "title")))
	})
	names = append(names, BranchName(strings.Repeat("長い/", 100), "1", ""), BranchName(strings.Repeat("x", 300), "1", ""))
	var script strings.Builder
	for _, n := range names {
		script.WriteString("git check-ref-format --branch '" + strings.ReplaceAll(n, "'", `'\''`) + "' >/dev/null || printf '%s\\n' '" + strings.ReplaceAll(n, "'", `'\''`) + "'\n")
	}
	cmd := exec.Command("sh")
	cmd.Stdin = strings.NewReader(script.String())
	if out, err := cmd.CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("refused: %v\n%s", err, out)
	}
}

func TestFreeBranch(t *testing.T) {
	t.Parallel()
	path := newRepo(t, "repo")
	for _, b := range []string{"tori/issue-1", "tori/issue-1-2", "tori/issue-2/sub", "blocked"} {
		git(t, path, "branch", b)
	}
	s := inspect(t, path)
	for name, want := range map[string]string{
		"tori/issue-1": "tori/issue-1-3", "tori/issue-3": "tori/issue-3", "tori/issue-2": "tori/issue-2-2",
		"blocked/issue-1": "blocked-issue-1", "main": "main-2", "tori": "tori-2",
	} {
		if got, err := FreeBranch(t.Context(), s, name); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
}
