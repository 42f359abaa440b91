package channel

import (
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/google/uuid"

	"toritsugi/internal/redact"
)

// How much of what vendors send is read, in bytes.
const (
	MaxRequest = 1 << 20  // of one request: some events
	MaxEvent   = 64 << 10 // the body of one Event
)

// MaxPlainID is the most bytes of a PlainID.
const MaxPlainID = 100

// PlainID reports whether an id that others give is 1 to MaxPlainID printable ASCII characters
// without spaces.
func PlainID(s string) bool {
	return s != "" && len(s) <= MaxPlainID && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// Clean is a text of models or strangers without what steers, hides or turns it, with spaces
// for tabs.
func Clean(s string) string { return strings.ReplaceAll(redact.Printable(s), "\t", "    ") }

// Units is the length of a text as vendors count it, in UTF-16 units.
func Units(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// PostID is the UUID of the n-th request of a post: the same for the same post in any
// process, so that a vendor that knows it takes it once. One without a Key is never the same.
func PostID(p Post, n int) string {
	if p.Key == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("tori/"+p.SessionID+"\x00"+p.Key+"\x00"+strconv.Itoa(n))).String()
}

// Throttle is for what is said now and then, however often there is a reason. The zero value is
// ready.
type Throttle struct {
	mu   sync.Mutex
	last time.Time
}

// Due reports whether it was last due that long ago.
func (s *Throttle) Due(now time.Time, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last) < every {
		return false
	}
	s.last = now
	return true
}
