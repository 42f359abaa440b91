package app

import (
	"cmp"

	"toritsugi/internal/approval"
	"toritsugi/internal/config"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
)

// Spoken is the language of a conversation with the person at this terminal: that of the
// settings where they name one, else that of the locale where this names one, else the
// default of the settings (docs/decisions/069).
func Spoken(cfg *config.Config, getenv func(string) string) i18n.Lang {
	if l, named := i18n.FromLocale(getenv); named && !cfg.IsSet("language") {
		return l
	}
	return i18n.Lang(cfg.Language)
}

// speaks is the language of what is said to the people of conversations.
func (s *system) speaks() i18n.Lang { return cmp.Or(s.spoken, i18n.Lang(s.cfg.Language)) }

// to is t as it speaks to the people of a job's session: in the language that they had when
// they asked, unless this process speaks with them.
func (t *talks) to(o order.Chat) *talks {
	t.mu.Lock()
	_, here := t.sessions[o.Session]
	t.mu.Unlock()
	l := i18n.Lang(o.Language)
	if here || l == "" || l == t.lang {
		return t
	}
	theirs := *t
	theirs.lang, theirs.engine = l, t.engine.In(l)
	return &theirs
}

// toPeopleOf is to of a proposal, as far as its run can be read.
func (t *talks) toPeopleOf(j approval.Job) *talks {
	m, err := t.store.Metadata(j.Run)
	if err != nil {
		return t
	}
	o, err := order.Parse(m)
	if err != nil || o.Chat == nil {
		return t
	}
	return t.to(*o.Chat)
}
