package backup

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/bucket"
	"toritsugi/internal/bucket/buckettest"
	"toritsugi/internal/task"
)

// A bucket that fails for a moment is tried again. One that fails for good ends the backup; the
// generations before it are whole, and the next one uses what was written.
func TestABucketThatFails(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 3)
	s := buckettest.New(t)
	r := repo(t, Options{Place: "s3://b/p", S3: s.S3})
	var err error
	r.place, err = bucket.Open(bucket.Options{Place: "s3://b/p", S3: s.S3, Pause: time.Millisecond})
	must(t, err)
	s.Refuse(func(n int, _ *http.Request) int {
		if n%4 == 1 {
			return []int{500, 503, 429}[n%3]
		}
		return 0
	})
	h.backup(r, Source{})
	h.run(task.Completed)
	for fails := 1; fails < 400; fails++ {
		start := s.Requests()
		s.Refuse(func(n int, _ *http.Request) int {
			if n >= start+fails {
				return 403
			}
			return 0
		})
		_, err := r.Make(t.Context(), Source{Base: h.base})
		failed := s.Requests() >= start+fails
		s.Refuse(nil)
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
	var names []string
	must(t, r.place.Each(t.Context(), dataDir, func(o bucket.Object) error { names = append(names, o.Name); return nil }))
	for _, name := range names {
		o, err := r.place.Get(t.Context(), name, maxObject)
		must(t, err)
		must(t, r.place.Put(t.Context(), name, o[:len(o)/2]))
	}
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
