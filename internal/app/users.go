package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/models"
	"toritsugi/internal/order"
	"toritsugi/internal/userconfig"
)

// How long settings of a user are believed, and a failure to get them; and how many users are
// remembered.
const (
	believeUser   = time.Minute
	believeFailed = 15 * time.Second
	maxUsers      = 1000
)

// users are the settings of single users, for one process. What it knows is in memory only: there
// are keys among it. Safe for concurrent use.
type users struct {
	house  *config.Config
	source userconfig.Source
	api    bool // unknown keys are no error: a server may know more than we
	learn  func(...string)
	log    *slog.Logger
	lang   i18n.Lang
	now    func() time.Time

	mu    sync.Mutex
	known channel.Recent[*knownUser]
}

// knownUser is what is known of one.
type knownUser struct {
	mu    sync.Mutex       // held while it is asked: once for all who want to know
	last  *config.Personal // what was heard last that could be used, whose Config is nil for none; nil: nothing was
	until time.Time        // when it is asked again
	err   error            // why it could not be had, the last time
	said  string           // what was logged of it
}

// openUsers finds where the settings of users are, by those of the house; nil for nowhere.
func (s *system) openUsers() *users {
	u := &users{house: s.cfg, learn: s.redact.Learn, log: s.log, lang: s.env.Lang, now: s.env.Now, known: channel.Recent[*knownUser]{Most: maxUsers}}
	switch api := s.cfg.UserConfigAPI; {
	case api.Enabled:
		client := *cmp.Or(s.env.HTTP, &http.Client{})
		client.Timeout = api.Timeout()
		u.source, u.api = userconfig.API{URL: api.URL, Key: api.APIKey, HTTP: &client}, true
	case s.cfg.UserConfig.Directory != "":
		u.source = userconfig.Directory(s.cfg.UserConfig.Directory)
	default:
		return nil
	}
	return u
}

// of are the settings of a user, with a nil Config where they have none. Where they cannot be had,
// it is what was heard last, else what user_config.on_failure says.
func (u *users) of(ctx context.Context, platform, login string) (config.Personal, error) {
	k := u.one(platform + "/" + strings.ToLower(login))
	k.mu.Lock()
	defer k.mu.Unlock()
	if !u.now().Before(k.until) {
		p, err := u.ask(ctx, platform, login, k)
		if err != nil && ctx.Err() != nil {
			return config.Personal{}, ctx.Err()
		}
		if k.err = err; err == nil {
			k.last, k.until = &p, u.now().Add(believeUser)
		} else {
			k.until = u.now().Add(believeFailed)
			u.say(k, i18n.E("users.failed", platform+"/"+login, err))
		}
	}
	switch {
	case k.last != nil:
		return *k.last, nil
	case u.house.UserConfig.OnFailure == "wait":
		return config.Personal{}, i18n.E("users.failed", platform+"/"+login, k.err)
	}
	return config.Personal{}, nil
}

// one is the entry of a user. Those that nobody asked for of late go.
func (u *users) one(name string) *knownUser {
	u.mu.Lock()
	defer u.mu.Unlock()
	k, known := u.known.Get(name)
	if !known {
		k = &knownUser{}
	}
	u.known.Put(name, k)
	return k
}

func (u *users) ask(ctx context.Context, platform, login string, k *knownUser) (config.Personal, error) {
	s, err := u.source.Read(ctx, platform, login)
	if errors.Is(err, userconfig.ErrNone) {
		k.said = ""
		return config.Personal{}, nil
	}
	if err != nil {
		return config.Personal{}, err
	}
	p, err := u.house.Personal(s.From, s.Data, u.api)
	if err != nil {
		return p, err
	}
	u.learn(p.Keys...)
	u.say(k, append(p.Warnings(), s.Warning)...)
	return p, nil
}

// say logs what is to be said of a user's settings, unless it was the last time.
func (u *users) say(k *knownUser, all ...error) {
	var text []string
	for _, err := range all {
		if err != nil {
			text = append(text, u.lang.Error(err))
		}
	}
	if now := strings.Join(text, "\n"); now != k.said {
		if k.said = now; now != "" {
			u.log.Warn(now)
		}
	}
}

// userOf is whose settings a run goes by: of a run on an item of a forge its user, of a chat's job
// the linked account of who asked; nobody's where a person of this machine began it.
func (s *system) userOf(ctx context.Context, m contextstore.Metadata) (platform, login string, err error) {
	o, err := order.Parse(m)
	if s.users == nil || err != nil {
		return "", "", err
	}
	switch {
	case o.ByHand():
		return "", "", nil
	case o.Chat == nil:
		return m.TaskKey.Source, m.User, nil
	}
	people, err := s.access(ctx)
	platform, login, _ = strings.Cut(people.Account(o.Chat.User), ":")
	return platform, login, err
}

// forRun is the system as the settings of a run's user have it. The caller calls done once the run
// needs no model any more. The error is why the run has to wait.
func (s *system) forRun(ctx context.Context, m contextstore.Metadata) (one *system, done func(), err error) {
	platform, login, err := s.userOf(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	return s.forUser(ctx, platform, login)
}

// forUser is forRun of one user. Nothing of s is changed: what it shares with the result knows no
// key of a user, but for what masks them.
func (s *system) forUser(ctx context.Context, platform, login string) (one *system, done func(), err error) {
	done = func() {}
	p, err := s.personal(ctx, platform, login)
	if err != nil || p.Config == nil {
		return s, done, err
	}
	theirs := *s
	theirs.cfg, theirs.wishes = p.Config, p.Prompt
	if p.Models {
		if err := theirs.openModels(); err != nil {
			return nil, nil, err
		}
		done = func() { _ = theirs.models.Close() }
	}
	return &theirs, done, nil
}

// personal are the settings of a user, with a nil Config where they have none.
func (s *system) personal(ctx context.Context, platform, login string) (config.Personal, error) {
	if s.users == nil || login == "" || !config.IsForge(platform) {
		return config.Personal{}, nil
	}
	return s.users.of(ctx, platform, login)
}

// daysOf are the limits of the days that hold for a run.
func (s *system) daysOf(ctx context.Context, m contextstore.Metadata) (contextstore.DayLimits, error) {
	platform, login, err := s.userOf(ctx, m)
	if err != nil {
		return contextstore.DayLimits{}, err
	}
	p, err := s.personal(ctx, platform, login)
	return dayLimits(cmp.Or(p.Config, s.cfg)), err
}

// metadataOf are the settings of a run of a user as it is made; those of the house where the
// user's cannot be had now.
func (s *system) metadataOf(ctx context.Context, platform, login string, use models.Use, house contextstore.MetadataConfig) contextstore.MetadataConfig {
	one, done, err := s.forUser(ctx, platform, login)
	if err != nil {
		return house
	}
	defer done()
	if one.models == s.models {
		return house
	}
	spec, err := one.models.Spec(ctx, use)
	if err != nil {
		return house
	}
	return one.ofModel(spec)
}

// use is what a run of this process wants a model for.
func (s *system) use(who string) models.Use {
	return models.Use{Role: s.opt.Role, Model: s.opt.Model, Script: s.opt.Script, LocalOnly: s.opt.LocalOnly, Who: who}
}
