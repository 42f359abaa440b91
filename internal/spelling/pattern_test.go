package spelling

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.StringMatching(`[ab*?]{0,8}`).Draw(t, "pattern")
		s := rapid.StringMatching(`[ab]{0,10}`).Draw(t, "name")
		want, err := path.Match(p, s) // the same language, where there is no slash
		if err != nil {
			t.Fatal(err)
		}
		if got := Fits(p, s); got != want {
			t.Fatalf("Fits(%q, %q) is %t", p, s, got)
		}
	})
	if Fits(strings.Repeat("*a", 2000)+"b", strings.Repeat("a", 5000)) {
		t.Error("it matches")
	}
}
