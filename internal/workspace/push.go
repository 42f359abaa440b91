package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

// PushOptions say where a branch goes.
type PushOptions struct {
	Remote Remote
	Branch string // at the remote, "" for the workspace's
	// Expect is the commit that the remote's branch must be at, "" for no such
	// branch. Anything else there is somebody's work and stays.
	Expect string
	DryRun bool // only ask the remote whether it would take it
}

// Push makes the remote's branch the workspace's last commit and returns that.
// It is idempotent: a branch that is there already is the delivery's own
// marker. Nothing but objects is taken from the workspace's git directory, so
// that what a command wrote into its configuration has no say.
func (w *Workspace) Push(ctx context.Context, opt PushOptions) (string, error) {
	if opt.Branch == "" {
		opt.Branch = w.meta.Branch
	}
	head, err := w.Head(ctx)
	if err != nil {
		return "", err
	}
	if _, err := w.repo.git(ctx, "check-ref-format", "refs/heads/"+opt.Branch); err != nil {
		return "", fmt.Errorf("push: branch name %q: %w", opt.Branch, err)
	}
	there, err := opt.Remote.branch(ctx, w.repo.hold, opt.Branch)
	if err != nil {
		return "", err
	}
	if there == head {
		return head, nil
	}
	if there == "" {
		if opt.Expect != "" {
			return "", i18n.E("workspace.remote_deleted", opt.Branch, opt.Remote.URL)
		}
	} else if there != opt.Expect {
		return "", i18n.E("workspace.remote_moved", opt.Branch, opt.Remote.URL)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r, remove, err := w.objectsOnly(ctx)
	if err != nil {
		return "", fmt.Errorf("push branch %s: %w", opt.Branch, err)
	}
	defer remove()
	ref, dry := "refs/heads/"+opt.Branch, "--no-dry-run"
	if opt.DryRun {
		dry = "--dry-run"
	}
	out, err := opt.Remote.run(ctx, r, []string{"push", "--porcelain", "--quiet", "--no-verify", "--no-signed", "--recurse-submodules=no",
		dry, "--force-with-lease=" + ref + ":" + opt.Expect}, head+":"+ref)
	if err == nil {
		return head, nil
	}
	if strings.Contains(out, "(stale info)") || strings.Contains(out, "(fetch first)") || strings.Contains(out, "[remote rejected]") && strings.Contains(out, "failed to update ref") {
		return "", i18n.E("workspace.remote_moved", opt.Branch, opt.Remote.URL)
	}
	for l := range strings.Lines(out) {
		if _, why, ok := strings.Cut(l, "[remote rejected] "); ok {
			return "", i18n.E("workspace.remote_refused", opt.Branch, opt.Remote.URL, strings.TrimSpace(why)+remoteWords(err))
		}
	}
	return "", err
}

// mostWords bounds what is repeated of a remote's words, bytes.
const mostWords = 1000

// remoteWords is what a remote said beside its refusal, in one line: the name of a
// hook alone tells nobody which rule to mend.
func remoteWords(err error) string {
	var g *gitError
	if !errors.As(err, &g) {
		return ""
	}
	var words []string
	for l := range strings.Lines(g.stderr) {
		if said, ok := strings.CutPrefix(l, "remote:"); ok {
			if said = strings.Join(strings.Fields(redact.Printable(said)), " "); said != "" {
				words = append(words, said)
			}
		}
	}
	said := strings.Join(words, "; ")
	if len(said) > mostWords {
		said = strings.ToValidUTF8(said[:mostWords], "") + " …"
	}
	if said == "" {
		return ""
	}
	return ": " + said
}

// objectsOnly makes a repository that has the workspace's objects and nothing
// else of its git directory.
func (w *Workspace) objectsOnly(ctx context.Context) (r repo, remove func(), err error) {
	dir := filepath.Join(w.dir, "push")
	if err := removeAll(dir); err != nil {
		return r, nil, err
	}
	remove = func() { _ = removeAll(dir) } // else the next one does it
	defer func() {
		if err != nil {
			_ = removeAll(dir)
		}
	}()
	kind, err := w.repo.git(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return r, nil, err
	}
	r = repo{gitDir: dir, hold: w.repo.hold}
	if _, err := r.run(ctx, call{args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + line(kind)}, write: true}); err != nil {
		return r, nil, err
	}
	objects := quotePath(filepath.Join(w.repo.gitDir, "objects")) + "\n"
	if err := os.MkdirAll(filepath.Join(dir, "objects/info"), disk.DirMode); err != nil {
		return r, nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "objects/info/alternates"), []byte(objects), disk.FileMode); err != nil {
		return r, nil, err
	}
	// Where the source was shallow, so is what can be sent.
	shallow, err := disk.Read(filepath.Join(w.repo.gitDir, "shallow"), disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return r, remove, nil
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "shallow"), shallow, disk.FileMode)
	}
	return r, remove, err
}

// Refused reports whether an error of Push says that the remote will not take
// the branch, however often it is asked: somebody else moved it, or a rule
// forbids it.
func Refused(err error) bool {
	return keyed(err, "workspace.remote_moved", "workspace.remote_deleted", "workspace.remote_refused")
}

// Moved reports whether an error of Push says that the remote's branch is not where it
// was expected.
func Moved(err error) bool { return keyed(err, "workspace.remote_moved") }

// BranchDeleted reports whether an error says that a remote does not have a branch any more.
func BranchDeleted(err error) bool {
	return keyed(err, "workspace.remote_deleted", "workspace.no_branch", "workspace.no_commits")
}

// Unreachable reports whether an error says that a remote gave no answer, and
// may give one later.
func Unreachable(err error) bool { return keyed(err, "workspace.remote_failed") }

// Denied reports whether an error says that a remote does not take the login.
func Denied(err error) bool { return keyed(err, "workspace.remote_denied") }

// Barred reports whether an error says that the login, good as it is, does not
// reach as far as the repository.
func Barred(err error) bool {
	return keyed(err, "workspace.remote_forbidden", "workspace.remote_missing")
}

func keyed(err error, keys ...string) bool {
	var e *i18n.Error
	return errors.As(err, &e) && slices.Contains(keys, e.Key)
}
