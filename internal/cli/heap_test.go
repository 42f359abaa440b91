package cli

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// After a collection the percentage is that of a small heap or of a large one,
// whichever it was before. It is the whole program's: nothing runs beside this
// test, and what it leaves ends with the program.
func TestHeapAfterCollections(t *testing.T) {
	for _, c := range []struct {
		small    uint64
		from, to int
	}{{1, roomyPercent, usualPercent}, {math.MaxInt64, usualPercent, roomyPercent}} {
		h := heap{c.small, c.from}
		h.collect()
		got := -1
		for range 10_000 { // cleanups run soon after a collection, and not in it
			runtime.GC()
			now := []metrics.Sample{{Name: "/gc/gogc:percent"}}
			metrics.Read(now)
			if got = int(now[0].Value.Uint64()); got == c.to {
				break
			}
		}
		if got != c.to {
			t.Errorf("%+v: %d %% after many collections", h, got)
		}
	}
	debug.SetGCPercent(usualPercent)
}
