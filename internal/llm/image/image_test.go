package image

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"toritsugi/internal/llm"
)

const (
	png  = "\x89PNG\r\n\x1a\n"
	jpeg = "\xff\xd8\xff\xe0"
	gif  = "GIF89a"
	webp = "RIFF\x10\x00\x00\x00WEBPVP8 "
)

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, "dir.png"), 0o700))
	must(unix.Mkfifo(filepath.Join(dir, "fifo.png"), 0o600))
	real := write(t, dir, "real.png", png+"real")
	must(os.Symlink(real, filepath.Join(dir, "link.png")))
	must(os.Symlink(dir, filepath.Join(dir, "up")))
	write(t, dir, "zero.png", "")
	small := Limits{File: 100, Images: 1, Bytes: 100}
	fill := func(head string, n int) string { return head + strings.Repeat("x", n-len(head)) }
	for _, c := range []struct {
		name, content string // "" is there already, or not at all
		limits        Limits
		kind, dropped string
	}{
		{"a.png", png + "rest", small, PNG, ""},
		{"a.jpg", jpeg + "rest", small, JPEG, ""},
		{"a.gif", gif + "rest", small, GIF, ""},
		{"a.webp", webp + "rest", small, WebP, ""},
		{"shot.txt", png + "the name says text", small, PNG, ""},
		{"text.png", "the name says png", small, "", UnsupportedType},
		{"a.bmp", "BM\x00\x00rest", small, "", UnsupportedType},
		{"a.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", small, "", UnsupportedType},
		{"newline.png", "\n", small, "", UnsupportedType},
		{"empty.png", " ", small, "", UnsupportedType},
		{"exact.png", fill(png, 100), small, PNG, ""},
		{"large.png", fill(png, 101), small, "", FileTooLarge},
		{"large.txt", fill("x", 101), small, "", FileTooLarge},
		{"whole.png", fill(png, 5000), Limits{5000, 1, 5000}, PNG, ""},
		{"none left.png", png, Limits{100, 0, 100}, "", TooMany},
		{"overdrawn.png", png, Limits{100, -1, 100}, "", TooMany},
		{"no bytes left.png", fill(png, 51), Limits{100, 1, 50}, "", TooMany},
		{"zero.png", "", small, "", UnsupportedType},
		{"dir.png", "", small, "", ReadFailed},
		{"fifo.png", "", small, "", ReadFailed},
		{"link.png", "", small, "", ReadFailed},
		{"up/real.png", "", small, PNG, ""},
		{"missing.png", "", small, "", ReadFailed},
		{"nul\x00.png", "", small, "", ReadFailed},
		{"real.png/x", "", small, "", ReadFailed},
		{"../../../../../../../../../../dev/zero", "", small, "", ReadFailed},
	} {
		p := filepath.Join(dir, c.name)
		if c.content != "" {
			p = write(t, dir, c.name, c.content)
		}
		img, dropped := Load(p, c.limits)
		if dropped != c.dropped || img.MediaType != c.kind {
			t.Errorf("%q: %q, dropped %q; want %q, %q", c.name, img.MediaType, dropped, c.kind, c.dropped)
		}
		if dropped != "" && (img.Data != nil || img.Source != "") {
			t.Errorf("%q: dropped and yet %+v", c.name, img)
		}
		if dropped == "" && (img.Source != p || c.content != "" && string(img.Data) != c.content) {
			t.Errorf("%q: %d bytes from %s", c.name, len(img.Data), img.Source)
		}
	}
	if _, dropped := Load("", small); dropped != EmptyPath {
		t.Errorf("no path: %q", dropped)
	}
}

func TestLoadInADirectory(t *testing.T) {
	t.Parallel()
	outer := t.TempDir()
	dir := filepath.Join(outer, "in")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, outer, "secret.png", png+"secret")
	write(t, dir, "a.png", png+"a")
	for to, name := range map[string]string{"a.png": "inside.png", "../secret.png": "outside.png", filepath.Join(outer, "secret.png"): "absolute.png", "..": "up"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for name, want := range map[string]string{"a.png": "", "inside.png": "", "outside.png": ReadFailed, "absolute.png": ReadFailed, "../secret.png": ReadFailed,
		"up/secret.png": ReadFailed, "/etc/passwd": ReadFailed, ".": ReadFailed, "": EmptyPath} {
		img, dropped := LoadIn(root, name, "where it lies", DefaultLimits())
		if dropped != want || want == "" && (img.Source != "where it lies" || string(img.Data) != png+"a") {
			t.Errorf("%q: %q, %+v", name, dropped, img)
		}
	}
}

func TestLimitsOfAMessage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ size, want int }{{100, MaxImages}, {MaxFile, MaxBytes / MaxFile}} {
		p := write(t, dir, "a.png", png+strings.Repeat("x", c.size-len(png)))
		l, n := DefaultLimits(), 0
		for range 2 * MaxImages {
			img, dropped := Load(p, l)
			if dropped == TooMany {
				break
			}
			if dropped != "" || len(img.Data) != c.size {
				t.Fatalf("%d bytes: %q", len(img.Data), dropped)
			}
			l = l.Less(img)
			n++
		}
		if n != c.want {
			t.Errorf("%d images of %d bytes were taken, want %d", n, c.size, c.want)
		}
	}
}

// endless gives more than anybody asked for.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	e.n += len(b)
	return len(b), nil
}

func TestReadingIsBounded(t *testing.T) {
	t.Parallel()
	e := &endless{}
	b, err := readMore(e, []byte("abc"), 1000)
	if err != nil || len(b) != 1000 || e.n != 997 {
		t.Errorf("%d bytes, %d read: %v", len(b), e.n, err)
	}
	b, err = readMore(iotest.OneByteReader(strings.NewReader("defg")), []byte("abc"), 1000)
	if err != nil || !bytes.Equal(b, []byte("abcdefg")) {
		t.Errorf("%q, %v", b, err)
	}
	if _, err = readMore(iotest.ErrReader(os.ErrPermission), nil, 1000); err == nil {
		t.Error("an error was lost")
	}
}

func TestOnly(t *testing.T) {
	t.Parallel()
	allow := Only(8, PNG, JPEG)
	for _, c := range []struct {
		kind string
		n    int
		want string
	}{{PNG, 6, ""}, {JPEG, 1, ""}, {PNG, 7, FileTooLarge}, {GIF, 1, UnsupportedType}, {"", 1, UnsupportedType}} {
		if got := allow(llm.Image{MediaType: c.kind, Data: make([]byte, c.n)}); got != c.want {
			t.Errorf("%s of %d bytes: %q", c.kind, c.n, got)
		}
	}
	if got := Only(0, GIF)(llm.Image{MediaType: GIF, Data: make([]byte, 1<<20)}); got != "" {
		t.Error(got)
	}
}
