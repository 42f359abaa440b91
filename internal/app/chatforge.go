package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/conversation"
	"toritsugi/internal/delivery"
	"toritsugi/internal/disk"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/workspace"
)

// openChatHosts makes the forges whose repositories conversations are about, where that was
// not done.
func (s *system) openChatHosts(ctx context.Context) error {
	hosted := slices.ContainsFunc(s.cfg.Forges(), func(f config.Forge) bool { return len(f.Repositories) > 0 }) || slices.ContainsFunc(s.cfg.Chat.Repositories, func(r config.ChatRepository) bool { return r.URL != "" })
	if s.hosts != nil || !hosted {
		return nil
	}
	err := s.openHosts(ctx)
	s.mirror()
	return err
}

// mayDeliver says why somebody of a conversation may not have a pull request made in a
// repository of a forge: their account there decides (spec/chat §1).
func (s *system) mayDeliver(ctx context.Context, who, repository string) error {
	source, name, _ := strings.Cut(repository, ":")
	r, _ := forge.ParseRepo(name)
	refuse := func(err error) error { return &approval.NotAllowedError{By: who, Err: err} }
	login, err := s.login(ctx, who, source)
	if err != nil {
		return err
	}
	if login == "" {
		return refuse(i18n.E("approval.not_linked", who, who, source, repository))
	}
	if err := s.openChatHosts(ctx); err != nil {
		return err
	}
	h := s.hosts[source]
	if h == nil || h.Code == nil {
		return refuse(i18n.E("delivery.no_host", repository))
	}
	p, err := h.Code.Person(ctx, r, login)
	may := false
	if err == nil {
		may, err = h.May(ctx, r, p)
	}
	if err != nil && !forge.Is(err, forge.NotFound) {
		return err
	}
	if !may {
		return refuse(i18n.E("approval.not_permitted", who, repository, h.Least.String(), login))
	}
	return nil
}

// tree opens the files of a repository of a forge, as its base branch has them now. They are
// a clone for each commit, which is cleaned away as those of runs are.
func (t *talks) tree(ctx context.Context, r conversation.Repository) (root *os.Root, done func(), err error) {
	src, err := t.deliveryIn(t.shell).OpenHosted(ctx, order.Order{Repo: r.URL, Chat: &order.Chat{Onto: r.Base}})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = src.Close() }()
	sum := sha256.Sum256([]byte(r.URL))
	name := "chat-" + hex.EncodeToString(sum[:6])
	// One process makes a clone; the mirror stays while its source is open.
	lock, err := os.OpenFile(filepath.Join(t.store.MirrorsDir(), name+".clone"), os.O_CREATE|os.O_RDWR, disk.FileMode)
	if err != nil {
		return nil, nil, err
	}
	defer filelock.Close(lock)
	if err := filelock.Wait(ctx, lock, filelock.Whole, filelock.Exclusive); err != nil {
		return nil, nil, err
	}
	w, err := workspace.Create(ctx, workspace.CreateOptions{Source: src.Source, Dir: t.store.WorkspaceDir(name + "-" + src.Head[:12]), Branch: "tori/read", FS: t.fs,
		Box: workspace.Box{Shell: t.shell, MemoryMB: t.cfg.Sandbox.MemoryMB}})
	if err != nil {
		return nil, nil, err
	}
	if root, err = w.Root(); err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	return root, func() { _ = root.Close(); _ = w.Close() }, nil
}

// outbox delivers what jobs of conversations owe, too, where this process speaks with them.
func (t *talks) outbox() *dispatch.Outbox {
	box := t.system.outbox()
	box.Handlers[delivery.EffectTold] = t.deliverTold
	mine := box.Mine
	box.Mine = func(m contextstore.Metadata) bool { return mine(m) || m.TaskKey.Type == "chat" }
	return box
}

// deliverTold tells the people of a conversation what came of a draft, once.
func (t *talks) deliverTold(ctx context.Context, uuid string, _ contextstore.Effect) (string, error) {
	m, err := t.store.Metadata(uuid)
	if err != nil {
		return "", err
	}
	o, err := order.Parse(m)
	if err != nil || o.Chat == nil {
		return "", errors.Join(err, i18n.E("job.no_chat", uuid))
	}
	url, why, err := t.deliveryIn(t.shell).Came(ctx, uuid)
	if err != nil {
		return "", err
	}
	t = t.to(*o.Chat)
	text := t.lang.T("job.drafted", o.Chat.Job, url)
	if why != "" {
		text = t.lang.T("job.not_drafted", o.Chat.Job, why)
	}
	return "", t.engine.Post(ctx, channel.Post{SessionID: o.Chat.Session, ReplyTo: o.Chat.ReplyTo, Key: o.Chat.Job + "/draft", Kind: channel.Notice, Text: text, Job: o.Chat.Job})
}
