package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/ops"
)

// Health looks at the models in use, and at the base directory for what is wrong now: at what tori
// serve looks at, whether that runs or not, and of what it alone can know at what it told. It writes
// nothing there. Its errors are *ConfigError where the settings are wrong, or the base directory cannot
// be looked at.
func Health(ctx context.Context, env Env, dir, configFile string) (h ops.Health, err error) {
	s, who, err := atBase(env, RunOptions{BaseDir: dir, Config: configFile, Quiet: true})
	if err != nil {
		return h, err
	}
	if err := s.openModels(); err != nil {
		return h, &ConfigError{err}
	}
	defer func() { _ = s.models.Close() }()
	h.Models = s.models.Health(ctx)
	h.Alerts = []ops.HealthAlert{}
	add := func(a alert, told contextstore.Alert) {
		h.Alerts = append(h.Alerts, ops.HealthAlert{Name: a.Name, About: a.About, Level: levelOf(a.Name), Text: s.redact.Strict().String(env.Lang.Error(a.Why)), Docs: alertDocs(a.Name), Since: told.Begun})
	}
	all := modelsDown(h.Models, func(string) bool { return true })
	if len(all) == 0 && !h.Models.Ready {
		all = append(all, alert{Name: "models_down", Why: i18n.E("alert.models_down", i18n.E("health.models"), h.Models.Err, "-")})
	}
	told := map[alertID]contextstore.Alert{}
	holds := contextstore.Holds(s.opt.BaseDir)
	if holds != nil && (dir != "" || s.cfg.BaseSet()) { // where nobody named one, nothing may have run yet
		return h, &ConfigError{holds}
	}
	if holds == nil && who.Admin {
		var wrong []alert
		if h.House, wrong, err = s.lookAround(ctx, told); err != nil {
			return h, &ConfigError{err} // nothing can be begun either
		}
		all = append(all, wrong...)
	}
	for _, a := range all {
		i := alertID{a.Name, a.About}
		add(a, told[i])
		delete(told, i)
	}
	for _, k := range told { // what tori serve alone knows, and what is over since less than the cool-down
		add(alert{Name: k.Name, About: k.About, Why: errors.New(k.Text)}, k)
	}
	slices.SortFunc(h.Alerts, func(a, b ops.HealthAlert) int { // critical before warning
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Name, b.Name), cmp.Compare(a.About, b.About))
	})
	h.Status = statusOf(h.Alerts)
	return h, nil
}

// lookAround looks at the base directory, and for the open alerts of a tori serve that runs.
func (s *system) lookAround(ctx context.Context, told map[alertID]contextstore.Alert) (*ops.House, []alert, error) {
	base := s.opt.BaseDir
	h := &ops.House{BaseDir: base, Serve: contextstore.IsAlone(base, "serve"), Free: math.MaxUint64, Night: []ops.Night{}}
	if free, err := disk.Free(base); err == nil {
		h.Free = free
	}
	sums, err := measure(ctx, base, s.cfg.Monitor.Alerts, s.env.Now())
	if err != nil {
		return nil, nil, err
	}
	h.Tasks, h.Used = sums.Tasks, sums.Used
	at := premises{base: base, cfg: s.cfg, now: s.env.Now(), free: h.Free, sums: sums}
	house, err := contextstore.ReadHouseDB(ctx, base)
	if errors.Is(err, fs.ErrNotExist) {
		wrong, err := at.wrong(ctx)
		return h, wrong, err
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = house.Close() }() // only read from
	at.house = house
	if s.cfg.Backup.Dir != "" {
		b, err := readBackups(ctx, house, s.cfg.Backup.Dir)
		if err != nil {
			return nil, nil, err
		}
		h.Backup = &ops.Backup{LastSuccess: b.Made, LastVerified: b.Verified, Error: s.redact.Strict().String(cmp.Or(b.Failed, b.Damage))}
	}
	if h.Night, err = nights(ctx, house); err != nil {
		return nil, nil, err
	}
	if h.Serve {
		all, err := house.Alerts(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, k := range all {
			if k.Ended.IsZero() {
				told[alertID{k.Name, k.About}] = k
			}
		}
	}
	wrong, err := at.wrong(ctx)
	return h, wrong, err
}

// nights is how each step of the nightly work went the last time.
func nights(ctx context.Context, house houseReader) ([]ops.Night, error) {
	all := []ops.Night{}
	for _, name := range nightSteps() {
		raw, err := house.Mark(ctx, maintenanceScope, name)
		if err != nil {
			return nil, err
		}
		why, err := house.Mark(ctx, nightFailedScope, name)
		if err != nil {
			return nil, err
		}
		if at, err := time.Parse(time.RFC3339, raw); err == nil {
			all = append(all, ops.Night{Step: name, At: at, Error: why})
		}
	}
	return all, nil
}

// statusOf is the worst level of alerts.
func statusOf(all []ops.HealthAlert) string {
	status := "ok"
	for _, a := range all {
		if status = levelWarning; a.Level == levelCritical {
			return levelCritical
		}
	}
	return status
}
