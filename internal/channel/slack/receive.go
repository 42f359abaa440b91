package slack

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// The limits of the files of one message; what a model takes is less.
const (
	maxFiles     = 10
	maxFile      = 5 << 20
	maxFileBytes = 20 << 20
)

// reactionTime is how long a mark on a message may keep the end of a turn waiting.
const reactionTime = 10 * time.Second

// workOnThis is the callback id of the message shortcut in contrib/slack-manifest.yaml.
const workOnThis = "work_on_this"

// Receive implements channel.Receiver.
func (s *Slack) Receive(ctx context.Context, e channel.Event, h channel.EventHandler) error {
	var b body
	if err := json.Unmarshal(e.Body, &b); err != nil {
		s.log.Error("An event in the inbox cannot be read", "event", e.ID)
		return nil
	}
	me, err := s.who(ctx)
	if err != nil {
		return err
	}
	r := receipt{s, me, e, h}
	switch {
	case b.Command != "":
		return r.command(ctx, b)
	case b.Type == "block_actions":
		return r.pressed(ctx, b)
	case b.Type == "view_submission" && b.View != nil:
		return r.sent(ctx, b)
	case b.Type == "message_action" && b.CallbackID == workOnThis:
		return r.shortcut(ctx, b)
	case b.Event == nil:
		return nil
	}
	switch m := b.Event; {
	case m.Type == homeOpened:
		return r.home(ctx, m)
	case m.Subtype == "message_deleted":
		return r.deleted(ctx, m.Channel, m.Previous)
	case m.Subtype == "message_changed":
		return r.changed(ctx, m)
	case m.spoken() && r.addressed(m, m.Channel) && s.opt.Allowed(m.User):
		return r.said(ctx, m, m.Channel)
	}
	return nil
}

// receipt is the work on one event.
type receipt struct {
	s  *Slack
	me identity
	e  channel.Event
	h  channel.EventHandler
}

// addressed reports whether a message is for tori: a direct one, one that mentions it, or one
// in a thread that has a session and that is not for somebody else.
func (r receipt) addressed(m *message, in string) bool {
	switch {
	case r.me.own(m):
		return false
	case strings.HasPrefix(in, "D"), m.Type == "app_mention", mentions(m.Text, r.me.UserID):
		return true
	case m.ThreadTS == "" || strings.Contains(m.Text, "<@"):
		return false
	}
	return r.s.opt.Known != nil && r.s.opt.Known(r.me.session(m.place(in)))
}

// message is what the handler is told of a message in a channel.
func (r receipt) message(ctx context.Context, m *message, in string) (channel.Message, error) {
	out := channel.Message{Channel: channel.Slack, SessionID: r.me.session(m.place(in)), ID: in + "." + m.TS, User: string(channel.Slack) + ":" + m.User,
		UserText: plain(m.words(), r.me.UserID), Raw: r.e.Body, ReceivedAt: r.e.ReceivedAt}
	var left []string
	out.Attachments, left = r.s.files(ctx, m.Files)
	if len(left) > 0 {
		if err := r.s.Post(ctx, channel.Post{SessionID: out.SessionID, ReplyTo: out.ID, Key: r.e.ID + "/files", Kind: channel.Notice, Text: strings.Join(left, "\n")}); err != nil {
			return out, err
		}
	}
	if strings.TrimSpace(out.UserText) == "" && len(out.Attachments) == 0 && len(left) == 0 {
		out.UserText = "/help"
	}
	return out, ctx.Err()
}

// said hands on what somebody said. The message is marked as seen meanwhile, and as
// answered at the end.
func (r receipt) said(ctx context.Context, m *message, in string) error {
	var marks sync.WaitGroup
	marks.Go(func() { r.s.react(ctx, "eyes", in, m.TS) })
	defer marks.Wait()
	out, err := r.message(ctx, m, in)
	if err != nil {
		return err
	}
	if err := r.h.Handle(ctx, out); err != nil {
		return err
	}
	marks.Wait()
	r.s.react(ctx, "white_check_mark", in, m.TS)
	return nil
}

// react marks a message. What does not succeed is no reason to leave it unanswered.
func (s *Slack) react(ctx context.Context, name, in, ts string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reactionTime)
	defer cancel()
	err := s.api.call(ctx, s.opt.BotToken, "reactions.add", url.Values{"name": {name}, "channel": {in}, "timestamp": {ts}}, nil)
	if err != nil && code(err) != "already_reacted" {
		s.log.Info(s.opt.Mask("A message was not marked: " + err.Error()))
	}
}

// deleted forgets what its author took back.
func (r receipt) deleted(ctx context.Context, in string, was *message) error {
	if was == nil || was.User == "" || r.me.own(was) {
		return nil
	}
	return r.h.Withdraw(ctx, r.me.session(was.place(in)), in+"."+was.TS)
}

// changed heeds an edit. Slack calls it that, too, when it shows what a link leads to, and
// when the first message of a thread is deleted.
func (r receipt) changed(ctx context.Context, m *message) error {
	now, was := m.Message, m.Previous
	if now == nil || was == nil {
		return nil
	}
	if now.Subtype == "tombstone" {
		was.TS = now.TS
		return r.deleted(ctx, m.Channel, was)
	}
	if now.Text == was.Text && now.Text != "" || !now.spoken() {
		return nil
	}
	before, after := r.addressed(was, m.Channel), r.addressed(now, m.Channel)
	switch {
	case before && !after:
		return r.deleted(ctx, m.Channel, was)
	case !after || !r.s.opt.Allowed(now.User):
		return nil
	case !before: // it mentions tori only now
		return r.said(ctx, now, m.Channel)
	}
	out, err := r.message(ctx, now, m.Channel)
	if err != nil {
		return err
	}
	return r.h.Revise(ctx, out)
}

// pressed hands on a decision or an answer. A button counts only where it was put: a message
// that was forwarded has it too, whose reader is told so, once for a copy; and a block of the
// same name may come from anywhere.
func (r receipt) pressed(ctx context.Context, b body) error {
	if b.User == nil || b.Message == nil || b.Container == nil || !r.s.opt.Allowed(b.User.ID) {
		return nil
	}
	session := r.me.session(b.place())
	for _, a := range b.Actions {
		what, where, _ := strings.Cut(a.BlockID, ":")
		if what += ":"; what != buttonsOf("") && what != choicesOf("") {
			continue
		}
		if where != session || !r.me.own(b.Message) {
			return r.note(ctx, b, "copy/"+b.Container.MessageTS, r.s.opt.Lang.T("slack.copied"))
		}
		if what == choicesOf("") {
			return r.answers(ctx, b, session, a)
		}
		job, hash, ok := strings.Cut(a.Value, " ")
		if !ok || a.ActionID != "approve" && a.ActionID != "deny" {
			continue
		}
		return r.h.Handle(ctx, channel.Message{Channel: channel.Slack, SessionID: session, ID: r.e.ID, User: string(channel.Slack) + ":" + b.User.ID, Raw: r.e.Body, ReceivedAt: r.e.ReceivedAt,
			Decision: &channel.Decision{Job: job, Hash: hash, Grant: a.ActionID == "approve"}})
	}
	return nil
}

// shortcut has tori work on a message of anybody, as the one who chose it asks.
func (r receipt) shortcut(ctx context.Context, b body) error {
	if b.User == nil || b.Channel == nil || b.Message == nil || !r.s.opt.Allowed(b.User.ID) {
		return nil
	}
	in, m := b.Channel.ID, *b.Message
	note := r.s.opt.Lang.T("slack.asked_to_work", "<@"+b.User.ID+">")
	err := r.s.say(ctx, place{in, m.place(in).thread}, r.e.ID+"/asked", []part{{text: note}}, r.fromBefore())
	if absent(err) {
		return r.invite(ctx, b.User.ID, in)
	}
	if err != nil {
		return err
	}
	out := m
	out.User, out.BotID, out.Type = b.User.ID, "", ""
	message, err := r.message(ctx, &out, in)
	if err != nil {
		return err
	}
	message.ID = in + "." + m.TS + "." + r.e.ID // it may have been answered already, as a message of its author
	return r.h.Handle(ctx, message)
}

// fromBefore reports whether the event may have been worked on by an earlier process.
func (r receipt) fromBefore() bool { return r.e.ReceivedAt.Before(r.s.started) }

// invite tells a person that tori cannot speak in a channel.
func (r receipt) invite(ctx context.Context, user, in string) error {
	return r.s.say(ctx, place{channel: user}, r.e.ID+"/invite", []part{{text: r.s.opt.Lang.T("slack.invite", "<#"+in+">")}}, false)
}

// command opens a thread for what a slash command asks for. Slack shows the command to
// nobody else, so the thread begins with it.
func (r receipt) command(ctx context.Context, b body) error {
	if !r.s.opt.Allowed(b.UserID) {
		return nil
	}
	text := characters.Replace(b.Text)
	if strings.TrimSpace(text) == "" {
		text = "/help"
	}
	shown := Escape(clean(r.s.opt.Mask(text)))
	at, key := place{channel: b.ChannelID}, r.e.ID+"/open"
	err := r.s.say(ctx, at, key, []part{{text: "<@" + b.UserID + ">: " + short(shown, maxShown)}}, r.fromBefore())
	if absent(err) {
		return r.invite(ctx, b.UserID, b.ChannelID)
	}
	if err != nil {
		return err
	}
	ts, _ := r.s.told(partKey(at, key, 0))
	if !strings.HasPrefix(at.channel, "D") {
		at.thread = ts
	}
	m := message{User: b.UserID, Text: b.Text, TS: ts, ThreadTS: at.thread}
	out, err := r.message(ctx, &m, b.ChannelID)
	if err != nil {
		return err
	}
	return r.h.Handle(ctx, out)
}

// files reads the files of a message, within the limits. What is left out is said, each in a
// line.
func (s *Slack) files(ctx context.Context, all []file) (got []channel.Attachment, left []string) {
	room := int64(maxFileBytes)
	for n, f := range all {
		var content []byte
		var err error
		switch {
		case n >= maxFiles:
			err = i18n.E("slack.many_files", maxFiles)
		case f.Size > min(maxFile, room):
			err = i18n.E("slack.large_file", maxFile>>20)
		case f.URL == "":
			err = i18n.E("slack.no_file")
		default:
			content, err = s.api.download(ctx, s.opt.BotToken, f.URL, min(maxFile, room))
		}
		if err != nil {
			left = append(left, s.opt.Lang.T("slack.not_attached", clean(f.Name), s.opt.Lang.Error(err)))
			if n >= maxFiles {
				break
			}
			continue
		}
		room -= int64(len(content))
		got = append(got, channel.Attachment{Name: clean(f.Name), MediaType: http.DetectContentType(content), Content: content})
	}
	return got, left
}
