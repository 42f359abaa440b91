package eval

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"toritsugi/internal/app"
	"toritsugi/internal/llm/script"
)

// The scripts of a case that can be asked for instead of a model.
const (
	Answers    = "script"     // script.yaml, and script-bare.yaml for the minimal loop
	BadAnswers = "script-bad" // script-bad.yaml: what is plausible and wrong
)

// Options are how cases are run.
type Options struct {
	Env app.Env
	// Run are Config, Role, Model, LocalOnly and AllowUnsandboxed of every run.
	Run    app.RunOptions
	Script string // Answers, BadAnswers, or "" for a model
	Modes  []Mode
	Dir    string // an empty directory for all that is made
	Keep   bool   // leave in it what is left of each case
	Jobs   int    // cases at once; at least one
	// Begun and Ended hear of each trial, one call at a time. Nil for nobody.
	Begun func(c string, m Mode)
	Ended func(Result)
}

// Model is who answered.
type Model struct {
	Name     string
	Scripted bool // nobody did
}

// runner runs cases.
type runner struct {
	o      Options
	bench  *app.Bench
	by     Model
	dir    string // absolute
	seeded string // a build cache to begin with, "" for none
	gone   map[string]bool
	mu     sync.Mutex
}

// Run runs every case in every mode, and returns what became of each, in the
// order of the cases and modes, and who answered. Where ctx ends, what was under
// way counts as interrupted, what had not begun is left out, and the error is
// nil. A case that could not be run is a result. The error is a *app.ConfigError,
// or of Dir.
func Run(ctx context.Context, cases []Case, o Options) (all []Result, by Model, err error) {
	r := &runner{o: o}
	if r.dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, by, err
	}
	if err := r.open(ctx, cases); err != nil {
		if ctx.Err() != nil { // nothing was begun, for it is to end
			err = nil
		}
		return nil, r.by, err
	}
	defer func() { _ = r.bench.Close() }() // what it looked after is no longer called
	all = r.each(ctx, cases)
	if !o.Keep {
		err = removeAll(filepath.Join(r.dir, "seed"))
	}
	return all, r.by, err
}

// open gets ready for cases.
func (r *runner) open(ctx context.Context, cases []Case) (err error) {
	env := r.o.Env
	env.Notice = func(key string, args ...any) {
		if key != "app.scripted" { // told once, of all
			r.o.Env.Notice(key, args...)
		}
	}
	if r.bench, err = app.OpenBench(ctx, env, r.o.Run); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = r.bench.Close() // the error that there is says more
		}
	}()
	if r.by, err = r.who(ctx); err != nil {
		return &app.ConfigError{Err: err}
	}
	if r.gone, err = r.missing(ctx, cases); err != nil {
		return err
	}
	return r.seed(ctx, r.runnable(cases))
}

// who answers.
func (r *runner) who(ctx context.Context) (Model, error) {
	if r.o.Script != "" {
		return Model{script.Provider, true}, nil
	}
	spec, err := r.bench.Spec(ctx)
	return Model{spec.Name(), spec.Provider == script.Provider}, err
}

// lacks are the programs that a case needs and does not find.
func (r *runner) lacks(c *Case) (names []string) {
	for _, n := range c.Needs {
		if r.gone[n] {
			names = append(names, n)
		}
	}
	return names
}

func (r *runner) runnable(cases []Case) (out []Case) {
	for _, c := range cases {
		if len(r.lacks(&c)) == 0 {
			out = append(out, c)
		}
	}
	return out
}

// each runs all trials, o.Jobs at once.
func (r *runner) each(ctx context.Context, cases []Case) []Result {
	slots := make(chan struct{}, max(1, r.o.Jobs))
	results := make([]Result, len(cases)*len(r.o.Modes))
	var running sync.WaitGroup
	for i := range results {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			results[i] = r.one(ctx, &cases[i/len(r.o.Modes)], r.o.Modes[i%len(r.o.Modes)])
		})
	}
	running.Wait()
	var out []Result
	for _, res := range results {
		if res.Case != "" {
			out = append(out, res)
		}
	}
	return out
}

// one runs a trial and tells of it.
func (r *runner) one(ctx context.Context, c *Case, m Mode) (res Result) {
	lang := r.o.Env.Lang
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.o.Ended != nil {
			r.o.Ended(res)
		}
	}()
	if names := r.lacks(c); len(names) > 0 {
		return Result{Case: c.Name, Mode: m, Outcome: Skipped, Reason: lang.T("eval.needs", strings.Join(names, ", "))}
	}
	if r.o.Script != "" {
		if name, data := c.answers(r.o.Script, m); data == nil {
			return Result{Case: c.Name, Mode: m, Outcome: Skipped, Reason: lang.T("eval.no_script", name)}
		}
	}
	r.begun(c.Name, m)
	dir := filepath.Join(r.dir, string(m), c.Name)
	res, err := r.trial(ctx, c, m, dir)
	switch {
	case ctx.Err() != nil:
		res.Outcome, res.Reason, res.Resolved = Interrupted, lang.T("eval.interrupted"), false
	case err != nil:
		res.Outcome, res.Reason, res.Resolved = Errored, r.bench.Redact(lang.Error(err)), false
	}
	if r.o.Keep {
		res.Dir = dir
	} else if removeAll(dir) != nil {
		res.Dir = dir // it stays
	}
	return res
}

func (r *runner) begun(c string, m Mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.o.Begun != nil {
		r.o.Begun(c, m)
	}
}

func (r *runner) trial(ctx context.Context, c *Case, m Mode, dir string) (res Result, err error) {
	res = Result{Case: c.Name, Mode: m}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return res, err
	}
	log, err := record(dir, r.bench.Filter)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return (&trial{runner: r, c: c, mode: m, dir: dir, log: log}).carry(ctx)
}
