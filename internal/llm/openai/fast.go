package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// plainEvent is an event that adds text, a reason or the usage and nothing else,
// as nearly every event does. Its parts are valid as long as the event's bytes.
type plainEvent struct {
	model, text, finish []byte
	usage               *usage
}

// readPlain reads such an event; ok is false for all others, and for what is
// not plainly written, which then take the long way through decodeChunk. It
// costs a fifth of that.
func readPlain(data []byte) (e plainEvent, ok bool) {
	p := plain{rest: data}
	choices := false
	ok = p.object(func(key []byte) bool {
		switch string(key) {
		case "choices":
			choices = !choices
			return choices && p.byte('[') && (p.byte(']') || p.choice(&e) && p.byte(']'))
		case "usage":
			return p.null() || p.usage(&e)
		case "error":
			return p.null()
		case "model":
			var whole bool
			e.model, whole = p.quoted()
			return whole
		}
		return p.scalar()
	})
	p.space()
	return e, ok && choices && len(p.rest) == 0
}

// plain reads JSON of one simple shape; what else comes fails.
type plain struct{ rest []byte }

func (p *plain) choice(e *plainEvent) bool {
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return p.byte('0')
		case "delta":
			return p.object(func(key []byte) bool {
				switch string(key) {
				case "role":
					return p.scalar()
				case "content":
					var whole bool
					e.text, whole = p.text()
					return whole
				}
				return p.null()
			})
		case "finish_reason":
			if p.null() {
				return true
			}
			var whole bool
			e.finish, whole = p.quoted()
			return whole
		}
		return p.null()
	})
}

// usage reads the counts of a usage.
func (p *plain) usage(e *plainEvent) bool {
	if e.usage != nil { // twice
		return false
	}
	u := &usage{}
	e.usage = u
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return p.count(&u.Prompt)
		case "completion_tokens":
			return p.count(&u.Completion)
		case "total_tokens":
			return p.count(&u.Total)
		case "prompt_cache_hit_tokens":
			return p.count(&u.CacheHit)
		case "cached_tokens":
			return p.count(&u.Cached)
		case "prompt_tokens_details":
			return p.null() || p.detail("cached_tokens", &u.Details.Cached)
		case "completion_tokens_details":
			return p.null() || p.detail("reasoning_tokens", &u.CompletionDetails.Reasoning)
		}
		return p.scalar()
	})
}

// detail reads an object of which only one count is used.
func (p *plain) detail(name string, n *int) bool {
	return p.object(func(key []byte) bool {
		if string(key) == name {
			return p.count(n)
		}
		return p.scalar()
	})
}

// count reads a whole number that is not negative; null leaves n.
func (p *plain) count(n *int) bool {
	p.space()
	before := p.rest
	if !p.scalar() {
		return false
	}
	digits := string(before[:len(before)-len(p.rest)])
	if digits == "null" {
		return true
	}
	value, err := strconv.ParseInt(digits, 10, 32)
	*n = int(value)
	return err == nil
}

// object reads an object; member reads the value of a key.
func (p *plain) object(member func(key []byte) bool) bool {
	if !p.byte('{') {
		return false
	}
	if p.byte('}') {
		return true
	}
	for {
		key, ok := p.quoted()
		if !ok || !p.byte(':') || !member(key) {
			return false
		}
		if p.byte('}') {
			return true
		}
		if !p.byte(',') {
			return false
		}
	}
}

func (p *plain) space() { p.rest = bytes.TrimLeft(p.rest, " \t\r\n") }

func (p *plain) byte(c byte) bool {
	p.space()
	if len(p.rest) == 0 || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *plain) null() bool {
	p.space()
	var found bool
	p.rest, found = bytes.CutPrefix(p.rest, []byte("null"))
	return found
}

// quoted reads a string without escapes.
func (p *plain) quoted() ([]byte, bool) {
	if !p.byte('"') {
		return nil, false
	}
	for i, c := range p.rest {
		switch {
		case c == '"':
			s := p.rest[:i]
			p.rest = p.rest[i+1:]
			return s, utf8.Valid(s)
		case c == '\\' || c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// text reads a string with its escapes, or null.
func (p *plain) text() ([]byte, bool) {
	p.space()
	before := p.rest
	if s, ok := p.quoted(); ok {
		return s, true
	}
	p.rest = before
	if len(before) == 0 || before[0] != '"' {
		return nil, p.null()
	}
	for i := 1; i < len(before); i++ {
		switch before[i] {
		case '\\':
			i++
		case '"':
			var s string
			p.rest = before[i+1:]
			err := json.Unmarshal(before[:i+1], &s)
			return []byte(s), err == nil
		}
	}
	return nil, false
}

// scalar skips a string, a whole number, or null.
func (p *plain) scalar() bool {
	p.space()
	if len(p.rest) == 0 {
		return false
	}
	switch c := p.rest[0]; {
	case c == '"':
		_, ok := p.quoted()
		return ok
	case c == '0':
		p.rest = p.rest[1:]
		return true
	case '1' <= c && c <= '9':
		n := 1
		for n < len(p.rest) && '0' <= p.rest[n] && p.rest[n] <= '9' {
			n++
		}
		p.rest = p.rest[n:]
		return true
	}
	return p.null()
}
