package app

import (
	"context"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/web"
)

// Counts implements web.Daemon.
func (d *daemon) Counts() dispatch.Counts { return d.stats.Counts() }

// Waiting implements web.Daemon.
func (d *daemon) Waiting() (n int, ok bool) {
	if d.inbox == nil {
		return 0, false
	}
	return d.inbox.Waiting(), true
}

// Busy implements web.Daemon.
func (d *daemon) Busy() int { return d.pool.Busy() }

// Tasks implements web.Daemon.
func (d *daemon) Tasks(ctx context.Context) (map[web.Group]int, error) {
	all := map[web.Group]int{}
	for _, source := range chatSources() {
		for _, s := range web.Statuses() {
			all[web.Group{Channel: source, Status: s}] = 0
		}
	}
	err := d.store.Live(ctx, func(r contextstore.Row) error {
		g := web.Group{Status: r.Status}
		if r.Key.Type == "chat" {
			g.Channel = r.Key.Source
		}
		all[g]++
		return nil
	})
	return all, err
}

// Ready implements web.Daemon: why no work is taken now, "" where it is.
func (d *daemon) Ready() (why []string) {
	c := d.stats.Counts()
	if c.NoSpace {
		why = append(why, "disk: no space")
	}
	patience := 3*max(d.intake.Interval, d.intake.CommentsEvery) + time.Minute
	for _, watch := range d.watches {
		source := watch.Host.Source()
		if c.Refused[source] {
			why = append(why, source+": the login is refused; "+d.renewal())
		}
		if at, ok := c.PolledAt[source]; !ok {
			why = append(why, source+": not reached yet")
		} else if d.env.Now().Sub(at) > patience {
			why = append(why, source+": not reached since "+at.UTC().Format(time.RFC3339))
		}
	}
	for _, m := range d.members {
		if m.ready == nil {
			continue
		}
		if w := m.ready(); w != "" {
			why = append(why, string(m.Kind())+": "+w)
		}
	}
	return why
}

// renewal is how another login reaches the daemon.
func (d *daemon) renewal() string {
	switch g := d.cfg.GitHub; {
	case g.AppID != 0:
		return "another key in github.app_private_key_file is used without a restart"
	case g.TokenFile != "":
		return "another token in github.token_file is used without a restart"
	}
	return "another token (github.token, GITHUB_TOKEN) needs a restart"
}

var _ web.Daemon = (*daemon)(nil)
