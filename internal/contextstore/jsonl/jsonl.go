// Package jsonl writes, reads and mends files of JSON lines: one compact object in each
// line, from the first to the last and from the last to the first, and their ends after a
// crash. It writes only through disk.
package jsonl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
)

// TimeLayout is UTC, fixed width, six decimals (spec/README "ids and times").
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// Time is a timestamp in the ledger's one format.
type Time struct{ time.Time }

// MarshalJSON writes the fixed-width form.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.UTC().Format(TimeLayout) + `"`), nil
}

// Written is t as the files hold it.
func (t Time) Written() Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// UnmarshalJSON reads what Parse does, and null as the zero time.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	if len(b) < 2 || b[0] != '"' {
		return fmt.Errorf("time %s is no string", b)
	}
	v, err := Parse(string(b[1 : len(b)-1])) // no time has an escape in it
	if err == nil {
		*t = v
	}
	return err
}

// Parse reads any RFC 3339 time, and one without a zone, also as SQLite's datetime gives it, as UTC.
func Parse(s string) (Time, error) {
	v, err := time.Parse(time.RFC3339Nano, s)
	for _, layout := range []string{"2006-01-02T15:04:05", time.DateTime} {
		if err == nil {
			break
		}
		if local, lerr := time.Parse(layout, s); lerr == nil {
			return Time{local}, nil
		}
	}
	return Time{v}, err
}

// String is the form of the files, or "" for the zero time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(TimeLayout)
}

var encoders = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Append appends v to b as one line of compact JSON with <, > and & as
// they are, so that grep finds what people look for (store-v2 §9.1).
func Append(b []byte, v any) ([]byte, error) {
	buf := encoders.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= 64<<10 { // a huge line is not kept for those to come
			encoders.Put(buf)
		}
	}()
	buf.Reset()
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return b, fmt.Errorf("encode %T: %w", v, err)
	}
	return append(b, buf.Bytes()...), nil
}

// Marshal is json.Marshal with <, > and & as they are.
func Marshal(v any) (json.RawMessage, error) {
	line, err := Append(nil, v)
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// Check returns an error unless a line is a JSON object.
func Check(line []byte) error {
	if !json.Valid(line) || len(line) == 0 || line[0] != '{' {
		return fmt.Errorf("not a JSON object")
	}
	return nil
}

// Decode decodes a line that must be a JSON object.
func Decode(line []byte, v any) error {
	if err := Check(line); err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

// Valid replaces each byte that is no UTF-8 by U+FFFD, as JSON does when it is
// read back: a resumed run sends the same bytes as a live one.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// Keep is a JSON object with the fields that another one has besides, as they stand there, also
// within objects that both have. Neither is changed.
func Keep(object, other []byte) ([]byte, error) {
	names, fields, err := fieldsOf(object)
	if err != nil {
		return nil, err
	}
	more, besides, err := fieldsOf(other)
	if err != nil {
		return nil, err
	}
	for _, name := range more {
		have, known := fields[name]
		switch {
		case !known:
			names, fields[name] = append(names, name), besides[name]
		case Check(have) == nil && Check(besides[name]) == nil:
			if fields[name], err = Keep(have, besides[name]); err != nil {
				return nil, err
			}
		}
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range names {
		quoted, err := Marshal(name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoted)
		b.WriteByte(':')
		if err := json.Compact(&b, fields[name]); err != nil {
			return nil, err
		}
	}
	return append(b.Bytes(), '}'), nil
}

// fieldsOf are the fields of a JSON object, in their order.
func fieldsOf(object []byte) (names []string, fields map[string]json.RawMessage, err error) {
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(object))
	_, err = d.Token()
	for told := map[string]bool{}; err == nil && d.More(); {
		var t json.Token
		if t, err = d.Token(); err == nil {
			if name, _ := t.(string); !told[name] { // the key of an object is a text
				names, told[name] = append(names, name), true
			}
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
	}
	return names, fields, err
}

// Redact redacts every text of a compact JSON value and leaves the rest, the
// order of fields too, as it is. What is a secret only by what stands around it
// is masked as well; a value that is no JSON object any more after that becomes
// {"redacted": text}: it is lost to programs, and nothing leaks.
func Redact(raw []byte, clean func(string) string) ([]byte, error) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			out = append(out, raw[i])
			i++
			continue
		}
		end := i + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(raw))
		var err error
		if out, err = appendClean(out, raw[i:end], clean); err != nil {
			return nil, err
		}
		i = end
	}
	whole := clean(string(out))
	if whole == string(out) {
		return out, nil
	}
	if Check([]byte(whole)) == nil {
		return []byte(whole), nil
	}
	return Marshal(map[string]string{"redacted": whole})
}

// appendClean appends a JSON string, redacted; one that holds nothing to redact
// as it is.
func appendClean(out, literal []byte, clean func(string) string) ([]byte, error) {
	var s string
	if err := json.Unmarshal(literal, &s); err != nil {
		return nil, err
	}
	if c := clean(s); c != s || !utf8.Valid(literal) {
		text, err := Marshal(c)
		return append(out, text...), err
	}
	return append(out, literal...), nil
}
