package rest

import (
	"container/list"
	"net/http"
	"sync"
)

// cache keeps answers by what was asked, the least recently used ones only as
// long as there is room. It is safe for concurrent use.
type cache struct {
	mu    sync.Mutex
	most  int64 // bytes
	size  int64
	order *list.List // of *answer, the most recently used first
	byKey map[string]*list.Element
}

// answer is a kept answer; it does not change.
type answer struct {
	key    string
	etag   string
	header http.Header
	body   []byte
}

func (a *answer) bytes() int64 {
	n := len(a.key) + len(a.etag) + len(a.body)
	for k, vs := range a.header {
		n += len(k)
		for _, v := range vs {
			n += len(v)
		}
	}
	return int64(n)
}

func newCache(most int64) *cache {
	return &cache{most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

func (c *cache) get(key string) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*answer)
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
	for c.size += a.bytes(); c.size > c.most; {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	a := c.order.Remove(e).(*answer)
	delete(c.byKey, a.key)
	c.size -= a.bytes()
}
