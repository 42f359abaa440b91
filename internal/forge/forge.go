// Package forge says what a place of issues (Tracker) and of code (CodeHost) can do. Its
// members (folder, github, gitlab, gitea) speak to one kind of server each and decide nothing: who may
// ask, what is done and what is said about it is decided above.
package forge

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/task"
)

// Forge is a server of issues, and of repositories that takes what a run made.
type Forge interface {
	Tracker
	CodeHost
}

// Tracker is where work is asked for and spoken about: issues, pull requests, comments,
// labels, and who may ask. Members are safe for concurrent use; every call may block for
// as long as ctx allows, and every error that the server itself answered with is an
// *Error.
//
// All that a Tracker returns was written by others: titles, bodies, names and
// paths are data of people who need not be trusted.
type Tracker interface {
	// Source is the first word of the task keys, and the section of its settings: "github".
	Source() string
	// Self is the account that the forge is spoken to as.
	Self(ctx context.Context) (Person, error)
	// Repositories lists the repositories that the patterns name ("owner/name",
	// "owner/*") and this account can see; archived ones are left out. A name
	// that cannot be seen is an *Error of kind NotFound that names it, returned
	// beside the others, as are the errors of patterns that could not be asked
	// for; several are joined.
	Repositories(ctx context.Context, patterns []string) ([]Repository, error)
	// Triggered lists the open issues and pull requests of a repository that
	// bear the trigger, the least recently updated first. It costs the server
	// little where nothing changed since the last call. Items that cannot be read
	// as such are an error of kind Invalid, returned beside the others.
	Triggered(ctx context.Context, r Repo, t Trigger) ([]Item, error)
	// Item reads one issue or pull request as it is now.
	Item(ctx context.Context, k task.Key) (Item, error)
	// Comments lists what was said on an item, oldest first: notes, reviews and
	// the comments of reviews on lines. Of more than MaxComments the oldest are
	// left out; cut tells how many.
	Comments(ctx context.Context, k task.Key) (all []Comment, cut int, err error)
	// CommentsSince lists what was said or edited on any item of a repository
	// at or after since, oldest edit first, and at most MaxComments of it: what
	// is left comes with a later since. An edit that the server gives no time for
	// may be missing: GitHub and Gitea have none for the text of a review.
	CommentsSince(ctx context.Context, r Repo, since time.Time) ([]Comment, error)
	// Asked tells who put the trigger on an item last and when; ErrNotAsked
	// where nobody did, or it was taken away again: a *TriggerRemoved where the forge
	// tells by whom.
	Asked(ctx context.Context, k task.Key, t Trigger) (Asked, error)
	// Permission tells what the person may do to a repository, looked up by
	// name and confirmed by number: a name that belongs to another number by
	// now has no permission.
	Permission(ctx context.Context, r Repo, p Person) (Permission, error)
	// EnsureLabels creates the labels that a repository lacks; others are left alone.
	EnsureLabels(ctx context.Context, r Repo, labels []Label) error
	// SetLabels puts labels on an item and takes others away; to do so again
	// changes nothing. One that both lists name stays; labels that neither names
	// are left alone.
	SetLabels(ctx context.Context, k task.Key, add, remove []string) error
	// Post makes sure that the item has exactly one comment of ours with the
	// marker, whose text is body: it is written or, where it exists with
	// another text, edited. The marker is hidden from readers.
	Post(ctx context.Context, k task.Key, marker, body string) (Comment, error)
}

// CodeHost is a server of repositories and pull requests, as far as it takes what a run
// made. What a Tracker promises of concurrency, errors and texts holds for it, too.
type CodeHost interface {
	// Propose makes sure that there is one pull request of ours from p.Head to
	// p.Base, with the marker in its body, and returns it: it is opened as a
	// draft (where the repository can) or, where it is there and open, given p's
	// title and body. One of ours that people have pointed at another base stays
	// there; what they wrote below the marker stays; one with the same marker that
	// was closed or merged, and one without a marker any more, is returned as it is.
	// Those of others are never touched.
	Propose(ctx context.Context, r Repo, p Proposal) (Item, error)
	// Ready takes the mark of a draft off a pull request; nothing happens to one without.
	Ready(ctx context.Context, k task.Key) error
	// Withdraw closes a pull request, unless it is closed or merged; its branch stays.
	Withdraw(ctx context.Context, k task.Key) error
	// Person is the account of that name, of somebody who has to do with a repository.
	Person(ctx context.Context, r Repo, login string) (Person, error)
	// RequestReview asks people to review; its author and people the forge
	// refuses as reviewers are passed over.
	RequestReview(ctx context.Context, k task.Key, of []Person) error
	// CheckRuns lists what the forge's own checks (CI) said about a commit,
	// those that failed with what they print in short. Beside a Forbidden error
	// it returns those that may be read.
	CheckRuns(ctx context.Context, r Repo, commit string) ([]CheckRun, error)
	// Remote is where git finds a repository, with a credential that is valid
	// for some minutes at least.
	Remote(ctx context.Context, r Repo) (Remote, error)
}

// Clock is a Tracker whose server has a clock of its own.
type Clock interface {
	// ServerTime is the time by the server's clock, as it dates what is said and
	// done there: not later than it is there, and the machine's own as long as
	// the server has not answered.
	ServerTime() time.Time
}

// Changes is a Tracker that tells at little cost whether anything happened in a repository.
type Changes interface {
	// Changed reports whether an issue or pull request, open or not, was last updated after a
	// time by the server's clock. Not everything moves that time: no sign does, at GitHub no
	// remark on a line, at Gitea no edit of a comment; GitLab moves it by notes and labels once
	// a minute at most.
	Changed(ctx context.Context, r Repo, since time.Time) (bool, error)
}

// Editors is a Tracker that remembers who changed what an item asks for.
type Editors interface {
	// EditedSince tells who changed the title or the text of an item after a time,
	// each of them once. One whom the server does not tell has no number.
	EditedSince(ctx context.Context, k task.Key, since time.Time) ([]Person, error)
}

// Setup is a Tracker that can say whether a repository is set up for us.
type Setup interface {
	// Rights tells what our own account may do to a repository, and which scopes of its
	// token or permissions of its app are missing, in the server's words; none where the
	// server does not tell.
	Rights(ctx context.Context, r Repo) (p Permission, missing []string, err error)
	// Labels lists the names of a repository's labels.
	Labels(ctx context.Context, r Repo) ([]string, error)
	// Hook tells what is wrong with the webhook of a repository that calls an address, in the
	// server's words; nothing where all is well. ErrNoHook where there is none; an error of kind
	// Forbidden, NotFound or Unsupported where the account is not shown webhooks.
	Hook(ctx context.Context, r Repo, url string) (wrong []string, err error)
	// SetHook makes sure that there is that webhook, as it should be and with that secret.
	SetHook(ctx context.Context, r Repo, url, secret string) error
}

// ErrNoHook is returned by Setup.Hook where there is no webhook to the address.
var ErrNoHook = errors.New("there is no such webhook")

// Reactions is a Tracker on which a sign at an item or a comment says something, too.
type Reactions interface {
	// React puts a sign of ours on an item, or on a comment on it where comment, an id,
	// is not "" and the forge takes signs there; to do so again changes nothing.
	React(ctx context.Context, k task.Key, comment, sign string) error
	// Reactions lists the signs on an item or a comment that are named below, the oldest
	// first.
	Reactions(ctx context.Context, k task.Key, comment string) ([]Reaction, error)
}

// Reaction is a sign that somebody put somewhere.
type Reaction struct {
	By   Person
	Sign string // one of the constants below
	At   time.Time
}

// The signs.
const (
	Seen = "eyes"
	Yes  = "+1"
	No   = "-1"
)

// Progress is a Tracker that shows how far the work on an item is beside it, and not in
// a comment.
type Progress interface {
	// ShowProgress puts a Markdown text in the place of what it showed.
	ShowProgress(ctx context.Context, k task.Key, text string) error
}

// Images is a Tracker whose items show images that are files of this machine.
type Images interface {
	// Images lists the images that an item and what people said on it show, in order,
	// each once; those that lie in the repository at that absolute path, "" for none, may
	// be read, too. more is how many were left out because there are more than 100.
	Images(ctx context.Context, k task.Key, repository string) (all []Image, more int, err error)
}

// Image is an image that an item shows.
type Image struct {
	Target string // as it is written there
	// Link says that it is an address of the network, which is not fetched.
	Link bool
	// Root is the directory that it may lie in, absolute, and Name where in it,
	// without a link in it that leads elsewhere. Both are "" where it is dropped.
	Root, Name string
	// Dropped is why it may not be read, one of package image's reasons:
	// outside_directory, empty_path, or unsupported_type for what stands in the
	// text itself (data: …).
	Dropped string
}

// Path is where the image lies, "" where it may not be read.
func (i Image) Path() string {
	if i.Root == "" {
		return ""
	}
	return filepath.Join(i.Root, i.Name)
}

// MaxComments bounds what Comments and CommentsSince return.
const MaxComments = 1000

// Repo names a repository. For GitLab Owner is the full path of the group.
type Repo struct{ Owner, Name string }

// ParseRepo splits "owner/name"; the name is what follows the last slash.
func ParseRepo(s string) (Repo, bool) {
	i := strings.LastIndexByte(s, '/')
	if i <= 0 || i == len(s)-1 {
		return Repo{}, false
	}
	return Repo{Owner: s[:i], Name: s[i+1:]}, true
}

// String is "owner/name".
func (r Repo) String() string { return r.Owner + "/" + r.Name }

// RepoOf is the repository that a task is about.
func RepoOf(k task.Key) Repo { return Repo{Owner: k.Owner, Name: k.Repo} }

// Repository is what is to be known of a repository.
type Repository struct {
	Repo
	DefaultBranch string
	Private       bool
}

// Person is an account.
type Person struct {
	ID    int64  `json:"id,omitempty"` // the forge's own number, which stays when the name changes; 0 where it has none
	Login string `json:"login"`
	Bot   bool   `json:"bot,omitempty"` // an app, as the forge says; its name proves nothing
}

// Is reports whether p and q are one account.
func (p Person) Is(q Person) bool {
	return p.ID == q.ID && (q.ID != 0 || strings.EqualFold(p.Login, q.Login))
}

// Permission is what a person may do to a repository.
type Permission int

// The permissions, weakest first.
const (
	None Permission = iota
	Read
	Triage
	Write
	Maintain
	Admin
)

// String is the permission's name in settings and texts.
func (p Permission) String() string { return permissions[min(max(p, None), Admin)] }

var permissions = [...]string{"none", "read", "triage", "write", "maintain", "admin"}

// ParsePermission is the permission of that name.
func ParsePermission(name string) (Permission, bool) {
	for i, n := range permissions {
		if n == name {
			return Permission(i), true
		}
	}
	return None, false
}

// Item is an issue or a pull request.
type Item struct {
	Key       task.Key
	Title     string
	Body      string // Markdown
	Author    Person
	Labels    []string
	Assignees []Person
	Open      bool
	Created   time.Time
	Updated   time.Time
	URL       string // for people
	Pull      *Pull  // nil for an issue
	// Repository is filled in by Item alone.
	Repository Repository
}

// Has reports whether the item bears a label; case does not matter.
func (i Item) Has(label string) bool {
	return slices.ContainsFunc(i.Labels, func(l string) bool { return strings.EqualFold(l, label) })
}

// AssignedTo reports whether the person is among the item's assignees.
func (i Item) AssignedTo(p Person) bool {
	return slices.ContainsFunc(i.Assignees, p.Is)
}

// Pull is what a pull request has beyond an issue. Lists of items leave it empty
// but not nil; Item fills it in.
type Pull struct {
	Draft, Merged bool
	Head, Base    Branch
	// Conflicts tells that the head cannot be merged into the base as it is;
	// false also where the forge does not know yet.
	Conflicts bool
	// Marker is the one of ours in its text, "" where there is none.
	Marker    string
	Reviewers []Person // who is asked to review it, and has not, where the forge tells
	// Ref is the ref by which the repository has the head, whichever it comes from.
	Ref string
}

// Branch is a branch at a commit.
type Branch struct {
	Repo   Repo // zero where the copy of the repository is gone
	Name   string
	Commit string
}

// CommentKind says where something was said.
type CommentKind string

// The kinds of comments.
const (
	Note   CommentKind = "note"   // below the item
	Review CommentKind = "review" // the text of a whole review
	Line   CommentKind = "line"   // a review's remark on a line
)

// What a review came to.
const (
	Approved         = "approved"
	ChangesRequested = "changes_requested"
	Commented        = "commented"
	Dismissed        = "dismissed"
)

// Reviewer is a Tracker whose pull requests take reviews with remarks on lines.
type Reviewer interface {
	// Review makes sure that there is one review of ours with the marker of p, and returns
	// its text as a comment. Where the server does not take a remark on its line, the text
	// has it.
	Review(ctx context.Context, k task.Key, p ReviewPost) (Comment, error)
}

// ReviewPost is a review that is to be there.
type ReviewPost struct {
	Commit  string // that was reviewed
	Body    string // Markdown, without the marker
	Marker  string
	Remarks []Remark
}

// Remark is what is said on lines of a pull request.
type Remark struct {
	Path    string
	Line    int // of the new side, the last one that it is about
	First   int // the first of them, Line for one alone
	Old     int // Line's number on the old side, 0 for one that was added
	OldPath string
	Body    string // Markdown, without the marker
	// Suggestion is what those lines may be replaced with, nil for nothing.
	Suggestion *string
	Marker     string // of its own
}

// Threads is a Tracker that takes an answer to a remark where that stands.
type Threads interface {
	// Reply makes sure that there is one answer of ours with the marker in the thread of a
	// remark, the id of a Line that began it; where the server takes none there, below the
	// item. It is an error of kind Gone where the remark is not there any more, or people
	// have settled it.
	Reply(ctx context.Context, k task.Key, remark, marker, body string) (Comment, error)
}

// Comment is something that was said on an item.
type Comment struct {
	ID   string // unique in the repository: "note/12", "review/5", "line/7"
	Kind CommentKind
	Item string // number of the item it belongs to
	// ItemType is the type of that item's task, where the forge numbers issues and pull
	// requests each on their own (GitLab); "" where the number tells.
	ItemType string
	Author   Person
	Body     string // Markdown, without our marker
	Marker   string // of our own comments, else ""
	Created  time.Time
	Edited   time.Time // of the last edit; Created where there was none
	URL      string

	Verdict string // of a Review

	Path    string // of a Line
	Line    int    // of a Line, 0 where it is outdated or about the file
	ReplyTo string // id of the Line that it answers, "" for none

	// Resolved says that people have settled its thread; false also where the forge does
	// not tell.
	Resolved bool
}

// WantsChanges reports whether it is a review that asks for changes.
func (c Comment) WantsChanges() bool { return c.Kind == Review && c.Verdict == ChangesRequested }

// Trigger is what sets an item before us. Both may be given: either is enough.
type Trigger struct {
	Label    string // "" for none
	Assignee Person // zero for none
}

// Asked is who set an item before us.
type Asked struct {
	By Person
	At time.Time
	// Event identifies the act itself: asking again is another one.
	Event string
}

// Label is a label that we use.
type Label struct {
	Name        string
	Color       string // six hexadecimal digits
	Description string // one line, at most 100 characters
}

// Proposal is a pull request that is to be there.
type Proposal struct {
	Head, Base string // branches of the one repository
	Title      string
	Body       string // Markdown, without the marker
	Marker     string
	Draft      bool
}

// CheckRun is what one of the forge's checks said about a commit.
type CheckRun struct {
	Name   string
	State  string // one of the constants below
	Output string // summary of one that failed, at most 8 KiB
}

// The states of a CheckRun.
const (
	CheckPending = "pending"
	CheckPassed  = "passed"
	CheckFailed  = "failed"
	CheckSkipped = "skipped"
)

// Remote is where git finds a repository.
type Remote struct {
	URL      string // without a login in it
	User     string // "" where none is needed
	Password string // a token; never written, logged or sent anywhere but to the host of URL
}
