package rest

import (
	"fmt"
	"testing"
	"time"
)

func TestCache(t *testing.T) {
	t.Parallel()
	c := newCache(10_000)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one := func(key string, size int) *answer {
		return &answer{used: now, key: key, etag: "e", body: make([]byte, size)}
	}
	for n := range 20 {
		c.put(one(fmt.Sprint("k", n), 1700))
		c.put(one("always", 1700))
		if c.size > 10_000 || c.get("always", now) == nil {
			t.Fatalf("%d bytes", c.size)
		}
	}
	if len(c.byKey) != 5 || c.get("k0", now) != nil || c.get("k19", now) == nil {
		t.Errorf("%d answers, %d bytes", len(c.byKey), c.size)
	}
	c.put(one("large", 3000))
	c.put(one("always", 3000)) // it grew too large: the old answer must not stay
	if c.get("large", now) != nil || c.get("always", now) != nil {
		t.Error("kept")
	}
	for n := range 9 { // what nobody asks for goes, what is asked for stays
		now = now.Add(keptFor / 4)
		c.put(one(fmt.Sprint("since ", n), 1))
		if n > 0 && c.get("since 0", now) == nil {
			t.Error("it was asked for")
		}
	}
	if len(c.byKey) != 6 || c.get("since 3", now) != nil {
		t.Errorf("%d answers", len(c.byKey))
	}
	none := newCache(0)
	none.put(one("k", 1))
	if none.get("k", now) != nil {
		t.Error("kept in no room")
	}
}

func TestMarkerIn(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{"text": "", "text\n\n<!-- tori:pull-1 -->": "pull-1", "text\r\n<!-- tori:pull-1 -->\r\nmore": "pull-1", "say <!-- tori:pull-1 -->": ""} {
		if got := MarkerIn(body); got != want {
			t.Errorf("%q: %q", body, got)
		}
	}
}
