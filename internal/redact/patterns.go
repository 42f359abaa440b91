package redact

import (
	"strings"
	"sync"
)

// KindToken is the kind of what is known by how it begins.
const KindToken = "token"

// The other kinds of a Finding.
const (
	kindKey     = "private key"
	kindLogin   = "login"
	kindJWT     = "JWT"
	kindKnown   = "known value"
	kindPattern = "configured pattern"
	kindNamed   = "named value"
	kindEmail   = "e-mail address"
	kindNumber  = "number"
)

// The finders.
const (
	findPrefix finder = iota
	findKeyword
	findOpenAI
	findAWS
	findJWT
	findKey
	findKeyTail
	findLogin
	findAuthorization
	findBearer
	findHook
	findCookie
	findSignature
	findPass
	findKeyName
)

// find calls p's function for the anchor at s[at].
func (c *scanner) find(p *pattern, at int) {
	switch p.finder {
	case findPrefix:
		c.prefix(p, at-p.offset)
	case findKeyword:
		c.keyword(p.text, at-p.offset)
	case findOpenAI:
		c.openAI(at)
	case findAWS:
		c.aws(at)
	case findJWT:
		c.jwt(at)
	case findKey:
		c.add(privateKey(c.s, at-p.offset))
	case findKeyTail:
		c.add(keyTail(c.s, at-p.offset))
	case findLogin:
		c.userinfo(at)
	case findAuthorization:
		c.authorization(at)
	case findBearer:
		c.bearer(at)
	case findHook:
		c.hook(p.text, at-p.offset)
	case findCookie:
		c.cookie(at - p.offset)
	case findSignature:
		c.signature(at)
	case findPass:
		c.pass(at)
	case findKeyName:
		c.key(at)
	}
}

// builtin are all patterns, e-mail addresses and numbers aside, and how they are found:
// tables that nothing changes, made at the first search.
var builtin = sync.OnceValue(func() *grams { return newGrams(allPatterns()) })

func allPatterns() []pattern {
	const alnum = "abcdefghijklmnopqrstuvwxyz0123456789"
	all := []pattern{
		{anchor: "sk-", right: alnum + "_-", finder: findOpenAI},
		{anchor: "akia", finder: findAWS},
		{anchor: "asia", finder: findAWS},
		{anchor: "eyj", right: alnum, finder: findJWT},
		{anchor: "begi", finder: findKey, offset: len("-----")},
		{anchor: "--en", finder: findKeyTail, offset: len("---")},
		{anchor: "://", left: alnum, finder: findLogin},
		{anchor: "riza", finder: findAuthorization},
		{anchor: "bear", finder: findBearer},
		{anchor: "s.sl", finder: findHook, text: "hooks.slack.com/services/", offset: 4},
		{anchor: "ooks", finder: findHook, text: "discord.com/api/webhooks/", offset: 20},
		{anchor: "ooki", finder: findCookie, offset: 1},
		{anchor: "sig=", finder: findSignature},
		{anchor: "sign", finder: findSignature},
		{anchor: "pass", finder: findPass},
		{anchor: "pwd", right: " =:\"'\\", finder: findKeyword, text: "pwd"},
		{anchor: "secr", finder: findKeyword, text: "secret"},
		{anchor: "oken", finder: findKeyword, text: "token", offset: 1},
		{anchor: "eden", finder: findKeyword, text: "credential", offset: 2},
		{anchor: "auth", finder: findKeyword, text: "auth"},
		{anchor: "key", left: "acdeghimnrsty_-", finder: findKeyName},
	}
	for _, p := range prefixes {
		lower := strings.ToLower(p.text)
		a := pattern{anchor: lower, left: edge, finder: findPrefix, text: p.text, offset: p.offset, class: p.class, body: p.body, mask: p.mask}
		if len(lower) > 3 {
			a.anchor, a.left = lower[p.offset:p.offset+4], ""
		}
		all = append(all, a)
	}
	return all
}

// prefixes are the tokens that are known by how they begin. body is how many
// bytes of class must follow at least; the three masks of store-v2 §3.3 mask
// whatever follows, the others what is as long as a real one.
var prefixes = []struct {
	text   string
	class  uint8
	body   int
	mask   string
	offset int // of four bytes in text that are rare elsewhere
}{
	{"ghp_", word, 4, GitHubToken, 0},
	{"gho_", word, 4, GitHubToken, 0},
	{"ghu_", word, 4, GitHubToken, 0},
	{"ghs_", word, 4, GitHubToken, 0},
	{"ghr_", word, 4, GitHubToken, 0},
	{"github_pat_", word, 4, GitHubToken, 5},
	{"glpat-", token, 4, GitLabToken, 0},
	{"gloas-", token, 4, GitLabToken, 2},
	{"glimt-", token, 4, GitLabToken, 2},
	{"glptt-", token, 4, GitLabToken, 0},
	{"gldt-", token, 4, GitLabToken, 0},
	{"glrt-", token, 4, GitLabToken, 0},
	{"glrtr-", token, 4, GitLabToken, 0},
	{"glcbt-", token, 4, GitLabToken, 0},
	{"glft-", token, 4, GitLabToken, 0},
	{"glffct-", token, 4, GitLabToken, 2},
	{"glagent-", token, 4, GitLabToken, 4},
	{"glwt-", token, 4, GitLabToken, 0},
	{"glsoat-", token, 4, GitLabToken, 0},
	{"GR1348941", token, 12, GitLabToken, 0},
	{"xoxa-", token, 4, Redacted, 0},
	{"xoxb-", token, 4, Redacted, 0},
	{"xoxc-", token, 4, Redacted, 0},
	{"xoxd-", token, 4, Redacted, 0},
	{"xoxe-", token, 4, Redacted, 0},
	{"xoxe.", token | local, 12, Redacted, 0},
	{"xoxo-", token, 16, Redacted, 0},
	{"xoxp-", token, 4, Redacted, 0},
	{"xoxr-", token, 4, Redacted, 0},
	{"xoxs-", token, 4, Redacted, 0},
	{"xapp-", token, 4, Redacted, 0},
	{"AIza", token, 30, Redacted, 0},
	{"ya29.", token, 16, Redacted, 0},
	{"GOCSPX-", token, 16, Redacted, 0},
	{"npm_", word, 20, Redacted, 0},
	{"pypi-", token, 16, Redacted, 0},
	{"sk_live_", word, 8, Redacted, 0},
	{"sk_test_", word, 8, Redacted, 0},
	{"rk_live_", word, 8, Redacted, 0},
	{"rk_test_", word, 8, Redacted, 0},
	{"whsec_", token | b64, 16, Redacted, 0},
	{"hf_", word, 20, Redacted, 0},
	{"dop_v1_", word, 16, Redacted, 0},
	{"doo_v1_", word, 16, Redacted, 0},
	{"dor_v1_", word, 16, Redacted, 0},
	{"SG.", token | local, 40, Redacted, 0},
	{"hvs.", token, 20, Redacted, 0},
	{"hvb.", token, 20, Redacted, 0},
	{"gsk_", word, 20, Redacted, 0},
	{"xai-", token, 20, Redacted, 0},
	{"pplx-", token, 20, Redacted, 0},
	{"r8_", word, 30, Redacted, 0},
	{"dapi", alnum, 32, Redacted, 0},
	{"shpat_", word, 16, Redacted, 0},
	{"shpss_", word, 16, Redacted, 0},
	{"dckr_pat_", token, 16, Redacted, 0},
	{"ATATT3", token | b64, 30, Redacted, 2},
	{"glsa_", word, 20, Redacted, 0},
	{"sbp_", word, 20, Redacted, 0},
	{"sntrys_", token | b64, 20, Redacted, 3},
	{"lin_api_", word, 20, Redacted, 2},
	{"ntn_", word, 20, Redacted, 0},
	{"AGE-SECRET-KEY-1", token, 20, Redacted, 10},
}

// minGlued is how many letters and digits must follow a prefix that has a word
// character on its left: "highp_float" is no token, "xghp_" + 36 of them is.
const minGlued = 20

// prefix matches a token that begins with p.text at s[at].
func (c *scanner) prefix(p *pattern, at int) {
	s, text, class, mask := c.s, p.text, p.class, p.mask
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
	if end-start >= p.body {
		full := 36
		if mask == GitLabToken {
			full = 20
		}
		c.seen = grow(s, start, end, class, full)
		c.add(span{at, c.seen, mask, KindToken})
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

// minLetters is how many small letters in one run no word behind "sk-" has.
const minLetters = 18

// openAI matches sk-, sk-ant-, sk-proj- and so on at their start. Words such as
// "risk-based" and "sk-learn" are told apart by what stands on the left, and by
// the want of digits, of capitals among them and of letters in one run.
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
	letters, longest := 0, 0
	for ; end < len(s) && is(s[end], token); end++ {
		kinds |= classes[s[end]]
		if letters++; !is(s[end], upper|lower) {
			letters = 0
		}
		longest = max(longest, letters)
	}
	n := end - start - 3
	if n >= 8 && (kinds&digit != 0 || flips(s[start+3:end], upper) > 3) || n >= 16 && kinds&upper != 0 || longest >= minLetters {
		c.seen = grow(s, start, end, token, 48)
		c.add(span{start, c.seen, OpenAIKey, KindToken})
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
		c.add(span{start, end, Redacted, KindToken})
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
		c.add(span{start, end, Redacted, KindToken})
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
		c.add(span{start, end, Redacted, KindToken})
	}
}
