package dialogue

import "testing"

// A remark shows what stands on its line, where that is known.
func TestToldShowsTheLine(t *testing.T) {
	t.Parallel()
	trusted, others := Told([]Remark{{Author: "ken", Where: "on a.go:7", Stands: "return x", Text: "why?"}, {Author: "eve", Where: "on a.go", Text: "hm", Untrusted: true}}, 1000)
	if trusted != "<comments>\nken (on a.go:7):\n> return x\nwhy?\n</comments>\n" {
		t.Errorf("%q", trusted)
	}
	if others == "" {
		t.Error("the other remark is gone")
	}
}
