package delivery

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// deliverBranch delivers a branch; the branch that is there already at its commit is
// the delivery's own marker.
func (s *Service) deliverBranch(ctx context.Context, uuid string, h *Host, key task.Key, p pushEffect) (string, error) {
	ws, err := s.openWorkspace(ctx, uuid)
	if errors.Is(err, fs.ErrNotExist) {
		err = s.elsewhere(uuid, err)
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = ws.Close() }()
	head, err := ws.Head(ctx)
	if err != nil {
		return "", err
	}
	if head != p.Commit {
		return "", i18n.E("agent.not_the_commit", p.Branch, s.Store.WorkspaceDir(uuid), Short(head), Short(p.Commit))
	}
	came := p.Branch + " " + p.Commit
	if h.Code == nil {
		return came, ws.Deliver(ctx)
	}
	v, err := s.Store.View(uuid)
	if err != nil {
		return "", err
	}
	at, _, err := readPlace(v.Dir)
	if err != nil {
		return "", err
	}
	return came, h.push(ctx, key, at, ws, false)
}

// elsewhere says on which machine the workspace lies that is missing here.
func (s *Service) elsewhere(uuid string, missing error) error {
	v, err := s.Store.View(uuid)
	if here, herr := os.Hostname(); err != nil || herr != nil || v.State.Hostname == "" || v.State.Hostname == here {
		return missing
	}
	return i18n.E("effects.elsewhere", v.State.Hostname, missing)
}

// deliverProposal delivers a pull request: one, as a draft, ready where it was
// verified.
func (s *Service) deliverProposal(ctx context.Context, uuid string, h *Host, key task.Key, p pullEffect) (string, error) {
	if _, why, lost, err := s.came(ctx, uuid); err != nil {
		return "", err
	} else if lost == EffectPush {
		return NotDelivered + why, nil // there is no branch to propose
	}
	if newer, err := s.superseded(ctx, uuid, key, p.Head); err != nil || newer != "" {
		return newer, err
	}
	it, err := h.Code.Propose(ctx, forge.RepoOf(key), forge.Proposal{Head: p.Head, Base: p.Base, Title: p.Title, Body: p.Body, Marker: uuid, Draft: true})
	if err != nil {
		return "", s.retryInvalid(ctx, uuid, err)
	}
	if !it.Open || it.Pull == nil || it.Pull.Marker == "" { // people have decided about it already, or made it theirs
		return it.URL, nil
	}
	if p.Reviewer.Login != "" {
		if err := h.Code.RequestReview(ctx, it.Key, []forge.Person{p.Reviewer}); err != nil && !optional(err) {
			return "", err
		}
	}
	if p.Ready {
		if err := h.Code.Ready(ctx, it.Key); err != nil && !optional(err) {
			return "", err
		}
	}
	return it.URL, nil
}

// refusedMark is the mark of when a forge first refused a run's pull request as
// invalid.
const refusedMark = "pull_refused"

// refusedTime is how long a pull request that is refused as invalid is tried
// again: a forge that has just taken a branch may not know it everywhere yet.
const refusedTime = 10 * time.Minute

// retryInvalid returns the error of a pull request that was refused: a *retryError for
// refusedTime after the first refusal as forge.Invalid, err itself after that and for
// every other kind.
func (s *Service) retryInvalid(ctx context.Context, uuid string, err error) error {
	if !forge.Is(err, forge.Invalid) {
		return err
	}
	mark, merr := s.Store.MarkOnce(ctx, uuid, refusedMark, func() string { return s.Now().UTC().Format(time.RFC3339) })
	if merr != nil {
		return merr
	}
	if since, perr := time.Parse(time.RFC3339, mark); perr == nil && s.Now().Sub(since) < refusedTime {
		return &retryError{s.Lang.Error(err)}
	}
	return err
}

// deliverComment delivers a comment, once: it bears its key.
func (s *Service) deliverComment(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	c, err := readEffect[commentEffect](e)
	if err != nil {
		return "", err
	}
	if c.Thread != "" {
		return s.answer(ctx, uuid, e.Key, c)
	}
	return s.post(ctx, uuid, e.Key, c.Body)
}

// answer delivers an answer to a remark: not where the branch never arrived that it speaks of,
// nor where people have settled the remark.
func (s *Service) answer(ctx context.Context, uuid, key string, c commentEffect) (string, error) {
	h, item, err := s.hostOf(uuid)
	if err != nil {
		return "", err
	}
	if _, why, lost, err := s.came(ctx, uuid); err != nil {
		return "", err
	} else if lost == EffectPush {
		return NotDelivered + why, nil
	}
	host, ok := h.Tracker.(forge.Threads)
	if !ok {
		return "", i18n.E("agent.no_host", item.String(), item.Source)
	}
	said, err := host.Reply(ctx, item, c.Thread, key, c.Body)
	if forge.Is(err, forge.Gone) || forge.Is(err, forge.NotFound) || optional(err) {
		return NotDelivered + s.Lang.Error(err), nil
	}
	return said.URL, err
}

// post delivers what is said about a run on a forge: in its one comment, which is
// edited from stage to stage. What came of the effects before it is added. A file
// is read from its end: each stage is a comment of its own there.
func (s *Service) post(ctx context.Context, uuid, key, text string) (string, error) {
	h, item, err := s.hostOf(uuid)
	if err != nil {
		return "", err
	}
	v, err := s.Store.View(uuid)
	if err != nil {
		return "", err
	}
	stage, marker := strings.TrimPrefix(key, uuid+"."), uuid
	if h.Code == nil {
		marker = key
	}
	is := strings.HasPrefix(stage, string(v.Status()))
	if strings.HasPrefix(stage, questionStage) { // a comment of its own, so that people are notified
		is, marker = v.Status() == task.AwaitingApproval, key[:strings.LastIndexByte(key, '.')]
	}
	if !is {
		return "what came after says more", nil
	}
	if marker != uuid {
		c, err := h.Post(ctx, item, marker, text)
		return c.URL, err
	}
	url, why, lost, err := s.came(ctx, uuid)
	if err == nil && lost != "" {
		text, err = s.undelivered(lost, why, text)
	}
	if err != nil {
		return "", err
	}
	if url != "" && !item.Proposed() {
		shown, folded, folds := strings.Cut(text, "\n<details>") // a line that only ours begin
		text = shown + "\n" + s.Lang.T("agent.comment_"+task.TypeProposed(item.Source), url) + "\n"
		if folds {
			text += "\n<details>" + folded
		}
	}
	if draft, left, err := Onward(ctx, s.Store, v); err != nil {
		return "", err
	} else if left {
		text = s.Lang.T("agent.comment_left", draft.Number()) + "\n\n" + text
	}
	c, err := h.Post(ctx, item, uuid, text)
	return c.URL, err
}

// undelivered puts above what is said of a run that its work did not arrive: who
// reads on may take the rest for a success.
func (s *Service) undelivered(kind, why, text string) (string, error) {
	key := "agent.comment_undelivered"
	if kind == EffectPull {
		key = "agent.comment_not_proposed"
	}
	said, _, err := s.Rules.Filter.Clean(broker.Markdown, s.Lang.T(key, s.Public(why))) // a stranger's words
	return said + "\n\n" + text, err
}

// CommentMeanwhile says on a run's item what its comment will say, and why the
// branch or the pull request is not there yet.
func (s *Service) CommentMeanwhile(ctx context.Context, uuid string, e contextstore.Effect, why error) error {
	c, err := readEffect[commentEffect](e)
	if err != nil {
		return err
	}
	m, err := s.Store.Metadata(uuid)
	if err != nil || order.ByHand(m) || c.Thread != "" {
		return err // who waits at a terminal is told there
	}
	_, err = s.post(ctx, uuid, e.Key, c.Body+"\n"+s.Store.Redact(s.Lang.T("agent.comment_meanwhile", s.Public(s.Lang.Error(why))))+"\n")
	return err
}
