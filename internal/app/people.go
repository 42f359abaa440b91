package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

// access is section access with those who linked their accounts by a code. Whoever asks who
// somebody is asks here; what the settings say counts first.
func (s *system) access(ctx context.Context) (config.Access, error) {
	if s.store == nil {
		return s.cfg.Access, nil
	}
	all, err := s.store.Links(ctx)
	return s.cfg.Access.With(asMap(all)), err
}

// login is the account of somebody at a forge, "" for none.
func (s *system) login(ctx context.Context, who, source string) (string, error) {
	people, err := s.access(ctx)
	if err != nil {
		return "", err
	}
	return people.Login(who, source), nil
}

// accessAt is access for who has not opened the store of a base directory.
func accessAt(base string, cfg *config.Config) (config.Access, error) {
	all, err := contextstore.LinksAt(context.Background(), base)
	return cfg.Access.With(asMap(all)), err
}

func asMap(all []contextstore.Link) map[string]string {
	m := make(map[string]string, len(all))
	for _, l := range all {
		m[l.Who] = l.Account
	}
	return m
}

// codeTime is how long a code that links accounts is good.
const codeTime = 10 * time.Minute

// codeLetters spell codes: no I, L, O or U, which are taken for others.
var codeLetters = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// newCode is a code of 60 bits, as people read it.
func newCode(random io.Reader) (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", err
	}
	c := codeLetters.EncodeToString(b[:])
	return c[:4] + "-" + c[4:8] + "-" + c[8:12], nil
}

// codeHash is what is kept of a code, however it was typed.
func codeHash(code string) string {
	code = strings.NewReplacer("-", "", " ", "", "I", "1", "L", "1", "O", "0").Replace(strings.ToUpper(code))
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// Link implements conversation.People: somebody said a code.
func (t *talks) Link(ctx context.Context, user, code string) (string, error) {
	if account := t.cfg.Access.People[user]; account != "" {
		return "", i18n.E("app.link_set", user, account)
	}
	l, err := t.store.TakeLink(ctx, codeHash(code), user)
	switch {
	case errors.Is(err, contextstore.ErrTooManyTries):
		return "", i18n.E("app.link_tries", int(contextstore.TriesWithin.Minutes()))
	case errors.Is(err, contextstore.ErrNoCode):
		t.log.Warn("A code that links nobody was said", "user", user)
		return "", i18n.E("app.link_unknown")
	case err != nil:
		return "", err
	}
	// Also where the program was killed right behind the link.
	if err := contextstore.Audit(t.fs, t.store.BaseDir, t.env.Now(), t.redact.String, contextstore.AuditEntry{Actor: user, Action: "link", What: l.Account}); err != nil {
		t.log.Error("A link is not in audit.jsonl: "+err.Error(), "user", user)
	}
	return t.lang.T("app.linked", user, l.Account), nil
}

// People are those who are linked, in the hands of who sits at this machine.
type People struct {
	who   contextstore.Viewer
	actor string // their id: terminal:hanako
	s     *system
}

// Linked is one line of the list of those who are linked.
type Linked struct {
	contextstore.Link
	Settings bool `json:"settings"` // access.people says so
}

// OpenPeople opens them. The caller closes them.
func OpenPeople(ctx context.Context, env Env, base, configFile string) (*People, error) {
	s, who, err := atBase(env, RunOptions{BaseDir: base, Config: configFile, Confined: true, Quiet: true})
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, &ConfigError{err}
	}
	return &People{who: who, actor: string(channel.Terminal) + ":" + sessionUser(LocalUser()), s: s}, nil
}

// Close closes the store.
func (p *People) Close() error { return p.s.store.Close() }

// Offer makes a code that links whoever says it in a chat: to who sits here, or, for
// administrators, to another account.
func (p *People) Offer(ctx context.Context, account string) (code, whom string, until time.Time, err error) {
	people, err := p.s.access(ctx)
	whom = people.Account(p.actor)
	if account != "" {
		source, name, _ := strings.Cut(account, ":")
		switch {
		case err != nil:
		case !p.who.Admin:
			err = i18n.E("app.link_admins", account)
		case !config.PlainName(name) || !config.IsForge(source) && source != string(channel.Terminal):
			err = i18n.E("app.link_account", redact.Printable(account))
		}
		whom = people.Account(account)
	}
	if err != nil {
		return "", "", until, &ConfigError{err}
	}
	if code, err = newCode(rand.Reader); err != nil {
		return "", "", until, err
	}
	until = p.s.env.Now().Add(codeTime)
	if err = p.s.store.OfferLink(ctx, codeHash(code), whom, until); err == nil {
		err = p.audit("link_code", whom, until.UTC().Format(time.RFC3339))
	}
	return code, whom, until, err
}

// List lists who is linked: all for administrators, their own for others.
func (p *People) List(ctx context.Context) (all []Linked, err error) {
	made, err := p.s.store.Links(ctx)
	if err != nil {
		return nil, err
	}
	people, err := p.s.access(ctx)
	if err != nil {
		return nil, err
	}
	for _, who := range slices.Sorted(maps.Keys(p.s.cfg.Access.People)) {
		all = append(all, Linked{contextstore.Link{Who: who, Account: p.s.cfg.Access.People[who]}, true})
	}
	for _, l := range made {
		if p.s.cfg.Access.People[l.Who] == "" {
			all = append(all, Linked{Link: l})
		}
	}
	return slices.DeleteFunc(all, func(l Linked) bool { return !p.may(people, l.Who) }), nil
}

// may reports whether a link is one of who sits here, or they are an administrator.
func (p *People) may(a config.Access, who string) bool {
	return p.who.Admin || a.Account(who) == a.Account(p.actor)
}

// Remove ends a link that a code made.
func (p *People) Remove(ctx context.Context, who string) error {
	if p.s.cfg.Access.People[who] != "" {
		return &ConfigError{i18n.E("app.link_settings", redact.Printable(who))}
	}
	was := false
	people, err := p.s.access(ctx)
	if err != nil {
		return err
	}
	if p.may(people, who) {
		if was, err = p.s.store.RemoveLink(ctx, who); err != nil {
			return err
		}
	}
	if !was {
		return &ConfigError{i18n.E("app.link_none", redact.Printable(who))}
	}
	return p.audit("unlink", who, "")
}

func (p *People) audit(action, what, detail string) error {
	return contextstore.Audit(p.s.fs, p.s.store.BaseDir, p.s.env.Now(), p.s.redact.String, contextstore.AuditEntry{Actor: p.actor, Action: action, What: what, Detail: detail})
}
