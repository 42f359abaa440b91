package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// ErrEventTooLong says that an event is longer than MaxEvent or the limit given.
var ErrEventTooLong = errors.New("one event of the stream is longer than the limit")

// Events reads an event stream in memory bounded by max bytes.
// Source: WHATWG HTML §9.2.6; more lenient where servers are: the blank line
// between events, or after the last one, may be missing, and data may stand
// without its field name.
type Events struct {
	Name  string // of the event last returned
	Stray string // the start of the first line that is no field

	latest   string // the name that came last
	openLine bool   // the last line had no end

	r    *bufio.Reader
	max  int
	data []byte // of the event being read
	next []byte // a data line that belongs to the event after
	held bool   // next is in use
	long []byte // a line longer than r's buffer
}

// NewEvents reads the events of r, each of at most limit bytes.
func NewEvents(r *bufio.Reader, limit int) *Events { return &Events{r: r, max: limit} }

// Read returns the data of the next event that has any, valid until the next
// call. After the last one it returns io.EOF; what else it returns is the
// reader's error or ErrEventTooLong.
func (s *Events) Read() ([]byte, error) {
	s.data, s.Name = s.data[:0], ""
	if s.held {
		if len(s.next) > s.max {
			return nil, ErrEventTooLong
		}
		s.data, s.held = append(s.data, s.next...), false
	}
	for {
		line, err := s.line()
		if errors.Is(err, io.EOF) && len(s.data) > 0 {
			return s.data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if len(s.data) > 0 {
				return s.data, nil
			}
			s.Name = ""
			continue
		}
		data, ok := s.field(line)
		if !ok {
			continue
		}
		if len(s.data) > 0 {
			if json.Valid(s.data) { // the blank line was left out
				s.next, s.held = append(s.next[:0], data...), true
				return s.data, nil
			}
			s.data = append(s.data, '\n')
		}
		if len(s.data)+len(data) > s.max {
			return nil, ErrEventTooLong
		}
		s.data = append(s.data, data...)
	}
}

// Line returns the next line that is not blank, without the white space around
// it, in place of an event. Its errors are those of Read.
func (s *Events) Line() ([]byte, error) {
	for {
		line, err := s.line()
		if err != nil {
			return nil, err
		}
		switch line = bytes.TrimSpace(line); {
		case len(line) > s.max:
			return nil, ErrEventTooLong
		case len(line) > 0:
			return line, nil
		}
	}
}

// field returns a line's data where it has any, and notes an event's name.
func (s *Events) field(line []byte) (data []byte, ok bool) {
	name, value, found := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch {
	case line[0] == '{':
		return line, true
	case string(name) == "data":
		return value, len(value) > 0
	case string(name) == "event":
		if value = value[:min(len(value), 32)]; string(value) != s.latest { // most names come again and again
			s.latest = string(value)
		}
		s.Name = s.latest
	case found && (len(name) == 0 || string(name) == "id" || string(name) == "retry"):
	case s.Stray == "":
		s.Stray = string(line[:min(len(line), ShownBytes)])
	}
	return nil, false
}

// line returns the next line without its end; the last may lack one.
func (s *Events) line() ([]byte, error) {
	part, err := s.r.ReadSlice('\n')
	if err == nil {
		return trimEnd(part), nil
	}
	s.long = append(s.long[:0], part...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(s.long) > s.max {
			return nil, ErrEventTooLong
		}
		part, err = s.r.ReadSlice('\n')
		s.long = append(s.long, part...)
	}
	if err == nil {
		return trimEnd(s.long), nil
	}
	if err == io.EOF && len(s.long) > 0 {
		s.openLine = true
		return trimEnd(s.long), nil
	}
	return nil, err
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})
}
