package bucket

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Sign signs a request by AWS Signature Version 4, all in its headers ("Authenticating Requests:
// Using the Authorization Header", Amazon S3 API reference).
func (s S3) Sign(q *http.Request, body []byte, now time.Time) {
	now = now.UTC()
	stamp, day := now.Format("20060102T150405Z"), now.Format("20060102")
	q.Header.Set("X-Amz-Date", stamp)
	q.Header.Set("X-Amz-Content-Sha256", Hash(body))
	if s.Token != "" {
		q.Header.Set("X-Amz-Security-Token", s.Token)
	}
	headers := map[string]string{"host": cmp.Or(q.Host, q.URL.Host)}
	for name, values := range q.Header {
		headers[strings.ToLower(name)] = strings.TrimSpace(strings.Join(values, ","))
	}
	names := slices.Sorted(maps.Keys(headers))
	var canonical strings.Builder
	for _, part := range []string{q.Method, escaped(q.URL.Path), sortedQuery(q.URL.Query())} {
		canonical.WriteString(part + "\n")
	}
	for _, name := range names {
		canonical.WriteString(name + ":" + headers[name] + "\n")
	}
	signed := strings.Join(names, ";")
	canonical.WriteString("\n" + signed + "\n" + Hash(body))
	scope := day + "/" + s.Region + "/s3/aws4_request"
	text := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + Hash([]byte(canonical.String()))
	key := []byte("AWS4" + s.SecretKey)
	for _, part := range []string{day, s.Region, "s3", "aws4_request"} {
		key = keyed(key, part)
	}
	q.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+s.AccessKey+"/"+scope+",SignedHeaders="+signed+",Signature="+hex.EncodeToString(keyed(key, text)))
}

func keyed(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// escaped is a path as the signature wants it in an address: only letters, digits, slashes and -._~ stay.
func escaped(path string) string {
	return strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(path))
}

// sortedQuery is a query by its names, escaped in the same way.
func sortedQuery(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }

// Hash is the SHA-256 of bytes, in hex.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
