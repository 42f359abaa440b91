// Package buckettest is a server of buckets for tests, in memory: S3-compatible (gofakes3), and below
// the path of an account Azure Blob Storage, each behind a check of the request's signature.
package buckettest

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"toritsugi/internal/bucket"
)

// Server has a bucket and a container named b, gives lists in pages of three, and refuses what is not signed with its key.
type Server struct {
	*httptest.Server
	bucket.S3
	Azure bucket.Azure

	mu     sync.Mutex
	refuse func(n int, q *http.Request) int
	n      int
	s3     http.Handler
	blobs  map[string][]byte // of Azure
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	kept := s3mem.New()
	if err := kept.CreateBucket("b"); err != nil {
		t.Fatal(err)
	}
	s := &Server{S3: bucket.S3{Region: "eu-test-1", AccessKey: "AKIDEXAMPLE", SecretKey: "the secret", Token: "of a session"},
		s3:    gofakes3.New(kept, gofakes3.WithLogger(gofakes3.DiscardLog())).Server(),
		Azure: bucket.Azure{Account: "anaccount", Key: base64.StdEncoding.EncodeToString([]byte("the key of the account"))}, blobs: map[string][]byte{}}
	s.Server = httptest.NewServer(s)
	s.Endpoint, s.Azure.Endpoint = s.URL, s.URL+"/"+s.Azure.Account // as an emulator's
	t.Cleanup(s.Close)
	return s
}

// Refuse has f choose a status for each request that is refused, 0 for none; n counts all requests.
func (s *Server) Refuse(f func(n int, q *http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

// Requests is how many came.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// fail answers as S3 does.
func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>`+code+`</Code><Message>as asked</Message></Error>`)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(io.LimitReader(q.Body, 64<<20))
	fail, azure := fail, strings.HasPrefix(q.URL.Path, "/"+s.Azure.Account+"/")
	if azure {
		fail = failAzure
	}
	switch {
	case err != nil || !azure && bucket.Hash(body) != q.Header.Get("X-Amz-Content-Sha256"):
		fail(w, 400, "XAmzContentSHA256Mismatch")
		return
	case !azure && !s.signed(q, body):
		fail(w, 403, "SignatureDoesNotMatch")
		return
	case azure && !s.shared(q):
		fail(w, 403, "AuthenticationFailed")
		return
	}
	s.mu.Lock()
	s.n++
	n, refuse := s.n, s.refuse
	s.mu.Unlock()
	if refuse != nil {
		if status := refuse(n, q); status != 0 {
			fail(w, status, http.StatusText(status))
			return
		}
	}
	if azure {
		s.container(w, q, body)
		return
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	if query := q.URL.Query(); query.Has("list-type") {
		query.Set("max-keys", "3")
		q.URL.RawQuery = query.Encode()
	}
	s.s3.ServeHTTP(w, q)
}

// signed tells whether whoever signs the same request with the same key at the same time gets the
// same signature.
func (s *Server) signed(q *http.Request, body []byte) bool {
	at, err := time.Parse("20060102T150405Z", q.Header.Get("X-Amz-Date"))
	again := q.Clone(q.Context())
	again.Header = http.Header{}
	names := ""
	if _, rest, ok := strings.Cut(q.Header.Get("Authorization"), "SignedHeaders="); ok {
		names, _, _ = strings.Cut(rest, ",")
	}
	for name := range strings.SplitSeq(names, ";") {
		if v := q.Header.Values(name); len(v) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = v
		}
	}
	s.Sign(again, body, at)
	return err == nil && again.Header.Get("Authorization") == q.Header.Get("Authorization") && q.Header.Get("X-Amz-Security-Token") == s.Token
}
