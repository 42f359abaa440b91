package redact

import "strings"

// authorization matches the credential after "Authorization", in a header or in
// code that sets one; at is that of "riza". The name and the scheme stay.
func (c *scanner) authorization(at int) {
	const before, after = "autho", "rization"
	s := c.s
	if at < len(before) || len(s)-at < len(after) || !equalFold(s[at-len(before):at], before) || !equalFold(s[at:at+len(after)], after) {
		return
	}
	i := at + len(after)
	for stop := min(len(s), i+10); i < stop && strings.IndexByte(" \t\"'`:=,>[](\\", s[i]) >= 0; i++ {
	}
	if i == at+len(after) {
		return
	}
	for _, scheme := range [...]string{"bearer", "basic", "token", "apikey", "digest", "negotiate"} {
		end := i + len(scheme)
		if end >= len(s) || s[end] != ' ' || !equalFold(s[i:end], scheme) {
			continue
		}
		start := end
		for stop := min(len(s), start+10); start < stop && s[start] == ' '; start++ {
		}
		end = run(s, start, token|b64)
		if scheme == "bearer" || scheme == "basic" || secretLike(s[start:end], true, false) {
			c.add(span{start, grow(s, start, end, token|b64, 0), Redacted, kindLogin})
		}
		return
	}
	if end := run(s, i, token|b64); end-i >= 16 && secretLike(s[i:end], true, false) {
		c.add(span{i, grow(s, i, end, token|b64, 0), Redacted, kindLogin})
	}
}

// bearer matches a bearer token that stands without its header's name.
func (c *scanner) bearer(at int) {
	s := c.s
	start := at + len("bearer ")
	if start >= len(s) || !equalFold(s[at:start], "bearer ") || glued(s, at, word) {
		return
	}
	end := run(s, start, token|b64)
	if end-start >= 16 && secretLike(s[start:end], true, false) {
		c.add(span{start, grow(s, start, end, token|b64, 0), Redacted, kindLogin})
	}
}

// userinfo matches user:password of a URL at its "://". The last "@" of the
// authority ends it, since people paste passwords that hold one.
func (c *scanner) userinfo(i int) {
	s := c.s
	if i == 0 || !is(s[i-1], alnum) {
		return
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
	if colon == 0 || at <= colon+1 || placeholder(s[colon+1:at]) || !c.strict && wordForPassword(s[colon+1:at]) {
		if colon > 0 && at > colon {
			c.logins = append(c.logins, span{start: start, end: at})
		}
		return
	}
	p := span{start, at, Redacted, kindLogin}
	c.logins = append(c.logins, p)
	c.add(p)
}

// cookie matches the cookies of a Cookie or Set-Cookie header; at is that of
// "cookie". What a reader may need, the names of the first, stays.
func (c *scanner) cookie(at int) {
	s := c.s
	end := at + len("cookie")
	if at < c.read || end >= len(s) || !equalFold(s[at:end], "cookie") {
		return
	}
	if glued(s, at, word) || at > 0 && s[at-1] == '-' && (at < 4 || !equalFold(s[at-4:at-1], "set")) {
		return
	}
	i := end
	for stop := min(len(s), i+8); i < stop && strings.IndexByte(" \"'`:=,>[\\", s[i]) >= 0; i++ {
	}
	if i == end || !strings.ContainsAny(s[end:i], ":=,") {
		return
	}
	name := run(s, i, token)
	if name == i || name >= len(s) || s[name] != '=' {
		return
	}
	start, stop := name+1, name+1
	for stop < len(s) && s[stop] > ' ' && strings.IndexByte("\"'`<>\\;,(){}$", s[stop]) < 0 {
		stop++
	}
	c.read = stop
	if stop == start || stop < len(s) && strings.IndexByte("({$", s[stop]) >= 0 || !c.strict && !secretLike(s[start:stop], true, true) {
		return
	}
	// The other cookies of the same header follow after "; ".
	for stop+1 < len(s) && s[stop] == ';' && s[stop+1] == ' ' {
		next := stop + 2
		for next < len(s) && s[next] > ' ' && strings.IndexByte("\"'`<>\\;,", s[next]) < 0 {
			next++
		}
		stop = next
	}
	c.read = stop
	c.add(span{start, stop, Redacted, kindNamed})
}

// placeholder reports whether a password is where a program or a template will
// put one: ${PASS}, $PASS, {pass}, %s, ***.
func placeholder(p string) bool {
	switch {
	case p[0] == '$' && len(p) > 1:
		name := strings.Trim(p[1:], "{}()")
		return name != "" && run(name, 0, word) == len(name)
	case p[0] == '{':
		return strings.IndexByte(p, '}') == len(p)-1 || strings.HasSuffix(p, "}}")
	}
	return p == "%s" || p == "%v" || p == "%q" || strings.Trim(p, "*xX") == "" || maskAt(p, 0) == p
}

// wordForPassword reports whether a text only names what should stand in its
// place, as addresses in documentation do.
func wordForPassword(p string) bool {
	switch strings.ToLower(p) {
	case "pass", "passwd", "password", "pwd", "secret", "token", "key", "...":
		return true
	}
	return false
}
