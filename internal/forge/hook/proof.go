package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Why a request is not taken for one of the forge.
var (
	errSecret   = errors.New("no secret is set up here")
	errUnsigned = errors.New("it has no signature")
	errWrong    = errors.New("the signature is wrong")
	errToken    = errors.New("the token is wrong")
	errOld      = errors.New("it was signed more than five minutes ago, or a clock is wrong")
)

// window is how old, or how far ahead, what is signed with its time may be.
const window = 5 * time.Minute

// proof is what the body of a request has to come to. It is written as it is read.
type proof struct {
	mac   hash.Hash // nil where the headers were proof enough
	wants [][]byte  // one of them is enough: its sender may be changing its secret
}

// Write implements io.Writer.
func (p *proof) Write(b []byte) (int, error) {
	if p.mac == nil {
		return len(b), nil
	}
	return p.mac.Write(b)
}

func (p *proof) holds() bool {
	if p.mac == nil {
		return true
	}
	sum, ok := p.mac.Sum(nil), false
	for _, want := range p.wants {
		ok = hmac.Equal(sum, want) || ok
	}
	return ok
}

// hexProof is the HMAC-SHA256 of the body in hexadecimal digits, behind a prefix.
func hexProof(secret, signature, prefix string) (*proof, error) {
	digits, ok := strings.CutPrefix(signature, prefix)
	want, err := hex.DecodeString(digits)
	switch {
	case signature == "":
		return nil, errUnsigned
	case !ok || err != nil || len(want) != sha256.Size:
		return nil, errWrong
	}
	return &proof{hmac.New(sha256.New, []byte(secret)), [][]byte{want}}, nil
}

// standardPrefix begins the secrets of the Standard Webhooks.
const standardPrefix = "whsec_"

// standardProof is that of the Standard Webhooks (standardwebhooks.com, specification 1.0): over
// id, time and body, with a full stop between them.
func standardProof(h http.Header, secret string, now time.Time) (*proof, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, standardPrefix))
	if err != nil || len(key) == 0 {
		return nil, errSecret
	}
	id, stamp := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || err != nil {
		return nil, errUnsigned
	}
	if now.Sub(time.Unix(seconds, 0)).Abs() > window {
		return nil, errOld
	}
	p := &proof{mac: hmac.New(sha256.New, key)}
	for one := range strings.FieldsSeq(h.Get("Webhook-Signature")) {
		text, v1 := strings.CutPrefix(one, "v1,")
		if want, err := base64.StdEncoding.DecodeString(text); v1 && err == nil && len(want) == sha256.Size {
			p.wants = append(p.wants, want)
		}
	}
	if len(p.wants) == 0 {
		return nil, errUnsigned
	}
	_, _ = p.mac.Write([]byte(id + "." + stamp + "."))
	return p, nil
}

// tokenProof is that the request knows the secret itself. Its length is not told by the time
// that comparing takes.
func tokenProof(secret, token string) (*proof, error) {
	a, b := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte(token))
	switch {
	case token == "":
		return nil, errUnsigned
	case !hmac.Equal(a[:], b[:]):
		return nil, errToken
	}
	return &proof{}, nil
}
