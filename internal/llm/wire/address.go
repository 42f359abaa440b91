package wire

import (
	"net/http"
	"net/url"
	"strings"

	"toritsugi/internal/i18n"
)

// Resolve returns the address of a method below base, whose query stays. The
// first of the suffixes that base's path ends in is cut off before, because
// people paste the address of the call itself. It fails with an i18n error
// where base is no http address; provider is the name in it.
func Resolve(provider, base, method string, suffixes ...string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, i18n.E("llm.base_url", provider, Endpoint(base))
	}
	u.Fragment = ""
	u.Path = strings.TrimSuffix(u.Path, "/")
	for _, s := range suffixes {
		if path, found := strings.CutSuffix(u.Path, s); found {
			u.Path = path
			break
		}
	}
	u.RawPath = ""
	return u.JoinPath(method), nil
}

// Endpoint is what may be shown of an address: no credentials, no query.
func Endpoint(raw string) string {
	raw, _, _ = strings.Cut(strings.TrimSpace(raw), "#")
	raw, _, _ = strings.Cut(raw, "?")
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	} else {
		scheme += "://"
	}
	return scheme + rest[strings.LastIndexByte(rest, '@')+1:]
}

// CheckKey trims the line end that keys read from files have, and refuses, with
// an i18n error, what no header can carry.
func CheckKey(provider, key string) (string, error) {
	key = strings.TrimSpace(key)
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", i18n.E("llm.api_key", provider)
	}
	return key, nil
}

// Scrubber removes key from what a server says. Short keys are the
// placeholders of local servers ("ollama"), which are words, not secrets.
func Scrubber(key string) func(string) string {
	if len(key) < 8 {
		return func(s string) string { return s }
	}
	return func(s string) string { return strings.ReplaceAll(s, key, "[api key]") }
}

// The buffers of a connection, in bytes. A system call, and what it wakes, costs
// more than reading or encoding what is in 4 KB, which is the default.
const (
	writeBuffer = 64 << 10
	readBuffer  = 16 << 10
)

// SingleHop returns h, or a client of its own, that follows no redirect: a
// redirected POST loses its body or carries the conversation to another host.
func SingleHop(h *http.Client) *http.Client {
	var c http.Client
	if h != nil {
		c = *h
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.MaxIdleConnsPerHost = 16
		t.WriteBufferSize, t.ReadBufferSize = writeBuffer, readBuffer
		c.Transport = t
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}
