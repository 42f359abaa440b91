package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
)

// Whoever writes a build cache decides what later builds contain. So those of a
// task come in layers (docs/decisions/016):
//
//	{dir}/cache/base     what setup and the checks of the untouched base left
//	{dir}/cache/sealed   it is complete: no command writes to it any more
//	{dir}/cache/steps    what the model's commands add
//	{dir}/cache/check    what one check of the end adds; taken back for the next
//
// The upper ones begin with what base holds, and hold copies of what is written
// to and links to what is only read.

// Layer is who writes a build cache.
type Layer string

// The layers.
const (
	LayerBase  Layer = "base"
	LayerSteps Layer = "steps"
	LayerCheck Layer = "check"

	layerEarly Layer = "early" // steps that may come before base is sealed
)

// Caches is where the commands of a layer have their build caches.
type Caches struct {
	Dir      string   // theirs to write
	ReadOnly []string // what Dir links to
	Cold     error    // why they begin without what is there, nil where they do not
}

// The build caches, below a directory that is a sandbox's Cache.
const (
	goBuild = "go-build" // the go command's
	xdg     = "xdg"      // XDG_CACHE_HOME
)

// Bounds of what a layer takes from another: caches beyond are begun anew, or,
// for a part of xdg, linked to as a whole.
const (
	maxSeedFiles = 200_000
	maxSeedBytes = 4 << 30
	maxPartFiles = 2000
	maxPartBytes = 32 << 20
)

// Caches makes the build caches of a layer, or finds them: of the base until it
// is sealed, of a check from then on and anew each time. Those of the model's steps
// begin with what the sealed base has, or before that with what BeginLayers laid
// for them. It fails where the layer is not to be had at this time.
func (w *Workspace) Caches(ctx context.Context, l Layer) (c Caches, err error) {
	w.caching.Lock()
	defer w.caching.Unlock()
	c.Dir = w.layer(l)
	sealed := exists(w.sealMark())
	may := sealed
	switch l {
	case LayerBase, layerEarly:
		may = !sealed
	case LayerSteps:
		may = sealed || exists(c.Dir) || os.Rename(w.layer(layerEarly), c.Dir) == nil
	}
	if !may {
		return c, fmt.Errorf("build caches: the layer %s is asked for, and that the base's is sealed is %t", l, sealed)
	}
	if l != LayerBase {
		c.ReadOnly = []string{w.layer(LayerBase)}
	}
	switch {
	case !exists(c.Dir):
	case l != LayerCheck:
		return c, nil
	case w.fillUpper(ctx, c.Dir) == nil:
		return c, nil
	default: // a check made it so that it cannot be taken back
		if err := removeAll(c.Dir); err != nil {
			return c, fmt.Errorf("build caches: %w", err)
		}
	}
	tmp := w.layer(".tmp-" + l) // one half made is not taken for whole
	fill := w.fillUpper
	if l == LayerBase {
		fill = w.fillBase
	}
	if err = startAnew(tmp); err == nil && room(w.dir) {
		if c.Cold = fill(ctx, tmp); c.Cold != nil {
			err = startAnew(tmp) // a cold cache is slow and nothing worse
		}
	}
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	if err == nil {
		err = os.Rename(tmp, c.Dir)
	}
	if err != nil {
		return c, fmt.Errorf("build caches: %w", err)
	}
	return c, nil
}

func (w *Workspace) layer(l Layer) string { return filepath.Join(w.dir, "cache", string(l)) }

func (w *Workspace) sealMark() string { return filepath.Join(w.dir, "cache", "sealed") }

// startAnew makes an empty directory.
func startAnew(dir string) error {
	if err := removeAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, disk.DirMode)
}

// room reports whether the disk has some for what can be done without.
func room(dir string) bool {
	free, err := disk.Free(dir)
	return err == nil && free >= 2*MinFree
}

// fillBase copies what setup left, and what the checks of this base or else of
// an ancestor did.
func (w *Workspace) fillBase(ctx context.Context, to string) error {
	if w.made == "" {
		return nil
	}
	from := filepath.Join(w.made, "build")
	if !exists(from) {
		from = filepath.Join(w.made, "files")
	}
	b := &budget{maxSeedFiles, maxSeedBytes}
	if err := copyNames(ctx, from, to, []string{goBuild, xdg}, copier{room: b}); err != nil {
		return err
	}
	if exists(filepath.Join(to, goBuild)) {
		return nil
	}
	return w.fromAncestor(ctx, w.made, func(dir string) error {
		return copyNames(ctx, filepath.Join(dir, "build"), to, []string{goBuild}, copier{room: b})
	})
}

// inherit gives the setup of a new base what was loaded for an ancestor of it.
// What can be loaded again is left out where it is too much.
func (w *Workspace) inherit(ctx context.Context, dir, files string) error {
	if !room(dir) {
		return nil
	}
	err := w.fromAncestor(ctx, dir, func(old string) error {
		b := &budget{maxSeedFiles, maxSeedBytes}
		err := copyNames(ctx, filepath.Join(old, "files"), files, []string{"gomod", "npm", "yarn", "cargo", "m2", xdg + "/pip", xdg + "/gradle"}, copier{room: b})
		if err != nil {
			return err
		}
		return copyNames(ctx, filepath.Join(old, "build"), files, []string{goBuild}, copier{room: b})
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return startAnew(files)
	}
	return nil
}

// maxAncestors is how many setups are looked at for one of an ancestor.
const maxAncestors = 16

// fromAncestor calls use with the setup, used last, that was made at an ancestor
// of the base, if there is one beside dir. That one is not removed meanwhile.
// What others left is not looked at: a branch that nobody merged has no say in
// what is built of another.
func (w *Workspace) fromAncestor(ctx context.Context, dir string, use func(dir string) error) error {
	type old struct {
		dir, base string
		used      time.Time
	}
	var all []old
	list, err := entries(filepath.Dir(dir))
	if err != nil {
		return err
	}
	for _, e := range list {
		o := old{dir: filepath.Join(filepath.Dir(dir), e.Name())}
		if !e.IsDir() || o.dir == dir {
			continue
		}
		meta, err := readSetup(o.dir)
		st, serr := os.Stat(filepath.Join(o.dir, "setup.json"))
		if err != nil || serr != nil {
			continue // half made, or gone
		}
		o.base, o.used = meta.Base, st.ModTime()
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b old) int { return b.used.Compare(a.used) })
	for _, o := range all[:min(len(all), maxAncestors)] {
		_, err := w.repo.git(ctx, "merge-base", "--is-ancestor", o.base, w.meta.Base)
		if exitCode(err) > 0 { // 1: it is none, 128: not known here
			continue
		}
		if err != nil {
			return err
		}
		lock, err := takeLock(o.dir+".lock", shared)
		if errors.Is(err, errBusy) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err = readSetup(o.dir); err == nil {
			err = use(o.dir)
		}
		return errors.Join(err, release(lock))
	}
	return nil
}

// copyNames copies those of the names that from has, with c's settings.
func copyNames(ctx context.Context, from, to string, names []string, c copier) (err error) {
	if c.from, err = os.OpenRoot(from); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer func() { _ = c.from.Close() }()
	if c.to, err = os.OpenRoot(to); err != nil {
		return err
	}
	defer func() { _ = c.to.Close() }()
	for _, n := range names {
		if _, err := c.from.Lstat(n); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := c.copy(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// BeginLayers makes the base's build caches what setup left, and lays that for the
// model's steps, whose first may come while the base's checks write theirs. sealed
// reports that these have ended.
func (w *Workspace) BeginLayers(ctx context.Context) (sealed bool, err error) {
	if exists(w.sealMark()) {
		return true, nil
	}
	if _, err = w.Caches(ctx, LayerBase); err == nil && !exists(w.layer(LayerSteps)) && !exists(w.layer(layerEarly)) {
		_, err = w.Caches(ctx, layerEarly)
	}
	return false, err
}

// SealBase ends the writing to the base's build caches: what setup and the
// checks of the base left is what later layers begin with. It is idempotent.
func (w *Workspace) SealBase(ctx context.Context) error {
	if exists(w.sealMark()) {
		return nil
	}
	if _, err := w.Caches(ctx, LayerBase); err != nil { // made where no check was run
		return err
	}
	if err := (&disk.FS{}).Replace(w.sealMark(), nil, false); err != nil {
		return fmt.Errorf("build caches: %w", err)
	}
	return nil
}

// OfferBase leaves the sealed build caches to later tasks of this base and its
// descendants, by hard links. The first task of a base does; it is no harm if
// none can.
func (w *Workspace) OfferBase(ctx context.Context) error {
	w.caching.Lock()
	defer w.caching.Unlock()
	to := filepath.Join(w.made, "build")
	if w.made == "" || !exists(w.sealMark()) || exists(to) {
		return nil
	}
	tmp, err := os.MkdirTemp(w.made, tempPrefix)
	if err != nil {
		return fmt.Errorf("keep build caches: %w", err)
	}
	err = copyNames(ctx, w.layer(LayerBase), tmp, []string{goBuild, xdg}, copier{link: true, room: &budget{maxSeedFiles, maxSeedBytes}})
	if err == nil {
		if err = os.Rename(tmp, to); errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
			err = nil // another task was first
		}
	}
	// The next one to clean measures it anew.
	err = errors.Join(err, (&disk.FS{}).Remove(filepath.Join(w.made, "size")))
	if rerr := removeAll(tmp); err == nil {
		err = rerr
	}
	if err != nil {
		return fmt.Errorf("keep build caches: %w", err)
	}
	return nil
}

// DropCaches removes the build caches of a layer, or of all where it is "":
// then a task that goes on begins with what is offered.
func (w *Workspace) DropCaches(l Layer) error {
	w.caching.Lock()
	defer w.caching.Unlock()
	if err := removeAll(w.layer(l)); err != nil {
		return fmt.Errorf("build caches: %w", err)
	}
	return nil
}
