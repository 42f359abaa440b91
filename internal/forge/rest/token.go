package rest

import (
	"strings"
	"sync"

	"toritsugi/internal/i18n"
)

// Token is a token that may be replaced while we run. It is safe for concurrent use.
type Token struct {
	fresh func() []byte // may be nil

	mu   sync.Mutex
	last string
}

// NewToken takes the token of a section of the settings, and what returns it as it is now, nil
// for one that does not change. The error is about the setting.
func NewToken(setting, token string, fresh func() []byte) (*Token, error) {
	if !isToken(token) {
		return nil, i18n.E("rest.bad_token", setting)
	}
	return &Token{last: token, fresh: fresh}, nil
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
