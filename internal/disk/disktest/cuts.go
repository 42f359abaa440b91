package disktest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"toritsugi/internal/disk"
)

// State is what a power cut may leave on the disk.
type State struct {
	Acks []Ack // what had been acknowledged before the cut, oldest first
	Next []Ack // what was acknowledged after it; the first may have been under way
	How  string

	Dirs  []string          // relative to the base, parents first
	Files map[string][]byte // content by relative path; not to be changed
}

// Materialize writes the state into dir, an empty directory.
func (s State) Materialize(dir string) error {
	for _, d := range s.Dirs {
		if err := os.Mkdir(filepath.Join(dir, d), disk.DirMode); err != nil {
			return err
		}
	}
	for name, b := range s.Files {
		if err := os.WriteFile(filepath.Join(dir, name), b, disk.FileMode); err != nil {
			return err
		}
	}
	return nil
}

// Cuts is how much PowerCuts went through.
type Cuts struct {
	Moments int // at which the power was cut: before the first effect and after each
	States  int // that were built
	Checked int // different ones, or with different acknowledgements
}

// PowerCuts calls check with every state that a power cut at or after entry
// from of the trace may leave (0 is the beginning), each once. At each moment
// these are: nothing of what is pending survived; all; all entries and no
// content, and the reverse; each pending change alone, with what it rests on;
// all but each one, with what rests on it; and each pending write torn after 1
// byte, half and all but 1 byte, or lost with the file grown by NULs in its place.
// An error says that the trace is not one the model understands.
func (r *Recorder) PowerCuts(from int, check func(State)) (Cuts, error) {
	r.mu.Lock()
	entries := slices.Clone(r.entries)
	r.mu.Unlock()
	var acks []Ack
	for _, e := range entries {
		if e.ack != nil {
			acks = append(acks, *e.ack)
		}
	}
	w := &cutter{m: newModel(r.rel), acks: acks, check: check, seen: map[[sha256.Size]byte]bool{}}
	if from == 0 {
		w.cut("before the first effect")
	}
	for i, e := range entries {
		if e.ack != nil {
			w.given++
		} else if err := w.m.take(e.event, r.describe(e.event)); err != nil {
			return w.count, fmt.Errorf("entry %d: %w", i, err)
		}
		if i+1 >= from {
			what := "ack"
			if e.ack == nil {
				what = r.describe(e.event)
			}
			w.cut(fmt.Sprintf("after entry %d (%s)", i, what))
		}
	}
	return w.count, nil
}

// cutter enumerates the states of one trace.
type cutter struct {
	m     *model
	acks  []Ack
	given int // of acks, so far
	check func(State)
	seen  map[[sha256.Size]byte]bool
	count Cuts
}

func (w *cutter) cut(when string) {
	w.count.Moments++
	m := w.m
	w.state(m.durable, when, "nothing pending survived", nil)
	if len(m.pending) == 0 {
		return
	}
	w.state(m.now, when, "everything survived", nil)
	w.state(m.survivors(func(c *change) bool { return c.entry }), when, "entries survived, content did not", nil)
	w.state(m.survivors(func(c *change) bool { return !c.entry }), when, "content survived, entries did not", nil)
	for _, c := range m.pending {
		alone := map[*change]bool{}
		require(c, alone)
		w.state(m.survivors(func(o *change) bool { return alone[o] }), when, "only this survived:", c)
		rest := m.without(c)
		w.state(m.survivors(func(o *change) bool { return rest[o] }), when, "only this was lost:", c)
		if c.write {
			w.torn(when, c)
		}
	}
}

// torn cuts one pending write in pieces, once beside all other changes and once
// beside those of entries only.
func (w *cutter) torn(when string, c *change) {
	n := len(c.data)
	half := append(bytes.Clone(c.data[:n/2]), make([]byte, n-n/2)...)
	for _, v := range []struct {
		data []byte
		how  string
	}{
		{c.data[:min(1, n)], "torn after 1 byte:"},
		{c.data[:n/2], "torn in the middle:"},
		{c.data[:max(n-1, 0)], "torn before the last byte:"},
		{make([]byte, n), "NULs in its place:"},
		{half, "NULs in the place of its second half:"},
	} {
		t := c.torn(v.data)
		for _, others := range []bool{true, false} {
			im := w.m.durable.clone()
			for _, o := range w.m.pending {
				switch {
				case o == c:
					t.apply(im)
				case others || o.entry:
					o.apply(im)
				}
			}
			w.state(im, when, v.how, c)
		}
	}
}

// state hands one image on unless the same was seen with the same acks.
func (w *cutter) state(im image, when, how string, c *change) {
	w.count.States++
	s := State{Files: map[string][]byte{}}
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, int64(w.given)) // a hash takes everything
	var walk func(d node, path string)
	walk = func(d node, path string) {
		entries := im.dirs[d]
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			n, p := entries[name], filepath.Join(path, name)
			if _, dir := im.dirs[n]; dir {
				s.Dirs = append(s.Dirs, p)
				_, _ = fmt.Fprintf(h, "d%q", p)
				walk(n, p)
				continue
			}
			s.Files[p] = im.files[n]
			_, _ = fmt.Fprintf(h, "f%q%d:", p, len(im.files[n]))
			h.Write(im.files[n])
		}
	}
	walk(root, "")
	key := [sha256.Size]byte(h.Sum(nil))
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	w.count.Checked++
	s.Acks, s.Next = w.acks[:w.given:w.given], w.acks[w.given:]
	s.How = when + ": " + how
	if c != nil {
		s.How += " " + c.what
	}
	w.check(s)
}
