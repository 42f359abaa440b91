package redact

import (
	"bytes"
	"encoding/ascii85"
	"strings"
	"testing"
)

// A known value is masked backwards and in base85, wherever it stands in what
// was encoded.
func TestKnownInBase85AndBackwards(t *testing.T) {
	t.Parallel()
	const known = "s3cr3t-Canary+Value/9Q"
	z := New([]string{known}, nil)
	adobe := func(s string) string {
		var b bytes.Buffer
		w := ascii85.NewEncoder(&b)
		_, _ = w.Write([]byte(s))
		_ = w.Close()
		return b.String()
	}
	if base85("x", alphabets85[0]) != adobe("x") || base85(known, alphabets85[0]) != adobe(known) {
		t.Fatal("not the encoding of ascii85")
	}
	// Python: base64.b85encode(b"hello world")
	if got := base85("hello world", alphabets85[1]); got != "Xk~0{Zy<MXa%^M" {
		t.Fatal(got)
	}
	for name, text := range map[string]string{"backwards": backwards(known), "adobe": adobe(known), "git": base85(known, alphabets85[1]), "zeromq": base85(known, alphabets85[2])} {
		if got := z.String("a " + text + " b"); got != "a [REDACTED] b" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for lead := range 8 {
		for i, alphabet := range alphabets85 {
			text := base85(strings.Repeat("x", lead)+known+"yz", alphabet)
			if got := z.String(text); !strings.Contains(got, Redacted) || len(got) > len(Redacted)+18 {
				t.Errorf("lead %d, alphabet %d: %q of %q", lead, i, got, text)
			}
		}
	}
}

// The shell's working directory is no password, whatever its name says.
func TestWorkingDirectoryStays(t *testing.T) {
	t.Parallel()
	strict := new(Sanitizer).Strict()
	for _, s := range []string{
		"PWD=/home/ken/src", "OLDPWD=/srv/project2", "PWD=/", "PWD=/workspace", `"PWD": "/home/runner/src/toritsugi/toritsugi"`,
		"declare -x PWD=\"/tmp/build-1234\"", "PWD=/workspaces/a-very-long-project-name-2024/x", "PWD=/data0/logs/contexts/running/550e8400-e29b-41d4-a716-446655440000",
	} {
		if got := new(Sanitizer).String(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
		if got := strict.String(s); got != s {
			t.Errorf("strict: %q became %q", s, got)
		}
	}
	for _, s := range []string{
		"Server=db;UID=sa;PWD=Xy7kQ92mLp", "PWD=/8fj2Kd93Lq0ZxW7Rt5Pm", "DB_PWD=/etc1x2y3z4w5v6", "PWD=/aB3+xY9/zQ8=",
	} {
		if got := strict.String(s); !strings.Contains(got, Redacted) {
			t.Errorf("%q stays", s)
		}
	}
}
