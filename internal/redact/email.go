package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// email matches an address at its "@", also one with letters beyond ASCII (RFC
// 6531). What only looks like one is left alone: package versions
// (react@18.2.0), image scales (logo@2x.png), git remotes (git@host:o/r.git),
// decorators (@foo.bar), hosts without a top-level domain.
func email(s string, at int) span {
	start := localStart(s, at)
	if start == at || s[start:at] == "git" {
		return span{}
	}
	end := domainEnd(s, at+1)
	if end == 0 || s[at-1] >= utf8.RuneSelf && !clearly(s[:at], s[at+1:end]) {
		return span{}
	}
	return span{start, end, Email, kindEmail}
}

// clearly reports whether what follows a text and an "@" can be nothing but a
// domain: where words are not set apart, a decorator follows them directly.
func clearly(before, domain string) bool {
	if r, _ := utf8.DecodeLastRuneInString(before); apart(r) || strings.IndexFunc(domain, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return true
	}
	switch top := domain[strings.LastIndexByte(domain, '.')+1:]; top {
	case "com", "net", "org", "edu", "gov", "info", "example", "test":
		return true
	default:
		return len(top) == 2
	}
}

// wide reports whether a character beyond ASCII can be part of a name.
func wide(r rune) bool {
	return r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
}

// apart reports whether such a character is of a script that sets words apart,
// so that it belongs to the ASCII letters beside it.
func apart(r rune) bool { return wide(r) && r < 0x0e00 }

// maxLocal is how long a local part can be, in bytes (RFC 5321 §4.5.3.1.1).
const maxLocal = 64

// localStart returns where the local part that ends at s[at] starts; at where
// there is none.
func localStart(s string, at int) int {
	start, goes := at, apart
	if at > 0 && s[at-1] >= utf8.RuneSelf {
		goes = wide
	}
	for start > 0 {
		if is(s[start-1], token|local) {
			start--
			continue
		}
		r, n := utf8.DecodeLastRuneInString(s[:start])
		if !goes(r) || at-start+n > maxLocal {
			break
		}
		start -= n
	}
	// Within a JSON string the n of "\nme@example.org" is no part of the name.
	if start > 0 && start < at && s[start-1] == '\\' {
		switch {
		case strings.IndexByte("nrtbf", s[start]) >= 0:
			start++
		case s[start] == 'u' && at-start > 5 && hexDigits(s[start+1:start+5]):
			start += 5
		}
	}
	// The sign of a diff line is none either, nor the dot of a sentence.
	for start < at && s[start] < utf8.RuneSelf && !is(s[start], word) {
		start++
	}
	return start
}

// domainEnd returns the end of the domain that starts at s[i], which is the end
// of the last label that can be a top-level domain; 0 where there is none.
func domainEnd(s string, i int) int {
	end, numbers := 0, true
	for n, at := 0, i; ; n++ {
		stop := labelEnd(s, at)
		if stop == at || s[at] == '-' {
			break
		}
		label := s[at:stop]
		if n < 2 {
			numbers = numbers && number(label)
		}
		if n == 0 && scale(label) {
			return 0
		}
		if n > 0 && (n <= 1 || !numbers) {
			// "com-" of "me@example.com-2024" still ends an address.
			name, _, _ := strings.Cut(label, "-")
			tail := byte(0)
			if at+len(name) < len(s) {
				tail = s[at+len(name)]
			}
			if topLevel(name) && tail != '(' && tail != '_' {
				end = at + len(name)
			}
		}
		if stop >= len(s) || s[stop] != '.' {
			break
		}
		at = stop + 1
	}
	return end
}

// labelEnd returns where the label ends that starts at s[i].
func labelEnd(s string, i int) int {
	goes := apart
	if i < len(s) && s[i] >= utf8.RuneSelf {
		goes = wide
	}
	for i = run(s, i, alnum|dash); i < len(s) && s[i] >= utf8.RuneSelf; i = run(s, i, alnum|dash) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !goes(r) {
			break
		}
		i += n
	}
	return i
}

// number reports whether a label is one of a version: 18, v0.
func number(label string) bool {
	label = strings.TrimPrefix(label, "v")
	return label != "" && run(label, 0, digit) == len(label)
}

// scale reports whether a label is the scale of an image's name: 2x.
func scale(label string) bool {
	n := run(label, 0, digit)
	return n > 0 && label[n:] == "x"
}

// topLevel reports whether a label can be a top-level domain: 2 to 24 letters,
// and no common ending of a file or a systemd unit that is not one.
func topLevel(label string) bool {
	if n := utf8.RuneCountInString(label); n < 2 || n > 24 || strings.IndexFunc(label, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) >= 0 {
		return false
	}
	switch label {
	case "png", "jpg", "jpeg", "gif", "svg", "webp", "js", "mjs", "cjs", "jsx", "ts", "tsx", "json", "yaml", "yml",
		"html", "css", "scss", "txt", "lock", "patch", "diff", "tgz", "gz",
		"service", "socket", "timer", "target", "mount", "scope", "slice":
		return false
	}
	return true
}
