package disktest

import (
	"runtime"
	"testing"
)

// Bounds of what a parser may allocate, in bytes: for any input, and for each byte
// of one. They are above what tables and patterns take that are made once.
const (
	baseMemory = 300 << 20
	byteMemory = 8 << 10
)

// Bounded fails the test if more is allocated than n bytes of input allow between
// the call and that of what it returns, whether or not it is kept. It is for fuzz
// targets, which run one after the other:
//
//	defer disktest.Bounded(t, len(text))()
func Bounded(t testing.TB, n int) func() {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	return func() {
		t.Helper()
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > baseMemory+uint64(n)*byteMemory {
			t.Errorf("%d bytes of input allocated %d MB", n, took>>20)
		}
	}
}
