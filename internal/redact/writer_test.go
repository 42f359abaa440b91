package redact

import (
	"bytes"
	"strings"
	"testing"
)

func TestWriterMasksHoweverTheTextArrives(t *testing.T) {
	t.Parallel()
	z := New([]string{"hunter2hunter2"}, nil)
	text := "one hunter2hunter2\ntwo\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + strings.Repeat("Ab3", 100) + "\n-----END RSA PRIVATE KEY-----\nlast ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	want := z.String(text)
	if strings.Contains(want, "MIIE") || strings.Contains(want, "hunter2") || strings.Contains(want, "ghp_") {
		t.Fatal(want)
	}
	for _, size := range []int{1, 7, 64, 10000} {
		var b bytes.Buffer
		w := z.Writer(&b)
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			if got, err := w.Write(rest[:n]); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil || b.String() != want {
			t.Errorf("in pieces of %d: %q, %v", size, b.String(), err)
		}
	}
}

func TestWriterHoldsLittle(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := New(nil, nil).Writer(&b)
	for range 1000 {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if b.Len() < 1_000_000-2*maxHeld {
		t.Errorf("%d bytes passed on", b.Len())
	}
}
