package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// alert is something that is wrong now. Whatever daemon.wrong lists is told once when it begins
// and once when it is over.
type alert struct {
	Name  string        // what is wrong; docs/operations.md has a heading for each
	About string        // with what; "" for the house
	Why   error         // what is wrong, and in a second line what to do
	After time.Duration // how long it lasts before it is told; 0 for alertAfter
}

// alertID tells alerts apart.
type alertID struct{ name, about string }

func (i alertID) String() string {
	if i.about == "" {
		return i.name
	}
	return i.name + " " + i.about
}

// The levels of alerts. A critical one keeps work from being taken or done, or soon will.
const (
	levelWarning  = "warning"
	levelCritical = "critical"
)

// levelOf is the level of an alert, by its name.
func levelOf(name string) string {
	switch name {
	case "disk_full", "disk_critical", "login_refused", "unreachable", "channel_down", "models_down":
		return levelCritical
	}
	return levelWarning
}

// alertDocs is where an alert is documented, by its name.
func alertDocs(name string) string { return "docs/operations.md#" + name }

const (
	alertEvery = 15 * time.Second
	// alertAfter is how long something is wrong before it is told, alertOver how long it is not
	// any more before that is: what comes and goes is one alert.
	alertAfter = time.Minute
	alertOver  = 10 * time.Minute
	// givenUpFor is for how long an event that was given up is an alert.
	givenUpFor = time.Hour
	// tellerPause is how long a way that failed is left alone.
	tellerPause = 5 * time.Minute
)

// alarms tell of what is wrong, over restarts once each. Their fields are set once.
type alarms struct {
	store *contextstore.Store
	now   func() time.Time
	wrong func(ctx context.Context) ([]alert, error)
	ways  []teller // of each, people are told once
	lang  i18n.Lang
	mask  func(string) string
	log   *slog.Logger

	since, gone map[alertID]time.Time // since when something is wrong, and since when what is open is not
	untold      channel.Throttle      // for complaints that none can be told
	paused      map[string]time.Time  // until when a way is left alone, by its name

	mu   sync.Mutex
	open map[string]int
}

// counts are how many alerts are open, by name.
func (a *alarms) counts() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open
}

// run looks every so often until ctx ends.
func (a *alarms) run(ctx context.Context) {
	every(ctx, alertEvery, func(ctx context.Context) {
		if err := a.look(ctx); err != nil && ctx.Err() == nil && a.untold.Due(a.now(), givenUpFor) {
			a.log.Error("Not all alerts are told: " + err.Error())
		}
	})
}

// look compares what is wrong with what was told, and tells the rest.
func (a *alarms) look(ctx context.Context) error {
	wrong, err := a.wrong(ctx)
	if err != nil {
		return err // nothing is over because it is not known
	}
	known, err := a.store.Alerts(ctx)
	if err != nil {
		return err
	}
	now, since, gone, open := a.now(), map[alertID]time.Time{}, map[alertID]time.Time{}, map[string]int{}
	is, was := map[alertID]bool{}, map[alertID]bool{}
	for _, w := range wrong {
		is[alertID{w.Name, w.About}] = true
	}
	for _, k := range known {
		i := alertID{k.Name, k.About}
		was[i] = true
		if k.Ended.IsZero() && !is[i] {
			gone[i] = earlier(a.gone[i], now)
			if now.Sub(gone[i]) >= alertOver {
				k.Ended = contextstore.Time{Time: now.UTC()}
				if perr := a.store.PutAlert(ctx, k); perr != nil {
					return perr
				}
				a.log.Info("An alert is over", "alert", k.Name, "about", k.About)
			}
		}
		if k.Ended.IsZero() {
			open[k.Name]++
		}
		err = errors.Join(err, a.say(ctx, k))
	}
	for _, w := range wrong {
		i := alertID{w.Name, w.About}
		if was[i] {
			continue
		}
		since[i] = earlier(a.since[i], now)
		if now.Sub(since[i]) < max(w.After, alertAfter) {
			continue
		}
		was[i] = true
		k := contextstore.Alert{Name: w.Name, About: w.About, Text: a.mask(a.lang.Error(w.Why)), Begun: contextstore.Time{Time: now.UTC()}}
		if perr := a.store.PutAlert(ctx, k); perr != nil {
			err = errors.Join(err, perr)
			continue
		}
		a.log.Warn("Alert: "+firstLine(i18n.English.Error(w.Why)), "alert", w.Name, "about", w.About, "level", levelOf(w.Name), "docs", alertDocs(w.Name))
		open[k.Name]++
		err = errors.Join(err, a.say(ctx, k))
	}
	a.since, a.gone = since, gone
	a.mu.Lock()
	a.open = open
	a.mu.Unlock()
	return err
}

// earlier is t, or now where there is none, or the clock was set back.
func earlier(t, now time.Time) time.Time {
	if t.IsZero() || t.After(now) {
		return now
	}
	return t
}

// say tells the begin and the end of an alert as far as that was not told.
func (a *alarms) say(ctx context.Context, k contextstore.Alert) error {
	i := alertID{k.Name, k.About}
	n := news{Key: "alert/" + i.String() + "/" + k.Begun.String(), Alert: k.Name, About: k.About, Level: levelOf(k.Name), Begun: k.Begun.Time}
	sign := "⚠️"
	if n.Level == levelCritical {
		sign = "🚨"
	}
	n.Text = a.lang.T("alert.begun", sign, k.Text, i.String(), alertDocs(k.Name))
	if !k.Told {
		if err := a.tell(ctx, n); err != nil {
			return err
		}
		k.Told = true
		if err := a.store.PutAlert(ctx, k); err != nil {
			return err
		}
	}
	if k.Ended.IsZero() {
		return nil
	}
	end := n
	end.Key, end.Over, end.Text = n.Key+"/over", true, a.lang.T("alert.over", firstLine(k.Text), i.String())
	if err := a.tell(ctx, end); err != nil {
		return err
	}
	if err := a.store.DropAlert(ctx, k); err != nil {
		return err
	}
	return a.forget(ctx, n.Key, end.Key)
}

// toldScope is that of the marks of what was told by which way, until the alert is forgotten.
const toldScope = "told"

// tell tells people by every way that has not told it yet. One that fails keeps the others from
// nothing, and is left alone for a while.
func (a *alarms) tell(ctx context.Context, n news) (err error) {
	for _, w := range a.ways {
		mark := n.Key + " " + w.name
		if !w.once {
			was, merr := a.store.Mark(ctx, toldScope, mark)
			if err = errors.Join(err, merr); was != "" || merr != nil {
				continue
			}
		}
		if a.now().Before(a.paused[w.name]) {
			err = errors.Join(err, errPaused)
			continue
		}
		werr := w.tell(ctx, n)
		switch {
		case werr != nil && !w.once:
			if a.paused == nil {
				a.paused = map[string]time.Time{}
			}
			a.paused[w.name] = a.now().Add(tellerPause)
		case werr == nil && !w.once:
			werr = a.store.SetMark(ctx, toldScope, mark, "1")
		}
		err = errors.Join(err, werr)
	}
	return err
}

// errPaused says that people are told later by a way that failed just now.
var errPaused = errors.New("it is tried again")

// forget removes the marks of texts that nobody will be told again.
func (a *alarms) forget(ctx context.Context, keys ...string) (err error) {
	for _, w := range a.ways {
		for _, key := range keys {
			if !w.once {
				err = errors.Join(err, a.store.SetMark(ctx, toldScope, key+" "+w.name, ""))
			}
		}
	}
	return err
}

// wrong is all that is wrong now.
func (d *daemon) wrong(ctx context.Context) ([]alert, error) {
	all := d.unready()
	for _, m := range d.members {
		if m.shared == nil {
			continue
		}
		if err := m.shared(); err != nil {
			all = append(all, alert{Name: "channel_shared", About: string(m.Kind()), Why: i18n.E("alert.channel", string(m.Kind()), err)})
		}
	}
	for file, why := range d.talks.engine.Unloaded() {
		all = append(all, alert{Name: "not_loaded", About: file, Why: i18n.E("alert.not_loaded", why)})
	}
	if why := d.talks.engine.Router.Trouble(); why != nil {
		all = append(all, alert{Name: "not_loaded", About: d.cfg.Routing.RulesFile, Why: i18n.E("alert.not_loaded", why)})
	}
	patience := d.cfg.Monitor.Alerts.Undelivered()
	late, run, err := d.deliverer.Late(ctx, d.env.Now().Add(-patience))
	if err != nil {
		return nil, err
	}
	if late > 0 {
		all = append(all, alert{Name: "undelivered", Why: i18n.E("alert.undelivered", late, patience.Minutes(), contextstore.Short(run))})
	}
	if down := d.down.Load(); down != nil {
		all = append(all, *down...)
	}
	house, err := d.premises().wrong(ctx)
	if all = append(all, house...); err != nil {
		return nil, err
	}
	given, err := d.store.GivenUpSince(ctx, d.env.Now().Add(-givenUpFor))
	for _, g := range given {
		all = append(all, alert{Name: "given_up", About: g.Channel, Why: i18n.E("alert.given_up", g.Events, g.Channel, g.Last)})
	}
	return all, err
}
