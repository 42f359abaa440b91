package redact

import (
	"slices"
	"strings"
)

// literal reports whether a text is a value and not where a program or a
// template will put one.
func literal(v string, quoted bool) bool {
	if len(v) < 3 || strings.Contains(v, "${") || strings.Contains(v, "$(") || strings.Contains(v, "{{") || placeholder(v) || v[0] == '<' && v[len(v)-1] == '>' {
		return false
	}
	if quoted {
		return true
	}
	switch strings.ToLower(v) {
	case "none", "null", "nil", "true", "false", "undefined", "string", "str", "int", "bool", "bytes", "any", "required", "optional":
		return false
	}
	return v[0] != '$' && v[0] != '%' && v[0] != '&' && v[0] != '*' && v[0] != '.'
}

// dummies are parts of values that stand for a secret in examples and tests.
var dummies = [...]string{
	"pass", "secret", "token", "test", "example", "sample", "dummy", "fake", "mock", "changeme", "change_me", "change-me",
	"your", "xxx", "foo", "insert", "replace", "placeholder", "redacted", "abc123", "abcd", "12345", "user", "todo",
}

// secretLike reports whether a value that stands under the name of a secret is
// one: made by a generator, not a word, a path, an expression, an identifier or
// an example. In env, a shell's NAME=value, a word with a number will do.
func secretLike(v string, quoted, env bool) bool {
	if len(v) < 6 || len(v) > maxValue || strings.IndexByte("$<%&{[(", v[0]) >= 0 || strings.Trim(v, "*.x-") == "" {
		return false
	}
	kinds, marks := uint8(0), 0
	for i := range len(v) {
		switch b := v[i]; {
		case is(b, alnum):
			kinds |= classes[b]
		case b <= ' ' || b >= 0x7f || strings.IndexByte("{}()<>[]|\"'`,;\\", b) >= 0:
			return false
		case strings.IndexByte("!@#^*?$&~", b) >= 0:
			marks++
		}
	}
	if kinds&(upper|lower) == 0 || strings.Contains(v, "://") || strings.Contains(v, "${") || isPath(v) || example(v) {
		return false
	}
	if kinds&digit == 0 {
		return marks > 0 && quoted && len(v) >= 10 && kinds&(upper|lower) == upper|lower
	}
	if env && !strings.Contains(v, ".") {
		return true
	}
	if !quoted && strings.ContainsAny(v, ".@") && len(v) < 20 {
		return false
	}
	if len(v) >= 20 && flips(v, upper)*3 >= len(v) {
		return true
	}
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune(".-_:/", r) }) {
		n := flips(part, digit)
		if len(part) >= 8 && n >= 2 && (quoted || n >= 3) {
			return true
		}
	}
	return marks > 0 && quoted && len(v) >= 8
}

// flips counts how often a text changes between bytes of a class and others.
func flips(s string, class uint8) int {
	n := 0
	for i := 1; i < len(s); i++ {
		if is(s[i-1], class) != is(s[i], class) {
			n++
		}
	}
	return n
}

// isPath reports whether a value names a file.
func isPath(v string) bool {
	return strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(v, "~/") ||
		v[0] == '/' && (len(v) < 32 || strings.Count(v, "/") > len(v)/12+1)
}

// directory reports whether a value is the absolute path of a directory, as it
// stands in an environment, and not a password that begins with a slash.
func directory(v string) bool {
	if v == "/" {
		return true
	}
	parts := strings.Split(strings.TrimSuffix(v, "/"), "/")
	if len(parts) < 2 || parts[0] != "" {
		return false
	}
	for _, p := range parts[1:] {
		if p == "" || strings.ContainsAny(p, "+=!#^*?$&") || len(p) >= 16 && flips(p, upper)+flips(p, digit) > len(p)/3 {
			return false
		}
	}
	return len(parts) > 2 || flips(v, digit) < 2
}

// example reports whether a value says itself that it is none.
func example(v string) bool {
	lower := strings.ToLower(v)
	return slices.ContainsFunc(dummies[:], func(d string) bool { return strings.Contains(lower, d) && len(v) < 4*len(d)+8 })
}
