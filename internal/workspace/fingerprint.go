package workspace

import (
	"encoding/binary"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"
)

// Bounds of a fingerprint: of a larger tree git's own look is as quick.
const (
	maxPrinted = 5000
	// racy is how close the last change may be: two changes within one tick of
	// the file system's clock look the same.
	racy = 50 * time.Millisecond
)

// fingerprint is what tells a tree from what it was: the state of each file and
// directory, without their contents. A change that leaves all of it as it was
// would have to set the kernel's change time.
type fingerprint struct {
	seed maphash.Seed
	sum  uint64
	ok   bool // seen whole, and settled
}

// print looks at every entry below dir. now is the time of the look.
func (p *fingerprint) print(dir string, now time.Time) fingerprint {
	if p.seed == (maphash.Seed{}) {
		p.seed = maphash.MakeSeed()
	}
	var h maphash.Hash
	h.SetSeed(p.seed)
	n, newest := 0, time.Time{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n++; n > maxPrinted {
			return fs.SkipAll
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fs.ErrInvalid
		}
		var b [48]byte
		for i, v := range []uint64{st.Ino, uint64(st.Mode), uint64(st.Size), uint64(st.Mtim.Nano()), uint64(st.Ctim.Nano())} { //nolint:gosec // bits, not numbers
			binary.LittleEndian.PutUint64(b[8*i:], v)
		}
		binary.LittleEndian.PutUint64(b[40:], uint64(len(path)))
		_, _ = h.Write(b[:]) // never fails
		_, _ = h.WriteString(path)
		if c := time.Unix(0, st.Ctim.Nano()); c.After(newest) {
			newest = c
		}
		return nil
	})
	return fingerprint{p.seed, h.Sum64(), err == nil && n <= maxPrinted && now.Sub(newest) > racy}
}
