package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/google/uuid"

	"toritsugi/internal/blobs"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Place is where the work of a run goes on, decided once, before anything of it is seen
// outside: it is work.json, or, of tori run, in the order.
type Place struct {
	Branch string `json:"branch"`          // of the work
	Base   string `json:"base"`            // commit that the work starts from
	Onto   string `json:"onto"`            // branch that it is to be merged into
	Exists bool   `json:"there,omitempty"` // the branch was there before, and stood at Base
	// Trusted is, of such a branch, the commit of Onto that it left: whose rules
	// and checks count. "" where there is none.
	Trusted string `json:"trusted,omitempty"`
	Pull    string `json:"pull,omitempty"`  // number of the pull request whose branch it is
	Draft   string `json:"draft,omitempty"` // number of the pull request that an earlier run of the issue opened from it
	Work    string `json:"work,omitempty"`  // commit that is to be merged with Base, where others took the branch; see Follow
	Merge   bool   `json:"merge,omitempty"` // Onto was merged into the tree, with which the pull request conflicts
	Ref     string `json:"ref,omitempty"`   // that has the head of a pull request to be reviewed, where that is of another repository
	// Workspace is the ID of the workspace: who finds another one of the run has worked on it before a
	// machine where it went on.
	Workspace string `json:"workspace,omitempty"`
	// Private tells that the repository is.
	Private bool   `json:"private,omitempty"`
	URL     string `json:"url,omitempty"` // of the issue or pull request, for people
}

const placeFile = "work.json"

func readPlace(dir string) (p Place, ok bool, err error) {
	raw, err := contextstore.ReadFile(dir, placeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		return p, false, fmt.Errorf("read where the work goes on: %w", err)
	}
	return p, p.Branch != "" && p.Base != "", nil
}

func (r *Run) writePlace(p Place) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return r.Store.FS.Replace(filepath.Join(r.Ledger.Dir(), placeFile), append(raw, '\n'), !r.Store.NoSync)
}

// TrustedCommit is the commit whose word counts on how the project is checked and
// worked in: what the work starts from, or, where that is somebody's branch, what
// the branch that it is for had when it was left. "" is none.
func (r *Run) TrustedCommit() string {
	if r.Place.Exists {
		return r.Place.Trusted
	}
	return r.Workspace.Base()
}

// Open decides where the work goes on, where that is not decided yet, and opens the
// workspace there; of create it needs what is not the same for each run.
func (r *Run) Open(ctx context.Context, create workspace.CreateOptions) (err error) {
	create.Box, create.Hold, create.Now = r.Box, r.Ledger.WorkLock(), r.Now
	p, decided := Place{Branch: r.Order.Branch, Base: r.Order.Base}, r.Order.ByHand()
	if !decided {
		if p, decided, err = readPlace(r.Ledger.Dir()); err != nil {
			return err
		}
	}
	create.ID = p.Workspace
	if r.Lost = !workspace.Made(create.Dir, create.ID); decided && !r.Lost {
		// Nothing is asked of the forge: an interrupted run goes on while it is down. A
		// repository of this machine that moved is told before a model is called.
		create.Source = &workspace.Source{}
		if r.Here() {
			if create.Source, err = r.Host.source(ctx, forge.RepoOf(r.key()), p.Branch); err != nil {
				return err
			}
		}
		err = r.create(ctx, p, create)
	} else {
		p, err = r.clone(ctx, p, decided, create)
	}
	if err == nil {
		r.Place = p
	}
	return err
}

// Restore brings back what was kept of the workspace, once that is set up, and has it kept from then on.
func (r *Run) Restore(ctx context.Context) error {
	err := r.Workspace.Restore(ctx)
	if err == nil && r.Blobs != nil {
		r.Keeper = r.Blobs.Keeper(r.Ledger, r.Workspace)
	}
	return err
}

func (r *Run) create(ctx context.Context, p Place, create workspace.CreateOptions) (err error) {
	create.Branch, create.Commit = p.Branch, p.Base
	if r.Reviews() {
		create.Base = p.Trusted
	}
	r.Workspace, err = workspace.Create(ctx, create)
	return err
}

// clone decides where the work goes on, where that is not decided yet, and clones
// the repository.
func (r *Run) clone(ctx context.Context, p Place, decided bool, create workspace.CreateOptions) (_ Place, err error) {
	key := r.key()
	if !decided {
		if p, err = r.choose(ctx); err != nil {
			return p, err
		}
	}
	src, err := r.Host.source(ctx, forge.RepoOf(key), p.start())
	if err != nil {
		return p, err
	}
	defer func() { _ = src.Close() }()
	if p.Ref != "" {
		if err := r.Host.fetchHead(ctx, forge.RepoOf(key), src, p.Ref); err != nil {
			return p, err
		}
	}
	if !decided {
		p.Base = src.Head
		if p.Exists {
			if p.Trusted, err = src.Fork(ctx, p.Onto); err != nil {
				return p, err
			}
		}
		if r.Reviews() && p.Trusted == "" {
			return p, &TaskError{Err: i18n.E("review.unrelated", order.Ref(key), p.Onto)}
		}
		if p.Branch == "" {
			if p.Branch, err = workspace.FreeBranch(ctx, src, workspace.BranchName(r.BranchPattern, key.ID, r.Ledger.Metadata().Title)); err != nil {
				return p, err
			}
		}
		p.Workspace = uuid.NewString()
		if err := r.writePlace(p); err != nil {
			return p, err
		}
		create.Source, create.ID = src, p.Workspace
		return p, r.create(ctx, p, create)
	}
	create.Source, create.ID = src, uuid.NewString()
	if r.Restored, create.Restore, err = r.kept(r.Ledger.Dir(), p); err != nil {
		return p, err
	}
	if err = r.create(ctx, p, create); err != nil && r.Restored != nil && !blobs.Passing(err) && ctx.Err() == nil {
		r.Log.Warn("What was kept of the workspace cannot be used: " + err.Error())
		r.Restored, create.Restore = nil, nil
		err = r.create(ctx, p, create)
	}
	if p.Workspace = create.ID; err == nil && !r.Order.ByHand() {
		err = r.writePlace(p)
	}
	return p, err
}

// start is the branch that a clone begins with.
func (p Place) start() string {
	if p.Exists && p.Ref == "" {
		return p.Branch
	}
	return p.Onto
}

// kept is what is kept of the workspace of a context, by its directory; nil where nothing is.
func (s *Service) kept(dir string, p Place) (*blobs.Snapshot, *workspace.Restore, error) {
	if s.Blobs == nil {
		return nil, nil, nil
	}
	of, err := blobs.Read(dir)
	if of == nil || err != nil {
		return nil, nil, err
	}
	return of, &workspace.Restore{Stored: of.Stored, Branch: p.Onto, Pack: func(ctx context.Context, to io.Writer) error { return s.Blobs.Write(ctx, of, to) }}, nil
}

// openWorkspace opens the workspace of a run that nobody works on; where it is another machine's, a
// copy of it, from what is kept of it.
func (s *Service) openWorkspace(ctx context.Context, id string) (*workspace.Workspace, error) {
	dir := s.Store.WorkspaceDir(id)
	if s.Blobs == nil {
		return workspace.Open(dir, s.Box)
	}
	v, err := s.Store.View(id)
	if err != nil {
		return nil, err
	}
	h, o, err := s.HostOf(v.Metadata)
	if err != nil {
		return nil, err
	}
	p, _, err := readPlace(v.Dir)
	if err != nil {
		return nil, err
	}
	if o.ByHand() {
		p = Place{Branch: o.Branch, Base: o.Base}
	}
	_, restore, err := s.kept(v.Dir, p)
	if err != nil {
		return nil, err
	}
	if restore == nil || workspace.Made(dir, p.Workspace) || workspace.Made(dir, p.Workspace+"/"+restore.Tree) {
		return workspace.Open(dir, s.Box)
	}
	src, err := h.source(ctx, forge.RepoOf(v.Metadata.TaskKey.Item()), p.start())
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	ws, err := workspace.Create(ctx, workspace.CreateOptions{Source: src, Dir: dir, Branch: p.Branch, ID: p.Workspace + "/" + restore.Tree, Restore: restore, Box: s.Box, Now: s.Now})
	if err != nil {
		return nil, err
	}
	if err := ws.Restore(ctx); err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	return ws, nil
}

// choose is the branch that the work goes on at, as far as the forge alone tells: that
// of the pull request, or of the one that an earlier run of the issue opened.
func (r *Run) choose(ctx context.Context) (p Place, err error) {
	it, err := r.Item(ctx)
	if err != nil {
		return p, err
	}
	key := r.key()
	p = Place{Onto: it.Repository.DefaultBranch, URL: it.URL, Private: it.Repository.Private}
	if it.Pull == nil {
		p.Branch, p.Draft, p.Exists, err = r.existingProposal(ctx)
		return p, err
	}
	if r.Reviews() {
		if p.Onto, p.Branch, p.Exists = it.Pull.Base.Name, it.Pull.Head.Name, true; it.Pull.Head.Repo != forge.RepoOf(key) {
			p.Branch, p.Ref = "review-"+key.ID, it.Pull.Ref
		}
		return p, nil
	}
	if it.Pull.Head.Repo != forge.RepoOf(key) {
		return p, &TaskError{Err: i18n.E("agent.other_repository", order.Ref(key), it.Pull.Head.Repo, forge.RepoOf(key))}
	}
	p.Onto, p.Branch, p.Pull, p.Exists = it.Pull.Base.Name, it.Pull.Head.Name, key.ID, true
	return p, r.branchIsFree(ctx, p.Branch, append(closed(key, it.Body), r.Order.Items(key)[1:]...)...)
}

// Item is the issue or pull request of the run, read once.
func (r *Run) Item(ctx context.Context) (forge.Item, error) {
	return r.once(ctx, &r.item, r.key())
}

// once is an item that is kept once it was read.
func (r *Run) once(ctx context.Context, kept **forge.Item, k task.Key) (forge.Item, error) {
	if *kept == nil {
		it, err := r.Host.Item(ctx, k)
		if err != nil {
			return it, err
		}
		*kept = &it
	}
	return **kept, nil
}

// Linked are the keys of the issues that the pull request of a run says it
// closes: one of them may be where its branch came from (spec/README "inherited
// text").
func (r *Run) Linked(ctx context.Context) (all []task.Key, err error) {
	if r.Place.Pull == "" {
		return nil, nil
	}
	it, err := r.Item(ctx)
	if err != nil {
		return nil, err
	}
	return closed(r.key(), it.Body), nil
}

// closed are the issues that the text of a pull request says it closes.
func closed(k task.Key, text string) (all []task.Key) {
	for _, m := range closes().FindAllStringSubmatch(text, maxLinks) {
		issue := k
		issue.Type, issue.ID = task.TypeIssue, m[1]
		all = append(all, issue)
	}
	return all
}

// maxLinks is how many issues of a pull request are looked at.
const maxLinks = 3

var closes = lazyregexp.New(`(?im)^closes #([0-9]{1,18})\s*$`)

// SharesBranch reports whether a run worked on the branch of this one's pull
// request. Everybody may write what a pull request says; this stands in our files.
func (r *Run) SharesBranch(v contextstore.View) bool {
	p, ok, err := readPlace(v.Dir)
	return err == nil && ok && p.Branch == r.Place.Branch
}

// Seen is the issue or pull request of the run, if it was read.
func (r *Run) Seen() (it forge.Item, read bool) {
	if r.item == nil {
		return it, false
	}
	return *r.item, true
}
