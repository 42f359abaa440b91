package contextstore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quickMessage decodes a line as we write it, several times as fast as
// encoding/json, so that a window is read in the time it is given (DESIGN §9).
// Whatever is out of the ordinary (a name that it does not know, an error) is
// not ok and left to encoding/json; what is ok is what that would return.
func quickMessage(line []byte) (m Message, ok bool) {
	s := scanner{b: line}
	if !s.take('{') {
		return m, false
	}
	for {
		key, ok := s.plain()
		if !ok || !s.take(':') || !s.field(&m, string(key)) {
			return m, false
		}
		if s.take(',') {
			continue
		}
		ok = s.take('}') && s.i == len(s.b) && m.Seq > 0 && m.Role != ""
		return m, ok
	}
}

// scanner walks over one line of compact JSON. Its methods return false where
// the line is not what they expect.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) take(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// field reads the value of a key of Message.
func (s *scanner) field(m *Message, key string) bool {
	switch key {
	case "seq":
		return s.integer(&m.Seq)
	case "role":
		return s.text(&m.Role)
	case "tool_name":
		return s.text(&m.ToolName)
	case "content":
		return s.text(&m.Content)
	case "timestamp":
		return s.timestamp(&m.Timestamp)
	case "tokens":
		var n int64
		ok := s.integer(&n)
		m.Tokens = int(n)
		return ok
	case "sum":
		return s.integer(&m.Sum)
	case "tool_call_id":
		return s.text((*string)(&m.ToolCallID))
	case "tool_calls":
		return m.ToolCalls == nil && s.calls(m)
	case "reasoning_content":
		return s.text(&m.Reasoning)
	case "provider_parts":
		return s.text((*string)(&m.Provider))
	case "finish_reason":
		return s.text(&m.FinishReason)
	case "usage":
		return m.Usage == nil && s.usage(m)
	case "answered_by":
		return s.text(&m.AnsweredBy)
	case "failed":
		return s.flag(&m.Failed)
	case "pinned":
		return s.flag(&m.Pinned)
	case "kind":
		return s.text(&m.Kind)
	case "images":
		return m.Images == nil && s.images(m)
	}
	return false
}

// calls, usage and images decode into values of their own, so that a Message without
// them need not be made on the heap.
func (s *scanner) calls(m *Message) bool {
	start := s.i
	if all, ok := s.plainCalls(); ok {
		m.ToolCalls = all
		return true
	}
	s.i = start
	var v []ToolCall
	ok := s.value(&v)
	m.ToolCalls = v
	return ok
}

// plainCalls reads calls with the three members that we write, in our order.
func (s *scanner) plainCalls() (all []ToolCall, ok bool) {
	if !s.take('[') {
		return nil, false
	}
	for {
		var c ToolCall
		if !s.take('{') || !s.member("id", (*string)(&c.ID)) || !s.take(',') || !s.member("name", &c.Name) || !s.take(',') ||
			!s.member("arguments", &c.Arguments) || !s.take('}') {
			return nil, false
		}
		all = append(all, c)
		if !s.take(',') {
			return all, s.take(']')
		}
	}
}

// member reads a text by its name.
func (s *scanner) member(name string, to *string) bool {
	key, ok := s.plain()
	return ok && string(key) == name && s.take(':') && s.text(to)
}

func (s *scanner) usage(m *Message) bool {
	v := new(Usage)
	m.Usage = v
	return s.value(v)
}

func (s *scanner) images(m *Message) bool {
	var v []Image
	ok := s.value(&v)
	m.Images = v
	return ok
}

// quoted passes a string and returns it with its quotes; escaped tells whether
// there is a backslash in it.
func (s *scanner) quoted() (raw []byte, escaped, ok bool) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return nil, false, false
	}
	for i := s.i + 1; i < len(s.b); i++ {
		for i+8 <= len(s.b) && ordinary(binary.LittleEndian.Uint64(s.b[i:])) {
			i += 8
		}
		if i == len(s.b) {
			break
		}
		switch c := s.b[i]; {
		case c == '\\':
			escaped = true
			i++
		case c == '"':
			raw = s.b[s.i : i+1]
			s.i = i + 1
			return raw, escaped, true
		case c < ' ':
			return nil, false, false
		}
	}
	return nil, false, false
}

// ordinary reports that none of eight bytes is a quote, a backslash or a control
// character. Source: "Determine if a word has a byte less than n", Bit Twiddling Hacks.
func ordinary(v uint64) bool {
	const each, high = ^uint64(0) / 255, ^uint64(0) / 255 * 128
	quote, slash := v^each*'"', v^each*'\\'
	return ((v-each*' ')&^v|(quote-each)&^quote|(slash-each)&^slash)&high == 0
}

// plain passes a string without escapes and returns what is in it.
func (s *scanner) plain() ([]byte, bool) {
	raw, escaped, ok := s.quoted()
	if !ok || escaped {
		return nil, false
	}
	return raw[1 : len(raw)-1], true
}

// The words that messages share are not copied for each.
var words = [...]string{"assistant", "tool", "user", "system", "stop", "tool_calls"}

func (s *scanner) text(to *string) (ok bool) {
	raw, escaped, ok := s.quoted()
	if !ok {
		return false
	}
	raw = raw[1 : len(raw)-1]
	if escaped {
		*to, ok = unescape(raw)
		return ok
	}
	for _, w := range words {
		if string(raw) == w {
			*to = w
			return true
		}
	}
	*to = string(raw)
	return utf8.Valid(raw)
}

// escapes are the characters that a backslash and a letter stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape returns what is between the quotes of a string.
func unescape(raw []byte) (string, bool) {
	if !utf8.Valid(raw) {
		return "", false
	}
	var out strings.Builder
	out.Grow(len(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			out.Write(raw)
			return out.String(), true
		}
		out.Write(raw[:i])
		raw = raw[i+1:]
		if c := escapes[raw[0]]; c != 0 {
			out.WriteByte(c)
			raw = raw[1:]
			continue
		}
		r, ok := hex4(raw)
		if !ok {
			return "", false
		}
		raw = raw[5:]
		if utf16.IsSurrogate(r) { // one half of a character; alone it is none
			low := rune(0)
			if len(raw) > 0 && raw[0] == '\\' {
				low, _ = hex4(raw[1:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				raw = raw[6:]
			}
		}
		out.WriteRune(r)
	}
}

// hex4 reads a u and four hexadecimal digits.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	for _, d := range b[1:5] {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d|0x20 && d|0x20 <= 'f':
			d = d | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// integer reads a number from 0 on that int64 surely holds.
func (s *scanner) integer(to *int64) bool {
	start := s.i
	var n int64
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		n = 10*n + int64(s.b[s.i]-'0')
		s.i++
	}
	*to = n
	digits := s.i - start
	return digits > 0 && digits <= 18 && (s.b[start] != '0' || digits == 1)
}

func (s *scanner) flag(to *bool) bool {
	rest := s.b[s.i:]
	switch {
	case bytes.HasPrefix(rest, []byte("true")):
		*to = true
		s.i += len("true")
	case bytes.HasPrefix(rest, []byte("false")):
		*to = false
		s.i += len("false")
	default:
		return false
	}
	return true
}

func (s *scanner) timestamp(to *Time) bool {
	raw, escaped, ok := s.quoted()
	return ok && !escaped && to.UnmarshalJSON(raw) == nil
}

// value passes an array or object and decodes it into to.
func (s *scanner) value(to any) bool {
	start, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			if _, _, ok := s.quoted(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
			if depth == 0 {
				return false
			}
		}
		s.i++
		if depth == 0 {
			return json.Unmarshal(s.b[start:s.i], to) == nil
		}
	}
	return false
}
