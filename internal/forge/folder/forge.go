package folder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Options say which folder is the forge.
type Options struct {
	// Dir holds the issues: its *.md files, hidden ones, links and directories
	// apart.
	Dir string
	// Issue is the one issue of a forge without a folder (OpenIssue).
	Issue  *Issue
	Repo   forge.Repo       // that the issues are about
	Branch string           // the repository's default branch
	Login  string           // under which we write comments, "" is "tori"
	Owner  string           // who asks and speaks where nobody is named
	Now    func() time.Time // nil is time.Now
}

// Forge is a folder of issues. Who can write to the files may do everything, so
// everybody is an admin here; an issue is open as long as its file is there.
type Forge struct {
	o Options

	mu    sync.Mutex
	files map[string]*entry // by path, as of the last look
	said  map[string]*said  // what was seen of comments files, by path
	marks Marks
	now   func() time.Time
}

var _ interface {
	forge.Tracker
	forge.Progress
	forge.Images
} = (*Forge)(nil)

// entry is what is kept of an issue's file; the body is read again when asked for.
type entry struct {
	path   string
	id     string
	author string
	labels []string
	since  map[string]time.Time // it bears them, in lower case
	stamp  stamp
	err    error // why it cannot be read
}

// stamp tells that a file is still the one it was.
type stamp struct {
	inode uint64
	size  int64
	mtime time.Time
}

func stampOf(st fs.FileInfo) stamp {
	s := stamp{size: st.Size(), mtime: st.ModTime()}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		s.inode = sys.Ino
	}
	return s
}

// login is the name under which comments are written that have no other.
const login = "tori"

// Open returns the forge of a folder, which must be there.
func Open(o Options) (*Forge, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(dir)
	if err != nil || !st.IsDir() {
		return nil, i18n.E("folder.no_dir", dir)
	}
	o.Dir = dir
	return open(o), nil
}

// OpenIssue returns the forge of one issue, whose file may lie anywhere and is read
// when it is asked for. An issue without a Path is what Issue says, and nobody can speak
// of it: a message.
func OpenIssue(o Options) *Forge {
	o.Dir = o.Issue.Path
	return open(o)
}

func open(o Options) *Forge {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Login = Comment{Author: o.Login}.author()
	return &Forge{o: o, now: o.Now, marks: brief{}, files: map[string]*entry{}, said: map[string]*said{}}
}

// Source is "folder".
func (f *Forge) Source() string { return "folder" }

// Repo is the repository that the issues are about.
func (f *Forge) Repo() forge.Repo { return f.o.Repo }

// Self is a name without a number.
func (f *Forge) Self(context.Context) (forge.Person, error) {
	return forge.Person{Login: f.o.Login, Bot: true}, nil
}

// failed is the error of a call about something.
func failed(kind forge.Kind, err error) error { return &forge.Error{Kind: kind, Err: err} }

// Repositories implements forge.Tracker: there is one.
func (f *Forge) Repositories(ctx context.Context, patterns []string) ([]forge.Repository, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var found []forge.Repository
	var unseen []string
	for _, p := range patterns {
		r, ok := forge.ParseRepo(p)
		switch {
		case !ok || r.Owner != f.o.Repo.Owner || r.Name != f.o.Repo.Name && r.Name != "*":
			unseen = append(unseen, p)
		case found == nil:
			found = append(found, f.repository())
		}
	}
	if unseen != nil {
		return found, failed(forge.NotFound, i18n.E("folder.no_repo", f.o.Repo, strings.Join(unseen, ", ")))
	}
	return found, nil
}

func (f *Forge) repository() forge.Repository {
	return forge.Repository{Repo: f.o.Repo, DefaultBranch: f.o.Branch, Private: true}
}

// at checks the repository and the context of a call.
func (f *Forge) at(ctx context.Context, r forge.Repo) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("folder of %s: %w", f.o.Repo, err)
	}
	if r != f.o.Repo {
		return failed(forge.NotFound, i18n.E("folder.no_repo", f.o.Repo, r))
	}
	return nil
}

// look lists the issues by name; only what changed since the last look is read.
// The caller holds mu.
func (f *Forge) look(ctx context.Context) ([]*entry, error) {
	if is := f.o.Issue; is != nil {
		return []*entry{{path: is.Path, id: is.ID, author: is.Author, labels: is.Labels}}, nil
	}
	names, err := os.ReadDir(f.o.Dir)
	if err != nil {
		return nil, failed(forge.Unavailable, i18n.E("folder.unreadable", f.o.Dir, err))
	}
	all := make([]*entry, 0, len(names))
	files := make(map[string]*entry, len(names))
	byID := map[string]string{}
	for _, n := range names {
		if !n.Type().IsRegular() || strings.HasPrefix(n.Name(), ".") || !strings.HasSuffix(n.Name(), ".md") || strings.HasSuffix(n.Name(), commentsSuffix) || strings.HasSuffix(n.Name(), progressSuffix) {
			continue
		}
		st, err := n.Info()
		if err != nil {
			continue // it is gone by now
		}
		path := filepath.Join(f.o.Dir, n.Name())
		e := f.files[path]
		if e == nil || e.stamp != stampOf(st) {
			if e, err = f.readEntry(ctx, path, stampOf(st)); err != nil {
				return nil, err
			}
		}
		files[path] = e
		if other, taken := byID[e.id]; taken && e.err == nil {
			e = &entry{path: path, id: e.id, err: i18n.E("folder.same_id", other, path, e.id)}
		} else if e.err == nil {
			byID[e.id] = path
		}
		all = append(all, e)
	}
	f.files = files
	return all, nil
}

func (f *Forge) readEntry(ctx context.Context, path string, s stamp) (*entry, error) {
	issue, err := ReadIssue(path)
	if err != nil {
		return &entry{path: path, stamp: s, err: err}, nil
	}
	since, err := f.bearsSince(ctx, issue.ID, issue.Labels, s.mtime)
	return &entry{path: path, id: issue.ID, author: issue.Author, labels: issue.Labels, since: since, stamp: s}, err
}

// find returns the file of an item.
func (f *Forge) find(ctx context.Context, k task.Key) (*entry, error) {
	if err := f.at(ctx, forge.RepoOf(k)); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	var bad error
	for _, e := range all {
		if e.id == k.ID && e.err == nil {
			return e, nil
		}
		if e.err != nil && (e.id == k.ID || idOfName(filepath.Base(e.path)) == k.ID) {
			bad = e.err
		}
	}
	if bad != nil {
		return nil, failed(forge.Invalid, bad)
	}
	kind, known := forge.NotFound, map[string]time.Time(nil)
	if err := f.recall(ctx, k.ID, labelsMark, &known); err != nil {
		return nil, err
	}
	if known != nil {
		kind = forge.Gone
	}
	return nil, failed(kind, i18n.E("folder.no_issue", f.o.Dir, k.ID))
}

// findToWrite is find for what is to be written beside an issue, or in it: one that
// cannot be read, perhaps because somebody is at it, is waited for.
func (f *Forge) findToWrite(ctx context.Context, k task.Key) (*entry, error) {
	e, err := f.find(ctx, k)
	if forge.Is(err, forge.Invalid) {
		err = failed(forge.Unavailable, err)
	}
	return e, err
}

// Triggered implements forge.Tracker: the trigger is a label of the front matter.
func (f *Forge) Triggered(ctx context.Context, r forge.Repo, t forge.Trigger) ([]forge.Item, error) {
	if err := f.at(ctx, r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	all, err := f.look(ctx)
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var items []forge.Item
	var bad []error
	for _, e := range all {
		if e.err != nil {
			bad = append(bad, e.err)
			continue
		}
		if t.Label == "" || !(forge.Item{Labels: e.labels}).Has(t.Label) {
			continue
		}
		i, err := f.item(e)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		items = append(items, i)
	}
	slices.SortStableFunc(items, func(a, b forge.Item) int {
		return cmp.Or(a.Updated.Compare(b.Updated), strings.Compare(a.Key.ID, b.Key.ID))
	})
	if bad != nil {
		return items, failed(forge.Invalid, i18n.E("folder.some_unreadable", len(bad), f.o.Dir, bad[0]).Of(errors.Join(bad...)))
	}
	return items, nil
}

func (f *Forge) item(e *entry) (forge.Item, error) {
	issue := f.o.Issue
	if e.path != "" {
		var err error
		if issue, err = ReadIssue(e.path); err != nil {
			return forge.Item{}, err
		}
	}
	return forge.Item{
		Key:   task.Key{Source: "folder", Owner: f.o.Repo.Owner, Repo: f.o.Repo.Name, Type: task.TypeIssue, ID: e.id},
		Title: issue.Title, Body: issue.Body, Author: forge.Person{Login: issue.Author}, Labels: issue.Labels,
		Open: true, Created: e.stamp.mtime, Updated: e.stamp.mtime, URL: e.path,
	}, nil
}

// Item implements forge.Tracker.
func (f *Forge) Item(ctx context.Context, k task.Key) (forge.Item, error) {
	e, err := f.find(ctx, k)
	if err != nil {
		return forge.Item{}, err
	}
	i, err := f.item(e)
	if err != nil {
		return forge.Item{}, failed(forge.Invalid, err)
	}
	i.Repository = f.repository()
	return i, nil
}

// Asked implements forge.Tracker: a file does not tell who put a label in it, so
// it was its author, when the label was seen there first.
func (f *Forge) Asked(ctx context.Context, k task.Key, t forge.Trigger) (forge.Asked, error) {
	e, err := f.find(ctx, k)
	if err != nil {
		return forge.Asked{}, err
	}
	at, on := e.since[strings.ToLower(t.Label)]
	if !on {
		return forge.Asked{}, forge.ErrNotAsked
	}
	return forge.Asked{By: forge.Person{Login: cmp.Or(e.author, f.o.Owner)}, At: at, Event: strconv.FormatInt(at.UnixNano(), 10)}, nil
}

// Permission is Admin for everyone: the files' own permissions decide.
func (f *Forge) Permission(ctx context.Context, r forge.Repo, _ forge.Person) (forge.Permission, error) {
	if err := f.at(ctx, r); err != nil {
		return forge.None, err
	}
	return forge.Admin, nil
}

// EnsureLabels has nothing to do: a label is there when a file names it.
func (f *Forge) EnsureLabels(ctx context.Context, r forge.Repo, _ []forge.Label) error {
	return f.at(ctx, r)
}
