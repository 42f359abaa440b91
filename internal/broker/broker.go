// Package broker judges, cleans, counts and records what leaves the machine: a comment, a branch,
// a pull request is a Request. It sends nothing itself.
package broker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Kind says how a request leaves the house.
type Kind string

// The kinds of requests.
const (
	Comment     Kind = "comment"
	Push        Kind = "push"
	PullRequest Kind = "pull_request"
)

// Target is what a request is directed at. Which fields count depends on the
// kind; they must be those of the task's own Scope.
type Target struct {
	Item   string `json:"item,omitempty"`   // number of the issue or pull request: comment
	Branch string `json:"branch,omitempty"` // push; the head of a pull request
	Base   string `json:"base,omitempty"`   // branch that a pull request is to be merged into
}

// Request is something that is to leave the house.
type Request struct {
	Kind      Kind
	Key       string // idempotency key; requests of one key count once. "" counts always
	Task      task.Key
	Target    Target
	Title     string          // of a pull request
	Text      string          // of a comment or pull request: Markdown
	Collapsed []CollapsedList // of a comment: what stands below its text
	Patch     string          // of a push or pull request, as git diff prints it
	Draft     bool            // pull request
}

// Decision is what becomes of a request.
type Decision string

// The decisions.
const (
	Allow  Decision = "allow"
	Refuse Decision = "refuse"
	Ask    Decision = "ask" // a person has to say yes first
)

// Finding is something that was changed in a text, or why it was refused.
type Finding struct {
	Kind    string // one of the Found constants
	Excerpt string // of what stood there, masked and printable
	Place   string // "text, line 3"
}

// Verdict is the answer to a request.
type Verdict struct {
	Decision Decision
	Reason   error  // of Refuse and Ask: an i18n.Error
	Title    string // as they may go out; "" where the decision is not Allow or Ask
	Text     string
	Findings []Finding
	Digest   string // SHA-256, in hexadecimal, of all that may go out
	Legs     []Leg  // which legs of the trifecta the run has with this request
}

// Recorder keeps what was judged. A contextstore.EffectLog is one.
type Recorder interface {
	Append(contextstore.EffectRecord) error
	Each(func(contextstore.EffectRecord) bool) error
}

// Scope is what the one task may touch.
type Scope struct {
	Task    task.Key
	Items   []string // its issue, and its pull request once there is one
	Branch  string   // of its own
	Base    string   // branch that its pull request is for; "" for none
	Private bool     // its comments stay on this machine, with those who can read its files
}

// Options are what a Broker is made of: all of them.
type Options struct {
	Settings Settings
	Scope    Scope
	Filter   *Filter
	Recorder Recorder
}

// Broker judges what one run wants to send out. Any number of goroutines may
// use it.
type Broker struct {
	o Options

	mu    sync.Mutex
	facts map[Fact]bool
	legs  map[Leg]bool
	count map[Kind]int
	keys  map[string]bool // kind and key of what was counted
}

// Open returns the broker of a run, which knows what the run did and touched
// according to its record.
func Open(o Options) (*Broker, error) {
	if o.Filter == nil || o.Recorder == nil {
		return nil, fmt.Errorf("broker of %s: no filter, or no record", o.Scope.Task)
	}
	b := &Broker{o: o, facts: map[Fact]bool{}, legs: map[Leg]bool{}, count: map[Kind]int{}, keys: map[string]bool{}}
	err := o.Recorder.Each(func(r contextstore.EffectRecord) bool {
		switch r.Type {
		case contextstore.EffectFact:
			b.note(Fact{Leg(r.Leg), r.Fact, r.Detail})
		case contextstore.EffectRequest:
			for _, l := range r.Legs {
				b.legs[Leg(l)] = true
			}
			if Decision(r.Decision) == Allow {
				b.counted(Kind(r.Kind), r.Key)
			}
		}
		return true
	})
	if err != nil {
		return nil, i18n.E("broker.record_unreadable", err)
	}
	return b, nil
}

// counted counts a request, unless its key was counted before.
func (b *Broker) counted(k Kind, key string) {
	if b.known(k, key) {
		return
	}
	b.keys[string(k)+"\x00"+key] = true
	b.count[k]++
}

func (b *Broker) known(k Kind, key string) bool { return key != "" && b.keys[string(k)+"\x00"+key] }

// Judge says what becomes of a request and records it: the same request, with
// the same history, is always judged alike. What was allowed counts, once for
// each key. The error says that the record could not be written; nothing may
// then be sent.
func (b *Broker) Judge(ctx context.Context, r Request) (Verdict, error) {
	if err := ctx.Err(); err != nil {
		return Verdict{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.judge(r)
	if err := b.o.Recorder.Append(b.record(r, v)); err != nil {
		return Verdict{}, fmt.Errorf("record %s of %s: %w", r.Kind, b.o.Scope.Task, err)
	}
	if v.Decision == Allow {
		b.counted(r.Kind, r.Key)
		for _, l := range v.Legs {
			b.legs[l] = true
		}
	}
	return v, nil
}

func (b *Broker) judge(r Request) Verdict {
	v := Verdict{Decision: Allow}
	refuse := func(err error) Verdict {
		v.Decision, v.Reason, v.Title, v.Text, v.Legs = Refuse, err, "", "", nil
		return v
	}
	if r.Task != b.o.Scope.Task {
		return refuse(i18n.E("broker.other_task", string(r.Kind), r.Task.String(), b.o.Scope.Task.String()))
	}
	if err := b.target(r); err != nil {
		return refuse(err)
	}
	if limit := b.o.Settings.limit(r.Kind); !b.known(r.Kind, r.Key) && b.count[r.Kind] >= limit.n {
		return refuse(i18n.E("broker.limit", string(r.Kind), limit.n, limit.key))
	}
	if err := b.content(r, &v); err != nil {
		return refuse(err)
	}
	v.Digest = digest(r, v)
	v.Legs = b.legsWith(r)
	if len(v.Legs) == len(AllLegs()) && b.o.Settings.Trifecta != TrifectaAllow {
		if b.o.Settings.Trifecta == TrifectaRefuse {
			return refuse(i18n.E("broker.trifecta_refuse", string(r.Kind), b.why()))
		}
		v.Decision, v.Reason = Ask, i18n.E("broker.trifecta_ask", string(r.Kind), b.why())
	}
	return v
}

// digest names what may go out.
func digest(r Request, v Verdict) string {
	raw, _ := json.Marshal([]any{r.Kind, r.Task, r.Target, v.Title, v.Text, hash(r.Patch), r.Draft}) // nothing here can fail
	return hash(string(raw))
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// maxRecordedText is how much of a text is kept in the record, in bytes.
const maxRecordedText = 64 << 10

func (b *Broker) record(r Request, v Verdict) contextstore.EffectRecord {
	rec := contextstore.EffectRecord{
		Type: contextstore.EffectRequest, Kind: string(r.Kind), Key: r.Key,
		Target: b.o.Filter.shown(b.shownTarget(r)), Decision: string(v.Decision), Title: v.Title, Text: cut(v.Text, maxRecordedText),
		Bytes: int64(len(r.Title) + len(r.Text) + len(r.Patch)), Digest: v.Digest,
	}
	if v.Reason != nil {
		rec.Reason = v.Reason.Error()
	}
	for _, l := range v.Legs {
		rec.Legs = append(rec.Legs, string(l))
	}
	for _, f := range v.Findings {
		rec.Findings = append(rec.Findings, contextstore.EffectFinding(f))
	}
	return rec
}

// shownTarget is the target of a request, for people.
func (b *Broker) shownTarget(r Request) string {
	t := r.Target
	switch r.Kind {
	case Comment:
		s := r.Task.String()
		if t.Item != r.Task.ID {
			s += ", " + t.Item
		}
		return s
	case PullRequest:
		return t.Branch + " → " + t.Base
	}
	return t.Branch
}
