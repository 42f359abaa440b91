package checkrun

import (
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

// probeTime is how long it may take to look for programs.
const probeTime = time.Minute

// Detect makes those checks the run's whose programs are there.
func (r *Runner) Detect(ctx context.Context, all []project.Check, begun bool) error {
	commit := r.Trusted
	file := filepath.Join(r.Ledger.Dir(), projectFile)
	var known installed
	raw, err := disk.Read(file, disk.MaxWhole)
	if err == nil {
		err = json.Unmarshal(raw, &known)
	}
	switch {
	case err == nil && known.Commit == commit:
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read what was found out about the project: %w", err)
	case begun: // those that were run on the base
		for _, c := range r.Before {
			r.Checks = append(r.Checks, Check{Command: c.Command, Timeout: r.Settings.Timeout})
		}
		return nil
	default:
		known.Commit = commit
		if known.Without, err = r.without(ctx, probes(all)); err != nil {
			return err
		}
		if err := r.Store.FS.ReplaceJSON(file, known, !r.Store.NoSync); err != nil {
			return fmt.Errorf("note what was found out about the project: %w", err)
		}
	}
	chosen, notRun := choose(all, known.Without)
	r.NotRun = notRun
	for _, c := range chosen {
		r.Checks = append(r.Checks, Check{Command: c.Command, Timeout: r.Settings.Timeout})
	}
	var programs []string
	for _, c := range notRun {
		r.Log.Warn("Check left out: "+r.Store.Redact(c.Command)+", since "+c.Program+" is not installed where checks run", "from", c.Source)
		programs = append(programs, "program "+c.Program)
	}
	return r.Lacks(ctx, programs)
}

// Available chooses those of a project's checks whose programs are there, or what stands
// for them; notRun are the others. failing returns which of some commands fail.
func Available(all []project.Check, failing func(probes []string) ([]string, error)) (chosen, notRun []project.Check, err error) {
	without, err := failing(probes(all))
	if err != nil {
		return nil, nil, err
	}
	chosen, notRun = choose(all, without)
	return chosen, notRun, nil
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
func (r *Runner) without(ctx context.Context, all []string) (failed []string, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	spec := r.Spec
	spec.Scratch += "-look"
	shell, err := r.Shell(spec)
	if err != nil {
		return nil, err
	}
	defer func() { _ = shell.Close() }()
	var script strings.Builder
	for i, p := range all {
		fmt.Fprintf(&script, "if (%s) >/dev/null 2>&1 </dev/null; then echo has-%d; fi\n", p, i)
	}
	out := &HeadBuffer{Most: 64 << 10}
	_, err = shell.Run(ctx, sandbox.Command{Script: script.String(), Dir: r.Workspace.Tree(), Timeout: probeTime, Output: out})
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

// HeadBuffer keeps the first Most bytes of what is written to it.
type HeadBuffer struct {
	strings.Builder
	Most int
}

// Write implements io.Writer; it takes all, and keeps what there is room for.
func (b *HeadBuffer) Write(p []byte) (int, error) {
	b.Builder.Write(p[:min(len(p), b.Most-b.Len())])
	return len(p), nil
}

// NotRunText tells people which checks were left out, "" for none.
func (r *Runner) NotRunText(l i18n.Lang) string {
	var all []string
	for _, c := range r.NotRun {
		all = append(all, l.T("agent.not_run", "`"+c.Command+"`", c.Program))
	}
	return strings.Join(all, ", ")
}
