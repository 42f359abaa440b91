package contextstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

var (
	redPicture  = []byte("\x89PNG\r\n\x1a\nred")
	bluePicture = append([]byte("\xff\xd8\xffblue"), bytes.Repeat([]byte{0, 1, 0xfe}, 500)...)
)

// show saves an image and appends a message that refers to it.
func show(c *Context, data []byte, mediaType string) (Image, error) {
	i, err := c.SaveImage(data, mediaType)
	if err != nil {
		return i, err
	}
	_, err = c.Append(Message{Role: "user", Content: "look", Images: []Image{i}})
	return i, err
}

// filesBelow lists the plain files below a directory with their modes.
func filesBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		all = append(all, strings.TrimPrefix(p, dir)+" "+st.Mode().String())
		return err
	}))
	return all
}

// An image is stored once, privately, and goes where the context goes.
func TestImagesMoveWithTheContext(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	first, err := show(c, redPicture, "image/png")
	must(t, err)
	second, err := show(c, redPicture, "image/png")
	must(t, err)
	third, err := show(c, bluePicture, "image/jpeg")
	must(t, err)
	if first != second || first == third || first.Bytes != int64(len(redPicture)) || first.MediaType != "image/png" {
		t.Errorf("%+v, %+v, %+v", first, second, third)
	}
	want := []string{" drwx------", "/" + filepath.Base(third.Path) + " -rw-------", "/" + filepath.Base(first.Path) + " -rw-------"}
	if filepath.Base(first.Path) < filepath.Base(third.Path) {
		want[1], want[2] = want[2], want[1]
	}
	if got := filesBelow(t, filepath.Join(c.Dir(), imagesDir)); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("stored %q, want %q", got, want)
	}
	for _, status := range []task.Status{task.Paused, task.Completed} {
		id := c.UUID()
		must(t, c.Transition(t.Context(), task.Outcome{Status: status, Reason: "test", Summary: "summed up"}))
		dir, err := s.dir(id)
		must(t, err)
		if _, err := kernel.Stat(filepath.Join(dir, first.Path)); err != nil {
			t.Errorf("%s: %v", status, err)
		}
		if r := check(t, s.BaseDir, true); r.Found != 0 {
			t.Errorf("%s: %+v", status, r.Findings)
		}
		if status == task.Completed {
			return
		}
		if c, _, err = s.Claim(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for _, m := range all(t, c) {
			data, err := c.ReadImage(m.Images[0])
			if err != nil || !bytes.Equal(data, redPicture) && !bytes.Equal(data, bluePicture) {
				t.Errorf("%+v: %d bytes, %v", m.Images, len(data), err)
			}
		}
	}
}

func TestImagesThatAreNone(t *testing.T) {
	t.Parallel()
	c := begin(t, open(t, Options{}))
	for _, bad := range []struct {
		data      []byte
		mediaType string
	}{{nil, "image/png"}, {make([]byte, MaxImage+1), "image/png"}, {redPicture, "image/svg+xml"}, {redPicture, "../png"}} {
		if i, err := c.SaveImage(bad.data, bad.mediaType); err == nil {
			t.Errorf("%d bytes of %q were saved as %+v", len(bad.data), bad.mediaType, i)
		}
	}
	good, err := c.SaveImage(redPicture, "image/png")
	must(t, err)
	other := strings.Replace(good.Path, filepath.Base(good.Path)[:2], "zz", 1)
	for _, bad := range []Image{
		{Path: other, Bytes: good.Bytes}, {Path: good.Path, Bytes: good.Bytes + 1}, {Path: good.Path + "x", Bytes: good.Bytes},
		{Path: "metadata.json", Bytes: good.Bytes}, {Path: "images/../../../../etc/passwd", Bytes: good.Bytes}, {Path: "/etc/passwd", Bytes: good.Bytes},
		{Path: strings.Replace(good.Path, ".png", ".gif", 1), Bytes: good.Bytes},
	} {
		if data, err := c.ReadImage(bad); err == nil {
			t.Errorf("%+v was read: %q", bad, data)
		}
		if _, err := c.Append(Message{Role: "user", Images: []Image{bad}}); err == nil {
			t.Errorf("a message with %+v was appended", bad)
		}
	}
	if _, err := c.ReadImage(Image{}); err == nil {
		t.Error("no image was read")
	}
	if n := c.LastSeq(); n != 0 {
		t.Errorf("%d messages", n)
	}
	must(t, kernel.WriteFile(filepath.Join(c.Dir(), good.Path), bytes.ToUpper(redPicture), 0o600))
	if data, err := c.ReadImage(good); !errors.Is(err, ErrImageDiffers) || data != nil {
		t.Errorf("a changed image was read: %q, %v", data, err)
	}
	// It is written again by whoever has it.
	if _, err := show(c, redPicture, "image/png"); err != nil {
		t.Error(err)
	}
	if data, err := c.ReadImage(good); err != nil || !bytes.Equal(data, redPicture) {
		t.Errorf("%q, %v", data, err)
	}
	must(t, kernel.Remove(filepath.Join(c.Dir(), good.Path)))
	if _, err := c.ReadImage(good); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A full disk refuses an image as it refuses work, or in the middle of the
// writing; nothing stays of it, and it can be saved when there is room.
func TestImagesOnAFullDisk(t *testing.T) {
	kernelOnly(t)
	t.Parallel()
	var full atomic.Bool
	var fail atomic.Pointer[disktest.Failer]
	s := open(t, Options{
		StatFS: func(p string) (FileSystem, error) {
			st, err := statFileSystem(p)
			if full.Load() {
				st.Free = 1
			}
			return st, err
		},
		FS: &disk.FS{Before: func(op disk.Op) error {
			if f := fail.Load(); f != nil && op.Kind == disk.Replace {
				return f.Before(op)
			}
			return nil
		}},
	})
	c := begin(t, s)
	full.Store(true)
	if _, err := c.SaveImage(redPicture, "image/png"); !errors.As(err, new(*NoSpaceError)) {
		t.Errorf("saved on a full disk: %v", err)
	}
	full.Store(false)
	fail.Store(&disktest.Failer{At: 1, Err: syscall.ENOSPC, Short: true})
	if _, err := c.SaveImage(redPicture, "image/png"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("half an image: %v", err)
	}
	if got := filesBelow(t, filepath.Join(c.Dir(), imagesDir)); len(got) != 1 {
		t.Errorf("left: %q", got)
	}
	if _, err := show(c, redPicture, "image/png"); err != nil {
		t.Error(err)
	}
}

// What check finds of images, by what was done to them.
func TestDamagedImages(t *testing.T) {
	t.Parallel()
	for want, damage := range map[string]func(t *testing.T, dir string, i Image){
		"":              func(*testing.T, string, Image) {},
		"image_missing": func(t *testing.T, dir string, i Image) { must(t, kernel.Remove(filepath.Join(dir, i.Path))) },
		"image_differs": func(t *testing.T, dir string, i Image) {
			must(t, kernel.WriteFile(filepath.Join(dir, i.Path), bytes.ToUpper(redPicture), 0o600))
		},
		"image_differs longer": func(t *testing.T, dir string, i Image) { appendTo(t, filepath.Join(dir, i.Path), "x") },
		"image_unreadable": func(t *testing.T, dir string, i Image) {
			edit(t, filepath.Join(dir, Messages), i.Path, strings.Repeat("/", len(i.Path)))
		},
		"mode": func(t *testing.T, dir string, i Image) {
			kernelOnly(t)
			must(t, os.Chmod(filepath.Join(dir, i.Path), 0o644))
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			c := begin(t, s)
			var i Image
			for range 3 {
				var err error
				i, err = show(c, redPicture, "image/png")
				must(t, err)
			}
			must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "summed up"}))
			dir, err := s.dir(c.UUID())
			must(t, err)
			damage(t, dir, i)
			r := check(t, s.BaseDir, want == "mode")
			kind, _, _ := strings.Cut(want, " ")
			for _, k := range kinds(r) {
				if k != kind {
					t.Errorf("found %q", k)
				}
			}
			if n := len(r.Findings); kind == "" && n != 0 || kind != "" && n == 0 {
				t.Errorf("%d findings: %+v", n, r.Findings)
			}
			if want == "mode" != (r.Mended == 1) {
				t.Errorf("mended %d", r.Mended)
			}
			for _, f := range r.Findings {
				if s := f.What(i18n.Japanese); strings.Contains(s, "%!") {
					t.Error(s)
				}
			}
		})
	}
}

// pictureLife is a life whose messages have images.
func pictureLife() []step {
	see := func(data []byte, mediaType string) step {
		return doing("show an image", func(c *Context) error { _, err := show(c, data, mediaType); return err })
	}
	return []step{opening, enqueuing, claiming, see(redPicture, "image/png"), see(bluePicture, "image/jpeg"), see(redPicture, "image/png"),
		ending(task.Outcome{Status: task.Paused, Reason: "asked"}), claiming, see(bluePicture, "image/gif"),
		ending(task.Outcome{Status: task.Completed, Summary: "done"})}
}

// imagesWhole checks that each message on disk has its images, and that the next
// owner can go on.
func imagesWhole(ctx context.Context, base string, acknowledged int64) error {
	dirs := contextDirs(base)
	if len(dirs) != 1 {
		if acknowledged > 0 {
			return fmt.Errorf("contexts: %v", dirs)
		}
		return nil
	}
	referred := func(dir string) (n int64, err error) {
		for line := range bytes.Lines(readLogs(dir)[Messages]) {
			m, derr := DecodeMessage(bytes.TrimSpace(line))
			if derr != nil {
				continue
			}
			for _, i := range m.Images {
				n++
				err = errors.Join(err, CheckImage(dir, i))
			}
		}
		return n, err
	}
	if _, err := referred(dirs[0]); err != nil {
		return fmt.Errorf("as it was found: %w", err)
	}
	l, err := nextLife(ctx, base)
	if err != nil {
		return err
	}
	defer l.die()
	l.uuid = filepath.Base(dirs[0])
	if err := l.take(ctx, claiming); err == nil {
		if _, err := show(l.ctx, redPicture, "image/png"); err != nil {
			return err
		}
		acknowledged++
	} else if !errors.Is(err, ErrEnded) {
		return err
	}
	n, err := referred(contextDirs(base)[0])
	if err == nil && n < acknowledged {
		err = fmt.Errorf("%d images, %d were acknowledged", n, acknowledged)
	}
	return err
}

// A message never refers to an image that is not wholly there: wherever the
// program is stopped, whichever call fails, whenever the power is cut.
func TestImagesSurviveCrashes(t *testing.T) {
	t.Parallel()
	base := scratch(t)
	rec, err := disktest.NewRecorder(base)
	must(t, err)
	steps := pictureLife()
	count := &disktest.Stopper{}
	l := newLife(base, rec.Watch(&disk.FS{Before: count.Before}))
	from, traced, shown := 0, 0, int64(0)
	for i, s := range steps {
		must(t, l.take(t.Context(), s))
		if i == 2 {
			from, traced = count.Calls(), rec.Len()
		}
		if s.name == "show an image" {
			shown++
			rec.Ack(s.name, shown)
		}
	}
	l.die()
	total := count.Calls()
	m := &matrix{}
	m.empty, err = emptyDatabases(t)
	must(t, err)
	each(2*(total-from), func(n int) {
		s := &disktest.Stopper{At: from + 1 + n/2, Torn: n%2 == 1}
		f := &disktest.Failer{At: s.At, Err: syscall.EIO, Short: s.Torn}
		for _, before := range []func(disk.Op) error{s.Before, f.Before} {
			base := scratch(t)
			m.seed(t, base, n+1)
			l := newLife(base, &disk.FS{Before: before, Flush: disktest.NoFlush})
			at, err := l.run(t.Context(), steps, 0)
			l.die()
			var done int64
			for _, s := range steps[:at] {
				if s.name == "show an image" {
					done++
				}
			}
			if verr := imagesWhole(t.Context(), base, done); verr != nil {
				t.Errorf("call %d (%v, torn %v) in step %d (%v): %v", s.At, s.Hit(), s.Torn, at, err, verr)
			}
			_ = kernel.RemoveAll(base)
		}
	})
	var states []disktest.State
	cuts, err := rec.PowerCuts(traced, func(s disktest.State) { states = append(states, s) })
	must(t, err)
	each(len(states), func(n int) {
		base := scratch(t)
		defer func() { _ = kernel.RemoveAll(base) }()
		err := states[n].Materialize(base)
		m.seed(t, base, n)
		var done int64
		if a := states[n].Acks; len(a) > 0 {
			done = a[len(a)-1].Value.(int64)
		}
		if err == nil {
			err = imagesWhole(t.Context(), base, done)
		}
		if err != nil {
			t.Errorf("power cut %s: %v", states[n].How, err)
		}
	})
	if total-from < 40 || cuts.Checked < 100 {
		t.Errorf("%d calls, %+v", total-from, cuts)
	}
	t.Logf("%d calls stopped, torn and failed; %d power cuts", total-from, cuts.Checked)
}
