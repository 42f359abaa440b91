package cloud

import (
	"encoding/json"
	"strings"

	"toritsugi/internal/redact"
)

// schema masks the string values of a JSON document in place, so that it stays
// one; false where a name in it would have to be masked. What is no JSON is
// masked as a text: the provider's client refuses it anyway.
func (v *conversation) schema(doc json.RawMessage) (json.RawMessage, bool) {
	if !json.Valid(doc) {
		return json.RawMessage(v.setting(string(doc))), true
	}
	mask := v.client.rule.Redact
	var out []byte // nil as long as nothing has changed
	done := 0      // of doc, in out
	name := ""     // of the value that comes next, or of the list it stands in
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			if strings.IndexByte("{}]", doc[i]) >= 0 {
				name = ""
			}
			continue
		}
		start := i
		for i++; doc[i] != '"'; i++ {
			if doc[i] == '\\' {
				i++
			}
		}
		var s string
		if err := json.Unmarshal(doc[start:i+1], &s); err != nil {
			return nil, false // cannot be: the document is valid
		}
		if isName(doc[i+1:]) {
			if mask(s) != s {
				return nil, false
			}
			name = s
			continue
		}
		if masked := maskValue(mask, name, s); masked != s {
			quoted, err := json.Marshal(masked)
			if err != nil {
				return nil, false // cannot be: it is a string
			}
			out = append(append(out, doc[done:start]...), quoted...)
			done = i + 1
		}
	}
	if out == nil {
		return doc, true
	}
	out = append(out, doc[done:]...)
	v.opened.countNew(string(doc), string(out))
	return out, true
}

// isName reports whether a string that rest follows names a value.
func isName(rest []byte) bool {
	for _, c := range rest {
		if strings.IndexByte(" \t\r\n", c) < 0 {
			return c == ':'
		}
	}
	return false
}

// maskValue masks a string under its name, which alone may make it a secret.
func maskValue(mask func(string) string, name, s string) string {
	s = mask(s)
	if name == "" || s == "" {
		return s
	}
	if pair := `"` + name + `": "` + s + `"`; mask(pair) != pair {
		return redact.Redacted
	}
	return s
}
