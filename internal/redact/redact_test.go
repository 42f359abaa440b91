package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
)

const (
	pemKey = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1234567890abcdefghijklmnopqrstuv\nabc+/def==\n-----END RSA PRIVATE KEY-----"
	jwtKey = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"
)

func TestMasks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"ghp_abcd", "[GITHUB_TOKEN]"},
		{"a gho_1234 ghu_1234 ghs_1234 ghr_1234 z", "a [GITHUB_TOKEN] [GITHUB_TOKEN] [GITHUB_TOKEN] [GITHUB_TOKEN] z"},
		{"t=github_pat_11ABC_def!", "t=[GITHUB_TOKEN]!"},
		{"xghp_abcdefghij0123456789ab", "x[GITHUB_TOKEN]"},
		{`{"a":"x\nghp_abcdef"}`, `{"a":"x\n[GITHUB_TOKEN]"}`},
		{"\x1b[1;32mghp_abcdef\x1b[0m", "\x1b[1;32m[GITHUB_TOKEN]\x1b[0m"},
		{"glpat-AbC-1234_x", "[GITLAB_TOKEN]"},
		{"sk-abcdefg1", "[OPENAI_KEY]"},
		{"key sk-ant-api03-AbCdEf_ghi.", "key [OPENAI_KEY]."},
		{"sk-proj-ABCDEFGHIJKLMNOP", "[OPENAI_KEY]"},
		{"a\n-sk-abcdefg1\n", "a\n-[OPENAI_KEY]\n"},
		{`"\nsk-abcdefg1"`, `"\n[OPENAI_KEY]"`},
		{`\u0026sk-abcdefg1`, `\u0026[OPENAI_KEY]`},
		{"xoxb-1234-abcd xoxa-1234 xoxp-1234", "[REDACTED] [REDACTED] [REDACTED]"},
		{"AKIAABCDEFGHIJKLMNOP ASIA0123456789ABCDEF", "[REDACTED] [REDACTED]"},
		{"me@example.org", "[EMAIL]"},
		{"連絡先はme.too+x@mail.example.co.jpまで", "連絡先は[EMAIL]まで"},
		{"<a@163.com>.", "<[EMAIL]>."},
		{"a@b.com.", "[EMAIL]."},
		{"a@b.com-2024", "[EMAIL]-2024"},
		{"+a@b.com\n-a@b.com", "+[EMAIL]\n-[EMAIL]"},
		{`"x\na@b.com\u003cc@d.org\u003e"`, `"x\n[EMAIL]\u003c[EMAIL]\u003e"`},
		{"a@b.com@c.org", "[EMAIL]"},
		{"ghp_abcd@x.com", "[GITHUB_TOKEN]"},
		{"k: " + pemKey + "\nrest", "k: [REDACTED]\nrest"},
		{strings.ReplaceAll(pemKey, "\n", `\n`) + `"`, `[REDACTED]"`},
		{"+" + strings.ReplaceAll(pemKey, "\n", "\n+"), "+[REDACTED]"},
		{pemKey[:70] + "\n(cut)", "[REDACTED]\n(cut)"},
		{"Authorization: Bearer x", "Authorization: Bearer [REDACTED]"},
		{`"authorization": "basic dTpw==",`, `"authorization": "basic [REDACTED]",`},
		{`h.Set("Authorization", "Bearer abc.def")`, `h.Set("Authorization", "Bearer [REDACTED]")`},
		{"Proxy-Authorization:Basic a:b", "Proxy-Authorization:Basic [REDACTED]:b"},
		{"x " + jwtKey + " y", "x [REDACTED] y"},
		{"https://u:p@h.org/x", "https://[REDACTED]@h.org/x"},
		{"postgres://u:p@ss@db:5432/x", "postgres://[REDACTED]@db:5432/x"},
		{"https://x:ghp_abcdefgh@github.com/o", "https://[GITHUB_TOKEN]@github.com/o"},
		{"https://ghp_abcdefgh@github.com/o", "https://[GITHUB_TOKEN]/o"},
		{"\xff ghp_abcd \xfe\x80", "\xff [GITHUB_TOKEN] \xfe\x80"},
	} {
		if got := new(Sanitizer).String(tc.in); got != tc.want {
			t.Errorf("String(%q)\n got %q\nwant %q", tc.in, got, tc.want)
		}
		if got := string(new(Sanitizer).Bytes([]byte(tc.in))); got != tc.want {
			t.Errorf("Bytes(%q) = %q", tc.in, got)
		}
	}
}

func TestLeavesAlone(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "task-list", "risk-based-approach", "sk-learn", "scikit", "sk-learn-0.24", "-sk-learn", "disk-12345678",
		"da39a3ee5e6b4b0d3255bfef95601890afd80709", "550e8400-e29b-41d4-a716-446655440000",
		"react@18.2.0", "pkg@1.2.3-alpha.beta", "golang.org/x/net@v0.62.0", "golang.org/x/net@v0.0.0-20240101-abcdef",
		"git@github.com:o/r.git", "ssh://git@github.com/o/r.git", "actions/checkout@v4", "node@20.x", "logo@2x.png",
		"@foo.bar", "@app.route('/')", "    @pytest.fixture", "user@host", "getty@tty1.service", "w@x.transpose()",
		"highp_float highs_and_lows", "ghp_abc", "github_pat_x", "glpat-abc", "xoxo-hugs-and", "FANTASIA0123456789ABCDEF",
		"keyJson.fooo.barr", "eyJson.foo.bar", "Authorization: Bearer $TOKEN", `"Authorization: Bearer " + t`, "Authorization: Bearer %s",
		"https://user:$PASS@h", "https://u:${PASS}@h", "https://u:{pass}@h/x", "https://u:%s@h", "https://h:8080/a@b", "https://u@h",
		"-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA1234567890abcdefghij\n-----END CERTIFICATE-----",
		`strings.Index(s, "-----BEGIN PRIVATE KEY-----") < strings.Index(s, "-----END PRIVATE KEY-----")`,
		"[GITHUB_TOKEN] [EMAIL]", "\xff\xfe\x00", "sk-ABC", "a @ b.com", "aIA AKIA IA", "J eyJ", "z authorization", "://", ":", "_", "-", "@",
	} {
		z := new(Sanitizer)
		if got := z.String(s); got != s {
			t.Errorf("String(%q) = %q", s, got)
		}
		if f := z.FindSecrets(s); f != nil {
			t.Errorf("FindSecrets(%q) = %v", s, f)
		}
	}
}

func TestKnownValues(t *testing.T) {
	t.Parallel()
	const v = `p"ss/wörd+1?`
	z := New([]string{v, "short", "longer-value", "longer-value-2", "8bytes!!", "[REDACTED]"}, nil)
	quoted, _ := json.Marshal(v)
	for _, s := range []string{
		v, url.QueryEscape(v), url.PathEscape(v), strings.Trim(string(quoted), `"`),
		base64.StdEncoding.EncodeToString([]byte(v)), "70227373",
	} {
		got := z.String("<" + s + ">")
		if s == "70227373" { // only the start of the hexadecimal form
			if got != "<70227373>" {
				t.Errorf("part of a form was masked: %q", got)
			}
			continue
		}
		if got != "<[REDACTED]>" {
			t.Errorf("String(<%s>) = %q", s, got)
		}
	}
	for in, want := range map[string]string{
		"longer-value-2":             "[REDACTED]",
		"longer-value-3":             "[REDACTED]-3",
		"8bytes!!8bytes!!":           "[REDACTED][REDACTED]",
		"short [REDACTED]":           "short [REDACTED]",
		"3862797465732121":           "[REDACTED]",
		"sk-abcdefg1-longer-value/x": "[OPENAI_KEY]/x",
	} {
		if got := z.String(in); got != want {
			t.Errorf("String(%q) = %q, want %q", in, got, want)
		}
	}
	// Within basic authentication the value stands at any of three alignments.
	for _, user := range []string{"", "u", "us", "use"} {
		in := base64.StdEncoding.EncodeToString([]byte(user + "longer-value" + "tail"))
		if got := z.String(in); !strings.Contains(got, Redacted) {
			t.Errorf("base64 behind %q: %q", user, got)
		}
	}
}

func TestOverlappingKnownValuesLeaveNoRest(t *testing.T) {
	t.Parallel()
	z := New([]string{"12345678abcd", "abcdefghijklmnop"}, nil)
	if got := z.String("x12345678abcdefghijklmnopx"); got != "x[REDACTED]x" {
		t.Errorf("got %q", got)
	}
}

func TestExtraPatterns(t *testing.T) {
	t.Parallel()
	z := New(nil, []*regexp.Regexp{
		regexp.MustCompile(`corp-[0-9]+`), regexp.MustCompile(`password=.*`), regexp.MustCompile(`[A-Z]{6,}`), regexp.MustCompile(`q*`),
	})
	for in, want := range map[string]string{
		"id corp-12":                    "id [REDACTED]",
		"password=a [REDACTED] b\nnext": "[REDACTED][REDACTED][REDACTED]\nnext",
		"[REDACTED] keeps, QQQQQQ no":   "[REDACTED] keeps, [REDACTED] no",
	} {
		if got := z.String(in); got != want {
			t.Errorf("String(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFindSecrets(t *testing.T) {
	t.Parallel()
	z := New([]string{"hunter2hunter2"}, nil)
	got := z.FindSecrets("me@example.org\n+k = ghp_abcdef\n\n[EMAIL] hunter2hunter2 ghp_abcd@x.com\napi_key=a8Jd72KsmQ0x 090-1234-5678")
	want := []Finding{{GitHubToken, "token", 2}, {Redacted, "known value", 4}, {GitHubToken, "token", 4}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestContainsMask(t *testing.T) {
	t.Parallel()
	for _, m := range Tokens() {
		if got, ok := ContainsMask("a[b] [" + m + "x" + Tokens()[0]); !ok || got != m {
			t.Errorf("ContainsMask of %s = %q, %v", m, got, ok)
		}
		if new(Sanitizer).String(m) != m {
			t.Errorf("%s is not stable", m)
		}
	}
	for _, s := range []string{"", "[", "[EMAIL", "EMAIL]", "[OTHER]"} {
		if _, ok := ContainsMask(s); ok {
			t.Errorf("ContainsMask(%q)", s)
		}
	}
}

func TestCleanTextIsReturnedAsIs(t *testing.T) {
	t.Parallel()
	z := New([]string{"known-value"}, []*regexp.Regexp{regexp.MustCompile(`corp-[0-9]+`)})
	s := strings.Repeat("func main() { x_y := a-b } // see https://h.org/@x: 日本語 [EMAIL]\n", 20)
	b := []byte(s)
	if unsafe.StringData(z.String(s)) != unsafe.StringData(s) {
		t.Error("String copied clean text")
	}
	if unsafe.SliceData(z.Bytes(b)) != unsafe.SliceData(b) {
		t.Error("Bytes copied clean text")
	}
}

func TestBytesDoesNotChangeItsArgument(t *testing.T) {
	t.Parallel()
	b := []byte("k ghp_abcdef k")
	got := new(Sanitizer).Bytes(b)
	if string(b) != "k ghp_abcdef k" || string(got) != "k [GITHUB_TOKEN] k" {
		t.Errorf("b = %q, got %q", b, got)
	}
}

// fragments are what the property tests build texts from: secrets, their
// halves, masks, and what glues them together.
var fragments = []string{
	"ghp_", "abcd", "1234567890", "ABCDEFGHIJKLMNOP", "github_pat_", "glpat-", "sk-", "sk-ant-", "xoxb-", "AKIA", "ASIA", "eyJ",
	"eyJhbGciOiJI", ".", "..", "@", "me", "x.com", "git", "://", "https", ":", "/", "?", "-", "_", "+", "=", "\n", `\n`, `\u003c`, "\\", `"`, " ",
	"Authorization: ", "Bearer ", "Basic ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----", "PRIVATE KEY",
	"MIIEpAIBAAKCAQEA1234567890abcdef", "known-value", "known-", "value", "[", "]", "[EMAIL", "EMAIL]", "[REDACTED]", "\x1b[1m",
	"token", "password", "=", "api_key", `"`, "'", "cookie: a=", "x9y8z7w6", "090-1234-5678", "4242424242424242", "+81", "sig=", "<", ">", "--", "secret\":[", "xapp-", "npm_",
	"日本", "\xff", `" + "`, "\n> ", "\" +\n\t\"", "読者", "ü", ".jp", "Env\": [\"A_TOKEN=", "$", "{", "}", "(", "2x", "v0", "corp-", "9", "m",
}

func hostile() *Sanitizer {
	return New([]string{"known-value", "value[EMAIL]known-", "EMAIL]abcd", "valueghp_", "IL][REDACTED]"},
		[]*regexp.Regexp{regexp.MustCompile(`corp-[0-9]+`), regexp.MustCompile(`[A-Z]{5,}\]?`), regexp.MustCompile(`^me.*m$`), regexp.MustCompile(`\bme\b|x*`)})
}

func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(fragments), rapid.SampledFrom(Tokens()), rapid.StringN(0, 3, 6)), 0, 14).Draw(t, "parts")
		return strings.Join(parts, "")
	})
}

func checkLaws(t rapid.TB, z *Sanitizer, s string) {
	once := z.String(s)
	if twice := z.String(once); twice != once {
		t.Fatalf("not idempotent: %q -> %q -> %q", s, once, twice)
	}
	if f := z.FindSecrets(once); len(f) > 0 {
		t.Fatalf("%q -> %q still holds %v", s, once, f)
	}
	if b := z.Bytes([]byte(s)); string(b) != once {
		t.Fatalf("Bytes(%q) = %q, String = %q", s, b, once)
	}
	at, all := 0, z.secrets(s)
	for i, f := range z.FindSecrets(s) {
		if p := all[i]; p.start < at || p.start >= len(s) || f.Line != 1+strings.Count(s[:p.start], "\n") {
			t.Fatalf("finding %v in %q", f, s)
		}
		at = all[i].start
	}
	for _, m := range Tokens() {
		if strings.Count(once, m) < strings.Count(s, m) {
			// Only a block that is masked whole may swallow a mask; none is.
			t.Fatalf("%q -> %q lost %s", s, once, m)
		}
	}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	for _, z := range []*Sanitizer{new(Sanitizer), new(Sanitizer).Personal(), new(Sanitizer).Strict(), hostile(), hostile().Strict()} {
		rapid.Check(t, func(t *rapid.T) { checkLaws(t, z, text().Draw(t, "s")) })
	}
}

func FuzzLaws(f *testing.F) {
	for _, s := range []string{"ghp_abcd@x.com", pemKey, jwtKey, "https://u:p@h", "known-value[EMAIL]", "\xff@\xff.com", "sk-sk-abcdefg1"} {
		f.Add(s)
	}
	plain, z := new(Sanitizer), hostile()
	f.Fuzz(func(t *testing.T, s string) {
		defer disktest.Bounded(t, len(s))()
		checkLaws(t, plain, s)
		checkLaws(t, plain.Personal(), s)
		checkLaws(t, plain.Strict(), s)
		checkLaws(t, z, s)
	})
}

// Texts that make a careless scanner quadratic: with half a megabyte of each, one
// that is would not come to its end.
func TestLinearOnHostileText(t *testing.T) {
	t.Parallel()
	z := New([]string{"aaaaaaaa"}, nil)
	for _, f := range append(fragments, "sk-a", "eyJaaaaaaaa.", "a@", "a.", "https://u:", "://a:", "-----BEGIN PRIVATE KEY-----\n", "a",
		"-----BEGIN PRIVATE KEY-----MIIEpAIBAAKCAQEA1234567890abcdef", "ghp_abcd ", "ghp_", "[", "authorization: ", "a.b-") {
		s := strings.Repeat(f, 1<<19/len(f))
		if out := z.String(s); z.String(out) != out {
			t.Errorf("not idempotent on repeated %q", f)
		}
	}
}

// TestLearn masks a value that came later, wherever the same Sanitizer is used.
func TestLearn(t *testing.T) {
	z := New([]string{"first-canary-1"}, nil)
	strict, text := z.Strict(), "first-canary-1 later-canary-2 bGF0ZXItY2FuYXJ5LTI="
	if got := z.String(text); got != "[REDACTED] later-canary-2 bGF0ZXItY2FuYXJ5LTI=" {
		t.Errorf("before: %q", got)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { z.Learn("later-canary-2", fmt.Sprintf("canary-of-%d", i)) })
	}
	wg.Wait()
	for _, s := range []*Sanitizer{z, strict, z.Personal()} {
		if got := s.String(text + " canary-of-7"); got != "[REDACTED] [REDACTED] [REDACTED] [REDACTED]" {
			t.Errorf("after: %q", got)
		}
	}
	new(Sanitizer).Learn("a-canary-of-none")
}
