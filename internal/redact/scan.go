package redact

import "strings"

// The byte classes of the patterns.
const (
	upper   = 1 << iota // A-Z
	lower               // a-z
	digit               // 0-9
	under               // _
	dash                // -
	local               // . % + : besides the above, of an e-mail's local part
	b64                 // + / = of base64, . ~ of a bearer token (RFC 6750 §2.1)
	trigger             // a byte at which scan looks for a pattern
	alnum   = upper | lower | digit
	word    = alnum | under
	token   = word | dash
)

// classes says of every byte what it may be part of.
var classes = func() (t [256]uint8) {
	for c := range 256 {
		switch {
		case 'A' <= c && c <= 'Z':
			t[c] = upper
		case 'a' <= c && c <= 'z':
			t[c] = lower
		case '0' <= c && c <= '9':
			t[c] = digit
		}
	}
	t['_'] |= under
	t['-'] |= dash
	for _, c := range ".%+" {
		t[c] |= local
	}
	for _, c := range "+/=.~" {
		t[c] |= b64
	}
	for _, c := range "_-@:IJzZ" {
		t[c] |= trigger
	}
	return t
}()

func is(c byte, class uint8) bool { return classes[c]&class != 0 }

// run returns the end of the run of class that starts at s[i].
func run(s string, i int, class uint8) int {
	for i < len(s) && is(s[i], class) {
		i++
	}
	return i
}

// scan finds the built-in patterns. Every pattern is looked for at its rarest
// byte only, which keeps the loop at one table look-up per byte of clean text,
// and none reads further than its own run, which keeps it linear.
func scan(s string, emails bool) []span {
	var spans []span
	seen := 0  // end of the last prefixed token: its inside is not looked at again
	login := 0 // end of the last user:password, whose "@" makes no address
	for i := 0; i < len(s); i++ {
		if classes[s[i]]&trigger == 0 {
			continue
		}
		var p span
		switch s[i] {
		case '_':
			if i >= seen {
				p = gitHub(s, i)
				seen = max(seen, p.end)
			}
		case '-':
			if i >= seen {
				p = dashed(s, i)
				seen = max(seen, p.end)
			}
		case '@':
			if emails && i > login {
				p = email(s, i)
			}
		case ':':
			p = userinfo(s, i)
			login = max(login, p.end)
		case 'I':
			p = aws(s, i)
		case 'J':
			p = jwt(s, i)
		case 'z', 'Z':
			p = authorization(s, i)
		}
		if p.end > 0 {
			spans = append(spans, p)
		}
	}
	return spans
}

// minGlued is how many letters and digits must follow a prefix that has a word
// character on its left: "highp_float" is no token, "xghp_" + 36 of them is.
const minGlued = 20

// prefixed matches a token whose prefix is s[start:body]: at least four
// characters of class, or minGlued letters and digits where the prefix is only
// the end of a longer word.
func prefixed(s string, start, body int, class uint8, mask string) span {
	if glued(s, start, word) {
		if run(s, body, alnum)-body < minGlued {
			return span{}
		}
	}
	if end := run(s, body, class); end-body >= 4 {
		return span{start, end, mask}
	}
	return span{}
}

// gitHub matches ghp_, gho_, ghu_, ghs_, ghr_ and github_pat_ at the last underscore.
func gitHub(s string, i int) span {
	if i >= 3 && s[i-3] == 'g' && s[i-2] == 'h' && strings.IndexByte("pousr", s[i-1]) >= 0 {
		return prefixed(s, i-3, i+1, word, GitHubToken)
	}
	if i >= 10 && s[i-1] == 't' && s[i-10:i] == "github_pat" {
		return prefixed(s, i-10, i+1, word, GitHubToken)
	}
	return span{}
}

// dashed matches what has its sign in a dash: sk-, glpat-, xoxa- and its kin,
// and PEM blocks.
func dashed(s string, i int) span {
	switch {
	case i >= 2 && s[i-1] == 'k' && s[i-2] == 's':
		return openAI(s, i-2)
	case i >= 5 && s[i-1] == 't' && s[i-5:i] == "glpat":
		return prefixed(s, i-5, i+1, token, GitLabToken)
	case i >= 4 && s[i-4:i-1] == "xox" && strings.IndexByte("abp", s[i-1]) >= 0:
		return prefixed(s, i-4, i+1, token, SlackToken)
	case strings.HasPrefix(s[i:], pemBegin):
		return privateKey(s, i)
	}
	return span{}
}

// openAI matches sk-, sk-ant-, sk-proj- and so on at their start. Words such as
// "risk-based" and "sk-learn" are told apart by what stands on the left and by
// the want of a digit.
func openAI(s string, start int) span {
	// A single dash at the start of a line is a removed line of a diff.
	removed := start >= 1 && s[start-1] == '-' && (start == 1 || s[start-2] == '\n')
	if !removed && glued(s, start, token) {
		return span{}
	}
	end, kinds := start+3, uint8(0)
	for ; end < len(s) && is(s[end], token); end++ {
		kinds |= classes[s[end]]
	}
	n := end - start - 3
	if n >= 8 && kinds&digit != 0 || n >= 16 && kinds&upper != 0 {
		return span{start, end, OpenAIKey}
	}
	return span{}
}

// aws matches AKIA and ASIA with exactly 16 capitals and digits, at their I.
func aws(s string, i int) span {
	const length = 16
	end := i + 2 + length
	if i < 2 || end > len(s) || s[i+1] != 'A' || s[i-2] != 'A' || (s[i-1] != 'K' && s[i-1] != 'S') {
		return span{}
	}
	if run(s[:end], i+2, upper|digit) != end || end < len(s) && is(s[end], word) || glued(s, i-2, word) {
		return span{}
	}
	return span{i - 2, end, AWSKey}
}

// jwt matches a signed (three parts) or encrypted (five) token at its J.
func jwt(s string, i int) span {
	if i < 2 || s[i-1] != 'y' || s[i-2] != 'e' || glued(s, i-2, token) {
		return span{}
	}
	end := run(s, i, token)
	if end-i < 8 {
		return span{}
	}
	parts := 1
	for ; parts < 5 && end < len(s) && s[end] == '.'; parts++ {
		next := run(s, end+1, token)
		// An encrypted token may have an empty second part.
		if next-end-1 < 4 && parts != 1 || next == end+1 && (next == len(s) || s[next] != '.') {
			break
		}
		end = next
	}
	if parts < 3 {
		return span{}
	}
	return span{i - 2, end, JWT}
}

// authorization matches the credential after "Authorization", in a header or in
// code that sets one, at the z. The name and the scheme stay.
func authorization(s string, i int) span {
	const before, after = "authori", "ation"
	if i < len(before) || len(s)-i-1 < len(after) ||
		!strings.EqualFold(s[i-len(before):i], before) || !strings.EqualFold(s[i+1:i+1+len(after)], after) {
		return span{}
	}
	at := i + 1 + len(after)
	for stop := min(len(s), at+10); at < stop && strings.IndexByte(" \t\"'`:=,>[](\\", s[at]) >= 0; at++ {
	}
	start := 0
	for _, scheme := range [...]string{"bearer", "basic"} {
		if len(s)-at > len(scheme) && strings.EqualFold(s[at:at+len(scheme)], scheme) {
			start = at + len(scheme)
		}
	}
	if start == 0 || s[start] != ' ' {
		return span{}
	}
	for stop := min(len(s), start+10); start < stop && s[start] == ' '; start++ {
	}
	end := run(s, start, token|b64)
	if end == start {
		return span{}
	}
	return span{start, end, Credential}
}

// userinfo matches user:password of a URL at the colon of "://". The last "@"
// of the authority ends it, since people paste passwords that hold one.
func userinfo(s string, i int) span {
	if i == 0 || !is(s[i-1], alnum) || !strings.HasPrefix(s[i:], "://") {
		return span{}
	}
	start := i + 3
	colon, at := 0, 0
	for j := start; j < len(s) && s[j] > ' ' && strings.IndexByte("/?#\"'`<>\\", s[j]) < 0; j++ {
		switch {
		case s[j] == ':' && colon == 0:
			colon = j
		case s[j] == '@':
			at = j
		}
	}
	if colon == 0 || at <= colon+1 || placeholder(s[colon+1:at]) {
		return span{}
	}
	return span{start, at, Credential}
}

// placeholder reports whether a password is where a program or a template will
// put one: ${PASS}, $PASS, {pass}, %s, ***.
func placeholder(p string) bool {
	switch {
	case p[0] == '$' && len(p) > 1:
		name := strings.TrimSuffix(strings.TrimPrefix(p[1:], "{"), "}")
		return name != "" && run(name, 0, word) == len(name)
	case p[0] == '{':
		return strings.IndexByte(p, '}') == len(p)-1 || strings.HasSuffix(p, "}}")
	}
	return p == "%s" || p == "%v" || p == "%q" || strings.Trim(p, "*") == "" || maskAt(p, 0) == p
}

// glued reports whether the byte before s[i] is of class, so that s[i] is not
// the start of a word. The end of an escape sequence is no part of a word: the
// n of a JSON string's \n, the digits of \u003c, the m of a terminal colour.
func glued(s string, i int, class uint8) bool {
	if i == 0 || !is(s[i-1], class) {
		return false
	}
	if i >= 2 && s[i-2] == '\\' && strings.IndexByte("nrtbf", s[i-1]) >= 0 {
		return false
	}
	if i >= 6 && s[i-6] == '\\' && s[i-5] == 'u' && hexDigits(s[i-4:i]) {
		return false
	}
	if s[i-1] == 'm' {
		j := i - 2
		for stop := max(0, i-16); j > stop && (is(s[j], digit) || s[j] == ';'); j-- {
		}
		if j >= 1 && s[j] == '[' && s[j-1] == 0x1b {
			return false
		}
	}
	return true
}

func hexDigits(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; !is(s[i], digit) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
