package sandbox

import (
	"os/exec"
	"testing"
)

// BenchmarkTrue is what a sandbox adds to the shortest command, beside the same
// command bare.
func BenchmarkTrue(b *testing.B) {
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, kind := range []string{KindNone, KindBwrap, KindNamespaces, KindLandlock} {
		b.Run(kind, func(b *testing.B) {
			spec := Spec{Workspace: b.TempDir(), Cache: b.TempDir()}
			r := Unconfined(spec)
			if kind != KindNone {
				s, err := Choose(b.Context(), Options{Prefer: kind})
				if err != nil {
					b.Skip(err)
				}
				if r, err = s.Runner(spec); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := r.Run(b.Context(), Command{Script: "true"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
