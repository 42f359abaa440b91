package channel

import (
	"fmt"
	"testing"
)

func TestRecentIsBounded(t *testing.T) {
	t.Parallel()
	const most = 100
	r := Recent[string]{Most: most}
	for n := range 10 * most {
		r.Put(fmt.Sprint(n), "x")
	}
	if n := len(r.now) + len(r.before); n > 2*most {
		t.Errorf("%d", n)
	}
	if _, ok := r.Get(fmt.Sprint(9 * most)); !ok {
		t.Error("a recent one is forgotten")
	}
	r.Drop(fmt.Sprint(10*most - 1))
	if _, ok := r.Get(fmt.Sprint(10*most - 1)); ok {
		t.Error("one that was dropped is there")
	}
}
