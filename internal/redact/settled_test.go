package redact

import (
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Nothing of a secret is shown of a text that grows, letter by letter.
func TestSettled(t *testing.T) {
	t.Parallel()
	const key, phrase = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0", "correct horse battery staple"
	z := New([]string{"hunter2-hunter2", phrase, key}, nil).Strict()
	line := strings.Repeat("MIIEpAIBAAKCAQEA", 4)
	begin, end := of("-----BEGIN ", "RSA PRIVATE KEY-----\n"), of("-----END ", "RSA PRIVATE KEY-----")
	pem := begin + line + "\n" + line + "\nabc+/def==\n" + end
	encoded := base64.StdEncoding.EncodeToString([]byte(phrase))
	for name, c := range map[string]struct {
		text  string
		parts string // by blanks
	}{
		"a key":                 {pem, "MIIE abc+/"},
		"its end":               {strings.TrimPrefix(pem, begin), "MIIE abc+/"},
		"indented":              {"    " + strings.ReplaceAll(pem, "\n", "\n    "), "MIIE abc+/"},
		"in a string":           {`"` + strings.ReplaceAll(pem, "\n", `\n`) + `"`, "MIIE abc+/"},
		"a token":               {of("ghp", "_", r40), r40[:6]},
		"known":                 {"hunter2-hunter2", "hunter2"},
		"known, of words":       {phrase, "correct horse staple"},
		"known, in lines":       {key[:16] + "\n" + key[16:32] + "\n" + key[32:], "a1B2c3 i9J0k1 q7R8"},
		"known, in strings":     {`"` + key[:16] + `" + "` + key[16:32] + `" + "` + key[32:] + `"`, "a1B2c3 i9J0k1 q7R8"},
		"known, encoded":        {encoded[:20] + "\n" + encoded[20:], encoded[:12] + " " + encoded[20:30]},
		"a card":                {"4111 1111 1111 1111", "4111 1111"},
		"a telephone":           {"090 1234 5678", "090 1234"},
		"abroad":                {"+81 90 1234 5678", "+81 1234"},
		"with an area":          {"(03) 1234-5678", "03 1234"},
		"an address":            {"hanako@example.com", "hanako"},
		"a password":            {"password: correcthorse", "correcthorse"},
		"a phrase":              {`password = "my long pass phrase"`, "my long phrase"},
		"a header":              {"Authorization: Bearer " + r40, r40[:6]},
		"cookies":               {"Cookie: sid=" + r40 + "; theme=dark", r40[:6] + " dark"},
		"known behind a number": {"in 2024 hunter2-hunter2 1", "hunter2"},
	} {
		for _, lead := range []string{"See: ", "ご覧", "See\n\n"} {
			text := lead + c.text + "\nand so on it goes, as it must.\n"
			if n := z.Settled(text); n != len(text) {
				t.Errorf("%s: %q waits", name, text[n:])
			}
			for n := range text {
				shown := z.String(text[:z.Settled(text[:n])])
				for _, part := range strings.Fields(c.parts) {
					if strings.Contains(shown, part) {
						t.Fatalf("%s: %q is shown of %q", name, shown, text[:n])
					}
				}
			}
		}
	}
}

// What is no secret waits for the end of its word alone.
func TestSettledShowsSoon(t *testing.T) {
	t.Parallel()
	z := New([]string{"correct horse battery staple"}, nil).Strict()
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"wor", ""}, {"a wor", "a "}, {"日本語で", "日本語で"}, {"日本語 wor", "日本語 "}, {"the corr", "the "}, {"the correct ", "the "}, {"the correct answer ", "the correct answer "},
		{"I said \"so and ", "I said \"so and "}, {"it's the ", "it's the "}, {"in 2024 ", "in "}, {"in 2024 we ", "in 2024 we "}, {"a-b (c) - d ", "a-b (c) - d "},
		{"```go\nx := \"a\"\n", "```go\nx := \"a\"\n"},
	} {
		if got := c.text[:z.Settled(c.text)]; got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// It is a whole number of bytes of the text, of whole characters where the text has them.
func TestSettledLaws(t *testing.T) {
	t.Parallel()
	z := New([]string{"correct horse battery staple"}, nil).Strict()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("ab 1\n\"-=:あ　corehs\xff"))).Draw(t, "s")
		if n := z.Settled(s); n < 0 || n > len(s) || strings.ToValidUTF8(s[:n], "") != s[:n] {
			t.Fatalf("%q: %d", s, n)
		}
	})
}
