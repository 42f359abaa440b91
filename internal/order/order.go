// Package order is what a run was asked to do and by whom: what the one who enqueues a run
// writes into its metadata.json, and what its owner, the deliveries and the next run of the
// task read there.
package order

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Order is what a run must know to be taken up by another process; it is kept in
// metadata.json under "run".
type Order struct {
	Repo             string `json:"repo"`            // top-level directory of the user's repository
	Issue            string `json:"issue,omitempty"` // path of the issue file, "" for a message
	Message          string `json:"message,omitempty"`
	Branch           string `json:"branch"`
	Base             string `json:"base"` // commit the work starts from
	AllowUnsandboxed bool   `json:"allow_unsandboxed,omitempty"`
	Config           string `json:"config,omitempty"` // path of the config file
	Role             string `json:"role,omitempty"`   // whose model works, as asked for on the command line
	Model            string `json:"model,omitempty"`  // provider/model as asked for on the command line
	LocalOnly        bool   `json:"local_only,omitempty"`
	Script           string `json:"script,omitempty"`

	Act *Act `json:"ask,omitempty"` // of a run on a forge, which has none of the paths above

	// For is of a run on a draft that was opened for an issue before the work on it.
	For *Origin `json:"for,omitempty"`

	Images []string `json:"images,omitempty"` // paths, absolute; not needed once the request was appended

	// Chat is of a job of a conversation. Its repository is Repo: a path, or
	// "github:owner/name", whose Base is decided when the job begins.
	Chat *Chat `json:"chat,omitempty"`
}

// Origin is the issue that a draft was opened for, as it was when work on it was asked for.
type Origin struct {
	Issue    task.Key `json:"issue"`
	Text     string   `json:"text,omitempty"`      // as in Act
	EditedBy string   `json:"edited_by,omitempty"` // as in Act
	// Run is the run of the issue that left its work to this one; "" where somebody asked
	// for that at the draft itself.
	Run string `json:"run,omitempty"`
}

// Chat is what a coder was asked for in a conversation (spec/chat §2, §6).
type Chat struct {
	Job        string `json:"job_id"`
	Session    string `json:"session_id"`
	User       string `json:"user"`
	ReplyTo    string `json:"reply_to,omitempty"` // the message that asked for it
	Route      string `json:"route"`              // CODE1, CODE2 or CODE3
	Repository string `json:"repository"`         // its name
	Onto       string `json:"onto,omitempty"`     // branch of a forge's repository that the work is for; "" for the default one
	Reverts    string `json:"reverts,omitempty"`  // the job that it takes back: tori rollback proposes, no model
	Deliver    string `json:"deliver"`            // pull_request, branch or worktree (spec/chat §1)
	Title      string `json:"title"`
	Request    string `json:"request"`            // the task with what was said before: WorkerInput
	Prompt     string `json:"prompt"`             // what the coder is told of its work
	Language   string `json:"language,omitempty"` // that its session is spoken with in; "" for that of the settings
	Again      string `json:"again,omitempty"`    // the job that went stale, of which this makes the proposal anew
}

// Parse reads the order of a context.
func Parse(m contextstore.Metadata) (Order, error) {
	var o Order
	if len(m.Run) == 0 {
		return o, i18n.E("agent.no_job", m.UUID)
	}
	err := json.Unmarshal(m.Run, &o)
	return o, err
}

// Hosted is the repository of a forge that a job of a conversation is about, as the key of
// a task there with the job's id; ok is false for one of this machine.
func (o Order) Hosted() (k task.Key, ok bool) {
	source, name, _ := strings.Cut(o.Repo, ":")
	r, is := forge.ParseRepo(name)
	if o.Chat == nil || !is || strings.HasPrefix(o.Repo, "/") {
		return k, false
	}
	return task.Key{Source: source, Owner: r.Owner, Repo: r.Name, Type: "chat", ID: o.Chat.Job}, true
}

// ByHand reports whether it is of tori run.
func (o Order) ByHand() bool { return o.Act == nil && o.Chat == nil }

// Items are the tasks at whose items a run of a task is spoken of, its own first: what is said or
// done at the issue that its draft was opened for counts, too.
func (o Order) Items(k task.Key) []task.Key {
	if o.For == nil {
		return []task.Key{k}
	}
	return []task.Key{k, o.For.Issue}
}

// Silent reports whether there is no place to speak of the task: it is a message.
func (o Order) Silent() bool { return o.Act == nil && o.Issue == "" }

// ByHand reports whether a context is of tori run: nobody asked for it where that is
// watched for, and the process that began it looks after it.
func ByHand(m contextstore.Metadata) bool {
	o, err := Parse(m)
	return err == nil && o.ByHand()
}

// Act is how somebody asked for a run, kept in metadata.json.
type Act struct {
	By    forge.Person `json:"by"`
	At    time.Time    `json:"at"`
	Event string       `json:"event"` // the act itself: asking again is another one
	How   string       `json:"how"`   // one of By…
	// Text is the TextOf what was asked for, as it was seen first.
	Text string `json:"text,omitempty"`
	// EditedBy is the login of somebody who may not ask and had changed it by then,
	// after it was asked for.
	EditedBy string `json:"edited_by,omitempty"`
	// Thread is the conversation that it was asked for in.
	Thread *Thread `json:"thread,omitempty"`
}

// Thread is a conversation that is told of a run of a forge.
type Thread struct {
	Session  string `json:"session_id"`
	User     string `json:"user"`
	ReplyTo  string `json:"reply_to,omitempty"` // the message that asked
	Language string `json:"language"`           // that the conversation is spoken with in
}

// How somebody asks.
const (
	ByLabel      = "label"
	ByAssignment = "assignment"
	ByComment    = "comment"
	ByReview     = "review"
	ByChat       = "chat"
	ByCommand    = "command" // tori retry, in the name of who asked before
)

// TextOf tells one text of an item from another: whoever may not ask for work
// can still change what is asked for while it waits.
func TextOf(it forge.Item) string {
	sum := sha256.Sum256([]byte(it.Title + "\x00" + it.Body))
	return hex.EncodeToString(sum[:16])
}

// Before reports whether another act came after this one. A forge dates by the
// second; its events are numbered.
func (a Act) Before(b Act) bool {
	if !b.At.Equal(a.At) || a.Event == b.Event {
		return b.At.After(a.At)
	}
	m, merr := strconv.ParseInt(a.Event, 10, 64)
	n, nerr := strconv.ParseInt(b.Event, 10, 64)
	return merr != nil || nerr != nil || n > m
}

// actMark is the mark of the act that resumed a paused run: the same act starts no
// other run.
const actMark = "asked"

// LastAct is the last act that a run has taken up: the one that it began for, or
// one that let it go on.
func LastAct(ctx context.Context, s *contextstore.Store, v contextstore.View) (Act, error) {
	raw, err := s.Mark(ctx, v.Metadata.UUID, actMark)
	if err != nil {
		return Act{}, err
	}
	var last Act
	if raw != "" && json.Unmarshal([]byte(raw), &last) == nil {
		return last, nil
	}
	o, err := Parse(v.Metadata)
	if err != nil || o.Act == nil {
		return Act{At: v.Metadata.CreatedAt.Time}, nil //nolint:nilerr // nobody knows better
	}
	return *o.Act, nil
}

// TakeUp makes an act the last one that a run has taken up.
func TakeUp(ctx context.Context, s *contextstore.Store, uuid string, a Act) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return s.SetMark(ctx, uuid, actMark, string(raw))
}

// Ref names a task for people: owner/repo#12, and owner/repo!12 for a merge request.
func Ref(k task.Key) string { return k.Owner + "/" + k.Repo + k.Number() }
