package i18n

import "testing"

func TestBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 KB", 64 << 20: "67.1 MB", 99_950_000: "100.0 MB", 123_456_789: "123 MB", 5e9: "5.0 GB", 1 << 62: "4611686 TB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, not %q", n, got, want)
		}
	}
}
