package search

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func termsIn(s string) string {
	var all []string
	for _, t := range tokenize(s) {
		all = append(all, t.term)
	}
	return strings.Join(all, " ")
}

func TestTerms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "",
		"Fix the  login-page!":       "fix the login page",
		"検索が遅い":                      "検索 索が が遅 遅い い",
		"API検索v2":                    "api 検索 索 v2",
		"サーバー":                       "サー ーバ バー ー",
		"ｻｰﾊﾞｰ ＡＰＩ":                  "サー ーバ バー ー api",
		"が":                          "が",
		"か\u3099":                    "が",
		"connectTimeoutSeconds = 5":  "connecttimeoutsecond 5 ¶ connect timeout second",
		"HTTPServer_name":            "httpserv name ¶ http serv",
		"GitHub":                     "github ¶ git hub",
		"README.md":                  "readm md",
		"naïve Straße":               "naïv straß",
		"ÄÖÜ":                        "äöü",
		strings.Repeat("x", 100):     strings.Repeat("x", maxTerm),
		"\xff\xfe broken \xe3\x81":   "broken",
		"한국어 검색":                     "한국 국어 어 검색 색",
		"don't":                      "don t",
		"a\u0301b":                   "áb",
		"line one\nline two":         "line one line two",
		"internal/app/app.go:42 nil": "internal app app go 42 nil",
	} {
		if got := termsIn(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// found marks what a query finds in a text.
func found(words, text string) string {
	q := Parse(strings.Fields(words))
	seen, at := q.find(text)
	if len(q) == 0 || seen != q.all() {
		return ""
	}
	var b strings.Builder
	end := 0
	for _, p := range at {
		b.WriteString(text[end:p[0]] + "<" + text[p[0]:p[1]] + ">")
		end = p[1]
	}
	return b.String() + text[end:]
}

func TestWordsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ words, text, want string }{
		{"login", "The Login fails", "The <Login> fails"},
		{"log*", "The Login fails", "The <Login> fails"},
		{"log", "The Login fails", ""},
		{"lo*", "The Login fails", ""},
		{"expire*", "it has expired", "it has <expired>"},
		{"failing LOGINS", "The Login fails", "The <Login> <fails>"},
		{"fail login", "The Login fails", "The <Login> <fails>"},
		{"logout", "The Login fails", ""},
		{"timeout", "set connectTimeoutSeconds", "set connect<Timeout>Seconds"},
		{"connectTimeout*", "set connectTimeoutSeconds", "set <connectTimeoutSeconds>"},
		{"app.go", "in internal/app/app.go", "in internal/app/<app.go>"},
		{"app.go", "an app that can go", ""},
		{"認証", "二要素認証の期限", "二要素<認証>の期限"},
		{"証", "二要素認証の期限", "二要素認<証の>期限"},
		{"限", "二要素認証の期限", "二要素認証の期<限>"},
		{"要素認証", "二要素認証の期限", "二<要素認証>の期限"},
		{"認証キー", "認証の期限", ""},
		{"認証API", "二要素認証APIの", "二要素<認証API>の"},
		{"API化", "全部API化する", "全部<API化す>る"},
		{"サーバ", "ｻｰﾊﾞｰが落ちた", "<ｻｰﾊﾞ>ｰが落ちた"},
		{"認証 期限", "期限、認証", "<期限>、<認証>"},
	} {
		if got := found(c.words, c.text); got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.words, c.text, got, c.want)
		}
	}
	if q := Parse([]string{"two words", "...", "、"}); len(q) != 1 || len(q[0].terms) != 2 {
		t.Error(q)
	}
	if seen, at := Parse([]string{"x seconds"}).find("set secondsMax x"); seen != 0 {
		t.Error("a phrase goes on from the text into the parts of its words:", at)
	}
	words := func(beginning string) ([]string, error) {
		return map[string][]string{"retenti": {"retention", "retentiv"}, "証": {"証", "証明"}}[beginning], nil
	}
	if got, err := Parse([]string{"認証 x", "retentions", "data retenti*", "nowh*", "a証"}).expression(words); err != nil ||
		got != `("認証 証 x") AND ("retention") AND ("data retention" OR "data retentiv") AND ("nowh") AND ("a 証" OR "a 証明")` {
		t.Error(got, err)
	}
}

// Places lie in the text, between characters, in order and apart; and a text is found by itself.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"Fix login", "検索が遅い", "ｻｰﾊﾞｰ", "camelCaseX", "\xff検", "ﬁ ﬃ", "é́"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, word, text string) {
		for _, token := range tokenize(text) {
			if token.from < 0 || token.to > len(text) || token.from >= token.to || token.term == "" || strings.ContainsAny(token.term, "\" *") {
				t.Fatalf("%v of %q", token, text)
			}
		}
		q := Parse([]string{word})
		_, at := q.find(text)
		end := -1
		for _, p := range at {
			if p[0] <= end || p[1] > len(text) || p[1] <= p[0] {
				t.Fatal(at)
			}
			end = p[1]
		}
		if len(at) > 0 && utf8.ValidString(text) {
			shown, marks := around(text, at, 40)
			if !utf8.ValidString(shown) {
				t.Fatalf("%q is cut to %q", text, shown)
			}
			for _, m := range marks {
				_ = shown[m[0]:m[1]]
			}
		}
		if seen, _ := q.find(word); len(q) > 0 && seen != q.all() {
			t.Fatalf("%q is not found in itself: %v in %v", word, q, tokenize(word))
		}
	})
}
