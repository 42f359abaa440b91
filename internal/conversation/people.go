package conversation

import (
	"context"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
)

// People links those who speak here with their accounts.
type People interface {
	// Link links a user by a code, and says so. The error is one that the user reads.
	Link(ctx context.Context, user, code string) (told string, err error)
}

// Issues begins runs of a forge, and takes answers to what they ask.
type Issues interface {
	// Watched is the address of a repository, owner/name, in which issues may be asked for. It is
	// user who wants to know.
	Watched(ctx context.Context, user, name string) (url string, ok bool)
	// Begin begins the run of an issue as its label would, or has the session be told of the
	// one that goes on. run is its id, told what is said to it; the error is one that the user reads.
	Begin(ctx context.Context, a AskedIssue) (told, run string, err error)
	// Awaited reports whether a message is the answer to a question of a run that was put to its
	// session, by somebody who may answer.
	Awaited(ctx context.Context, m channel.Message) bool
	// Answer hands such an answer on, or that of a button. p has what is said to it; the error is
	// one that the user reads.
	Answer(ctx context.Context, m channel.Message) (p channel.Post, err error)
}

// AskedIssue is an issue that somebody asked for in a conversation.
type AskedIssue struct {
	SessionID, User, ReplyTo string
	At                       time.Time
	URL                      string // of the repository: github:acme/widgets
	Number                   string
}

// answerTo is a message that answers the question of a run. It is carried out as commands are.
type answerTo struct{ routing.Command }

// ordered is what a message asks for that begins with no command: the run of an issue in plain
// words, or that an answer be handed on; nil where it is for a turn.
func (e *Engine) ordered(ctx context.Context, x session, m channel.Message, k known) routing.Command {
	if e.Issues == nil || k.message != nil && !k.message.Control { // a turn has it already
		return nil
	}
	if i, ok := routing.AskedIssue(m.UserText); ok {
		if _, err := e.issueIn(ctx, x, m.User, i.Repository); err == nil {
			return i
		}
	}
	if e.Issues.Awaited(ctx, m) {
		return answerTo{}
	}
	return nil
}

// issueIn is the address of the repository that an issue is asked for in.
func (e *Engine) issueIn(ctx context.Context, x session, user, name string) (url string, err error) {
	if e.Issues == nil {
		return "", i18n.E("conversation.no_issues")
	}
	mine := e.named(x.ID, user)
	r, ok := Repository{}, false
	if name == "" {
		s, err := x.state()
		if err != nil {
			return "", err
		}
		if r, ok = e.repository(x.ID, user, &s); !ok {
			return "", i18n.E("conversation.which_repository", e.joined(names(mine)))
		}
	} else if n := slices.IndexFunc(mine, func(r Repository) bool { return strings.EqualFold(r.Name, name) }); n >= 0 {
		r, ok = mine[n], true
	}
	switch {
	case ok && r.URL != "":
		return r.URL, nil
	case ok:
		return "", i18n.E("conversation.no_issues_here", r.Name)
	}
	if url, ok = e.Issues.Watched(ctx, user, name); !ok {
		return "", i18n.E("conversation.unknown_repository", name, e.joined(names(mine)))
	}
	return url, nil
}

// issue begins the run of an issue.
func (e *Engine) issue(ctx context.Context, x session, m channel.Message, i routing.Issue) (Entry, error) {
	url, err := e.issueIn(ctx, x, m.User, i.Repository)
	if err != nil {
		return Entry{}, err
	}
	told, run, err := e.Issues.Begin(ctx, AskedIssue{SessionID: x.ID, User: m.User, ReplyTo: m.ID, At: m.ReceivedAt, URL: url, Number: i.Number})
	return Entry{Kind: channel.Notice, Content: told, Job: run}, err
}

// link links whoever said a code.
func (e *Engine) link(ctx context.Context, user, code string) (string, error) {
	if e.People == nil {
		return "", i18n.E("conversation.no_links")
	}
	return e.People.Link(ctx, user, code)
}
