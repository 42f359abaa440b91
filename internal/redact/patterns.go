package redact

import "strings"

// The kinds of a Finding.
const (
	kindToken   = "token"
	kindKey     = "private key"
	kindLogin   = "login"
	kindJWT     = "JWT"
	kindKnown   = "known value"
	kindPattern = "configured pattern"
	kindNamed   = "named value"
	kindEmail   = "e-mail address"
	kindNumber  = "number"
)

// patterns are all that is built in, e-mail addresses and numbers aside. They
// and builtin are tables: nothing changes them.
var (
	patterns = allPatterns()
	builtin  = newGrams(patterns)
)

func allPatterns() []pattern {
	all := []pattern{
		{"b_pa", "", func(c *scanner, at int) { c.prefix("github_pat_", at-5, word, 4, GitHubToken) }},
		{"oas-", "", func(c *scanner, at int) { c.prefix("gloas-", at-2, token, 4, GitLabToken) }},
		{"imt-", "", func(c *scanner, at int) { c.prefix("glimt-", at-2, token, 4, GitLabToken) }},
		{"sk-", "", (*scanner).openAI},
		{"akia", "", (*scanner).aws},
		{"asia", "", (*scanner).aws},
		{"eyj", "", (*scanner).jwt},
		{"begi", "", func(c *scanner, at int) { c.add(privateKey(c.s, at-len("-----"))) }},
		{"--en", "", func(c *scanner, at int) { c.add(keyTail(c.s, at-len("---"))) }},
		{"://", "abcdefghijklmnopqrstuvwxyz0123456789", (*scanner).userinfo},
		{"riza", "", (*scanner).authorization},
		{"bear", "", (*scanner).bearer},
		{"s.sl", "", func(c *scanner, at int) { c.hook("hooks.slack.com/services/", at-4) }},
		{"ooks", "", func(c *scanner, at int) { c.hook("discord.com/api/webhooks/", at-20) }},
		{"ooki", "", func(c *scanner, at int) { c.cookie(at - 1) }},
		{"sig=", "", (*scanner).signature},
		{"sign", "", (*scanner).signature},
		{"pass", "", (*scanner).pass},
		{"pwd", any3, func(c *scanner, at int) { c.named(at, at+3) }},
		{"secr", "", func(c *scanner, at int) { c.keyword("secret", at) }},
		{"oken", "", func(c *scanner, at int) { c.keyword("token", at-1) }},
		{"eden", "", func(c *scanner, at int) { c.keyword("credential", at-2) }},
		{"auth", "", func(c *scanner, at int) { c.keyword("auth", at) }},
		{"key", "acdeghimnrsty_-", (*scanner).key},
	}
	for _, p := range prefixes {
		lower := strings.ToLower(p.text)
		find := func(c *scanner, at int) { c.prefix(p.text, at, p.class, p.body, p.mask) }
		if len(lower) > 3 {
			all = append(all, pattern{lower[:4], "", find})
		} else {
			all = append(all, pattern{lower, any3, find})
		}
	}
	return all
}

// prefixes are the tokens that are known by how they begin. body is how many
// bytes of class must follow at least; the three masks of store-v2 §3.3 mask
// whatever follows, the others what is as long as a real one.
var prefixes = []struct {
	text  string
	class uint8
	body  int
	mask  string
}{
	{"ghp_", word, 4, GitHubToken},
	{"gho_", word, 4, GitHubToken},
	{"ghu_", word, 4, GitHubToken},
	{"ghs_", word, 4, GitHubToken},
	{"ghr_", word, 4, GitHubToken},
	{"glpat-", token, 4, GitLabToken},
	{"glptt-", token, 4, GitLabToken},
	{"gldt-", token, 4, GitLabToken},
	{"glrt-", token, 4, GitLabToken},
	{"glrtr-", token, 4, GitLabToken},
	{"glcbt-", token, 4, GitLabToken},
	{"glft-", token, 4, GitLabToken},
	{"glffct-", token, 4, GitLabToken},
	{"glagent-", token, 4, GitLabToken},
	{"glwt-", token, 4, GitLabToken},
	{"glsoat-", token, 4, GitLabToken},
	{"GR1348941", token, 12, GitLabToken},
	{"xoxa-", token, 4, Redacted},
	{"xoxb-", token, 4, Redacted},
	{"xoxc-", token, 4, Redacted},
	{"xoxd-", token, 4, Redacted},
	{"xoxe-", token, 4, Redacted},
	{"xoxe.", token | local, 12, Redacted},
	{"xoxo-", token, 16, Redacted},
	{"xoxp-", token, 4, Redacted},
	{"xoxr-", token, 4, Redacted},
	{"xoxs-", token, 4, Redacted},
	{"xapp-", token, 4, Redacted},
	{"AIza", token, 30, Redacted},
	{"ya29.", token, 16, Redacted},
	{"GOCSPX-", token, 16, Redacted},
	{"npm_", word, 20, Redacted},
	{"pypi-", token, 16, Redacted},
	{"sk_live_", word, 8, Redacted},
	{"sk_test_", word, 8, Redacted},
	{"rk_live_", word, 8, Redacted},
	{"rk_test_", word, 8, Redacted},
	{"whsec_", token | b64, 16, Redacted},
	{"hf_", word, 20, Redacted},
	{"dop_v1_", word, 16, Redacted},
	{"doo_v1_", word, 16, Redacted},
	{"dor_v1_", word, 16, Redacted},
	{"SG.", token | local, 40, Redacted},
	{"hvs.", token, 20, Redacted},
	{"hvb.", token, 20, Redacted},
	{"gsk_", word, 20, Redacted},
	{"xai-", token, 20, Redacted},
	{"pplx-", token, 20, Redacted},
	{"r8_", word, 30, Redacted},
	{"dapi", alnum, 32, Redacted},
	{"shpat_", word, 16, Redacted},
	{"shpss_", word, 16, Redacted},
	{"dckr_pat_", token, 16, Redacted},
	{"ATATT3", token | b64, 30, Redacted},
	{"glsa_", word, 20, Redacted},
	{"sbp_", word, 20, Redacted},
	{"sntrys_", token | b64, 20, Redacted},
	{"lin_api_", word, 20, Redacted},
	{"ntn_", word, 20, Redacted},
	{"AGE-SECRET-KEY-1", token, 20, Redacted},
}

// minGlued is how many letters and digits must follow a prefix that has a word
// character on its left: "highp_float" is no token, "xghp_" + 36 of them is.
const minGlued = 20

// prefix matches a token that begins with text at s[at].
func (c *scanner) prefix(text string, at int, class uint8, body int, mask string) {
	s := c.s
	if at < c.seen || at < 0 || !strings.HasPrefix(s[at:], text) {
		return
	}
	start := at + len(text)
	if glued(s, at, word) {
		if mask == Redacted && !strings.ContainsAny(text, "-_.") || run(s[:min(len(s), start+minGlued)], start, alnum)-start < minGlued {
			return
		}
	}
	dull := &c.dull[class>>3&15]
	if mask == Redacted && at < *dull {
		return
	}
	end := run(s, start, class)
	if mask == Redacted && !mixed(s[start:end]) {
		*dull = end
		return
	}
	if end-start >= body {
		c.seen = end
		c.add(span{at, end, mask, kindToken})
	}
}

// mixed reports whether a text has a digit, or letters of both cases: what words
// of a program rarely have behind a prefix.
func mixed(s string) bool {
	kinds := uint8(0)
	for i := range len(s) {
		kinds |= classes[s[i]]
	}
	return kinds&digit != 0 || kinds&(upper|lower) == upper|lower
}

// openAI matches sk-, sk-ant-, sk-proj- and so on at their start. Words such as
// "risk-based" and "sk-learn" are told apart by what stands on the left and by
// the want of a digit.
func (c *scanner) openAI(start int) {
	s := c.s
	if start < c.seen || s[start] != 's' || s[start+1] != 'k' {
		return
	}
	// A single dash at the start of a line is a removed line of a diff.
	removed := start >= 1 && s[start-1] == '-' && (start == 1 || s[start-2] == '\n')
	if !removed && glued(s, start, token) {
		return
	}
	end, kinds := start+3, uint8(0)
	for ; end < len(s) && is(s[end], token); end++ {
		kinds |= classes[s[end]]
	}
	n := end - start - 3
	if n >= 8 && kinds&digit != 0 || n >= 16 && kinds&upper != 0 {
		c.seen = end
		c.add(span{start, end, OpenAIKey, kindToken})
	}
}

// aws matches AKIA and ASIA with at least 16 capitals and digits.
func (c *scanner) aws(start int) {
	const length = 16
	s := c.s
	if text := s[start : start+4]; text != "AKIA" && text != "ASIA" || glued(s, start, word) {
		return
	}
	if end := run(s, start+4, upper|digit); end-start-4 >= length {
		c.add(span{start, end, Redacted, kindToken})
	}
}

// jwt matches a signed (three parts) or encrypted (five) token.
func (c *scanner) jwt(start int) {
	s := c.s
	if s[start:start+3] != "eyJ" || glued(s, start, token) {
		return
	}
	end := run(s, start, token)
	if end-start < 10 {
		return
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
	if parts >= 3 {
		c.add(span{start, end, Redacted, kindJWT})
	}
}

// hook matches the secret path of a web hook whose address, from the name of
// the host on, begins with text at s[at].
func (c *scanner) hook(text string, at int) {
	if at < 0 || !strings.HasPrefix(c.s[at:], text) {
		return
	}
	start := at + len(text)
	end := start
	for end < len(c.s) && (is(c.s[end], token) || c.s[end] == '/') {
		end++
	}
	if end-start >= 20 && mixed(c.s[start:end]) {
		c.add(span{start, end, Redacted, kindToken})
	}
}

// signature matches the signature that makes an address a key to what it names:
// sig= (Azure), X-Amz-Signature=, X-Goog-Signature=.
func (c *scanner) signature(at int) {
	s := c.s
	start := at + len("sig=")
	if s[at+3] != '=' {
		if start = at + len("signature="); start > len(s) || !equalFold(s[at:start], "signature=") {
			return
		}
	}
	if at == 0 || strings.IndexByte("?&;-", s[at-1]) < 0 {
		return
	}
	end := start
	for end < len(s) && (is(s[end], token|b64) || s[end] == '%') {
		end++
	}
	if end-start >= 20 && mixed(s[start:end]) {
		c.add(span{start, end, Redacted, kindToken})
	}
}
