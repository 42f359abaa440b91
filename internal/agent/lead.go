package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/scan"
	"toritsugi/internal/turn"
)

// Planning is how runs are led: by a plan.
type Planning struct {
	Settings  planning.Settings
	Prompts   planning.Prompts
	Directory string               // of the histories; "" keeps each in its context
	Inherit   planning.Inheritance // what is taken over from earlier runs
	Complete  bool                 // a run that leaves points open completes with them, and does not fail
}

// leader runs the loop until the model's last answer.
type leader interface {
	// Run works until the model says that all is done.
	Run(ctx context.Context) (words string, err error)
	// Verify has the result judged.
	Verify(ctx context.Context) (planning.Result, error)
}

// plain is the loop of model and tools, without a plan.
type plain struct{ *turn.Loop }

// Run implements leader.
func (p plain) Run(ctx context.Context) (string, error) {
	last := p.Window.Last()
	if turn.Final(last) && !p.Owes() {
		return last.Content, nil
	}
	last, err := p.Loop.Run(ctx)
	return last.Content, err
}

// Verify implements leader.
func (plain) Verify(context.Context) (planning.Result, error) { return planning.Result{}, nil }

// planned is a run that a plan leads.
type planned struct {
	*planning.Coordinator
	r    *run
	loop *turn.Loop
}

// Run implements leader.
func (p planned) Run(ctx context.Context) (string, error) {
	_, err := p.Coordinator.Run(ctx, p.loop)
	return p.Words(i18n.English), err
}

// Verify implements leader.
func (p planned) Verify(ctx context.Context) (planning.Result, error) {
	return p.Coordinator.Verify(ctx, p.loop, p.r.proof(ctx))
}

// plans reports whether a plan leads the run: decided when it begins, for the
// system prompt says so.
func (r *run) plans() bool {
	if r.Planning == nil {
		return false
	}
	if !r.front.Whole {
		return true
	}
	_, err := os.Stat(r.historyPath())
	return !errors.Is(err, fs.ErrNotExist)
}

// historyFile is where the planning history lies, relative to the context.
func (r *run) historyFile() string {
	return planning.HistoryFile(r.Store.BaseDir, r.Planning.Directory, r.ledger.UUID())
}

func (r *run) historyPath() string {
	file := r.historyFile()
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(r.ledger.Dir(), file)
}

// openHistory opens the planning history, before the first message tells the
// model of planning.
func (r *run) openHistory() error {
	h, mended, err := planning.OpenHistory(r.ledger, planning.HistoryOptions{File: r.historyFile(), Now: r.Now,
		Heard: func(e planning.Entry) { r.tracker.Recorded(e) },
		Warn:  func(err error) { r.log.Warn("The planning history: " + r.Store.Redact(err.Error())) }})
	for _, m := range mended {
		r.log.Warn("The planning history was mended: " + r.Store.Redact(m))
	}
	r.history = h
	return err
}

// rules are what the system prompt says beside what it says in every run: what is
// the same for each task first, so that providers have it cached.
func (r *run) rules(task string) (text string) {
	text = systemEnd
	if r.history != nil {
		text = "\n" + r.Planning.Prompts.System()
	}
	if r.about != nil {
		text += r.about(task)
	}
	return text
}

// lead opens the loop of the run, and what leads it.
func (r *run) lead(ctx context.Context) (leader, *turn.Loop, error) {
	s, first, err := r.settings(ctx)
	if err != nil {
		return nil, nil, err
	}
	base := director{r: r}
	if r.history == nil {
		loop := turn.New(s, base)
		return plain{loop}, loop, r.reopen(ctx, loop, first)
	}
	p := r.Planning.Settings
	p.Past, p.Ask, p.ReadOnly = r.lessons, r.ask, s.Tools.ReadOnly
	c, err := planning.Open(r.ledger, r.history, base, r.Planning.Prompts, p, r.log)
	if err != nil {
		return nil, nil, err
	}
	r.led.Store(c)
	loop := turn.New(s, c)
	return planned{c, r, loop}, loop, r.reopen(ctx, loop, first)
}

// director is what a run does between the requests of its loop, with a plan or without.
type director struct {
	turn.Undirected
	r *run
}

// Before implements turn.Director: the base's checks, and what people said.
func (d director) Before(ctx context.Context) ([]contextstore.Message, error) {
	return d.r.heardOf(ctx)
}

// Stream implements turn.Director, for the live view.
func (d director) Stream(delta string) { d.r.tracker.Stream(delta) }

// After implements turn.Director, for the history of the run.
func (d director) After(m contextstore.Message) error {
	d.r.tracker.Message(m)
	return nil
}

// Waited implements turn.Director.
func (d director) Waited(id string) bool { return d.r.waited(id) }

// proof is what is known of the work from others than the model.
func (r *run) proof(ctx context.Context) planning.Evidence {
	e := planning.Evidence{Diff: r.shownDiff(ctx)}
	for _, c := range r.after {
		p := planning.CheckEvidence{Name: "check", Command: c.Command, ExitCode: c.ExitCode, TimedOut: c.TimedOut, Output: c.Output}
		if !c.Packages {
			p.Ran = c.Ran
		}
		for _, b := range r.before {
			if b.Command == c.Command {
				p.HasBase, p.BaseExitCode = true, b.ExitCode
				if !b.Packages {
					p.BaseRan = b.Ran
				}
			}
		}
		p.Compared = compare(r.before, c).text(r.Lang, plainly)
		e.Checks = append(e.Checks, p)
	}
	e.Changed = r.report.Files
	e.Tests = slices.ContainsFunc(r.report.Files, scan.IsTest)
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

// How much of the change the model is shown when it judges it, in bytes: of each file
// and of all. What is read of it is more, so that a large file hides no small one.
const (
	shownOfFile   = 2500
	shownOfChange = 7500
	readOfChange  = 1 << 20
)

// shownDiff is the change as the model is shown it, bounded file by file; "" where
// there is none, or it cannot be read.
func (r *run) shownDiff(ctx context.Context) string {
	if r.report.Commit == "" {
		return ""
	}
	all := &bounded{most: readOfChange}
	if err := r.ws.Review(ctx, r.report.Commit, 3, all); err != nil {
		r.log.Warn("The change cannot be shown to the model: " + r.Store.Redact(err.Error()))
		return ""
	}
	const begin = "diff --git "
	files := strings.Split(r.Store.Redact(strings.ToValidUTF8(all.String(), "\uFFFD")), "\n"+begin)
	var b strings.Builder
	for i, f := range files {
		if b.Len() > shownOfChange {
			fmt.Fprintf(&b, "[%d more files; the tool git shows them]\n", len(files)-i)
			break
		}
		b.WriteString(cut(strings.TrimPrefix(f, begin), shownOfFile) + "\n")
	}
	return b.String()
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	strings.Builder
	most int
}

func (w *bounded) Write(p []byte) (int, error) {
	_, err := w.Builder.Write(p[:min(len(p), w.most-w.Len())])
	return len(p), err
}

// openPointsError ends a run whose result does not pass.
type openPointsError struct{ points []string }

func (e *openPointsError) Error() string {
	return "the verification leaves points open: " + strings.Join(e.points, "; ")
}

// openPoints are those in a sentence.
func openPoints(l i18n.Lang, points []string) string {
	var all []string
	for _, p := range points[:min(len(points), shownPoints)] {
		all = append(all, cutLine(oneLine(l.Retold(p))))
	}
	if more := len(points) - shownPoints; more > 0 {
		all = append(all, "…")
	}
	return strings.Join(all, "; ")
}

// shownPoints is how many open points a reason names.
const shownPoints = 5

var _ planning.Ledger = (*contextstore.Context)(nil)
