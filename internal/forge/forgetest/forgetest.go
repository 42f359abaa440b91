// Package forgetest holds what every forge promises, as tests that each member
// runs against its own server. A member declares what its kind of server has
// not; everything else is asked of it.
package forgetest

import (
	"context"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// Feature is a part of the contract that not every kind of server has.
type Feature string

// The features.
const (
	Accounts  Feature = "accounts"  // people with numbers, and permissions of their own
	Roles     Feature = "roles"     // triage and maintain, between read, write and admin
	Events    Feature = "events"    // who put a label on or took it off
	Labels    Feature = "labels"    // labels that exist beside the items that bear them
	Assignees Feature = "assignees" // people whom an item is given to
	Closing   Feature = "closing"   // items that are not open
	Pulls     Feature = "pulls"     // pull requests and their reviews
	Checks    Feature = "checks"    // what the forge's CI says
	Remotes   Feature = "remotes"   // repositories that git reaches
	Signs     Feature = "signs"     // reactions on items and comments
	Threads   Feature = "threads"   // answers to remarks where those stand
	Changes   Feature = "changes"   // a cheap question whether anything changed
	Summaries Feature = "summaries" // the text of a whole review; without it is a note
)

// Fixture is a forge under test and the world around it, made anew for each test.
type Fixture struct {
	Forge forge.Tracker
	Code  forge.CodeHost // nil where Pulls, Checks and Remotes are lacking
	// Reopen returns another one to the same server that remembers nothing.
	Reopen func() forge.Tracker
	Repo   forge.Repo // there, with one branch Main that has a commit
	Main   string
	World  World
	// PullType is the type of a pull request's task where those are numbered on their own,
	// "" where they are "pull_request" and share the numbers of issues.
	PullType string
	// Lacks names the features that the server has not, and why.
	Lacks map[Feature]string
}

// World is what other people do at the server. A failure ends the test. What
// belongs to a feature that is lacking is never called.
type World interface {
	// Person makes an account with a permission in the repository.
	Person(login string, p forge.Permission) forge.Person
	// Rename gives an account another login.
	Rename(p forge.Person, login string)
	// Open makes an issue and returns its id.
	Open(by forge.Person, title, body string, labels ...string) string
	// Close closes an item.
	Close(by forge.Person, id string)
	// Comment adds a note to an item and returns what Edit takes.
	Comment(by forge.Person, id, body string) string
	// Edit changes a note of that item.
	Edit(by forge.Person, id, note, body string)
	// Delete removes a note of that item.
	Delete(by forge.Person, id, note string)
	// React puts a sign on a note of that item: one of forge's, or "heart".
	React(by forge.Person, id, note, sign string)
	// Label and Unlabel put a label on and take it off.
	Label(by forge.Person, id, label string)
	Unlabel(by forge.Person, id, label string)
	// Assign gives an item to a person.
	Assign(by forge.Person, id string, to forge.Person)
	// Notes are the texts of an item's notes as the server holds them.
	Notes(id string) []string
	// LabelsOf and AllLabels are the labels on an item, and of the repository.
	LabelsOf(id string) []string
	AllLabels() []string
	// Push makes a commit on a branch, from Main where it is new, and returns it.
	Push(branch string) string
	// File is the file that Push changed on a branch.
	File(branch string) string
	// Review adds a review with a remark on the first line of a file that Push
	// changed; verdict is one of forge's.
	Review(by forge.Person, id, verdict, body, remark string)
	// Reviewers are the logins of who is asked to review and has not answered.
	Reviewers(id string) []string
	// Check adds a check run to a commit; state is one of forge's.
	Check(commit, name, state, output string)
	// Pass lets time go by at the server.
	Pass(d time.Duration)
}

// Run runs the whole contract.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for _, c := range []struct {
		name  string
		needs []Feature
		run   func(*testing.T, Fixture)
	}{
		{"names", nil, names},
		{"triggered", nil, triggered},
		{"triggered by assignment", []Feature{Assignees, Accounts}, triggeredByAssignment},
		{"triggered are many", nil, triggeredMany},
		{"closed items trigger nothing", []Feature{Closing}, triggeredClosed},
		{"what changes is told", []Feature{Changes, Assignees, Closing}, changes},
		{"an unknown item", nil, unknownItem},
		{"an unknown repository", nil, unknownRepository},
		{"comments", nil, comments},
		{"comments are many", nil, commentsMany},
		{"comments since", nil, commentsSince},
		{"a comment is posted once", nil, postOnce},
		{"a comment is found again", nil, postAgain},
		{"a copied marker", nil, postCopied},
		{"a deleted comment is posted anew", nil, postDeleted},
		{"signs", []Feature{Signs, Accounts}, signs},
		{"labels are set", nil, setLabels},
		{"labels of any name", nil, setOddLabels},
		{"labels are created", []Feature{Labels}, ensureLabels},
		{"who asked", nil, asked},
		{"who asked again", []Feature{Events, Accounts}, askedAgain},
		{"permission goes by number", []Feature{Accounts}, permission},
		{"a pull request is proposed once", []Feature{Pulls}, propose},
		{"a closed pull request stays closed", []Feature{Pulls, Closing}, proposeAgain},
		{"a draft becomes ready", []Feature{Pulls}, ready},
		{"a review is requested", []Feature{Pulls, Accounts}, requestReview},
		{"a proposal is withdrawn", []Feature{Pulls}, withdraw},
		{"an account is found by its name", []Feature{Pulls, Accounts}, persons},
		{"reviews are comments", []Feature{Pulls, Accounts}, reviews},
		{"a review is posted once", []Feature{Pulls}, postReview},
		{"a remark is answered once", []Feature{Pulls, Accounts}, reply},
		{"checks", []Feature{Checks}, checkRuns},
		{"a remote", []Feature{Remotes}, remote},
		{"what is not there is unsupported", nil, unsupported},
		{"a call ends with its context", nil, ends},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			for _, need := range c.needs {
				if why, lacks := f.Lacks[need]; lacks {
					t.Skipf("no %s: %s", need, why)
				}
			}
			c.run(t, f)
		})
	}
}

// key is the task key of an item of the fixture's repository.
func (f Fixture) key(kind, id string) task.Key {
	return task.Key{Source: f.Forge.Source(), Owner: f.Repo.Owner, Repo: f.Repo.Name, Type: kind, ID: id}
}

// pull is the key of a pull request, and issuePull one of a pull request that is none:
// it has an issue's number where the two share them.
func (f Fixture) pull(id string) task.Key {
	if f.PullType != "" {
		return f.key(f.PullType, id)
	}
	return f.key("pull_request", id)
}

func (f Fixture) issuePull(issue string) task.Key {
	if f.PullType != "" {
		issue = "4711"
	}
	return f.pull(issue)
}

// person makes an account, or a name where there are none.
func (f Fixture) person(login string, p forge.Permission) forge.Person {
	if _, lacks := f.Lacks[Accounts]; lacks {
		return forge.Person{Login: login}
	}
	return f.World.Person(login, p)
}

// want returns what a call gave, or ends the test.
func want[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f Fixture) comments(t *testing.T, k task.Key) []forge.Comment {
	t.Helper()
	all, _, err := f.Forge.Comments(context.Background(), k)
	must(t, err)
	return all
}
