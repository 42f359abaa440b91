package workspace

import (
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
	for _, c := range opt.Commands {
		if err = opt.Run(ctx, c, files, setupEnv(files, c.Network)); err != nil {
			return errors.Join(err, removeAll(dir))
		}
	}
	if err := w.saveSetup(ctx, dir); err != nil {
		return fmt.Errorf("keep what setup left: %w", errors.Join(err, removeAll(dir)))
	}
	return nil
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
	c := copier{from: from, to: to}
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
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return (&disk.FS{}).Replace(filepath.Join(dir, "setup.json"), append(data, '\n'), true)
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
	c := copier{from: from, to: to, old: []byte(m.Tree), new: []byte(w.Tree())}
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

// setupEnv leads package managers to files while they may write there.
func setupEnv(files string, network bool) map[string]string {
	env := map[string]string{
		"XDG_CACHE_HOME":    filepath.Join(files, "xdg"),
		"npm_config_cache":  filepath.Join(files, "npm"),
		"YARN_CACHE_FOLDER": filepath.Join(files, "yarn"),
		"CARGO_HOME":        filepath.Join(files, "cargo"),
		"GOMODCACHE":        filepath.Join(files, "gomod"),
		"GOFLAGS":           "-buildvcs=false -modcacherw",
	}
	if network {
		env["GOPROXY"], env["GOSUMDB"] = "https://proxy.golang.org", "sum.golang.org"
	}
	return env
}

// laterEnv leads those that can read a cache they may not write to it.
func laterEnv(files string) map[string]string {
	env := map[string]string{}
	root, err := os.OpenRoot(files)
	if err != nil {
		return env // there is none
	}
	defer func() { _ = root.Close() }()
	has := func(dir string) bool {
		if st, err := root.Lstat(dir); err != nil || !st.IsDir() {
			return false
		}
		f, err := disk.OpenDir(root, dir)
		if err != nil {
			return false
		}
		names, _ := f.Readdirnames(1)
		return f.Close() == nil && len(names) > 0
	}
	if has("gomod") {
		env["GOMODCACHE"] = filepath.Join(files, "gomod")
	}
	if has("cargo") {
		env["CARGO_HOME"], env["CARGO_NET_OFFLINE"] = filepath.Join(files, "cargo"), "true"
	}
	return env
}
