package conversation

import (
	"context"
	"errors"
	"strings"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
)

// coder makes a job of what is to be coded: the turn ends when it is accepted. shown is
// the task as it is stored, whole the same for the coder.
func (t *turn) coder(ctx context.Context, route routing.Route, shown, whole string) {
	e := t.e
	s, err := t.allowed(route, false)
	if err != nil {
		t.refuse(ctx, route)
		return
	}
	repo, ok := e.repository(t.x.ID, t.m.User, &s)
	if !ok {
		t.route = routing.Chat
		t.frame("repository", map[string]string{"{names}": strings.Join(names(e.named(t.x.ID, t.m.User)), ", ")})
		t.final(ctx)
		return
	}
	t.clock(func(l *routing.Loop) { t.stop = l.Begin(route, whole) })
	if t.stop != "" {
		t.final(ctx)
		return
	}
	id, alias, err := t.start(ctx, route, repo, &s, whole)
	if err != nil && ctx.Err() != nil {
		t.interrupted(ctx)
		return
	}
	if err != nil {
		t.failed(ctx, route, err)
		t.tell(ctx, Entry{Kind: channel.Notice, Content: e.Lang.Error(err), Final: true, Failed: true})
		return
	}
	if errors.Is(context.Cause(ctx), errWithdrawn) {
		if err := e.Jobs.Stop(context.WithoutCancel(ctx), t.x.ID, id, t.m.User); err != nil {
			e.Log.Error(err.Error(), "session_id", t.x.ID)
		}
		return
	}
	t.span.Text("tori.job", id)
	t.stop = routing.StopDone
	t.clock(func(l *routing.Loop) { l.Done() })
	text := e.prompts.notice("start", alias, shown) + "\n" + e.Lang.T("conversation.job", id)
	if d := t.declaration(&s); d != "" {
		text = d + "\n" + text
	}
	t.tell(ctx, Entry{Kind: channel.Notice, Content: text, Route: t.route, Job: id, Final: true})
	t.settle(ctx)
}

// start hands a job over.
func (t *turn) start(ctx context.Context, route routing.Route, repo Repository, s *State, task string) (id, alias string, err error) {
	e := t.e
	role, err := routing.CoderRole(route, e.Set)
	if err != nil {
		return "", "", err
	}
	if e.Jobs == nil {
		return "", "", i18n.E("conversation.no_jobs")
	}
	in, err := t.input(route, task, nil)
	if err != nil {
		return "", "", err
	}
	in.Tooling.RepoRead = true                              // a job's tools read the repository
	in.Limits.MaxQuestions, in.Limits.MaxNextActions = 0, 0 // it answers by a proposal alone
	prompt, err := e.prompts.worker(route)
	if err != nil {
		return "", "", err
	}
	t.record(ctx)
	id, err = e.Jobs.Start(ctx, Job{SessionID: t.x.ID, Channel: t.x.kind, User: t.m.User, ReplyTo: t.m.ID, Route: route, Role: role, Repository: repo,
		LocalOnly: s.LocalOnly, Task: task, Input: in, Prompt: prompt})
	return id, e.Alias(ctx, role), err
}

func names(all []Repository) (out []string) {
	for _, r := range all {
		out = append(out, r.Name)
	}
	return out
}
