package rest

import (
	"fmt"
	"testing"
)

func TestCache(t *testing.T) {
	t.Parallel()
	c := newCache(1000)
	one := func(key string, size int) *answer { return &answer{key: key, etag: "e", body: make([]byte, size)} }
	for n := range 20 {
		c.put(one(fmt.Sprint("k", n), 195))
		c.put(one("always", 195))
		if c.size > 1000 || c.get("always") == nil {
			t.Fatalf("%d bytes", c.size)
		}
	}
	if len(c.byKey) != 5 || c.get("k0") != nil || c.get("k19") == nil {
		t.Errorf("%d answers, %d bytes", len(c.byKey), c.size)
	}
	c.put(one("large", 300))
	c.put(one("always", 300)) // it grew too large: the old answer must not stay
	if c.get("large") != nil || c.get("always") != nil {
		t.Error("kept")
	}
	none := newCache(0)
	none.put(one("k", 1))
	if none.get("k") != nil {
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
