package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"toritsugi/internal/app"
	"toritsugi/internal/approval"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

type approvalsCmd struct {
	List  approvalsListCmd  `cmd:"" default:"withargs" help:"${approvals_list_help}"`
	Show  approvalsShowCmd  `cmd:"" help:"${approvals_show_help}"`
	Grant approvalsGrantCmd `cmd:"" help:"${approvals_grant_help}"`
	Deny  approvalsDenyCmd  `cmd:"" help:"${approvals_deny_help}"`
	Auto  approvalsAutoCmd  `cmd:"" help:"${approvals_auto_help}"`
}

// approvals opens the proposals for f.
func (p place) approvals(c *console, f func(ctx context.Context, a *app.Approvals) error) error {
	return opened(c, p, app.OpenApprovals, f)
}

// opened opens what is of a place for f, and closes it.
func opened[T io.Closer](c *console, p place, open func(ctx context.Context, env app.Env, base, config string) (T, error), f func(context.Context, T) error) error {
	env, err := c.env(c.note)
	if err != nil {
		return err
	}
	ctx := context.Background()
	a, err := open(ctx, env, p.BaseDir, p.Config)
	if err != nil {
		return err
	}
	return errors.Join(f(ctx, a), a.Close())
}

// json prints an object for programs in one line.
func (c *console) json(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// shownApproval is a proposal for programs.
type shownApproval struct {
	approval.Proposal
	Hash        string                `json:"hash"`
	State       approval.State        `json:"state"`
	Application *approval.Application `json:"application,omitempty"`
	Diff        string                `json:"diff,omitempty"`
}

type approvalsListCmd struct {
	JSON  bool `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Run lists what waits, in all contexts that the user may see.
func (l approvalsListCmd) Run(c *console) error {
	return l.approvals(c, func(ctx context.Context, a *app.Approvals) error {
		all, err := a.Waiting(ctx, a.Who)
		if err != nil {
			return err
		}
		if l.JSON {
			for _, job := range all {
				if err := c.json(shownApproval{Proposal: job.Proposal, Hash: job.Short(), State: job.State}); err != nil {
					return err
				}
			}
			return nil
		}
		if len(all) == 0 {
			c.nothing("cli.no_approvals", a.Store.BaseDir)
			return nil
		}
		for _, job := range all {
			kinds := make([]string, len(job.Risks))
			for i, r := range job.Risks {
				kinds[i] = string(r.Kind)
			}
			c.say("cli.approval_line", job.Job, job.Short(), redact.Printable(job.Title), len(job.Files), cmp.Or(strings.Join(kinds, ","), "-"), when(job.State.Expires))
		}
		c.say("cli.approval_show")
		return nil
	})
}

// nothing says that there is nothing to list, and where that was looked for: the
// configuration of another directory may name another base directory.
func (c *console) nothing(key, base string) {
	c.say(key)
	c.say("ops.looked_in", redact.Printable(base))
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

type approvalsShowCmd struct {
	Job   string `arg:"" help:"${job_help}"`
	JSON  bool   `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Run shows one proposal, its diff and how far it is.
func (s approvalsShowCmd) Run(c *console) error {
	return s.approvals(c, func(ctx context.Context, a *app.Approvals) error {
		job, err := a.Find(ctx, s.Job, a.Who)
		if err != nil {
			return usage(err)
		}
		request, err := a.Request(c.lang, job)
		if err != nil {
			return err
		}
		end, err := approval.ReadApplication(job.Dir, job.Job)
		if err != nil {
			return err
		}
		if s.JSON {
			return c.json(shownApproval{Proposal: job.Proposal, Hash: job.Short(), State: job.State, Application: &end, Diff: request.Diff})
		}
		st := job.State
		text := approval.Markdown(c.lang, request, "tori approvals grant", "tori approvals deny") + "\n" + c.lang.T("cli.approval_state", c.lang.T("approval.status_"+string(st.Status)), st.Approver, st.Reason) + "\n"
		if end.Begun || st.Status.Approved() {
			text += end.Outcome(c.lang) + "\n"
		}
		_, err = fmt.Fprint(c.out, text+"\n"+request.Diff)
		return err
	})
}

type approvalsGrantCmd struct {
	Job   string `arg:"" help:"${job_help}"`
	Hash  string `arg:"" help:"${approval_hash_help}"`
	place `embed:""`
}

// Run grants a proposal.
func (g approvalsGrantCmd) Run(c *console) error {
	return g.approvals(c, func(ctx context.Context, a *app.Approvals) error {
		return c.decide(ctx, a, approval.Decision{Job: g.Job, Hash: g.Hash, Grant: true}, "cli.approval_granted")
	})
}

type approvalsDenyCmd struct {
	Job    string `arg:"" help:"${job_help}"`
	Hash   string `arg:"" optional:"" help:"${approval_hash_help}"`
	Reason string `placeholder:"TEXT" help:"${approval_reason_help}"`
	place  `embed:""`
}

// Run denies a proposal.
func (d approvalsDenyCmd) Run(c *console) error {
	return d.approvals(c, func(ctx context.Context, a *app.Approvals) error {
		return c.decide(ctx, a, approval.Decision{Job: d.Job, Hash: d.Hash, Reason: d.Reason}, "cli.approval_denied")
	})
}

// decide puts a decision of the user down. One about another hash shows the request.
func (c *console) decide(ctx context.Context, a *app.Approvals, d approval.Decision, done string) error {
	d.By, d.How, d.Where = a.Actor, "cli", "terminal"
	job, err := a.Find(ctx, d.Job, a.Who)
	if err == nil {
		d.Job = job.Run
		job, err = a.Decide(ctx, d)
	}
	var other *approval.OtherHashError
	if errors.As(err, &other) {
		if request, rerr := a.Request(c.lang, other.Job); rerr == nil {
			_, _ = fmt.Fprintln(c.err, approval.Markdown(c.lang, request, "tori approvals grant", "tori approvals deny"))
		}
	}
	if err != nil {
		return usage(err)
	}
	c.say(done, job.Job)
	return nil
}

type approvalsAutoCmd struct {
	Off     string `arg:"" optional:"" enum:",off" default:"" help:"${auto_off_help}"`
	Session string `arg:"" optional:"" help:"${auto_session_help}"`
	JSON    bool   `name:"json" help:"${json_help}"`
	place   `embed:""`
}

// Run shows where automatic approval is on, or ends it.
func (o approvalsAutoCmd) Run(c *console) error {
	return o.approvals(c, func(ctx context.Context, a *app.Approvals) error {
		if o.Off != "" {
			n, err := a.Off(ctx, o.Session, a.Actor)
			if err == nil {
				c.say("cli.auto_off", n)
			}
			return err
		}
		all, err := a.Allowed()
		if err != nil {
			return err
		}
		if len(all) == 0 && !o.JSON {
			c.nothing("cli.no_auto", a.Store.BaseDir)
		}
		for _, g := range all {
			if o.JSON {
				if err := c.json(g); err != nil {
					return err
				}
				continue
			}
			types := make([]string, len(g.Types))
			for i, t := range g.Types {
				types[i] = string(t)
			}
			c.say("cli.auto_line", g.Session, when(g.Until.Time), strings.Join(g.Paths, ","), strings.Join(types, ","), strings.Join(g.Tools, ","), g.By)
		}
		return nil
	})
}

// shownRollback is what came of a rollback, for programs.
type shownRollback struct {
	shownApproval
	Closed string `json:"closed,omitempty"` // address of a draft
}

type rollbackCmd struct {
	Job   string `arg:"" help:"${job_help}"`
	JSON  bool   `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Run takes an applied proposal back, or asks for that.
func (r rollbackCmd) Run(c *console) error {
	return r.approvals(c, func(ctx context.Context, a *app.Approvals) error {
		done, err := a.Rollback(ctx, r.Job)
		switch {
		case err != nil:
			return err
		case r.JSON:
			err = c.json(shownRollback{shownApproval{Proposal: done.Job.Proposal, Hash: done.Job.Short(), State: done.Job.State, Application: &done.Application}, done.Closed})
		case done.Closed != "":
			c.say("cli.rollback_closed", r.Job, done.Closed)
		case done.Application.Applied():
			c.say("cli.rollback_done", r.Job, done.Job.Job, done.Application.Outcome(c.lang))
		}
		switch {
		case err != nil || done.Application.Applied() || done.Closed != "":
			return err
		case done.Job.State.Status == approval.Pending && done.Job.Deliver == approval.PullRequest:
			return &exitError{exitWaiting, i18n.E("cli.rollback_proposed", done.Job.Job, done.Job.Job)}
		case done.Job.State.Status == approval.Pending:
			return &exitError{exitWaiting, i18n.E("cli.rollback_waits", done.Job.Job, done.Job.Job, r.Job)}
		}
		return errors.New(done.Application.Outcome(c.lang))
	})
}
