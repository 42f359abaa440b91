package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/project"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/confined"
	"toritsugi/internal/verdict"
	"toritsugi/internal/workspace"
)

// AutoSetup is the command of a setup that stands for those that the project's lock
// files name.
const AutoSetup = config.AutoSetup

// setupError ends a run that could not be set up: not the model's fault, which
// was never called.
type setupError struct {
	run     contextstore.CheckRun
	refused func(i18n.Lang) string // the last connection that it asked for in vain
}

func (e *setupError) Error() string { return e.reason(i18n.English) }

func (e *setupError) reason(l i18n.Lang) string {
	text := l.T("agent.setup_failed", e.run.Command, verdict.Result(l, e.run))
	if e.refused != nil {
		text += l.T("agent.setup_refused", e.refused(l))
	}
	return text
}

// setup makes the workspace ready and returns what later commands see of it.
// Nothing is run once the model has had a turn, unless the workspace is a new one.
func (r *run) setup(ctx context.Context, spec sandbox.Spec, p *project.Project) (sandbox.Spec, error) {
	late := r.ledger.LastSeq() > 0 && !r.env.lost
	commands, err := r.setupCommands(ctx, p, late)
	if err != nil {
		return spec, err
	}
	key := r.ledger.Metadata().TaskKey
	done, err := r.out.Workspace.Setup(ctx, workspace.SetupOptions{
		Commands: commands, Dir: r.Store.SetupDir(key.Owner, key.Repo), Given: given(r.Sandbox.Env), Late: late,
		Run: func(ctx context.Context, c workspace.SetupCommand, files string, env map[string]string) error {
			return r.runSetup(ctx, spec, c, files, env)
		},
		Proves: func(ctx context.Context, c workspace.SetupCommand) (bool, error) {
			without, err := r.without(ctx, []string{c.Reuse.Proof})
			if err == nil && without == nil {
				r.log.Info("Setup taken from your checkout, whose lock file is the same: "+c.Reuse.Product, "instead of", c.Run)
			}
			return without == nil, err
		},
	})
	if ctx.Err() != nil {
		return spec, context.Cause(ctx)
	}
	if err != nil || done.Files == "" {
		return spec, err
	}
	if !done.Ran {
		r.log.Info("Set up from an earlier run", "files", done.Files)
	}
	spec.ReadOnly = append(slices.Clone(spec.ReadOnly), done.Files)
	spec.Env = merged(done.Env, spec.Env)
	return spec, nil
}

// setupCommands are those of the settings, where AutoSetup stands for those that the
// project's lock files name and whose programs are there.
func (r *run) setupCommands(ctx context.Context, p *project.Project, late bool) (all []workspace.SetupCommand, err error) {
	for _, c := range r.Project.Setup {
		switch {
		case c.Run != AutoSetup:
			all = append(all, c)
		case late || p == nil: // nothing is run
		case len(p.Setup) == 0:
			r.log.Info("setup: auto finds no lock file of a package manager in the project's root")
		default:
			without, err := r.without(ctx, probes(p.Setup))
			if err != nil {
				return nil, err
			}
			for _, load := range p.Setup {
				if slices.Contains(without, load.Probe) {
					r.log.Warn("Setup left out: "+load.Command, "missing", load.Program)
					continue
				}
				c.Run, c.Reuse = load.Command, load.Reuse
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// given are the variables of the configuration, by which a setup is known.
func given(env map[string]string) []string {
	all := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		all = append(all, k+"="+env[k])
	}
	return all
}

// merged joins variables; what the configuration says wins.
func merged(ours, theirs map[string]string) map[string]string {
	all := maps.Clone(ours)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, theirs)
	return all
}

// runSetup runs one command and records it in the ledger.
func (r *run) runSetup(ctx context.Context, spec sandbox.Spec, c workspace.SetupCommand, files string, env map[string]string) error {
	spec.Cache, spec.Env = files, merged(env, spec.Env)
	var refused atomic.Pointer[sandbox.Refusal]
	shell, err := r.Sandbox.Shell(spec)
	if err != nil {
		return err
	}
	if c.Network && shell.Confined() {
		spec.Network = confined.Online(r.env.network, slices.Concat(r.Project.Registries, r.Sandbox.Network.AllowHosts), "workspace.registries", r.log, r.Reader)
		logged := spec.Network.Report
		spec.Network.Report = func(x sandbox.Refusal) { refused.Store(&x); logged(x) }
		if shell, err = r.Sandbox.Shell(spec); confined.IsKey(err, "sandbox.no_allow_list") {
			return &delivery.TaskError{Err: i18n.E("agent.setup_network", c.Run)}
		} else if err != nil {
			return err
		}
	}
	defer func() { _ = shell.Close() }()
	if err := r.ledger.Activity(contextstore.Processing, "setup"); err != nil {
		return err
	}
	check, err := r.runCheck(ctx, shell, Check{Command: c.Run, Timeout: c.Timeout}, contextstore.CheckRun{Setup: true})
	if err == nil && !check.Passed() {
		e := &setupError{run: check}
		if x := refused.Load(); x != nil {
			e.refused = func(l i18n.Lang) string { return confined.Refusal(l, *x, "workspace.registries") }
		}
		err = e
	}
	return err
}

// maxNamed is how many submodules the model is told by name.
const maxNamed = 20

// missing tells the model what a clone leaves out on purpose.
func (r *run) missing(ctx context.Context) (string, error) {
	m, err := r.out.Workspace.Missing(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if n := len(m.Submodules); n > 0 {
		names := strings.Join(m.Submodules[:min(n, maxNamed)], ", ")
		if n > maxNamed {
			names += fmt.Sprintf(" and %d more", n-maxNamed)
		}
		fmt.Fprintf(&b, "\nSubmodules are not checked out here: %s. Their directories are empty, and nothing in them becomes part of your change.\n", names)
	}
	if m.LFS > 0 {
		fmt.Fprintf(&b, "\n%d files are kept in Git LFS: here they are short pointer files, not their contents. Do not change them.\n", m.LFS)
	}
	return b.String(), nil
}

// steps records the tree after each call that may have changed it, so that it
// can be shown and taken back. A failure is the log's: the call itself was done.
func (r *run) steps(tools []tool.Tool) []tool.Tool {
	for i, t := range tools {
		if !t.Definition().ReadOnly {
			tools[i] = step{t, r}
		}
	}
	return tools
}

type step struct {
	tool.Tool
	run *run
}

func (s step) Call(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	res, err := s.Tool.Call(ctx, args)
	if err == nil {
		if told := s.run.snapshot(ctx, s.Definition().Name); told != "" {
			res.Text += "\n" + told
		}
	}
	return res, err
}

// snapshot records a step. Where the tree cannot be recorded, which may be for what
// the model made of it, told says so once for each reason: no commit could be made
// of it either.
func (r *run) snapshot(ctx context.Context, label string) (told string) {
	s, err := r.out.Workspace.Snapshot(ctx, label)
	if ctx.Err() != nil {
		return ""
	}
	if err == nil {
		r.env.unrecorded = ""
		r.log.Debug("Snapshot", "id", s.ID, "label", s.Label)
		return ""
	}
	why := r.Store.Redact(err.Error())
	if why == r.env.unrecorded {
		return ""
	}
	r.env.unrecorded = why
	r.log.Warn("Steps are not recorded as snapshots: " + why)
	return unfit(why)
}

// unfit tells the model that its tree cannot be recorded.
func unfit(why string) string {
	return "[The workspace cannot be recorded as it is now, nor your work be handed over: " + why + "]"
}

// sinceLastStep tells which files are not as the last step left them, after a
// power cut: they were not synced, the snapshot was (PROTOCOL "Claim" 5).
func (r *run) sinceLastStep(ctx context.Context) string {
	all, err := r.out.Workspace.Snapshots(ctx)
	if err != nil || len(all) == 0 {
		return ""
	}
	changes, err := r.out.Workspace.Changes(ctx, all[len(all)-1].ID, "")
	if err != nil {
		return ""
	}
	if len(changes) == 0 {
		return " All files are as they were after your last finished call."
	}
	names := workspace.Paths(changes)
	text := " Not as they were after your last finished call: " + strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "."
}
