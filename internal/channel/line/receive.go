package line

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"toritsugi/internal/channel"
)

// Receive implements channel.Receiver.
func (l *Line) Receive(ctx context.Context, in channel.Event, h channel.EventHandler) error {
	e, err := read(in.Body)
	if err != nil { // it would not be another one later
		l.opt.Log.Warn("An event of LINE cannot be read: "+err.Error(), "event", in.ID)
		return nil
	}
	if !e.addressed() {
		return nil
	}
	switch e.Type { // of those nobody is answered for
	case "unfollow", "leave":
		l.leave(e.session(), true)
		l.opt.Log.Info("LINE: the channel was blocked, or left a group", "session_id", e.session())
		return nil
	default: // somebody is there
		l.leave(e.session(), false)
	}
	if e.Type == "join" { // LINE does not say who invited it
		return l.greet(ctx, &e, "line.joined")
	}
	if e.Source.UserID == "" || !l.opt.Allowed(e.Source.UserID) { // before anything is fetched or shown
		return nil
	}
	switch e.Type {
	case "follow":
		return l.greet(ctx, &e, "line.hello")
	case "unsend":
		return h.Withdraw(ctx, e.session(), e.Unsend.MessageID)
	}
	m := channel.Message{Channel: channel.LINE, SessionID: e.session(), Raw: in.Body, ReceivedAt: in.ReceivedAt, ID: e.Message.ID, User: "line:" + e.Source.UserID}
	if e.Type == "postback" {
		m.ID = e.ID
		m.Question, m.UserText = chosen(e.Postback.Data)
		if m.Decision = decision(e.Postback.Data); m.Decision == nil && m.Question == "" {
			l.opt.Log.Warn("LINE: a button is none of ours", "session_id", m.SessionID)
			return nil
		}
	}
	if m.ID == "" {
		l.opt.Log.Warn("LINE sent a message without an id", "session_id", m.SessionID)
		return nil
	}
	l.mu.Lock()
	l.origins.Put(m.ID, origin{session: m.SessionID, at: in.ReceivedAt, quote: e.Message.QuoteToken, reply: e.ReplyToken,
		before: in.ReceivedAt.Before(l.started)})
	l.mu.Unlock()
	if e.Type == "message" {
		defer l.indicate(ctx, &e)()
		if err := l.content(ctx, &e.Message, &m); err != nil {
			return err
		}
		if m.UserText == "" && len(m.Attachments) == 0 && e.Message.Type != "text" {
			return nil // of a kind that is not known yet
		}
	}
	return h.Handle(ctx, m)
}

// leave remembers that nothing can be said in a session, or that it can be again. After a
// restart LINE says so itself.
func (l *Line) leave(session string, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone.Put(session, gone)
}

// greet says one text to who followed the channel, or had it join a group. It costs nothing of the quota, and is
// not worth a second try.
func (l *Line) greet(ctx context.Context, e *event, key string) error {
	_, err := l.once(ctx, func(c *messaging_api.MessagingApiAPI) (*http.Response, error) {
		res, _, err := c.ReplyMessageWithHttpInfo(&messaging_api.ReplyMessageRequest{ReplyToken: e.ReplyToken, Messages: []messaging_api.MessageInterface{textMessage(l.opt.Lang.T(key), "")}})
		return res, err
	})
	if err != nil {
		l.opt.Log.Info("LINE: a greeting was not said: "+err.Error(), "session_id", e.session())
	}
	return ctx.Err()
}

// shownSeconds is how long LINE shows that an answer is written, unless it comes.
const shownSeconds = 60

// indicate shows a user that an answer is being written; it returns what waits for the call.
func (l *Line) indicate(ctx context.Context, e *event) (wait func()) {
	if e.Source.Type != "user" { // LINE has it for no other chat
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := l.once(ctx, func(c *messaging_api.MessagingApiAPI) (*http.Response, error) {
			res, _, err := c.ShowLoadingAnimationWithHttpInfo(&messaging_api.ShowLoadingAnimationRequest{ChatId: e.Source.UserID, LoadingSeconds: shownSeconds})
			return res, err
		})
		if err != nil {
			l.opt.Log.Debug("LINE: that an answer is written was not shown: "+err.Error(), "session_id", e.session())
		}
	}()
	return func() {
		<-done
		cancel()
	}
}

// content puts what was sent into m.
func (l *Line) content(ctx context.Context, in *message, m *channel.Message) error {
	t := l.opt.Lang.T
	switch in.Type {
	case "text":
		m.UserText = in.said()
	case "image":
		a, why, err := l.image(ctx, in)
		switch {
		case err != nil:
			return err
		case why != "":
			m.UserText = t("line.no_image", why)
		default:
			m.UserText, m.Attachments = t("line.image"), []channel.Attachment{a}
		}
	case "audio", "video", "sticker":
		m.UserText = t("line." + in.Type)
	case "file":
		m.UserText = t("line.file", in.FileName)
	case "location":
		m.UserText = t("line.location", in.Title+" "+in.Address)
	}
	return nil
}

// The fields of a button's postback.
const (
	fieldAct  = "act" // actGrant, actDeny or actAnswer
	fieldJob  = "job"
	fieldHash = "hash"
	actGrant  = "approve"
	actDeny   = "deny"

	fieldQuestion = "question"
	fieldChoice   = "choice" // its number, from 1
	actAnswer     = "answer"
)

// chosen reads what a button of a question says: the question, "" where it is none, and the
// number of the choice.
func chosen(data string) (question, choice string) {
	if v, err := url.ParseQuery(data); err == nil && v.Get(fieldAct) == actAnswer && v.Get(fieldChoice) != "" {
		return v.Get(fieldQuestion), v.Get(fieldChoice)
	}
	return "", ""
}

// decision reads what a button of a proposal says, nil where it is none.
func decision(data string) *channel.Decision {
	v, err := url.ParseQuery(data)
	act := v.Get(fieldAct)
	if err != nil || act != actGrant && act != actDeny || v.Get(fieldJob) == "" || v.Get(fieldHash) == "" {
		return nil
	}
	return &channel.Decision{Job: v.Get(fieldJob), Hash: v.Get(fieldHash), Grant: act == actGrant}
}

// postback is what decision reads.
func postback(act string, a *channel.Approval) string {
	return url.Values{fieldAct: {act}, fieldJob: {a.Job}, fieldHash: {a.Hash}}.Encode()
}
