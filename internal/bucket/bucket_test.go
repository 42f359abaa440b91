package bucket_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/bucket"
	"toritsugi/internal/bucket/buckettest"
	"toritsugi/internal/i18n"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The examples that Amazon gives of its signatures ("Signature Calculations for the Authorization
// Header", Amazon S3 API reference).
func TestSign(t *testing.T) {
	t.Parallel()
	s := bucket.S3{Region: "us-east-1", AccessKey: "AKIAIOSFODNN7EXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
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
		s.Sign(q, []byte(c.body), time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
		if got := q.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+c.want) {
			t.Errorf("%s %s: %s", c.method, c.path, got)
		}
	}
}

// The texts to sign that Microsoft gives as examples ("Authorize with Shared Key", Azure Storage REST
// API), of our version; the keys of these are not published.
func TestSignAzure(t *testing.T) {
	t.Parallel()
	s := bucket.Azure{Account: "myaccount", Key: "a2V5"}
	for _, c := range []struct{ method, query, want string }{
		{"GET", "comp=metadata&restype=container&timeout=20", "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"},
		{"PUT", "restype=container&timeout=30", "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n/myaccount/mycontainer\nrestype:container\ntimeout:30"},
	} {
		q, err := http.NewRequestWithContext(t.Context(), c.method, "https://myaccount.blob.core.windows.net/mycontainer?"+c.query, nil)
		must(t, err)
		s.Sign(q, nil, time.Date(2015, 6, 26, 23, 39, 12, 0, time.UTC))
		h := hmac.New(sha256.New, []byte("key"))
		h.Write([]byte(strings.Replace(c.want, "2015-02-21", q.Header.Get("X-Ms-Version"), 1)))
		if got := q.Header.Get("Authorization"); got != "SharedKey myaccount:"+base64.StdEncoding.EncodeToString(h.Sum(nil)) {
			t.Errorf("%s %s: %s", c.method, c.query, got)
		}
	}
}

// What each place promises.
func TestPlaces(t *testing.T) {
	t.Parallel()
	s := buckettest.New(t)
	for name, o := range map[string]bucket.Options{"directory": {Place: t.TempDir()}, "S3": {Place: "s3://b/+x y/é", S3: s.S3}, "Azure": {Place: "azure://b/+x y/é&=?%/", Azure: s.Azure}} {
		p, err := bucket.Open(o)
		must(t, err)
		if _, err := p.Get(t.Context(), "data/aa/x", 9); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), " "+p.String()+"/data/aa/x: ") {
			t.Errorf("%s: what is not there: %v", name, err)
		}
		must(t, p.Each(t.Context(), "data/", func(bucket.Object) error { return errors.New("something") }))
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
		must(t, p.Each(t.Context(), "data/", func(o bucket.Object) error { got = append(got, o.Name); return nil }))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q and not %q", name, got, want)
		}
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
}

// What a server refuses is not taken for an object that is not there, and is told with what to do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := buckettest.New(t)
	stranger := s.Azure
	stranger.Key = "c3RyYW5nZXI="
	slow := func() time.Time { return time.Now().Add(-26 * time.Minute) }
	for _, c := range []struct {
		o        bucket.Options
		en, ja   string
		requests int
	}{
		{bucket.Options{Place: "s3://none/x", S3: s.S3}, "404 NoSuchBucket: ", "404 NoSuchBucket: ", 1},
		{bucket.Options{Place: "azure://none/x", Azure: s.Azure}, "404 ContainerNotFound: as asked)", "404 ContainerNotFound: as asked", 2},
		{bucket.Options{Place: "azure://b/x", Azure: stranger}, "403 AuthenticationFailed: as asked; the key is not the one that the server knows", "サーバーが知っているキーではありません", 0},
		{bucket.Options{Place: "azure://b/x", Azure: s.Azure, Now: slow}, "403 AuthenticationFailed: as asked; this machine's clock differs from the server's by 26m0s", "時計がサーバーと 26m0s ずれています", 0},
	} {
		p, err := bucket.Open(c.o)
		must(t, err)
		before := s.Requests()
		_, err = p.Get(t.Context(), "x", 9)
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(i18n.English.Error(err), c.en) || !strings.Contains(i18n.Japanese.Error(err), c.ja) {
			t.Errorf("%s: %v\n%s", c.o.Place, err, i18n.Japanese.Error(err))
		}
		if strings.Contains(fmt.Sprint(err), s.Azure.Key) {
			t.Errorf("the key is in %v", err)
		}
		if c.o.S3.Region == "" { // of HEAD S3 does not say which it is
			if _, err := p.Has(t.Context(), "x", 9); err == nil {
				t.Errorf("%s: Has", c.o.Place)
			}
		}
		if n := s.Requests() - before; n != c.requests {
			t.Errorf("%s: %d requests", c.o.Place, n)
		}
	}
}

// What is no list, or only a part of one, is not taken for a list; Azure begins a list with a mark of its encoding.
func TestLists(t *testing.T) {
	t.Parallel()
	const azure, s3 = "azure://b", "s3://b"
	for i, c := range []struct{ place, body, want string }{
		{azure, "<EnumerationResults><Blobs/><NextMarker>here</NextMarker></EnumerationResults>", "does not go on"},
		{azure, "\ufeff<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs/><NextMarker/></EnumerationResults>", ""},
		{azure, "<html><body>Sign in</body></html>", "EnumerationResults"},
		{s3, "<html><body>Sign in</body></html>", "ListBucketResult"},
		{s3, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>true</IsTruncated><NextMarker>here</NextMarker></ListBucketResult>`, "does not say where"},
		{s3, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated></ListBucketResult>`, ""},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.body) }))
		t.Cleanup(s.Close)
		p, err := bucket.Open(bucket.Options{Place: c.place, Azure: bucket.Azure{Endpoint: s.URL, Account: "a", Key: "a2V5"}, S3: bucket.S3{Endpoint: s.URL, AccessKey: "a", SecretKey: "b"}})
		must(t, err)
		if err := p.Each(t.Context(), "data/", func(bucket.Object) error { return nil }); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// What the server cannot do for now is asked for again.
func TestRetries(t *testing.T) {
	t.Parallel()
	s := buckettest.New(t)
	p, err := bucket.Open(bucket.Options{Place: "azure://b/x", Azure: s.Azure, Pause: time.Microsecond})
	must(t, err)
	s.Refuse(func(n int, _ *http.Request) int { return []int{500, 503, 0}[n%3] })
	must(t, p.Put(t.Context(), "x", []byte("y")))
	if b, err := p.Get(t.Context(), "x", 9); string(b) != "y" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// Where no server can be named, what is missing is.
func TestOpen(t *testing.T) {
	t.Parallel()
	login := bucket.Azure{Account: "a", Key: "a2V5"}
	for place, c := range map[string]struct {
		s3    bucket.S3
		azure bucket.Azure
		want  string
	}{
		"gs://b/p":     {want: `"gs://b/p" names no place: expected a directory, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX`},
		"azure:///p":   {azure: login, want: `"azure:///p" names no place`},
		"s3://b/p":     {azure: login, want: "AWS_ACCESS_KEY_ID"},
		"azure://b":    {s3: bucket.S3{AccessKey: "a", SecretKey: "b"}, want: "AZURE_STORAGE_ACCOUNT"},
		"azure://b/ p": {azure: bucket.Azure{Account: "a", Key: "not base64"}, want: "base64"},
	} {
		if p, err := bucket.Open(bucket.Options{Place: place, S3: c.s3, Azure: c.azure}); p != nil || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "not base64") {
			t.Errorf("%s: %v, %v", place, p, err)
		}
	}
	p, err := bucket.Open(bucket.Options{Place: "azure://b//p/", Azure: login})
	if must(t, err); p.String() != "azure://b/p" {
		t.Error(p)
	}
}
