package workspace

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

// Bounds of what is remembered of a tree: of a larger one git finds out what changed.
const (
	maxSeen      = 200_000 // files
	maxSeenBytes = 16 << 20
	// racy is how close the last change may be: two changes within one tick of
	// the file system's clock look the same.
	racy = 50 * time.Millisecond
)

// maxPath is the longest path in the tree, in bytes: the kernel's, less ours.
const maxPath = 3 << 10

// seen is what the files and links of a tree are like, by directory: "" is the top, others
// have a slash behind them. It is nil of a tree too large for it.
type seen map[string]listing

// listing is what the files and links of a directory are like: their names in order, each
// with a slash behind it, and their states. A change that leaves a state as it was would
// have to set the kernel's change time; 0 is that of a file whose last change is too fresh
// to tell from the next. Two of a large tree are held at a time: they are little more than
// its names.
type listing struct {
	names  string
	states []uint64
}

// listed makes a listing, and orders files.
func listed(files []file) listing {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var names strings.Builder
	l := listing{states: make([]uint64, len(files))}
	for i, f := range files {
		l.states[i] = f.state
		names.WriteString(f.name + "/")
	}
	l.names = names.String()
	return l
}

// first is the name of the first file, "" of none.
func (l listing) first() string {
	name, _, _ := strings.Cut(l.names, "/")
	return name
}

// pop takes the first file away and returns its state.
func (l *listing) pop() uint64 {
	state := l.states[0]
	l.names, l.states = l.names[len(l.first())+1:], l.states[1:]
	return state
}

// changed adds to paths the files of a directory that are not as they were before, or
// not there any more; about mostChanged of them at most.
func (l listing) changed(before listing, dir string, paths []string) []string {
	if l.names == before.names && slices.Equal(l.states, before.states) && !slices.Contains(l.states, 0) {
		return paths
	}
	for len(l.states)+len(before.states) > 0 && len(paths) <= mostChanged {
		now, was := l.first(), before.first()
		order := strings.Compare(now, was)
		if now == "" || was == "" { // no name is behind all names
			order = -order
		}
		var state, old uint64
		if order <= 0 {
			state = l.pop()
		}
		if order >= 0 {
			old = before.pop()
		}
		switch {
		case order > 0:
			paths = append(paths, dir+was)
		case state == 0 || state != old:
			paths = append(paths, dir+now)
		}
	}
	return paths
}

// file is a file or link of a directory, and its state.
type file struct {
	name  string
	state uint64
}

// fewFiles is how many files git looks at in less time than it takes to start the
// two processes more by which it is told what changed.
const fewFiles = 5000

// Bounds of what is left out of a tree, which is kept and told to git by name.
const (
	maxApart      = 10_000
	maxApartBytes = 4 << 20
)

// look is what there is to know of a tree before git looks at it.
type look struct {
	nested  []string // git repositories inside it
	large   []string // files of more than most bytes, in order; no more of both than maxApart and maxApartBytes
	refused []string // paths that git takes from nobody, and directories too deep for it
	bare    []string // directories that git takes for repositories, the one that holds them apart
	paths   int
	bytes   int64 // on the disk
	seen    seen
}

// mostChanged is how many paths git is told to look at, rather than at the whole tree.
const mostChanged = 64

// apart are the paths that are left out.
func (l *look) apart() []string { return slices.Concat(l.nested, l.large, l.refused) }

// changed are the files that are not as they were at an earlier look, less what is left
// out; known is false where git has to look at the whole tree: of that look nothing is
// remembered, too many files are others, or what is ignored or left out may be.
func (l *look) changed(before look, links map[string][]string) (paths []string, known bool) {
	if l.seen == nil || before.seen == nil || !slices.Equal(l.apart(), before.apart()) {
		return nil, false
	}
	apart := map[string]bool{}
	for _, path := range slices.AppendSeq(l.apart(), maps.Keys(links)) {
		apart[path] = true
	}
	for dir, now := range l.seen {
		paths = now.changed(before.seen[dir], dir, paths)
	}
	for dir, was := range before.seen {
		if _, is := l.seen[dir]; !is {
			paths = listing{}.changed(was, dir, paths)
		}
	}
	if len(paths) > mostChanged {
		return nil, false
	}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		for at, c := range path + "/" {
			if c == '/' && apart[path[:at]] {
				return true
			}
		}
		return false
	})
	for _, path := range paths {
		if filepath.Base(path) == ".gitignore" || !utf8.ValidString(path) { // no argument of a command
			return nil, false
		}
	}
	return paths, true
}

// maxMeasured is how many entries of a tree are counted before git looks at it;
// of one that has more, git may take cpuUnseen.
const maxMeasured = 200_000

// measure counts what is below dir but for repositories, and says whether that is
// all of it. Nothing is opened but directories; who moves them meanwhile changes
// what git may take, no more.
func measure(ctx context.Context, dir string, most int) (l look, whole bool) {
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.paths >= most:
			return fs.SkipAll
		case err != nil:
			return nil // git says it
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		}
		l.paths++
		if info, err := e.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				l.bytes += st.Blocks * 512
			}
		}
		return nil
	})
	return l, err == nil && l.paths < most
}

// looker walks over a tree by descriptors, so that no link and no directory that
// is moved meanwhile leads it anywhere else. Several goroutines do so at a time.
type looker struct {
	seed    maphash.Seed
	links   map[string][]string // submodules, by path
	most    int64
	depth   int   // of directories that git enters
	settled int64 // a change after it is fresh, in nanoseconds since 1970
	walk    *errgroup.Group

	mu sync.Mutex
	look
	named int // bytes of nested, refused, bare and large
	files int // in seen
	names int // bytes of the names in seen
}

// walkers is how many goroutines look at a tree: nearly all of their time is the kernel's.
const walkers = 4

// lookAt looks at every entry below dir, which holds no repository of its own
// that counts. Of a submodule it says whether there is anything in it, for git looks
// at none. A directory that its owner may not read is made readable, for git
// would pass over it; where that cannot be done, it is an error. now is the time
// of the look.
func lookAt(ctx context.Context, dir string, seed maphash.Seed, links map[string][]string, most int64, depth int, now time.Time) (look, error) {
	l := &looker{look: look{seen: seen{}}, seed: seed, links: links, most: most, depth: depth, settled: now.Add(-racy).UnixNano()}
	fd, err := openDir(unix.AT_FDCWD, dir, uint32(disk.DirMode))
	if err == nil {
		l.walk, ctx = errgroup.WithContext(ctx)
		l.walk.SetLimit(walkers)
		l.walk.Go(func() error { return l.dir(ctx, fd, "") })
		err = l.walk.Wait()
	}
	if err != nil {
		return look{}, fmt.Errorf("look at the work tree: %w", err)
	}
	for _, list := range [][]string{l.nested, l.large, l.refused, l.bare} {
		slices.Sort(list)
	}
	return l.look, nil
}

// dir looks at a directory, which it closes. path is what it is called, with a
// slash behind it unless it is the top.
func (l *looker) dir(ctx context.Context, fd int, path string) error {
	f := os.NewFile(uintptr(fd), path)
	defer func() { _ = f.Close() }()
	if path != "" {
		var st unix.Stat_t
		if unix.Fstatat(fd, ".git", &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return l.leave(&l.nested, path[:len(path)-1]) // the rest of that repository as well
		}
		if _, is := l.links[path[:len(path)-1]]; is {
			if some, _ := f.Readdirnames(1); len(some) == 0 {
				return nil
			}
			return l.leave(&l.nested, path[:len(path)-1])
		}
	}
	var has byte // parts of a repository
	var files []file
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		names, err := f.Readdirnames(1000)
		for _, name := range names {
			has |= gitPart(name)
		}
		if err := l.entries(ctx, fd, path, names, &files); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			l.remember(path, files)
			if has == wholeGit && path != "" {
				return l.leave(&l.bare, path[:len(path)-1])
			}
			return nil
		}
		if err != nil {
			return unreadable(path, err)
		}
	}
}

// entries looks at entries of a directory, adds its files, and then looks at what is
// below it.
func (l *looker) entries(ctx context.Context, dir int, parent string, names []string, files *[]file) error {
	type directory struct {
		name string
		mode uint32
	}
	var below []directory
	var bytes int64
	for _, name := range names {
		var st unix.Stat_t
		path := parent + name
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) { // removed meanwhile
			continue
		}
		switch kind := st.Mode & unix.S_IFMT; {
		case err != nil:
			err = unreadable(path, err)
		case refusedName(name, kind == unix.S_IFLNK) && (parent != "" || name != ".git"):
			err = l.leave(&l.refused, path)
		case kind == unix.S_IFREG && st.Size > l.most:
			err = l.leave(&l.large, path)
		case kind == unix.S_IFREG:
			bytes += min(st.Size, st.Blocks*512) // of holes git is quick
			*files = append(*files, file{name, l.state(&st)})
		case kind == unix.S_IFLNK:
			*files = append(*files, file{name, l.state(&st)})
		case kind == unix.S_IFDIR && (parent != "" || name != ".git"): // git does not go into somebody's repository over ours
			below = append(below, directory{name, st.Mode})
		case kind != unix.S_IFDIR && strings.HasPrefix(name, ".git"): // git would wait for whoever writes to a pipe
			err = unreadable(path, errors.New("it is a pipe, a socket or a device"))
		}
		if err != nil {
			return err
		}
	}
	l.mu.Lock()
	l.paths += len(names)
	l.bytes += bytes
	l.mu.Unlock()
	for _, d := range below {
		if err := l.below(ctx, dir, parent+d.name, d.name, d.mode); err != nil {
			return err
		}
	}
	return nil
}

// ignorable are the characters that HFS+ does not see in a name (git's utf8.c).
const ignorable = "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"

// Names that git refuses since some system takes them for .git, or links for
// .gitmodules (verify_path in git's read-cache.c, is_ntfs_dotgit in its path.c).
var (
	dotGit     = lazyregexp.New(`(?i)(^|\\)(\.git|git~1)[ .]*($|[\\:])`)
	dotModules = lazyregexp.New(`(?i)^(\.gitmodules|gitmod~[1-4]|g?i?7?e?b?a?~[1-9][0-9]*)[ .]*($|:)`)
)

func refusedName(name string, link bool) bool {
	if !link && plainName(name) {
		return false
	}
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(ignorable, r) {
			return -1
		}
		return r
	}, name)
	return dotGit().MatchString(name) || link && dotModules().MatchString(name)
}

// plainName reports whether a name is of ASCII and has no "git", as nearly all have.
func plainName(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf || i+3 <= len(name) && strings.EqualFold(name[i:i+3], "git") {
			return false
		}
	}
	return true
}

// parts are what each directory has of a git directory, in lower case: where it is
// cloned to, names may have none.
type parts map[string]byte

// wholeGit is all by which git tells a git directory, with or without a .git
// around it (isGitDir): HEAD, objects and refs.
const wholeGit = 1 | 2 | 4

// gitPart is which part of a git directory a name is of, 0 for none.
func gitPart(name string) byte {
	switch {
	case strings.EqualFold(name, "HEAD"):
		return 1
	case strings.EqualFold(name, "objects"):
		return 2
	case strings.EqualFold(name, "refs"):
		return 4
	case strings.EqualFold(name, "commondir"): // which says where the others are
		return 2 | 4
	}
	return 0
}

// add adds a path that is in a commit.
func (p parts) add(path string) {
	for at := 0; at < len(path); at++ {
		name, _, _ := strings.Cut(path[at:], "/")
		if has := gitPart(name); has != 0 && at > 0 {
			p[strings.ToLower(path[:at-1])] |= has
		}
		at += len(name)
	}
}

// whole reports whether a directory is a git directory.
func (p parts) whole(dir string) bool { return p[strings.ToLower(dir)] == wholeGit }

// leave notes a path that is left out.
func (l *looker) leave(to *[]string, path string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	*to = append(*to, path)
	l.named += len(path)
	if n := len(l.nested) + len(l.bare) + len(l.large) + len(l.refused); n > maxApart || l.named > maxApartBytes {
		return i18n.E("workspace.too_many_apart", n, l.most>>20, readable(slices.Concat(l.large, l.nested, l.bare, l.refused)[0]))
	}
	return nil
}

// below looks at a directory in another one, in another goroutine if one is free.
func (l *looker) below(ctx context.Context, dir int, path, name string, mode uint32) error {
	if len(path) > maxPath || strings.Count(path, "/") >= l.depth {
		return l.leave(&l.refused, path)
	}
	fd, err := openDir(dir, name, mode)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // it is something else by now
	case err != nil:
		return unreadable(path, err)
	}
	if !l.walk.TryGo(func() error { return l.dir(ctx, fd, path+"/") }) {
		return l.dir(ctx, fd, path+"/")
	}
	return nil
}

// openDir opens a directory, and nothing else that has its name. One that its
// owner may not list or enter, as its mode says, becomes ours to list, enter and
// write: any less, and the next look would do it again.
func openDir(dir int, name string, mode uint32) (int, error) {
	if mode&0o500 != 0o500 {
		at, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(at), mode&0o7777|0o700) // the open tells
		_ = unix.Close(at)
	}
	return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// unreadable is the error for what git would pass over without a word.
func unreadable(path string, err error) error {
	return i18n.E("workspace.unreadable_dir", readable(path), err)
}

// state is the state of a file or link.
func (l *looker) state(st *unix.Stat_t) uint64 {
	if st.Ctim.Nano() > l.settled {
		return 0
	}
	var b [40]byte
	for i, v := range []uint64{st.Ino, uint64(st.Mode), uint64(st.Size), uint64(st.Mtim.Nano()), uint64(st.Ctim.Nano())} { //nolint:gosec // bits, not numbers
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	return max(1, maphash.Bytes(l.seed, b[:]))
}

// remember notes the files of a directory.
func (l *looker) remember(dir string, files []file) {
	if len(files) == 0 {
		return
	}
	here := listed(files)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files += len(files)
	l.names += len(dir) + len(here.names)
	if l.files > maxSeen || l.names > maxSeenBytes {
		l.seen = nil
	}
	if l.seen != nil {
		l.seen[dir] = here
	}
}
