package redact

import (
	"bytes"
	"strings"
)

// Bounds of what a name and its value are looked for in, in bytes.
const (
	maxName  = 64
	maxValue = 8 << 10
)

// keyword matches the value of a name that ends with text at s[at].
func (c *scanner) keyword(text string, at int) {
	end := at + len(text)
	if text == "auth" && at > 0 && is(c.s[at-1], alnum) {
		return // clientAuth, oauth
	}
	if at >= 0 && end <= len(c.s) && equalFold(c.s[at:end], text) {
		if text == "credential" && end < len(c.s) && c.s[end]|0x20 == 's' {
			end++
		}
		c.named(at, end)
	}
}

// pass tells password, passwd, passphrase and pass apart from class and passive.
func (c *scanner) pass(at int) {
	for _, text := range [...]string{"password", "passwd", "passphrase", "passcode", "passport", "pass"} {
		end := at + len(text)
		if end > len(c.s) || !equalFold(c.s[at:end], text) {
			continue
		}
		if text == "pass" && at > 0 && is(c.s[at-1], alnum) || text == "passport" && !c.strict {
			return // bypass=, compass:
		}
		c.named(at, end)
		return
	}
}

// key matches the value of a name that ends with "key" and says what for:
// api_key, secretKey, and any NAME_KEY in capitals.
func (c *scanner) key(at int) {
	s, end := c.s, at+3
	if end < len(s) && is(s[end], word|dash) {
		return
	}
	i := at
	if i > 0 && (s[i-1] == '_' || s[i-1] == '-') {
		i--
	}
	for _, use := range [...]string{
		"api", "access", "secret", "private", "auth", "account", "encryption", "signing",
		"master", "shared", "service", "subscription", "storage", "deploy", "client", "session",
	} {
		if i >= len(use) && equalFold(s[i-len(use):i], use) {
			c.named(at, end)
			return
		}
	}
	if s[at] == 'K' && i < at && i > 0 && is(s[i-1], upper) && s[end-1] == 'Y' {
		c.named(at, end)
	}
}

// innocent are names that end like that of a secret and name none.
var innocent = [...]string{"pagetoken", "nexttoken", "continuationtoken", "synctoken", "publickey", "primarykey", "foreignkey", "sortkey", "partitionkey", "cachekey", "hotkey", "registrykey", "publickeytoken"}

// named matches the value of the name whose last word is s[last:end], in
// whatever form names and values stand together: NAME=value, "name": "value",
// name: value, name := "value", h["Name"] = "value", ("name", "value"),
// --name value, <name>value</name>.
func (c *scanner) named(last, end int) {
	s := c.s
	if end >= len(s) || is(s[end], word) {
		return
	}
	v, ok := assignment(s, last, end)
	if !ok {
		return
	}
	start := last
	for start > 0 && last-start < maxName && is(s[start-1], token) {
		start--
	}
	name := s[start:end]
	if quoted := isQuote(s[end]) || s[end] == '\\'; quoted && (start == 0 || !isQuote(s[start-1])) {
		return // the end of a longer text
	}
	if v.cli && !strings.HasPrefix(name, "--") || v.xml && (start == 0 || s[start-1] != '<') {
		return
	}
	if len(name) > 2 && name[0] == '-' && name[1] != '-' && is(name[2], upper) {
		name = name[2:] // of -eNAME=value, -DNAME=value
	}
	env := v.tight && run(name, 0, upper|digit|under) == len(name)
	whole := env && v.fill(s, end-len(name))
	if !whole {
		v.read(c.s, c.strict)
	}
	if v.nested {
		c.inside(v.start)
		return
	}
	text := s[v.start:v.end]
	if v.block {
		text = strings.Join(strings.Fields(text), "")
	}
	if text == "" || !v.quoted && !whole && v.end < len(s) && strings.IndexByte("([{$", s[v.end]) >= 0 {
		return
	}
	secret := func(text string) bool {
		return secretLike(text, v.quoted || v.xml, env) || c.strict && v.stated(s[last:end], text)
	}
	found := secret(text)
	if v.quoted {
		if all, stop := sum(s, v.start, v.end); stop > v.end && secret(all) {
			text, v.end, found = all, stop, true
		}
	}
	if !found {
		return
	}
	var buf [maxName]byte
	plain := buf[:0]
	for i := range len(name) {
		if is(name[i], alnum) && len(plain) < maxName {
			plain = append(plain, name[i]|0x20)
		}
	}
	for _, n := range innocent {
		if bytes.HasSuffix(plain, []byte(n)) {
			return
		}
	}
	if string(plain) == "auth" && !v.quoted {
		return
	}
	if (name == "PWD" || name == "OLDPWD") && directory(text) {
		return // the shell's working directory
	}
	c.add(span{v.start, v.end, Redacted, kindNamed})
}

// stated reports whether a value is meant as the secret that its name says, even
// where it does not look like one. "token: Assign" and "--- PASS: TestX" are not.
func (v *value) stated(word, text string) bool {
	if v.list || !literal(text, v.quoted) {
		return false
	}
	if v.quoted || v.tight || v.xml {
		return true
	}
	switch len(word) {
	case len("key"), len("pass"), len("token"): // and pwd, auth
		return len(text) >= 6 && strings.ContainsAny(text, "0123456789")
	}
	return true
}

// value is where the value of a name stands and how it got there.
type value struct {
	start, end int
	quoted     bool
	nested     bool // an array or object of a quoted name
	json       bool // the name is quoted and a colon follows
	tight      bool // "=" with nothing around it
	list       bool // a comma stands between
	cli        bool // only a space stands between
	xml        bool
	block      bool // lines of YAML, behind "|" or ">"
}

// assignment reads what stands between a name, which ends at s[end], and its
// value; ok is false where that is no assignment.
func assignment(s string, last, end int) (v value, ok bool) {
	i := end
	slashes := i
	for i < len(s) && s[i] == '\\' {
		i++
	}
	quotedName := i < len(s) && isQuote(s[i])
	if quotedName {
		if i++; i < len(s) && s[i] == ']' {
			i++
		}
	} else if i > slashes {
		return v, false
	}
	at := i
	i = blanks(s, i)
	switch {
	case i >= len(s):
		return v, false
	case strings.HasPrefix(s[i:], ":="), strings.HasPrefix(s[i:], "=>"):
		i += 2
	case s[i] == '=' && (i+1 == len(s) || s[i+1] != '='), s[i] == ':' && (i+1 == len(s) || s[i+1] != ':'):
		v.json = quotedName && s[i] == ':'
		v.tight = s[i] == '=' && i == at
		i++
	case s[i] == ',' && quotedName:
		v.list = true
		i++
	case s[i] == '>' && i == at && !quotedName:
		v.xml = true
		v.start = i + 1
		return v, true
	case i > at && !quotedName && last > 1:
		v.cli = true
	default:
		return v, false
	}
	v.start = blanks(s, i)
	if first := blockScalar(s, v.start); s[i-1] == ':' && first > 0 {
		v.start, v.block = first, true
	}
	v.tight = v.tight && v.start == i
	// A type may stand between: password: str = "…".
	if !quotedName && !v.tight && !v.cli && s[i-1] == ':' {
		if word := run(s, v.start, word); word > v.start {
			if eq := blanks(s, word); eq > word && eq+1 < len(s) && s[eq] == '=' && s[eq+1] == ' ' {
				v.start = blanks(s, eq+1)
			}
		}
	}
	return v, v.start < len(s)
}

// blockScalar returns where the first line begins of a value of YAML that stands
// below its mark at s[i]; 0 where none does.
func blockScalar(s string, i int) int {
	if i >= len(s) || s[i] != '|' && s[i] != '>' {
		return 0
	}
	for i++; i < len(s) && (is(s[i], digit) || s[i] == '-' || s[i] == '+'); i++ {
	}
	if i = blanks(s, i); i < len(s) && s[i] == '\r' {
		i++
	}
	if i == len(s) || s[i] != '\n' {
		return 0
	}
	if first := blanks(s, i+1); first > i+1 {
		return first
	}
	return 0
}

// lines reads the lines of a block, of one word each.
func (v *value) lines(s string) {
	indent := 0
	for s[v.start-1-indent] == ' ' || s[v.start-1-indent] == '\t' {
		indent++
	}
	for i := v.start; i < min(len(s), v.start+maxPieces); {
		end := i
		for end < len(s) && s[end] > ' ' {
			end++
		}
		if end == i || end < len(s) && s[end] != '\n' && s[end] != '\r' {
			return
		}
		v.end = end
		for end < len(s) && (s[end] == '\n' || s[end] == '\r') {
			end++
		}
		if i = blanks(s, end); i-end != indent {
			return
		}
	}
}

// blanks skips a few spaces and tabs.
func blanks(s string, i int) int {
	for stop := min(len(s), i+16); i < stop && (s[i] == ' ' || s[i] == '\t'); i++ {
	}
	return i
}

// read finds where the value ends.
func (v *value) read(s string, strict bool) {
	i := v.start
	v.end = i
	if v.block {
		v.lines(s)
		return
	}
	if v.xml {
		for stop := min(len(s), i+maxValue); i < stop && s[i] != '<' && s[i] >= ' '; i++ {
		}
		if i < len(s) && s[i] == '<' && i+1 < len(s) && s[i+1] == '/' {
			v.end = i
		}
		return
	}
	if strict && v.json && (s[i] == '[' || s[i] == '{') {
		v.nested = true
		return
	}
	// The letter of b"…" and r'…'.
	if i+1 < len(s) && is(s[i], lower) && strings.IndexByte("\"'", s[i+1]) >= 0 && strings.IndexByte("bru", s[i]) >= 0 {
		i++
	}
	open := i
	for i < len(s) && s[i] == '\\' {
		i++
	}
	if i < len(s) && isQuote(s[i]) {
		if end := closing(s, i+1, s[i], i-open); end > 0 {
			v.start, v.end, v.quoted = i+1, end, true
			return
		}
		// The quotes are closed in another line, or nowhere.
		line := i + 1
		for stop := min(len(s), line+maxValue); line < stop && s[line] > ' ' && s[line] != '\\' && !isQuote(s[line]); line++ {
		}
		if line == len(s) || s[line] == '\n' || s[line] == '\r' {
			v.start, v.end = i+1, line
		}
		return
	}
	i = open
	for stop := min(len(s), i+maxValue); i < stop && (is(s[i], token|local) || strings.IndexByte("/~!@#^*?", s[i]) >= 0); i++ {
	}
	for pad := i; i < len(s) && i-pad < 2 && s[i] == '='; i++ {
	}
	v.end = i
	for v.end > v.start && strings.IndexByte(".!?", s[v.end-1]) >= 0 {
		v.end-- // of the sentence
	}
}

// fill reports whether the value fills the rest of the quotes in which its name,
// at s[name], stands first, as in ["NAME=value"], and ends it there.
func (v *value) fill(s string, name int) bool {
	if name == 0 || !isQuote(s[name-1]) {
		return false
	}
	open := name - 1
	for open > 0 && s[open-1] == '\\' {
		open--
	}
	end := closing(s, v.start, s[name-1], name-1-open)
	if end == 0 || strings.ContainsAny(s[v.start:end], " \t\\") {
		return false
	}
	v.end = end
	return true
}

// closing returns where the string ends whose body begins at s[i] and whose
// opening quote has so many backslashes before it (JSON in a JSON string); 0
// where it does not end on its line.
func closing(s string, i int, quote byte, slashes int) int {
	const tooDeep = 7
	if slashes > tooDeep || slashes&(slashes+1) != 0 {
		return 0
	}
	back := 0
	for stop := min(len(s), i+maxValue); i < stop; i++ {
		switch s[i] {
		case '\\':
			back++
			continue
		case '\n':
			if quote != '`' {
				return 0
			}
		case quote:
			if back%(2*(slashes+1)) == slashes {
				return i - slashes
			}
		}
		back = 0
	}
	return 0
}

// inside masks every text and number below the bracket at s[i]: what stands
// under the name of a secret in structured data.
func (c *scanner) inside(i int) {
	if i < c.read {
		return
	}
	s, depth := c.s, 0
	defer func() { c.read = max(c.read, i) }()
	for stop := min(len(s), i+maxValue); i < stop; {
		switch b := s[i]; {
		case b == '[' || b == '{':
			if mask := maskAt(s, i); mask != "" {
				i += len(mask)
				continue
			}
			depth++
		case b == ']' || b == '}':
			if depth--; depth == 0 {
				return
			}
		case b == '"':
			slashes := 0
			for i-slashes > 0 && s[i-slashes-1] == '\\' {
				slashes++
			}
			end := closing(s, i+1, '"', slashes)
			if end == 0 {
				return
			}
			next := end + slashes + 1
			if j := blanks(s, next); (j == len(s) || s[j] != ':') && literal(s[i+1:end], true) {
				c.add(span{i + 1, end, Redacted, kindNamed})
			}
			i = next
			continue
		case is(b, digit):
			end := run(s, i, digit|local)
			if end-i >= 3 {
				c.add(span{i, end, Redacted, kindNamed})
			}
			i = end
			continue
		}
		i++
	}
}
