package bucket

import (
	"bytes"
	"cmp"
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

// protocol is what one kind of server has of its own.
type protocol interface {
	// Sign signs a request that has its address, its length and nothing else.
	Sign(q *http.Request, body []byte, now time.Time)
	// query asks for the names that begin with prefix, from where the page before ended ("": the first).
	query(prefix, after string) url.Values
	// page reads a page of names, and where it ended, "" for the last one.
	page(raw []byte) (all []Object, after string, err error)
	// noObject reports whether a 404 of that code ("" for none) says that the object is missing, not all of the bucket.
	noObject(code string) bool
}

// remote is a place in a bucket of a server, by paths below the server's address.
type remote struct {
	protocol
	name   string   // for people
	at     *url.URL // of the bucket
	prefix string   // "" or with a slash at its end
	http   *http.Client
	now    func() time.Time
	tries  uint
	pause  time.Duration // before the second of them
}

const (
	// maxSmall is the longest answer that only says how a request went, in bytes.
	maxSmall = 1 << 20
	// requestTime bounds one try: of an object of 4 MiB it asks for 35 KiB a second.
	requestTime = 2 * time.Minute
	// maxSkew is how far from the server's the time of a signature may be, at Amazon and at Azure.
	maxSkew = 15 * time.Minute
)

func openRemote(p protocol, endpoint string, o Options) (Place, error) {
	_, path, _ := strings.Cut(o.Place, "://")
	name, prefix, _ := strings.Cut(path, "/")
	if name == "" {
		return nil, i18n.E("bucket.kind", o.Place)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	at, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	return &remote{protocol: p, name: Name(o.Place), at: at.JoinPath(name), prefix: prefix,
		http: cmp.Or(o.HTTP, http.DefaultClient), now: o.Now, tries: uint(max(o.Tries, 1)), pause: o.Pause}, nil //nolint:gosec // not negative
}

func (b *remote) String() string { return b.name }

func (b *remote) Put(ctx context.Context, name string, data []byte) error {
	_, err := b.do(ctx, http.MethodPut, name, nil, data, maxSmall)
	return err
}

func (b *remote) Get(ctx context.Context, name string, most int64) ([]byte, error) {
	return b.do(ctx, http.MethodGet, name, nil, nil, most)
}

func (b *remote) Has(ctx context.Context, name string, size int64) (bool, error) {
	raw, err := b.do(ctx, http.MethodHead, name, nil, nil, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return string(raw) == fmt.Sprint(size), err
}

func (b *remote) Remove(ctx context.Context, name string) error {
	_, err := b.do(ctx, http.MethodDelete, name, nil, nil, maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (b *remote) Each(ctx context.Context, prefix string, f func(Object) error) error {
	for after := ""; ; {
		raw, err := b.do(ctx, http.MethodGet, "", b.query(b.prefix+prefix, after), nil, disk.MaxWhole)
		if err != nil {
			return err
		}
		all, next, err := b.page(raw)
		if err == nil && next != "" && next == after {
			err = errors.New("the list does not go on: the same page again")
		}
		if err != nil {
			return i18n.E("bucket.server", b.String(), "list", err)
		}
		for _, o := range all {
			name, ok := strings.CutPrefix(o.Name, b.prefix)
			if !ok {
				continue
			}
			if err := f(Object{name, o.At}); err != nil {
				return err
			}
		}
		if after = next; after == "" {
			return nil
		}
	}
}

// do makes a request of an object, or without a name of the bucket, again where that may help, and
// returns the answer's body, or for HEAD the length of the object. That there is none is fs.ErrNotExist.
func (b *remote) do(ctx context.Context, method, name string, query url.Values, body []byte, most int64) ([]byte, error) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval = b.pause
	raw, err := backoff.Retry(ctx, func() ([]byte, error) { return b.once(ctx, method, name, query, body, most) },
		backoff.WithBackOff(wait), backoff.WithMaxTries(b.tries), backoff.WithMaxElapsedTime(0))
	if long := (*disk.TooLargeError)(nil); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &long) && ctx.Err() == nil {
		return nil, i18n.E("bucket.server", b.String(), strings.TrimSpace(method+" "+name), err)
	}
	return raw, err
}

func (b *remote) once(ctx context.Context, method, name string, query url.Values, body []byte, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	at := *b.at
	if name != "" {
		at.Path += "/" + b.prefix + name
	}
	at.RawPath, at.RawQuery = escaped(at.Path), sortedQuery(query)
	q, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	b.Sign(q, body, b.now())
	a, err := b.http.Do(q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Body.Close() }() // what counts of it was read
	switch {
	case a.StatusCode/100 != 2:
		return nil, b.refused(a, method, name)
	case method == http.MethodHead:
		return []byte(fmt.Sprint(a.ContentLength)), nil
	}
	raw, err := disk.ReadAll(a.Body, name, most)
	if long := (*disk.TooLargeError)(nil); errors.As(err, &long) {
		return nil, backoff.Permanent(err)
	}
	if err == nil && a.ContentLength > int64(len(raw)) {
		err = io.ErrUnexpectedEOF
	}
	return raw, err
}

// refused is why an answer refuses; what asking again does not mend is permanent.
func (b *remote) refused(a *http.Response, method, name string) error {
	raw, _ := disk.ReadAll(a.Body, name, maxSmall)
	why := struct{ Code, Message string }{Code: a.Header.Get("X-Ms-Error-Code")} // Azure's, of HEAD, too
	_ = xml.Unmarshal(raw, &why)                                                 // one that is not XML has its status
	if a.StatusCode == http.StatusNotFound && name != "" && method != http.MethodPut && b.noObject(why.Code) {
		return backoff.Permanent(&fs.PathError{Op: method, Path: b.String() + "/" + name, Err: fs.ErrNotExist})
	}
	message, _, _ := strings.Cut(why.Message, "\n") // Azure adds an id and the time
	err := errors.New(strings.TrimSuffix(fmt.Sprintf("%d %s: %s", a.StatusCode, cmp.Or(why.Code, http.StatusText(a.StatusCode)), message), ": "))
	switch a.StatusCode {
	case http.StatusTooManyRequests, http.StatusRequestTimeout:
		return err
	case http.StatusForbidden:
		server, derr := http.ParseTime(a.Header.Get("Date"))
		if skew := b.now().Sub(server).Abs(); derr == nil && skew > maxSkew {
			err = i18n.E("bucket.clock", err, skew.Round(time.Minute))
		} else if why.Code == "AuthenticationFailed" || why.Code == "SignatureDoesNotMatch" {
			err = i18n.E("bucket.key", err)
		}
	}
	if a.StatusCode/100 == 5 {
		return err
	}
	return backoff.Permanent(err)
}
