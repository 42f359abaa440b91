package contextstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"toritsugi/internal/disk"
	"toritsugi/internal/lazyregexp"
)

// imagesDir holds the images that messages refer to, each under the hash of its
// content: images/{sha256}.{png,jpg,gif,webp}. A file in it never changes.
const imagesDir = "images"

// MaxImage is the largest image that is kept, in bytes: one is held in memory
// whole, and again as base64 in the request that carries it.
const MaxImage = 20 << 20

// imageExtensions are the types of image that models read.
var imageExtensions = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

var imagePath = lazyregexp.New(`^` + imagesDir + `/([0-9a-f]{64})\.(?:png|jpg|gif|webp)$`)

// ErrImageDiffers says that an image is not what was written.
var ErrImageDiffers = errors.New("the image is not the one that was written")

// SaveImage stores an image below the context's directory, once for the same
// content, and returns what a message refers to it by. It is on disk when this
// returns (in the page cache with durability "os"), so that the message may be
// appended. mediaType is image/png, image/jpeg, image/gif or image/webp; data is
// 1 byte to MaxImage. *NoSpaceError: the disk is too full.
func (c *Context) SaveImage(data []byte, mediaType string) (Image, error) {
	ext, known := imageExtensions[mediaType]
	if !known || len(data) == 0 || len(data) > MaxImage {
		return Image{}, fmt.Errorf("save an image of type %q with %d bytes: expected png, jpeg, gif or webp of 1 to %d bytes", mediaType, len(data), MaxImage)
	}
	sum := sha256.Sum256(data)
	i := Image{Path: imagesDir + "/" + hex.EncodeToString(sum[:]) + "." + ext, MediaType: mediaType, Bytes: int64(len(data))}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return Image{}, err
	}
	if err := c.store.room(); err != nil {
		return Image{}, err
	}
	if err := c.putImage(i, data); err != nil {
		return Image{}, fmt.Errorf("save an image of %s: %w", c.meta.UUID, err)
	}
	return i, nil
}

func (c *Context) putImage(i Image, data []byte) error {
	fs, dir, path := c.store.FS, filepath.Join(c.dir, imagesDir), filepath.Join(c.dir, i.Path)
	if err := fs.MkdirAll(dir); err != nil {
		return err
	}
	if CheckImage(c.dir, i) != nil {
		if err := fs.Replace(path, data, !c.store.NoSync); err != nil || c.store.NoSync {
			return err
		}
	} else if err := c.syncImage(path); err != nil {
		return err
	}
	// An owner that was killed may have made the directory and not synced its name.
	return fs.SyncDir(c.dir)
}

// syncImage makes an image durable that is there: whoever wrote it may have left
// it in the page cache.
func (c *Context) syncImage(path string) error {
	if c.store.NoSync {
		return nil
	}
	f, err := c.store.FS.OpenAppend(path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return c.store.FS.SyncDir(filepath.Dir(path))
}

// ReadImage returns the content of an image that a message refers to. It is an
// error where the file is missing (os.ErrNotExist) or is not the one that was
// written. It may be called while Messages is reading.
func (c *Context) ReadImage(i Image) ([]byte, error) {
	data, err := readImage(c.Dir(), i)
	if err != nil {
		return nil, fmt.Errorf("read an image of %s: %w", c.meta.UUID, err)
	}
	return data, nil
}

func readImage(dir string, i Image) ([]byte, error) {
	var data bytes.Buffer
	err := checkImage(dir, i, &data)
	return data.Bytes(), err
}

// CheckImage reports whether an image that a message refers to lies in the context's
// directory as it was written: ErrImageDiffers, or os.ErrNotExist.
func CheckImage(dir string, i Image) error { return checkImage(dir, i, io.Discard) }

func checkImage(dir string, i Image, to io.Writer) error {
	name := imagePath().FindStringSubmatch(i.Path)
	if name == nil || i.Bytes < 1 || i.Bytes > MaxImage {
		return fmt.Errorf("%.40q with %d bytes is no image of ours", i.Path, i.Bytes)
	}
	f, err := disk.OpenPlain(filepath.Join(dir, i.Path))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() != i.Bytes {
		return fmt.Errorf("%s has %d bytes and not %d: %w", i.Path, st.Size(), i.Bytes, ErrImageDiffers)
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(h, to), io.LimitReader(f, i.Bytes)); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != name[1] {
		return fmt.Errorf("%s: %w", i.Path, ErrImageDiffers)
	}
	return nil
}

// haveImages checks that what a message refers to is there: the image comes
// first, then the message.
func (c *Context) haveImages(m Message) error {
	for _, i := range m.Images {
		if i.Path == "" {
			continue
		}
		if imagePath().MatchString(i.Path) {
			st, err := disk.Lstat(filepath.Join(c.dir, i.Path))
			if err == nil && st.Mode().IsRegular() && st.Size() == i.Bytes {
				continue
			}
		}
		return fmt.Errorf("append a message to %s: its image %.40q was not saved before", c.meta.UUID, i.Path)
	}
	return nil
}

// redactImages masks what is told of images. Their paths are of our making.
func (c *Context) redactImages(all []Image) []Image {
	if len(all) == 0 {
		return nil
	}
	out := make([]Image, len(all))
	for n, i := range all {
		if !imagePath().MatchString(i.Path) {
			i.Path = c.clean(i.Path)
		}
		i.MediaType, i.Source, i.Dropped = c.clean(i.MediaType), c.clean(i.Source), c.clean(i.Dropped)
		out[n] = i
	}
	return out
}
