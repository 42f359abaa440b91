package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// ShownBytes is how much of an answer that is not understood errors show.
const ShownBytes = 120

// EventParser puts one answer together from the events of a stream. An error of
// its methods is an *llm.Error that ends the answer, or any other one where the
// data are not in the format.
type EventParser interface {
	// Event takes in the data of one event, valid during the call, and reports
	// whether the answer is complete.
	Event(name string, data []byte) (done bool, err error)
	// Size is how much of the answer was taken in, in bytes: it grows with each
	// part of it, and with nothing else.
	Size() int
	// Begun reports whether any part of an answer was taken in.
	Begun() bool
	// Finished reports whether only the end of the stream can still be missing.
	Finished() bool
}

// Parser is an EventParser for formats whose answers may come whole as well.
type Parser interface {
	EventParser
	// Document takes in an answer that came as one JSON document.
	Document(data []byte) error
}

// Format reads answers of one wire format.
type Format struct {
	Name      string // what an answer that is none is not, e.g. "a chat completion"
	MaxEvent  int    // bytes
	MaxAnswer int    // bytes of a document
}

// Read reads the body of an answer into p: an event stream or one JSON
// document, told apart by the first byte, because content types lie. broken is
// a read error that left the answer unfinished; e is any other failure.
func (f Format) Read(ctx context.Context, p Parser, contentType string, in io.Reader) (e *llm.Error, broken error) {
	r := bufio.NewReaderSize(in, readBuffer)
	first, err := firstByte(r)
	switch {
	case errors.Is(err, io.EOF):
		return Cut(), nil
	case err != nil:
		return nil, err
	case first == '{' || first == '[':
		progressOf(in).begin() // a document comes when all of it was thought of
		return f.readDocument(p, contentType, r)
	case strings.IndexByte(":deir", first) < 0: // no field of an event stream begins so
		start, _ := r.Peek(min(ShownBytes, r.Buffered()))
		return Invalid(f.Name, contentType, start), nil
	}
	return f.readStream(ctx, p, contentType, r, in, false)
}

// ReadLines is Read for a body each of whose lines that is not blank is an
// event without a name (NDJSON). The last line may lack its end; what is no
// event then was cut.
func (f Format) ReadLines(ctx context.Context, p EventParser, contentType string, in io.Reader) (e *llm.Error, broken error) {
	r := bufio.NewReaderSize(in, readBuffer)
	switch _, err := firstByte(r); {
	case errors.Is(err, io.EOF):
		return Cut(), nil
	case err != nil:
		return nil, err
	}
	return f.readStream(ctx, p, contentType, r, in, true)
}

// readStream reads the events of r, which is behind in; lines says that each is a line.
func (f Format) readStream(ctx context.Context, p EventParser, contentType string, r *bufio.Reader, in io.Reader, lines bool) (*llm.Error, error) {
	far := progressOf(in)
	s := NewEvents(r, f.MaxEvent)
	next := s.Read
	if lines {
		next = s.Line
	}
	for {
		if left(ctx) { // also where all of the answer is here already
			return nil, ctx.Err()
		}
		data, err := next()
		switch {
		case errors.Is(err, io.EOF) && !p.Begun() && s.Stray != "":
			return Invalid(f.Name, contentType, []byte(s.Stray)), nil
		case errors.Is(err, ErrEventTooLong):
			return told(llm.KindInvalid, i18n.E("llm.long_event", f.MaxEvent)), nil
		case err != nil && p.Finished() && !left(ctx): // all there; only the end of the stream is missing
			return nil, nil
		case errors.Is(err, io.EOF):
			return Cut(), nil
		case err != nil:
			return nil, err
		}
		done, err := p.Event(s.Name, data)
		if err != nil {
			return f.refused(err, contentType, data, lines && s.openLine && p.Begun()), nil
		}
		if done {
			return nil, nil
		}
		far.note(p)
	}
}

func (f Format) readDocument(p Parser, contentType string, r *bufio.Reader) (*llm.Error, error) {
	data, err := io.ReadAll(io.LimitReader(r, int64(f.MaxAnswer)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > f.MaxAnswer {
		return TooLong(f.MaxAnswer), nil
	}
	if err := p.Document(data); err != nil {
		return f.refused(err, contentType, data, false), nil
	}
	return nil, nil
}

// refused is the error of data that a parser did not take; last says that the
// stream ended within them.
func (f Format) refused(err error, contentType string, data []byte, last bool) *llm.Error {
	var e *llm.Error
	switch {
	case errors.As(err, &e):
		return e
	case last && data[0] == '{':
		return Cut()
	}
	return Invalid(f.Name, contentType, data)
}

// firstByte skips white space and a byte order mark and returns the next byte,
// unread.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		switch b[0] {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
			_, _ = r.Discard(1) // was peeked
		default:
			return b[0], nil
		}
	}
}

// Cut is an answer that ended too early.
func Cut() *llm.Error { return told(llm.KindCutStream, i18n.E("llm.cut")) }

// Invalid is an answer that is not in the wire format; what names that, start
// is how the answer, or the part that is not understood, begins.
func Invalid(what, contentType string, start []byte) *llm.Error {
	return told(llm.KindInvalid, i18n.E("llm.not_format", what, strconv.Quote(contentType), strconv.Quote(string(start[:min(len(start), ShownBytes)]))))
}

// TooLong is an answer that is longer than limit bytes.
func TooLong(limit int) *llm.Error { return told(llm.KindInvalid, i18n.E("llm.long_answer", limit)) }

// told is an error whose words are our own.
func told(kind llm.ErrorKind, err *i18n.Error) *llm.Error {
	return &llm.Error{Kind: kind, Message: err.Error(), Err: err}
}

// Given reports whether a field is there and not null.
func Given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// LooseText is a string's text, the text of a list's parts, the JSON text of
// anything else, and nothing for null.
func LooseText(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	switch raw[0] {
	case '"':
		if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) { // as most are; this is done for each token
			return string(raw[1 : len(raw)-1])
		}
		var s string
		_ = json.Unmarshal(raw, &s) // raw was found valid with what holds it
		return s
	case '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &parts) == nil {
			var b strings.Builder
			for _, p := range parts {
				b.WriteString(p.Text)
			}
			return b.String()
		}
	}
	return string(raw)
}

// GeneratedID is the n of an id that NewID made, else 0. Counting on from the
// highest keeps ids unique within the window, also after a resume, without any
// state.
func GeneratedID(id string) int {
	digits, found := strings.CutPrefix(id, "call_")
	if n, err := strconv.Atoi(digits); found && err == nil && 0 < n && n < 1e9 {
		return n
	}
	return 0
}

// NewID is the id of a call that came without one.
func NewID(n int) string { return "call_" + strconv.Itoa(n) }

// NameCalls makes the ids that are missing or repeated, from the numbers after lastID.
func NameCalls(calls []llm.ToolCall, lastID int) {
	seen := make(map[string]bool, len(calls))
	for _, c := range calls {
		lastID = max(lastID, GeneratedID(c.ID))
	}
	for i := range calls {
		if c := &calls[i]; c.ID == "" || seen[c.ID] {
			lastID++
			c.ID = NewID(lastID)
		}
		seen[calls[i].ID] = true
	}
}
