package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"toritsugi/internal/contextstore"
)

// The names of the idle part's sample, per context where not said.
const (
	idleMemory     = "idle memory"     // heap and stacks in use, KiB
	idleStacks     = "idle stacks"     // of it stacks, KiB
	idleGoroutines = "idle goroutines" // that wait in it
	idleFiles      = "idle files"      // descriptors
	idleNaive      = "idle naive"      // of a program that keeps all messages, KiB
	idleCount      = "idle count"      // contexts
)

// idleMessages is how many messages each of the contexts has.
const idleMessages = 20

// measureIdle measures what a context costs that is claimed, was worked on a
// moment ago and waits. The naive way keeps its messages in memory.
func measureIdle(ctx context.Context, dir string, count int) (sample, error) {
	// "os": a sync changes nothing of what is in memory, and takes long.
	store, err := openStore(ctx, filepath.Join(dir, "base"), contextstore.Options{NoSync: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	before, err := standing()
	if err != nil {
		return nil, err
	}
	contexts := make([]*contextstore.Context, 0, count)
	defer func() {
		for _, c := range contexts {
			_ = c.Close() // nothing of it is kept
		}
	}()
	for n := range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := claimNew(ctx, store, n)
		if err != nil {
			return nil, fmt.Errorf("context %d: %w", n+1, err)
		}
		contexts = append(contexts, c)
		for k := range idleMessages {
			if _, err := c.Append(typical(k)); err != nil {
				return nil, err
			}
		}
		if err := c.TurnDone(ctx); err != nil {
			return nil, err
		}
	}
	after, err := standing()
	if err != nil {
		return nil, err
	}
	naive, err := keepAll(count)
	if err != nil {
		return nil, err
	}
	each := func(f func(stand) int64) float64 { return float64(f(after)-f(before)) / float64(count) }
	return sample{
		idleCount:      float64(count),
		idleMemory:     each(func(s stand) int64 { return s.heap + s.stacks }) / 1024,
		idleStacks:     each(func(s stand) int64 { return s.stacks }) / 1024,
		idleGoroutines: each(func(s stand) int64 { return s.goroutines }),
		idleFiles:      each(func(s stand) int64 { return s.files }),
		idleNaive:      naive,
	}, nil
}

// stand is what the process has in use.
type stand struct{ heap, stacks, goroutines, files int64 }

func standing() (stand, error) {
	runtime.GC()
	runtime.GC() // what the first one finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, err := os.ReadDir("/proc/self/fd")
	return stand{int64(m.HeapInuse), int64(m.StackInuse), int64(runtime.NumGoroutine()), int64(len(open))}, err
}

// keepAll is what the messages of a context take in memory as they are decoded,
// KiB.
func keepAll(count int) (float64, error) {
	before, err := standing()
	if err != nil {
		return 0, err
	}
	all := make([][]contextstore.Message, count)
	for n := range all {
		for k := range idleMessages {
			all[n] = append(all[n], typical(k))
		}
	}
	after, err := standing()
	runtime.KeepAlive(all)
	return float64(after.heap-before.heap) / float64(count) / 1024, err
}
