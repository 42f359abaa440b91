package backup

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// S3 is how a server of buckets is reached.
type S3 struct {
	Endpoint  string // address of the server; "" for Amazon's of the region
	Region    string
	AccessKey string
	SecretKey string
	Token     string // of a session, "" for none
}

// bucket is a place in an S3-compatible bucket, by paths below the server's address
// (Amazon S3 API reference, 2006-03-01).
type bucket struct {
	S3
	at     *url.URL // of the bucket
	prefix string   // "" or with a slash at its end
	http   *http.Client
	now    func() time.Time
	pause  time.Duration // before the first further try
}

// More tries of a request that a server could not answer for now.
const (
	moreTries  = 5
	firstPause = 500 * time.Millisecond
	// requestTime bounds one try: of an object of a MiB it asks for 10 KiB a second.
	requestTime = 2 * time.Minute
)

func openBucket(name string, s S3, client *http.Client, now func() time.Time) (*bucket, error) {
	name, prefix, _ := strings.Cut(name, "/")
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	if name == "" || s.AccessKey == "" || s.SecretKey == "" {
		return nil, i18n.E("backup.no_login", bucketScheme+name)
	}
	if s.Endpoint == "" {
		s.Endpoint = "https://s3." + s.Region + ".amazonaws.com"
	}
	at, err := url.Parse(s.Endpoint)
	if err != nil {
		return nil, err
	}
	if client == nil {
		client = http.DefaultClient
	}
	return &bucket{S3: s, at: at.JoinPath(name), prefix: prefix, http: client, now: now, pause: firstPause}, nil
}

func (b *bucket) String() string {
	return bucketScheme + strings.TrimSuffix(b.at.Path[strings.LastIndex(b.at.Path, "/")+1:]+"/"+b.prefix, "/")
}

func (b *bucket) Put(ctx context.Context, name string, data []byte) error {
	_, err := b.do(ctx, http.MethodPut, b.prefix+name, nil, data, maxSmall)
	return err
}

func (b *bucket) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	return b.do(ctx, http.MethodGet, b.prefix+name, nil, nil, most)
}

func (b *bucket) Has(ctx context.Context, name string, size int64) (bool, error) {
	raw, err := b.do(ctx, http.MethodHead, b.prefix+name, nil, nil, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return string(raw) == fmt.Sprint(size), err
}

func (b *bucket) Remove(ctx context.Context, name string) error {
	_, err := b.do(ctx, http.MethodDelete, b.prefix+name, nil, nil, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// objectPage is a page of what a bucket holds (ListObjectsV2).
type objectPage struct {
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct {
		Key          string
		LastModified time.Time
	}
}

func (b *bucket) Each(ctx context.Context, prefix string, f func(Object) error) error {
	query := url.Values{"list-type": {"2"}, "prefix": {b.prefix + prefix}}
	for {
		raw, err := b.do(ctx, http.MethodGet, "", query, nil, disk.MaxWhole)
		if err != nil {
			return err
		}
		var page objectPage
		if err := xml.Unmarshal(raw, &page); err != nil {
			return i18n.E("backup.s3", b.String(), "ListObjectsV2", err)
		}
		for _, o := range page.Contents {
			name, ok := strings.CutPrefix(o.Key, b.prefix)
			if !ok {
				continue
			}
			if err := f(Object{name, o.LastModified}); err != nil {
				return err
			}
		}
		if !page.IsTruncated || page.NextContinuationToken == "" {
			return nil
		}
		query.Set("continuation-token", page.NextContinuationToken)
	}
}

// do makes a request, again where that may help, and returns the answer's body, or for HEAD the
// length of the object. That there is none is fs.ErrNotExist.
func (b *bucket) do(ctx context.Context, method, key string, query url.Values, body []byte, most int64) ([]byte, error) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval = b.pause
	raw, err := backoff.Retry(ctx, func() ([]byte, error) { return b.once(ctx, method, key, query, body, most) },
		backoff.WithBackOff(wait), backoff.WithMaxTries(moreTries+1), backoff.WithMaxElapsedTime(0))
	if long := (*disk.TooLargeError)(nil); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &long) && ctx.Err() == nil {
		return nil, i18n.E("backup.s3", b.String(), strings.TrimSpace(method+" "+key), err)
	}
	return raw, err
}

// refusal is the body of an answer that refuses.
type refusal struct{ Code, Message string }

func (b *bucket) once(ctx context.Context, method, key string, query url.Values, body []byte, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	at := *b.at
	at.Path = strings.TrimSuffix(at.Path+"/"+key, "/")
	at.RawPath, at.RawQuery = escaped(at.Path, true), sortedQuery(query)
	q, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	b.sign(q, body, b.now())
	a, err := b.http.Do(q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Body.Close() }() // what counts of it was read
	switch {
	case a.StatusCode == http.StatusNotFound && key != "" && method != http.MethodPut:
		// Of HEAD and of servers that name no code it may be the bucket that is missing: listing tells that.
		raw, _ := disk.ReadAll(a.Body, key, maxSmall)
		var why refusal
		if xml.Unmarshal(raw, &why) == nil && why.Code == "NoSuchBucket" {
			return nil, backoff.Permanent(fmt.Errorf("%s: %s", why.Code, why.Message))
		}
		return nil, backoff.Permanent(&fs.PathError{Op: method, Path: b.String() + "/" + key, Err: fs.ErrNotExist})
	case a.StatusCode/100 != 2:
		raw, _ := disk.ReadAll(a.Body, key, maxSmall)
		why := refusal{Code: a.Status}
		_ = xml.Unmarshal(raw, &why) // one that is not XML has its status
		err := fmt.Errorf("%d %s: %s", a.StatusCode, why.Code, why.Message)
		if a.StatusCode/100 == 5 || a.StatusCode == http.StatusTooManyRequests || a.StatusCode == http.StatusRequestTimeout {
			return nil, err
		}
		return nil, backoff.Permanent(err)
	case method == http.MethodHead:
		return []byte(fmt.Sprint(a.ContentLength)), nil
	}
	raw, err := disk.ReadAll(a.Body, key, most)
	if long := (*disk.TooLargeError)(nil); errors.As(err, &long) {
		return nil, backoff.Permanent(err)
	}
	if err == nil && a.ContentLength > int64(len(raw)) {
		err = io.ErrUnexpectedEOF
	}
	return raw, err
}
