package conversation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/models"
	"toritsugi/internal/routing"
)

// control carries a command or the press of a button out, without a model. It does not
// wait for a turn of the session.
func (e *Engine) control(ctx context.Context, x session, m channel.Message, k known, cmd routing.Command) error {
	if k.answered() {
		for _, n := range k.posts {
			e.post(ctx, x, n)
			if n.Kind == channel.Decided {
				e.showLastOf(ctx, x, n)
			}
		}
		return nil
	}
	if k.message == nil {
		n := entryOf(m)
		n.Control = true
		if _, err := e.append(ctx, x, n); err != nil {
			return err
		}
	}
	n, err := e.carry(ctx, x, m, cmd) // at once, whatever is being shown
	if n.Kind != channel.Decided {    // which is on record before anything comes of it
		e.postAgain(ctx, x)
	}
	if err != nil {
		n = Entry{Kind: channel.Notice, Content: e.Lang.Error(err), Failed: true}
		if !errors.As(err, new(*i18n.Error)) {
			e.Log.Error("A command failed: "+err.Error(), "session_id", x.ID)
			n.Content = e.Lang.T("conversation.broken", err)
		}
	}
	n.ReplyTo, n.Control, n.Final = m.ID, true, true
	ctx = context.WithoutCancel(ctx)
	if n.Kind != channel.Decided {
		e.tell(ctx, x, n)
		return nil
	}
	e.tell(context.WithValue(ctx, byItself{}, true), x, n) // it is owed until it is shown: what comes of it is shown behind it
	e.Approvals.Told(ctx, n.Job)
	return nil
}

// showLastOf shows what came of a job behind a decision that is shown once more: it stands in the
// place of that.
func (e *Engine) showLastOf(ctx context.Context, x session, n Entry) {
	last, err := e.LastOf(x.ID, n.Job)
	c := e.channel(x.kind)
	if err != nil || c == nil || last.Kind != channel.Decided || last.Key == n.post(x.ID).Key {
		return
	}
	if err := show(ctx, c, last); err != nil {
		e.Log.Warn("Not all that was said of a job is shown: "+err.Error(), "session_id", x.ID)
	}
}

// carry carries a command out and returns what is said to it.
func (e *Engine) carry(ctx context.Context, x session, m channel.Message, cmd routing.Command) (Entry, error) {
	if m.Decision != nil {
		return e.decide(ctx, m, *m.Decision)
	}
	text, err := "", error(nil)
	switch c := cmd.(type) {
	case routing.Approve:
		return e.decide(ctx, m, channel.Decision{Job: c.Job, Hash: c.Hash, Grant: true})
	case routing.Deny:
		return e.decide(ctx, m, channel.Decision{Job: c.Job, Hash: c.Hash, Reason: c.Reason})
	case routing.AutoApprove:
		if e.Approvals == nil {
			return Entry{}, i18n.E("conversation.no_approvals")
		}
		text, err = e.Approvals.Auto(ctx, x.ID, m.User, c)
	case routing.Local:
		if err = e.setLocal(ctx, x, c.On); err == nil {
			text = e.localText(c.On)
		}
	case routing.Repo:
		text, err = e.repo(ctx, x, m.User, c.Name)
	case routing.Jobs:
		text, err = e.jobs(ctx, x.ID)
	case routing.Status:
		text, err = e.statusOf(ctx, x, m.User)
	case routing.Stop:
		text, err = e.halt(ctx, x.ID, c.Job, m.User)
	case routing.Help:
		text = e.help(c.Topic)
	case routing.Work:
		text, err = e.work(ctx, x, c)
	case routing.Show:
		text, err = e.shows(ctx, x, c.What)
	case routing.List:
		text, err = e.list(ctx, x, m.User, c.What)
	case routing.Link:
		text, err = e.link(ctx, m.User, c.Code)
	case routing.Issue:
		return e.issue(ctx, x, m, c)
	case answerTo:
		if e.Issues == nil {
			return Entry{}, i18n.E("conversation.no_issues")
		}
		p, err := e.Issues.Answer(ctx, m)
		return Entry{Kind: channel.Notice, Content: p.Text, Job: p.Job, Question: p.Question}, err
	case routing.Malformed:
		return Entry{}, c.Err
	}
	return Entry{Kind: channel.Notice, Content: text}, err
}

// decide hands a decision to the approvals.
func (e *Engine) decide(ctx context.Context, m channel.Message, d channel.Decision) (Entry, error) {
	if e.Approvals == nil {
		return Entry{}, i18n.E("conversation.no_approvals")
	}
	d.Reason = e.Strict(d.Reason)
	a, err := e.Approvals.Decide(ctx, m, d)
	if err != nil {
		return Entry{}, err
	}
	text := e.Lang.T("conversation.decided_"+a.Status, a.Title, a.Job)
	next := "conversation.denied_next"
	if d.Reason != "" {
		text += "\n" + e.Lang.T("conversation.decided_reason", d.Reason)
		next = "conversation.denied_again"
	}
	if a.Status == "denied" {
		text += "\n" + e.Lang.T(next)
	}
	return Entry{Kind: channel.Decided, Content: text, Job: a.Job, Approval: &a}, nil
}

func (e *Engine) setLocal(ctx context.Context, x session, on bool) error {
	return x.update(ctx, func(s *State) bool {
		changed := s.LocalOnly != on
		s.LocalOnly = on
		return changed
	})
}

// LocalOnly reports whether a session bars clouds now. One that cannot be read does.
func (e *Engine) LocalOnly(sessionID string) bool {
	s, err := e.open(sessionID, kindOf(sessionID)).state()
	return s.LocalOnly || err != nil
}

func (e *Engine) localText(on bool) string {
	if on {
		return e.Lang.T("conversation.local")
	}
	return e.Lang.T("conversation.cloud")
}

// repo sets the session's repository, or says which it is.
func (e *Engine) repo(ctx context.Context, x session, user, name string) (string, error) {
	mine := e.named(x.ID, user)
	if name == "" {
		s, err := x.state()
		if err != nil {
			return "", err
		}
		r, ok := e.repository(x.ID, user, &s)
		if !ok {
			return e.Lang.T("conversation.no_repository", e.joined(names(mine))), nil
		}
		return e.Lang.T("conversation.repository", r.Name, e.joined(names(mine))), nil
	}
	if !slices.ContainsFunc(mine, func(r Repository) bool { return r.Name == name }) {
		return "", i18n.E("conversation.unknown_repository", name, e.joined(names(mine)))
	}
	err := x.update(ctx, func(s *State) bool { s.Repository = name; return true })
	return e.Lang.T("conversation.repository_set", name), err
}

// joined is a list for people.
func (e *Engine) joined(all []string) string {
	if len(all) == 0 {
		return e.Lang.T("conversation.none")
	}
	return strings.Join(all, ", ")
}

// jobs lists what coders work on for the session.
func (e *Engine) jobs(ctx context.Context, id string) (string, error) {
	if e.Jobs == nil {
		return e.Lang.T("conversation.no_job_runs"), nil
	}
	all, err := e.Jobs.List(ctx, id)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return e.Lang.T("conversation.no_job_runs"), nil
	}
	var lines []string
	for _, j := range all {
		lines = append(lines, e.Lang.T("conversation.job_line", j.ID, j.Title, j.State, e.Now().Sub(j.Since).Round(time.Second)))
	}
	return strings.Join(lines, "\n"), nil
}

// status says who works on what in a session, by their aliases.
func (e *Engine) status(ctx context.Context, id string) string {
	var lines []string
	for _, d := range e.working(id) {
		if d.Route != routing.Chat {
			lines = append(lines, e.Lang.T("conversation.role_line", d.Alias, string(d.Route), e.Now().Sub(d.Since).Round(time.Second)))
		}
	}
	if e.Jobs != nil {
		all, err := e.Jobs.List(ctx, id)
		if err != nil {
			e.Log.Warn("The jobs cannot be listed: " + err.Error())
		}
		for _, j := range all {
			role, err := routing.CoderRole(j.Route, e.Set)
			switch {
			case j.Route == "":
				role = j.ID
			case err == nil:
				role = e.Alias(ctx, role)
			}
			lines = append(lines, e.Lang.T("conversation.job_line", role+":", j.Title, j.State, e.Now().Sub(j.Since).Round(time.Second)))
		}
	}
	if len(lines) == 0 {
		return e.Lang.T("conversation.idle")
	}
	return strings.Join(lines, "\n")
}

// statusOf says how the session stands.
func (e *Engine) statusOf(ctx context.Context, x session, user string) (string, error) {
	s, err := x.state()
	if err != nil {
		return "", err
	}
	var lines []string
	if s.LocalOnly {
		lines = append(lines, e.localText(true))
	}
	if r, ok := e.repository(x.ID, user, &s); ok {
		lines = append(lines, e.Lang.T("conversation.repository", r.Name, e.joined(names(e.named(x.ID, user)))))
	}
	if s.OverlayLeft > 0 {
		lines = append(lines, e.Lang.T("conversation.work_left", s.OverlayLeft))
	}
	return strings.Join(append(lines, e.status(ctx, x.ID)), "\n"), nil
}

// halt stops the turn that goes on, or a job: the one that is named, else the only one that is
// worked on.
func (e *Engine) halt(ctx context.Context, id, job, user string) (string, error) {
	if job == "" && e.stopTurn(id, "", errStopped) {
		return e.Lang.T("conversation.stopping"), nil
	}
	if e.Jobs == nil {
		return e.Lang.T("conversation.no_job_runs"), nil
	}
	if job == "" {
		all, err := e.Jobs.List(ctx, id)
		if err != nil {
			return "", err
		}
		all = slices.DeleteFunc(all, func(r Running) bool { return r.Waits })
		switch len(all) {
		case 0:
			return e.Lang.T("conversation.nothing_to_stop"), nil
		case 1:
			job = all[0].ID
		default:
			ids := make([]string, len(all))
			for i, r := range all {
				ids[i] = "/stop " + r.ID + " (" + r.Title + ")"
			}
			return e.Lang.T("conversation.which_to_stop", strings.Join(ids, "\n- ")), nil
		}
	}
	return e.Lang.T("conversation.job_stopping", job), e.Jobs.Stop(ctx, id, job, user)
}

// help lists the commands, or tells of one.
func (e *Engine) help(topic string) string {
	var lines []string
	for _, c := range e.Commands() {
		if topic == "" || strings.TrimPrefix(topic, "/") == c.Name[1:] {
			lines = append(lines, strings.TrimSpace("`"+strings.TrimSpace(c.Name+" "+c.Args)+"` "+c.Help))
		}
	}
	if len(lines) == 0 {
		return e.Lang.T("conversation.no_help", topic)
	}
	return strings.Join(lines, "\n")
}

// work sets the work overlay, or says how long it holds.
func (e *Engine) work(ctx context.Context, x session, c routing.Work) (string, error) {
	if c.Show {
		s, err := x.state()
		if err == nil && s.OverlayLeft > 0 {
			return e.Lang.T("conversation.work_left", s.OverlayLeft), nil
		}
		return e.Lang.T("conversation.work_off"), err
	}
	err := x.update(ctx, func(s *State) bool {
		s.OverlayLeft, s.Overlay = c.Turns, ""
		if c.Turns > 0 {
			s.Overlay = e.prompts.text("overlays/work.md")
		}
		return true
	})
	if c.Turns == 0 {
		return e.Lang.T("conversation.work_off"), err
	}
	return e.Lang.T("conversation.work_on", c.Turns), err
}

// shows says which model answers, or where.
func (e *Engine) shows(ctx context.Context, x session, what string) (string, error) {
	if what == "channel" {
		return e.Lang.T("conversation.channel", string(x.kind), x.ID), nil
	}
	s, err := x.state()
	if err != nil {
		return "", err
	}
	return e.model(ctx, models.Chat, s.LocalOnly), nil
}

// model says in a line which model fills a role. Its alias is told in notices and to who
// asks what everyone does, nowhere else (spec/chat §2).
func (e *Engine) model(ctx context.Context, role string, localOnly bool) string {
	spec, err := e.Models.Spec(ctx, models.Use{Role: role, Route: string(routing.Chat), LocalOnly: localOnly})
	if err != nil {
		return "- " + role + ": " + e.Lang.Error(err)
	}
	return "- " + role + ": " + spec.Name()
}

// list lists models, channels or repositories.
func (e *Engine) list(ctx context.Context, x session, user, what string) (string, error) {
	var lines []string
	switch what {
	case "models":
		s, err := x.state()
		if err != nil {
			return "", err
		}
		for _, role := range []string{models.Chat, models.Worker, "coder", "coder2", models.Coder3} {
			if role == models.Chat || role == models.Worker || e.Set(role) {
				lines = append(lines, e.model(ctx, role, s.LocalOnly))
			}
		}
	case "channels":
		e.mu.Lock()
		for _, k := range sortedKeys(e.channels) {
			lines = append(lines, "- "+string(k))
		}
		e.mu.Unlock()
	default:
		for _, n := range names(e.named(x.ID, user)) {
			lines = append(lines, "- "+n)
		}
	}
	if len(lines) == 0 {
		return e.Lang.T("conversation.none"), nil
	}
	return strings.Join(lines, "\n"), nil
}
