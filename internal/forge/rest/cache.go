package rest

import (
	"container/list"
	"net/http"
	"sync"
	"time"
)

// keptFor is how long an answer is kept that nobody asks for: lists of what is new since some
// time are asked for with another time each hour.
const keptFor = 2 * time.Hour

// cache keeps answers by what was asked, the least recently used ones only as
// long as there is room. It is safe for concurrent use.
type cache struct {
	mu    sync.Mutex
	most  int64 // bytes
	size  int64
	order *list.List // of *answer, the most recently used first
	byKey map[string]*list.Element
}

// answer is a kept answer; but for when it was used it does not change.
type answer struct {
	used   time.Time
	key    string
	etag   string
	header http.Header
	body   []byte
}

func (a *answer) bytes() int64 {
	const each = 64 // of a list, a map or a string, about
	n := 4*each + len(a.key) + len(a.etag) + len(a.body)
	for k, vs := range a.header {
		n += each + len(k)
		for _, v := range vs {
			n += len(v)
		}
	}
	return int64(n)
}

func newCache(most int64) *cache {
	return &cache{most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

func (c *cache) get(key string, now time.Time) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	a := e.Value.(*answer)
	a.used = now
	return a
}

// put keeps an answer; one that takes more than a quarter of the room is not
// worth what it would push out.
func (c *cache) put(a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[a.key]; e != nil {
		c.drop(e)
	}
	if a.etag == "" || a.bytes() > c.most/4 {
		return
	}
	c.byKey[a.key] = c.order.PushFront(a)
	c.size += a.bytes()
	for last := c.order.Back(); c.size > c.most || last != nil && a.used.Sub(last.Value.(*answer).used) > keptFor; last = c.order.Back() {
		c.drop(last)
	}
}

func (c *cache) drop(e *list.Element) {
	a := c.order.Remove(e).(*answer)
	delete(c.byKey, a.key)
	c.size -= a.bytes()
}
