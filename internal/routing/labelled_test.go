package routing

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// labelled reads a file of labelled messages.
func labelled(t testing.TB, file string) []Labelled {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	all, err := ReadLabelled(file, f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What commands and the shipped dictionary make of the labelled set, without a model: no
// message becomes CODE that is none, and 95 of 100 go where they belong.
func TestLabelledSet(t *testing.T) {
	t.Parallel()
	rules, err := OpenRules("", nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, traps := labelled(t, "plain.tsv"), labelled(t, "traps.tsv")
	if all := len(plain) + len(traps); all < 500 || len(traps)*2 < all {
		t.Errorf("%d messages, %d of them traps", all, len(traps))
	}
	r := New(rules, Settings{})
	matrix := Confusion{}
	wrong, falseCode := 0, 0
	seen := map[string]bool{}
	for _, m := range append(plain, traps...) {
		if seen[m.Text] {
			t.Errorf("line %d: twice: %q", m.Line, m.Text)
		}
		seen[m.Text] = true
		d := r.Decide(context.Background(), Input{Text: m.Text})
		got := d.PrimaryRoute
		matrix[[2]Route{m.Route, got}]++
		if got != m.Route {
			wrong++
			t.Logf("line %d: expected %s, got %s by %s %q: %q", m.Line, m.Route, got, d.Reason, d.Evidence, m.Text)
		}
		if got.Coding() && !m.Route.Coding() {
			falseCode++
			t.Errorf("line %d: a false %s by %s %q: %q", m.Line, got, d.Reason, d.Evidence, m.Text)
		}
	}
	t.Logf("expected down, decided across\n%s", matrix)
	if all := len(plain) + len(traps); wrong*100 > all*5 {
		t.Errorf("%d of %d wrong", wrong, all)
	} else {
		t.Logf("%d of %d right, %d false CODE", all-wrong, all, falseCode)
	}
}
