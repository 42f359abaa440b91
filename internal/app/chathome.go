package app

import (
	"context"
	"fmt"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/order"
)

// homeRuns is how many runs of a person are listed.
const homeRuns = 20

// home tells a person, by an id of a channel, in Markdown what waits for their decision and
// what became of their runs, by whichever id of theirs they were begun. Of
// what may not leave this machine no title is told.
func (t *talks) home(ctx context.Context, who string) (string, error) {
	waiting, err := t.approvals.Waiting(ctx, contextstore.Viewer{Admin: true})
	if err != nil {
		return "", err
	}
	people, err := t.access(ctx)
	if err != nil {
		return "", err
	}
	l, err := contextstore.List(ctx, t.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{User: people.User(who), Limit: homeRuns})
	if err != nil {
		return "", err
	}
	text := []string{"# " + t.lang.T("app.home_waiting")}
	list := func(format string, args ...any) { text = append(text, fmt.Sprintf("- "+format, args...)) }
	for _, j := range waiting {
		if !t.approvals.May(ctx, j, who) {
			continue
		}
		list("%s `/approve %s %s`", t.homeTitle(j.Run), j.Job, j.Short())
	}
	if len(text) == 1 {
		text = append(text, t.lang.T("app.home_nothing"))
	}
	text = append(text, "", "# "+t.lang.T("app.home_runs"))
	for _, v := range l.Views {
		list("%s: %s (%s)", t.status(v), t.homeTitle(v.Metadata.UUID), v.Metadata.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if len(l.Views) == 0 {
		text = append(text, t.lang.T("app.home_nothing"))
	}
	return t.redact.Strict().String(strings.Join(text, "\n")), nil
}

// homeTitle is the title of a run, in bold.
func (t *talks) homeTitle(uuid string) string {
	m, err := t.store.Metadata(uuid) // of what has ended a list tells less
	if err == nil {
		var o order.Order
		if o, err = order.Parse(m); o.LocalOnly {
			return t.lang.T("app.home_local")
		}
	}
	if err != nil {
		return "`" + contextstore.Short(uuid) + "`"
	}
	return "**" + strings.NewReplacer("*", "", "\n", " ").Replace(m.Title) + "**"
}
