package githubtest

import (
	"slices"
	"time"
)

// Issue is an issue or pull request as it is on the server.
type Issue struct {
	Number    int
	ID        int64
	Title     string
	Body      string // raw, hidden markers included
	Author    string
	Labels    []string // sorted
	Assignees []string
	Open      bool
	Reason    string // of the last closing or opening
	Locked    bool
	Created   time.Time
	Updated   time.Time
	Comments  []Comment
	Events    []Event
	Pull      *Pull // nil for an issue
}

// Comment is a comment below an item.
type Comment struct {
	ID      int64
	Author  string
	Body    string // raw
	Created time.Time
	Updated time.Time
}

// Event is something that happened to an item.
type Event struct {
	ID    int64
	Kind  string // "labeled", "closed", ...
	Actor string
	At    time.Time
	Label string // of labeled and unlabeled
}

// Pull is what a pull request has beyond an issue.
type Pull struct {
	Draft, Merged      bool
	Head, Base         string // branches
	HeadSHA            string
	Reviewers          []string // asked and not answered
	Reviews            []Review
	Lines              []LineComment
	Mergeable, Outcome bool // Outcome tells whether Mergeable is known: the item is open
}

// Review is a whole review.
type Review struct {
	ID                    int64
	Author, Verdict, Body string
	Commit                string
	At                    time.Time
}

// LineComment is a remark on a line.
type LineComment struct {
	ID       int64
	Author   string
	Path     string
	Line     int
	Body     string
	Outdated bool
	ReplyTo  int64
}

// Label is a label of a repository.
type Label struct{ Name, Color, Description string }

func logins(all []*account) []string {
	var out []string
	for _, a := range all {
		out = append(out, a.login)
	}
	return out
}

// Issue is one issue or pull request.
func (r *Repo) Issue(n int) Issue {
	r.s.t.Helper()
	defer r.lock()()
	return r.mustIssue(n).look()
}

// Issues are all issues and pull requests that were not deleted, by number.
func (r *Repo) Issues() []Issue {
	defer r.lock()()
	var out []Issue
	for _, i := range r.r.issues {
		if !i.deleted {
			out = append(out, i.look())
		}
	}
	return out
}

// Pulls are the pull requests among Issues.
func (r *Repo) Pulls() []Issue {
	return slices.DeleteFunc(r.Issues(), func(i Issue) bool { return i.Pull == nil })
}

// Labels are the labels of the repository, in the order in which they were made.
func (r *Repo) Labels() []Label {
	defer r.lock()()
	var out []Label
	for _, l := range r.r.labels {
		out = append(out, Label{l.name, l.color, l.description})
	}
	return out
}

func (i *issue) look() Issue {
	o := Issue{Number: i.number, ID: i.id, Title: i.title, Body: i.body, Author: i.author.login, Assignees: logins(i.assignees), Open: !i.closed,
		Reason: i.reason, Locked: i.locked, Created: i.created, Updated: i.updated}
	for _, l := range i.labels {
		o.Labels = append(o.Labels, l.name)
	}
	slices.Sort(o.Labels)
	for _, c := range i.comments {
		o.Comments = append(o.Comments, Comment{c.id, c.author.login, c.body, c.created, c.updated})
	}
	for _, e := range i.events {
		v := Event{ID: e.id, Kind: e.kind, Actor: e.actor.login, At: e.at}
		if e.label != nil {
			v.Label = e.label.name
		}
		o.Events = append(o.Events, v)
	}
	if i.pull != nil {
		o.Pull = i.lookPull()
	}
	return o
}

func (i *issue) lookPull() *Pull {
	p := i.pull
	o := &Pull{Draft: p.draft, Merged: !p.merged.IsZero(), Head: p.head, Base: p.base, HeadSHA: p.headSHA,
		Reviewers: logins(p.reviewers)}
	o.Mergeable, o.Outcome = i.mergeable(false)
	for _, v := range p.reviews {
		o.Reviews = append(o.Reviews, Review{v.id, v.author.login, v.state, v.body, v.commit, v.at})
	}
	for _, l := range p.lines {
		o.Lines = append(o.Lines, LineComment{l.id, l.author.login, l.path, l.line, l.body, l.outdated, l.replyTo})
	}
	return o
}
