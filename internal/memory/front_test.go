package memory

import (
	"bytes"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
)

func TestBeginning(t *testing.T) {
	t.Parallel()
	for roles, want := range map[string]FirstMessages{
		"":                                {Size: 2},
		"system":                          {Size: 2},
		"system user":                     {Size: 2, Whole: true},
		"system user assistant user":      {Size: 2, Whole: true},
		"system assistant":                {Size: 3, Heir: true},
		"system assistant user":           {Size: 3, Heir: true, Whole: true},
		"system assistant user assistant": {Size: 3, Heir: true, Whole: true},
	} {
		l := &ledger{}
		for _, role := range strings.Fields(roles) {
			l.append(contextstore.Message{Role: role})
		}
		if got, err := ReadFirstMessages(l); err != nil || got != want {
			t.Errorf("%q: %+v %v", roles, got, err)
		}
		if l.read > 3 {
			t.Errorf("%q: %d messages read", roles, l.read)
		}
	}
}

// What was inherited stays at the front for as long as the run lasts, also over
// truncations and resumes, and counts as no answer of the run.
func TestInheritedStaysInTheWindow(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	w, err := Open(l, &wire{}, Policy{Limit: 3000})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []contextstore.Message{{Role: "system", Content: "SYSTEM"}, {Role: "assistant", Content: InheritedPrefix + "PAST"}, {Role: "user", Content: "REQUEST"}} {
		w.Add(l.append(m))
	}
	for range 60 {
		story(l, w, 1, 400)
		if err := w.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := w.Conversation().Serialized()
		at := -1
		for _, s := range []string{"SYSTEM", "PAST", "REQUEST"} {
			next := bytes.Index(b, []byte(s))
			if next <= at {
				t.Fatalf("%q is at %d, what is before it at %d", s, next, at)
			}
			at = next
		}
		if again, err := Open(l, &wire{}, Policy{Limit: 3000}); err != nil || !bytes.Equal(again.Conversation().Serialized(), b) {
			t.Fatalf("a resume serialises other bytes: %v", err)
		}
	}
	if len(l.events) < 2 || l.events[0].Dropped < 1 || l.events[0].FromSeq < 5 {
		t.Errorf("%+v", l.events)
	}
}
