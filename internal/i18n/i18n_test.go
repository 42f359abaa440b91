package i18n

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var verbs = regexp.MustCompile(`%(\[\d+\])?[-+# 0]*[\d.]*[a-zA-Z]`)

// Every text exists in both languages and takes the same arguments.
func TestTextsAgree(t *testing.T) {
	t.Parallel()
	if all := Keys(); len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Error("a key stands in two tables")
	}
	for _, k := range Keys() {
		found, _ := find(k)
		en, ja := found.en, found.ja
		if en == "" || ja == "" {
			t.Errorf("%s: a language is missing: %q, %q", k, en, ja)
		}
		if a, b := count(en), count(ja); !slices.Equal(a, b) {
			t.Errorf("%s: verbs differ: %v, %v", k, a, b)
		}
	}
	if len(Keys()) < 50 {
		t.Errorf("only %d texts", len(Keys()))
	}
}

// count lists the kinds of verbs; Japanese may order them by index.
func count(s string) []string {
	var all []string
	for _, v := range verbs.FindAllString(regexp.MustCompile(`%%`).ReplaceAllString(s, ""), -1) {
		all = append(all, v[len(v)-1:])
	}
	slices.Sort(all)
	return all
}

func TestDetect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env   map[string]string
		want  Lang
		named bool
	}{
		{nil, English, false},
		{map[string]string{"LANG": "ja_JP.UTF-8"}, Japanese, true},
		{map[string]string{"LANG": "ja_JP.UTF-8", "LC_ALL": "C"}, English, false},
		{map[string]string{"LANG": "de_DE.UTF-8"}, English, true},
		{map[string]string{"LANG": "en_US"}, English, true},
		{map[string]string{"LANG": "C.UTF-8"}, English, false},
		{map[string]string{"LANG": "POSIX"}, English, false},
		{map[string]string{"LC_MESSAGES": "ja"}, Japanese, true},
	} {
		env := func(k string) string { return c.env[k] }
		if got, named := FromLocale(env); got != c.want || named != c.named || Detect(env) != c.want {
			t.Errorf("%v: %s, %v", c.env, got, named)
		}
	}
}

func TestErrorSpeaksItsReadersLanguage(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk on fire")
	inner := E("contextstore.base_dir", "/x", cause)
	outer := E("agent.disk", inner)
	if !errors.Is(outer, cause) {
		t.Error("the cause is out of reach")
	}
	if s := Japanese.Error(outer); !regexp.MustCompile(`^ディスク.*ベースディレクトリ /x.*disk on fire`).MatchString(s) {
		t.Error(s)
	}
	// A plain wrap keeps its words; what it wraps speaks English there.
	if s := Japanese.Error(fmt.Errorf("open: %w", cause)); s != "open: disk on fire" {
		t.Error(s)
	}
	if s := English.T("no.such.key", 1); s != "no.such.key 1" {
		t.Error(s)
	}
}

// A chain of errors costs as much as it is long.
// Several errors in one text are all in its reader's language.
func TestErrorsInAText(t *testing.T) {
	t.Parallel()
	err := E("sandbox.no_kind", []error{E("sandbox.missing"), errors.New("x")})
	for _, l := range []Lang{English, Japanese} {
		if got, want := l.Error(err), strings.Replace(l.T("sandbox.no_kind"), "%s", l.T("sandbox.missing")+"; x", 1); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLongChains(t *testing.T) {
	t.Parallel()
	err := error(E("cli.interrupted_early"))
	for range 200 {
		err = E("cli.usage", err)
	}
	if s := Japanese.Error(err); strings.Count(s, "tori --help") != 200 {
		t.Errorf("%d links", strings.Count(s, "tori --help"))
	}
	if s := Japanese.Error(fmt.Errorf("open: %w", err)); !strings.HasPrefix(s, "コマンド") {
		t.Error(s[:50])
	}
	if s := English.Error(fmt.Errorf("open: %w", err)); !strings.HasPrefix(s, "open: interrupted") {
		t.Error(s[:50])
	}
	if s := Japanese.Error(errors.Join(errors.New("first"), err)); !strings.HasPrefix(s, "first\nコマンド") {
		t.Error(s[:50])
	}
}

// What the program wrote into a record is told in the reader's language, whole, cut
// and within itself; what others wrote stays as it is.
func TestTranslate(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"the answer is not met":     "the answer is not met",
		Recorded("unmet", "κ"):      "未達成: κ",
		Recorded("unread"):          "モデルの検証結果を読み取れませんでした",
		"not met: a rather long c…": "未達成: a rather long c…",
		Recorded("failed", "α", Recorded("other_result", "β", "γ")):   "サブタスク α は失敗しました: 結果がなく、β の結果が返されました: γ",
		"κ; " + Recorded("unmet", "α; "+Recorded("no_evidence", "β")): "κ; 未達成: α; 根拠が示されていません: β",
		Recorded("unsure", Recorded("do_retry"), "α: β. γ\nδ"):        "同じ作業をやり直すべきか確信が持てません: α: β. γ\nδ。実行してよいですか？「はい」か、代わりにすることを答えてください。",
	} {
		if got := Japanese.Translate(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if got := English.Translate(in); got != in {
			t.Errorf("%q: %q", in, got)
		}
	}
	for key, text := range recordedTexts() {
		args := make([]any, strings.Count(text.en, "%s"))
		for i := range args {
			args[i] = "α"
		}
		if got, want := Japanese.Translate(English.T(key, args...)), Japanese.T(key, args...); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
		if strings.Count(text.en, "%") != len(args) {
			t.Errorf("%s: takes other arguments than texts", key)
		}
	}
}

// A text of others that looks like ours within ours, thousands of times, is told as
// far as ours go: each level reads the rest of it.
func TestTranslateHasAnEnd(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"", "; and more"} {
		if got := Japanese.Translate(strings.Repeat("not met: ", 50_000) + end); strings.Count(got, "未達成: ") != maxWithin || strings.Count(got, "not met: ") != 50_000-maxWithin {
			t.Errorf("%d levels are told", strings.Count(got, "未達成: "))
		}
	}
}
