package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/disk"
)

// Files of a context.
const (
	proposalFile                              = "proposal.json"
	approvalsFile contextstore.Records[Event] = "approvals.jsonl"
)

// patchPath is where the raw bytes of a patch lie in a context.
func patchPath(dir, sum string) string { return filepath.Join(dir, "patches", sum+".patch") }

// Status is how a proposal stands (route §7.3).
type Status string

// The statuses. One that expired or is stale is denied, by System and with a reason.
const (
	Pending      Status = "pending"
	Granted      Status = "granted"
	Denied       Status = "denied"
	AutoApproved Status = "auto_approved"
)

// Approved reports whether a proposal may be applied.
func (s Status) Approved() bool { return s == Granted || s == AutoApproved }

// System decides what nobody decided: what expired and what is stale.
const System = "system"

// Reasons of what System denies.
const (
	ReasonExpired = "expired"
	ReasonStale   = "stale"
)

// Event is a line of approvals.jsonl (route §7.3): a request, or what became of one. The
// last one of a job says how it stands.
type Event struct {
	Timestamp contextstore.Time `json:"timestamp"`
	Event     string            `json:"event"` // "approval." with requested, granted, denied or auto_approved
	Job       string            `json:"job_id"`
	Run       string            `json:"uuid"`
	Status    Status            `json:"approval_status"`
	Requested contextstore.Time `json:"approval_requested_at"`
	Decided   contextstore.Time `json:"approval_decided_at,omitzero"`
	Expires   contextstore.Time `json:"expires_at,omitzero"` // of a request
	Hash      string            `json:"hash"`
	Approver  string            `json:"approver,omitempty"`
	By        string            `json:"approved_by,omitempty"` // the act: button, command, cli, auto_approve …
	Where     string            `json:"where,omitempty"`       // channel or machine
	Message   string            `json:"message_id,omitempty"`  // that decided, in the channel
	Reason    string            `json:"reason,omitempty"`
	Auto      string            `json:"auto,omitempty"` // the AutoGrant that approved it
	Output    string            `json:"coder_output,omitempty"`
}

// State is how a job stands.
type State struct {
	Status    Status    `json:"approval_status"`
	Hash      string    `json:"hash"`
	Requested time.Time `json:"approval_requested_at"`
	Decided   time.Time `json:"approval_decided_at,omitzero"`
	Expires   time.Time `json:"expires_at"`
	Approver  string    `json:"approver,omitempty"`
	By        string    `json:"approved_by,omitempty"`
	Where     string    `json:"where,omitempty"`
	Message   string    `json:"message_id,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Auto      string    `json:"auto,omitempty"`
}

// Job is a proposal and how it stands.
type Job struct {
	Proposal
	State State
	Dir   string // of its context, where it lay when it was read
}

// apply is the state after one more line.
func (s State) apply(e Event) State {
	n := State{Status: e.Status, Hash: e.Hash, Requested: e.Requested.Time, Decided: e.Decided.Time, Expires: s.Expires,
		Approver: e.Approver, By: e.By, Where: e.Where, Message: e.Message, Reason: e.Reason, Auto: e.Auto}
	if e.Status == Pending {
		n.Expires = e.Expires.Time
	}
	return n
}

// Read reads the job of a context's directory. It wraps fs.ErrNotExist where nothing was
// proposed.
func Read(dir string) (Job, error) {
	job := Job{Dir: dir}
	raw, err := contextstore.ReadFile(dir, proposalFile)
	if err == nil {
		err = json.Unmarshal(raw, &job.Proposal)
	}
	if err == nil && job.Format > proposalFormat {
		err = fmt.Errorf("it has format %d, and this program knows %d", job.Format, proposalFormat)
	}
	if err != nil {
		return job, fmt.Errorf("read the proposal in %s: %w", dir, err)
	}
	job.State.Status = Pending // a kill may have come before its request
	_, err = approvalsFile.Each(dir, func(e Event) {
		if e.Job == job.Job {
			job.State = job.State.apply(e)
		}
	})
	return job, err
}

// ReadPatch reads the raw bytes of a proposal's patch and makes sure that they are.
func (j Job) ReadPatch() ([]byte, error) {
	raw, err := disk.Read(patchPath(j.Dir, j.Patch), disk.MaxWhole)
	if err == nil && sumOf(raw) != j.Patch {
		err = errors.New("its bytes are not those that were proposed")
	}
	if err != nil {
		return nil, fmt.Errorf("patch of job %s: %w", j.Job, err)
	}
	return raw, nil
}

// lockWait is as long as ctx lets wait.
const lockWait = 24 * time.Hour

// lockedFile calls f while nobody else has the lock on a file, wherever that lies
// meanwhile: find tells. The file is made where it is missing.
func lockedFile(ctx context.Context, find func() (path string, err error), f func() error) error {
	for {
		path, err := find()
		if err != nil {
			return err
		}
		l, err := filelock.TakeWait(ctx, path, os.O_CREATE|os.O_RDWR, filelock.Exclusive, lockWait)
		if errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil { // it was moved
			continue
		}
		if err != nil {
			return err
		}
		defer l.Release()
		return f()
	}
}

// locked calls f while nobody else decides about the job of a context: find tells where
// that lies. The lock is the kernel's, on approvals.jsonl.
func locked(ctx context.Context, find func() (dir string, err error), f func(dir string) error) error {
	var at string
	return lockedFile(ctx, func() (path string, err error) {
		at, err = find()
		return filepath.Join(at, string(approvalsFile)), err
	}, func() error { return f(at) })
}

// itsHash reports whether a decision is about a hash: it is the whole, or ShortHash digits
// or more of its beginning.
func itsHash(hash, said string) bool {
	said = strings.ToLower(strings.TrimSpace(said))
	return len(said) >= ShortHash && strings.HasPrefix(hash, said)
}
