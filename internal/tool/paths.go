package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"toritsugi/internal/disk"
	"toritsugi/internal/spelling"
)

// rel makes p, as a model wrote it, relative to the workspace, with slashes.
// problem says why it cannot be used; it is "" where it can.
func (w *workspaceFiles) rel(p string) (rel, problem string) {
	switch {
	case p == "":
		return "", "The path is empty. Give a path relative to the workspace."
	case strings.IndexByte(p, 0) >= 0:
		return "", "The path contains a NUL byte."
	case !utf8.ValidString(p):
		return "", "The path is not valid UTF-8."
	}
	if problem := w.maskedPath(p); problem != "" {
		return "", problem
	}
	p = w.unquoted(p)
	rel = p
	if filepath.IsAbs(p) {
		inside := false
		for _, dir := range w.dirs {
			if r, err := filepath.Rel(dir, p); err == nil && filepath.IsLocal(r) {
				rel, inside = r, true
				break
			}
		}
		if !inside {
			rel, inside = Rooted(w.root, p)
		}
		if !inside {
			return "", fmt.Sprintf("%s is outside of the workspace. Only files in the workspace can be reached; use a path relative to it.", clip(p, 300))
		}
	}
	rel = path.Clean(filepath.ToSlash(rel))
	if !filepath.IsLocal(rel) {
		return "", fmt.Sprintf("%s leads out of the workspace. Use a path relative to the workspace, without \"..\".", clip(p, 300))
	}
	return rel, ""
}

// Rooted takes an absolute path for one of the workspace at root, which models call
// /workspace or /, where its file, or the directory that gets it, is there. rel is not
// clean yet.
func Rooted(root *os.Root, p string) (rel string, ok bool) {
	p = path.Clean(filepath.ToSlash(p))
	for _, top := range []string{"/workspace/", "/"} {
		rel, ok := strings.CutPrefix(p, top)
		if !ok || !filepath.IsLocal(rel) {
			continue
		}
		if _, err := root.Lstat(rel); err == nil {
			return rel, true
		}
		if info, err := root.Stat(path.Dir(rel)); err == nil && info.IsDir() && path.Dir(rel) != "." {
			return rel, true
		}
	}
	rel, ok = strings.CutPrefix(p+"/", "/workspace/")
	return rel, ok
}

// maskedPath refuses a path that holds a masking token, unless there is such a
// file: what the model was shown is not the name.
func (w *workspaceFiles) maskedPath(p string) string {
	marks := w.tokens(p)
	if len(marks) == 0 {
		return ""
	}
	if filepath.IsLocal(p) {
		if _, err := w.root.Lstat(p); err == nil {
			return ""
		}
	}
	return fmt.Sprintf("The path holds %s, which stands for a part of the real name that was masked before you saw it: a file of this name cannot be reached by it. "+
		"If it has to be, rename it by a pattern in a shell (mv dir/*.txt dir/name.txt), and say in your answer that a file's name held a secret.", marks[0].token)
}

// secretName says why no file of this name is made: what looks like a secret in
// it would be in every list of files. Addresses are none.
func (w *workspaceFiles) secretName(rel string) string {
	m := w.mask(rel)
	for _, k := range m.marks {
		if k.token != emailToken && m.text != rel {
			return fmt.Sprintf("The path %s holds what looks like a secret, which would stand in every list of files, in patches and in logs. Choose another name.", shownName(m.text))
		}
	}
	return ""
}

// emailToken stands for an address, which is masked for privacy and no secret.
const emailToken = "[EMAIL]"

// shown is shownName of what may be cut: a secret is masked before it is.
func (w *workspaceFiles) shown(rel string) string { return shownName(w.mask(rel).text) }

// unquoted takes p for a name as shownName gives it, unless there is a file
// whose name has the quotes.
func (w *workspaceFiles) unquoted(p string) string {
	if len(p) < 3 || p[0] != '"' || p[len(p)-1] != '"' {
		return p
	}
	name, err := strconv.Unquote(p)
	if err != nil || strings.IndexByte(name, 0) >= 0 {
		return p
	}
	if _, err := w.root.Lstat(p); err == nil {
		return p
	}
	return name
}

// maxLinks is how many symbolic links one path may go through, as on Linux.
const maxLinks = 40

var errEscapes = errors.New("path escapes from the workspace")

// resolve follows the symbolic links of rel, so that a change is made to, and
// checked against, the file that is meant. What does not exist yet is kept as
// it stands. The Root still guards every access: a link that changes after
// this cannot lead outside.
func (w *workspaceFiles) resolve(rel string) (string, error) {
	done, links := ".", 0
	parts := strings.Split(rel, "/")
	for len(parts) > 0 {
		p := parts[0]
		parts = parts[1:]
		if p == "" || p == "." {
			continue
		}
		next := path.Join(done, p)
		if !filepath.IsLocal(next) {
			return "", errEscapes
		}
		info, err := w.root.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			done = next
			continue
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", syscall.ELOOP
		}
		target, err := w.root.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			return "", errEscapes
		}
		parts = append(strings.Split(filepath.ToSlash(target), "/"), parts...)
	}
	return done, nil
}

// target is rel and resolve for a file that will be written; it refuses git's
// own directory, whose hooks and settings the daemon's git would act on.
func (w *workspaceFiles) target(p string) (shown, real, problem string) {
	shown, problem = w.rel(p)
	if problem != "" {
		return "", "", problem
	}
	if shown == "." {
		return "", "", "The path names the workspace itself, not a file."
	}
	real, err := w.resolve(shown)
	if err != nil {
		return "", "", w.explain(shown, err)
	}
	if inGit(shown) || inGit(real) {
		return "", "", fmt.Sprintf("%s belongs to git's own data, which must not be written by hand. Change files of the project instead.", shown)
	}
	return shownName(shown), real, ""
}

// inGit reports whether a part of rel names .git, also in the spellings that
// case-insensitive, HFS+ and NTFS file systems take for it (git's
// is_hfs_dotgit and is_ntfs_dotgit).
func inGit(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		part, _, _ = strings.Cut(part, ":")
		part = strings.TrimRight(strings.Map(func(r rune) rune {
			if r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff {
				return -1
			}
			return r
		}, part), ". ")
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") {
			return true
		}
	}
	return false
}

// explain says why rel could not be used, in a sentence.
func (w *workspaceFiles) explain(rel string, err error) string {
	hint := rel
	rel = shownName(rel)
	switch {
	// os does not export this error of Root.
	case errors.Is(err, errEscapes), strings.Contains(err.Error(), "path escapes"):
		return fmt.Sprintf("%s leads out of the workspace through a symbolic link. Only files in the workspace can be reached.", rel)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("There is no file or directory %s.%s", rel, w.similar(hint))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("Permission denied for %s.", rel)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Sprintf("A part of %s is a file, not a directory.", rel)
	case errors.Is(err, syscall.ELOOP):
		return fmt.Sprintf("%s goes through too many symbolic links.", rel)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Sprintf("The path %s is too long.", clip(rel, 300))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Sprintf("%s could not be written: the disk is full. Delete what is not needed, or stop.", rel)
	}
	// Only the cause: a PathError may name a directory of the host.
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Sprintf("%s cannot be used: %v.", rel, err)
}

// maxSimilar is how many names of a directory are looked at for a hint.
const maxSimilar = 1000

// similar names the entry of rel's directory that was probably meant.
func (w *workspaceFiles) similar(rel string) string {
	dir, base := path.Split(rel)
	f, err := disk.OpenDir(w.root, path.Clean(dir))
	if err != nil {
		if dir == "" {
			return ""
		}
		return fmt.Sprintf(" The directory %s does not exist either; see list_files.", path.Clean(dir))
	}
	names, _ := f.Readdirnames(maxSimilar) // fewer names only make a poorer hint
	_ = f.Close()                          // it was only read
	if n := spelling.Nearest(base, names); n != "" {
		return fmt.Sprintf(" Did you mean %s?", path.Join(dir, n))
	}
	return " See list_files."
}

// open opens the regular file rel for reading. A pipe must not block the run,
// hence O_NONBLOCK, which regular files ignore.
func (w *workspaceFiles) open(rel string) (*os.File, fs.FileInfo, string) {
	f, err := w.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, w.explain(rel, err)
	}
	info, err := f.Stat()
	problem := ""
	switch {
	case err != nil:
		problem = w.explain(rel, err)
	case info.IsDir():
		problem = fmt.Sprintf("%s is a directory. Use list_files to see what is in it.", shownName(rel))
	case !info.Mode().IsRegular():
		problem = fmt.Sprintf("%s is not a regular file (%s).", shownName(rel), info.Mode().Type())
	}
	if problem != "" {
		_ = f.Close() // nothing was read
		return nil, nil, problem
	}
	return f, info, ""
}

// shownName is rel as an answer shows it: as it is, or, where it holds what
// does not print or is not UTF-8, in double quotes with escapes. A path may be
// given in that form too.
func shownName(rel string) string {
	for _, r := range rel {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return strconv.Quote(rel)
		}
	}
	return rel
}
