package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of the Standard Webhooks (standardwebhooks.com, specification 1.0).
const (
	headerID        = "Webhook-Id"
	headerTime      = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// window is how old, or how far ahead, a request may be.
const window = 5 * time.Minute

// signer is the key of both sides.
type signer []byte

// sum is the HMAC of a request: over its id, time and body, with a full stop between them.
func (k signer) sum(id, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, k)
	_, _ = mac.Write([]byte(id + "." + stamp + "."))
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}

// sign puts the three headers.
func (k signer) sign(h http.Header, id string, now time.Time, body []byte) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	h.Set(headerID, id)
	h.Set(headerTime, stamp)
	h.Set(headerSignature, "v1,"+base64.StdEncoding.EncodeToString(k.sum(id, stamp, body)))
}

// signed reports whether a request has a right signature, one of several while its sender
// changes its secret, and how far its clock is from now.
func (k signer) signed(h http.Header, now time.Time, body []byte) (off time.Duration, ok bool) {
	id, stamp := h.Get(headerID), h.Get(headerTime)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || err != nil {
		return 0, false
	}
	want := k.sum(id, stamp, body)
	for one := range strings.FieldsSeq(h.Get(headerSignature)) {
		text, v1 := strings.CutPrefix(one, "v1,")
		given, err := base64.StdEncoding.DecodeString(text)
		ok = ok || v1 && err == nil && hmac.Equal(given, want)
	}
	return now.Sub(time.Unix(seconds, 0)), ok
}
