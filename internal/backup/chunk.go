package backup

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"

	"filippo.io/age"

	"toritsugi/internal/bucket"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// chunkBytes is how much of a stream is one object, before it is compressed: what is appended to a
// long file costs its last chunk, and none is ever held in memory but one.
const chunkBytes = 1 << 20

// chunk is a piece of a stream and the object that holds it.
type chunk struct {
	Sum    string `json:"sum"`    // SHA-256 of the piece
	Object string `json:"object"` // SHA-256 of the object's bytes: the piece compressed, and encrypted where that is set
	Size   int64  `json:"size"`   // of the object
}

const dataDir = "data/"

func objectName(object string) string { return dataDir + object[:2] + "/" + object }

// maxObject is the longest object, in bytes: a chunk that cannot be compressed, in age's envelope.
const maxObject = chunkBytes + 1<<16

// cutter cuts what is written to it into chunks.
type cutter struct {
	emit func(piece []byte) error
	buf  []byte
}

// Write implements io.Writer.
func (c *cutter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		take := min(len(b), chunkBytes-len(c.buf))
		c.buf = append(c.buf, b[:take]...)
		b, n = b[take:], n+take
		if len(c.buf) == chunkBytes {
			if err := c.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// flush makes a chunk of what is left.
func (c *cutter) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	err := c.emit(c.buf)
	c.buf = c.buf[:0]
	return err
}

// put stores a piece. Where it is stored already, in was or, unencrypted, as the same object that is
// whole, and what is there need not be doubted (fresh), nothing is written.
func (r *Repository) put(ctx context.Context, piece []byte, was map[string]chunk, fresh bool) (c chunk, wrote int64, err error) {
	sum := bucket.Hash(piece)
	if c, ok := was[sum]; ok && !fresh {
		return c, 0, nil
	}
	raw, err := r.seal(piece)
	if err != nil {
		return c, 0, err
	}
	c = chunk{Sum: sum, Object: bucket.Hash(raw), Size: int64(len(raw))}
	if !fresh && len(r.to) == 0 {
		there, err := r.place.Has(ctx, objectName(c.Object), c.Size)
		if there {
			if _, err = r.raw(ctx, c); IsDamage(err) { // none but an older generation needs it so far
				there, err = false, nil
			}
		}
		if err != nil || there {
			return c, 0, err
		}
	}
	return c, c.Size, r.store(ctx, objectName(c.Object), raw)
}

// store writes an object.
func (r *Repository) store(ctx context.Context, name string, raw []byte) error {
	err := r.place.Put(ctx, name, raw)
	switch path := (*fs.PathError)(nil); {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return i18n.E("backup.full", r.Place()).Of(err)
	case errors.As(err, &path):
		return i18n.E("backup.unwritable", r.Place(), err)
	}
	return err
}

// seal compresses a piece, and encrypts it where that is set.
func (r *Repository) seal(piece []byte) ([]byte, error) {
	var b bytes.Buffer
	var w io.WriteCloser = nopCloser{&b}
	if len(r.to) > 0 {
		var err error
		if w, err = age.Encrypt(&b, r.to...); err != nil {
			return nil, err
		}
	}
	z, ok := r.zips.Get().(*gzip.Writer) // a new one takes 800 KiB
	if ok {
		z.Reset(w)
	} else {
		z = gzip.NewWriter(w)
	}
	defer r.zips.Put(z)
	_, err := z.Write(piece)
	err = errors.Join(err, z.Close(), w.Close())
	return b.Bytes(), err
}

type nopCloser struct{ io.Writer }

// Close implements io.Closer.
func (nopCloser) Close() error { return nil }

// raw reads the object of a chunk and compares it with its hash.
func (r *Repository) raw(ctx context.Context, c chunk) ([]byte, error) {
	if len(c.Object) != 64 || len(c.Sum) != 64 {
		return nil, damaged(c.Object, fs.ErrInvalid)
	}
	name := objectName(c.Object)
	raw, err := r.place.Get(ctx, name, maxObject)
	if err != nil {
		return nil, orDamaged(name, err)
	}
	if bucket.Hash(raw) != c.Object {
		return nil, damaged(name, errHash)
	}
	return raw, nil
}

// get reads the piece of a chunk. A *LockedError: no identity opens it.
func (r *Repository) get(ctx context.Context, c chunk) ([]byte, error) {
	raw, err := r.raw(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.open(objectName(c.Object), raw, c)
}

var errNoIdentity = errors.New("no identity")

// ageHeader begins what age encrypted.
const ageHeader = "age-encryption.org/"

func (r *Repository) open(name string, raw []byte, c chunk) ([]byte, error) {
	var in io.Reader = bytes.NewReader(raw)
	if bytes.HasPrefix(raw, []byte(ageHeader)) {
		var err error
		if len(r.with) == 0 {
			return nil, &LockedError{i18n.E("backup.locked", r.Place()).Of(errNoIdentity)}
		}
		if in, err = age.Decrypt(in, r.with...); err != nil {
			if none := (*age.NoIdentityMatchError)(nil); errors.As(err, &none) {
				return nil, &LockedError{i18n.E("backup.locked", r.Place()).Of(none)}
			}
			return nil, damaged(name, err)
		}
	}
	z, ok := r.unzips.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	defer r.unzips.Put(z)
	if err := z.Reset(in); err != nil {
		return nil, damaged(name, err)
	}
	piece, err := disk.ReadAll(z, name, chunkBytes)
	if err != nil {
		return nil, damaged(name, err)
	}
	if bucket.Hash(piece) != c.Sum {
		return nil, damaged(name, errHash)
	}
	return piece, nil
}

// stream reads chunks one after another.
type stream struct {
	ctx    context.Context //nolint:containedctx // of the one reading that it lives for
	r      *Repository
	chunks []chunk
	piece  []byte
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	for len(s.piece) == 0 {
		if len(s.chunks) == 0 {
			return 0, io.EOF
		}
		var err error
		if s.piece, err = s.r.get(s.ctx, s.chunks[0]); err != nil {
			return 0, err
		}
		s.chunks = s.chunks[1:]
	}
	n := copy(b, s.piece)
	s.piece = s.piece[n:]
	return n, nil
}

func (r *Repository) stream(ctx context.Context, chunks []chunk) *stream {
	return &stream{ctx: ctx, r: r, chunks: chunks}
}
