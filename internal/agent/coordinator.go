package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/scan"
	"toritsugi/internal/telemetry"
	"toritsugi/internal/turn"
	"toritsugi/internal/verdict"
)

// coordination is what leads the model.
type coordination struct {
	run     func(ctx context.Context) (words string, err error) // until the model says that all is done
	loop    *turn.Loop
	history *planning.History                    // nil where no plan leads the run
	planned atomic.Pointer[planning.Coordinator] // what leads it by a plan, once it does
	about   func(task string) string             // what the model is told of the project as it begins; nil for nothing
	answer  string                               // the model's last
}

// plain runs the loop of model and tools without a plan.
func (r *run) plain(ctx context.Context) (string, error) {
	telemetry.Phase(ctx, planning.PhaseExecution, 0)
	loop := r.lead.loop
	last := loop.Window.Last()
	if turn.Final(last) && !loop.Owes() {
		return last.Content, nil
	}
	last, err := loop.Run(ctx)
	return last.Content, err
}

// planned runs it as the plan leads.
func (r *run) planned(ctx context.Context) (string, error) {
	lead := r.lead.planned.Load()
	_, err := lead.Run(ctx, r.lead.loop)
	return lead.Words(i18n.English), err
}

// plans reports whether a plan leads the run: decided when it begins, for the
// system prompt says so.
func (r *run) plans() bool {
	if r.Planning == nil || r.out.Reviews() {
		return false
	}
	if !r.start.Whole {
		return true
	}
	return r.Planning.HasHistory(r.Store, r.ledger)
}

// openHistory opens the planning history, before the first message tells the
// model of planning.
func (r *run) openHistory() (err error) {
	r.lead.history, err = r.Planning.OpenHistory(r.Store, r.ledger, r.Now, r.log, func(e planning.Entry) { r.screen.tracker.Recorded(e) })
	return err
}

// historyFile is where the planning history of a run lies, relative to its context.
func (p *Planning) historyFile(s *contextstore.Store, c *contextstore.Context) string {
	return planning.HistoryFile(s.BaseDir, p.Directory, c.UUID())
}

// HasHistory reports whether a run has a planning history.
func (p *Planning) HasHistory(s *contextstore.Store, c *contextstore.Context) bool {
	file := p.historyFile(s, c)
	if !filepath.IsAbs(file) {
		file = filepath.Join(c.Dir(), file)
	}
	_, err := disk.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// OpenHistory opens the planning history of a run; heard hears of each line, nil for nobody.
func (p *Planning) OpenHistory(s *contextstore.Store, c *contextstore.Context, now func() time.Time, log *slog.Logger, heard func(planning.Entry)) (*planning.History, error) {
	warn := func(err error) { log.Warn("The planning history: " + s.Redact(err.Error())) }
	h, mended, err := planning.OpenHistory(c, planning.HistoryOptions{File: p.historyFile(s, c), Now: now, Heard: heard, Warn: warn})
	for _, m := range mended {
		warn(errors.New(m))
	}
	return h, err
}

// rules are what the system prompt says beside what it says in every run: what is
// the same for each task first, so that providers have it cached.
func (r *run) rules(task string) (text string) {
	text = systemEnd
	if r.lead.history != nil {
		text = "\n" + r.Planning.Prompts.System()
	}
	if r.review != nil {
		text = reviewLanguage[r.Lang]
	}
	if r.lead.about != nil {
		text += r.lead.about(task)
	}
	if r.Wishes != "" {
		text += wishes + r.Wishes
	}
	return text
}

// reviewLanguage says in which language people read a review.
var reviewLanguage = map[i18n.Lang]string{
	i18n.English:  "- Write verdict, titles and bodies in English.\n",
	i18n.Japanese: "- Write verdict, titles and bodies in Japanese.\n",
}

// wishes goes before what the user of a run wants of each of their runs.
const wishes = "\n\nThe person whose task this is wishes, as far as nothing above says otherwise:\n\n"

// coordinate opens the loop of the run, and what leads it.
func (r *run) coordinate(ctx context.Context) error {
	s, first, err := r.settings(ctx)
	if err != nil {
		return err
	}
	base := director{r: r}
	if r.review != nil {
		r.lead.loop = turn.New(s, turn.NoCircles(reviewDirector{base, r.review}))
		r.lead.run = r.review.run
		return ctx.Err()
	}
	if r.lead.history == nil {
		r.lead.loop = turn.New(s, turn.NoCircles(base))
		r.lead.run = r.plain
		return r.reopen(ctx, r.lead.loop, first)
	}
	p := r.Planning.Settings
	p.Earlier, p.Ask, p.ReadOnly = r.past.lessons, r.talk.Ask, s.Tools.ReadOnly
	c, err := planning.Open(r.ledger, r.lead.history, base, r.Planning.Prompts, p, r.log)
	if err != nil {
		return err
	}
	r.lead.planned.Store(c)
	r.lead.loop = turn.New(s, c)
	r.lead.run = r.planned
	return r.reopen(ctx, r.lead.loop, first)
}

// director is what a run does between the requests of its loop, with a plan or without.
type director struct {
	turn.NoDirector
	r *run
}

// Before implements turn.Director: the base's checks, and what people said.
func (d director) Before(ctx context.Context) ([]contextstore.Message, error) {
	return d.r.betweenTurns(ctx)
}

// Stream implements turn.Director, for the live view.
func (d director) Stream(delta string) { d.r.screen.tracker.Stream(delta) }

// After implements turn.Director, for the history of the run.
func (d director) After(m contextstore.Message) error {
	d.r.screen.tracker.Message(m)
	return nil
}

// Waited implements turn.Director.
func (d director) Waited(id string) bool { return d.r.talk.Waits(id) }

// record puts a line into the planning history, where there is one.
func (r *run) record(e planning.Entry) error {
	if r.lead.history == nil {
		return nil
	}
	e.Seq = r.ledger.LastSeq()
	_, err := r.lead.history.Append(e)
	return err
}

// objected tells the model what was said since its answer, and reports whether
// any of it keeps the answer from being the last one: strangers' words do not.
func (r *run) objected(ctx context.Context) (bool, error) {
	r.talk.Objection, r.verify.quiet = false, true
	_, err := r.lead.loop.Hear(ctx)
	r.verify.quiet = false
	return r.talk.Objection && err == nil, err
}

// judged has each criterion of the plan judged: the model must go on (true), or points
// stay open, with which the run completes or fails as the settings say. The commit gets
// what the model says of it then.
func (r *run) judged(ctx context.Context) (again bool, err error) {
	if lead := r.lead.planned.Load(); lead != nil {
		known := r.verify.forJudge()
		known.Diff = r.verify.shownDiff(ctx)
		r.verify.judged, err = lead.Verify(ctx, r.lead.loop, known)
		r.lead.answer = lead.Words(i18n.English) // which may have been asked for
	}
	if err != nil || r.verify.judged.Again {
		return err == nil, err
	}
	if err := r.reword(ctx); err != nil {
		return false, err
	}
	if r.verify.judged.Fails && !r.Planning.Complete {
		return false, &openPointsError{r.verify.judged.Open}
	}
	return false, nil
}

// forJudge is what is known of the work from others than the model, but for the change
// itself.
func (r *verification) forJudge() (e planning.Evidence) {
	for _, c := range r.after {
		p := planning.CheckEvidence{Name: "check", Command: c.Command, ExitCode: c.ExitCode, TimedOut: c.TimedOut, Output: c.Output}
		if !c.Packages {
			p.Ran = c.Ran
		}
		for _, b := range r.Before {
			if b.Command == c.Command {
				p.HasBase, p.BaseExitCode = true, b.ExitCode
				if !b.Packages {
					p.BaseRan = b.Ran
				}
			}
		}
		p.Compared = verdict.Compare(r.Before, c).Text(r.Lang, plainly)
		e.Checks = append(e.Checks, p)
	}
	e.Changed = r.files
	for _, name := range r.review.Added {
		e.Added = append(e.Added, r.Store.Redact(name))
	}
	e.Tests = slices.ContainsFunc(r.files, scan.IsTest)
	for _, k := range scan.Kinds() {
		for _, f := range r.review.Findings {
			if f.Kind == k {
				e.Findings = append(e.Findings, r.finding(i18n.English, f))
				if k == scan.Placeholder {
					e.Placeholders = append(e.Placeholders, r.finding(i18n.English, f))
				}
			}
		}
	}
	return e
}

// untested reports whether code was changed, and no test came or changed that could show it.
func (r *verification) untested() bool {
	return slices.ContainsFunc(r.files, scan.IsCode) && !r.forJudge().Shows()
}

// How much of the change the model is shown when it judges it, in bytes: of each file
// and of all. What is read of it is more, so that a large file hides no small one.
const (
	shownOfFile   = 2500
	shownOfChange = 7500
	readOfChange  = 1 << 20
)

// shownDiff is the change as the model is shown it, bounded file by file; "" where
// there is none, or it cannot be read.
func (r *verification) shownDiff(ctx context.Context) string {
	if r.commit == "" {
		return ""
	}
	all := &checkrun.HeadBuffer{Most: readOfChange}
	if err := r.Workspace.Review(ctx, r.commit, 3, all); err != nil {
		r.Log.Warn("The change cannot be shown to the model: " + r.Store.Redact(err.Error()))
		return ""
	}
	return shortDiff(r.Store.Redact(strings.ToValidUTF8(all.String(), "\uFFFD")))
}

// shortDiff is a patch of which each file, and all, is bounded. What git calls the
// contents of the files says nothing to a model.
func shortDiff(patch string) string {
	const begin = "diff --git "
	files := strings.Split("\n"+patch, "\n"+begin)[1:]
	var b strings.Builder
	for i, f := range files {
		if b.Len() > shownOfChange {
			fmt.Fprintf(&b, "[%d more files; git diff shows them]\n", len(files)-i)
			break
		}
		b.WriteString(begin + progress.Head(contents().ReplaceAllString(f, ""), shownOfFile) + "\n")
	}
	return b.String()
}

var contents = lazyregexp.New(`(?m)^index [0-9a-f]+\.\.[0-9a-f]+.*\n`)

// openPointsError ends a run whose result does not pass.
type openPointsError struct{ points []string }

func (e *openPointsError) Error() string {
	return "the verification leaves points open: " + strings.Join(e.points, "; ")
}

// openPoints are those in a sentence.
func openPoints(l i18n.Lang, points []string) string {
	var all []string
	for _, p := range points {
		all = append(all, cutLine(progress.OneLine(l.Translate(p))))
	}
	return strings.Join(progress.Some(all, shownPoints, func(int) string { return "…" }), "; ")
}

// shownPoints is how many open points a reason names.
const shownPoints = 5

var _ planning.Ledger = (*contextstore.Context)(nil)
