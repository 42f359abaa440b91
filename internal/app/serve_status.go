package app

import (
	"context"
	"errors"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/i18n"
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

// Ready implements web.Daemon.
func (d *daemon) Ready() (why []string) {
	for _, a := range d.unready() {
		why = append(why, d.redact.Strict().String(firstLine(i18n.English.Error(a.Why))))
	}
	return why
}

// Alerts implements web.Daemon.
func (d *daemon) Alerts() map[web.Alert]int {
	all := map[web.Alert]int{}
	for name, n := range d.alarms.counts() {
		all[web.Alert{Name: name, Level: levelOf(name)}] = n
	}
	return all
}

// House implements web.Daemon.
func (d *daemon) House(ctx context.Context) (h web.House, err error) {
	if f := d.sums.Load(); f != nil {
		h.Used = f.Used
	}
	b, err := d.backupHealth(ctx)
	h.Backup, h.Verified = b.Made, b.Verified
	steps, nerr := nights(ctx, d.store)
	err = errors.Join(err, nerr)
	h.Night = map[string]web.Upkeep{}
	for _, s := range steps {
		h.Night[s.Step] = web.Upkeep{At: s.At, Failed: s.Error != ""}
	}
	return h, err
}

// unready is why no work is taken now, nothing where it is.
func (d *daemon) unready() (all []alert) {
	c := d.stats.Counts()
	if c.NoSpace {
		all = append(all, alert{Name: "disk_full", Why: i18n.E("alert.disk_full")})
	}
	if d.aside.Load() { // it is at no door
		return all
	}
	patience := 3*max(d.intake.Interval, d.intake.CommentsEvery) + time.Minute
	for _, watch := range d.watches {
		source := watch.Host.Source()
		polls := c.Polls[source]
		if polls.Refused {
			all = append(all, alert{Name: "login_refused", About: source, Why: i18n.E("alert.login_refused", source, d.renewal(source))})
		}
		if polls.At.IsZero() {
			all = append(all, alert{Name: "unreachable", About: source, Why: i18n.E("alert.not_reached", source), After: patience})
		} else if d.env.Now().Sub(polls.At) > patience {
			all = append(all, alert{Name: "unreachable", About: source, Why: i18n.E("alert.unreachable", source, polls.At.UTC().Format(time.RFC3339))})
		}
	}
	for _, m := range d.members {
		if m.ready == nil {
			continue
		}
		if err := m.ready(); err != nil {
			all = append(all, alert{Name: "channel_down", About: string(m.Kind()), Why: i18n.E("alert.channel", string(m.Kind()), err)})
		}
	}
	return all
}

// renewal is how another login reaches the daemon.
func (d *daemon) renewal(source string) error {
	f, _ := d.cfg.Forge(source)
	switch {
	case f.App:
		return i18n.E("alert.renew_key")
	case f.TokenFile != "":
		return i18n.E("alert.renew_file", source)
	}
	return i18n.E("alert.renew_restart", source)
}

var _ web.Daemon = (*daemon)(nil)
