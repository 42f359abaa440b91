package sandbox

import (
	"strings"
	"sync"
	"time"
)

// SharedUsage is what the commands of several Runners take in sum: those of one
// run, its checks and its servers. Spec.Limits bound it: memory at any time, and
// the files that were made or written since its first command. The zero value is ready.
type SharedUsage struct {
	mu     sync.Mutex
	since  time.Time
	first  map[string]usage    // of the disk, by writable directory, when the first command began that has it
	files  map[string][2]int64 // in writable directories, as they were counted first and last
	memory map[any]int64       // bytes, by command and by instance
}

// begin returns when the first command began, and what was taken then of these disks.
func (t *SharedUsage) begin(disks []string, now []usage) (since time.Time, first []usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since.IsZero() {
		t.since, t.first = time.Now(), map[string]usage{}
	}
	for i, d := range disks {
		if _, known := t.first[d]; !known {
			t.first[d] = now[i]
		}
		first = append(first, t.first[d])
	}
	return t.since, first
}

// counted notes how many files these directories have, and returns how many they had
// when they were first counted, and the last time.
func (t *SharedUsage) counted(dirs []string, now int64) (first, last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.files == nil {
		t.files = map[string][2]int64{}
	}
	all := strings.Join(dirs, "\x00")
	had, known := t.files[all]
	if !known {
		had = [2]int64{now, now}
	}
	t.files[all] = [2]int64{had[0], now}
	return had[0], had[1]
}

// put says how much memory a command or an instance takes, in bytes, and
// returns what all take but the commands that take more: if that is too much, it is
// not enough that those end.
func (t *SharedUsage) put(who any, bytes int64) (sum int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory == nil {
		t.memory = map[any]int64{}
	}
	t.memory[who] = bytes
	for other, n := range t.memory {
		if _, command := other.(*watcher); !command || n <= bytes {
			sum += n
		}
	}
	return sum
}

// drop forgets who has ended.
func (t *SharedUsage) drop(who any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.memory, who)
}
