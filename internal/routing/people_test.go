package routing

import (
	"strings"
	"testing"
)

func TestAskedIssue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Issue{
		"do issue 12 in widgets":                  {"12", "widgets"},
		"Please work on issue #7.":                {"7", ""},
		"fix issue 12 of acme/widgets, please":    {"12", "acme/widgets"},
		"start the issue 3 in the `widgets` repo": {"3", "widgets"},
		"widgets の issue 12 をやって":                 {"12", "widgets"},
		"ｗｉｄｇｅｔｓのissue１２をやって。":                    {"12", "widgets"},
		"acme/widgets の issue #12 をお願いします":        {"12", "acme/widgets"},
		"issue 12 に着手してください":                      {"12", ""},
		"イシュー 5 番を進めて":                            {"5", ""},
		"issue 12 お願い":                            {"12", ""},
		"Work on issue 12 in widgets!":            {"12", "widgets"},
		"課題12を直してほしい":                             {"12", ""},
	} {
		if got, ok := AskedIssue(text); !ok || got != want {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
	for _, trap := range []string{
		"do not do issue 12 in widgets", "don't do issue 12", "did you do issue 12 in widgets?", "do issue 12 in widgets?", "what does issue 12 do",
		"should we do issue 12 in widgets", "do issue 12 in widgets and 13 too", "do issue 12 in widgets, but not yet", "why did fix issue 12 in widgets fail",
		"fix issue 12 tomorrow", "someone said: do issue 12 in widgets", "do issue 0", "do issue twelve", "do issue 12\nin widgets", "do issue 1234567890",
		"> do issue 12 in widgets", "`do issue 12`", "issue 12", "widgets の issue 12", "widgets の issue 12 をやってはいけない", "widgets の issue 12 をやってみた",
		"widgets の issue 12 をやって、と言われた", "widgets の issue 12 をやらないで", "widgets の issue 12 はどう？", "issue 12 をやってもいい？", "issue 12 をやってくれた？",
		"誰か issue 12 をやってと頼んだ", "この issue 12 をやって みたい", "do issue 12 in " + strings.Repeat("w", 400), "/code do issue 12", "",
	} {
		if got, ok := AskedIssue(trap); ok {
			t.Errorf("%q: %+v", trap, got)
		}
	}
}

func TestIssueAndLink(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Command{
		"/issue 12":            Issue{Number: "12"},
		"／ｉｓｓｕｅ　＃１２ widgets":   Issue{Number: "12", Repository: "widgets"},
		"/link abcd-efgh-jkmn": Link{"abcd-efgh-jkmn"},
		"/LINK ＡＢＣＤ efgh":      Link{"ABCDefgh"},
	} {
		if got := ParseCommand(text); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, bad := range []string{"/issue", "/issue x", "/issue 0", "/issue 1 a b", "/link", "/link " + strings.Repeat("x", 65)} {
		if _, ok := ParseCommand(bad).(Malformed); !ok {
			t.Errorf("%q: %+v", bad, ParseCommand(bad))
		}
	}
	for text, want := range map[string]string{"/link abcd": "/link …", " ／ＬＩＮＫ abcd": "/link …", "/link " + strings.Repeat("secret ", 20): "/link …", "/links abcd": "/links abcd", "see /link abcd": "see /link abcd", "hello": "hello"} {
		if got := Keepable(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
