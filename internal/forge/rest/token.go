package rest

import (
	"strings"
	"sync"
)

// Token is a token that may be replaced while we run. It is safe for concurrent use.
type Token struct {
	fresh func() []byte // may be nil

	mu   sync.Mutex
	last string
}

// NewToken takes a token, and what returns it as it is now, nil for one that does not
// change. ok is false for what is no token: it has spaces or characters beyond ASCII.
func NewToken(token string, fresh func() []byte) (t *Token, ok bool) {
	return &Token{last: token, fresh: fresh}, isToken(token)
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Now is the token as it is now, or as it was last where that is none.
func (t *Token) Now() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fresh != nil {
		if now := strings.TrimSpace(string(t.fresh())); isToken(now) {
			t.last = now
		}
	}
	return t.last
}
