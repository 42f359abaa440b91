package delivery

import (
	"context"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Host is where a run's task lies, with what its settings say.
type Host struct {
	forge.Tracker
	Code    forge.CodeHost // nil where branches go into Repository, and nothing is proposed
	Mirrors *workspace.Mirrors
	// Repository is the path of a repository of this machine; "" where Code has it.
	Repository string
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

// May reports whether a person may ask for work in a repository. Bots never do.
func (h *Host) May(ctx context.Context, repo forge.Repo, p forge.Person) (bool, error) {
	if p.Bot {
		return false, nil
	}
	have, err := h.Permission(ctx, repo, p)
	return err == nil && have >= h.Least, err
}

// remote is the repository as git finds it; the login is asked for anew each
// time, since tokens live for an hour.
func (h *Host) remote(ctx context.Context, repo forge.Repo) (workspace.Remote, error) {
	first, err := h.Code.Remote(ctx, repo)
	if err != nil {
		return workspace.Remote{}, err
	}
	w := workspace.Remote{URL: first.URL, CAFile: h.CAFile, Proxy: h.Proxy}
	if first.Password != "" {
		w.Credential = func(ctx context.Context) (workspace.Credential, error) {
			now, err := h.Code.Remote(ctx, repo)
			return workspace.Credential{Username: now.User, Password: now.Password}, err
		}
	}
	return w, nil
}

// source is the repository as it is to be cloned: at a branch, or, on this machine, at
// what is checked out.
func (h *Host) source(ctx context.Context, repo forge.Repo, branch string) (*workspace.Source, error) {
	if h.Code == nil {
		return workspace.Inspect(ctx, h.Repository, workspace.InspectOptions{NoStatus: true})
	}
	remote, err := h.remote(ctx, repo)
	if err != nil {
		return nil, err
	}
	src, err := h.Mirrors.Source(ctx, remote, branch)
	return src, named(err, remote, repo)
}

// fetchHead has work start from what a ref of the repository leads to.
func (h *Host) fetchHead(ctx context.Context, repo forge.Repo, src *workspace.Source, ref string) error {
	remote, err := h.remote(ctx, repo)
	if err != nil {
		return err
	}
	return named(src.FetchHead(ctx, remote, ref), remote, repo)
}

// HostOf is where the task of a context lies, and what was ordered.
func (s *Service) HostOf(m contextstore.Metadata) (*Host, order.Order, error) {
	o, err := order.Parse(m)
	if err != nil {
		return nil, o, err
	}
	source := m.TaskKey.Source
	if k, hosted := o.Hosted(); hosted {
		source = k.Source
	}
	h := s.Hosts[source]
	if o.ByHand() {
		h = s.ByHand(m, o)
	}
	if h == nil {
		err = i18n.E("agent.no_host", order.Ref(m.TaskKey), m.TaskKey.Source)
	}
	return h, o, err
}

// hostOf is HostOf for the run of an effect.
func (s *Service) hostOf(uuid string) (*Host, task.Key, error) {
	m, err := s.Store.Metadata(uuid)
	if err != nil {
		return nil, task.Key{}, err
	}
	h, o, err := s.HostOf(m)
	key := m.TaskKey.Item()
	if k, hosted := o.Hosted(); hosted {
		key = k
	}
	return h, key, err
}
