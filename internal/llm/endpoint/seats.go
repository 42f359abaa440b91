package endpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/contextstore/jsonl"
)

// Party is someone who holds a slot or waits for one.
type Party struct {
	Who      string    `json:"who"`
	PID      int       `json:"pid"`
	Priority Priority  `json:"priority"`
	Holding  bool      `json:"holding"`
	Since    time.Time `json:"since"` // of the wait, or of the call
}

// Queue is an endpoint and who is there at this moment: those who hold slots,
// then those who wait, in the order in which they will be served.
type Queue struct {
	Endpoint string  `json:"endpoint"`
	Parties  []Party `json:"parties"`
}

// The file holds a header and a record for each seat, all of one size. Who
// finds no seat waits as well, unseen.
const (
	recordSize = 256
	maxSeats   = 1024
)

// writeRecord puts v in place as a line of recordSize bytes; false if it is
// longer. Records are for people: an error changes nothing.
func writeRecord(f *os.File, place int64, v any) bool {
	line, err := jsonl.Marshal(v)
	if err != nil || len(line) >= recordSize {
		return false
	}
	line = append(line, bytes.Repeat([]byte{' '}, recordSize)...)[:recordSize]
	line[recordSize-1] = '\n'
	_, _ = f.WriteAt(line, place*recordSize)
	return true
}

func writeHeader(f *os.File, endpoint string) {
	for !writeRecord(f, 0, map[string]string{"endpoint": endpoint}) {
		endpoint = shorten(endpoint)
	}
}

// shorten cuts a text to about three quarters.
func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	n := min(len(s)*3/4, recordSize)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// sit takes the first free seat; -1 where there is none.
func (c *claim) sit() int64 {
	for i := range int64(maxSeats) {
		if c.lock(seatAt+i) == nil {
			return i
		}
	}
	return -1
}

func (c *claim) note(seat int64, p Party) {
	if seat < 0 {
		return
	}
	p.Since = p.Since.UTC().Truncate(time.Millisecond)
	for !writeRecord(c.f, seat+1, p) {
		p.Who = shorten(p.Who)
	}
}

// Queues lists the endpoints that have slots in dir, and who is there. It
// takes no lock and works on a read-only disk; a missing dir has none.
func Queues(dir string) ([]Queue, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+fileClass))
	if err != nil {
		return nil, err
	}
	var all []Queue
	for _, path := range paths {
		q, err := readQueue(path)
		if err != nil {
			return nil, fmt.Errorf("slots in %s: %w", path, err)
		}
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b Queue) int { return cmp.Compare(a.Endpoint, b.Endpoint) })
	return all, nil
}

func readQueue(path string) (q Queue, err error) {
	f, err := os.Open(path)
	if err != nil {
		return q, err
	}
	defer func() { _ = f.Close() }() // only read from
	read := func(place int64, v any) error {
		line := make([]byte, recordSize)
		if _, err := f.ReadAt(line, place*recordSize); err != nil {
			return err
		}
		return json.Unmarshal(bytes.TrimRight(line, " \n\x00"), v)
	}
	var header struct{ Endpoint string }
	if read(0, &header) == nil {
		q.Endpoint = header.Endpoint
	}
	seats, err := (&claim{f}).held(seatAt, seatAt+maxSeats)
	if err != nil {
		return q, err
	}
	for _, at := range seats {
		var p Party
		if read(at-seatAt+1, &p) != nil {
			continue // is being written
		}
		q.Parties = append(q.Parties, p)
	}
	slices.SortStableFunc(q.Parties, func(a, b Party) int {
		if a.Holding != b.Holding {
			if a.Holding {
				return -1
			}
			return 1
		}
		if a.Holding {
			return a.Since.Compare(b.Since)
		}
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since))
	})
	return q, nil
}
