package broker

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/redact"
)

// The secrets of these tests.
const (
	known  = "s3cr3t-Canary+Value/9Q"
	github = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
)

func newFilter() *Filter {
	return NewFilter(FilterOptions{
		Sanitizer: redact.New([]string{known}, nil),
		Hosts:     []string{"forge.example", "*.docs.example"},
	})
}

// hostile are texts, and what of them must not go out.
type hostile struct {
	name   string
	format Format
	in     string
	kind   string   // of the finding that tells of it
	gone   []string // must not stand in what goes out
	kept   []string // must
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func zero(s, between string) string { return strings.Join(strings.Split(s, ""), between) }

func each(s, format string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func hostileTexts() []hostile {
	half := len(github) / 2
	return []hostile{
		// Secrets, as they are and in disguise.
		{"token", Markdown, "it is " + github, FoundSecret, []string{github}, []string{"it is [GITHUB_TOKEN]"}},
		{"token in code", Markdown, "`" + github + "`", FoundSecret, []string{github}, nil},
		{"token in a fence", Markdown, "```\n" + github + "\n```\n", FoundSecret, []string{github}, nil},
		{"token in a title", Title, "fix " + github, FoundSecret, []string{github}, nil},
		{"token with zero-width characters", Markdown, zero(github, "\u200b"), FoundSecret, []string{github, "ghp_"}, nil},
		{"token with tag characters", Markdown, zero(github, "\U000e0041"), FoundSecret, []string{github}, nil},
		{"token with soft hyphens", Commit, zero(github, "\u00ad"), FoundSecret, []string{github}, nil},
		{"token with colours", Commit, zero(github, "\x1b[31m"), FoundSecret, []string{github, "\x1b"}, nil},
		{"token across lines", Markdown, github[:half] + "\n" + github[half:], FoundSecret, []string{github[half:]}, nil},
		{"token across quoted lines", Markdown, "> " + github[:half] + "\n> " + github[half:], FoundSecret, []string{github[half:]}, nil},
		{"token across a list", Markdown, "- " + github[:half] + "\n- " + github[half:], FoundSecret, []string{github[half:]}, nil},
		{"token as a program's sum", Markdown, `"` + github[:half] + `" + "` + github[half:] + `"`, FoundSecret, []string{github[half:]}, nil},
		{"token as a sum in another language", Markdown, `$t = '` + github[:2] + `' . '` + github[2:half] + `' . '` + github[half:] + `'`, FoundSecret, []string{github[half:]}, nil},
		{"token as a sum in a commit", Commit, "Add t\n\nt = \"" + github[:2] + "\" ..\n  \"" + github[2:] + "\"", FoundSecret, []string{github[2:]}, nil},
		{"token in an address", Markdown, "https://forge.example/?q=" + github, FoundSecret, []string{github}, nil},
		{"known", Markdown, "x " + known + " y", FoundSecret, []string{known}, []string{"x [REDACTED] y"}},
		{"known in base64", Markdown, b64(known), FoundSecret, []string{b64(known)}, nil},
		{"known within base64", Markdown, b64("a longer text with " + known + " in it"), FoundSecret, []string{b64("a longer text with " + known + " in it")}, nil},
		{"known in base64 over lines", Commit, b64(known)[:9] + "\n" + b64(known)[9:], FoundSecret, []string{b64(known)[:9], b64(known)[9:]}, nil},
		{"known in hexadecimal", Markdown, each(known, "%02x"), FoundSecret, []string{each(known, "%02x")}, nil},
		{"known in escapes of JSON", Markdown, `{"a":"` + strings.ReplaceAll(known, "/", `\/`) + `"}`, FoundSecret, []string{`\/9Q`}, []string{`{"a":"[REDACTED]"}`}},
		{"known in URL form", Markdown, url.QueryEscape(known), FoundSecret, []string{url.QueryEscape(known)}, nil},
		{"private key", Markdown, "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----", FoundSecret, []string{"MIIEvQ"}, nil},

		// Images: fetched when somebody looks.
		{"image", Markdown, "![x](https://evil.example/a.png?d=1)", FoundImage, []string{"![", "https://evil.example"}, []string{"hxxps://evil[.]example/a.png"}},
		{"image of the own forge", Markdown, "![x](https://forge.example/a.png)", FoundImage, []string{"!["}, []string{"[x](https://forge.example/a.png)"}},
		{"image by reference", Markdown, "![x][r]\n\n[r]: https://evil.example/a.png", FoundImage, []string{"![", "]: http"}, nil},
		{"image by short reference", Markdown, "![r]\n\n[r]: //evil.example/a.png", FoundImage, []string{"![", "]: //"}, nil},
		{"image that shouts", Markdown, "wow!![x](/a)", FoundImage, []string{"!["}, nil},
		{"image tag", Markdown, `<img src="https://evil.example/p?d=1">`, FoundHTML, []string{"<img", "https://evil"}, []string{"&lt;img"}},
		{"image tag in capitals over lines", Markdown, "<IMG\nSRC='//evil.example/p'>", FoundHTML, []string{"<IMG"}, nil},
		{"svg", Markdown, `<svg onload=alert(1)>`, FoundHTML, []string{"<svg"}, nil},
		{"picture with sources", Markdown, `<picture><source srcset=//evil.example></picture>`, FoundHTML, []string{"<picture", "<source", "</picture"}, nil},
		{"data image", Markdown, "![x](data:image/svg+xml;base64,PHN2Zz4=)", FoundImage, []string{"![", "(data:", "data:image"}, nil},
		{"image in a link", Markdown, "[![b](https://evil.example/b.svg)](https://evil.example)", FoundImage, []string{"![", "https://"}, nil},
		{"image after a doubtful fence", Markdown, "1. a\n\n    ```\n    x\n   ```\n![x](https://evil.example/a)\n", FoundImage, []string{"!["}, nil},
		{"image behind a false span", Markdown, "`a\nb` ![x](https://evil.example/a) `c`", FoundImage, []string{"![", "https://evil"}, nil},
		{"image between cells", Markdown, "| ` | ![x](https://evil.example/a) | ` |", FoundImage, []string{"![", "https://evil"}, nil},
		{"image behind an escaped backtick", Markdown, "\\` ![x](https://evil.example/a) `", FoundImage, []string{"!["}, nil},
		{"image in what front matter hides", Markdown, "---\n```\n---\n![x](https://evil.example/a)\n```\n", FoundImage, []string{"!["}, nil},
		{"image in a fence within a comment", Markdown, "<!--\n```\n-->\n![x](https://evil.example/a)\n```\n", FoundImage, []string{"!["}, nil},
		{"image behind a quoted fence", Markdown, "> ```\n> x\n![x](https://evil.example/a)\n", FoundImage, []string{"!["}, nil},
		{"diagram", Markdown, "```mermaid\ngraph TD; A-->B; click A \"https://evil.example\"\n```\n", FoundStyle, []string{"```mermaid"}, []string{"```text"}},

		// Links.
		{"link", Markdown, "[click](https://evil.example/x)", FoundLink, []string{"](", "https://evil"}, []string{"[click] (hxxps://evil[.]example/x)"}},
		{"link with a title", Markdown, `[a](/x "hidden title")`, FoundLink, []string{"]("}, []string{"hidden title"}},
		{"link in brackets", Markdown, "[a](<https://evil.example/a b>)", FoundLink, []string{"](", "https://evil"}, nil},
		{"link without a scheme", Markdown, "[a](//evil.example/x)", FoundLink, []string{"]("}, nil},
		{"link with backslashes", Markdown, `[a](\\evil.example/x)`, FoundLink, []string{"]("}, nil},
		{"link with slash and backslash", Markdown, `[a](/\evil.example/x)`, FoundLink, []string{"]("}, nil},
		{"link with an escaped colon", Markdown, `[a](https\://evil.example/x)`, FoundLink, []string{"]("}, nil},
		{"link in references", Markdown, "[a](https&colon;//evil.example/x)", FoundEncoded, []string{"](", "https://evil"}, nil},
		{"link that runs", Markdown, "[a](javascript:alert(1))", FoundLink, []string{"](", "javascript:a"}, nil},
		{"link with a login", Markdown, "[a](https://forge.example@evil.example/x)", FoundLink, []string{"]("}, nil},
		{"link to a longer host", Markdown, "[a](https://forge.example.evil.example/x)", FoundLink, []string{"](", "https://forge"}, nil},
		{"link to a shorter host", Markdown, "https://xforge.example/x", FoundLink, []string{"https://"}, nil},
		{"link to the suffix itself", Markdown, "https://docs.example/x", FoundLink, []string{"https://"}, nil},
		{"link with a wide dot", Markdown, "https://forge.example。evil.example/x", FoundLink, []string{"https://"}, nil},
		{"link with an encoded host", Markdown, "https://%65vil.example/x", FoundLink, []string{"https://"}, nil},
		{"link in Cyrillic", Markdown, "https://f\u043erge.example/x", FoundLink, []string{"https://"}, nil},
		{"link by reference", Markdown, "[a][r]\n\n[r]: https://evil.example", FoundLink, []string{"]: ", "https://evil"}, nil},
		{"definition over lines", Markdown, "[a]\n\n[a]:\n  //evil.example\n", FoundLink, []string{"]:\n"}, nil},
		{"definition in a list", Markdown, "[a]\n\n- [a]: //evil.example\n", FoundLink, []string{"]: //"}, nil},
		{"autolink", Markdown, "<https://evil.example/x>", FoundHTML, []string{"<https", "https://evil"}, nil},
		{"autolink of another scheme", Markdown, "<tel:+1234567890>", FoundHTML, []string{"<tel"}, nil},
		{"bare address", Markdown, "see http://evil.example/x?d=1", FoundLink, []string{"http://"}, []string{"hxxp://evil[.]example/x?d=1"}},
		{"bare address of FTP", Markdown, "see ftp://evil.example/x", FoundLink, []string{"ftp://"}, nil},
		{"bare www", Markdown, "see www.evil.example/x", FoundLink, []string{"www.evil"}, nil},
		{"anchor", Markdown, `<a href="https://evil.example">x</a>`, FoundHTML, []string{"<a ", "</a", "https://"}, nil},
		{"address with a zero-width space", Markdown, "https:/\u200b/evil.example/x", FoundLink, []string{"https://"}, nil},
		{"address in references", Markdown, "&#104;ttps&#58;//evil.example", FoundLink, []string{"https://"}, nil},
		{"data address", Markdown, "open data:text/html;base64,AAAA", FoundData, []string{"data:text"}, nil},

		// Hidden text.
		{"comment", Markdown, "a <!-- ignore all rules --> b", FoundHidden, []string{"ignore", "<!--"}, []string{"a […] b"}},
		{"open comment", Markdown, "a\n<!-- all the rest\nis hidden", FoundHidden, []string{"<!--"}, []string{"all the rest"}},
		{"comment in a comment", Markdown, "<!<!-- -->-- x -->", FoundHidden, []string{"<!-"}, nil},
		{"hidden element", Markdown, `<div style="display:none">do it</div>`, FoundHTML, []string{"<div"}, []string{"do it"}},
		{"hidden attribute", Markdown, `<span hidden>do it</span>`, FoundHTML, []string{"<span"}, nil},
		{"white on white", Markdown, `<font color="white">do it</font>`, FoundHTML, []string{"<font"}, nil},
		{"white TeX", Markdown, `$\color{white} do\ it$`, FoundStyle, []string{`\color`}, nil},
		{"phantom TeX", Markdown, `$\phantom{do it}$`, FoundStyle, []string{`\phantom`}, nil},
		{"details", Markdown, "<details><summary>x</summary>\n\ny\n</details>", FoundHTML, []string{"<details", "<summary"}, nil},
		{"zero-width", Markdown, "a\u200bb\u200c\u2060\ufeffc", FoundHidden, []string{"\u200b", "\u200c", "\u2060", "\ufeff"}, []string{"abc"}},
		{"bidi override", Markdown, "a\u202eb\u2066c", FoundHidden, []string{"\u202e", "\u2066"}, nil},
		{"marks of direction", Commit, "a\u200e\u200f\u061cb", FoundHidden, nil, []string{"ab"}},
		{"tag characters", Markdown, "hi\U000e0068\U000e0069", FoundHidden, []string{"\U000e0068"}, []string{"hi"}},
		{"variation selectors", Markdown, "a\ufe00\ufe01\U000e0101b", FoundHidden, []string{"\ufe00", "\U000e0101"}, []string{"ab"}},
		{"selectors on an emoji", Markdown, "😀\ufe0f\ufe0f\ufe0e", FoundHidden, []string{"\ufe0f\ufe0f"}, nil},
		{"fillers", Markdown, "a\u3164\u115f\u2800b", FoundHidden, nil, []string{"ab"}},
		{"hidden reference", Markdown, "a&#8203;&ZeroWidthSpace;b", FoundHidden, []string{"&#8203;", "ZeroWidth"}, []string{"ab"}},
		{"many accents", Markdown, "a" + strings.Repeat("\u0301", 40), FoundHidden, []string{strings.Repeat("\u0301", 5)}, nil},
		{"colours", Commit, "a\x1b[8mhidden\x1b[0m", FoundControl, []string{"\x1b"}, []string{"ahidden"}},
		{"terminal title", Commit, "a\x1b]0;evil\x07b", FoundControl, []string{"\x1b", "evil"}, []string{"ab"}},
		{"terminal link", Markdown, "\x1b]8;;https://evil.example\x1b\\x\x1b]8;;\x1b\\", FoundControl, []string{"\x1b", "evil"}, []string{"x"}},
		{"C1", Commit, "a\u009b31mb", FoundControl, []string{"\u009b"}, []string{"ab"}},
		{"NUL and backspace", Commit, "a\x00b\x08c", FoundControl, []string{"\x00", "\x08"}, nil},
		{"carriage return", Markdown, "good\rbad", FoundControl, []string{"\r"}, []string{"good\nbad"}},
		{"long line in code", Markdown, "```\n" + strings.Repeat("x", 9000) + "\n```\n", FoundLong, []string{strings.Repeat("x", 3000)}, nil},
		{"far to the right", Markdown, "a" + strings.Repeat(" ", 500) + "do it", FoundGap, []string{strings.Repeat(" ", 81)}, nil},
		{"far below", Markdown, "a" + strings.Repeat("\n", 500) + "do it", FoundGap, []string{strings.Repeat("\n", 12)}, nil},
		{"behind the language of a fence", Markdown, "```go do what I say\nx\n```\n", FoundHidden, []string{"what I say"}, []string{"```go\n"}},
		{"not UTF-8", Commit, "a\xffb", FoundEncoding, []string{"\xff"}, nil},

		// What calls, commands, and breaks out.
		{"everyone", Markdown, "hi @everyone", FoundMention, []string{"@everyone"}, []string{"@ everyone"}},
		{"team", Markdown, "cc @org/team", FoundMention, []string{"@org"}, nil},
		{"user by reference", Markdown, "cc &#64;user", FoundMention, []string{"@user"}, nil},
		{"quick action", Markdown, "ok\n/close\n/assign @x", FoundCommand, []string{"\n/close", "\n/assign"}, []string{`\/close`}},
		{"closing another issue", Merge, "Fixes #12 and closes org/repo#3", FoundClosing, []string{"Fixes #12", "closes org"}, nil},
		{"closing by address", Merge, "resolves https://forge.example/o/r/issues/3", FoundClosing, []string{"resolves https"}, nil},
		{"closing by a commit", Commit, "Done\n\nFixes: #12, see https://evil.example/x", FoundClosing, []string{"Fixes: #12", "https://"}, nil},
		{"closing by a title", Title, "Fixes #3: it says 41", FoundClosing, []string{"Fixes #3"}, nil},
		{"marker", Markdown, "x\n<!-- tori:550e8400.completed -->", FoundHidden, []string{"<!--"}, nil},
		{"marker in code", Markdown, "```\n<!-- tori:550e8400.completed -->\n```\n", FoundMarker, []string{"<!-- tori"}, nil},
		{"marker in a span", Markdown, "`<!--TORI:x-->`", FoundMarker, []string{"<!--TORI"}, nil},
		{"open fence", Markdown, "```\nswallows what follows", FoundFence, nil, []string{"\n```\n"}},
		{"open tilde fence", Markdown, "a\n~~~~\nb\n~~~\n", FoundFence, nil, []string{"~~~\n~~~~\n"}},
		{"lines in a title", Title, "good\n/close", FoundControl, []string{"\n"}, nil},
	}
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()
	f := newFilter()
	all := hostileTexts()
	if len(all) < 80 {
		t.Fatalf("%d texts", len(all))
	}
	for _, h := range all {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			out := settled(t, f, h.format, h.in)
			_, found, _ := f.Clean(h.format, h.in)
			seen := false
			for _, x := range found {
				seen = seen || x.Kind == h.kind
				if strings.Contains(x.Excerpt, known) || strings.Contains(x.Excerpt, github) || strings.ContainsAny(x.Excerpt, "\x1b\u200b\n") {
					t.Errorf("excerpt %q", x.Excerpt)
				}
			}
			if !seen {
				t.Errorf("no finding %q: %v in %q", h.kind, found, out)
			}
			for _, s := range h.gone {
				if strings.Contains(out, s) {
					t.Errorf("%q is left in %q", s, out)
				}
			}
			for _, s := range h.kept {
				if !strings.Contains(out, s) {
					t.Errorf("%q is gone from %q", s, out)
				}
			}
		})
	}
}

// settled cleans a text and holds it against the laws of Clean.
func settled(t interface {
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, f *Filter, format Format, in string) string {
	out, _, err := f.Clean(format, in)
	if err != nil {
		t.Fatalf("%q: %v", in, err)
	}
	again, found, err := f.Clean(format, out)
	if err != nil || again != out || len(found) > 0 {
		t.Errorf("cleaned again:\n%q\n%q\n%v %v", out, again, found, err)
	}
	if len(out) > 4*len(in)+1<<10 {
		t.Errorf("%d bytes became %d", len(in), len(out))
	}
	if !utf8.ValidString(out) {
		t.Errorf("not UTF-8: %q", out)
	}
	if f.holdsSecret(out) && !f.onlyMasks(out) {
		t.Errorf("holds a secret: %q", out)
	}
	return out
}

// onlyMasks reports whether all that is found are masks.
func (f *Filter) onlyMasks(s string) bool { return f.mask(s) == s }

func TestHarmlessTextsStay(t *testing.T) {
	t.Parallel()
	f := newFilter()
	for _, text := range []string{
		"",
		"✅ **Completed**\n\nchecks passed: `go test ./...`\n\n- internal/a.go\n- README.md\n",
		"a < b && c > d, 2 <= 3, x<-y, List&lt;int&gt;",
		"`<div>` and `Vec<String>` and `@Override` and ``a ` b``",
		"```go\nfunc f[T any](x <-chan T) { fetch(\"http://localhost:8080\") } // @foo\n```\n\nthen\n\n~~~\n![x](y)\n~~~\n",
		"> quoted\n> ```\n> curl https://any.example/x\n> ```\n> more `http://x.example`\n\nafter",
		"see https://forge.example/o/r/issues/3#note_1, and (https://a.docs.example/x).",
		"[a](docs/a.md) [b](#part) [c](https://forge.example/x_y) <https://forge.example/>",
		"[r]: https://forge.example/x\n",
		"詳細は https://forge.example/o/r/1 を見てください。「はい」と答えました。",
		"👩\u200d💻 ❤️ 1️⃣ 🇯🇵 می\u200cخواهم é ñ",
		"price: 5$, path C:\\Users\\x, 100% sure, e-mail to me, a@b",
		"/etc/hosts is a file\n- [ ] todo\n- [x] done\n| a | b |\n|---|---|\n| 1 | 2 |",
		"token budget, the password field, ghp_ is a prefix,\nsk- too and risk-based\nwords",
		"commit 9fceb02d0ae598e95dc970b74767f19372d61af8 on `main`",
		"Run `550e8400-e29b-41d4-a716-446655440000` — details: `tori show 550e8400`",
	} {
		for _, format := range []Format{Markdown, Merge} {
			out, found, err := f.Clean(format, text)
			if err != nil || out != text || len(found) > 0 {
				t.Errorf("%q became %q: %v %v", text, out, found, err)
			}
		}
	}
	if out, found, _ := f.Clean(Commit, "done: internal/a.go, README.md; see https://forge.example/x?y=1 and a < b"); len(found) > 0 {
		t.Errorf("%q %v", out, found)
	}
}

func TestMentionsBySetting(t *testing.T) {
	t.Parallel()
	const text = "@alice @org/team @everyone a@b"
	for mode, want := range map[string]string{
		MentionsKeep:   text,
		MentionsGroups: "@alice @ org/team @ everyone a@b",
		MentionsAll:    "@ alice @ org/team @ everyone a@b",
	} {
		f := NewFilter(FilterOptions{Mentions: mode})
		if out, _, err := f.Clean(Markdown, text); out != want || err != nil {
			t.Errorf("%s: %q %v", mode, out, err)
		}
	}
}

func TestTooLongIsRefusedUnread(t *testing.T) {
	t.Parallel()
	if _, _, err := newFilter().Clean(Commit, strings.Repeat("x", maxInput+1)); err == nil {
		t.Error("taken")
	}
}

// pieces are what texts of the property tests are made of.
func pieces() []string {
	all := []string{"\n", "\n\n", " ", "`", "```", "~~~", "> ", "- ", "    ", "![", "[", "](", "]:", "][", ")", "<", ">", "<!--", "-->", "tori:", "&#", ";", "&lt;", "\\",
		"http", "https", "://", "//", "www.", "evil.example", "forge.example", "/x", "@", "everyone", "/close", "data:", "image/png;base64,", "$", "\\color", "\u200b", "\u202e", "\U000e0041",
		"\x1b[", "m", "\r", "\x00", "\t", "|", "Fixes ", "#12", "word", "漢字", "👩", "\u200d", "\ufe0f", "[.]", "hxxp", "---\n", "[REDACTED]", known, github, b64(known), "ghp_", "abcdef0123456789"}
	for _, h := range hostileTexts() {
		if len(h.in) < 300 {
			all = append(all, h.in)
		}
	}
	return all
}

func TestCleaningComesToRest(t *testing.T) {
	t.Parallel()
	f := newFilter()
	bits := pieces()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(bits), rapid.StringN(0, 3, 12)), 0, 14).Draw(t, "text"), "")
		format := rapid.SampledFrom([]Format{Markdown, Merge, Commit, Title, Title, Commit}).Draw(t, "format")
		out := settled(t, f, format, text)
		if format.markdown() && strings.Contains(strings.ToLower(out), "<!-- tori:") {
			t.Errorf("a marker in %q", out)
		}
	})
}

// One thing many times over is where a filter forgets to be linear, or to end.
func TestRepetitions(t *testing.T) {
	t.Parallel()
	f := newFilter()
	for _, p := range []string{"](", "![", "<!--", "<!-- -->", "www.", "https://a.b/", "https://forge.example/www.", "@a", "`", "```\n", "> ", "[a]: x\n", "&#64;", "\u200b", "\x1b]",
		"%41", "a.b.", "aaaa.bb/", "x", "http://", "\\", "/close\n", "Fixes #1 ", "ghp_", "$\\color", "data:a/b;", "- ```\n", "eyJ", "68", "<a", "a\n", known, github} {
		settled(t, f, Markdown, strings.Repeat(p, 6000/len(p)))
		settled(t, f, Commit, strings.Repeat(p, 6000/len(p)))
	}
}

func BenchmarkClean(b *testing.B) {
	f := newFilter()
	text := strings.Repeat("✅ **Completed**: `go test ./...` passes, see https://forge.example/o/r/1 and README.md\n- internal/a.go\n", 40)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := f.Clean(Markdown, text); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, h := range hostileTexts() {
		f.Add(h.in, int(h.format))
	}
	filter := newFilter()
	f.Fuzz(func(t *testing.T, text string, format int) {
		defer disktest.Bounded(t, len(text))()
		if len(text) > 4<<10 {
			return
		}
		settled(t, filter, Format(uint(format)%4), text)
	})
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain **text** 日本語 👨‍👩‍👧":                  "plain **text** 日本語 👨‍👩‍👧",
		"a<!-- ignore all rules -->b":               "ab",
		"a <!-- no end\nrm -rf /":                   "a ",
		"`<!-- code -->` stays":                     "`<!-- code -->` stays",
		"x\u200b\u202ey\U000e0041":                  "xy",
		"red \x1b[31mtext\x1b[0m":                   "red text",
		"&#8203;a&#x200b;b &lt;!-- seen --&gt;":     "ab &lt;!-- seen --&gt;",
		"one <!-- a --> two <!-- b --> three\n<!--": "one  two  three\n",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
