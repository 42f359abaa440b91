package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
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
	// Private tells that the repository is.
	Private bool   `json:"private,omitempty"`
	URL     string `json:"url,omitempty"` // of the issue or pull request, for people
}

const placeFile = "work.json"

func readPlace(dir string) (p Place, ok bool, err error) {
	raw, err := disk.Read(filepath.Join(dir, placeFile), disk.MaxWhole)
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
	if _, serr := os.Stat(create.Dir); serr == nil && decided {
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
	from := p.Onto
	if p.Exists && p.Ref == "" {
		from = p.Branch
	}
	src, err := r.Host.source(ctx, forge.RepoOf(key), from)
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
		if err := r.writePlace(p); err != nil {
			return p, err
		}
	}
	create.Source = src
	return p, r.create(ctx, p, create)
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
	if r.item == nil {
		it, err := r.Host.Item(ctx, r.key())
		if err != nil {
			return it, err
		}
		r.item = &it
	}
	return *r.item, nil
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
