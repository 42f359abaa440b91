package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenPlain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("plain"), []byte("text"), 0o600), unix.Mkfifo(at("pipe"), 0o600), os.Symlink("plain", at("link")),
		os.Symlink("pipe", at("link-to-pipe"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{at("plain"), at("link")} {
		f, err := OpenPlain(path)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(f); string(b) != "text" || err != nil {
			t.Errorf("%s: %q, %v", path, b, err)
		}
		_ = f.Close()
	}
	for path, want := range map[string]error{at("pipe"): ErrNotPlain, at("link-to-pipe"): ErrNotPlain, dir: ErrNotPlain, "/dev/zero": ErrNotPlain, at("none"): os.ErrNotExist} {
		if f, err := OpenPlain(path); f != nil || !errors.Is(err, want) {
			t.Errorf("%s: %v, not %v", path, err, want)
		}
	}
}
