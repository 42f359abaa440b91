package slack

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"toritsugi/internal/i18n"
)

// Tokens are those of an app whose tokens rotate.
type Tokens struct {
	Access  string    `json:"access_token"`  // "xoxe.xoxb-…", in the place of the bot token
	Refresh string    `json:"refresh_token"` // "xoxe-…", which Slack takes once
	Ends    time.Time `json:"ends"`          // of Access; zero where that is not known
}

// Rotation is how the bot token of an app is renewed that ends
// (docs.slack.dev/authentication/using-token-rotation).
type Rotation struct {
	ClientID, ClientSecret string
	Refresh                string // of the settings: the first one
	// Kept returns what Keep kept last, none for nothing.
	Kept func() (Tokens, error)
	// Keep keeps tokens durably; nil in a program that renews none.
	Keep func(Tokens) error
}

const (
	// renewBefore is how long before its end a token is renewed: of twelve hours.
	renewBefore = 2 * time.Hour
	// renewAgain is how long the next attempt waits.
	renewAgain = time.Minute
)

// rotation is a Rotation under way.
type rotation struct {
	Rotation
	bot string // the token of the settings, by which callers name the one that is in force

	turn    sync.Mutex // of who asks for the token, and perhaps for a new one
	now     Tokens
	unkept  bool      // now is not durable
	again   time.Time // nothing is tried before
	trouble error

	mu    sync.Mutex // of what others see meanwhile
	seen  Tokens
	wrong error
}

// notSent is why a call was not made.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// bearer is the token that a call is made with. expired is one that Slack just did not take any
// more, "" for none.
func (a *api) bearer(ctx context.Context, token, expired string) (string, error) {
	r := a.rotation
	if r == nil || token != r.bot {
		return token, nil
	}
	r.turn.Lock()
	defer r.turn.Unlock()
	defer r.show()
	if r.now.Access == "" {
		kept, err := r.Kept()
		if err != nil {
			r.trouble = err
			return "", notSent{err}
		}
		if r.now = kept; kept.Access == "" {
			r.now = Tokens{Access: token, Refresh: r.Refresh}
		}
	}
	now := a.now()
	if expired == r.now.Access {
		r.now.Ends = now
	}
	if r.Keep == nil || now.Before(r.again) {
		return r.now.Access, nil
	}
	if now.Before(r.now.Ends.Add(-renewBefore)) {
		if r.unkept {
			a.keep(r)
		}
		return r.now.Access, nil
	}
	fresh, err := a.renewed(context.WithoutCancel(ctx), r) // an answer that is not read loses the refresh token
	if err != nil {
		r.again, r.trouble = now.Add(renewAgain), i18n.E("slack.not_renewed", err)
		if !r.now.Ends.IsZero() && !now.Before(r.now.Ends) {
			return "", notSent{r.trouble}
		}
		return r.now.Access, nil
	}
	r.now = fresh
	a.keep(r)
	return fresh.Access, nil
}

// keep keeps what is in force. Its caller has the turn.
func (a *api) keep(r *rotation) {
	err := r.Keep(r.now)
	r.trouble, r.unkept = nil, err != nil
	if err != nil {
		r.again, r.trouble = a.now().Add(renewAgain), i18n.E("slack.not_kept", err)
	}
}

// renewed has Slack give new tokens for the refresh token, which it then takes no more.
func (a *api) renewed(ctx context.Context, r *rotation) (t Tokens, err error) {
	var answer struct {
		Tokens
		ExpiresIn int64 `json:"expires_in"` // seconds
	}
	asked := a.now()
	err = a.once(ctx, "", "", "oauth.v2.access", url.Values{"client_id": {r.ClientID}, "client_secret": {r.ClientSecret}, "grant_type": {"refresh_token"}, "refresh_token": {r.now.Refresh}}, &answer)
	if err == nil && (answer.Access == "" || answer.Refresh == "" || answer.ExpiresIn <= 0) {
		err = errors.New("oauth.v2.access: the answer has no tokens that end")
	}
	answer.Ends = asked.Add(time.Duration(answer.ExpiresIn) * time.Second)
	return answer.Tokens, err
}

// show has others see what is in force. Its caller has the turn.
func (r *rotation) show() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.wrong = r.now, r.trouble
}

// state is what is in force, and what is wrong with it.
func (r *rotation) state() (Tokens, error) {
	if r == nil {
		return Tokens{}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen, r.wrong
}

// Watch renews the bot token where its end is near, and asks Slack whether it takes it, until it
// once did: Ready then tells.
func (s *Slack) Watch(ctx context.Context) {
	if _, err := s.who(ctx); err == nil {
		_, _ = s.api.bearer(ctx, s.opt.BotToken, "") // Ready tells
	}
}

// ends says until when the bot token is good; tori serve renews it.
func (s *Slack) ends() (until string, err error) {
	now, trouble := s.api.rotation.state()
	switch {
	case trouble != nil:
		return "", trouble
	case now.Ends.IsZero():
		return "", i18n.E("slack.end_unknown")
	case !s.opt.Now().Before(now.Ends):
		return "", i18n.E("slack.ended", now.Ends.UTC().Format(time.RFC3339))
	}
	return now.Ends.UTC().Format(time.RFC3339), nil
}

// newRotation is a rotation of the options, nil for none.
func newRotation(opt Options) *rotation {
	if opt.Rotation == nil {
		return nil
	}
	return &rotation{Rotation: *opt.Rotation, bot: opt.BotToken}
}

// ready is what is wrong with a token: what Slack said of it, or with its renewal.
func (a *api) ready(token string) error {
	_, trouble := a.rotation.state()
	return cmp.Or(trouble, a.refused(token))
}
