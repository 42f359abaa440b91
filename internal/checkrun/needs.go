package checkrun

import (
	"context"
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/progress"
	"toritsugi/internal/project"
	"toritsugi/internal/verdict"
)

// needs are dependencies of the project that its checks miss.
type needs struct {
	looked []string          // what was looked for
	named  map[string]string // of that, what the project's own files name: the file
	setup  []string          // commands that would install it
}

// Missing are what checks that failed say is not there.
func Missing(runs []contextstore.CheckRun) (all []string) {
	for _, c := range runs {
		if !c.Passed() {
			all = append(all, c.Missing...)
		}
	}
	return all
}

// Lacks finds out which of the things that checks miss are dependencies of the project,
// and logs it once.
func (r *Runner) Lacks(ctx context.Context, all []string) error {
	all = slices.DeleteFunc(all, func(what string) bool { return slices.Contains(r.needs.looked, what) })
	commit := r.Trusted
	if len(all) == 0 || commit == "" {
		return nil
	}
	if r.needs.named == nil {
		r.needs.named = map[string]string{}
	}
	r.needs.looked = append(r.needs.looked, all...)
	named, setup, err := project.Needs(ctx, r.Workspace, commit, all)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil || len(named) == 0:
		return err
	}
	maps.Copy(r.needs.named, named)
	r.needs.setup = setup
	r.Log.Warn(r.NeedsText(i18n.English))
	return nil
}

// NeedsText says which dependencies are not installed, and which setting installs
// them; "" for none.
func (r *Runner) NeedsText(l i18n.Lang) string {
	var names []string
	for _, what := range r.needs.looked {
		if file := r.needs.named[what]; file != "" {
			_, name, _ := strings.Cut(what, " ")
			names = append(names, l.T("agent.needs_one", progress.Span(r.Store.Redact(name)), r.Store.Redact(file)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := l.T("agent.needs", strings.Join(names[:min(len(names), verdict.MaxNamed)], ", "))
	switch {
	case len(r.Settings.Setup) > 0:
		return text + l.T("agent.needs_more")
	case len(r.needs.setup) > 0:
		return text + l.T("agent.needs_auto", strings.Join(r.needs.setup, "`, `"))
	}
	return text + l.T("agent.needs_setup")
}
