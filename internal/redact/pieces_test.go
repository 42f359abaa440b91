package redact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What is masked is masked whole: a rest that stays would leave the house, since
// whoever judges what leaves sees a mask and no secret.
func TestSecretsInPieces(t *testing.T) {
	t.Parallel()
	gh, sk := of("gh", "p_", r20[:10]), of("sk-", "ant-api03-", r20[:10])
	for _, tc := range []struct{ in, want string }{
		{"it is " + gh + "\n" + r20 + "\nand more", "it is [GITHUB_TOKEN]\nand more"},
		{gh + "\r\n  " + r20, "[GITHUB_TOKEN]"},
		{"> " + gh + "\n> " + r20 + "\n", "> [GITHUB_TOKEN]\n"},
		{"+" + gh + "\n+" + r20 + "\n", "+[GITHUB_TOKEN]\n"},
		{"// " + gh + "\n// " + r20, "// [GITHUB_TOKEN]"},
		{gh + "\nabcdefgh\n" + r20, "[GITHUB_TOKEN]"},
		{`t = "` + gh + `" + "` + r20 + `"`, `t = "[GITHUB_TOKEN]"`},
		{`t = '` + gh + `'+'abcd'+'` + r20 + `';`, `t = '[GITHUB_TOKEN]';`},
		{`t = "` + gh + "\" +\n\t\t\"" + r20 + `"`, `t = "[GITHUB_TOKEN]"`},
		{`$t = "` + gh + `" . 'abc' . "` + r20 + `";`, `$t = "[GITHUB_TOKEN]";`},
		{`t = "` + gh + `" .. "` + r20 + `"`, `t = "[GITHUB_TOKEN]"`},
		{`t = "` + gh + `" & "` + r20 + `"`, `t = "[GITHUB_TOKEN]"`},
		{`t = "` + gh + `" <> "` + r20 + `"`, `t = "[GITHUB_TOKEN]"`},
		{`t = '` + gh + `' || '` + r20 + `'`, `t = '[GITHUB_TOKEN]'`},
		{`t = ("` + gh + "\"\n     \"" + r20 + `")`, `t = ("[GITHUB_TOKEN]")`},
		{`t = b"` + gh + `" + b"` + r20 + `"`, `t = b"[GITHUB_TOKEN]"`},
		{`t = "` + gh + "\"\nt += \"" + r20 + `"`, `t = "[GITHUB_TOKEN]"`},
		{`$t = '` + gh + "';\n$t .= '" + r20 + `';`, `$t = '[GITHUB_TOKEN]';`},
		{gh + "\\\n" + r20, "[GITHUB_TOKEN]"},
		{`{"content":"t := \"` + gh + `\" +\n\t\"` + r20 + `\""}`, `{"content":"t := \"[GITHUB_TOKEN]\""}`},
		{`{"content":"` + gh + `\n` + r20 + `"}`, `{"content":"[GITHUB_TOKEN]"}`},
		{`k = "` + sk + `" + "` + r20 + `"`, `k = "[OPENAI_KEY]"`},
		{sk + "\n" + r20 + "\n", "[OPENAI_KEY]\n"},
		{`h.Set("Authorization", "Bearer abc` + `" + "` + r20 + `")`, `h.Set("Authorization", "Bearer [REDACTED]")`},
		{`api_key = "` + r20[:10] + `" + "` + r20[10:] + `"`, `api_key = "[REDACTED]"`},
		{`api_key = "abc" + "` + r20 + `"`, `api_key = "[REDACTED]"`},
	} {
		for _, z := range []*Sanitizer{new(Sanitizer), new(Sanitizer).Strict()} {
			if got := z.String(tc.in); got != tc.want {
				t.Errorf("String(%q)\n got %q\nwant %q", tc.in, got, tc.want)
			}
		}
	}
}

// What stands beside a token and is no part of it.
func TestPiecesThatAreNone(t *testing.T) {
	t.Parallel()
	gh := of("gh", "p_", r20[:10])
	for _, rest := range []string{
		"\nmake\n", "\nexport", "\nrun build2x now", "\nNext", ", \"" + r20 + "\"", " " + r20, "\" + token2x", "\" + f(\"" + r20 + "\")", "\": \"" + r20 + "\"",
		"\", \"x1y2z3\"", "\"] + [\"" + r20 + "\"]", "\nX=" + r20 + "\n", "\n" + r20 + ".txt\n", "\" + \"a b\"", "\\\"\", \"x9\")", "\n- [EMAIL]\n",
	} {
		if got := new(Sanitizer).String(gh + rest); got != GitHubToken+rest {
			t.Errorf("String(%q) = %q", gh+rest, got)
		}
	}
	// One of its full length goes on nowhere.
	if got, want := new(Sanitizer).String(of("gh", "p_", r40)+"\n"+r20+"\n"), GitHubToken+"\n"+r20+"\n"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestKnownValuesInPieces(t *testing.T) {
	t.Parallel()
	const v = "correct+horse/battery=staple"
	z := New([]string{v}, nil)
	for _, seam := range []string{"\n", "\r\n\t", "\\\n", `" + "`, "\" +\n\t\"", `'.'`, `\n`, `\" + \"`, "\n> ", "\n+", "\n// "} {
		if got := z.String("x " + v[:9] + seam + v[9:20] + seam + v[20:] + " y"); got != "x [REDACTED] y" {
			t.Errorf("over %q: %q", seam, got)
		}
	}
	if got := z.String(v[:12] + " or\n" + v[12:]); strings.Contains(got, Redacted) {
		t.Errorf("got %q", got)
	}
}

// However a token is cut, nothing of it is left behind a mask.
func TestNoRestStandsBehindAMask(t *testing.T) {
	t.Parallel()
	seams := []string{"\n", "\n> ", `" + "`, "\" +\n  \"", `\" + \"`, `\n`, "' '", "\\\n"}
	rapid.Check(t, func(t *rapid.T) {
		token := of("gh", "p_") + rapid.StringMatching(`[A-Za-z0-9]{35}[0-9]`).Draw(t, "token")
		seam := rapid.SampledFrom(seams).Draw(t, "seam")
		first := rapid.IntRange(8, len(token)-1).Draw(t, "first")
		text, rest := token[:first], token[first:]
		for rest != "" {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			text, rest = text+seam+rest[:n], rest[n:]
		}
		for _, form := range []string{"", `"`} {
			if got := new(Sanitizer).String(form + text + form); got != form+GitHubToken+form {
				t.Fatalf("%q -> %q", form+text+form, got)
			}
		}
	})
}
