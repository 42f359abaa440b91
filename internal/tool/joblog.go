package tool

import (
	"fmt"
	"sync"
)

// jobLog takes the output of a job in bounded memory, so that any part of it
// can be read while the job runs: the whole in a file, up to MaxSpill, and its
// end in memory.
type jobLog struct {
	limit Limits
	spill *spiller
	in    flow

	mu    sync.Mutex
	file  *spillFile // nil where nothing was printed, or nothing can be kept
	kept  int64      // bytes in the file
	tail  []byte     // the last bytes
	total int64
	ended bool
}

// logTail is how much of a job's output is kept in memory at least, in bytes.
const logTail = 64 << 10

func newJobLog(limit Limits, spill *spiller) *jobLog {
	l := &jobLog{limit: limit, spill: spill}
	l.in = flow{filter: limit.Filter, out: logEnd{l}}
	return l
}

// Write takes p. It fails only where the filter does.
func (l *jobLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.in.Write(p)
}

// logEnd is the end of a log's pipe; the log's lock is held.
type logEnd struct{ l *jobLog }

func (e logEnd) Write(p []byte) (int, error) {
	l := e.l
	if l.total == 0 && l.spill.dir != "" {
		l.file, _ = l.spill.create(l.limit.MaxSpill) // without a file, only the end is kept
	}
	l.total += int64(len(p))
	if l.file != nil {
		before := l.file.room
		l.file.write(p)
		if l.file.err == nil {
			l.kept += before - l.file.room
		}
	}
	l.tail = appendEnd(l.tail, p, logTail)
	return len(p), nil
}

// finish ends the log and says where the whole of it is, "" for nowhere. The
// file that is named is on the disk.
func (l *jobLog) finish() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.in.Close() // the end of a log takes all
	if l.file == nil || l.file.err != nil {
		return ""
	}
	if l.file.sync() != nil {
		return ""
	}
	return l.file.name
}

// close lets go of the file, which stays.
func (l *jobLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil && !l.ended {
		_ = l.file.f.Close() // it was synced or is not referred to
	}
	l.ended = true
}

// read returns at most most bytes from offset on, where they begin, and how many
// bytes there are in all. What is neither in the file nor in memory is skipped.
func (l *jobLog) read(offset int64, most int) (text []byte, from, total int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offset = min(offset, l.total)
	if offset < l.kept && !l.ended {
		text = make([]byte, min(int64(most), l.kept-offset))
		if _, err := l.file.f.ReadAt(text, offset); err != nil {
			return nil, offset, l.total, fmt.Errorf("read output: %w", err)
		}
		return text, offset, l.total, nil
	}
	start := max(offset, l.total-int64(len(l.tail)))
	rest := l.tail[int64(len(l.tail))-(l.total-start):]
	return append(text, rest[:min(most, len(rest))]...), start, l.total, nil
}
