package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestArguments: what servers that parse arguments would refuse goes as the text
// that it is.
func TestArguments(t *testing.T) {
	t.Parallel()
	for raw, same := range map[string]bool{
		` {"a": 1}`: true, `{"a":1e308,"b":-1.5E+3,"c":1e-999}`: true, `{"a":"1e999"}`: true, `{"a":"x1e999y","b":100000e100}`: true,
		`{"a":123456789012345678901234567890}`: true, `{"a":"` + strings.Repeat("9", 400) + `"}`: true, `{"id":"3e1234567"}`: true,
		`{"a":1e999}`: false, `{"a":[{"b":-1.5E+400}]}`: false, `{"a":` + strings.Repeat("9", 400) + `}`: false, `{"a":1e0400}`: false,
		`{"a":`: false, `[1]`: false, `null`: false, `"a"`: false, `{} x`: false,
	} {
		got := Arguments(raw)
		var v map[string]any
		if err := json.Unmarshal([]byte(got), &v); err != nil || (got == raw) != same || !same && v["malformed_arguments"] != raw {
			t.Errorf("%.60s: %v, %.80s", raw, err, got)
		}
	}
	for _, none := range []string{"", " \n"} {
		if got := Arguments(none); got != "{}" {
			t.Errorf("%q: %s", none, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`\{"a":-?[1-9][0-9]{0,3}(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,4})?\}`), rapid.StringMatching(`\{"[0-9e]{0,5}":"[0-9eE+]{0,9}"\}`)).Draw(t, "text")
		var whole, sent map[string]any
		fine := json.Unmarshal([]byte(text), &whole) == nil && whole != nil
		got := Arguments(text)
		if err := json.Unmarshal([]byte(got), &sent); err != nil || fine && got != text {
			t.Fatalf("%q, which is fine: %v, is sent as %q: %v", text, fine, got, err)
		}
	})
}

// TestAppendString: what is written is read back, with what is no UTF-8 replaced.
func TestAppendString(t *testing.T) {
	t.Parallel()
	back := func(s string) (got string) {
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		return got
	}
	for c := range 256 {
		if s := "1234" + string([]byte{byte(c)}) + "567890"; back(s) != string([]rune(s)) {
			t.Errorf("%q: %q", s, back(s))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "s")); back(s) != string([]rune(s)) {
			t.Fatalf("%q: %q", s, back(s))
		}
	})
}
