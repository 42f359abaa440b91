package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// noRepository is the error for a directory that git takes for no repository:
// there is none, or what is there is damaged.
func noRepository(abs, path string) error {
	for dir := abs; ; dir = filepath.Dir(dir) {
		for _, d := range []string{filepath.Join(dir, ".git"), dir} {
			if exists(filepath.Join(d, "objects")) && (exists(filepath.Join(d, "refs")) || exists(filepath.Join(d, "HEAD"))) {
				return i18n.E("workspace.damaged", d)
			}
		}
		if dir == filepath.Dir(dir) {
			return i18n.E("workspace.not_git", path)
		}
	}
}

// noCommit is the error for a name, HEAD or a ref, at which git finds no commit:
// the repository has none yet, has them on other branches only, or is damaged.
// The caller has seen git rev-parse --verify fail with 1.
func (s *Source) noCommit(ctx context.Context, name, path string) error {
	r := s.repo()
	ref := name
	if name == "HEAD" {
		// git itself does not say where HEAD leads where that is damaged.
		data, err := disk.Read(filepath.Join(s.GitDir, "HEAD"), maxRecord)
		if err != nil {
			return i18n.E("workspace.unreadable", path, err)
		}
		if to, ok := strings.CutPrefix(string(data), "ref:"); ok {
			ref = strings.TrimSpace(to)
		}
	}
	branch := shortBranch(ref)
	// What the ref says is no commit, or one that is not there.
	id, err := r.git(ctx, "rev-parse", "--verify", "--quiet", ref)
	if err == nil {
		return i18n.E("workspace.lost_commit", branch, path, line(id))
	}
	if exitCode(err) != 1 {
		return i18n.E("workspace.unreadable", path, err)
	}
	// A power cut may leave the file of a ref empty: git passes over it.
	at := filepath.Join(s.common, ref)
	if ref == "HEAD" {
		at = filepath.Join(s.GitDir, ref)
	}
	if st, err := os.Lstat(at); err == nil && !st.IsDir() {
		return i18n.E("workspace.broken_ref", branch, path, at)
	}
	other, err := r.git(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "refs/heads/")
	switch {
	case err != nil:
		return i18n.E("workspace.unreadable", path, err)
	case other != "" && name == "HEAD":
		return i18n.E("workspace.head_elsewhere", branch, path, shortBranch(line(other)))
	case other != "":
		return i18n.E("workspace.no_branch", branch, path)
	}
	return i18n.E("workspace.no_commits", path)
}

// shortBranch is a ref as people call it.
func shortBranch(ref string) string {
	return strings.TrimPrefix(ref, "refs/heads/")
}
