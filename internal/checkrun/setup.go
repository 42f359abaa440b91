package checkrun

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/i18n"
	"toritsugi/internal/project"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool/confined"
	"toritsugi/internal/verdict"
	"toritsugi/internal/workspace"
)

// AutoSetup is the command of a setup that stands for those that the project's lock
// files name.
const AutoSetup = config.AutoSetup

// SetupError ends a run that could not be set up: not the model's fault, which
// was never called.
type SetupError struct {
	Run     contextstore.CheckRun
	Refused func(i18n.Lang) string // the last connection that it asked for in vain
}

func (e *SetupError) Error() string { return e.Reason(i18n.English) }

func (e *SetupError) Reason(l i18n.Lang) string {
	text := l.T("agent.setup_failed", e.Run.Command, verdict.Result(l, e.Run))
	if e.Refused != nil {
		text += l.T("agent.setup_refused", e.Refused(l))
	}
	return text
}

// SetUp makes the workspace ready, which later commands see (Spec).
// Nothing is run when it is late: once the model has had a turn in this workspace.
func (r *Runner) SetUp(ctx context.Context, p *project.Project, late bool) error {
	commands, err := r.setupCommands(ctx, p, late)
	if err != nil {
		return err
	}
	key := r.Ledger.Metadata().TaskKey
	done, err := r.Workspace.Setup(ctx, workspace.SetupOptions{
		Commands: commands, Dir: r.Store.SetupDir(key.Owner, key.Repo), Given: given(r.Env), Late: late,
		Run: func(ctx context.Context, c workspace.SetupCommand, files string, env map[string]string) error {
			return r.runSetup(ctx, r.Spec, c, files, env)
		},
		Proves: func(ctx context.Context, c workspace.SetupCommand) (bool, error) {
			without, err := r.without(ctx, []string{c.Reuse.Proof})
			if err == nil && without == nil {
				r.Log.Info("Setup taken from your checkout, whose lock file is the same: "+c.Reuse.Product, "instead of", c.Run)
			}
			return without == nil, err
		},
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil || done.Files == "" {
		return err
	}
	if !done.Ran {
		r.Log.Info("Set up from an earlier run", "files", done.Files)
	}
	r.Spec.ReadOnly = append(slices.Clone(r.Spec.ReadOnly), done.Files)
	r.Spec.Env = merged(done.Env, r.Spec.Env)
	return nil
}

// setupCommands are those of the settings, where AutoSetup stands for those that the
// project's lock files name and whose programs are there; what is left out of these stays in
// p.Setup.
func (r *Runner) setupCommands(ctx context.Context, p *project.Project, late bool) (all []workspace.SetupCommand, err error) {
	for _, c := range r.Settings.Setup {
		switch {
		case c.Run != AutoSetup:
			all = append(all, c)
		case late || p == nil: // nothing is run
		case len(p.Setup) == 0:
			r.Log.Info("setup: auto finds no lock file of a package manager in the project's root")
		default:
			without, err := r.without(ctx, probes(p.Setup))
			if err != nil {
				return nil, err
			}
			loads := p.Setup
			p.Setup = nil
			for _, load := range loads {
				if slices.Contains(without, load.Probe) {
					r.Log.Warn("Setup left out: "+load.Command+": "+load.Program+" is not on this machine; install it there, or name in the setting setup what else installs the dependencies", "missing", load.Program)
					p.Setup = append(p.Setup, load)
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
	all := map[string]string{}
	maps.Copy(all, ours)
	maps.Copy(all, theirs)
	return all
}

// runSetup runs one command and records it in the ledger.
func (r *Runner) runSetup(ctx context.Context, spec sandbox.Spec, c workspace.SetupCommand, files string, env map[string]string) error {
	spec.Cache, spec.Env = files, merged(env, spec.Env)
	var refused atomic.Pointer[sandbox.Refusal]
	shell, err := r.Shell(spec)
	if err != nil {
		return err
	}
	if c.Network && shell.Confined() {
		spec.Network = confined.Online(r.Network, slices.Concat(r.Settings.Registries, r.Network.AllowHosts), "workspace.registries", r.Log, r.Reader)
		logged := spec.Network.Report
		spec.Network.Report = func(x sandbox.Refusal) { refused.Store(&x); logged(x) }
		if shell, err = r.Shell(spec); confined.IsKey(err, "sandbox.no_allow_list") {
			return &delivery.TaskError{Err: i18n.E("agent.setup_network", c.Run)}
		} else if err != nil {
			return err
		}
	}
	defer func() { _ = shell.Close() }()
	if err := r.Ledger.Activity(contextstore.Processing, "setup"); err != nil {
		return err
	}
	check, err := r.runCheck(ctx, shell, Check{Command: c.Run, Timeout: c.Timeout}, contextstore.CheckRun{Setup: true})
	if err == nil && !check.Passed() {
		e := &SetupError{Run: check}
		if x := refused.Load(); x != nil {
			e.Refused = func(l i18n.Lang) string { return confined.Refusal(l, *x, "workspace.registries") }
		}
		err = e
	}
	return err
}
