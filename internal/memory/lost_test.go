package memory

import (
	"bytes"
	"testing"

	"toritsugi/internal/contextstore"
)

// Stubs are decided without a sync: a power cut that takes the line takes a
// decision, and the next owner makes it again of the same messages.
func TestALostMaskIsDecidedAgain(t *testing.T) {
	t.Parallel()
	p := Policy{Limit: 100_000, Masking: Masking{true, 10, 0.1}}
	l := &ledger{}
	w := window(t, l, p)
	for len(l.events) < 2 {
		story(l, w, 1, 700)
		if err := w.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	shown, event := bytes.Clone(w.Conversation().Serialized()), l.events[1]
	if event.Type != contextstore.WindowMask {
		t.Fatalf("%+v", event)
	}
	l.events = l.events[:1]
	w = window(t, l, p)
	if bytes.Equal(shown, w.Conversation().Serialized()) {
		t.Fatal("nothing was lost")
	}
	if err := w.Fit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(l.events) != 2 || l.events[1].MaskSeq != event.MaskSeq || !bytes.Equal(shown, w.Conversation().Serialized()) {
		t.Errorf("it was %+v, now %+v", event, l.events)
	}
}
