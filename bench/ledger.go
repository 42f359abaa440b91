package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// The ledger is measured part by part, each in a process of its own, so that the
// memory of one is not that of another. A part prints a sample: one process, one
// JSON object on standard output.

// ledgerPart is one thing that is measured of the ledger.
type ledgerPart struct {
	name string
	size int // of what is measured: messages, rows, contexts
	run  func(ctx context.Context, dir string, size int) (sample, error)
}

// ledgerParts are the parts in their order, in the sizes of DESIGN §9.
func ledgerParts() []ledgerPart {
	return []ledgerPart{
		{partAppend, 64, measureAppend},
		{partLong, 1_000_000, measureLong},
		{partRows, 1_000_000, measureRows},
		{partIdle, 1000, measureIdle},
		{partMemory, 1000, measureMemory},
	}
}

// The names of the parts.
const (
	partAppend = "append" // size: how many contexts at once
	partLong   = "long"   // size: messages of one context
	partRows   = "rows"   // size: rows of tasks.db
	partIdle   = "idle"   // size: contexts
	partMemory = "memory" // size: calls of tools of one run
)

// partNames are the names of all parts.
func partNames() (names []string) {
	for _, p := range ledgerParts() {
		names = append(names, p.name)
	}
	return names
}

// parseParts reads a list of names of parts.
func parseParts(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	known := partNames()
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if !slices.Contains(known, names[i]) {
			return nil, fmt.Errorf("-ledger %q: want some of %s, separated by commas", list, strings.Join(known, ", "))
		}
	}
	return names, nil
}

// ledger measures parts of the ledger. A part that fails leaves its figures
// out, and is an error beside what else was measured.
func (b *bench) ledger(ctx context.Context, names []string) (map[string]sample, error) {
	all := map[string]sample{}
	var failed []error
	for _, p := range ledgerParts() {
		if !slices.Contains(names, p.name) {
			continue
		}
		note("ledger: %s, %d", p.name, p.size)
		start := time.Now()
		s, err := b.ledgerPart(ctx, p)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("ledger, %s: %w", p.name, err))
			continue
		}
		note("ledger: %s took %.0f s", p.name, time.Since(start).Seconds())
		all[p.name] = s
	}
	return all, errors.Join(failed...)
}

// ledgerPart measures a part in a process and a directory of its own.
func (b *bench) ledgerPart(ctx context.Context, p ledgerPart) (sample, error) {
	dir := filepath.Join(b.dir, p.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // all of it lies below b.dir, which goes too
	s, u, err := b.part(ctx, dir, "ledger", p.name, strconv.Itoa(p.size), dir)
	if err != nil {
		return nil, err
	}
	if _, ok := s[peak]; !ok { // else the part tells it, without what the naive way took
		s[peak] = float64(u.PeakKiB) / 1024
	}
	return s, nil
}

// ledgerMain is the process of a part.
func ledgerMain(ctx context.Context, args []string) error {
	if len(args) == 4 && args[0] == "owner" {
		return ownAndDie(ctx, args[1], args[2], args[3])
	}
	if len(args) != 3 {
		return errors.New("ledger: want a part, a size and a directory")
	}
	size, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	for _, p := range ledgerParts() {
		if p.name != args[0] {
			continue
		}
		s, err := p.run(ctx, args[2], size)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	return fmt.Errorf("ledger: no part named %q", args[0])
}

// openStore opens a ledger as a run does; an error of its index is an error
// here.
func openStore(ctx context.Context, base string, o contextstore.Options) (*contextstore.Store, error) {
	if o.FS == nil {
		o.FS = &disk.FS{}
	}
	o.BaseDir, o.Redact = base, redact.New(nil, nil).String
	o.OnIndexError = func(err error) { note("the index: %v", err) }
	return contextstore.Open(ctx, o)
}

// claimNew makes the n-th context and claims it.
func claimNew(ctx context.Context, s *contextstore.Store, n int) (*contextstore.Context, error) {
	id, err := s.Enqueue(ctx, contextstore.Metadata{
		TaskKey: task.Key{Source: "bench", Owner: "owner", Repo: "repo", Type: "issue", ID: strconv.Itoa(n)},
		Title:   "Measure the ledger", User: "bench",
		Config: contextstore.MetadataConfig{Provider: "openai", Model: "bench", ContextLength: 128_000, CompressionThreshold: 0.7, MaxMemoryMessages: 20},
	})
	if err != nil {
		return nil, err
	}
	c, _, err := s.Claim(ctx, id)
	return c, err
}

// typicalBytes is about the length of a typical message's line.
const typicalBytes = 1536

// typical is the n-th message of a run: output of a tool.
func typical(n int) contextstore.Message {
	const line = "\tif err := f.Append(lines); err != nil { // store.go:%d\n"
	var b strings.Builder
	for i := 0; b.Len() < typicalBytes-200; i++ {
		fmt.Fprintf(&b, line, 1000*n+i)
	}
	return contextstore.Message{Role: "tool", ToolName: "read_file", ToolCallID: redact.Opaque("call_" + strconv.Itoa(n)), Content: b.String()}
}

// timed calls f n times, prepare before each, and returns the median of what f
// took, in ms.
func timed(ctx context.Context, n int, prepare, f func() error) (float64, error) {
	all := make([]float64, 0, n)
	for range n {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if prepare != nil {
			if err := prepare(); err != nil {
				return 0, err
			}
		}
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		all = append(all, ms(time.Since(start)))
	}
	return median(all), nil
}

// ownPeak is the most memory that this process had so far, MiB (proc(5), VmHWM).
func ownPeak() (float64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(b), "VmHWM:")
	var kib float64
	_, err = fmt.Sscan(after, &kib)
	return kib / 1024, err
}

// bytesRead is what this process has read by system calls, from files and
// elsewhere (proc(5), rchar).
func bytesRead() (int64, error) {
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, err
	}
	var n int64
	_, err = fmt.Sscanf(string(b), "rchar: %d", &n)
	return n, err
}

// readBy returns what f reads.
func readBy(f func() error) (n int64, err error) {
	before, err := bytesRead()
	if err != nil {
		return 0, err
	}
	between, err := bytesRead() // what asking itself reads
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := bytesRead()
	return max(after-between-(between-before), 0), err
}
