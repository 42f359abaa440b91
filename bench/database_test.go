package main

import (
	"bytes"
	"io"
	"testing"
)

// What a server says is counted by its round trips, whatever is in them.
func TestRoundTripsAreCounted(t *testing.T) {
	t.Parallel()
	message := func(kind byte, text string) []byte {
		return append([]byte{kind, 0, 0, byte((len(text) + 4) >> 8), byte(len(text) + 4)}, text...)
	}
	var said bytes.Buffer
	for _, m := range [][]byte{
		message('R', "\x00\x00\x00\x00"), message('Z', "I"), // it begins
		message('D', string(bytes.Repeat([]byte("Z"), 300))), message('C', "SELECT 1\x00"), message('Z', "I"),
		message('C', "SELECT 1\x00"), message('C', "INSERT 0 1\x00"), message('C', "UPDATE 1\x00"), message('Z', "I"),
		message('C', "UPDATE 1\x00"), message('Z', "I"),
	} {
		said.Write(m)
	}
	var b between
	b.count(io.MultiReader(&said, bytes.NewReader([]byte{'Z', 0}))) // and is cut
	for n, want := range []int64{4, 1, 1} {
		if got := b.counts[n].Load(); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}
