package agent

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

// missing are what checks that failed say is not there.
func missing(runs []contextstore.CheckRun) (all []string) {
	for _, c := range runs {
		if !c.Passed() {
			all = append(all, c.Missing...)
		}
	}
	return all
}

// lacks finds out which of the things that checks miss are dependencies of the project,
// and logs it once.
func (r *run) lacks(ctx context.Context, all []string) error {
	all = slices.DeleteFunc(all, func(what string) bool { return slices.Contains(r.verify.needs.looked, what) })
	commit := r.out.TrustedCommit()
	if len(all) == 0 || commit == "" {
		return nil
	}
	if r.verify.needs.named == nil {
		r.verify.needs.named = map[string]string{}
	}
	r.verify.needs.looked = append(r.verify.needs.looked, all...)
	named, setup, err := project.Needs(ctx, r.out.Workspace, commit, all)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil || len(named) == 0:
		return err
	}
	maps.Copy(r.verify.needs.named, named)
	r.verify.needs.setup = setup
	r.log.Warn(r.needsText(i18n.English))
	return nil
}

// needsText says which dependencies are not installed, and which setting installs
// them; "" for none.
func (r *run) needsText(l i18n.Lang) string {
	var names []string
	for _, what := range r.verify.needs.looked {
		if file := r.verify.needs.named[what]; file != "" {
			_, name, _ := strings.Cut(what, " ")
			names = append(names, l.T("agent.needs_one", progress.Span(r.Store.Redact(name)), r.Store.Redact(file)))
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := l.T("agent.needs", strings.Join(names[:min(len(names), verdict.MaxNamed)], ", "))
	switch {
	case len(r.Project.Setup) > 0:
		return text + l.T("agent.needs_more")
	case len(r.verify.needs.setup) > 0:
		return text + l.T("agent.needs_auto", strings.Join(r.verify.needs.setup, "`, `"))
	}
	return text + l.T("agent.needs_setup")
}
