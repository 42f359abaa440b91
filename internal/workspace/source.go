package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
)

// Source is a user's repository as it was when it was inspected. We read it,
// and write one branch into it; its checkout is never touched.
type Source struct {
	Path      string // real path of its top level, or of the bare repository
	GitDir    string // real path of its git directory
	Bare      bool
	Head      string // commit id of HEAD
	Branch    string // short name of the current branch, "" where HEAD is detached
	Modified  []string
	Untracked int // untracked entries; a wholly untracked directory counts as one

	common  string   // GitDir, or of a linked work tree the repository's that it belongs to
	lenders []string // object directories that it borrows from
	config  string   // what git is given for its configuration
	held    string   // what commonDir returns while hold lasts, else ""
	remote  bool     // Path is an address, and GitDir the mirror of it
	lock    *os.File // on the mirror, until Close
}

// InspectOptions say what may be in a source's checkout.
type InspectOptions struct {
	AllowDirty bool     // modified tracked files are no error; the work starts from the commit all the same
	Ignore     []string // files that may be modified: absolute, or relative to the top level
	NoStatus   bool     // the checkout is not looked at: neither what is modified nor what is untracked
	Box        Box      // where git looks at the checkout; not needed with NoStatus
}

// shownFiles is how many modified files an error names.
const shownFiles = 3

// Inspect checks that path is, or is inside, a repository that work can start
// from. Each of its refusals is an i18n error: nothing there, not a directory,
// not a git repository, no commit yet, modified tracked files. Submodules are
// compared by commit only. Nothing of the repository is executed, its filters
// neither: LFS files are compared with their pointers, files of other filters
// as they are.
func Inspect(ctx context.Context, path string, opt InspectOptions) (*Source, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, i18n.E("workspace.not_found", path)
		}
		return nil, i18n.E("workspace.unreadable", path, err)
	}
	st, err := os.Stat(abs)
	if err != nil {
		return nil, i18n.E("workspace.unreadable", path, err)
	}
	if !st.IsDir() {
		return nil, i18n.E("workspace.not_directory", path)
	}
	s, err := locate(ctx, abs, path)
	if err != nil {
		return nil, err
	}
	release, err := s.hold()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.readHead(ctx, path); err != nil {
		return nil, err
	}
	if s.Bare || opt.NoStatus {
		return s, nil
	}
	if err := s.readStatus(ctx, opt); err != nil {
		return nil, i18n.E("workspace.unreadable", path, err)
	}
	if len(s.Modified) > 0 && !opt.AllowDirty {
		return nil, i18n.E("workspace.dirty", s.Path, fileList(s.Modified))
	}
	return s, nil
}

// fileList names a few files and says how many more there are.
func fileList(files []string) string {
	shown := strings.Join(files[:min(len(files), shownFiles)], ", ")
	if more := len(files) - shownFiles; more > 0 {
		shown += " (+" + itoa(more) + ")"
	}
	return shown
}

func (s *Source) repo() repo {
	return repo{gitDir: s.GitDir, of: s}
}

func (s *Source) readHead(ctx context.Context, path string) error {
	out, err := s.repo().git(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		switch exitCode(err) {
		case 1:
			return s.noCommit(ctx, "HEAD", path)
		case -1:
			return err
		}
		if strings.Contains(err.Error(), "not a git repository") {
			return i18n.E("workspace.damaged", s.GitDir)
		}
		return i18n.E("workspace.unreadable", path, err)
	}
	s.Head = line(out)
	out, err = s.repo().git(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil && exitCode(err) != 1 { // 1: detached
		return i18n.E("workspace.unreadable", path, err)
	}
	s.Branch = line(out)
	return nil
}

// onIndex has f look at the checkout, in a sandbox that can only read it: its files may
// be a stranger's. So the index is a copy.
func (s *Source) onIndex(ctx context.Context, in Box, f func(t tree) error) (err error) {
	dir, err := os.MkdirTemp("", "tori-status-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := filepath.Join(dir, "index")
	if err := copyIndex(filepath.Join(s.GitDir, "index"), index); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	common, remove, err := s.commonDir()
	if err != nil {
		return err
	}
	defer remove()
	b := newBox(in, repo{gitDir: s.common}, dir)
	b.spec.ReadOnly = append(b.spec.ReadOnly, s.GitDir, s.Path, common)
	defer func() { err = errors.Join(err, b.close()) }()
	if l, whole := measure(ctx, s.Path, maxMeasured); whole {
		b.looked(l)
	}
	return f(tree{box: b, gitDir: s.GitDir, workTree: s.Path, env: []string{"GIT_INDEX_FILE=" + index, "GIT_COMMON_DIR=" + common}})
}

// errEnough ends a list that is long enough.
var errEnough = errors.New("enough")

// Files lists the files of the checkout that git would take, tracked or not, by their
// paths below Path: at most most of them. Ignored ones are left out.
func (s *Source) Files(ctx context.Context, in Box, most int) (all []string, err error) {
	if s.Bare {
		return nil, nil
	}
	own := *s // others may hold it at the same time
	release, err := own.hold()
	if err != nil {
		return nil, err
	}
	defer release()
	err = own.onIndex(ctx, in, func(t tree) error {
		return records(ctx, t, call{args: []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", ":(top)"}}, func(rec []byte) error {
			if len(all) == most {
				return errEnough
			}
			all = append(all, string(rec))
			return nil
		})
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return all, err
}

// readStatus compares the checkout with its commit.
func (s *Source) readStatus(ctx context.Context, opt InspectOptions) error {
	return s.onIndex(ctx, opt.Box, func(t tree) error { return s.compare(ctx, opt, t) })
}

func (s *Source) compare(ctx context.Context, opt InspectOptions, t tree) error {
	var p statusParser
	if err := records(ctx, t, call{args: []string{"status", "--porcelain=v2", "-z", "--untracked-files=normal",
		"--ignore-submodules=dirty", "--no-renames"}, cfg: []string{"status.relativePaths=false"}}, p.record); err != nil {
		return err
	}
	skip := make([]string, 0, len(opt.Ignore))
	for _, p := range opt.Ignore {
		skip = append(skip, s.relative(p))
	}
	var modified []string
	for _, c := range p.all {
		if c.Kind == Modified && len(modified) < maxLFS {
			modified = append(modified, c.Path)
		}
	}
	same, err := s.unchangedLFS(ctx, t, modified)
	if err != nil {
		return err
	}
	for _, c := range p.all {
		switch {
		case same[c.Path]:
		case c.Kind == Untracked:
			if !slices.Contains(skip, c.Path) {
				s.Untracked++
			}
		case !slices.Contains(skip, c.Path):
			s.Modified = append(s.Modified, c.Path)
		}
	}
	return nil
}

// maxLFS is how many modified files are looked at more closely.
const maxLFS = 1000

// relative gives a file's path below the top level. Only its directory is
// resolved: the file itself may be a link, and git knows it by its own name.
func (s *Source) relative(p string) string {
	if !filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
		p = filepath.Join(dir, filepath.Base(p))
	}
	rel, err := filepath.Rel(s.Path, p)
	if err != nil {
		return p
	}
	return rel
}

// Owner is the owner part of the task key: 8 hex digits of the SHA-256 of the
// real path (spec/README "task key").
func (s *Source) Owner() string {
	sum := sha256.Sum256([]byte(s.Path))
	return hex.EncodeToString(sum[:4])
}

// Name is the repository part of the task key: the directory's name, without
// the ".git" that bare repositories carry.
func (s *Source) Name() string {
	path := s.Path
	if filepath.Base(path) == ".git" {
		path = filepath.Dir(path)
	}
	base := filepath.Base(path)
	if short := strings.TrimSuffix(base, ".git"); s.Bare && short != "" {
		return short
	}
	return base
}

// Tip is the commit of a branch as it is now, "" where there is no such branch.
func (s *Source) Tip(ctx context.Context, branch string) (string, error) {
	out, err := s.repo().git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch+"^{commit}")
	if exitCode(err) == 1 {
		return "", nil
	}
	return line(out), err
}
