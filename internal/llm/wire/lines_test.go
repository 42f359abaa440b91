package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm"
)

// words is a parser of lines {"w":"text"}; the word "end" ends the answer, and
// "fail" is an error of the server.
type words []string

func (w *words) Event(name string, data []byte) (bool, error) {
	var l struct{ W *string }
	if err := json.Unmarshal(data, &l); err != nil {
		return false, err
	}
	switch {
	case name != "" || l.W == nil:
		return false, errors.New("no word")
	case *l.W == "fail":
		return false, &llm.Error{Kind: llm.KindServer}
	}
	*w = append(*w, *l.W)
	return *l.W == "end", nil
}

func (w *words) Size() int      { return len(strings.Join(*w, "")) }
func (w *words) Begun() bool    { return len(*w) > 0 }
func (w *words) Finished() bool { return false }

func TestReadLines(t *testing.T) {
	t.Parallel()
	long := `{"w":"` + strings.Repeat("x", 100) + `"}`
	gone := errors.New("gone")
	for _, c := range []struct {
		name, body string
		then       error // where the body ends; nil is its end
		want       string
		kind       llm.ErrorKind
		broken     error
	}{
		{"whole", "{\"w\":\"a\"}\n{\"w\":\"end\"}\n", nil, "a end", "", nil},
		{"mark, blanks, CRLF", "\xEF\xBB\xBF\r\n \t{\"w\":\"a\"} \r\n\r\n{\"w\":\"end\"}\r\n", nil, "a end", "", nil},
		{"last line without its end", "{\"w\":\"a\"}\n{\"w\":\"end\"}", nil, "a end", "", nil},
		{"more after the end", "{\"w\":\"end\"}\ngarbage", nil, "end", "", nil},
		{"nothing", "", nil, "", llm.KindCutStream, nil},
		{"blank", "\n\n ", nil, "", llm.KindCutStream, nil},
		{"cut between lines", "{\"w\":\"a\"}\n", nil, "a", llm.KindCutStream, nil},
		{"cut within a line", "{\"w\":\"a\"}\n{\"w\":", nil, "a", llm.KindCutStream, nil},
		{"cut within what is no line", "{\"w\":\"a\"}\nnonsense", nil, "a", llm.KindInvalid, nil},
		{"cut before there was any", "{\"w\":", nil, "", llm.KindInvalid, nil},
		{"a line that is none", "{\"w\":\"a\"}\n{]\n", nil, "a", llm.KindInvalid, nil},
		{"an event stream", "data: {\"w\":\"a\"}\n\n", nil, "", llm.KindInvalid, nil},
		{"an error", "{\"w\":\"a\"}\n{\"w\":\"fail\"}", nil, "a", llm.KindServer, nil},
		{"broken at once", "", gone, "", "", gone},
		{"broken between lines", "{\"w\":\"a\"}\n", gone, "a", "", gone},
		{"broken within a line", "{\"w\":\"a\"}\n{\"w\":\"end\"}", gone, "a", "", gone},
		{"too long", "{\"w\":\"a\"}\n" + long + "\n", nil, "a", llm.KindInvalid, nil},
		{"too long for the buffer too", strings.Repeat(long, 100), nil, "", llm.KindInvalid, nil},
		{"not too long with its blanks", "{\"w\":\"end\"}" + strings.Repeat(" ", 80), nil, "end", "", nil},
	} {
		for _, one := range []bool{false, true} {
			var in io.Reader = strings.NewReader(c.body)
			if c.then != nil {
				in = io.MultiReader(in, iotest.ErrReader(c.then))
			}
			if one {
				in = iotest.OneByteReader(in)
			}
			var got words
			e, broken := Format{Name: "words", MaxEvent: 90}.ReadLines(t.Context(), &got, "text/plain", in)
			if strings.Join(got, " ") != c.want || !errors.Is(broken, c.broken) || (e == nil) != (c.kind == "") || e != nil && e.Kind != c.kind {
				t.Errorf("%s: %q, %v, %v", c.name, got, e, broken)
			}
		}
	}
}

// FuzzLines: lines read byte by byte are the same lines, within their limit,
// and hold all that is no white space.
func FuzzLines(f *testing.F) {
	f.Add("{\"w\":1}\r\n\n {} \nlast")
	f.Add("\x00\xff\n" + strings.Repeat("x", 70))
	f.Fuzz(func(t *testing.T, stream string) {
		defer disktest.Bounded(t, len(stream))()
		all := func(r io.Reader) (out []string, err error) {
			s := NewEvents(bufio.NewReaderSize(r, 16), 64)
			for {
				line, err := s.Line()
				if err != nil {
					return out, err
				}
				if len(line) > 64 || len(line) == 0 {
					t.Fatalf("a line of %d bytes", len(line))
				}
				out = append(out, string(line))
			}
		}
		one, err := all(strings.NewReader(stream))
		two, err2 := all(iotest.OneByteReader(strings.NewReader(stream)))
		if fmt.Sprint(one, err) != fmt.Sprint(two, err2) {
			t.Fatalf("%q, %v\n%q, %v", one, err, two, err2)
		}
		if errors.Is(err, io.EOF) && strings.Join(strings.Fields(strings.Join(one, " ")), " ") != strings.Join(strings.Fields(stream), " ") {
			t.Fatalf("%q of %q", one, stream)
		}
	})
}
