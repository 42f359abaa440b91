package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// A user's checkout may have been unpacked from a stranger's archive, with its
// .git. Before git reads that, this file makes sure that all of it is the
// checkout's own: no link, no pointer, no configuration and no lender of objects
// leads git to another repository of the user, or to any other file of theirs
// (docs/decisions/032).

// maxNamed is how many alternates there may be.
const maxNamed = 20

// locate finds the repository around abs, which users call path, as git does:
// the first directory upwards that has a .git, or is a git directory itself.
func locate(ctx context.Context, abs, path string) (*Source, error) {
	s := &Source{}
	for dir := abs; s.GitDir == ""; dir = filepath.Dir(dir) {
		git, err := follow(filepath.Join(dir, ".git"))
		switch {
		case err != nil:
			return nil, i18n.E("workspace.unreadable", path, err)
		case git != "" && isGitDir(git):
			s.Path, s.GitDir = dir, git
		case isGitDir(dir):
			s.GitDir = dir
		case dir == filepath.Dir(dir):
			return nil, noRepository(abs, path)
		}
	}
	if err := s.prove(ctx, path); err != nil {
		return nil, err
	}
	return s, nil
}

// follow tells where a .git leads, "" where there is none.
func follow(dotGit string) (string, error) {
	st, err := os.Lstat(dotGit)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil && st.Mode().IsRegular() {
		dotGit, err = pointer(dotGit, "gitdir: ")
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dotGit)
}

// pointer is the path that a small file holds behind a word, relative to its
// directory. The file is no link, for an error may repeat what is in it.
func pointer(file, word string) (string, error) {
	st, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", i18n.E("workspace.linked", readable(file))
	}
	data, err := disk.Read(file, maxRecord)
	to, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), word)
	if err == nil && (!ok || to == "") {
		err = i18n.E("workspace.damaged", file)
	}
	return from(filepath.Dir(file), to), err
}

// isGitDir tells a git directory by what git tells it by.
func isGitDir(dir string) bool {
	own := exists(filepath.Join(dir, "objects")) && exists(filepath.Join(dir, "refs"))
	return exists(filepath.Join(dir, "HEAD")) && (own || exists(filepath.Join(dir, "commondir")))
}

// prove makes sure that the git directory leads nowhere else and belongs to the
// checkout, and takes over what its configuration says.
func (s *Source) prove(ctx context.Context, path string) error {
	cfg, err := s.closed(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case keyed(err, "workspace.linked", "workspace.foreign_git", "workspace.extension", "workspace.no_objects"):
		return err
	case err != nil:
		return i18n.E("workspace.unreadable", path, err)
	}
	s.Bare = truth(cfg.bare, s.Path == "" && filepath.Base(s.GitDir) != ".git")
	elsewhere := false
	if !s.Bare && s.Path != "" && cfg.workTree != "" {
		tree, err := filepath.EvalSymlinks(from(s.GitDir, cfg.workTree))
		elsewhere = err != nil || tree != s.Path
	}
	switch {
	case elsewhere, !s.Bare && s.Path == "": // inside of a .git directory
		return i18n.E("workspace.not_git", path)
	case s.Path != "" && !inside(s.GitDir, s.Path) && (s.Bare || cfg.workTree == "") && !s.namedBack():
		return i18n.E("workspace.foreign_git", path, s.GitDir, s.Path)
	case s.Bare:
		s.Path = s.GitDir
	}
	s.config = cfg.text(s.Bare)
	return nil
}

// namedBack reports whether a git directory that git worktree made says that it
// did so for the checkout.
func (s *Source) namedBack() bool {
	back, err := pointer(filepath.Join(s.GitDir, "gitdir"), "")
	if err == nil {
		back, err = filepath.EvalSymlinks(filepath.Dir(back))
	}
	return err == nil && s.common != s.GitDir && back == s.Path
}

// closed looks through all that git reads of the repository.
func (s *Source) closed(ctx context.Context) (cfg config, err error) {
	s.common = s.GitDir
	linked := exists(filepath.Join(s.GitDir, "commondir")) // as git worktree makes it, within another
	if linked {
		to, err := pointer(filepath.Join(s.GitDir, "commondir"), "")
		if err == nil {
			s.common, err = filepath.EvalSymlinks(to)
		}
		if err == nil && filepath.Dir(s.GitDir) != filepath.Join(s.common, "worktrees") {
			err = i18n.E("workspace.foreign_git", s.GitDir, s.common, s.Path)
		}
		if err != nil {
			return cfg, err
		}
	}
	if err := plain(ctx, s.common); err != nil {
		return cfg, err
	}
	if s.lenders, err = alternates(ctx, filepath.Join(s.common, "objects")); err != nil {
		return cfg, err
	}
	if err := cfg.read(ctx, filepath.Join(s.common, "config")); err != nil {
		return cfg, err
	}
	if linked {
		cfg.bare, cfg.workTree = "false", "" // these are of the main one
	}
	return cfg, cfg.read(ctx, filepath.Join(s.GitDir, "config.worktree"))
}

// from is a path as a directory's files name it.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// plain refuses a git directory, or one of objects, in which something is a link
// or anything else that would lead git away or have it wait. Nobody of ours can
// make one meanwhile. What our git never enters is passed over.
func plain(ctx context.Context, dir string) error {
	return filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && p != dir: // a git of the user's tidies up
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case filepath.Dir(p) == dir && slices.Contains([]string{"hooks", "modules", "lfs", "annex"}, e.Name()):
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir() && !e.Type().IsRegular() && e.Type() != fs.ModeSocket: // of fsmonitor
			return i18n.E("workspace.linked", readable(p))
		}
		return nil
	})
}

// config is what we take from the configuration of a repository. Git itself never
// reads that: what it may be told there to run, read or write grows with each
// version (docs/decisions/032).
type config struct {
	bare, workTree string
	kept           []setting
}

// kept are the settings that git is given of a repository's own: how it keeps its
// objects and refs, and how its checkout differs from what is committed.
var kept = []string{
	"core.repositoryformatversion", "extensions.objectformat", "extensions.refstorage",
	"core.logallrefupdates", "core.sharedrepository",
	"core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "core.trustctime", "core.checkstat",
	"core.autocrlf", "core.eol", "core.safecrlf", "core.sparsecheckout", "core.sparsecheckoutcone",
}

// passedOver are the extensions that change nothing of what our git does: those of
// a partial clone, with objects that are there, among them.
var passedOver = []string{"noop", "noop-v1", "partialclone", "preciousobjects", "relativeworktrees", "worktreeconfig"}

// read reads one file, as no repository's. What it includes is not read: git takes
// no format from there either.
func (c *config) read(ctx context.Context, file string) error {
	st, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return i18n.E("workspace.linked", readable(file))
	}
	data, err := disk.Read(file, maxConfig)
	if err != nil {
		return err
	}
	list := call{args: []string{"config", "--file", "-", "--no-includes", "--list", "-z"}, in: bytes.NewReader(data)}
	return records(ctx, nowhere, list, func(rec []byte) error {
		key, value, valued := strings.Cut(string(rec), "\n")
		if !valued {
			value = "true"
		}
		extension, ok := strings.CutPrefix(key, "extensions.")
		switch {
		case key == "core.bare":
			c.bare = value
		case key == "core.worktree":
			c.workTree = value
		case slices.Contains(kept, key) && isWord(value):
			c.kept = append(c.kept, setting{key, value})
		case ok && !slices.Contains(passedOver, extension):
			return i18n.E("workspace.extension", file, readable(key), readable(value))
		}
		return nil
	})
}

// maxConfig is the size of the largest configuration that is read, in bytes.
const maxConfig = 4 << 20

// isWord reports whether a value is a number, yes or no, or the name of a choice.
func isWord(value string) bool {
	return value != "" && len(value) < 32 && !strings.ContainsFunc(value, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

// text is c as git reads it. Of a setting that is given twice the last one counts.
func (c *config) text(bare bool) string {
	var b strings.Builder
	for _, s := range append(c.kept, setting{"core.bare", strconv.FormatBool(bare)}) {
		section, name, _ := strings.Cut(s.key, ".")
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, name, s.value)
	}
	return b.String()
}

// sharedParts are the parts of a repository that all its work trees share, but for its
// configuration and its hooks (gitrepository-layout(5)).
var sharedParts = []string{"objects", "refs", "reftable", "packed-refs", "shallow", "logs", "info", "worktrees"}

// commonDir makes a directory that git takes for the common part of s, when it is
// given as GIT_COMMON_DIR: the configuration is ours, the objects and refs are those of the
// repository itself, and what git writes to them is written there. The caller
// removes it.
func (s *Source) commonDir() (dir string, remove func(), err error) {
	switch {
	case s.remote: // a mirror is ours
		return s.GitDir, func() {}, nil
	case s.held != "":
		return s.held, func() {}, nil
	}
	if dir, err = os.MkdirTemp("", "tori-git-"); err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	head, err := disk.Read(filepath.Join(s.common, "HEAD"), maxRecord) // which branch the main work tree is on
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "HEAD"), head, disk.FileMode)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config"), []byte(s.config), disk.FileMode)
	}
	for _, name := range sharedParts {
		at := filepath.Join(s.common, name)
		if err == nil && exists(at) {
			err = os.Symlink(at, filepath.Join(dir, name))
		}
	}
	return dir, remove, err
}

// hold makes one commonDir for all that follows until release. Nobody else may use s
// meanwhile.
func (s *Source) hold() (release func(), err error) {
	dir, remove, err := s.commonDir()
	if err != nil {
		return nil, err
	}
	s.held = dir
	return func() {
		s.held = ""
		remove()
	}, nil
}

// nowhere is no repository, for git on other files.
var nowhere = repo{gitDir: "/nonexistent"}

// truth is a setting of git that is yes or no.
func truth(value string, unset bool) bool {
	switch strings.ToLower(value) {
	case "":
		return unset
	case "true", "yes", "on":
		return true
	}
	n, err := strconv.Atoi(value)
	return err == nil && n != 0
}

// alternates are the object directories of others that one borrows from, and those
// borrow from in turn. What is one holds objects and nothing else: it is shown to
// git in the sandbox with all that is in it.
func alternates(ctx context.Context, objects string) ([]string, error) {
	all := []string{objects}
	for i := 0; i < len(all); i++ {
		data, err := disk.Read(filepath.Join(all[i], "info/alternates"), disk.MaxWhole)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for l := range strings.Lines(string(data)) {
			dir := line(l)
			if unquoted, err := strconv.Unquote(dir); err == nil {
				dir = unquoted
			}
			if dir == "" || dir[0] == '#' {
				continue
			}
			if dir, err = filepath.EvalSymlinks(from(all[i], dir)); errors.Is(err, fs.ErrNotExist) || slices.Contains(all, dir) {
				continue // git passes over it
			}
			if err == nil {
				err = holdsObjects(ctx, dir)
			}
			if err == nil && len(all) > maxNamed {
				err = fmt.Errorf("%s borrows from more than %d directories", objects, maxNamed)
			}
			if err != nil {
				return nil, err
			}
			all = append(all, dir)
		}
	}
	return all[1:], nil
}

// holdsObjects proves that of a directory.
func holdsObjects(ctx context.Context, dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		name := e.Name()
		fan := len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
		if e.IsDir() && !fan && name != "pack" && name != "info" || !e.IsDir() && !strings.HasPrefix(name, "tmp_obj_") {
			return i18n.E("workspace.no_objects", dir, readable(name))
		}
	}
	return plain(ctx, dir)
}
