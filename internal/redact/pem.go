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
	head := i + len(pemBegin)
	labelEnd := head
	for stop := min(len(s), head+64); labelEnd < stop && (is(s[labelEnd], upper|digit) || s[labelEnd] == ' '); labelEnd++ {
	}
	label := s[head:labelEnd]
	if !strings.HasPrefix(s[labelEnd:], "-----") ||
		!strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") {
		return span{}
	}
	body := labelEnd + len("-----")
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
					return span{i, at + len(end), PrivateKey}
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
	return span{i, keyEnd, PrivateKey}
}

// lastLine reports whether the run that ends at s[end] can be the short last
// line of a cut block: nothing but the line's end follows.
func lastLine(s string, end int) bool {
	return end == len(s) || s[end] == '\n' || s[end] == '\r' || s[end] == '\\' || s[end] == '"'
}
