package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
)

// The names of the append part's sample. Times are µs per message.
const (
	appendOne   = "append one"   // one context
	appendMany  = "append many"  // many at once, wall time by all messages
	floorOne    = "floor one"    // write and fdatasync of the same bytes
	floorMany   = "floor many"   // the same, as many files at once
	appendBytes = "append bytes" // of a message's line
	appendAlloc = "append alloc" // allocations of an append
	appendHeap  = "append heap"  // bytes of them
	appendCPU   = "append cpu"   // of this process, many at once
	turnSyncs   = "turn syncs"   // of files, in a turn
	turnDirs    = "turn dirs"    // of directories
	turnRows    = "turn rows"    // row updates
	turnWrites  = "turn writes"  // bytes appended and replaced
	atOnce      = "at once"      // how many is many
)

const (
	appendRounds = 7  // of floor and ledger in turns
	appendEach   = 25 // messages of each context in a round of many; of one alone, for each of the many, a fifth
	countedTurns = 100
)

// measureAppend measures appends of one context and of many at once, beside the
// floor, and counts what a turn asks of the disk.
func measureAppend(ctx context.Context, dir string, many int) (sample, error) {
	s := sample{atOnce: float64(many)}
	store, err := openStore(ctx, filepath.Join(dir, "base"), contextstore.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	contexts := make([]*contextstore.Context, many)
	for i := range contexts {
		if contexts[i], err = claimNew(ctx, store, i); err != nil {
			return nil, err
		}
		defer func() { _ = contexts[i].Close() }()
	}
	line, err := lineBytes(contexts[0])
	if err != nil {
		return nil, err
	}
	s[appendBytes] = float64(line)
	var sides [4][]float64
	var cpus []float64
	for range appendRounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, n := range []int{1, many} {
			each := appendEach
			if i == 0 {
				each = appendEach * many / 5
			}
			floor, err := floorAppend(filepath.Join(dir, "floor"), n, each, line)
			if err != nil {
				return nil, err
			}
			var ours float64
			_, used, err := spent(func() (err error) {
				ours, err = together(n, each, func(i int) (func() error, error) {
					return func() error { _, err := contexts[i].Append(typical(i)); return err }, nil
				})
				return err
			})
			if err != nil {
				return nil, err
			}
			sides[2*i], sides[2*i+1] = append(sides[2*i], floor), append(sides[2*i+1], ours)
			if i == 1 {
				cpus = append(cpus, float64(used.Microseconds())/float64(n*each))
			}
		}
	}
	s[floorOne], s[appendOne], s[floorMany], s[appendMany] = median(sides[0]), median(sides[1]), median(sides[2]), median(sides[3])
	s[appendCPU] = median(cpus)
	if err := s.addAllocations(contexts[0]); err != nil {
		return nil, err
	}
	return s, s.addTurns(ctx, filepath.Join(dir, "turns"))
}

// lineBytes is the length of a typical message's line.
func lineBytes(c *contextstore.Context) (int, error) {
	m, err := c.Append(typical(0), typical(0))
	if err != nil {
		return 0, err
	}
	return int(m[1].Offset - m[0].Offset), nil
}

// together lets n goroutines make each calls and returns the wall time by call,
// in µs. step makes what goroutine i calls.
func together(n, each int, step func(i int) (func() error, error)) (float64, error) {
	errs := make([]error, n)
	steps := make([]func() error, n)
	for i := range n {
		var err error
		if steps[i], err = step(i); err != nil {
			return 0, err
		}
	}
	var done sync.WaitGroup
	start := time.Now()
	for i := range n {
		done.Go(func() {
			for range each {
				if errs[i] = steps[i](); errs[i] != nil {
					return
				}
			}
		})
	}
	done.Wait()
	wall := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(wall.Microseconds()) / float64(n*each), nil
}

// floorAppend is the least that appending costs: the bytes written and synced.
func floorAppend(dir string, files, each, line int) (float64, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it lies below the part's directory, which goes too
	all := make([]*os.File, files)
	defer func() {
		for _, f := range all {
			_ = f.Close() // what matters was synced
		}
	}()
	b := make([]byte, line)
	return together(files, each, func(i int) (func() error, error) {
		var err error
		if all[i], err = os.Create(filepath.Join(dir, fmt.Sprint(i))); err != nil {
			return nil, err
		}
		return func() error {
			if _, err := all[i].Write(b); err != nil {
				return err
			}
			return syscall.Fdatasync(int(all[i].Fd()))
		}, nil
	})
}

// addAllocations counts what an append allocates; nothing else may be running.
func (s sample) addAllocations(c *contextstore.Context) error {
	const times = 100
	m := typical(7)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if _, err := c.Append(m); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	s[appendAlloc] = float64(after.Mallocs-before.Mallocs) / times
	s[appendHeap] = float64(after.TotalAlloc-before.TotalAlloc) / times
	return nil
}

// addTurns counts what turns ask of the disk. The model and the tool take a
// second each by the clock of the store: notes and row updates that follow each
// other faster are put together, and that would flatter the counts.
func (s sample) addTurns(ctx context.Context, base string) error {
	var dirs, clock atomic.Int64
	clock.Store(time.Now().UnixNano())
	fs := &disk.FS{Before: func(op disk.Op) error {
		if op.Kind == disk.Sync && op.Dir {
			dirs.Add(1)
		}
		return nil
	}}
	second := func() { clock.Add(int64(time.Second)) }
	store, err := openStore(ctx, base, contextstore.Options{FS: fs, Now: func() time.Time { return time.Unix(0, clock.Load()) }})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	c, err := claimNew(ctx, store, 1)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	// The first note after a checkpoint keeps what the checkpoint said: that is
	// the checkpoint's, not the turn's.
	if err := takeTurn(ctx, c, 0, second); err != nil {
		return err
	}
	before, rowsBefore := fs.Counts(), store.RowUpdates()
	dirs.Store(0)
	for n := range countedTurns {
		if err := takeTurn(ctx, c, n+1, second); err != nil {
			return err
		}
	}
	after := fs.Counts()
	s[turnSyncs] = float64(after.Syncs-before.Syncs) / countedTurns
	s[turnDirs] = float64(dirs.Load()) / countedTurns
	s[turnRows] = float64(store.RowUpdates()-rowsBefore) / countedTurns
	s[turnWrites] = float64(after.Bytes-before.Bytes) / countedTurns
	return nil
}

// answerText is what the model says in a turn.
const answerText = "I look at the file."

// takeTurn writes what turn.Loop writes in one turn with one call; wait is
// called where the model thinks and where the tool works.
func takeTurn(ctx context.Context, c *contextstore.Context, n int, wait func()) error {
	answer := typical(n)
	call := contextstore.ToolCall{ID: answer.ToolCallID, Name: answer.ToolName, Arguments: `{"path":"store.go"}`}
	asks := contextstore.Message{Role: "assistant", Content: answerText, ToolCalls: []contextstore.ToolCall{call},
		Usage: &contextstore.Usage{Prompt: 1000 * n, Completion: 20}}
	if err := c.Activity(contextstore.Processing, "llm_call"); err != nil {
		return err
	}
	wait()
	if _, err := c.Append(asks); err != nil {
		return err
	}
	if err := c.Activity(contextstore.Processing, "tool_execution"); err != nil {
		return err
	}
	wait()
	if err := c.AppendTools(contextstore.ToolRun{Tool: call.Name, Args: []byte(call.Arguments), Result: answer.Content, Status: "success", CallID: call.ID}); err != nil {
		return err
	}
	if _, err := c.Append(answer); err != nil {
		return err
	}
	return c.TurnDone(ctx)
}
