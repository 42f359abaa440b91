package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/channel"
)

// maxText is how many bytes of its text are left of an event that is larger than
// channel.MaxEvent. People can send 12,000 characters in one message.
const maxText = 48 << 10

// maxID is how long ids are at most: an inbox refuses longer ones, and all that comes with
// them.
const maxID = 128

// body is what is kept of what Slack sent: an event, an interaction or a slash command. What
// is not needed is not kept, such as tokens, and addresses to answer at that hold one.
type body struct {
	Type    string   `json:"type,omitempty"` // event_callback, block_actions, message_action, view_submission
	EventID string   `json:"event_id,omitempty"`
	Event   *message `json:"event,omitempty"`

	// Of an interaction.
	CallbackID string    `json:"callback_id,omitempty"`
	User       *ref      `json:"user,omitempty"`
	Channel    *ref      `json:"channel,omitempty"`
	Message    *message  `json:"message,omitempty"`
	Container  *held     `json:"container,omitempty"`
	Actions    []pressed `json:"actions,omitempty"`
	View       *form     `json:"view,omitempty"`
	TriggerID  string    `json:"trigger_id,omitempty"` // of a press: good for three seconds

	// Of a slash command.
	Command   string `json:"command,omitempty"`
	Text      string `json:"text,omitempty"`
	UserID    string `json:"user_id,omitempty"`
	ChannelID string `json:"channel_id,omitempty"`
}

type ref struct {
	ID string `json:"id"`
}

type held struct {
	ChannelID string `json:"channel_id,omitempty"`
	MessageTS string `json:"message_ts,omitempty"`
	ThreadTS  string `json:"thread_ts,omitempty"`
}

type pressed struct {
	ActionID string `json:"action_id,omitempty"`
	BlockID  string `json:"block_id,omitempty"`
	Value    string `json:"value,omitempty"`
}

// form is one that somebody sent.
type form struct {
	CallbackID string `json:"callback_id,omitempty"`
	Metadata   string `json:"private_metadata,omitempty"` // which only the app sets
	State      struct {
		Values map[string]map[string]struct { // by block and action
			Value string `json:"value,omitempty"`
		} `json:"values"`
	} `json:"state"`
}

// place is where a button was pressed.
func (b *body) place() place {
	p := place{b.Container.ChannelID, b.Container.ThreadTS}
	if p.thread == "" {
		p.thread = b.Message.ThreadTS
	}
	return p
}

// message is a message, or an event about one.
type message struct {
	Type        string       `json:"type,omitempty"`
	Subtype     string       `json:"subtype,omitempty"`
	Channel     string       `json:"channel,omitempty"`
	ChannelType string       `json:"channel_type,omitempty"`
	User        string       `json:"user,omitempty"`
	BotID       string       `json:"bot_id,omitempty"`
	Text        string       `json:"text,omitempty"`
	TS          string       `json:"ts,omitempty"`
	ThreadTS    string       `json:"thread_ts,omitempty"`
	Tab         string       `json:"tab,omitempty"` // of homeOpened
	DeletedTS   string       `json:"deleted_ts,omitempty"`
	Files       []file       `json:"files,omitempty"`
	Attachments []attachment `json:"attachments,omitempty"`
	Message     *message     `json:"message,omitempty"`
	Previous    *message     `json:"previous_message,omitempty"`
	Metadata    *metadata    `json:"metadata,omitempty"`
}

type file struct {
	ID    string `json:"id,omitempty"`
	Name  string `json:"name,omitempty"`
	Title string `json:"title,omitempty"`
	Size  int64  `json:"size,omitempty"`
	URL   string `json:"url_private_download,omitempty"`
}

// attachment is what programs that post in channels put their text into.
type attachment struct {
	Fallback string `json:"fallback,omitempty"`
	Text     string `json:"text,omitempty"`
}

// errNoEvent is a body that is not of Slack's form.
var errNoEvent = errors.New("not an event of Slack")

// eventOf makes an event for the inbox of what Slack sent. With ok false nobody is to be
// answered for it. Its error is errNoEvent.
func (s *Slack) eventOf(raw []byte, at time.Time) (e channel.Event, ok bool, err error) {
	var head struct {
		Type      string `json:"type"`
		TriggerID string `json:"trigger_id"`
		Event     struct {
			Type string `json:"type"`
		} `json:"event"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return e, false, errNoEvent
	}
	switch head.Event.Type {
	case "message", "app_mention", homeOpened:
	case "":
		if head.Type == "event_callback" {
			return e, false, errNoEvent
		}
	default:
		return e, false, nil
	}
	var b body
	if json.Unmarshal(raw, &b) != nil {
		return e, false, errNoEvent
	}
	e = channel.Event{Channel: channel.Slack, ReceivedAt: at}
	switch {
	case b.Type == "event_callback":
		e.ID, e.Queue, ok = b.Event.queued(b.EventID)
		if e.Queue != "" && s.opt.AtOnce(strings.TrimLeft(leading().ReplaceAllString(b.Event.Text, ""), " ")) {
			e.Queue = ""
		}
	case b.Command != "", b.Type == "message_action", b.Type == "block_actions", b.Type == "view_submission" && b.View != nil:
		// The id that opens a dialog is the only one there is.
		sum := sha256.Sum256([]byte(head.TriggerID))
		e.ID, ok = "trigger."+hex.EncodeToString(sum[:12]), head.TriggerID != ""
		if b.Type != "block_actions" {
			b.TriggerID = ""
		}
	default:
		return e, false, nil
	}
	if !ok {
		return e, false, nil
	}
	if e.ID == "" || len(e.ID) > maxID || len(e.Queue) > maxID {
		return e, false, errNoEvent
	}
	e.Body, err = b.kept()
	return e, err == nil, err
}

// queued is an event's id and queue; ok is false for what programs say, or Slack itself.
// A message that mentions tori comes as a message and as a mention, with an id of its own
// each: both have the message's place as theirs, so that it waits once.
func (m *message) queued(eventID string) (id, queue string, ok bool) {
	switch {
	case m.Type == homeOpened:
		return eventID, "", m.Tab == "home"
	case m.Subtype == "message_changed", m.Subtype == "message_deleted":
		return eventID, "", true
	case !m.spoken():
		return "", "", false
	case m.Channel == "" || m.TS == "":
		return "", "", true
	}
	p := m.place(m.Channel)
	return m.Channel + "." + m.TS, p.channel + ":" + p.thread, true
}

// spoken reports whether a person said it.
func (m *message) spoken() bool {
	switch m.Subtype {
	case "", "file_share", "thread_broadcast":
		return m.BotID == "" && m.User != "" && m.User != "USLACKBOT"
	}
	return false
}

// place is the session's place of a message in a channel. A direct message outside of a
// thread opens none: people talk there as in a chat, and a session for each line would
// remember nothing.
func (m *message) place(in string) place {
	switch {
	case m.ThreadTS != "":
		return place{in, m.ThreadTS}
	case strings.HasPrefix(in, "D"):
		return place{in, ""}
	}
	return place{in, m.TS}
}

// kept is b as it is kept, cut where it is too large.
func (b body) kept() (json.RawMessage, error) {
	out, err := json.Marshal(b)
	if err != nil || len(out) <= channel.MaxEvent {
		return out, err
	}
	cut := func(m *message) {
		if m == nil {
			return
		}
		m.Attachments, m.Previous = nil, m.Previous.bare()
		m.Files = m.Files[:min(len(m.Files), maxFiles+1)]
		if len(m.Text) > maxText {
			n := maxText
			for !utf8.RuneStart(m.Text[n]) {
				n--
			}
			m.Text = m.Text[:n] + "\n[…]"
		}
	}
	cut(b.Event)
	cut(b.Message)
	if b.Event != nil {
		cut(b.Event.Message)
	}
	b.Text = b.Text[:min(len(b.Text), maxText)]
	out, err = json.Marshal(b)
	if err == nil && len(out) > channel.MaxEvent {
		err = errNoEvent
	}
	return out, err
}

// bare is a message without what it said.
func (m *message) bare() *message {
	if m == nil {
		return nil
	}
	return &message{User: m.User, BotID: m.BotID, TS: m.TS, ThreadTS: m.ThreadTS, Subtype: m.Subtype}
}
