package broker

import (
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	f := newFilter()
	for text, want := range map[string]string{
		"how to reset a password": "", "[EMAIL] とは": "", "https://go.dev/doc/go1.26#x": "", "100% sure": "", "日本語の検索": "",
		known: "[REDACTED]", "https://a.example/?q=" + known: "[REDACTED]", "https://a.example/" + strings.ReplaceAll(known, known[:1], "%"+hexOf(known[0])): "[REDACTED]",
		b64(known): "[REDACTED]", github: "[GITHUB_TOKEN]", "hanako@example.com": "[EMAIL]", "https://a.example/hanako%40example.com": "[EMAIL]", "090-1234-5678": "[REDACTED]",
		strings.Repeat("x", maxURL+1): "2049 bytes",
	} {
		if err := f.Lookup(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func hexOf(c byte) string {
	const digits = "0123456789ABCDEF"
	return string([]byte{digits[c>>4], digits[c&15]})
}
