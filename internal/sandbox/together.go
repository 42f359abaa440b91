package sandbox

import (
	"sync"
	"time"
)

// Together is what the commands of several Runners take in sum: those of one
// run, its checks and its servers. Spec.Limits bound it: memory at any time, and
// the files that were written since its first command. The zero value is ready.
type Together struct {
	mu     sync.Mutex
	since  time.Time
	free   map[string]int64 // bytes of the disk, by writable directory, when the first command began that has it
	memory map[any]int64    // bytes, by command and by instance
}

// begin returns when the first command began, and what was free then of these disks.
func (t *Together) begin(disks []string, now []usage) (since time.Time, free []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		t.since, t.free = time.Now(), map[string]int64{}
	}
	for i, d := range disks {
		if _, known := t.free[d]; !known {
			t.free[d] = now[i].free
		}
		free = append(free, t.free[d])
	}
	return t.since, free
}

// put says how much memory a command or an instance takes, in bytes, and
// returns the sum of all and whether no command takes more.
func (t *Together) put(who any, bytes int64) (sum int64, most bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory == nil {
		t.memory = map[any]int64{}
	}
	t.memory[who] = bytes
	most = true
	for other, n := range t.memory {
		sum += n
		if _, command := other.(*watcher); command && n > bytes {
			most = false
		}
	}
	return sum, most
}

// drop forgets who has ended.
func (t *Together) drop(who any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.memory, who)
}
