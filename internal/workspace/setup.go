package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// SetupCommand is one command that makes a fresh clone ready to be worked in.
type SetupCommand struct {
	Run     string
	Timeout time.Duration
	Network bool // it loads something from package registries
	Reuse   Reuse
}

// Reuse is what of a user's checkout stands for a setup command. The zero value is
// nothing.
type Reuse struct {
	Locks   []string // files that decide what the command leaves: the same in the tree
	Product string   // directory that the command leaves
	Marks   []string // patterns of what it writes last: one is not older than Locks
	Proof   string   // shell: succeeds in the tree where a copy of Product can be used
}

// SetupOptions say how a workspace is set up.
type SetupOptions struct {
	Commands []SetupCommand
	// Dir holds what setups of this repository left, absolute and on the file
	// system of the workspace; made where missing. No command of the model may
	// write to it.
	Dir string
	// Given is what else decides what the commands do, such as their variables.
	Given []string
	// Late says that the model has had a turn: from then on nothing is run,
	// for the tree is no longer the base's.
	Late bool
	// Run runs one command in the tree, with files writable and env besides
	// what commands have anyway. Its error ends the setup.
	Run func(ctx context.Context, c SetupCommand, files string, env map[string]string) error
	// Proves reports whether the Proof of a command succeeds, which was not run:
	// its Product is there.
	Proves func(ctx context.Context, c SetupCommand) (bool, error)
}

// Setup is what setup commands left for later steps. The zero value is nothing.
type Setup struct {
	Files string            // directory to be read by later commands, "" for none
	Env   map[string]string // where they find what is in it
	Ran   bool              // the commands were run now, and not taken from an earlier run
}

// setupMeta is setup.json, written last.
//
//	{Dir}/{key}/files       caches of package managers, where there are commands
//	{Dir}/{key}/tree        what the commands left in the work tree
//	{Dir}/{key}/build       build caches after the checks of the base, see Layer
//	{Dir}/{key}/setup.json
//	{Dir}/{key}.lock        exclusive while it is made or removed, shared while used
type setupMeta struct {
	Format   int      `json:"format"`
	Base     string   `json:"base"`     // the commit that it was made at
	Tree     string   `json:"tree"`     // where the work tree was; a virtualenv knows its place
	Products [][]byte `json:"products"` // top-level paths below tree/
	Exclude  [][]byte `json:"exclude"`  // those of them that the project does not ignore
}

const (
	setupMark   = "setup" // in the workspace: the key that it was set up by
	setupFormat = 2
	// maxProducts is how many files and directories a setup may leave at the
	// places where it leaves any; a directory counts as one.
	maxProducts = 10_000
	// maxSetupBytes is what they may hold, as much as the sandbox lets commands
	// write: of holes a copy has none.
	maxSetupBytes = 16 << 30
)

// Setup runs the commands in the fresh tree, once for each set of commands and
// tree of a base in a repository: later workspaces of that base get a copy of
// what the first run left. A base that is new begins with the packages that were
// loaded for one of its ancestors (docs/decisions/016). What the commands left in the tree is no part of the
// task's change: files of the project are put back, and what is new and not
// ignored is ignored from then on. It blocks while another task runs the same
// setup. An error of Run is returned as it is, and nothing is kept. Without
// commands there is nothing but a place for the build caches of the base.
func (w *Workspace) Setup(ctx context.Context, opt SetupOptions) (Setup, error) {
	if !filepath.IsAbs(opt.Dir) {
		return Setup{}, errors.New("set up: needs an absolute directory")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	mark := filepath.Join(w.dir, setupMark)
	if key, err := disk.Read(mark, disk.MaxWhole); err == nil {
		return w.setupDone(opt.Dir, strings.TrimSpace(string(key)))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Setup{}, fmt.Errorf("set up: %w", err)
	}
	if opt.Late {
		return Setup{}, nil
	}
	key, err := w.setupKey(ctx, opt)
	if err != nil {
		return Setup{}, fmt.Errorf("set up: %w", err)
	}
	dir := filepath.Join(opt.Dir, key)
	lock, meta, err := lockSetup(ctx, dir)
	if err != nil {
		return Setup{}, fmt.Errorf("set up: %w", err)
	}
	err = w.setup(ctx, opt, dir, meta)
	if err == nil {
		err = change(lock, shared)
	}
	if err == nil {
		err = (&disk.FS{}).Replace(mark, []byte(key+"\n"), false)
	}
	if err != nil {
		return Setup{}, errors.Join(err, release(lock))
	}
	w.held, w.made = append(w.held, lock), dir
	s := setupAt(dir)
	s.Ran = meta == nil && len(opt.Commands) > 0
	return s, nil
}

// setupAt is what a finished setup left.
func setupAt(dir string) Setup {
	files := filepath.Join(dir, "files")
	if !exists(files) {
		return Setup{}
	}
	return Setup{Files: files, Env: laterEnv(files)}
}

// setupDone returns what a setup left that was finished before this process.
func (w *Workspace) setupDone(dir, key string) (Setup, error) {
	if key == "" || key != filepath.Base(key) {
		return Setup{}, fmt.Errorf("set up: %s names %q", filepath.Join(w.dir, setupMark), key)
	}
	lock, err := takeLock(filepath.Join(dir, key)+".lock", shared)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errBusy) {
			return Setup{}, nil
		}
		return Setup{}, fmt.Errorf("set up: %w", err)
	}
	w.held = append(w.held, lock)
	at := filepath.Join(dir, key)
	if _, err := readSetup(at); err != nil {
		return Setup{}, nil // removed since: what is in the tree is there all the same
	}
	w.made = at
	return setupAt(at), nil
}

// setupKey is the name of a setup: equal where the same commands meet the same
// tree. Nothing less will do: a command may run any file of the tree.
func (w *Workspace) setupKey(ctx context.Context, opt SetupOptions) (string, error) {
	tree, err := w.repo.git(ctx, "rev-parse", "--verify", w.meta.Base+"^{tree}")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%d %s %q\n", setupFormat, line(tree), opt.Given)
	for _, c := range opt.Commands {
		_, _ = fmt.Fprintf(sum, "%q %t\n", c.Run, c.Network)
	}
	return hex.EncodeToString(sum.Sum(nil)[:12]), nil
}

// lockSetup takes the lock of a setup: shared where it is there to be used, and
// alone, with a nil meta, where it is to be made.
func lockSetup(ctx context.Context, dir string) (*os.File, *setupMeta, error) {
	for {
		_, before := readSetup(dir)
		kind := shared
		if before != nil {
			kind = exclusive
		}
		if err := (&disk.FS{}).MkdirAll(filepath.Dir(dir)); err != nil {
			return nil, nil, err
		}
		lock, err := waitLock(ctx, dir+".lock", kind)
		if errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			continue // removed just now, being empty
		}
		if err != nil {
			return nil, nil, err
		}
		switch meta, err := readSetup(dir); {
		case err == nil && before == nil:
			return lock, &meta, nil
		case err != nil && before != nil:
			return lock, nil, nil
		}
		_ = release(lock) // made or removed while we waited
	}
}

// setup fills the tree, from dir or by running the commands. The caller holds
// the lock of dir.
func (w *Workspace) setup(ctx context.Context, opt SetupOptions, dir string, meta *setupMeta) (err error) {
	// The tree is the base's, less what an interrupted setup left.
	if len(opt.Commands) > 0 {
		if err := w.resetTree(ctx, true); err != nil {
			return fmt.Errorf("set up: %w", err)
		}
	}
	if meta != nil {
		if err := w.loadSetup(ctx, *meta, dir); err != nil {
			return fmt.Errorf("set up from %s: %w", dir, err)
		}
		if err := w.ignore(meta.Exclude); err != nil {
			return fmt.Errorf("set up from %s: %w", dir, err)
		}
		now := time.Now()
		return os.Chtimes(filepath.Join(dir, "setup.json"), now, now) // when it was used
	}
	if err := removeAll(dir); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := (&disk.FS{}).MkdirAll(filepath.Join(dir, "tree")); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if len(opt.Commands) == 0 {
		return noteSetup(dir, setupMeta{Base: w.meta.Base, Tree: w.Tree()})
	}
	files := filepath.Join(dir, "files")
	if err := (&disk.FS{}).MkdirAll(files); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := w.inherit(ctx, dir, files); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	defer func() {
		if err != nil && ctx.Err() == nil { // what was left is nobody's work
			err = errors.Join(err, w.resetTree(ctx, true))
		}
	}()
	for _, c := range opt.Commands {
		if done, err := w.reuse(ctx, opt, c); err != nil {
			return err
		} else if done {
			continue
		}
		if err = opt.Run(ctx, c, files, setupEnv(files, c.Network)); err != nil {
			return errors.Join(err, removeAll(dir))
		}
	}
	if err := w.saveSetup(ctx, dir); err != nil {
		return fmt.Errorf("keep what setup left: %w", errors.Join(err, removeAll(dir)))
	}
	return nil
}

// reuse copies what a command would make out of the user's checkout, as far as that
// has it for the same lock file and it can be used here. What is wrong with a
// checkout is no error: the command is run.
func (w *Workspace) reuse(ctx context.Context, opt SetupOptions, c SetupCommand) (bool, error) {
	if c.Reuse.Product == "" || w.meta.Remote {
		return false, nil
	}
	from, err := os.OpenRoot(w.meta.Source)
	if err != nil {
		return false, nil
	}
	defer func() { _ = from.Close() }()
	to, err := w.Root()
	if err != nil {
		return false, err
	}
	defer func() { _ = to.Close() }()
	if !c.Reuse.fits(from, to) || !free(to, c.Reuse.Product) {
		return false, nil
	}
	cp := copier{from: from, to: to, old: []byte(w.meta.Source), new: []byte(w.Tree()), room: &budget{maxMade, maxSetupBytes}}
	works := cp.copy(ctx, c.Reuse.Product) == nil
	if works {
		works, err = opt.Proves(ctx, c)
	}
	if err = errors.Join(err, ctx.Err()); works || err != nil {
		return works, err
	}
	return false, removeAll(filepath.Join(w.Tree(), c.Reuse.Product))
}

// fits reports that the lock files are the same, and that the product of from was
// made after its lock file came to be what it is, within a minute: some write both at once.
func (r Reuse) fits(from, to *os.Root) bool {
	var since time.Time
	for _, name := range r.Locks {
		st, err := from.Lstat(name)
		if err != nil {
			return false
		}
		if st.ModTime().After(since) {
			since = st.ModTime()
		}
		var both [2][]byte
		for i, root := range []*os.Root{from, to} {
			f, err := disk.OpenIn(root, name, os.O_RDONLY)
			if err != nil {
				return false
			}
			both[i], err = disk.ReadAll(f, name, disk.MaxWhole)
			if errors.Join(err, f.Close()) != nil {
				return false
			}
		}
		if !bytes.Equal(both[0], both[1]) {
			return false
		}
	}
	if st, err := from.Lstat(r.Product); err != nil || !st.IsDir() {
		return false
	}
	for _, m := range r.Marks {
		all, _ := fs.Glob(from.FS(), m)
		for _, name := range all {
			if st, err := from.Lstat(name); err == nil && st.ModTime().Add(time.Minute).After(since) {
				return true
			}
		}
	}
	return false
}

func readSetup(dir string) (m setupMeta, err error) {
	data, err := disk.Read(filepath.Join(dir, "setup.json"), disk.MaxWhole)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	if m.Format != setupFormat {
		return m, i18n.E("workspace.newer", dir, m.Format)
	}
	return m, nil
}

// saveSetup copies what the commands left in the tree and takes the project's
// own files back to the base.
func (w *Workspace) saveSetup(ctx context.Context, dir string) (err error) {
	m := setupMeta{Base: w.meta.Base, Tree: w.Tree()}
	if m.Products, err = w.others(ctx); err != nil {
		return err
	}
	if m.Exclude, err = w.others(ctx, "--exclude-standard"); err != nil {
		return err
	}
	from, err := w.Root()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenRoot(filepath.Join(dir, "tree"))
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	c := copier{from: from, to: to, room: &budget{maxMade, maxSetupBytes}}
	for _, p := range m.Products {
		if err := c.copy(ctx, string(p)); err != nil {
			return err
		}
	}
	if err := w.ignore(m.Exclude); err != nil {
		return err
	}
	if err := w.resetTree(ctx, false); err != nil {
		return err
	}
	return noteSetup(dir, m)
}

func noteSetup(dir string, m setupMeta) error {
	m.Format = setupFormat
	return (&disk.FS{}).ReplaceJSON(filepath.Join(dir, "setup.json"), m, true)
}

// loadSetup copies what a setup left into the tree.
func (w *Workspace) loadSetup(ctx context.Context, m setupMeta, dir string) error {
	from, err := os.OpenRoot(filepath.Join(dir, "tree"))
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := w.Root()
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	c := copier{from: from, to: to, old: []byte(m.Tree), new: []byte(w.Tree()), room: &budget{maxMade, maxSetupBytes}}
	for _, p := range m.Products {
		// What is there is the project's; what stands in its way is as well.
		if !free(to, strings.TrimSuffix(string(p), "/")) {
			continue
		}
		if err := c.copy(ctx, string(p)); err != nil {
			return err
		}
	}
	return nil
}

// free reports that there is nothing at p, and that it can be made there without
// going through a link.
func free(root *os.Root, p string) bool {
	for i := range len(p) {
		if p[i] != '/' {
			continue
		}
		if st, err := root.Lstat(p[:i]); errors.Is(err, fs.ErrNotExist) {
			return true
		} else if err != nil || !st.IsDir() {
			return false
		}
	}
	_, err := root.Lstat(p)
	return errors.Is(err, fs.ErrNotExist)
}

// others lists what is in the tree and not in git, directories as one.
func (w *Workspace) others(ctx context.Context, flags ...string) (all [][]byte, err error) {
	args := append([]string{"ls-files", "-z", "--others", "--directory", "--no-empty-directory"}, flags...)
	err = records(ctx, w.onTree(), call{args: args}, func(rec []byte) error {
		if len(all) == maxProducts {
			return fmt.Errorf("setup leaves more than %d files and directories beside those of the project", maxProducts)
		}
		all = append(all, slices.Clone(rec))
		return nil
	})
	return all, err
}

// ignore makes git look over these paths in this workspace.
func (w *Workspace) ignore(paths [][]byte) error {
	if len(paths) == 0 {
		return nil
	}
	file := filepath.Join(w.repo.gitDir, "info/exclude")
	old, err := disk.Read(file, disk.MaxWhole)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var b strings.Builder
	b.Write(old)
	special := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, " ", `\ `, "\n", "?", "\r", "?")
	for _, p := range paths {
		b.WriteString("/" + special.Replace(string(p)) + "\n")
	}
	if err := os.MkdirAll(filepath.Dir(file), disk.DirMode); err != nil {
		return err
	}
	return (&disk.FS{}).Replace(file, []byte(b.String()), false)
}

// stores are where package managers keep what they load, below the files of a
// setup: the variables that lead there, and those with which a command that may not
// write there uses it, nil where it cannot.
var stores = []struct {
	dir         string
	made, later map[string]string
}{
	{"xdg", map[string]string{"XDG_CACHE_HOME": "%s"}, nil},
	{"npm", map[string]string{"npm_config_cache": "%s", "npm_config_logs_max": "0"}, nil}, // a log would end with a setup that failed
	{"yarn", map[string]string{"YARN_CACHE_FOLDER": "%s"}, nil},
	{"cargo", map[string]string{"CARGO_HOME": "%s"}, map[string]string{"CARGO_HOME": "%s", "CARGO_NET_OFFLINE": "true"}},
	{"gomod", map[string]string{"GOMODCACHE": "%s", "GOFLAGS": "-buildvcs=false -modcacherw"}, map[string]string{"GOMODCACHE": "%s"}},
	{"m2", map[string]string{"MAVEN_OPTS": "-Dmaven.repo.local=%s/repository", "MAVEN_USER_HOME": "%s"}, map[string]string{"MAVEN_OPTS": "-Dmaven.repo.local=%s/repository", "MAVEN_USER_HOME": "%s"}},
}

// setupEnv leads package managers to files while they may write there.
func setupEnv(files string, network bool) map[string]string {
	env := map[string]string{}
	for _, s := range stores {
		lead(env, s.made, filepath.Join(files, s.dir))
	}
	if network {
		env["GOPROXY"], env["GOSUMDB"] = "https://proxy.golang.org", "sum.golang.org"
	}
	return env
}

// laterEnv leads those that can read a cache they may not write to it.
func laterEnv(files string) map[string]string {
	env := map[string]string{}
	for _, s := range stores {
		dir := filepath.Join(files, s.dir)
		if st, err := os.Lstat(dir); err != nil || !st.IsDir() {
			continue
		}
		if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
			lead(env, s.later, dir)
		}
	}
	return env
}

func lead(env, more map[string]string, dir string) {
	for k, v := range more {
		env[k] = strings.ReplaceAll(v, "%s", dir)
	}
}
