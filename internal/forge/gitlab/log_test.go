package gitlab

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestTail(t *testing.T) {
	all := []byte(strings.Repeat("0123456789abcdef", 20_000))
	for _, n := range []int{0, 1, mostTail - 1, mostTail, mostTail + 1, 2 * mostTail, 2*mostTail + 1, len(all)} {
		for name, r := range map[string]func() ([]byte, error){
			"whole":   func() ([]byte, error) { return tail(bytes.NewReader(all[:n])) },
			"by half": func() ([]byte, error) { return tail(iotest.HalfReader(bytes.NewReader(all[:n]))) },
			"at end":  func() ([]byte, error) { return tail(iotest.DataErrReader(bytes.NewReader(all[:n]))) },
		} {
			if got, err := r(); err != nil || !bytes.Equal(got, all[max(0, n-mostTail):n]) {
				t.Errorf("%d %s: %d bytes, %v", n, name, len(got), err)
			}
		}
	}
	if _, err := tail(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(all[:9])))); err == nil {
		t.Error("a log that breaks off is none")
	}
}

func FuzzReadable(f *testing.F) {
	for _, s := range []string{"", "\x1b[0Ksection_start:1:a[collapsed=true]\r\x1b[0Kline\r\n", strings.Repeat("長い行 ", 5000), "\xff\xfe", "a\rb\r\n" + strings.Repeat("x\n", 9000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := readable(s)
		if len(got) > 8<<10 || !utf8.ValidString(got) || strings.ContainsAny(got, "\r") {
			t.Errorf("%q", got)
		}
	})
}

func FuzzHarmless(f *testing.F) {
	for _, s := range []string{"/close", "a\n/merge\n", "\r/close", "```\n/close\n```", "//x", " /x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := harmless(s)
		if again := harmless(got); again != got {
			t.Errorf("%q, again %q", got, again)
		}
		for line := range strings.SplitSeq(strings.TrimLeft(strings.ReplaceAll(got, "\r", ""), " \t\n"), "\n") { // as the server reads it
			if len(line) > 1 && line[0] == '/' && (line[1]|0x20) >= 'a' && (line[1]|0x20) <= 'z' {
				t.Errorf("%q carries %q out", got, line)
			}
		}
	})
}
