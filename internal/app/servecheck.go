package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/bucket"
	"toritsugi/internal/delivery"
	"toritsugi/internal/disk"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/hook"
	"toritsugi/internal/i18n"
)

// ServeFinding is how one part of a watched repository, or of a forge, is set up.
type ServeFinding struct {
	Source     string `json:"source"`
	Repository string `json:"repository,omitempty"` // "" for the forge itself
	Part       string `json:"part"`                 // "login", "repositories", "permission", "scopes", "labels", "webhook"; "bucket" of context_storage.blobs
	OK         bool   `json:"ok"`
	Fixed      bool   `json:"fixed,omitempty"`
	Text       string `json:"text"` // in the reader's language; where it is not well what to do
}

// CheckServe looks over the repositories that the settings have watched, whether tori serve runs
// or not. With fix it makes what it may: labels that are missing, and webhooks to serve.public_url.
func CheckServe(ctx context.Context, env Env, configFile string, fix bool) ([]ServeFinding, error) {
	s := &system{env: env, opt: RunOptions{Config: configFile, Confined: true, Quiet: true}, fs: &disk.FS{}}
	if err := s.settle(); err != nil {
		return nil, err
	}
	if err := s.openHosts(ctx); err != nil {
		return nil, &ConfigError{err}
	}
	c := &serveCheck{system: s, fix: fix}
	for _, source := range slices.Sorted(maps.Keys(s.hosts)) {
		h := s.hosts[source]
		setup, ok := h.Tracker.(forge.Setup)
		patterns := s.watch(h).Patterns
		if !ok || len(patterns) == 0 {
			continue
		}
		if err := c.forge(ctx, h, setup, patterns); err != nil {
			return c.all, err
		}
	}
	if len(c.all) == 0 {
		return nil, &ConfigError{i18n.E("setup.none")}
	}
	if place := c.cfg.ContextStorage.Blobs; place != "" {
		c.found("context_storage.blobs", forge.Repo{}, "bucket", false, c.writable(ctx), "setup.bucket", place)
	}
	return c.all, nil
}

// writable is why the place of blobs cannot be used, nil where it takes an object and lets it go.
func (c *serveCheck) writable(ctx context.Context) error {
	const name = "tori-check"
	p, err := blobPlace(c.cfg, bucket.Options{FS: c.fs, HTTP: c.env.HTTP, Now: c.env.Now})
	if err == nil {
		err = p.Put(ctx, name, []byte(name))
	}
	if err == nil {
		_, err = p.Get(ctx, name, int64(len(name)))
	}
	if err == nil {
		err = p.Remove(ctx, name)
	}
	return err
}

// serveCheck is one CheckServe.
type serveCheck struct {
	*system
	fix bool
	all []ServeFinding
}

// found notes that a part is well, as the text of a key says, or has an error.
func (c *serveCheck) found(source string, r forge.Repo, part string, fixed bool, err error, key string, args ...any) {
	f := ServeFinding{Source: source, Part: part, OK: err == nil, Fixed: fixed && err == nil}
	if r != (forge.Repo{}) {
		f.Repository = r.String()
	}
	if err != nil {
		f.Text = c.env.Lang.Error(err)
	} else {
		f.Text = c.env.Lang.T(key, args...)
	}
	f.Text = c.redact.Strict().String(f.Text)
	c.all = append(c.all, f)
}

// forge looks at one forge. Its error is that ctx ended.
func (c *serveCheck) forge(ctx context.Context, h *delivery.Host, setup forge.Setup, patterns []string) error {
	source, none := h.Source(), forge.Repo{}
	self, err := h.Self(ctx)
	c.found(source, none, "login", false, err, "setup.login", self.Login)
	if err != nil {
		return ctx.Err()
	}
	repos, err := h.Repositories(ctx, patterns)
	c.found(source, none, "repositories", false, err, "setup.repositories", len(repos))
	secret, serr := c.webhookSecret(source)
	if serr != nil {
		c.found(source, none, "webhook", false, serr, "")
	}
	for _, r := range repos {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		may, missing, err := setup.Rights(ctx, r.Repo)
		if err == nil && may < forge.Write {
			err = i18n.E("setup.no_write", self.Login, may)
		}
		c.found(source, r.Repo, "permission", false, err, "setup.permission", may)
		if len(missing) > 0 {
			c.found(source, r.Repo, "scopes", false, i18n.E("setup.missing", strings.Join(missing, ", ")), "")
		}
		c.labels(ctx, h, setup, r.Repo)
		if serr == nil {
			c.webhook(ctx, setup, source, r.Repo, secret)
		}
	}
	return nil
}

func (c *serveCheck) labels(ctx context.Context, h *delivery.Host, setup forge.Setup, r forge.Repo) {
	wanted, fixed := h.Labels.All(), false
	lacks := func() ([]string, error) {
		have, err := setup.Labels(ctx, r)
		var names []string
		for _, l := range wanted {
			if !slices.ContainsFunc(have, func(name string) bool { return strings.EqualFold(name, l.Name) }) {
				names = append(names, l.Name)
			}
		}
		return names, err
	}
	missing, err := lacks()
	if err == nil && len(missing) > 0 && c.fix {
		if err = h.EnsureLabels(ctx, r, wanted); err == nil {
			fixed = true
			missing, err = lacks()
		}
	}
	if err == nil && len(missing) > 0 {
		err = i18n.E("setup.no_labels", strings.Join(missing, ", "))
	}
	c.found(h.Source(), r, "labels", fixed, err, "setup.labels", len(wanted))
}

func (c *serveCheck) webhook(ctx context.Context, setup forge.Setup, source string, r forge.Repo, secret string) {
	public := strings.TrimSuffix(c.cfg.Serve.PublicURL, "/")
	switch {
	case secret == "":
		c.found(source, r, "webhook", false, nil, "setup.polled", c.cfg.Scheduling.Interval)
		return
	case public == "":
		c.found(source, r, "webhook", false, i18n.E("channel.public"), "")
		return
	}
	at, fixed := public+hook.Path(source), false
	wrong, err := setup.Hook(ctx, r, at)
	if (errors.Is(err, forge.ErrNoHook) || err == nil && len(wrong) > 0) && c.fix {
		if err = setup.SetHook(ctx, r, at, secret); err == nil {
			fixed = true
			wrong, err = setup.Hook(ctx, r, at)
		}
	}
	switch {
	case errors.Is(err, forge.ErrNoHook):
		err = i18n.E("setup.no_hook", at)
	case forge.Is(err, forge.Forbidden), forge.Is(err, forge.NotFound), forge.Is(err, forge.Unsupported):
		// Nothing says that it is not well: who looks after the repository may have set it up.
		c.found(source, r, "webhook", false, nil, "setup.unseen", c.env.Lang.Error(err))
		return
	case err == nil && len(wrong) > 0:
		err = i18n.E("setup.bad_hook", at, strings.Join(wrong, ", "))
	}
	c.found(source, r, "webhook", fixed, err, "setup.hook", at)
}
