package tool

import (
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/redact"
)

// Whatever pieces an output comes in, what is passed on is what a filter of the
// whole gives, and every line but a block is there once it is whole.
func TestFlow(t *testing.T) {
	t.Parallel()
	z := redact.New([]string{"hunter2swordfish"}, nil)
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7bq9uXv2k8Rr5cD1TzWmQp0sLhYgJfNnVxKaEiOuBt3C6dMw\n", 20) + "-----END RSA PRIVATE KEY-----\n"
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a@example.com ", "hunter2swordfish", "\n", "x\n", key, "password = ", "日本", "\xff", "-----BEGIN CERTIFICATE-----\n", "-----END CERTIFICATE-----\n"})
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
		var got strings.Builder
		f := &flow{filter: func(w io.Writer) io.WriteCloser { return z.Writer(w) }, out: &got}
		size := rapid.IntRange(1, 200).Draw(t, "size")
		for at := 0; at < len(text); at += size {
			part := text[at:min(at+size, len(text))]
			if _, err := f.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
			whole := text[:at+len(part)]
			whole = whole[:strings.LastIndexByte(whole, '\n')+1]
			if !strings.Contains(text, "BEGIN") && got.String() != z.String(whole) {
				t.Fatalf("of %q only %q is there", whole, got.String())
			}
		}
		if err := f.Close(); err != nil || got.String() != z.String(text) {
			t.Fatalf("%q was passed on as %q, %v", text, got.String(), err)
		}
	})
}

func TestFlowIsBounded(t *testing.T) {
	t.Parallel()
	passed := 0
	f := &flow{filter: func(w io.Writer) io.WriteCloser { return plainFilter{w} }, out: counter{&passed}}
	for _, block := range []string{"-----BEGIN X-----\n", strings.Repeat("x", 1000)} {
		for range 1000 {
			_, _ = io.WriteString(f, block)
			if len(f.held) > maxFlow+len(block) {
				t.Fatalf("%d bytes are held", len(f.held))
			}
		}
	}
	if err := f.Close(); err != nil || passed != 1000*18+1000*1000 {
		t.Errorf("%d bytes were passed on, %v", passed, err)
	}
}

type plainFilter struct{ io.Writer }

func (plainFilter) Close() error { return nil }

type counter struct{ n *int }

func (c counter) Write(p []byte) (int, error) { *c.n += len(p); return len(p), nil }
