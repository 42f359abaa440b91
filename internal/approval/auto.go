package approval

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// autoFile lies in the base directory and tells what may be approved without asking, and
// since when it may not any more. It is appended to.
const autoFile contextstore.Records[autoLine] = "auto_approve.jsonl"

// AutoGrant is what somebody allowed for a session until its time is over (route §6.4).
type AutoGrant struct {
	ID      string            `json:"id"`
	Session string            `json:"session_id"`
	By      string            `json:"by"`
	Where   string            `json:"where,omitempty"`
	At      contextstore.Time `json:"at"`
	Until   contextstore.Time `json:"until"`
	Paths   []string          `json:"paths"` // prefixes
	Types   []TaskType        `json:"types"`
	Tools   []string          `json:"tools"`
}

// autoLine is a line of autoFile: a grant, or the end of one.
type autoLine struct {
	Grant *AutoGrant        `json:"grant,omitempty"`
	Off   string            `json:"off,omitempty"` // id of a grant
	By    string            `json:"by,omitempty"`
	At    contextstore.Time `json:"at,omitzero"`
}

// The tools of a proposal, as approval.auto_approve.scope.allowed_tools names them.
const (
	ToolPatch = "apply_patch"
	ToolShell = "shell" // commands of the proposal
)

// AutoRequest is what /auto-approve asks for.
type AutoRequest struct {
	Off   bool
	Paths []string
	Types []TaskType
	Tools []string
	TTL   time.Duration
}

// ParseAuto reads what stands behind /auto-approve: "off", or any of scope=, types=, tools=
// and ttl=, with commas between several. What is left out is what the settings allow, and
// nothing can be wider than that.
func ParseAuto(args string, s AutoSettings) (r AutoRequest, err error) {
	words := strings.Fields(args)
	if len(words) == 1 && strings.EqualFold(words[0], "off") {
		return AutoRequest{Off: true}, nil
	}
	if !s.Enabled {
		return AutoRequest{}, i18n.E("approval.auto_disabled")
	}
	r = AutoRequest{Paths: s.Paths, Types: s.Types, Tools: s.Tools, TTL: s.TTL}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		list := strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == '、' })
		if !ok || len(list) == 0 {
			return r, i18n.E("approval.auto_usage", w)
		}
		switch strings.ToLower(name) {
		case "scope", "paths":
			r.Paths, err = narrowed("scope", list, s.Paths, within)
		case "types":
			r.Types, err = narrowed("types", list, s.Types, is)
		case "tools":
			r.Tools, err = narrowed("tools", list, s.Tools, is)
		case "ttl":
			ttl, err := time.ParseDuration(value)
			if err != nil || ttl <= 0 {
				return r, i18n.E("approval.auto_usage", w)
			}
			if ttl > s.TTL {
				return r, i18n.E("approval.auto_wider", "ttl", value, s.TTL.String())
			}
			r.TTL = ttl
		default:
			return r, i18n.E("approval.auto_usage", w)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// narrowed is a list of what is asked for under a name, each of which one of the settings covers.
func narrowed[T ~string](name string, list []string, most []T, covers func(asked, of string) bool) (all []T, err error) {
	for _, asked := range list {
		if !slices.ContainsFunc(most, func(of T) bool { return covers(asked, string(of)) }) {
			return nil, i18n.E("approval.auto_wider", name, asked, joined(most))
		}
		all = append(all, T(asked))
	}
	return all, nil
}

func is(asked, of string) bool { return asked == of }

func joined[T ~string](list []T) string {
	all := make([]string, len(list))
	for i, t := range list {
		all[i] = string(t)
	}
	return strings.Join(all, ", ")
}

// within reports whether a path, or a prefix of paths, lies below a prefix. A prefix is a
// directory or a file, with a slash at its end or none; "" is everything.
func within(name, prefix string) bool {
	if strings.Contains(name, "\\") || strings.HasPrefix(name, "/") || slices.Contains(strings.Split(name, "/"), "..") {
		return false
	}
	name, prefix = path.Clean(name), strings.TrimSuffix(path.Clean("./"+prefix), "/")
	return prefix == "." || name == prefix || strings.HasPrefix(name, prefix+"/")
}

// Allow puts down that proposals of a session may be approved without asking, and returns
// until when and what. Only approvers and administrators may.
func (j *Jobs) Allow(ctx context.Context, session, by, where string, r AutoRequest, random io.Reader) (AutoGrant, error) {
	people, err := j.Settings.persons(ctx)
	if err != nil {
		return AutoGrant{}, err
	}
	if !people.among(j.Settings.Approvers, by) && !people.among(j.Settings.Admins, by) {
		return AutoGrant{}, &NotAllowedError{Job: session, By: by, Key: "approval.auto_not_allowed"}
	}
	if session == "" || r.Off {
		return AutoGrant{}, errors.New("allow automatic approval: needs a session")
	}
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return AutoGrant{}, err
	}
	now := j.Now().UTC()
	g := AutoGrant{ID: hex.EncodeToString(b[:]), Session: session, By: by, Where: where, At: contextstore.Time{Time: now}, Until: contextstore.Time{Time: now.Add(min(r.TTL, j.Settings.Auto.TTL))},
		Paths: r.Paths, Types: r.Types, Tools: r.Tools}
	err = j.autoWrite(ctx, func([]AutoGrant) []autoLine { return []autoLine{{Grant: &g}} })
	return g, errors.Join(err, j.auditAuto("auto_approve_on", by, session, fmt.Sprintf("scope=%s types=%s tools=%s until %s", strings.Join(g.Paths, ","), joined(g.Types), strings.Join(g.Tools, ","), g.Until)))
}

// Off ends automatic approval of a session, or of all with "", also for what was approved
// and is not applied yet (Confirm). Everybody may. It returns how many grants it ended.
func (j *Jobs) Off(ctx context.Context, session, by string) (n int, err error) {
	err = j.autoWrite(ctx, func(on []AutoGrant) (lines []autoLine) {
		for _, g := range on {
			if session == "" || g.Session == session {
				lines = append(lines, autoLine{Off: g.ID, By: by, At: contextstore.Time{Time: j.Now().UTC()}})
			}
		}
		n = len(lines)
		return lines
	})
	return n, errors.Join(err, j.auditAuto("auto_approve_off", by, session, strconv.Itoa(n)))
}

func (j *Jobs) auditAuto(action, by, session, detail string) error {
	return contextstore.Audit(j.Store.FS, j.Store.BaseDir, j.Now(), j.Store.Redact, contextstore.AuditEntry{Actor: by, Action: action, What: session, Detail: detail})
}

// Allowed are the grants that are in force, oldest first.
func (j *Jobs) Allowed() ([]AutoGrant, error) {
	all, err := j.autoRead()
	return slices.DeleteFunc(all, func(g AutoGrant) bool { return !j.Now().Before(g.Until.Time) }), err
}

// autoRead are the grants that nobody switched off, also those whose time is over.
func (j *Jobs) autoRead() (all []AutoGrant, err error) {
	_, err = autoFile.Each(j.Store.BaseDir, func(l autoLine) {
		if l.Grant != nil {
			all = append(all, *l.Grant)
		}
		all = slices.DeleteFunc(all, func(g AutoGrant) bool { return g.ID == l.Off })
	})
	return all, err
}

// autoHolds reports whether what a grant approved still may be applied: its time may be
// over, but nobody switched it off.
func (j *Jobs) autoHolds(id string) (bool, error) {
	all, err := j.autoRead()
	return slices.ContainsFunc(all, func(g AutoGrant) bool { return g.ID == id }), err
}

// autoWrite appends lines that follow from what there is.
func (j *Jobs) autoWrite(ctx context.Context, f func(on []AutoGrant) []autoLine) error {
	return lockedFile(ctx, func() (string, error) { return filepath.Join(j.Store.BaseDir, string(autoFile)), nil }, func() error {
		on, err := j.autoRead()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, l := range f(on) {
			if err := autoFile.Append(j.Store, j.Store.BaseDir, l, true); err != nil {
				return err
			}
		}
		return nil
	})
}

// AutoApprove approves a job that waits without asking, where that is allowed: by a grant
// of its session, or because approval.required_by_default is false. It returns whether it
// did. What must be asked (approval.hard_require_approval, wide overwrites) is not, nor is
// what its coder left points open in.
func (j *Jobs) AutoApprove(ctx context.Context, job *Job) (bool, error) {
	did := false
	err := j.locked(ctx, job, func() error {
		if job.State.Status != Pending || j.overdue(*job) || job.Policy != j.Version || !job.Grantable() || job.Judged != nil && len(job.Judged.Open) > 0 || len(j.Settings.asks(job.Risks)) > 0 {
			return nil
		}
		e := Event{Event: "approval.auto_approved", Status: AutoApproved, Approver: System, By: "required_by_default", Decided: contextstore.Time{Time: j.Now().UTC()}}
		if j.Settings.Required {
			g, err := j.covering(ctx, *job)
			if err != nil || g == nil {
				return err
			}
			e.Approver, e.By, e.Where, e.Auto = g.By, "auto_approve", g.Where, g.ID
		}
		would := *job
		would.State.Approver = e.Approver
		if err := j.ConfirmDelivery(ctx, would); err != nil {
			return nil //nolint:nilerr // then it is asked about
		}
		did = true
		return j.append(job, e)
	})
	if err != nil || !did {
		return false, err
	}
	return true, j.settle(ctx, *job)
}

// covering is a grant in force that covers a job, nil where there is none. With four eyes
// it is none of whoever asked for the job.
func (j *Jobs) covering(ctx context.Context, job Job) (*AutoGrant, error) {
	if !j.Settings.Auto.Enabled || job.Session == "" {
		return nil, nil
	}
	for _, r := range job.Risks {
		if slices.Contains(j.Settings.Auto.Deny, r.Kind) {
			return nil, nil
		}
	}
	all, err := j.Allowed()
	if err != nil {
		return nil, err
	}
	people, err := j.Settings.persons(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range all {
		if g.Session == job.Session && (!j.Settings.FourEyes || !people.same(g.By, job.Requester)) && j.covers(g, job) {
			return &g, nil
		}
	}
	return nil, nil
}

// covers reports whether a grant, and the settings as they are now, cover a job.
func (j *Jobs) covers(g AutoGrant, job Job) bool {
	s := j.Settings.Auto
	if !slices.Contains(g.Types, job.Type) || !slices.Contains(s.Types, job.Type) {
		return false
	}
	tools := []string{ToolPatch}
	if len(job.Commands) > 0 {
		tools = append(tools, ToolShell)
	}
	for _, t := range tools {
		if !slices.Contains(g.Tools, t) || !slices.Contains(s.Tools, t) {
			return false
		}
	}
	for _, f := range job.Files {
		for _, name := range []string{f.Path, f.From} {
			below := func(prefix string) bool { return within(name, prefix) }
			if name != "" && (!slices.ContainsFunc(g.Paths, below) || !slices.ContainsFunc(s.Paths, below)) {
				return false
			}
		}
	}
	return true
}
