package line

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"toritsugi/internal/channel"
)

// event is what is read of an event of LINE's webhook.
type event struct {
	Type       string `json:"type"`
	Mode       string `json:"mode"` // "standby": another program answers
	ID         string `json:"webhookEventId"`
	ReplyToken string `json:"replyToken"`
	Timestamp  int64  `json:"timestamp"` // when it happened, in milliseconds since 1970
	Source     struct {
		Type    string `json:"type"` // "user", "group" or "room"
		UserID  string `json:"userId"`
		GroupID string `json:"groupId"`
		RoomID  string `json:"roomId"`
	} `json:"source"`
	Message  message `json:"message"`
	Postback struct {
		Data string `json:"data"`
	} `json:"postback"`
	Unsend struct {
		MessageID string `json:"messageId"`
	} `json:"unsend"`
}

type message struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Text       string `json:"text"`
	QuoteToken string `json:"quoteToken"`
	Mention    struct {
		Mentionees []mentionee `json:"mentionees"`
	} `json:"mention"`
	FileName        string `json:"fileName"`
	Title           string `json:"title"`
	Address         string `json:"address"`
	ContentProvider struct {
		Type string `json:"type"` // "line", or "external" for what lies elsewhere
	} `json:"contentProvider"`
}

// mentionee says which part of the text, in UTF-16 units, mentions whom.
type mentionee struct {
	Index  int    `json:"index"`
	Length int    `json:"length"`
	Type   string `json:"type"` // "user" or "all"
	IsSelf bool   `json:"isSelf"`
}

var errEvent = errors.New("an event of LINE without a proper id or source")

// read reads an event. What it holds is signed by LINE, and still its ids become parts of
// addresses and of ids of sessions: others than LINE's are refused.
func read(raw []byte) (e event, err error) {
	if err = json.Unmarshal(raw, &e); err != nil {
		return e, err
	}
	if !isID(e.ID) || e.chat() == "" {
		return e, errEvent
	}
	for _, id := range []string{e.chat(), e.Source.UserID, e.Message.ID, e.Unsend.MessageID} {
		if id != "" && !isID(id) {
			return e, errEvent
		}
	}
	return e, nil
}

// stale reports whether an event is so old that its id may be forgotten: LINE does not sign when it
// sends, so it may be one that somebody sends again who got hold of it.
func (e *event) stale(now time.Time) bool {
	return now.Sub(time.UnixMilli(e.Timestamp)) > channel.KeepIDs-time.Hour
}

// isID reports whether s looks like an id of LINE.
func isID(s string) bool {
	return s != "" && len(s) <= 100 && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == ""
}

// chat is the id of the user, group or room that it comes from.
func (e *event) chat() string {
	switch e.Source.Type {
	case "user":
		return e.Source.UserID
	case "group":
		return e.Source.GroupID
	case "room":
		return e.Source.RoomID
	}
	return ""
}

// session is the id of the session (spec/chat §8).
func (e *event) session() string { return "line:" + e.Source.Type + ":" + e.chat() }

// chatOf is where posts of a session go, "" where it is none of LINE's.
func chatOf(session string) string {
	parts := strings.Split(session, ":")
	if len(parts) != 3 || parts[0] != string(channel.LINE) || !isID(parts[2]) || !slices.Contains([]string{"user", "group", "room"}, parts[1]) {
		return ""
	}
	return parts[2]
}

// addressed reports whether the channel is meant: among several people a message is where
// it mentions it.
func (e *event) addressed() bool {
	switch {
	case e.Mode == "standby":
		return false
	case e.Type == "message":
		return e.Source.Type == "user" || slices.ContainsFunc(e.Message.Mention.Mentionees, mentionee.ours)
	}
	return slices.Contains([]string{"postback", "unsend", "follow", "unfollow", "join", "leave"}, e.Type)
}

func (m mentionee) ours() bool { return m.IsSelf || m.Type == "all" }

// said is the text without the mentions of the channel, as it came where there are none.
func (m *message) said() string {
	ours := slices.DeleteFunc(slices.Clone(m.Mention.Mentionees), func(at mentionee) bool { return !at.ours() })
	if len(ours) == 0 {
		return m.Text
	}
	slices.SortFunc(ours, func(a, b mentionee) int { return a.Index - b.Index })
	units := utf16.Encode([]rune(m.Text))
	var left []uint16
	at := 0
	for _, o := range ours {
		if o.Index < at || o.Length < 0 || o.Length > len(units)-o.Index { // also where there is less text
			continue
		}
		left = append(left, units[at:o.Index]...)
		at = o.Index + o.Length
	}
	if text := strings.TrimSpace(string(utf16.Decode(append(left, units[at:]...)))); text != "" {
		return text
	}
	return m.Text // it was called by its name, and no more
}
