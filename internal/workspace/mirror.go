package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Mirrors keeps one bare repository for each remote, so that a task's clone
// needs no network but for what is new. Many processes may use one directory.
//
//	{Dir}/{name}/git          branches and tags of the remote
//	{Dir}/{name}/mirror.json  its address and when it was used
//	{Dir}/{name}.fetch        lock of the one who fetches
//	{Dir}/{name}.lock         lock shared by all who use it, exclusive to who
//	                          repacks or removes it
//
// A task's clone shares the mirror's objects by hard links, not by alternates:
// a mirror may be repacked or removed while tasks of it are paused for months,
// and nothing of theirs is lost (docs/decisions/012).
type Mirrors struct {
	Dir string // absolute, on the file system of the workspaces; made where missing
	Now func() time.Time
	FS  *disk.FS
}

// mirrorMeta is mirror.json, written after the first whole fetch.
type mirrorMeta struct {
	Format int       `json:"format"`
	URL    string    `json:"url"`
	Began  time.Time `json:"began"` // the start of the last fetch that succeeded
	Used   time.Time `json:"used"`
}

// maxPacks is how many packs a mirror may have: each fetch brings one, and each
// makes looking for an object dearer.
const maxPacks = 40

// Source brings the mirror of remote up to date and returns it as a source
// whose work starts from branch, "" for the remote's HEAD. It blocks while
// another process fetches the same mirror, and takes what that one fetched if
// it began after this call. The caller closes the source, which keeps the
// mirror until then.
func (m *Mirrors) Source(ctx context.Context, remote Remote, branch string) (*Source, error) {
	if _, err := remote.check(); err != nil {
		return nil, err
	}
	if err := m.FS.MkdirAll(m.Dir); err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", remote.URL, err)
	}
	dir := filepath.Join(m.Dir, mirrorName(remote.URL))
	asked := m.Now()
	fetching, err := waitLock(ctx, dir+".fetch", exclusive)
	if err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", remote.URL, err)
	}
	defer func() { _ = release(fetching) }()
	lock, err := m.update(ctx, remote, dir, asked)
	if err != nil {
		return nil, err
	}
	git := filepath.Join(dir, "git")
	s := &Source{Path: remote.URL, GitDir: git, common: git, Bare: true, remote: true, lock: lock}
	if err := s.at(ctx, branch); err != nil {
		return nil, errors.Join(err, release(lock))
	}
	return s, nil
}

// update fetches, unless that was done since the mirror was asked for, and
// returns the lock that keeps the mirror. The caller holds the lock to fetch.
func (m *Mirrors) update(ctx context.Context, remote Remote, dir string, asked time.Time) (lock *os.File, err error) {
	var meta mirrorMeta
	var merr error
	for {
		_, before := readMirror(dir)
		kind := shared
		if before != nil {
			kind = exclusive // it is made anew
		}
		if lock, err = waitLock(ctx, dir+".lock", kind); err != nil {
			return nil, fmt.Errorf("mirror of %s: %w", remote.URL, err)
		}
		if meta, merr = readMirror(dir); (merr == nil) == (before == nil) {
			break
		}
		_ = release(lock) // it was removed a moment ago
	}
	if merr != nil || meta.Began.Before(asked) {
		err = m.fetch(ctx, remote, dir, merr == nil)
	} else {
		err = m.note(dir, mirrorMeta{URL: remote.URL, Began: meta.Began})
	}
	if err == nil && change(lock, exclusive) == nil { // else somebody clones: the next one tidies up
		err = repo{gitDir: filepath.Join(dir, "git")}.tidy(ctx)
	}
	if err = errors.Join(err, change(lock, shared)); err != nil {
		return nil, errors.Join(err, release(lock))
	}
	return lock, nil
}

// mirrorName is a directory name for an address: readable, and one for each.
func mirrorName(address string) string {
	sum := sha256.Sum256([]byte(strings.TrimRight(address, "/")))
	_, rest, _ := strings.Cut(address, "://")
	return slug(rest, 60) + "-" + hex.EncodeToString(sum[:8])
}

func readMirror(dir string) (meta mirrorMeta, err error) {
	data, err := disk.Read(filepath.Join(dir, "mirror.json"), disk.MaxWhole)
	if err != nil {
		return meta, err
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return meta, fmt.Errorf("%s: %w", filepath.Join(dir, "mirror.json"), err)
	}
	if meta.Format > format {
		return meta, i18n.E("workspace.newer", dir, meta.Format)
	}
	return meta, nil
}

// note writes mirror.json. It is not synced: a mirror without one is made anew.
func (m *Mirrors) note(dir string, meta mirrorMeta) error {
	meta.Format, meta.Used = format, m.Now().UTC()
	return m.FS.ReplaceJSON(filepath.Join(dir, "mirror.json"), meta, false)
}

// fetch makes the branches and tags of the mirror those of the remote. The
// caller holds the lock.
func (m *Mirrors) fetch(ctx context.Context, remote Remote, dir string, whole bool) error {
	began := m.Now().UTC()
	head, err := remote.head(ctx)
	if err != nil {
		return err
	}
	r := repo{gitDir: filepath.Join(dir, "git")}
	if !whole { // the rest of one that was never finished
		if err := removeAll(dir); err != nil {
			return fmt.Errorf("mirror of %s: %w", remote.URL, err)
		}
		if err := m.FS.MkdirAll(dir); err != nil {
			return fmt.Errorf("mirror of %s: %w", remote.URL, err)
		}
		kind := "sha1"
		if len(head.id) == 64 {
			kind = "sha256"
		}
		if _, err := r.run(ctx, call{args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + kind}, write: true}); err != nil {
			return err
		}
	}
	// Only branches and tags: the heads of pull requests are strangers' and
	// can be many more. What a fetch brings stays a pack.
	specs := []string{"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}
	if head.branch == "" && head.id != "" {
		specs = append(specs, "+HEAD:"+detachedRef)
	}
	if _, err := remote.run(ctx, r, []string{"-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--prune", "--force", "--no-tags", "--update-shallow",
		"--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-show-forced-updates"}, specs...); err != nil {
		return err
	}
	if err := r.setHead(ctx, head); err != nil {
		return err
	}
	return m.note(dir, mirrorMeta{URL: remote.URL, Began: began})
}

// detachedRef keeps the commit of a remote whose HEAD is on no branch.
const detachedRef = "refs/tori/head"

func (r repo) setHead(ctx context.Context, h remoteHead) error {
	args := []string{"symbolic-ref", "HEAD", "refs/heads/" + h.branch}
	if h.branch == "" {
		if h.id == "" {
			return nil // nothing there yet
		}
		args = []string{"update-ref", "--no-deref", "HEAD", h.id}
	}
	_, err := r.run(ctx, call{args: args, write: true})
	return err
}

// tidy keeps refs and packs few. Clones have links of their own to a pack that
// goes, and the lock keeps new ones away.
func (r repo) tidy(ctx context.Context) error {
	if _, err := r.run(ctx, call{args: []string{"pack-refs", "--all"}, write: true}); err != nil {
		return err
	}
	packs, err := filepath.Glob(filepath.Join(escapeGlob(r.gitDir), "objects/pack/*.pack"))
	if err != nil || len(packs) <= maxPacks {
		return err
	}
	_, err = r.run(ctx, call{args: []string{"repack", "-d", "--geometric=2", "--quiet"}, write: true})
	return err
}

// escapeGlob makes a path match itself only.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// at finds the commit that work starts from in a mirror.
func (s *Source) at(ctx context.Context, branch string) error {
	r := s.repo()
	if branch == "" {
		out, err := r.git(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
		if err != nil && exitCode(err) != 1 { // 1: detached
			return i18n.E("workspace.unreadable", s.Path, err)
		}
		branch = line(out)
	}
	rev := "refs/heads/" + branch + "^{commit}"
	if branch == "" {
		rev = "HEAD^{commit}"
	}
	out, err := r.git(ctx, "rev-parse", "--verify", "--quiet", rev)
	switch {
	case err == nil:
		s.Head, s.Branch = line(out), branch
		return nil
	case exitCode(err) != 1:
		return i18n.E("workspace.unreadable", s.Path, err)
	}
	return s.noCommit(ctx, strings.TrimSuffix(rev, "^{commit}"), s.Path)
}

// FetchHead brings what a ref of the remote leads to, such as the head of a pull request from
// another repository, into the mirror, and has work start from there.
func (s *Source) FetchHead(ctx context.Context, remote Remote, ref string) error {
	r, kept := s.repo(), "refs/tori/"+strings.TrimPrefix(ref, "refs/")
	if _, err := remote.run(ctx, r, []string{"-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--force", "--no-tags", "--update-shallow",
		"--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"}, "+"+ref+":"+kept); err != nil {
		return err
	}
	out, err := r.git(ctx, "rev-parse", "--verify", "--quiet", kept+"^{commit}")
	if err != nil {
		return i18n.E("workspace.unreadable", s.Path, err)
	}
	s.Head = line(out)
	return nil
}

// Close lets the mirror behind a source be cleaned; of a source that Inspect
// returned there is nothing to close.
func (s *Source) Close() error {
	if s.lock == nil {
		return nil
	}
	err := release(s.lock)
	s.lock = nil
	return err
}
