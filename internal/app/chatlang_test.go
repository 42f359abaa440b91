package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

func japanese(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han) })
}

// A conversation in a terminal speaks the language of the settings, else that of the locale;
// where that names none, the default of the settings.
func TestSpoken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set, variable, locale string
		want                  i18n.Lang
	}{
		{"language: en\n", "", "ja_JP.UTF-8", i18n.English},
		{"language: ja\n", "", "en_US.UTF-8", i18n.Japanese},
		{"", "en", "ja_JP.UTF-8", i18n.English},
		{"", "", "en_US.UTF-8", i18n.English},
		{"", "", "ja_JP.UTF-8", i18n.Japanese},
		{"", "", "C.UTF-8", i18n.Japanese},
		{"", "", "", i18n.Japanese},
	} {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(c.set+"logging: {level: info}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		env := Env{Getenv: func(name string) string {
			return map[string]string{"LANG": c.locale, "TORI_LANGUAGE": c.variable}[name]
		}}
		if c.variable != "" {
			env.Environ = []string{"TORI_LANGUAGE=" + c.variable}
		}
		cfg, err := env.config(file, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := Spoken(cfg, env.Getenv); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// tori serve speaks with the people of a session in the language that they asked in, whatever
// that of its settings is; the next terminal in its own.
func TestServeSpeaksTheSessionsLanguage(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "")
	h.add(h.local())
	id := h.ask()
	raw, err := os.ReadFile(h.config)
	h.must(err)
	h.write("config.yaml", strings.Replace(string(raw), "language: en\n", "", 1))
	h.must(h.once())
	h.status(id, task.AwaitingApproval)
	heard := h.said()
	h.must(h.decide(id, true))
	h.must(h.once())
	h.status(id, task.Completed)
	heard += h.said()
	for _, want := range []string{"notice: ", "request: ", "decided: Applied: "} {
		if !strings.Contains(heard, want) {
			t.Errorf("%q lacks %q", heard, want)
		}
	}
	if japanese(heard) {
		t.Errorf("two languages: %q", heard)
	}
}
