package githubtest

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// run does what a route does for who may: a repository that somebody may not
// see is not there.
func (c *call) run(rt route) *answer {
	jwt := c.who != nil && c.who.app != nil && c.who.install == nil
	switch {
	case rt.who == "user" && (c.who == nil || jwt):
		return failed(http.StatusUnauthorized, "Requires authentication")
	case rt.who == "app" && !jwt:
		return failed(http.StatusUnauthorized, "A JSON web token could not be decoded")
	}
	name := c.r.PathValue("repo")
	if name == "" {
		return rt.do(c)
	}
	c.repo = c.s.repo(c.r.PathValue("owner"), name)
	if c.repo == nil {
		return c.moved()
	}
	if !jwt {
		if c.role = c.who.role(c.repo); c.role < roleRead {
			return notFound()
		}
	}
	if c.r.Method != http.MethodGet && c.repo.o.Archived {
		return failed(http.StatusForbidden, "Repository was archived so is read-only.")
	}
	return rt.do(c)
}

// moved answers for a repository that has another name, as the real server does:
// what reads is sent on for good, what writes with its method and body.
func (c *call) moved() *answer {
	r := c.s.moved(c.r.PathValue("owner"), c.r.PathValue("repo"))
	if r == nil || c.who.role(r) < roleRead {
		return notFound()
	}
	status := http.StatusMovedPermanently
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		status = http.StatusTemporaryRedirect
	}
	rest := strings.SplitN(c.escaped, "/", 5) // "", "repos", owner, name, rest
	at := fmt.Sprintf("http://%s%s/repositories/%d", c.r.Host, c.root, r.id)
	if len(rest) == 5 {
		at += "/" + rest[4]
	}
	if q := c.r.URL.RawQuery; q != "" {
		at += "?" + q
	}
	return &answer{status: status, location: at, body: object{"message": "Moved Permanently", "url": at,
		"documentation_url": "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects"}}
}

// byNumber is the path of a repository that is named by its number, as redirects
// do, with its name instead.
func (s *Server) byNumber(path string) string {
	parts := strings.SplitN(path, "/", 4) // "", "repositories", number, rest
	if len(parts) < 3 || parts[1] != "repositories" {
		return path
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.repos {
		if strconv.FormatInt(r.id, 10) == parts[2] {
			return strings.Join(append([]string{"", "repos", r.owner.login, r.name}, parts[3:]...), "/")
		}
	}
	return path
}

// role is what a token may do to a repository.
func (t *token) role(r *repo) int {
	if t == nil {
		return r.role(nil)
	}
	if t.install != nil {
		if t.install.covers(r) {
			return t.install.role()
		}
		return r.role(nil)
	}
	return r.role(t.user)
}

func (c *call) login() string {
	switch {
	case c.who == nil:
		return ""
	case c.who.user != nil:
		return c.who.user.login
	}
	return c.who.app.Slug
}

// me is the account that a call acts as.
func (c *call) me() *account { return c.who.user }

// credential finds the token in a request: of the header or of a login.
func credential(r *http.Request) (secret string, given bool) {
	if _, password, is := r.BasicAuth(); is {
		return password, true
	}
	h := r.Header.Get("Authorization")
	if h == "" {
		return "", false
	}
	_, secret, _ = strings.Cut(h, " ")
	return strings.TrimSpace(secret), true
}

// authenticate finds out who asks; it answers those who lie.
func (s *Server) authenticate(c *call) *answer {
	secret, given := credential(c.r)
	if !given {
		return nil
	}
	if c.who = s.known(secret); c.who == nil {
		return failed(http.StatusUnauthorized, "Bad credentials")
	}
	if c.who.install != nil && c.who.install.suspended {
		return failed(http.StatusForbidden, "This installation has been suspended")
	}
	return nil
}

// known is the token that a secret stands for, nil for none that is valid.
func (s *Server) known(secret string) *token {
	if t := s.tokens[secret]; t != nil {
		if t.revoked || t.user.gone || !t.expires.IsZero() && !s.now().Before(t.expires) {
			return nil
		}
		return t
	}
	if strings.Count(secret, ".") == 2 {
		return s.jwt(secret)
	}
	return nil
}

// jwt checks a token that an app signed itself.
func (s *Server) jwt(secret string) *token {
	parts := strings.Split(secret, ".")
	var raw [3][]byte
	for i, p := range parts {
		b, err := base64.RawURLEncoding.DecodeString(p)
		if err != nil {
			return nil
		}
		raw[i] = b
	}
	var head struct{ Alg string }
	var claims struct {
		Iss      any // a number or its digits, or the client id
		Iat, Exp float64
	}
	if json.Unmarshal(raw[0], &head) != nil || json.Unmarshal(raw[1], &claims) != nil || head.Alg != "RS256" {
		return nil
	}
	iss := fmt.Sprint(claims.Iss)
	if f, is := claims.Iss.(float64); is {
		iss = strconv.FormatInt(int64(f), 10)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	for _, a := range s.apps {
		if strconv.FormatInt(a.ID, 10) != iss && a.ClientID != iss {
			continue
		}
		// Clients date their tokens by their own clock, which need not be this server's:
		// only their life is looked at. The real one takes ten minutes and a minute's drift.
		life := time.Duration(claims.Exp-claims.Iat) * time.Second
		if rsa.VerifyPKCS1v15(&a.key.PublicKey, crypto.SHA256, sum[:], raw[2]) != nil || life <= 0 || life > 11*time.Minute {
			return nil
		}
		if s.tokens["app "+iss] == nil {
			s.tokens["app "+iss] = &token{app: a, user: a.bot}
		}
		return s.tokens["app "+iss]
	}
	return nil
}
