package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/i18n"
)

// ErrNothingToCommit is returned by Commit where the branch already is what it
// would make of the tree; a commit that is made twice ends there the second time.
var ErrNothingToCommit = errors.New("nothing to commit")

// CommitOptions are the words of a commit.
type CommitOptions struct {
	Message     string // not empty
	AuthorName  string
	AuthorEmail string
	Trailers    []Trailer // appended in order, git-interpret-trailers(1)
	When        time.Time // of author and committer
	Reword      bool      // also where the tree is committed already, with other words
	Empty       bool      // also where nothing is changed
	Tree        string    // of ApplyPatch or CommittedTree, to be committed in place of what is in the work tree; "" for that
}

// Trailer is one line at the end of a message, e.g. Co-authored-by.
type Trailer struct{ Key, Value string }

// Commit makes the branch one commit on Base with the whole tree, less what is
// ignored and repositories inside it, and returns the commit's id. An earlier
// commit of the branch is replaced, so that the work of several rounds is
// handed over as one; a tree that is Base's again takes the branch back there.
// With ErrNothingToCommit the id is the branch's. No hook runs and nothing is
// signed.
func (w *Workspace) Commit(ctx context.Context, opt CommitOptions) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.TrimSpace(opt.Message) == "" {
		return "", errors.New("commit: empty message")
	}
	head, err := w.Head(ctx)
	if err != nil {
		return "", err
	}
	tree := opt.Tree
	if tree == "" {
		if err := w.noteLeftOut(ctx); err != nil {
			return "", err
		}
		if tree, _, err = w.snapshot(ctx); err != nil {
			return "", err
		}
	}
	out, err := w.repo.git(ctx, "rev-parse", head+"^{tree}", w.meta.Base+"^{tree}")
	if err != nil {
		return "", err
	}
	headTree, baseTree, _ := strings.Cut(line(out), "\n")
	commit := w.meta.Base
	switch nothing := tree == baseTree && !opt.Empty; {
	case nothing && head == commit:
		return head, ErrNothingToCommit
	case nothing:
	case tree == headTree && head != commit:
		same, err := w.says(ctx, head, opt)
		if err != nil {
			return "", err
		}
		if same {
			return head, ErrNothingToCommit
		}
		if commit, err = w.commitTree(ctx, tree, opt); err != nil {
			return "", fmt.Errorf("commit: %w", err)
		}
	default:
		if err = w.receive(ctx, tree); err == nil {
			commit, err = w.commitTree(ctx, tree, opt)
		}
		if err != nil {
			return "", fmt.Errorf("commit: %w", err)
		}
	}
	if _, err := w.repo.run(ctx, call{args: []string{"update-ref", "refs/heads/" + w.meta.Branch, commit, head}, write: true}); err != nil {
		return "", err
	}
	// The index of scratch is that commit's. Lost here, git status in the tree is
	// confused until the next commit; no commit is wrong for it.
	if opt.Tree == "" { // else it is that already
		err = w.takeIndex()
	}
	if err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	if commit == w.meta.Base {
		return commit, ErrNothingToCommit
	}
	return commit, nil
}

// says reports whether a commit needs no other words.
func (w *Workspace) says(ctx context.Context, commit string, opt CommitOptions) (bool, error) {
	if !opt.Reword {
		return true, nil
	}
	out, err := w.repo.git(ctx, "log", "-1", "--format=%B", commit)
	return strings.TrimSpace(out) == strings.TrimSpace(message(opt)), err
}

// receive brings over the tree of a commit to be, which must have no submodule
// and no bare repository that the work did not start with.
func (w *Workspace) receive(ctx context.Context, id string) error {
	have := []string{w.meta.Base}
	if w.meta.Onto != "" {
		have = append(have, w.meta.Onto)
	}
	if err := w.bring(ctx, id, have...); err != nil {
		return err
	}
	return w.nothingStrange(ctx, id)
}

// nothingStrange refuses a tree with a submodule or a bare repository that the work did not start
// with.
func (w *Workspace) nothingStrange(ctx context.Context, id string) error {
	var p rawParser
	if err := diffTrees(ctx, w.repo, w.meta.Base, id, &p); err != nil {
		return err
	}
	made := maps.Clone(w.parts)
	for _, c := range p.all {
		if c.Kind != Deleted {
			made.add(c.Path)
		}
	}
	strange := w.newLinks(p.links)
	for dir := range made {
		if made.whole(dir) && !w.parts.whole(dir) {
			strange = append(strange, dir)
		}
	}
	if len(strange) > 0 {
		return i18n.E("workspace.gitlink", readable(slices.Min(strange)))
	}
	return nil
}

// packing writes the objects of $1 that are in none of the others. Those are named
// as trees: of a commit, git takes nothing away from a tree.
const packing = `want=$1
shift
{ echo "$want"; for have; do echo "^$have^{tree}"; done; } | exec git pack-objects --revs --stdout --quiet --delta-base-offset
`

// strict lets no malformed object in. What .gitmodules say is for those who read
// them, and ours never does.
const strict = "--strict=gitmodulesBlob=ignore,gitmodulesLarge=ignore,gitmodulesMissing=ignore,gitmodulesName=ignore," +
	"gitmodulesParse=ignore,gitmodulesPath=ignore,gitmodulesSymlink=ignore,gitmodulesUpdate=ignore,gitmodulesUrl=ignore"

// bring takes the objects of a tree from the sandbox, less those of other commits
// or trees, as from a stranger: whole, well-formed, with everything that they name.
func (w *Workspace) bring(ctx context.Context, id string, have ...string) error {
	return w.bringPack(ctx, scripted{w.scratch(), "pack-objects", packing}, append([]string{id}, have...))
}

// bringPack is bring of what a script in the sandbox packs.
func (w *Workspace) bringPack(ctx context.Context, from scripted, args []string) error {
	r, to := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		_, err := from.run(ctx, call{args: args, out: to})
		_ = to.CloseWithError(err)
		sent <- err
	}()
	_, err := w.repo.run(ctx, call{args: []string{"index-pack", "--stdin", strict}, in: r, write: true})
	_ = r.CloseWithError(err)
	return errors.Join(<-sent, err)
}

// commitTree makes a commit on Base, and on what was merged into it.
func (w *Workspace) commitTree(ctx context.Context, tree string, opt CommitOptions) (string, error) {
	name, email := identity(opt.AuthorName, "tori"), identity(opt.AuthorEmail, "tori@localhost")
	when := strconv.FormatInt(opt.When.Unix(), 10) + " " + opt.When.Format("-0700")
	args := []string{"commit-tree", tree, "-p", w.meta.Base}
	if w.meta.Onto != "" {
		args = append(args, "-p", w.meta.Onto)
	}
	out, err := w.repo.run(ctx, call{
		args:  append(args, "-F", "-"),
		stdin: []byte(message(opt)), write: true,
		env: []string{
			"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=" + when,
			"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email, "GIT_COMMITTER_DATE=" + when,
		},
	})
	return line(out), err
}

// identity is a name that git takes: no control characters or angle brackets,
// and something that is left without the punctuation git trims.
func identity(s, otherwise string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '<' || r == '>' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "")))
	if strings.Trim(s, ".,:;\"\\' ") == "" {
		return otherwise
	}
	return s
}

// message is the commit's text with its trailers as the last paragraph.
func message(opt CommitOptions) string {
	text := strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(opt.Message, "\uFFFD"), "\x00", "")) + "\n"
	if len(opt.Trailers) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text + "\n")
	for _, t := range opt.Trailers {
		b.WriteString(t.Key + ": " + strings.Join(strings.Fields(t.Value), " ") + "\n")
	}
	return b.String()
}

// Deliver puts the branch into the source repository as a branch of the same
// name, by fetching from there; its checkout, index, HEAD and FETCH_HEAD stay
// untouched. It is idempotent, and moves an existing branch only forward: one
// with other commits, or one that is checked out, is an i18n error.
func (w *Workspace) Deliver(ctx context.Context) error {
	bare, s, needed, err := w.deliverable(ctx)
	if err != nil || !needed {
		return err
	}
	ref := "refs/heads/" + w.meta.Branch
	if err := s.unlock(ctx, ref); err != nil {
		return fmt.Errorf("deliver branch %s to %s: %w", w.meta.Branch, s.Path, err)
	}
	// Who is named in the log of refs is not the repository's word.
	_, err = bare.run(ctx, call{write: true, env: []string{"GIT_COMMITTER_NAME=tori", "GIT_COMMITTER_EMAIL=tori@localhost"}, args: []string{
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-prune",
		"--no-show-forced-updates", "--", w.repo.gitDir, ref + ":" + ref,
	}})
	if err != nil && strings.Contains(err.Error(), "refusing to fetch into") {
		return i18n.E("workspace.branch_checked_out", w.meta.Branch, s.Path)
	}
	if err != nil {
		return fmt.Errorf("deliver branch %s to %s: %w", w.meta.Branch, s.Path, err)
	}
	return nil
}

// lockLives is longer than a git that lives holds the lock of a branch.
const lockLives = 2 * time.Second

// unlock removes the lock of a task's branch that a killed git left: the caller owns the task, so
// no other git of ours writes that branch, and somebody else's is waited for.
func (s *Source) unlock(ctx context.Context, ref string) error {
	root, err := os.OpenRoot(s.common) // there may be links on the way
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if st, err := root.Lstat(ref + ".lock"); err == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockLives - time.Since(st.ModTime())):
		}
	}
	if err := root.Remove(ref + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// CheckDeliver returns the error that Deliver would, as far as it can be told
// beforehand, and changes nothing.
func (w *Workspace) CheckDeliver(ctx context.Context) error {
	bare, s, needed, err := w.deliverable(ctx)
	if err != nil || !needed {
		return err
	}
	out, err := bare.git(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return err
	}
	for l := range strings.Lines(out) {
		if strings.TrimSuffix(l, "\n") == "branch refs/heads/"+w.meta.Branch {
			return i18n.E("workspace.branch_checked_out", w.meta.Branch, s.Path)
		}
	}
	return nil
}

// deliverable finds the source repository and what its branch of our name is;
// needed is false where it has our commit already.
func (w *Workspace) deliverable(ctx context.Context) (bare repo, s *Source, needed bool, err error) {
	if w.meta.Remote {
		return bare, nil, false, fmt.Errorf("deliver branch %s: %s is a remote: it is pushed to", w.meta.Branch, w.meta.Source)
	}
	if s, err = locate(ctx, w.meta.Source, w.meta.Source); err != nil {
		return bare, s, false, err
	}
	head, err := w.Head(ctx)
	if err != nil {
		return bare, s, false, err
	}
	bare = s.repo()
	bare.hold = w.repo.hold
	there, err := bare.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+w.meta.Branch)
	if err != nil && exitCode(err) != 1 {
		return bare, s, false, err
	}
	if there == "" || line(there) == head {
		return bare, s, there == "", nil
	}
	_, err = w.repo.git(ctx, "merge-base", "--is-ancestor", line(there), head)
	if exitCode(err) > 0 { // 1: not an ancestor, 128: not even known here
		return bare, s, false, i18n.E("workspace.branch_differs", w.meta.Branch, s.Path)
	}
	return bare, s, true, err
}
