package redact

import "testing"

func TestNamedValuesWithinQuotes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{`"Env": ["PATH=/bin", "DB_PASSWORD=hunter2x"]`, `"Env": ["PATH=/bin", "DB_PASSWORD=[REDACTED]"]`},
		{`"Env": ["DB_PASSWORD=a$b&c9:d"]`, `"Env": ["DB_PASSWORD=[REDACTED]"]`},
		{`{\"Env\":[\"DB_PASSWORD=hunter2x\"]}`, `{\"Env\":[\"DB_PASSWORD=[REDACTED]\"]}`},
		{`{"command": "export API_KEY=` + r20 + `"}`, `{"command": "export API_KEY=[REDACTED]"}`},
		{`{"command": "API_KEY=` + r20 + ` go test ./..."}`, `{"command": "API_KEY=[REDACTED] go test ./..."}`},
		{`{"command": "export API_KEY=` + r20 + `\nmake"}`, `{"command": "export API_KEY=[REDACTED]\nmake"}`},
		{"`export API_KEY=" + r20 + "`", "`export API_KEY=[REDACTED]`"},
		{"docker run -e TOKEN=hunter2x app", "docker run -e TOKEN=[REDACTED] app"},
		{"docker run -eDB_TOKEN=hunter2x app", "docker run -eDB_TOKEN=[REDACTED] app"},
		{"java -DAPI_KEY=hunter2x", "java -DAPI_KEY=[REDACTED]"},
		{`docker run -e "TOKEN=hunter2x" --env='DB_PASSWORD=hunter2x'`, `docker run -e "TOKEN=[REDACTED]" --env='DB_PASSWORD=[REDACTED]'`},
		{`"docker run -e TOKEN=hunter2x"`, `"docker run -e TOKEN=[REDACTED]"`},
		{`"mysql --password=x9Yz22Qw1"`, `"mysql --password=[REDACTED]"`},
		{`environment: ["API_TOKEN=hunter2x"]`, `environment: ["API_TOKEN=[REDACTED]"]`},
		{`"https://x.example/cb?access_token=` + r20 + `"`, `"https://x.example/cb?access_token=[REDACTED]"`},
		{`"https://x.example/cb?access_token=` + r20 + `&scope=user"`, `"https://x.example/cb?access_token=[REDACTED]&scope=user"`},
		{`replace(s, "password := \"` + r20 + `\"", "x y")`, `replace(s, "password := \"[REDACTED]\"", "x y")`},
		{`"api_key: ` + r20 + `"`, `"api_key: [REDACTED]"`},
		{"password=\"hunter10hunter10\n\"\n", "password=\"[REDACTED]\n\"\n"},
		{"export DB_PASSWORD='hunter10hunter10", "export DB_PASSWORD='[REDACTED]"},
		{"A_TOKEN: >-\n  " + r20 + "\nB: c\n", "A_TOKEN: >-\n  [REDACTED]\nB: c\n"},
		{"  password: |2\n    hunter10\n    hunter11\n  b: c d\n", "  password: |2\n    [REDACTED]\n  b: c d\n"},
	} {
		for _, z := range []*Sanitizer{new(Sanitizer), new(Sanitizer).Strict()} {
			if got := z.String(tc.in); got != tc.want {
				t.Errorf("String(%q)\n got %q\nwant %q", tc.in, got, tc.want)
			}
		}
	}
	for _, s := range []string{
		`"token=" + x`, `"TOKEN=%s"`, `"TOKEN=$TOKEN"`, `"TOKEN=${TOKEN}"`, `f"TOKEN={token}"`, `"password=" + "y"`, `"secret=name"`, `"TOKEN="`, `'TOKEN=' + f('a1')`, `"--password=\"$P\""`,
		"password: |\n  a text of 3 words\n", "token: >\nx1", "password: \"\nx = 1\n\"", "password = \"two w0rds\n\"",
		`"DB_PASSWORD=changeme1"`, `"PASSWORD=[REDACTED]"`, `"TOKEN=abc", "x1"`,
	} {
		if got := new(Sanitizer).String(s); got != s {
			t.Errorf("String(%q) = %q", s, got)
		}
	}
}

func TestKeysWithoutDigits(t *testing.T) {
	t.Parallel()
	for _, k := range []string{of("sk-", "abcdefghijklmnopqrst"), of("sk-", "AbCdEfGhIj"), of("sk-", "proj-abcdefghijklmnopqrst"), of("sk-", "ant-abcdefghijklmnopqrst")} {
		if got := new(Sanitizer).String("key " + k + "."); got != "key [OPENAI_KEY]." {
			t.Errorf("String(%q) = %q", k, got)
		}
	}
	for _, s := range []string{"sk-learn-estimator-doc-link", "sk-folding-cube-and-circle-fade-dot", "sk-toggleable__content_of_the_page", "sk-or-not", "sk-ant-colony-optimization", "sk-internationalise", "sk-SK", "sk-MyButton"} {
		if got := new(Sanitizer).String(s); got != s {
			t.Errorf("String(%q) = %q", s, got)
		}
	}
	// A sum that is no secret hides none that begins it.
	if got, want := new(Sanitizer).String(`password = "`+r20+`" + "a b"`), `password = "[REDACTED]" + "a b"`; got != want {
		t.Errorf("got %q", got)
	}
}
