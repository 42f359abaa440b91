package redact

import "strings"

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	// maxPEM bounds the search for an end, in bytes; a 16384-bit RSA key has
	// 12 kB.
	maxPEM = 64 << 10
	// minPEM is the base64 that must stand in one run for a text to be a key
	// and not code that names the markers.
	minPEM = 24
)

// privateKey matches a whole PEM block of a private key (RFC 7468, and the
// older forms with headers) that begins at s[i], also inside a quoted string or
// a diff. A block that was cut off is matched as far as its base64 goes.
func privateKey(s string, i int) span {
	if i < 0 || !strings.HasPrefix(s[i:], pemBegin) {
		return span{}
	}
	head := i + len(pemBegin)
	labelEnd := head
	for stop := min(len(s), head+64); labelEnd < stop && (is(s[labelEnd], upper|digit) || s[labelEnd] == ' '); labelEnd++ {
	}
	label := s[head:labelEnd]
	if !strings.HasPrefix(s[labelEnd:], "-----") ||
		!strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") {
		return span{}
	}
	body := skipHeaders(s, labelEnd+len("-----"))
	keyEnd := 0
	for at := body; at < len(s) && at-body < maxPEM; {
		if end := run(s, at, alnum|b64); end > at {
			if end-at >= minPEM || keyEnd > 0 && lastLine(s, end) {
				keyEnd = end
			}
			at = end
			continue
		}
		if s[at] == '-' {
			rest := s[at:]
			if strings.HasPrefix(rest, pemBegin) {
				break
			}
			if strings.HasPrefix(rest, pemEnd) {
				if end := pemEnd + label + "-----"; keyEnd > 0 && strings.HasPrefix(rest, end) {
					return span{i, at + len(end), Redacted, kindKey}
				}
				break
			}
		}
		if t := maskAt(s, at); t != "" {
			// A part of it was masked before: the rest still goes.
			keyEnd = at + len(t)
			at = keyEnd
			continue
		}
		if strings.IndexByte(" \t\r\n\\\"',:-|>#*", s[at]) < 0 {
			break
		}
		at++
	}
	if keyEnd == 0 {
		return span{}
	}
	return span{i, keyEnd, Redacted, kindKey}
}

// lastLine reports whether the run that ends at s[end] can be the short last
// line of a cut block: nothing but the line's end follows.
func lastLine(s string, end int) bool {
	return end == len(s) || s[end] == '\n' || s[end] == '\r' || s[end] == '\\' || s[end] == '"'
}

// skipHeaders returns where the lines such as "Version: GnuPG v2 (Linux)" end
// that may stand behind the first line of a block.
func skipHeaders(s string, at int) int {
	for range 10 {
		i := at
		for stop := min(len(s), at+8); i < stop && strings.IndexByte(" \t\r\n\\\"',+-", s[i]) >= 0; i++ {
			if s[i] == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == 'r') {
				i++
			}
		}
		name := run(s, i, upper|lower|dash)
		if name == i || name-i > 32 || !strings.HasPrefix(s[name:], ": ") {
			return at
		}
		line := s[name:min(len(s), name+200)]
		end := strings.IndexByte(line, '\n')
		if escaped := strings.Index(line, `\n`); escaped >= 0 && (end < 0 || escaped < end) {
			end = escaped
		}
		if end < 0 {
			return at
		}
		at = name + end
	}
	return at
}

// keyTail matches the rest of a private key whose beginning is missing, at the
// "-----END " that begins at s[i]: the lines of base64 above it.
func keyTail(s string, i int) span {
	if i <= 0 || !strings.HasPrefix(s[i:], pemEnd) {
		return span{}
	}
	label := s[i+len(pemEnd) : min(len(s), i+len(pemEnd)+64)]
	n := strings.Index(label, "-----")
	if n < 0 || !strings.HasSuffix(label[:n], "PRIVATE KEY") && !strings.HasSuffix(label[:n], "PRIVATE KEY BLOCK") {
		return span{}
	}
	start, whole := 0, false
	for at, first := i, true; i-at < maxPEM; first = false {
		end := lineBreaks(s, at)
		if end == at {
			break
		}
		from := end
		for from > 0 && is(s[from-1], alnum|b64) {
			from--
		}
		if from > 0 && from < end && s[from-1] == '\\' && s[from] == 'n' {
			from++
		}
		if end-from < 40 && !first || end == from {
			break
		}
		whole = whole || end-from >= minPEM
		start, at = from, from
	}
	if !whole {
		return span{}
	}
	return span{start, i + len(pemEnd) + n + len("-----"), Redacted, kindKey}
}

// lineBreaks returns where the line break before s[at] begins, with what quotes
// or marks the lines; at where there is none.
func lineBreaks(s string, at int) int {
	i, found := at, false
	for i > 0 && at-i < 32 {
		switch c := s[i-1]; {
		case c == '\n':
			found = true
		case c == 'n' && i >= 2 && s[i-2] == '\\':
			found = true
			i--
		case strings.IndexByte(" \t\r\"',+>|-", c) < 0:
			if found {
				return i
			}
			return at
		}
		i--
	}
	if found {
		return i
	}
	return at
}
