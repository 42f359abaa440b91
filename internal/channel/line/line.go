// Package line is the channel of LINE's Messaging API: it takes its webhook's events into
// the inbox, hands what people say to the handler, and shows posts as what LINE can show. It
// knows nothing of models, and keeps no file but images, for as long as they are looked at.
package line

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// Options are what a Line needs to know.
type Options struct {
	ChannelSecret string // by which events are verified
	AccessToken   string // of the channel
	// Allowed reports whether a user is answered, by the id (U…). It is asked before
	// anything is fetched or shown.
	Allowed func(user string) bool
	// BaseURL is the address of the Messaging API. What people send is at LINE's address for
	// it, or where something stands in for LINE, there.
	BaseURL string
	HTTP    *http.Client // nil has a time limit of 20 seconds
	Inbox   channel.Inbox
	// MediaDir is a directory of this channel alone, made at need, for images on their way
	// to a model: each is deleted after 15 minutes (route §13.5).
	MediaDir string
	// Page is the address at which somebody, or a conversation, reads the diff of a proposal;
	// nil without one.
	Page func(who string, a *channel.Approval) string
	Mask func(string) string // hides secrets in what LINE says of a failure
	Lang i18n.Lang
	Now  func() time.Time
	Log  *slog.Logger
}

// Line implements channel.Receiver, and http.Handler for the webhook.
type Line struct {
	opt   Options
	http  *http.Client
	data  string        // address of what people send
	turns channel.Turns // posts of a session go out one after another
	// forged is for complaints of wrong signatures.
	forged channel.Throttle

	started time.Time

	mu      sync.Mutex
	origins channel.Recent[origin] // by message
	said    channel.Recent[bool]   // retry keys of what LINE took
	begun   channel.Recent[bool]   // jobs of which something was said
	gone    channel.Recent[bool]   // sessions out of which the channel was thrown
	quota   quota
	refused error // why LINE takes nothing from the channel
	asked   bool  // LINE said whether it does
}

// origin is what is kept of a message for what is said to it. It is lost with the program:
// what is said then is pushed, without a quotation.
type origin struct {
	session string
	at      time.Time
	quote   string // its quote token
	reply   string // its reply token, "" once it was used
	// by is the retry key of what the reply token was tried for and LINE perhaps took.
	by string
	// before says that an earlier process may have used the reply token for the first post
	// that answers the message.
	before bool
}

// How much is remembered, at least.
const (
	maxOrigins = 4096
	maxSaid    = 4096
)

// New returns a Line, which does nothing before it is called. It empties MediaDir.
func New(opt Options) (*Line, error) {
	if opt.ChannelSecret == "" || opt.AccessToken == "" {
		return nil, i18n.E("line.no_login")
	}
	if opt.Allowed == nil || opt.Inbox == nil || opt.MediaDir == "" || opt.Mask == nil || opt.Now == nil || opt.Log == nil {
		return nil, errors.New("line: Allowed, Inbox, MediaDir, Mask, Now and Log are needed")
	}
	data := opt.BaseURL
	switch opt.BaseURL {
	case "":
		return nil, errors.New("line: BaseURL is needed")
	case "https://api.line.me":
		data = "https://api-data.line.me"
	}
	if err := os.RemoveAll(opt.MediaDir); err != nil { // what a process left that ended before its time
		return nil, err
	}
	l := &Line{opt: opt, http: client(opt.HTTP), data: data, started: opt.Now(),
		origins: channel.Recent[origin]{Most: maxOrigins}, said: channel.Recent[bool]{Most: maxSaid}, begun: channel.Recent[bool]{Most: maxSaid},
		gone: channel.Recent[bool]{Most: maxSaid}}
	return l, nil
}

// Kind implements channel.Channel.
func (l *Line) Kind() channel.Kind { return channel.LINE }

// Ready says why LINE takes nothing, nil where it does.
func (l *Line) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// Watch asks LINE whether it takes the access token, until it once said so: Ready then tells.
func (l *Line) Watch(ctx context.Context) {
	l.mu.Lock()
	asked := l.asked
	l.mu.Unlock()
	if !asked {
		_, _ = l.once(ctx, func(c *messaging_api.MessagingApiAPI) (res *http.Response, err error) {
			res, _, err = c.GetBotInfoWithHttpInfo()
			return res, err
		})
	}
}

// alert tells the operators.
func (l *Line) alert(key string, args ...any) {
	l.opt.Log.Warn("LINE: " + i18n.English.T(key, args...))
}
