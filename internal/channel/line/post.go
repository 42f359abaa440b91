package line

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

const (
	maxText     = 5000 // UTF-16 units of a text message
	maxMessages = 5    // of one request
	// replyLives is how long a reply token is used; LINE promises a minute.
	replyLives = 50 * time.Second
	// quoteLives is how long the message that asked is quoted.
	quoteLives = 24 * time.Hour
	// quoteFrom is the age from which on a message is quoted to who is alone with the
	// channel: before, everybody knows what an answer is to.
	quoteFrom = time.Minute
)

// Post implements channel.Channel. What a session in which nothing can be said any more
// would be told is dropped. Of the progress of a job the first is shown alone: each message
// counts against the month's quota.
func (l *Line) Post(ctx context.Context, p channel.Post) error {
	err := l.post(ctx, p)
	if errors.Is(err, errDropped) {
		return nil
	}
	return err
}

// Send implements channel.Checker.
func (l *Line) Send(ctx context.Context, session, text string) error {
	return l.post(ctx, channel.Post{SessionID: session, Kind: channel.Notice, Text: text})
}

// post is Post whose errDropped is for who asks.
func (l *Line) post(ctx context.Context, p channel.Post) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	to := chatOf(p.SessionID)
	if to == "" {
		return i18n.E("line.no_session", p.SessionID)
	}
	unlock, err := l.turns.Enter(ctx, p.SessionID)
	if err != nil {
		return err
	}
	defer unlock()
	l.mu.Lock()
	gone, _ := l.gone.Get(p.SessionID)
	_, begun := l.begun.Get(p.Job)
	l.mu.Unlock()
	switch {
	case gone:
		l.opt.Log.Info("LINE: a post was dropped, the channel was blocked or is not in the group any more", "session_id", p.SessionID)
		return nil
	case p.Kind == channel.Progress && begun:
		return nil
	}
	all := l.messages(p)
	for n := 0; len(all) > 0; n++ {
		some := all[:min(len(all), maxMessages)]
		all = all[len(some):]
		if err := l.send(ctx, p, to, n, some); err != nil {
			return err
		}
	}
	if p.Job != "" && p.Kind != channel.Notice { // a notice says that it was begun, no more
		l.mu.Lock()
		l.begun.Put(p.Job, true)
		l.mu.Unlock()
	}
	return nil
}

// messages is a post as LINE shows it.
func (l *Line) messages(p channel.Post) (all []messaging_api.MessageInterface) {
	if p.Kind == channel.Request && p.Approval != nil {
		return l.request(p.SessionID, p.Approval)
	}
	quote := l.quote(p)
	for _, part := range split(plain(p.Text), maxText) {
		all = append(all, textMessage(part, quote))
		quote = ""
	}
	if q := p.Question; q != nil && !q.Over && len(q.Choices) > 0 && len(all) > 0 {
		all[len(all)-1].(*messaging_api.TextMessage).QuickReply = choices(q)
	}
	return all
}

func textMessage(text, quote string) *messaging_api.TextMessage {
	return &messaging_api.TextMessage{Text: text, QuoteToken: quote}
}

const (
	maxChoices = 13  // buttons of a message
	maxLabel   = 20  // units of what one shows
	maxSays    = 300 // units of what it says in the chat
)

// choices are buttons that answer a question; LINE takes them away with the next message.
func choices(q *channel.Question) *messaging_api.QuickReply {
	var r messaging_api.QuickReply
	for n, c := range q.Choices[:min(len(q.Choices), maxChoices)] {
		c = plainLine(c)
		label := c
		if end := hard(c, maxLabel, 0); end < len(c) {
			label = c[:hard(c, maxLabel-1, 0)] + "…"
		}
		data := url.Values{fieldAct: {actAnswer}, fieldQuestion: {q.ID}, fieldChoice: {strconv.Itoa(n + 1)}}
		r.Items = append(r.Items, messaging_api.QuickReplyItem{Type: "action", Action: &messaging_api.PostbackAction{Label: label, Data: data.Encode(), DisplayText: c[:hard(c, maxSays, 0)]}})
	}
	return &r
}

// quote is the token by which a post quotes the message that it answers, "" for none.
func (l *Line) quote(p channel.Post) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, known := l.origins.Get(p.ReplyTo)
	age := l.opt.Now().Sub(o.at)
	if !known || o.session != p.SessionID || age > quoteLives {
		return ""
	}
	if strings.HasPrefix(p.SessionID, "line:user:") && age < quoteFrom {
		return ""
	}
	return o.quote
}

// send says one request's worth of a post, once: by the reply token of the message that it
// answers while that lives, which costs nothing of the quota, else by a push.
func (l *Line) send(ctx context.Context, p channel.Post, to string, n int, some []messaging_api.MessageInterface) error {
	key := channel.PostID(p, n)
	l.mu.Lock()
	_, said := l.said.Get(key)
	l.mu.Unlock()
	if said {
		return nil
	}
	if token := l.replyToken(p, key); token != "" {
		done, err := l.reply(ctx, p, key, token, some)
		if done || err != nil {
			return err
		}
	}
	if l.exhausted() {
		return i18n.E("line.monthly")
	}
	push := func(c *messaging_api.MessagingApiAPI) (*http.Response, error) {
		res, _, err := c.PushMessageWithHttpInfo(&messaging_api.PushMessageRequest{To: to, Messages: some, CustomAggregationUnits: []string{}}, key)
		return res, err
	}
	err := l.call(ctx, push)
	if first, text := some[0].(*messaging_api.TextMessage); text && first.QuoteToken != "" && badRequest(err) { // what it quotes may be gone
		first.QuoteToken = ""
		err = l.call(ctx, push)
	}
	r, refused := err.(*refusal) //nolint:errorlint // call returns it bare
	switch {
	case err == nil:
	case badRequest(err): // no later attempt mends it; the post is on record in the session
		if !strings.Contains(r.said, "messages[") {
			l.leave(p.SessionID, true)
		}
		l.alert("line.dropped", p.SessionID, err)
		return fmt.Errorf("%w: %w", errDropped, err)
	case refused && r.monthly():
		l.spent()
		return err
	default:
		return err
	}
	l.took(key)
	l.watch(ctx)
	return nil
}

// errDropped says that LINE will never take a post.
var errDropped = errors.New("the post was dropped")

func badRequest(err error) bool {
	r, refused := err.(*refusal) //nolint:errorlint // call returns it bare
	return refused && r.status == http.StatusBadRequest
}

func (l *Line) took(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said.Put(key, true)
}

// replyToken is the reply token of the message that p answers, "" where there is none that
// lives, or one that something else may have used.
func (l *Line) replyToken(p channel.Post, key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, known := l.origins.Get(p.ReplyTo)
	if !known || o.session != p.SessionID || l.opt.Now().Sub(o.at) > replyLives || o.by != "" && o.by != key {
		return ""
	}
	return o.reply
}

// reply says some by a reply token; without an error and not done, it has to be pushed. A
// reply has no retry key: where LINE may have taken it unsaid, a token that is then called
// used while it lives shows that it did. So it does in a process that begins the answer anew,
// as the inbox lets it where an earlier one ended: the first post used it.
func (l *Line) reply(ctx context.Context, p channel.Post, key, token string, some []messaging_api.MessageInterface) (done bool, err error) {
	change := func(f func(*origin)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if o, known := l.origins.Get(p.ReplyTo); known {
			f(&o)
			l.origins.Put(p.ReplyTo, o)
		}
	}
	err = l.call(ctx, func(c *messaging_api.MessagingApiAPI) (*http.Response, error) {
		res, _, err := c.ReplyMessageWithHttpInfo(&messaging_api.ReplyMessageRequest{ReplyToken: token, Messages: some})
		if err != nil && (res == nil || res.StatusCode/100 == 5) {
			change(func(o *origin) { o.by = key })
		}
		return res, err
	})
	r, refused := err.(*refusal) //nolint:errorlint // call returns it bare
	switch {
	case err == nil:
	case refused && r.badToken():
		l.mu.Lock()
		o, _ := l.origins.Get(p.ReplyTo)
		l.mu.Unlock()
		ours := o.by == key || o.before && o.by == ""
		if done = ours && l.opt.Now().Sub(o.at) <= replyLives; !done {
			change(func(o *origin) { o.reply = "" })
			return false, nil
		}
	default:
		return false, err
	}
	change(func(o *origin) { o.reply = "" })
	l.took(key)
	return true, nil
}
