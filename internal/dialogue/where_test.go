package dialogue

import (
	"testing"

	"toritsugi/internal/forge"
)

func TestWhere(t *testing.T) {
	for want, c := range map[string]forge.Comment{
		"":                          {Kind: forge.Note, Resolved: true},
		"review: changes requested": {Kind: forge.Review, Verdict: forge.ChangesRequested},
		"on a.go:7":                 {Kind: forge.Line, Path: "a.go", Line: 7},
		"on a.go, resolved":         {Kind: forge.Line, Path: "a.go", Resolved: true},
		"on a.go:7, resolved":       {Kind: forge.Line, Path: "a.go", Line: 7, Resolved: true},
	} {
		if got := where(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
