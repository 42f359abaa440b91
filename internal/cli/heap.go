package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Of one run little is alive at a time and much is soon garbage. While no more
// than smallHeap is alive the heap may grow to three times that before it is
// collected, and to twice as much later, as everywhere: a tenth less processor
// time for 3 MiB.
const (
	smallHeap    = 3 << 20 // bytes
	roomyPercent = 200     // of the living, see debug.SetGCPercent
	usualPercent = 100
)

// roomyHeap collects less often while the heap is small. Whoever sets GOGC knows
// better.
func roomyHeap(getenv func(string) string) {
	if getenv("GOGC") == "" {
		heap{smallHeap, roomyPercent}.collect()
	}
}

// heap is how the heap is collected.
type heap struct {
	small   uint64 // bytes that are alive of one that is small
	percent int    // garbage there may be, of the living (debug.SetGCPercent)
}

// collect sets the percentage, and after each collection the one for what that
// has found alive.
func (h heap) collect() {
	debug.SetGCPercent(h.percent)
	h.again()
}

func (h heap) again() {
	runtime.AddCleanup(new([4]*byte), func(h heap) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		was := h.percent
		if h.percent = usualPercent; live[0].Value.Uint64() <= h.small {
			h.percent = roomyPercent
		}
		if h.percent != was {
			debug.SetGCPercent(h.percent)
		}
		h.again()
	}, h)
}
