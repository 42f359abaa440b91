// Package image brings pictures from files to models: it reads them within
// limits, and keeps a record of each one that a request carries (route §7.3,
// image audit). It writes nothing but log records.
package image

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"

	"golang.org/x/sys/unix"

	"toritsugi/internal/llm"
)

// The types of image that models read.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"
	WebP = "image/webp"
)

// The reasons why an image is not shown. The first five are Load's.
const (
	EmptyPath       = "empty_path"
	ReadFailed      = "read_failed" // missing, not allowed, or no plain file
	FileTooLarge    = "file_too_large"
	UnsupportedType = "unsupported_type"
	TooMany         = "too_many" // for one message, in number or in bytes together

	OutsideDirectory = "outside_directory" // named by an issue, but not below what the issue may name
	NoImages         = "model_takes_no_images"
)

// The limits of what a message takes.
const (
	// MaxFile is the most bytes of one file. Vendors take 5 MB to 20 MB an image
	// and scale it down to about a megapixel anyway.
	MaxFile = 5 << 20
	// MaxImages is the most images of a message: each costs about a thousand
	// tokens of every request that follows, and beyond 20 Anthropic takes only
	// small ones.
	MaxImages = 20
	// MaxBytes is the most bytes of a message's images together: as base64 they
	// stay below the 32 MB that Anthropic takes as a request.
	MaxBytes = 20 << 20
)

// Limits are what a message still takes.
type Limits struct {
	File   int64 // bytes of one file
	Images int   // how many
	Bytes  int64 // of all of them together
}

// DefaultLimits are those of an empty message.
func DefaultLimits() Limits { return Limits{File: MaxFile, Images: MaxImages, Bytes: MaxBytes} }

// Less is what is left after an image was taken.
func (l Limits) Less(i llm.Image) Limits {
	l.Images--
	l.Bytes -= int64(len(i.Data))
	return l
}

// Load reads the image at path, or returns the reason why it is dropped:
// empty_path, read_failed, file_too_large, unsupported_type or too_many. Its type
// follows from the content, whatever the name says. Only a plain file is read,
// never a link, a pipe or a device, and no more of it than the limits allow.
func Load(path string, l Limits) (img llm.Image, dropped string) {
	if path == "" {
		return img, EmptyPath
	}
	return load(path, l, func() (*os.File, error) {
		return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	})
}

// LoadIn is Load for the file of that name below root, out of which no link and
// no ".." leads. Source is path: where it lies, for people.
func LoadIn(root *os.Root, name, path string, l Limits) (img llm.Image, dropped string) {
	if name == "" {
		return img, EmptyPath
	}
	return load(path, l, func() (*os.File, error) {
		return root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	})
}

func load(path string, l Limits, open func() (*os.File, error)) (img llm.Image, dropped string) {
	if l.Images <= 0 {
		return img, TooMany
	}
	f, err := open()
	if err != nil {
		return img, ReadFailed
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	switch {
	case err != nil || !st.Mode().IsRegular():
		return img, ReadFailed
	case st.Size() > l.File:
		return img, FileTooLarge
	}
	head := make([]byte, 512) // what a type is known by
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return img, ReadFailed
	}
	kind := http.DetectContentType(head[:n])
	switch kind {
	case PNG, JPEG, GIF, WebP:
	default:
		return img, UnsupportedType
	}
	if st.Size() > l.Bytes {
		return img, TooMany
	}
	data := append(make([]byte, 0, max(st.Size(), int64(n))+bytes.MinRead), head[:n]...)
	// It may grow while it is read.
	data, err = readMore(f, data, min(l.File, l.Bytes)+1)
	switch {
	case err != nil:
		return img, ReadFailed
	case int64(len(data)) > l.File:
		return img, FileTooLarge
	case int64(len(data)) > l.Bytes:
		return img, TooMany
	}
	return llm.Image{MediaType: kind, Data: data, Source: path}, ""
}

// readMore appends what is left of r to b, until it has most bytes.
func readMore(r io.Reader, b []byte, most int64) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	_, err := buf.ReadFrom(io.LimitReader(r, most-int64(len(b))))
	return buf.Bytes(), err
}
