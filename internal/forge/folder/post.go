package folder

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"
)

// Post implements forge.Tracker. Our entry is the one with the marker under our
// name; where its text is another one it is written anew in its place.
func (f *Forge) Post(ctx context.Context, k task.Key, marker, body string) (forge.Comment, error) {
	e, err := f.findToWrite(ctx, k)
	if err != nil {
		return forge.Comment{}, err
	}
	c := Comment{Author: f.o.Login, Time: f.now().Truncate(time.Second), Body: cleanBody(body), Marker: marker}
	if _, err := format(c); marker == "" || err != nil {
		return forge.Comment{}, failed(forge.Invalid, i18n.E("folder.marker", marker))
	}
	path := CommentsPath(e.path)
	if err := changeComments(path, func(file *os.File, b beside) error { return put(file, b, &c) }); err != nil {
		return forge.Comment{}, failed(forge.Unavailable, err)
	}
	return f.comment(e, c, 0, f.now()), nil
}

// put makes sure that a comments file has c once; of an entry that is there c
// takes the time.
func put(f *os.File, b beside, c *Comment) error {
	start, end, err := entryOf(f, c.Author, c.Marker)
	if err != nil {
		return err
	}
	if end == 0 {
		entry, err := format(*c)
		if err != nil {
			return err
		}
		return appendEntry(f, entry)
	}
	old := make([]byte, end-start)
	if _, err := f.ReadAt(old, start); err != nil {
		return err
	}
	there := parseComments(lf(strings.ToValidUTF8(strings.TrimPrefix(string(old), mark), "\uFFFD")))
	if len(there) == 0 {
		return errors.New("an entry changed while it was read")
	}
	was := there[len(there)-1]
	c.Time = was.Time
	if was.Body == c.Body {
		return f.Sync() // it may be ours from before a crash, not yet on disk
	}
	entry, err := format(*c)
	if err != nil {
		return err
	}
	return splice(f, b, start, end, entry)
}

// entryOf finds the entry of an author with a marker, from its heading to the end of
// its last line; end is 0 where there is none. The file is read through without
// holding it.
func entryOf(f *os.File, author, marker string) (start, end int64, err error) {
	r := bufio.NewReaderSize(f, 64<<10)
	var at int64
	whole, under := true, false // the buffer begins at a line's start; the heading is the author's
	for {
		l, err := r.ReadSlice('\n')
		here := at
		at += int64(len(l))
		if whole {
			text := string(bytes.TrimRight(bytes.TrimPrefix(l, []byte(mark)), "\r\n"))
			if who, _, ok := heading(text); ok {
				start, under = here, who == author
			} else if m := markerLine().FindStringSubmatch(text); m != nil {
				if under && m[1] == marker {
					return start, at, nil
				}
				under = false
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return 0, 0, nil
		case errors.Is(err, bufio.ErrBufferFull):
			whole = false
		case err != nil:
			return 0, 0, err
		default:
			whole = true
		}
	}
}

// splice puts a file in the place of f that has entry instead of the bytes from
// start to end. The caller holds the lock on f; who waits for it finds another
// file there and opens that.
func splice(f *os.File, b beside, start, end int64, entry []byte) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return b.swap(st.Mode().Perm(), func(tmp *os.File) error {
		_, err := io.Copy(tmp, io.MultiReader(io.NewSectionReader(f, 0, start), bytes.NewReader(entry), io.NewSectionReader(f, end, st.Size()-end)))
		if err == nil {
			err = tmp.Sync()
		}
		return err
	}, func() error {
		if now, err := b.dir.Lstat(b.name); err != nil || !os.SameFile(now, st) || now.Size() != st.Size() || !now.ModTime().Equal(st.ModTime()) {
			return errors.New("it changed while a comment was edited")
		}
		return nil
	})
}

// said is what was read of a comments file.
type said struct {
	stamp stamp
	cut   bool
	whole bool // the comments have their bodies
	all   []forge.Comment
}

// comment is an entry as a forge's; nth counts those of the same author and
// second before it, and seen is when its text was first seen.
func (f *Forge) comment(e *entry, c Comment, nth int, seen time.Time) forge.Comment {
	out := forge.Comment{Kind: forge.Note, Item: e.id, Author: forge.Person{Login: cmp.Or(c.Author, f.o.Owner)}, Body: c.Body, Created: c.Time, URL: CommentsPath(e.path)}
	if out.Created.IsZero() {
		out.Created = seen
	}
	out.Edited = out.Created
	name := c.Marker
	out.Author.Bot = c.Author == f.o.Login // also of what a crash left of an entry
	if c.Marker != "" && out.Author.Bot {
		out.Marker = c.Marker
	} else {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s\x00%d\x00%d", c.Author, c.Time.Unix(), nth) // a hash takes everything
		name = hex.EncodeToString(h.Sum(nil))
	}
	out.ID = "note/" + e.id + "." + name
	return out
}

// readComments reads the comments of an issue; without bodies where the file did not
// change. A file has no times of edits, and dates that people write are not to be
// relied on: what was not there when it was read last was said since.
func (f *Forge) readComments(ctx context.Context, e *entry, bodies bool) (*said, error) {
	if e.path == "" {
		return &said{}, nil
	}
	path := CommentsPath(e.path)
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		delete(f.said, path)
		return &said{}, nil
	}
	if err != nil {
		return nil, failed(forge.Unavailable, i18n.E("folder.unreadable", path, err))
	}
	old := f.said[path]
	if old != nil && old.stamp == stampOf(st) && (old.whole || !bodies) {
		return old, nil
	}
	entries, cut, err := readComments(path)
	if err != nil {
		return nil, failed(forge.Unavailable, err)
	}
	var before notes
	if err := f.recall(ctx, e.id, notesMark, &before); err != nil {
		return nil, err
	}
	at := st.ModTime().UTC()
	now := notes{Seen: at, All: map[string]note{}}
	read := &said{stamp: stampOf(st), cut: cut > 0, whole: true}
	nth := map[string]int{}
	for _, c := range commandsApart(entries) {
		key := c.Author + "\x00" + c.Time.String()
		out := f.comment(e, c, nth[key], at)
		nth[key]++
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.Body)) // a hash takes everything
		was, known := before.All[out.ID]
		if known {
			out.Created, out.Edited = was.Created, was.Edited
		}
		changed := known && was.Text != h.Sum64() || !known && out.Created.Before(before.Seen.Truncate(time.Second))
		if changed && at.After(out.Edited) {
			out.Edited = at
		}
		now.All[out.ID] = note{h.Sum64(), out.Created.UTC(), out.Edited.UTC()}
		read.all = append(read.all, out)
	}
	if !before.Seen.Equal(at) || !maps.Equal(before.All, now.All) {
		if err := f.remember(ctx, e.id, notesMark, now); err != nil {
			return nil, err
		}
	}
	f.said[path] = f.kept(read)
	return read, nil
}

// kept is what is kept of a comments file: of a folder, which may have many of them, no
// bodies.
func (f *Forge) kept(read *said) *said {
	if f.o.Issue != nil {
		return read
	}
	kept := *read
	kept.whole, kept.all = false, slices.Clone(read.all)
	for i := range kept.all {
		kept.all[i].Body = ""
	}
	return &kept
}

var commandLine = lazyregexp.New(`\n\s*\n/[a-z]+[ \t]*(?:\n|$)`)

// commandsApart makes each command in text without a heading the beginning of a
// comment: people write one below the other.
func commandsApart(entries []Comment) (all []Comment) {
	for _, c := range entries {
		for at := commandLine().FindStringIndex(c.Body); c.Author == "" && at != nil; at = commandLine().FindStringIndex(c.Body) {
			before := c
			before.Body, c.Body = c.Body[:at[0]], strings.TrimLeft(c.Body[at[0]:], " \t\n")
			all = append(all, before)
		}
		all = append(all, c)
	}
	return all
}

// Comments implements forge.Tracker.
func (f *Forge) Comments(ctx context.Context, k task.Key) (all []forge.Comment, cut int, err error) {
	e, err := f.find(ctx, k)
	if err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.readComments(ctx, e, true)
	if err != nil {
		return nil, 0, err
	}
	cut = max(0, len(s.all)-forge.MaxComments)
	all = s.all[cut:]
	if s.cut { // how many they are was not read
		cut++
	}
	return all, cut, nil
}

// CommentsSince implements forge.Tracker.
func (f *Forge) CommentsSince(ctx context.Context, r forge.Repo, since time.Time) ([]forge.Comment, error) {
	if err := f.at(ctx, r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	var all []forge.Comment
	for _, e := range entries {
		if e.err != nil {
			continue // Triggered tells of it
		}
		s, err := f.readComments(ctx, e, false)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(s.all, func(c forge.Comment) bool { return !c.Edited.Before(since) }) {
			continue
		}
		if s, err = f.readComments(ctx, e, true); err != nil {
			return nil, err
		}
		for _, c := range s.all {
			if !c.Edited.Before(since) {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b forge.Comment) int {
		return cmp.Or(a.Edited.Compare(b.Edited), strings.Compare(a.Item, b.Item))
	})
	return all[:min(len(all), forge.MaxComments)], nil
}
