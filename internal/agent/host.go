package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Host is the forge that a run's task lies at, with what its settings say.
type Host struct {
	forge.Forge
	Mirrors *workspace.Mirrors
	// Least is what somebody must be allowed in a repository for their words to
	// count as those of people who may ask.
	Least forge.Permission
	// Omit leaves out what nobody vouches for, instead of marking it.
	Omit bool
	// FollowUp tells that a review that asks for changes of a draft of ours is
	// work by itself.
	FollowUp bool
	Labels   Labels
	CAFile   string // certificates that git trusts at the forge instead of the system's
	Proxy    string // that git goes through, "" for none
}

// Labels are the labels that show how a task stands.
type Labels struct {
	Trigger string
	Status  map[task.Status]string
	Create  bool // where a repository lacks them
}

// Ask is the act that asked for a run, kept in metadata.json.
type Ask struct {
	By    forge.Person `json:"by"`
	At    time.Time    `json:"at"`
	Event string       `json:"event"` // the act itself: asking again is another one
	How   string       `json:"how"`   // AskedBy…
	// Text is the TextOf what was asked for, as it was seen first.
	Text string `json:"text,omitempty"`
	// EditedBy is the login of somebody who may not ask and had changed it by then,
	// after it was asked for.
	EditedBy string `json:"edited_by,omitempty"`
}

// TextOf tells one text of an item from another: whoever may not ask for work
// can still change what is asked for while it waits.
func TextOf(it forge.Item) string {
	sum := sha256.Sum256([]byte(it.Title + "\x00" + it.Body))
	return hex.EncodeToString(sum[:16])
}

// askMark is the mark of the act that resumed a paused run: the same act starts no
// other run.
const askMark = "asked"

// LastAsk is the last act that a run has taken up: the one that it began for, or
// one that let it go on.
func LastAsk(ctx context.Context, s *contextstore.Store, v contextstore.View) (Ask, error) {
	raw, err := s.Mark(ctx, v.Metadata.UUID, askMark)
	if err != nil {
		return Ask{}, err
	}
	var last Ask
	if raw != "" && json.Unmarshal([]byte(raw), &last) == nil {
		return last, nil
	}
	job, err := ParseJob(v.Metadata)
	if err != nil || job.Ask == nil {
		return Ask{At: v.Metadata.CreatedAt.Time}, nil //nolint:nilerr // nobody knows better
	}
	return *job.Ask, nil
}

// TakeUp makes an act the last one that a run has taken up.
func TakeUp(ctx context.Context, s *contextstore.Store, uuid string, a Ask) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return s.SetMark(ctx, uuid, askMark, string(raw))
}

// Before reports whether another act came after this one. A forge dates by the
// second; its events are numbered.
func (a Ask) Before(b Ask) bool {
	if !b.At.Equal(a.At) || a.Event == b.Event {
		return b.At.After(a.At)
	}
	m, merr := strconv.ParseInt(a.Event, 10, 64)
	n, nerr := strconv.ParseInt(b.Event, 10, 64)
	return merr != nil || nerr != nil || n > m
}

// How somebody asks.
const (
	AskedByLabel      = "label"
	AskedByAssignment = "assignment"
	AskedByComment    = "comment"
	AskedByReview     = "review"
)

// place is work.json, where the work of a run on a forge goes on: decided once,
// before anything of it is seen outside.
type place struct {
	Branch string `json:"branch"`          // of the work
	Base   string `json:"base"`            // commit that the work starts from
	Onto   string `json:"onto"`            // branch that it is to be merged into
	There  bool   `json:"there,omitempty"` // the branch was there before, and stood at Base
	// Trusted is, of such a branch, the commit of Onto that it left: whose rules
	// and checks count. "" where there is none.
	Trusted string `json:"trusted,omitempty"`
	Pull    string `json:"pull,omitempty"`  // number of the pull request whose branch it is
	Merge   bool   `json:"merge,omitempty"` // Onto was merged into the tree, with which the pull request conflicts
	// Private tells that the repository is.
	Private bool   `json:"private,omitempty"`
	URL     string `json:"url,omitempty"` // of the issue or pull request, for people
}

const placeFile = "work.json"

func readPlace(dir string) (p place, ok bool, err error) {
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

func (r *run) writePlace(p place) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return r.Store.FS.Replace(filepath.Join(r.ledger.Dir(), placeFile), append(raw, '\n'), !r.Store.NoSync)
}

// remote is the repository as git finds it; the login is asked for anew each
// time, since tokens live for an hour.
func (h *Host) remote(ctx context.Context, repo forge.Repo) (workspace.Remote, error) {
	first, err := h.Remote(ctx, repo)
	if err != nil {
		return workspace.Remote{}, err
	}
	w := workspace.Remote{URL: first.URL, CAFile: h.CAFile, Proxy: h.Proxy}
	if first.Password != "" {
		w.Credential = func(ctx context.Context) (workspace.Credential, error) {
			now, err := h.Remote(ctx, repo)
			return workspace.Credential{Username: now.User, Password: now.Password}, err
		}
	}
	return w, nil
}

// openHosted opens the workspace of a run on a forge. Where there is one
// already, nothing is asked of the forge: an interrupted run goes on while it is
// down.
func (r *run) openHosted(ctx context.Context, dir string) (err error) {
	p, decided, err := readPlace(r.ledger.Dir())
	if err != nil {
		return err
	}
	create := workspace.CreateOptions{Dir: dir, Box: r.box(), Rest: r.beside.still, Hold: r.ledger.WorkLock(), Now: r.Now}
	if _, serr := os.Stat(dir); serr == nil && decided {
		create.Source, create.Branch, create.Commit = &workspace.Source{}, p.Branch, p.Base
		r.ws, err = workspace.Create(ctx, create)
	} else {
		p, err = r.cloneHosted(ctx, p, decided, create)
	}
	if err != nil {
		return err
	}
	r.place = p
	r.report.Branch = p.Branch
	return nil
}

// cloneHosted decides where the work goes on, where that is not decided yet, and
// clones the repository from its mirror.
func (r *run) cloneHosted(ctx context.Context, p place, decided bool, create workspace.CreateOptions) (place, error) {
	key := r.ledger.Metadata().TaskKey
	remote, err := r.Host.remote(ctx, forge.RepoOf(key))
	if err != nil {
		return p, err
	}
	from := p.Onto
	if !decided {
		it, err := r.item(ctx)
		if err != nil {
			return p, err
		}
		p = place{Onto: it.Repository.DefaultBranch, URL: it.URL, Private: it.Repository.Private}
		from = p.Onto
		if it.Pull != nil {
			if it.Pull.Head.Repo != forge.RepoOf(key) {
				return p, &taskError{i18n.E("agent.other_repository", key.ID, it.Pull.Head.Repo, forge.RepoOf(key))}
			}
			p.Onto, p.Branch, p.Pull, p.There = it.Pull.Base.Name, it.Pull.Head.Name, key.ID, true
			if err := r.alone(ctx, p.Branch, closed(key, it.Body)...); err != nil {
				return p, err
			}
		} else if p.Branch, p.There, err = r.again(ctx); err != nil {
			return p, err
		}
	}
	if p.There {
		from = p.Branch
	}
	src, err := r.Host.Mirrors.Source(ctx, remote, from)
	if err != nil {
		return p, err
	}
	defer func() { _ = src.Close() }()
	if !decided {
		p.Base = src.Head
		if p.There {
			if p.Trusted, err = src.Fork(ctx, p.Onto); err != nil {
				return p, err
			}
		}
		if p.Branch == "" {
			if p.Branch, err = workspace.FreeBranch(ctx, src, workspace.BranchName(r.BranchPattern, key.ID, r.ledger.Metadata().Title)); err != nil {
				return p, err
			}
		}
		if err := r.writePlace(p); err != nil {
			return p, err
		}
	}
	create.Source, create.Branch, create.Commit = src, p.Branch, p.Base
	r.ws, err = workspace.Create(ctx, create)
	return p, err
}

// item is the issue or pull request of the run, read once.
func (r *run) item(ctx context.Context) (forge.Item, error) {
	if r.asked == nil {
		it, err := r.Host.Item(ctx, r.ledger.Metadata().TaskKey)
		if err != nil {
			return it, err
		}
		r.asked = &it
	}
	return *r.asked, nil
}
