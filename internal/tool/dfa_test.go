package tool

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lineOf is the line around a place, without its end.
func lineOf(text []byte, at int) []byte {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	line := text[from:]
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		line = text[from : at+i]
	}
	return bytes.TrimSuffix(line, []byte("\r"))
}

// sieveAgrees checks that no line that matches is passed over.
func sieveAgrees(t interface{ Fatalf(string, ...any) }, expr string, text []byte) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return
	}
	s := newSieve(expr)
	if s == nil {
		return
	}
	for len(text) > 0 {
		at := s.find(text)
		end := len(text)
		if at >= 0 {
			end = bytes.LastIndexByte(text[:at], '\n') + 1
		}
		for line := range bytes.Lines(text[:end]) {
			if line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")); re.Match(line) {
				t.Fatalf("%q matches the line %q, which was passed over in %q", expr, line, text)
			}
		}
		if at < 0 {
			return
		}
		_, text, _ = bytes.Cut(text[at:], []byte("\n"))
	}
}

// On ASCII the sieve does not only miss nothing, it is exact.
func TestSieveIsExactOnASCII(t *testing.T) {
	t.Parallel()
	text := "foo\nfoo bar\r\n\n  x = 12;\nFOO\nfood_bar\n(a)(b)\rc\nend"
	for _, expr := range []string{
		"foo", "^foo$", "bar$", `\bfoo\b`, `\Boo\B`, "^$", "^", "$", "(?i)foo", "x\\s*=\\s*[0-9]+;", "o{2}d", "a.*c", "[^a-z\\s]+", "end$", "nothing", "(foo|end)", "f?", "^\\s", `\(a\)`,
		"(?m)^bar", `\Aend\z`, ".", "..........", `\W`, "x{3,}", "[[:upper:]]{3}",
	} {
		re, s := regexp.MustCompile(expr), newSieve(expr)
		var want, got []string
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); re.MatchString(line) {
				want = append(want, line)
			}
		}
		rest := []byte(text)
		for len(rest) > 0 {
			at := s.find(rest)
			if at < 0 {
				break
			}
			got = append(got, string(lineOf(rest, at)))
			_, rest, _ = bytes.Cut(rest[at:], []byte("\n"))
		}
		if strings.Join(got, "⏎") != strings.Join(want, "⏎") {
			t.Errorf("%q found %q, want %q", expr, got, want)
		}
	}
}

func TestSieveMissesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		atom := rapid.SampledFrom([]string{"a", "b", ".", "^", "$", `\b`, `\B`, `\w`, `\s`, `\d`, "(?i)", "(", ")", "|", "*", "+", "?", "{2}", "[a-c]", "[^a]", "é", "日", "[é-ü]", `\pL`, "k", "\ufffd", `\x{fffd}`, `\z`, "(?m)", "(?s)", "K"})
		expr := strings.Join(rapid.SliceOfN(atom, 1, 7).Draw(t, "expr"), "")
		piece := rapid.SampledFrom([]string{"a", "b", "c", "A", "_", " ", "\n", "\r\n", "\r", "é", "日", "\xff", "\xe6\x97", "k", "\u212a", "1", "\x00"})
		sieveAgrees(t, expr, []byte(strings.Join(rapid.SliceOfN(piece, 0, 15).Draw(t, "text"), "")))
	})
}

func FuzzSieve(f *testing.F) {
	f.Add(`a.*b$`, "ab\r\nxx")
	f.Add(`(?i)\bk`, "\u212a\xff\n")
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) < 100 && len(text) < 1000 {
			sieveAgrees(t, expr, []byte(text))
		}
	})
}

// An expression with very many states is worked out in bounded memory.
func TestSieveIsBounded(t *testing.T) {
	t.Parallel()
	s := newSieve(`[ab]*a[ab]{14}c`)
	text := make([]byte, 200_000)
	for i, x := 0, uint32(1); i < len(text); i++ {
		x = x*1664525 + 1013904223
		text[i] = "ab"[x>>31]
	}
	if at := s.find(text); at >= 0 {
		t.Errorf("found %d", at)
	}
	if len(s.states) > maxSieveStates+1 {
		t.Errorf("%d states are kept", len(s.states))
	}
	if newSieve(`(\pL{100}){100}`) != nil {
		t.Error("a sieve of a very large expression was made")
	}
}
