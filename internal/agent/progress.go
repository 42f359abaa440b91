package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
)

// display is what those who watch the run are shown.
type display struct {
	hide    func()            // ends it; nil where nothing is shown
	tracker *progress.Tracker // what happened; nil before the workspace is open
	view    *planning.View    // how far an earlier owner came; nil where the coordinator says it, or nobody knows
}

// track begins the history of the run: with what was kept of it, where it is taken
// up. What that reads does not grow with the length of the run.
func (r *run) track() error {
	entries := r.Progress.MaxHistory
	r.screen.tracker = progress.NewTracker(entries, r.Progress.Notify, r.shownText, r.Lang)
	if !r.start.Whole {
		return nil
	}
	all, err := r.ledger.Checks()
	if err != nil {
		return err
	}
	past := progress.Past{Checks: all[max(len(all)-entries, 0):]}
	past.Messages = func(f func(contextstore.Message)) error {
		left := entries // each gives about one
		return r.ledger.MessageLog().Tail(entries, func(m contextstore.Message, _ []byte) bool {
			past.More = past.More || left == entries && m.Seq > int64(r.start.Size)+1
			left--
			if m.Seq > int64(r.start.Size) { // what was inherited was said in another run
				f(m)
			}
			return left > 0
		})
	}
	if r.lead.history != nil {
		if past.Entries, err = lastEntries(r.lead.history); err != nil {
			return err
		}
	}
	return r.screen.tracker.Resume(&past)
}

// recount reads what is known of a run that was taken up and refused before it went
// on: a limit of the day, a workspace that does not open. What people read of it
// then keeps plan and history. What cannot be read is left out.
func (r *run) recount() {
	if !r.start.Whole || r.lead.planned.Load() != nil {
		return
	}
	if err := r.reread(); err != nil {
		r.log.Warn("How far the run was is not shown: " + r.Store.Redact(r.Reader.Error(err)))
	}
}

func (r *run) reread() (err error) {
	if r.plans() {
		if err := r.openHistory(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.lead.history.Close()) }()
		v, err := planning.LastView(r.ledger, r.lead.history, r.Planning.Settings)
		if err != nil {
			return err
		}
		r.screen.view = &v
	}
	if r.screen.tracker != nil { // it knows more
		return nil
	}
	return r.track()
}

// How much of a planning history is read again for the history of a run.
const (
	pastLines = 256
	pastBytes = 1 << 20
)

// lastEntries are the last lines of a planning history that say something to
// people, oldest first.
func lastEntries(h *planning.History) (all []planning.Entry, err error) {
	lines, size := 0, 0
	_, err = h.Latest(func(e *planning.Entry) bool {
		lines++
		if size += len(e.Raw); e.Checkpoint == nil {
			all = append(all, *e)
		}
		return lines >= pastLines || size >= pastBytes
	})
	slices.Reverse(all)
	return all, err
}

// shownText is a text of others as those who watch the run may see it.
func (r *run) shownText(s string) string {
	s = r.Store.Redact(s)
	if !r.out.Here() {
		s = r.Delivery.Public(s)
	}
	return s
}

// reported is how far the run is.
func (r *run) reported() progress.Report {
	m := r.ledger.Metadata()
	rep := progress.Report{UUID: m.UUID, Model: r.Client.Provider() + "/" + r.Client.Model(), Scripted: r.Scripted, Branch: r.out.Place.Branch, Updated: r.Now()}
	rep.State(r.ledger.State())
	if o := r.report.Outcome; o.Status != task.Queued { // which goes on by itself
		rep.Ended, rep.Unverified = o.Status, o.Unverified
	}
	if rep.By = m.User; !r.out.Here() {
		rep.By = "@" + r.out.Order.Act.By.Login
	}
	if lead := r.lead.planned.Load(); lead != nil {
		rep.Plan(lead.View(), r.shownText)
	} else if r.screen.view != nil {
		rep.Plan(*r.screen.view, r.shownText)
	}
	if r.screen.tracker != nil {
		rep.History, rep.Streamed = r.screen.tracker.History(), r.screen.tracker.Streamed()
	}
	return rep
}

// markdown is a report as it is shown beside the issue, with what people can do.
func (r *run) markdown(rep progress.Report) (string, error) {
	l := r.Lang
	switch {
	case r.served() && r.out.Here():
		rep.Notes = append(rep.Notes, l.T("progress.how_beside"))
	case r.served():
		rep.Notes = append(rep.Notes, l.T("progress.how"))
	}
	rep.Notes = append(rep.Notes, l.T("agent.comment_run", rep.UUID, contextstore.Short(rep.UUID)), r.inheritanceNotice(l))
	return rep.Markdown(l, r.Delivery.Rules.Filter, min(progress.Size, r.Delivery.Rules.Settings.MaxTextBytes))
}

// shows reports whether the run's progress is shown beside what it is about.
func (r *run) shows() bool {
	return r.Progress.Interval > 0 && !r.out.Order.Silent()
}

// showProgress keeps the run's one comment, or its file, current while it goes on,
// until stop is called; nothing is posted after that. What cannot be shown is left
// out: the next edit says more.
func (r *run) showProgress(ctx context.Context) (stop func()) {
	unwatch := func() {}
	if r.Progress.Watch != nil {
		unwatch = r.Progress.Watch(r.reported)
	}
	if !r.shows() {
		return unwatch
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		t := time.NewTicker(r.Progress.Interval)
		defer t.Stop()
		s := &showing{r: r}
		for {
			s.look(ctx)
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
	})
	return func() { cancel(); done.Wait(); unwatch() }
}

// showing is what was shown of a run.
type showing struct {
	r       *run
	last    string // without the time
	failing bool
	judged  bool
	allowed bool
	legs    []broker.Leg
}

// look shows how far the run is, where that changed.
func (s *showing) look(ctx context.Context) {
	r := s.r
	rep := r.reported()
	still := rep
	still.Updated = time.Time{}
	core, err := r.markdown(still)
	if err == nil && core == s.last || !s.may(ctx, rep) {
		return
	}
	if err == nil {
		err = r.show(ctx, rep)
	}
	if err == nil {
		s.last = core
	}
	if (err != nil) != s.failing && ctx.Err() == nil {
		if s.failing = err != nil; s.failing {
			r.log.Warn("The progress is not shown: " + r.Store.Redact(r.Reader.Error(err)))
		}
	}
}

// show puts a report where the run is asked for.
func (r *run) show(ctx context.Context, rep progress.Report) error {
	text, err := r.markdown(rep)
	if err != nil {
		return err
	}
	m := r.ledger.Metadata()
	if beside, ok := r.out.Host.Tracker.(forge.Progress); ok {
		return beside.ShowProgress(ctx, m.TaskKey, text)
	}
	_, err = r.out.Host.Post(ctx, m.TaskKey, m.UUID, text)
	return err
}

// may asks the broker about the comment, and again when the run has come into touch
// with more since: the editions in between are counted with it, and filtered like
// it. A file beside an issue stays in the house.
func (s *showing) may(ctx context.Context, rep progress.Report) bool {
	r := s.r
	if r.out.Here() {
		return true
	}
	legs := r.out.Broker.Exposure()
	if !s.judged || !slices.Equal(legs, s.legs) {
		allowed, err := r.out.MayShow(ctx, rep.Head(r.Lang, false), rep.Fold(r.Lang))
		s.judged, s.legs, s.allowed = err == nil, legs, allowed
	}
	return s.allowed
}

// showEnd is the last edition of a progress file: how the run ended. A forge's
// comment says that itself.
func (r *run) showEnd(ctx context.Context) {
	if !r.out.Here() || !r.shows() {
		return
	}
	rep := r.reported()
	if rep.Ended != "" {
		rep.Reason = r.report.Outcome.Reason
	}
	if err := r.show(ctx, rep); err != nil {
		r.log.Warn("The progress is not shown: " + r.Store.Redact(r.Reader.Error(err)))
	}
}

// folded is what stands closed below the comment on the end of the run: the files, the
// plan and the history. A folder has them in its comment and in its file of progress.
func (r *run) folded() (all []broker.CollapsedList) {
	if r.out.Here() {
		return nil
	}
	l, rep := r.Lang, r.reported()
	if files := r.report.Files; len(files) > 0 {
		x := broker.CollapsedList{Title: l.T("agent.fold_files", len(files))}
		for _, f := range files {
			x.Lines = append(x.Lines, progress.Span(f))
		}
		x.Lines = progress.Some(x.Lines, delivery.MaxListed, progress.More(l))
		all = append(all, x)
	}
	if plan := strings.TrimSpace(rep.PlanText(l, false)); plan != "" {
		x := broker.CollapsedList{Title: l.T("agent.fold_plan")}
		for line := range strings.Lines(plan) {
			if line = strings.TrimPrefix(strings.TrimSpace(line), "- "); line != "" {
				x.Lines = append(x.Lines, line)
			}
		}
		all = append(all, x)
	}
	if r.shows() && r.screen.tracker != nil && len(rep.History.Entries) > 0 {
		all = append(all, rep.Fold(l))
	}
	return all
}
