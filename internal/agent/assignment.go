package agent

import (
	"context"
	"slices"

	"toritsugi/internal/broker"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
)

// assignment is what a run is about, wherever it was asked for.
type assignment struct {
	id, title, body, author string
	labels                  []string
	outsider                bool // the author may not ask for work in the repository
	changed                 bool // since work on it was asked for, by who may not ask
	continues               bool // the work of an earlier run is on the branch
	said                    dialogue.Thread
	pull                    *forge.Pull // nil for an issue
	issue                   bool        // an issue is asked for, and pull is the draft that was opened for it
	draft                   string      // what that says, where it was asked for there
	kind                    string      // the task's type at its forge
	review                  bool        // it is to be reviewed, and not worked on
	conflicts               []string    // files with conflict markers
	ci                      []forge.CheckRun
	ciUnread                bool // there may be others, which may not be read
}

// matter reads what is asked for and what was said about it, as the model is to see
// it; before is what an earlier run was told.
func (r *run) matter(ctx context.Context, before *dialogue.Earlier) (m assignment, err error) {
	it, err := r.out.Item(ctx)
	if err != nil {
		return m, err
	}
	key, asked, from := r.ledger.Metadata().TaskKey.Item(), it, r.out.Order.For
	if from != nil {
		if asked, err = r.out.Issue(ctx); err != nil {
			return m, err
		}
	}
	m = assignment{title: broker.Visible(asked.Title), body: broker.Visible(asked.Body), author: asked.Author.Login, pull: it.Pull, kind: key.Type, issue: from != nil}
	if !r.out.Here() {
		m.id = asked.Key.Number() + " of " + forge.RepoOf(key).String()
	}
	m.labels = slices.DeleteFunc(slices.Clone(asked.Labels), r.out.Host.Labels.Ours)
	m.continues = r.out.Place.Exists && it.Pull == nil
	if from != nil {
		if err := r.whoWrote(ctx, asked, order.Act{Text: from.Text, EditedBy: from.EditedBy}, &m); err != nil {
			return m, err
		}
	}
	if from == nil || from.Run == "" {
		var act order.Act
		if r.out.Order.Act != nil {
			act = *r.out.Order.Act
		}
		if err := r.whoWrote(ctx, it, act, &m); err != nil {
			return m, err
		}
		if m.issue {
			m.draft = broker.Visible(it.Body)
		}
	}
	if m.said, err = r.talk.Thread(ctx, before); err != nil || it.Pull == nil {
		return m, err
	}
	if err = r.quote(m.said.Remarks); err != nil {
		return m, err
	}
	err = r.readCI(ctx, it, &m)
	return m, err
}

// quote has remarks show what stands on their lines now: read_file numbers none.
func (r *run) quote(all []dialogue.Remark) error {
	for i := range all {
		m := &all[i]
		if m.Line == 0 {
			continue
		}
		lines, err := r.lines(m.Path)
		if err != nil {
			return err
		}
		if m.Line <= len(lines) {
			m.Stands = progress.Cut(progress.OneLine(lines[m.Line-1]), 120)
		}
	}
	return nil
}

// whoWrote tells whether those who wrote an item, or changed it since an act asked for work,
// may do so.
func (r *run) whoWrote(ctx context.Context, it forge.Item, ask order.Act, m *assignment) error {
	outsider, err := r.talk.Outsider(ctx, it.Author)
	if err != nil {
		return err
	}
	if outsider {
		if err := r.talk.Stranger("the author of " + it.Key.ID); err != nil {
			return err
		}
	}
	m.outsider = m.outsider || outsider && (it.Pull == nil || !m.issue)
	by, changed := it.Author.Login, outsider && ask.Text != "" && ask.Text != order.TextOf(it)
	if ask.EditedBy != "" {
		changed, by = true, ask.EditedBy
		if err := r.talk.Stranger("@" + by); err != nil {
			return err
		}
	}
	m.changed = m.changed || changed
	if changed && r.out.Host.Omit {
		return &delivery.TaskError{Err: i18n.E("agent.changed", order.Ref(r.ledger.Metadata().TaskKey), by)}
	}
	return nil
}

// readCI reads what the forge's own checks said of a pull request.
func (r *run) readCI(ctx context.Context, it forge.Item, m *assignment) (err error) {
	m.ci, err = r.out.Host.Code.CheckRuns(ctx, forge.RepoOf(r.ledger.Metadata().TaskKey), it.Pull.Head.Commit)
	switch {
	case forge.Is(err, forge.Forbidden):
		m.ciUnread = true
		r.log.Warn("Not all checks of the pull request may be read: " + err.Error())
	case err != nil && !forge.Is(err, forge.NotFound):
		return err
	}
	if slices.ContainsFunc(m.ci, func(c forge.CheckRun) bool { return c.State == forge.CheckFailed }) {
		return r.talk.Stranger("the failed checks of " + it.Key.ID) // whoever wrote what they ran
	}
	return nil
}
