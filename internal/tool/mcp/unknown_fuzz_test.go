package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"toritsugi/internal/disk/disktest"
)

// FuzzUnknownContent: what holds no content passes as it came, however it
// comes, and what is mended is a message that can be read.
func FuzzUnknownContent(f *testing.F) {
	f.Add([]byte("data: {\"result\":{\"content\":[{\"type\":\"x\"}]}}\n\n"))
	f.Add([]byte("event: a\r\n: b\r\ndata: 1\r\ndata: 2\r\n\r\ndata: 3"))
	f.Add([]byte(`{"result":{"content":[null,{"type":"image","data":"?"}]}}`))
	f.Add([]byte("data:{\"result\":\ndata:{\"content\":[7]}}\n\n" + strings.Repeat("x", 5000)))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer disktest.Bounded(t, len(in))()
		const limit = 1000
		var first []byte
		for i, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in))} {
			out, err := io.ReadAll(newEventBody(io.NopCloser(r), limit))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(in, []byte(`"content"`)) && !bytes.Equal(in, out) {
				t.Fatalf("%q became %q", in, out)
			}
			if i == 0 {
				first = out
			} else if !bytes.Equal(first, out) && len(in) <= limit {
				t.Fatalf("%q or %q, as it comes", first, out)
			}
		}
		if out := readableMessage(in); json.Valid(in) && !json.Valid(out) {
			t.Fatalf("%q became %q", in, out)
		}
	})
}
