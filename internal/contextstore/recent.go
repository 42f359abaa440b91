package contextstore

// The bounds of the owner's cache of messages: how many where the settings do
// not say (store-v3 §9.1), bytes of their lines, and bytes of memory in all.
const (
	recentMessages = 20
	recentBytes    = 32 << 10
	recentMemory   = recentBytes + 8<<10
)

// recent holds the latest lines of messages.jsonl as they stand there, without
// a gap, as many as fit: store-v2 §4.1's cache. An append costs a copy and, once
// it has its size, no memory.
type recent struct {
	buf  []byte
	from int   // where the oldest line begins in buf
	size []int // of each line with its newline, oldest first
}

// add takes in a line that follows the last one, with its newline, and lets the
// oldest go until there are no more than most; below 1 that is recentMessages.
func (r *recent) add(most int, line []byte) {
	if most < 1 {
		most = recentMessages
	}
	if len(line) > recentBytes {
		r.clear()
		return
	}
	drop := 0
	for drop < len(r.size) && (len(r.size)-drop >= most || len(r.buf)-r.from+len(line) > recentBytes) {
		r.from += r.size[drop]
		drop++
	}
	r.size = append(r.size[:0], r.size[drop:]...)
	if len(r.buf)+len(line) > cap(r.buf) {
		r.room(len(line))
	}
	r.buf = append(r.buf, line...)
	r.size = append(r.size, len(line))
}

// room makes place for n bytes: in a larger buffer, or where lines were let go.
func (r *recent) room(n int) {
	lines := r.buf[r.from:]
	if cap(r.buf) < recentMemory {
		r.buf = make([]byte, len(lines), min(2*(len(lines)+n), recentMemory))
	}
	r.buf = r.buf[:copy(r.buf[:len(lines)], lines)]
	r.from = 0
}

// tail returns a copy of the latest n lines, or of as many as there are, behind
// the newline that ends the line before them.
func (r *recent) tail(n int) []byte {
	bytes := 0
	for _, size := range r.size[max(len(r.size)-n, 0):] {
		bytes += size
	}
	return append([]byte{'\n'}, r.buf[len(r.buf)-bytes:]...)
}

func (r *recent) clear() { *r = recent{} }

// rest lets go of what an idle context does not need: one that appended nothing
// since the heartbeat before. The caller holds mu.
func (c *Context) rest() {
	if c.rested == c.messages.seq {
		c.buf = nil
		c.recent.clear()
	}
	c.rested = c.messages.seq
}
