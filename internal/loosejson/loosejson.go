// Package loosejson reads JSON as language models write it: with single quotes,
// missing commas, True and None, line breaks within texts. What cannot be read
// without a loss is left to whoever wrote it.
package loosejson

import (
	"encoding/json"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// maxRepair is the longest text that is repaired, in bytes: the repair goes back
// over what it wrote, and its time grows with the square. 32 KiB of nothing but "[" take
// some three seconds, 256 KiB minutes.
const maxRepair = 32 << 10

// Repair returns what s means as JSON: s itself where it is valid. whole is false
// where s ends before its JSON does, so that a text in it may be half of what was
// to be said. ok is false where it cannot be told what s means, or where a part
// of it would be lost.
func Repair(s string) (fixed string, whole, ok bool) {
	if json.Valid([]byte(s)) {
		return s, true, true
	}
	if len(s) > maxRepair || strings.TrimSpace(s) == "" {
		return "", false, false
	}
	// The library has met texts that it panics on (kaptinlin/jsonrepair#7).
	defer func() {
		if recover() != nil {
			fixed, whole, ok = "", false, false
		}
	}()
	fixed, err := jsonrepair.Repair(s)
	fixed = strings.TrimSpace(fixed)
	// It drops the backslash of an escape that JSON does not know, as in "\d".
	if err != nil || !json.Valid([]byte(fixed)) || strings.Count(fixed, `\`) < strings.Count(strings.ReplaceAll(s, `\'`, `'`), `\`) {
		return "", false, false
	}
	return fixed, closes(s) == closes(fixed), true
}

// closes is how s ends: with its last bracket, and whether a quote stands before.
func closes(s string) (end [2]bool) {
	s = strings.TrimRight(s, " \t\r\n`,;")
	if s == "" {
		return end
	}
	end[0] = strings.ContainsAny(s[len(s)-1:], "}]")
	s = strings.TrimRight(s, "}] \t\r\n,")
	end[1] = s != "" && strings.ContainsAny(s[len(s)-1:], `"'`)
	return end
}
