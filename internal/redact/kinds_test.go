package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// of joins what a test may not hold in one piece: scanners of repositories would
// take it for a secret.
func of(parts ...string) string { return strings.Join(parts, "") }

const (
	r20 = "aB3dE5gH7jK9mN1pQ3sT"
	r40 = r20 + "uV5xY7zA9cD1fG3hJ5kL"
)

func TestTokensOfManyKinds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ token, mask string }{
		{of("glp", "tt-", r20), GitLabToken}, {of("glo", "as-", r20), GitLabToken}, {of("gld", "t-", r20), GitLabToken}, {of("glr", "t-", r20), GitLabToken},
		{of("glc", "bt-64_", r20), GitLabToken}, {of("glf", "t-", r20), GitLabToken}, {of("glim", "t-", r20), GitLabToken}, {of("glag", "ent-", r20), GitLabToken},
		{of("glso", "at-", r20), GitLabToken}, {of("glff", "ct-", r20), GitLabToken}, {of("GR134", "8941", r20), GitLabToken},
		{of("sk-", "ant-api03-", r40), OpenAIKey}, {of("sk-", "or-v1-", r40), OpenAIKey},
		{of("xox", "b-123456789012-", r20), Redacted}, {of("xox", "p-1-2-", r20), Redacted}, {of("xap", "p-1-A0-", r20), Redacted}, {of("xoxe", ".xoxp-1-", r40), Redacted},
		{of("AIza", "Sy", r20, r20[:13]), Redacted}, {of("ya2", "9.a0Af", r40), Redacted}, {of("GOC", "SPX-", r20), Redacted},
		{of("npm", "_", r20, "abcdefghijklmnop"), Redacted}, {of("py", "pi-AgEIcHlwaS5vcmc", r40), Redacted},
		{of("sk_", "live_", r20), Redacted}, {of("rk_", "test_", r20), Redacted}, {of("wh", "sec_", r20), Redacted},
		{of("h", "f_", r40[:34]), Redacted}, {of("dop", "_v1_", strings.Repeat("0a1b2c3d", 8)), Redacted}, {of("S", "G.", r20, "ab.", r40, "xyz"), Redacted},
		{of("hv", "s.", r40), Redacted}, {of("gs", "k_", r40), Redacted}, {of("xa", "i-", r40), Redacted}, {of("pp", "lx-", r40), Redacted}, {of("r", "8_", r40[:37]), Redacted},
		{of("da", "pi", strings.Repeat("0a1b2c3d", 4)), Redacted}, {of("shp", "at_", strings.Repeat("0a1b2c3d", 4)), Redacted}, {of("dck", "r_pat_", r20), Redacted},
		{of("ATA", "TT3", r40), Redacted}, {of("gls", "a_", r40), Redacted}, {of("lin", "_api_", r40), Redacted}, {of("AGE", "-SECRET-KEY-1", strings.ToUpper(r40)), Redacted},
		{of("AK", "IAIOSFODNN7EXAMPLQ"), Redacted},
	} {
		for _, form := range []string{"%s", " %s ", "x = \"%s\"\n", `{"a":"b\n%s\n"}`, "a,%s,b", "日本%s語"} {
			in, want := fmt.Sprintf(form, tc.token), fmt.Sprintf(form, tc.mask)
			for _, pad := range []string{"", "."} { // both parities of the search
				if got := new(Sanitizer).String(pad + in); got != pad+want {
					t.Errorf("String(%q)\n got %q\nwant %q", pad+in, got, pad+want)
				}
			}
		}
	}
}

func TestHeadersAddressesAndNamedValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"Authorization: token " + r20, "Authorization: token [REDACTED]"},
		{"curl -H 'Authorization: Bearer abc.def'", "curl -H 'Authorization: Bearer [REDACTED]'"},
		{"sent bearer " + r20, "sent bearer [REDACTED]"},
		{"PRIVATE-TOKEN: " + r20, "PRIVATE-TOKEN: [REDACTED]"},
		{`"X-Api-Key": "` + r20 + `"`, `"X-Api-Key": "[REDACTED]"`},
		{`h.Set("X-Api-Key", "` + r20 + `")`, `h.Set("X-Api-Key", "[REDACTED]")`},
		{"Cookie: sid=" + r20 + "; theme=dark\r\n", "Cookie: sid=[REDACTED]\r\n"},
		{"Set-Cookie: s=" + r20 + "; Path=/", "Set-Cookie: s=[REDACTED]"},
		{"https://" + of("hooks.sla", "ck.com/services/") + "T00000000/B00000000/" + r20, "https://hooks.slack.com/services/[REDACTED]"},
		{"https://x.blob.example/c?sv=2024&sig=" + r20 + "%2Bab%3D&se=1", "https://x.blob.example/c?sv=2024&sig=[REDACTED]&se=1"},
		{"?X-Amz-Signature=" + strings.Repeat("0a1b", 16), "?X-Amz-Signature=[REDACTED]"},
		{"AccountName=x;AccountKey=" + r40 + r40 + "==;EndpointSuffix=y", "AccountName=x;AccountKey=[REDACTED];EndpointSuffix=y"},
		{"Endpoint=sb://x/;SharedAccessKey=" + r40 + "+/=", "Endpoint=sb://x/;SharedAccessKey=[REDACTED]"},
		{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY", "aws_secret_access_key = [REDACTED]"},
		{"DB_PASSWORD=hunter2", "DB_PASSWORD=[REDACTED]"},
		{"export GITEA_TOKEN=" + r20, "export GITEA_TOKEN=[REDACTED]"},
		{"SIGNING_KEY='" + r20 + "'", "SIGNING_KEY='[REDACTED]'"},
		{"channel_secret: " + strings.Repeat("0a1b2c3d", 4), "channel_secret: [REDACTED]"},
		{"channel_access_token: \"" + r40 + "/+=\"", "channel_access_token: \"[REDACTED]\""},
		{`{"db":{"x":[{"password":"p@ss-W0rd/9x"}]}}`, `{"db":{"x":[{"password":"[REDACTED]"}]}}`},
		{`{\"api_key\":\"` + r20 + `\",\"n\":1}`, `{\"api_key\":\"[REDACTED]\",\"n\":1}`},
		{`{\\\"secret\\\": \\\"` + r20 + `\\\"}`, `{\\\"secret\\\": \\\"[REDACTED]\\\"}`},
		{`apiKey := "` + r20 + `"`, `apiKey := "[REDACTED]"`},
		{`const secret: string = '` + r20 + `';`, `const secret: string = '[REDACTED]';`},
		{`os.environ["API_KEY"] = "` + r20 + `"`, `os.environ["API_KEY"] = "[REDACTED]"`},
		{"mysql --password=x9Yz22Qw1 -u root", "mysql --password=[REDACTED] -u root"},
		{"login --token " + r20, "login --token [REDACTED]"},
		{"<password>" + r20 + "</password>", "<password>[REDACTED]</password>"},
		{"/cb?access_token=" + r20 + "&a=b", "/cb?access_token=[REDACTED]&a=b"},
		{"//registry.example/:_authToken=" + r20, "//registry.example/:_authToken=[REDACTED]"},
		{`"auth": "` + base64.StdEncoding.EncodeToString([]byte("robot:7hXq2Lm9Zw")) + `"`, `"auth": "[REDACTED]"`},
		{"redis://:s3cr3tZZ@h:6379/0", "redis://[REDACTED]@h:6379/0"},
	} {
		for _, pad := range []string{"", " "} {
			for _, z := range []*Sanitizer{new(Sanitizer), new(Sanitizer).Personal(), new(Sanitizer).Strict()} {
				if got := z.String(pad + tc.in); got != pad+tc.want {
					t.Errorf("String(%q)\n got %q\nwant %q", pad+tc.in, got, pad+tc.want)
				}
			}
		}
	}
}

func TestPrivateKeyBlocks(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("MIIEpAIBAAKCAQEA", 4)
	body := line + "\n" + line + "\nabc+/def==\n"
	begin, end := of("-----BEGIN ", "RSA PRIVATE KEY-----\n"), of("-----END ", "RSA PRIVATE KEY-----")
	pgp := of("-----BEGIN ", "PGP PRIVATE KEY BLOCK-----\n") + "Version: GnuPG v2.0.22 (GNU/Linux)\nComment: a key\n\n" + body + "=aBc1\n" + of("-----END ", "PGP PRIVATE KEY BLOCK-----")
	encrypted := begin + "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n" + body + end
	for _, tc := range []struct{ in, want string }{
		{begin + body + end, "[REDACTED]"},
		{"k:\n" + begin + body + end + "\nrest", "k:\n[REDACTED]\nrest"},
		{pgp, "[REDACTED]"},
		{encrypted, "[REDACTED]"},
		{strings.ReplaceAll(pgp, "\n", `\n`) + `","x":1`, `[REDACTED]","x":1`},
		{begin + line + "\n" + line, "[REDACTED]"},
		{"x\n" + line + "\nabcd==\n" + end + "\ny", "x\n[REDACTED]\ny"},
		{`"` + strings.ReplaceAll(line+"\nabcd==\n"+end, "\n", `\n`) + `\n"`, `"[REDACTED]\n"`},
		{"    " + strings.ReplaceAll(begin+body+end, "\n", "\n    "), "    [REDACTED]"},
	} {
		if got := new(Sanitizer).String(tc.in); got != tc.want {
			t.Errorf("String(%q)\n got %q\nwant %q", tc.in, got, tc.want)
		}
	}
	for _, s := range []string{
		"-----BEGIN CERTIFICATE-----\n" + body + "-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\n" + body + "-----END PUBLIC KEY-----",
		"-----BEGIN PGP SIGNATURE-----\n\n" + body + "-----END PGP SIGNATURE-----", "prose above\n" + end, begin + "...\n" + end,
	} {
		if got := new(Sanitizer).String(s); got != s {
			t.Errorf("String(%q) = %q", s, got)
		}
	}
}

// What stands in source code, logs and lists of versions and is no secret.
func TestNoFalseHits(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"task-list disk-usage risk-free sk-learn ask-me-anything-2024 mask-r-cnn", "d41d8cd98f00b204e9800998ecf8427e", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"npm i react@18.2.0 @types/node@20 mod@v1.2.3", "git@github.com:owner/repo.git git@host:path user@host:/path foo@bar", "@Override @app.route('/x') @Component({selector: 'a'}) @media (max-width: 10px)",
		"go 1.26.8 2024-01-15T10:30:05.123Z 10.0.0.1:8080 [::1]:443 3.14159 0x1b 1e-9 192.168.1.100-192.168.1.200",
		"golang.org/x/net v0.62.0 h1:T5GQRQb2y08kTAByq9L4/bz8cipCdA8FbRTXewonqY8=", `"integrity": "sha512-4wXb7kKTbfCKNGGf9vSMkvSQjQ3zTDhJ7vO/LZ5ZDIm4IJSLqGTTGQMEsZ1wFSR3+JtDSzd0xhLUG6HAwG8zVA=="`,
		"password: string; passwordField.value; the password is required", "token := lexer.next()", "tok, token = s.scan()", `api_key=os.environ["X"]`, "API_KEY=${TOKEN}", "token: <token>", "PASSWORD=***", "password=$(cat f)",
		"PASSWORD=[REDACTED]", `"password": "[REDACTED]"`, "--password [REDACTED]", `"token": "string"`, `token="identifier"`, `"secret": {"type": "string"}`, `ACCESS_TOKEN = "access_token"`, "password=password1)",
		"max_tokens: 4096", "tokens=12345678", "token == other2x4y6z8", `if password != "x1y2z3w4"[i]`, "nextPageToken: CAUQAA1b2c3d4e5", "PublicKeyToken=31bf3856ad364e35", "PRIMARY_KEY=id12345x9",
		"ClientAuth = RequireAndVerifyClientCert2048", "PrivateKey: testRSA2048PrivateKey,", "key: value, keyboard=us", "monkey=12ab34cd56", "class=\"btn-pass\"", "--- PASS: TestX (0.00s)", "compass: 12ab34cd56",
		"cookie: the cookie jar", "document.cookie = name + '=' + v", "Set-Cookie: theme=dark; Path=/", "Authorization: " + "<token>", "bearer of good news and more", "authorization = true",
		"://a:b", "postgres://user:password@localhost/db", "postgres://$(DB_USER):$(DB_PASSWORD)@h/x", "https://user:xxxxx@h", "sig=short&x", "design=1 signature=abc",
		"xoxo-hugs-and-kisses", "xapp-", "npm_config_registry_url_is_set", "hf_hub_download_of_a_large_model", "AIzawa", "pypi-publish-to-the-index", "SG.something", "half_open", "dapi_style", "glad-to-see glsl-shader",
		"090-1234-5678 4242 4242 4242 4242 +81-90-1234-5678", "!function(e,t){e.exports=t()}({key:1,token:2});", "a{color:#fff;background:url(x@2x.png)}", "const key = 'Enter', secret = 'abcdef'",
		"port 8080,8443,9090-9099", "line 12:34: token 'x' expected", "AKIA", "/home/me/.ssh/id_rsa", "TOKEN_FILE=/run/secrets/token", "SECRET_KEY_BASE", "password_hash()", "Secret: nil, Token: nil",
		"b'-----BEGIN PRIVATE KEY-----' in data", "eyJhbGciOiJIUzI1NiJ9", "AWS_SECRET_ACCESS_KEY=your-secret-key-here-123",
	} {
		for _, pad := range []string{"", "\t"} {
			if got := new(Sanitizer).String(pad + s); got != pad+s {
				t.Errorf("String(%q)\n  = %q", pad+s, got)
			}
		}
	}
}

func TestStrict(t *testing.T) {
	t.Parallel()
	z := new(Sanitizer).Strict()
	for _, tc := range []struct{ in, want string }{
		{"電話は090-1234-5678です", "電話は[REDACTED]です"},
		{"tel 09012345678, 03-1234-5678, (03) 1234-5678, 03(1234)5678, 0120-123-456, 0467-12-3456", "tel [REDACTED], [REDACTED], [REDACTED], [REDACTED], [REDACTED], [REDACTED]"},
		{"call +81-90-1234-5678 or +81 3 1234 5678 or +819012345678", "call [REDACTED] or [REDACTED] or [REDACTED]"},
		{"tel:+14155550123, +44 20 7946 0958", "tel:[REDACTED], [REDACTED]"},
		{"card 4242 4242 4242 4242 12/27", "card [REDACTED] 12/27"},
		{"4242-4242-4242-4242 and 378282246310005, 3782 822463 10005", "[REDACTED] and [REDACTED], [REDACTED]"},
		{"my password: correcthorse", "my password: [REDACTED]"},
		{`{"password": "secret", "a": 1}`, `{"password": "[REDACTED]", "a": 1}`},
		{`{"credentials": {"user": "bob", "pin": 1234, "list": ["abc", "def"]}, "a": "b"}`, `{"credentials": {"user": "[REDACTED]", "pin": [REDACTED], "list": ["[REDACTED]", "[REDACTED]"]}, "a": "b"}`},
		{`{\"secret\":{\"v\":\"abc\"}}`, `{\"secret\":{\"v\":\"[REDACTED]\"}}`},
		{"postgres://user:password@localhost/db", "postgres://[REDACTED]@localhost/db"},
		{"passport: TR1234567", "passport: [REDACTED]"},
	} {
		if got := z.String(tc.in); got != tc.want {
			t.Errorf("String(%q)\n got %q\nwant %q", tc.in, got, tc.want)
		}
		if f := z.FindSecrets(tc.in); !strings.Contains(tc.in, "://") && f != nil {
			t.Errorf("FindSecrets(%q) = %v", tc.in, f)
		}
	}
	for _, s := range []string{
		"4242 4242 4242 4243", "1234567890123456", "id-4242424242424242", "a4242424242424242", "0x4242424242424242", "4242424242424242.5", "42424242424242424242", "deadbeef4242424242424242",
		"2024-01-15 10:30:05", "01-15-2024", "0901-2345-6789-0123", "1.090-1234-5678", "+2016-01-03", "+1130 2010", "+2147483647", "0120-44-44", "192.168.100.200", "550e8400-0912-3456-7890-446655440000",
		"Thu Feb 04 21:00:57 +0900 2010", "1700000000000", "a[01234567890]", "--- PASS: TestX (0.01s)", "// Token: Assign", "password: ${PASS}", "max_tokens=4096", `"token": null`, "1705312205123456789",
	} {
		if got := z.String(s); got != s {
			t.Errorf("String(%q) = %q", s, got)
		}
	}
}

func TestLedgerKeepsNumbers(t *testing.T) {
	t.Parallel()
	const s = `const phone, card = "090-1234-5678", "4242 4242 4242 4242"`
	if got := New(nil, nil).String(s); got != s {
		t.Errorf("got %q", got)
	}
}

// encodings are the ways a known value may look when it comes by.
var encodings = map[string]func(string) string{
	"plain":      func(v string) string { return v },
	"base64":     func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"base64 url": func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) },
	"basic":      func(v string) string { return base64.StdEncoding.EncodeToString([]byte("me:" + v)) },
	"basic+1":    func(v string) string { return base64.StdEncoding.EncodeToString([]byte("user:" + v + "\n")) },
	"base64 url+2": func(v string) string {
		return base64.URLEncoding.EncodeToString([]byte("a:b:" + v + "..."))
	},
	"hex":        func(v string) string { return hex.EncodeToString([]byte(v)) },
	"od":         func(v string) string { return fmt.Sprintf("0000000 % x\n", v) },
	"openssl":    func(v string) string { return strings.ReplaceAll(fmt.Sprintf("% X", v), " ", ":") },
	"xxd -i":     func(v string) string { return strings.ReplaceAll(fmt.Sprintf("  %# x", v), " ", ", ") },
	"\\x":        func(v string) string { return `"\x` + strings.ReplaceAll(fmt.Sprintf("% x", v), " ", `\x`) + `"` },
	"HEX":        func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte("x" + v + "y"))) },
	"query":      url.QueryEscape,
	"query low":  func(v string) string { return lowerHex(url.QueryEscape(v)) },
	"path":       url.PathEscape,
	"path low":   func(v string) string { return lowerHex(url.PathEscape(v)) },
	"component":  func(v string) string { return percent(v, "-_.!~*'()") },
	"all":        func(v string) string { return percent(v, "") },
	"json":       func(v string) string { b, _ := json.Marshal(v); return string(b) },
	"json plain": plainJSON,
	"json twice": func(v string) string { return plainJSON(plainJSON(v)) },
	"ascii":      strconv.QuoteToASCII,
	"shell":      func(v string) string { return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'" },
	"shell \"\"": func(v string) string { return `"` + backslashed(v, "\"$`\\") + `"` },
	"printf %q":  func(v string) string { return regexp.MustCompile(`[ &<>"'\\]`).ReplaceAllString(v, `\$0`) },
}

func TestKnownValuesInEveryForm(t *testing.T) {
	t.Parallel()
	secret := rapid.StringOfN(rapid.RuneFrom([]rune(`abzAZ09-_.~/+= &<>"'\%ö鍵`)), 8, 30, -1).Filter(func(v string) bool { return len(strings.TrimSpace(v)) >= 16 })
	rapid.Check(t, func(t *rapid.T) {
		v := secret.Draw(t, "v")
		z := New([]string{v, "another known value"}, nil)
		v = strings.TrimSpace(v)
		for name, f := range encodings {
			text := f(v)
			got := z.String(rapid.SampledFrom([]string{"", " ", "x=", "ab"}).Draw(t, "lead") + text + rapid.SampledFrom([]string{"", "\n", " y"}).Draw(t, "tail"))
			// What is left of it must be less than the value's first and last bytes in base64.
			if !strings.Contains(got, Redacted) || len(got) > len(Redacted)+24 {
				t.Fatalf("%s of %q: %q -> %q", name, v, text, got)
			}
		}
	})
}

func TestKnownKeyIsMaskedLineByLine(t *testing.T) {
	t.Parallel()
	line := strings.Repeat(r20, 3)
	z := New([]string{of("-----BEGIN ", "PRIVATE KEY-----\n") + line + "\n" + r40 + "zz\n" + of("-----END ", "PRIVATE KEY-----\n")}, nil)
	if got := z.String("line 2 is " + line); got != "line 2 is [REDACTED]" {
		t.Errorf("got %q", got)
	}
}

// The law of known values: none is left, in any text.
func TestNoKnownValueIsLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		known := rapid.SliceOfN(rapid.StringMatching(`[ab@.:=-]{8,12}`), 1, 4).Draw(t, "known")
		z := New(known, nil)
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(known), rapid.StringMatching(`[ab@.:=-]{0,9}`), rapid.SampledFrom(Tokens())), 0, 12).Draw(t, "parts")
		got := z.String(strings.Join(parts, ""))
		for _, v := range known {
			if strings.Contains(got, v) {
				t.Fatalf("%q is left in %q", v, got)
			}
		}
		if again := z.String(got); again != got {
			t.Fatalf("%q -> %q", got, again)
		}
	})
}

// Replacing must not uncover match after match, or hostile texts cost the square
// of their length.
func TestRoundsAreFew(t *testing.T) {
	t.Parallel()
	for _, z := range []*Sanitizer{New([]string{"aaaaaaaa", "known-value"}, nil), new(Sanitizer).Personal(), new(Sanitizer).Strict()} {
		for _, a := range fragments {
			for _, b := range fragments {
				s := strings.Repeat(a+b, 40)
				rounds := 0
				for ; rounds < 10; rounds++ {
					spans := z.find(s, true)
					if spans = settle(spans, s); len(spans) == 0 {
						break
					}
					s = rewrite(s, spans)
				}
				if rounds > 3 {
					t.Errorf("%d rounds for repeated %q", rounds, a+b)
				}
			}
		}
	}
}

// split writes s in the pieces that cuts names.
func split(t rapid.TB, z *Sanitizer, s string, size func() int) string {
	var b bytes.Buffer
	w := z.Writer(&b)
	for rest := []byte(s); len(rest) > 0; {
		n := min(max(size(), 1), len(rest))
		if got, err := w.Write(rest[:n]); got != n || err != nil {
			t.Fatal(got, err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWriterDoesNotDependOnHowTheTextArrives(t *testing.T) {
	t.Parallel()
	z := New([]string{"known-value-of-the-house"}, nil)
	unit := rapid.OneOf(rapid.SampledFrom(fragments), rapid.SampledFrom([]string{
		"known-value-of-the-house", "DB_PASSWORD=hunter2x9 ", of("gh", "p_", r40), "plain text ", "\n", strings.Repeat("x", 5000), strings.Repeat("line\n", 900), strings.Repeat("日本語 ", 700),
	}))
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(unit, 0, 30).Draw(t, "parts")
		s := strings.Repeat(strings.Join(parts, ""), rapid.IntRange(1, 6).Draw(t, "times"))
		want := split(t, z, s, func() int { return len(s) })
		if len(s) <= maxHeld && want != z.String(s) {
			t.Fatalf("%q\nwritten %q", s, want)
		}
		size := rapid.IntRange(1, 1<<17).Draw(t, "size")
		n := 0
		if got := split(t, z, s, func() int { n = (n*31 + size) % (size + 1); return n }); got != want {
			t.Fatalf("differs for %d bytes in pieces of at most %d", len(s), size)
		}
		for _, left := range []string{"known-value-of", "hunter2x9", r40} {
			if strings.Contains(want, left) {
				t.Fatalf("%q is left of %d bytes", left, len(s))
			}
		}
	})
}

// Wherever a secret stands in a huge text, and however long its line is, no cut
// goes through it.
func TestWriterCutsBetweenSecrets(t *testing.T) {
	t.Parallel()
	z := New([]string{"known-value-of-the-house"}, nil)
	pem := of("-----BEGIN ", "PRIVATE KEY-----") + `\n` + strings.Repeat(strings.Repeat("aB3d", 16)+`\n`, 200) + of("-----END ", "PRIVATE KEY-----")
	for _, filler := range []string{"x", "word ", "0123456789\n", "a@b.co "} {
		for _, secret := range []string{"known-value-of-the-house", of("gh", "p_", r40), `"api_key": "` + r40 + `"`, "Authorization: Bearer abc.def", pem} {
			for _, at := range []int{maxHeld - 70_000, maxHeld - margin - 300, maxHeld - margin - 20, maxHeld - margin, maxHeld - 20, maxHeld - 5, maxHeld} {
				s := strings.Repeat(filler, at/len(filler)) + " " + secret + " " + strings.Repeat(filler, 3*maxHeld/len(filler))
				got := split(t, z, s, func() int { return 1 << 15 })
				for _, left := range []string{"known-value", r40[:12], "abc.def", strings.Repeat("aB3d", 16)} {
					if strings.Contains(got, left) {
						t.Errorf("%.20q at %d among %q: %q is left", secret, at, filler, left)
					}
				}
				if want := z.String(s); len(got) < len(want)-64 {
					t.Errorf("%.20q at %d among %q: %d of %d bytes", secret, at, filler, len(got), len(want))
				}
			}
		}
	}
}

func TestWriterSwallowsATokenWithoutEnd(t *testing.T) {
	t.Parallel()
	s := "Authorization: Bearer " + strings.Repeat("aB3", 200_000) + "\nafter"
	if got := split(t, new(Sanitizer), s, func() int { return 9999 }); got != "Authorization: Bearer [REDACTED]\nafter" {
		t.Errorf("%d bytes: %.80q", len(got), got)
	}
}

func TestWriterHoldsNoMoreThanItSays(t *testing.T) {
	t.Parallel()
	w := new(Sanitizer).Writer(&bytes.Buffer{}).(*writer)
	for _, p := range []string{strings.Repeat("x", 1<<20), strings.Repeat("a@b.co ", 1<<17), strings.Repeat("-----BEGIN PRIVATE KEY-----\n", 1<<15)} {
		if _, err := w.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
		if cap(w.held) > 2*maxHeld {
			t.Errorf("%d bytes held", cap(w.held))
		}
	}
}

func TestWriterFailsAsItsWriterDoes(t *testing.T) {
	t.Parallel()
	w := new(Sanitizer).Writer(failing{})
	_, err := w.Write(make([]byte, 2*maxHeld))
	if !errors.Is(err, errDisk) {
		t.Errorf("Write: %v", err)
	}
	if err := w.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close: %v", err)
	}
}

var errDisk = errors.New("disk full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errDisk }
