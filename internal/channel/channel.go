// Package channel is the door for messages: what people say comes in as a Message, what
// they are told goes out as a Post. A member speaks its vendor's protocol and knows nothing
// of models, files of sessions or approvals; package conversation answers.
package channel

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Kind names a channel: source of the task keys of its jobs, and first part of session ids
// and user ids (spec/chat §1, §8).
type Kind string

// The channels: Terminal is that of tori chat, the others are tori serve's.
const (
	Terminal Kind = "terminal"
	LINE     Kind = "line"
	Slack    Kind = "slack"
	HTTP     Kind = "http" // whatever a bridge speaks with
)

// Message is one message of one person, InputMessage of the contracts (route §4.1). It is
// data: nothing in it is an instruction to the program but what routing reads as a command.
type Message struct {
	Channel Kind `json:"channel"`
	// SessionID is "terminal:USER:REPO_HASH[:NAME]" (spec/chat §8).
	SessionID string `json:"session_id"`
	// UserText is what was said, byte for byte.
	UserText string `json:"user_text"`
	// Raw is the vendor's event; nil where there is none.
	Raw        json.RawMessage `json:"raw,omitempty"`
	ReceivedAt time.Time       `json:"received_at"`

	// ID is the vendor's id of the message, unique within its channel: one that was
	// answered is not answered again.
	ID string `json:"id"`
	// User is who said it: "terminal:hanako".
	User string `json:"user"`
	// Attachments are the images and files that came with it.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Decision is set where the message is the press of a button; UserText is then empty.
	Decision *Decision `json:"decision,omitempty"`
	// Question is the ID of a Question that UserText answers by a button or a form: a choice or
	// its number, from 1, or anything. "" for what is said.
	Question string `json:"question,omitempty"`
}

// Attachment is a file that came with a message.
type Attachment struct {
	// Name is the file's name as people see it: a path relative to the repository for
	// a file that was mentioned with @.
	Name string `json:"name"`
	// MediaType is what its content showed: "image/png", "text/plain; charset=utf-8".
	MediaType string `json:"media_type"`
	Content   []byte `json:"-"`
}

// Decision is what somebody decided about a proposal by a button or a key.
type Decision struct {
	// Job is the proposal's job id; Hash the first twelve digits of what it is bound
	// to, as its Approval told (spec/chat §7).
	Job  string `json:"job_id"`
	Hash string `json:"hash"`
	// Grant is false for a denial; Reason is what the person said to it, or "".
	Grant  bool   `json:"grant"`
	Reason string `json:"reason,omitempty"`
}

// PostKind says what a Post is.
type PostKind string

const (
	Answer   PostKind = "answer"   // the text of a turn
	Notice   PostKind = "notice"   // what the program says itself: a delegation, a switch, a failure
	Progress PostKind = "progress" // how far a job is; a later one of the same job replaces it
	Request  PostKind = "request"  // a proposal that waits for an approval
	Decided  PostKind = "decided"  // what became of a request; replaces its buttons
)

// Post is one text to the people of a session. It has passed redact.
type Post struct {
	SessionID string
	// ReplyTo is the ID of the Message that it answers, "" where it answers none.
	ReplyTo string
	// Key is unique to what is said: a member that gets a Post twice, because the
	// program was killed in between, shows it once.
	Key  string
	Kind PostKind
	// Text is Markdown, in the language of the session.
	Text string
	// Job is the job id of a Progress, Request or Decided, and of what says how a job
	// ended. A job that a turn began has said a Progress before Handle returns; a
	// Progress without Text says that nothing is going on any more: behind a Request, too.
	Job string
	// Approval is set for a Request and a Decided.
	Approval *Approval
	// Question is set for a Notice that asks people something, and for what became of that.
	Question *Question
	// Failed says that ReplyTo got no answer: Text, which the program says itself, is why; or
	// that the job it began came to nothing.
	Failed bool
}

// Question is what a run asks people.
type Question struct {
	ID   string // Key of the Post that asks
	Text string // what is asked, as Markdown; the Text of the Post has it, too
	// Choices are answers to pick from, which that Text numbers; none where only words will do.
	Choices []string `json:",omitempty"`
	// Over says that nothing is waited for any more: there is nothing to press. By and At tell
	// who answered ("slack:U1", or an account of a forge) and when; zero where nobody did.
	Over bool      `json:",omitempty"`
	By   string    `json:",omitempty"`
	At   time.Time `json:",omitzero"`
}

// Channel is a member of the family.
type Channel interface {
	Kind() Kind
	// Post shows p and returns when the vendor has taken it. Its error is one that a
	// later attempt may mend.
	Post(ctx context.Context, p Post) error
}

// Streamer is a Channel that shows an answer while it is written. The Post that follows
// holds the whole text and replaces what was streamed.
type Streamer interface {
	Channel
	// Stream adds delta to the answer to the message replyTo; "" begins it anew.
	Stream(sessionID, replyTo, delta string)
}

// ErrStopped is the cause of a context whose turn the person stopped in the channel itself.
var ErrStopped = errors.New("stopped by the person")

// Handler answers messages. Package conversation is the only one outside tests.
type Handler interface {
	// Handle answers m by posts to its channel, and returns when the turn has ended;
	// jobs that it began go on. A cancelled ctx stops the turn: what was said stays
	// in the session. With the cause ErrStopped a person wanted that, and was shown it. Its error is one that kept the message from being recorded;
	// anything later is told by a Post.
	Handle(ctx context.Context, m Message) error
	// History returns the last n posts and messages of a session, oldest first, for
	// a channel that shows a session again.
	History(ctx context.Context, sessionID string, n int) ([]Said, error)
	// Sessions lists the sessions of a user in a channel, the latest first.
	Sessions(ctx context.Context, kind Kind, user string) ([]Session, error)
	// Commands are the words with which a message may begin, for completion.
	Commands() []Command
}

// Said is one line of a session's history: a message of a person or a post.
type Said struct {
	At   time.Time
	User string // "" for the program
	Text string
	Post *Post // nil for a message of a person
}

// Session is one line of the list of sessions.
type Session struct {
	ID, Title string
	Last      time.Time
}

// Command is a control command, as a person types it.
type Command struct {
	Name string // "/approve"
	Args string // "JOB HASH", "" for none
	Help string // in the reader's language
	// AtOnce says that it acts while a turn goes on, as /local and /jobs do: a
	// channel hands it over without waiting for the end of the turn.
	AtOnce bool
}

// AtOnce reports whether a message is a command that acts while a turn goes on. /local with
// a text behind it is none: the text is a message.
func AtOnce(all []Command, text string) bool {
	text = strings.TrimSpace(text)
	name := text
	if end := strings.IndexFunc(text, unicode.IsSpace); end >= 0 {
		name = text[:end]
	}
	return slices.ContainsFunc(all, func(c Command) bool {
		return c.AtOnce && strings.EqualFold(c.Name, name) && (c.Args != "[TEXT]" || strings.EqualFold(text, name))
	})
}
