package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/task"
)

// server answers as an S3-compatible server does: PUT, GET, HEAD and DELETE of objects and
// ListObjectsV2 of pages of three, and refuses what is not signed with its key.
type server struct {
	*httptest.Server
	S3
	mu      sync.Mutex
	objects map[string][]byte
	refuse  func(n int, q *http.Request) int // a status to fail with, 0 for none
	n       int
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{S3: S3{Region: "eu-test-1", AccessKey: "AKIDEXAMPLE", SecretKey: "the secret", Token: "of a session"}, objects: map[string][]byte{}}
	s.Server = httptest.NewServer(s)
	s.Endpoint = s.URL
	t.Cleanup(s.Close)
	return s
}

func (s *server) options(place string) Options {
	return Options{Place: place, S3: s.S3, HTTP: s.Client()}
}

// fail answers as S3 does.
func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>as asked</Message></Error>`, code)
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(q.Body)
	sum := sha256.Sum256(body)
	if err != nil || hex.EncodeToString(sum[:]) != q.Header.Get("X-Amz-Content-Sha256") {
		fail(w, 400, "XAmzContentSHA256Mismatch")
		return
	}
	// Whoever signs the same request with the same key at the same time gets the same signature; that
	// the signatures are Amazon's is in TestSign.
	at, err := time.Parse("20060102T150405Z", q.Header.Get("X-Amz-Date"))
	again := q.Clone(q.Context())
	again.Header = http.Header{}
	signed := ""
	if _, rest, ok := strings.Cut(q.Header.Get("Authorization"), "SignedHeaders="); ok {
		signed, _, _ = strings.Cut(rest, ",")
	}
	for _, name := range strings.Split(signed, ";") {
		if v := q.Header.Values(name); len(v) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = v
		}
	}
	s.sign(again, body, at)
	if err != nil || again.Header.Get("Authorization") != q.Header.Get("Authorization") || q.Header.Get("X-Amz-Security-Token") != s.Token {
		fail(w, 403, "SignatureDoesNotMatch")
		return
	}
	if s.n++; s.refuse != nil {
		if status := s.refuse(s.n, q); status != 0 {
			fail(w, status, http.StatusText(status))
			return
		}
	}
	key, ok := strings.CutPrefix(q.URL.Path, "/b/")
	if !ok && q.URL.Path != "/b" {
		fail(w, 404, "NoSuchBucket")
		return
	}
	object, there := s.objects[key]
	switch {
	case q.Method == http.MethodPut:
		s.objects[key] = body
	case q.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case q.URL.Query().Get("list-type") == "2":
		s.list(w, q)
	case !there:
		fail(w, 404, "NoSuchKey")
	default:
		w.Header().Set("Content-Length", strconv.Itoa(len(object)))
		if q.Method == http.MethodGet {
			_, _ = w.Write(object)
		}
	}
}

func (s *server) list(w http.ResponseWriter, q *http.Request) {
	type content struct {
		Key          string
		LastModified string
		Size         int
	}
	type result struct {
		XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []content
	}
	var keys []string
	for key := range s.objects {
		if strings.HasPrefix(key, q.URL.Query().Get("prefix")) && key > q.URL.Query().Get("continuation-token") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var r result
	for i, key := range keys {
		if i == 3 {
			r.IsTruncated, r.NextContinuationToken = true, keys[2]
			break
		}
		r.Contents = append(r.Contents, content{key, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), len(s.objects[key])})
	}
	_ = xml.NewEncoder(w).Encode(r)
}

// The examples that Amazon gives of its signatures ("Signature Calculations for the Authorization
// Header", Amazon S3 API reference).
func TestSign(t *testing.T) {
	t.Parallel()
	s := S3{Region: "us-east-1", AccessKey: "AKIAIOSFODNN7EXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	for _, c := range []struct {
		method, path, body string
		headers            map[string]string
		want               string
	}{
		{"GET", "/test.txt", "", map[string]string{"Range": "bytes=0-9"}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"PUT", "/test$file.text", "Welcome to Amazon S3.", map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY"},
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"GET", "/?lifecycle", "", nil, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"GET", "/?max-keys=2&prefix=J", "", nil, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		q, err := http.NewRequestWithContext(t.Context(), c.method, "https://examplebucket.s3.amazonaws.com"+c.path, strings.NewReader(c.body))
		must(t, err)
		for name, value := range c.headers {
			q.Header.Set(name, value)
		}
		s.sign(q, []byte(c.body), time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
		if got := q.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+c.want) {
			t.Errorf("%s %s: %s", c.method, c.path, got)
		}
	}
}

// A bucket that fails for a moment is tried again. One that fails for good ends the backup; the
// generations before it are whole, and the next one uses what was written.
func TestABucketThatFails(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	s := newServer(t)
	r := repo(t, s.options("s3://b/p"))
	b := r.place.(*bucket)
	b.pause = time.Millisecond
	s.refuse = func(n int, _ *http.Request) int {
		if n%4 == 1 {
			return []int{500, 503, 429}[n%3]
		}
		return 0
	}
	h.backup(r, Source{})
	h.run(task.Completed)
	for fails := 1; fails < 400; fails++ {
		start := s.n
		s.refuse = func(n int, _ *http.Request) int {
			if n >= start+fails {
				return 403
			}
			return 0
		}
		_, err := r.Make(t.Context(), Source{Base: h.base})
		failed := s.n >= start+fails
		s.refuse = nil
		if !failed {
			must(t, err)
			break
		}
		if err == nil || !strings.Contains(err.Error(), "403 Forbidden") {
			t.Fatalf("request %d: %v", fails, err)
		}
		if fails%7 != 0 {
			continue
		}
		found, err := r.Verify(t.Context(), nil)
		must(t, err)
		if len(found) != 1 || found[0].Why != nil {
			t.Fatalf("request %d: %+v", fails, found)
		}
	}
	rep := h.backup(r, Source{})
	dir := filepath.Join(t.TempDir(), "base")
	restore(t, r, rep.Number, Target{Dir: dir})
	same(t, "restored", listing(t, dir), listing(t, h.base))

	// An answer that ends too early is no object.
	s.mu.Lock()
	for key, o := range s.objects {
		if strings.HasPrefix(key, "p/"+dataDir) {
			s.objects[key] = o[:len(o)/2]
		}
	}
	s.mu.Unlock()
	if found, err := r.Verify(t.Context(), nil); err != nil || found[0].Why == nil {
		t.Errorf("of halves: %+v, %v", found, err)
	}
	var cancelled, stop = context.WithCancel(t.Context())
	stop()
	if _, err := r.Make(cancelled, Source{Base: h.base}); !errors.Is(err, context.Canceled) {
		t.Errorf("of a backup that was ended: %v", err)
	}
	s.Token = "another"
	if _, err := r.Generations(t.Context()); err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") {
		t.Errorf("with another login: %v", err)
	}
}

// What each place promises.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{"directory": {Place: t.TempDir()}, "bucket": newServer(t).options("s3://b/+x y/é")} {
		p, err := openPlace(o, time.Now)
		must(t, err)
		if _, err := p.Get(t.Context(), "data/aa/x", 9); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: what is not there: %v", name, err)
		}
		must(t, p.Each(t.Context(), dataDir, func(Object) error { return errors.New("something") }))
		must(t, p.Remove(t.Context(), "data/aa/x"))
		var want []string
		for i := range 8 {
			key := fmt.Sprintf("data/a%d/x%d", i%2, i)
			want = append(want, key)
			must(t, p.Put(t.Context(), key, []byte("old, and longer")))
			must(t, p.Put(t.Context(), key, bytes.Repeat([]byte("x"), i)))
		}
		must(t, p.Put(t.Context(), "other", nil))
		var got []string
		must(t, p.Each(t.Context(), dataDir, func(o Object) error { got = append(got, o.Name); return nil }))
		slices.Sort(got)
		slices.Sort(want)
		same(t, name, got, want)
		if b, err := p.Get(t.Context(), "data/a1/x7", 7); err != nil || string(b) != "xxxxxxx" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		if b, err := p.Get(t.Context(), "data/a1/x7", 6); err == nil {
			t.Errorf("%s: too long: %q", name, b)
		}
		for size, want := range map[int64]bool{7: true, 6: false} {
			if has, err := p.Has(t.Context(), "data/a1/x7", size); has != want || err != nil {
				t.Errorf("%s: has %d: %v, %v", name, size, has, err)
			}
		}
		must(t, p.Remove(t.Context(), "data/a1/x7"))
		if has, err := p.Has(t.Context(), "data/a1/x7", 7); has || err != nil {
			t.Errorf("%s: removed: %v, %v", name, has, err)
		}
	}
	b, err := openBucket("none/x", newServer(t).S3, nil, time.Now)
	must(t, err)
	if _, err := b.Get(t.Context(), "x", 9); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("a bucket that is not there: %v", err)
	}
}
