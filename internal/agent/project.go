package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/project"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/workspace"
)

// projectFile is what was found out about the machine before the model's first
// turn, below the directory of the context: decided once, for what the model
// installs must not change which checks judge it.
const projectFile = "project.json"

// installed is the content of projectFile.
type installed struct {
	Commit  string   `json:"commit"`            // that the checks are read from
	Without []string `json:"without,omitempty"` // probes of programs that are not there
}

const (
	learnTime = 2 * time.Minute // to read a project
	probeTime = time.Minute     // to look for programs
)

// readProject reads what the project says about itself: how it is checked where nothing
// is configured, and, for a run that begins, what the model is told of it. All of
// it comes from the commit of the base branch, never from the tree, which may be
// the head of a pull request or what a model left.
func (r *run) readProject(ctx context.Context) (*project.Project, error) {
	o := r.projectOptions()
	auto := slices.ContainsFunc(r.Project.Setup, func(c workspace.SetupCommand) bool { return c.Run == AutoSetup })
	if r.Project.Checks != nil && !o.Rules && !o.Map && !auto {
		return nil, nil
	}
	commit := r.out.TrustedCommit()
	if commit == "" {
		r.log.Warn("Rules and checks of the project are not read: the branch has no commit in common with " + r.out.Place.Onto)
		return nil, nil
	}
	reading, cancel := context.WithTimeout(ctx, learnTime)
	defer cancel()
	p, err := project.Read(reading, r.out.Workspace, commit, o)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case reading.Err() != nil:
		r.log.Warn("Rules and checks of the project are not read: that took too long", "limit", learnTime)
		return nil, nil
	case err != nil:
		return nil, err
	}
	for _, n := range p.Notes {
		r.log.Warn("The project: " + r.Store.Redact(n))
	}
	return p, nil
}

// projectOptions say what is read: less where the model was told.
func (r *run) projectOptions() project.Options {
	if r.start.Whole {
		return project.Options{}
	}
	return r.Project.Options
}

// learn decides on checks where none are configured, once the workspace is set up,
// and on what the model is told of the project.
func (r *run) learn(ctx context.Context, p *project.Project) error {
	r.verify.checks = r.Project.Checks
	if p == nil {
		return nil
	}
	if r.Project.Checks == nil {
		if err := r.detected(ctx, r.out.TrustedCommit(), p.Checks); err != nil {
			return err
		}
	}
	if len(r.Project.Setup) > 0 {
		p.Setup = nil // somebody decided on that
	} else if len(p.Setup) > 0 && !r.start.Whole {
		r.log.Info("Nothing is installed for this run; the setting setup could hold: " + strings.Join(p.ToInstall(), "; "))
	}
	if o := r.projectOptions(); o.Rules || o.Map {
		r.lead.about = func(task string) string { return p.Prompt(r.Window.Tokens/4*3, task) }
	}
	return nil
}

// ruling is the commit whose word counts on how the project is checked and
// worked in: what the work starts from, or, where that is somebody's branch, what
// the branch that it is for had when it was left. "" is none.
func (r *run) ruling() string {
	if r.out.Place.There {
		return r.out.Place.Trusted
	}
	return r.out.Workspace.Base()
}

// detected makes those checks the run's whose programs are there.
func (r *run) detected(ctx context.Context, commit string, all []project.Check) error {
	file := filepath.Join(r.ledger.Dir(), projectFile)
	var known installed
	raw, err := disk.Read(file, disk.MaxWhole)
	if err == nil {
		err = json.Unmarshal(raw, &known)
	}
	switch {
	case err == nil && known.Commit == commit:
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read what was found out about the project: %w", err)
	case r.start.Whole: // those that were run on the base
		for _, c := range r.verify.before {
			r.verify.checks = append(r.verify.checks, Check{Command: c.Command, Timeout: r.Project.CheckTimeout})
		}
		return nil
	default:
		known.Commit = commit
		if known.Without, err = r.without(ctx, probes(all)); err != nil {
			return err
		}
		if raw, err = json.Marshal(known); err == nil {
			err = r.Store.FS.Replace(file, append(raw, '\n'), !r.Store.NoSync)
		}
		if err != nil {
			return fmt.Errorf("note what was found out about the project: %w", err)
		}
	}
	chosen, notRun := choose(all, known.Without)
	r.verify.notRun = notRun
	for _, c := range chosen {
		r.verify.checks = append(r.verify.checks, Check{Command: c.Command, Timeout: r.Project.CheckTimeout})
	}
	var programs []string
	for _, c := range notRun {
		r.log.Warn("Check left out: "+r.Store.Redact(c.Command)+", since "+c.Program+" is not installed where checks run", "from", c.Source)
		programs = append(programs, "program "+c.Program)
	}
	return r.lacks(ctx, programs)
}

// probes are the probes of all checks and of their substitutes (Else).
func probes(all []project.Check) (list []string) {
	for _, c := range all {
		if c.Probe != "" {
			list = append(list, c.Probe)
		}
		list = append(list, probes(c.Else)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// choose takes the checks whose programs are there; notRun are the others that
// nothing stands for.
func choose(all []project.Check, without []string) (chosen, notRun []project.Check) {
	for _, c := range all {
		switch {
		case c.Probe == "" || !slices.Contains(without, c.Probe):
			chosen = append(chosen, c)
		case len(c.Else) > 0:
			instead, none := choose(c.Else, without)
			chosen, notRun = append(chosen, instead...), append(notRun, none...)
		default:
			notRun = append(notRun, c)
		}
	}
	return chosen, notRun
}

// without runs probes as checks are run, and returns those that fail.
func (r *run) without(ctx context.Context, all []string) (failed []string, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	spec := r.env.spec
	spec.Scratch += "-look"
	shell, err := r.Sandbox.Shell(spec)
	if err != nil {
		return nil, err
	}
	defer func() { _ = shell.Close() }()
	var script strings.Builder
	for i, p := range all {
		fmt.Fprintf(&script, "if (%s) >/dev/null 2>&1 </dev/null; then echo has-%d; fi\n", p, i)
	}
	out := &limitedBuffer{most: 64 << 10}
	_, err = shell.Run(ctx, sandbox.Command{Script: script.String(), Dir: r.out.Workspace.Tree(), Timeout: probeTime, Output: out})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("look for programs of checks: %w", err)
	}
	there := strings.Fields(out.String())
	for i, p := range all {
		if !slices.Contains(there, "has-"+strconv.Itoa(i)) {
			failed = append(failed, p)
		}
	}
	return failed, nil
}

// limitedBuffer keeps the first most bytes.
type limitedBuffer struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer; it takes all, and keeps what there is room for.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, b.most-b.Len()))])
	return len(p), nil
}

// notRunText tells people which checks were left out, "" for none.
func (r *run) notRunText(l i18n.Lang) string {
	var all []string
	for _, c := range r.verify.notRun {
		all = append(all, l.T("agent.not_run", "`"+c.Command+"`", c.Program))
	}
	return strings.Join(all, ", ")
}

// checksTold is what the model is told of the checks as it begins.
func (r *run) checksTold() string {
	var b strings.Builder
	var all []string
	for _, c := range r.verify.checks {
		all = append(all, "`"+c.Command+"`")
	}
	if len(all) > 0 {
		b.WriteString(r.Lang.T("checks.will", strings.Join(all, ", ")) + "\n")
	} else if len(r.verify.notRun) == 0 {
		b.WriteString(r.Lang.T("checks.none") + "\n")
	}
	for i, c := range r.verify.notRun {
		if i == 0 {
			b.WriteString(r.Lang.T("checks.left_out") + "\n")
		}
		fmt.Fprintf(&b, "- `%s` (%s)\n", c.Command, c.Program)
	}
	if text := r.needsText(r.Lang); text != "" {
		b.WriteString(text + "\n")
	}
	return b.String()
}
