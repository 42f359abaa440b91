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
	for _, k := range Keys() {
		en, ja := catalog[k].en, catalog[k].ja
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
		env  map[string]string
		want Lang
	}{
		{nil, English},
		{map[string]string{"LANG": "ja_JP.UTF-8"}, Japanese},
		{map[string]string{"LANG": "ja_JP.UTF-8", "LC_ALL": "C"}, English},
		{map[string]string{"LANG": "de_DE.UTF-8"}, English},
		{map[string]string{"LC_MESSAGES": "ja"}, Japanese},
	} {
		if got := Detect(func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%v: %s", c.env, got)
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
func TestLongChains(t *testing.T) {
	t.Parallel()
	err := error(E("cli.interrupted_early"))
	for range 200 {
		err = E("cli.usage", err)
	}
	if s := Japanese.Error(err); strings.Count(s, "tori --help") != 200 {
		t.Errorf("%d links", strings.Count(s, "tori --help"))
	}
	if s := Japanese.Error(fmt.Errorf("open: %w", err)); !strings.HasPrefix(s, "open: 実行") {
		t.Error(s[:50])
	}
}
