package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// The kinds of effects that only a run on a forge has.
const (
	EffectPull   = "pull_request"
	EffectLabels = "labels"
)

// pullEffect is the pull request that is to be there.
type pullEffect struct {
	Head     string       `json:"head"`
	Base     string       `json:"base"`
	Title    string       `json:"title"`
	Body     string       `json:"body"`
	Ready    bool         `json:"ready"` // it was verified: no draft any more
	Reviewer forge.Person `json:"reviewer"`
}

// NotDelivered begins the result of an effect that the other side will never
// take; what follows says why.
const NotDelivered = "! "

// hostedEffects are what the world must see of the end, or the pause, of a run
// on a forge: in this order, since each speaks of what is before it.
func (r *run) hostedEffects() (all []contextstore.Effect, err error) {
	o, id := r.report.Outcome, r.ledger.UUID()
	at := stage(o.Status, r.ledger.State().Generation)
	add := func(key, kind string, data any) {
		if err == nil {
			var e contextstore.Effect
			if e, err = effect(id+"."+key, kind, data); err == nil {
				all = append(all, e)
			}
		}
	}
	if r.handed && r.report.Commit != "" {
		add(EffectPush, EffectPush, pushEffect{r.place.Branch, r.report.Commit})
		if r.proposal != nil {
			add(EffectPull, EffectPull, r.proposal)
		}
	}
	if !r.silent {
		e, err := r.commentOn(id, at, r.report.Comment)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	if r.asking != nil {
		all = append(all, *r.asking)
	}
	return append(all, labelsOf(id, at)), err
}

// stage names a transition among those of its run: a run can pause more than once.
func stage(s task.Status, generation int64) string {
	if s.Final() {
		return string(s)
	}
	return fmt.Sprintf("%s.%d", s, generation)
}

// propose puts the pull request together and asks the broker about it. The
// keyword that closes the issue is added afterwards: models may not write it.
func (r *run) propose(ctx context.Context) error {
	if r.place.Pull != "" {
		return nil // it is there already
	}
	var patch limited
	if err := r.ws.CommittedText(ctx, r.report.Commit, &patch); err != nil {
		return err
	}
	l, m := r.Lang, r.ledger.Metadata()
	v, err := r.door.Judge(ctx, broker.Request{
		Kind: broker.PullRequest, Key: m.UUID + "." + EffectPull, Task: m.TaskKey, Target: broker.Target{Branch: r.place.Branch, Base: r.place.Onto},
		Title: cmp.Or(wordsOf(r.final).subject, m.Title), Text: r.description(l), Patch: patch.String(), Fields: map[string]string{broker.FieldDraft: "true"}, Origin: broker.Origin{Who: broker.FromRun},
	})
	if err != nil {
		return err
	}
	if v.Decision != broker.Allow {
		if len(v.Findings) > 0 {
			return &taskError{v.Reason}
		}
		return v.Reason
	}
	r.proposal = &pullEffect{Head: r.place.Branch, Base: r.place.Onto, Title: v.Title, Body: "Closes #" + m.TaskKey.ID + "\n\n" + v.Text,
		Ready: r.settled(), Reviewer: r.job.Ask.By}
	return nil
}

// settled reports whether all was verified: no check is red or was left out, and
// nothing is open.
func (r *run) settled() bool {
	v := judge(r.before, r.after)
	return !v.none && len(v.red)+len(v.notFound)+len(r.notRun)+len(r.judged.Open) == 0 && r.decided() == ""
}

// description is the text of the pull request: what was changed and why, how that
// was verified, and what is left open.
func (r *run) description(l i18n.Lang) string {
	text := r.said(l) + r.account(l)
	if r.Scripted {
		text += "\n" + l.T("agent.scripted") + "\n"
	}
	return strings.TrimLeft(text, "\n") + "\n" + l.T("agent.comment_run", r.ledger.UUID(), r.ledger.UUID()[:8]) + "\n"
}

// account is what we say of the work: how it was verified, what is open, and what a
// reviewer should look at.
func (r *run) account(l i18n.Lang) string {
	return r.evidence(l) + r.openPoints(l) + r.notes(l)
}

// evidence is how the work was verified: each check before the change and after it,
// and each criterion with what shows that it is met.
func (r *run) evidence(l i18n.Lang) string {
	var b strings.Builder
	if len(r.before)+len(r.after) > 0 {
		b.WriteString("\n" + l.T("agent.table_checks") + "\n|---|---|---|\n")
		for _, c := range r.before {
			b.WriteString("| " + cell(progress.Span(c.Command)) + " | " + result(l, c) + " | " + r.now(l, c.Command) + " |\n")
		}
		for _, c := range r.after {
			if !slices.ContainsFunc(r.before, func(was contextstore.CheckRun) bool { return was.Command == c.Command }) {
				b.WriteString("| " + cell(progress.Span(c.Command)) + " | | " + r.now(l, c.Command) + " |\n")
			}
		}
	}
	for i, c := range r.judged.Criteria {
		if i == 0 {
			b.WriteString("\n" + l.T("agent.table_criteria") + "\n|---|---|---|\n")
		}
		met := "❌"
		if c.Met {
			met = "✅"
		}
		b.WriteString("| " + cell(r.plainLine(l.Retold(c.Criterion))) + " | " + met + " | " + cell(r.plainLine(l.Retold(c.Evidence))) + " |\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + l.T("agent.how_verified") + "\n" + b.String()
}

// now is how the check of a command ended after the change, and what is other than
// before; "" where it did not run.
func (r *run) now(l i18n.Lang, command string) string {
	i := slices.IndexFunc(r.after, func(c contextstore.CheckRun) bool { return c.Command == command })
	if i < 0 {
		return ""
	}
	text := result(l, r.after[i])
	if news := compare(r.before, r.after[i]).text(l, r.testSpan); news != "" {
		text += "; " + cell(news)
	}
	return text
}

// testSpan is the name of a test where people read it.
func (r *run) testSpan(name string) string {
	return progress.Span(cutLine(oneLine(r.Store.Redact(name))))
}

// cell is a text as it stands in a table of Markdown.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// openPoints lists what a reviewer has to know is not settled.
func (r *run) openPoints(l i18n.Lang) string {
	if s := r.report.Outcome.Status; s != "" && s != task.Completed { // its reason says more
		return ""
	}
	var b strings.Builder
	v := judge(r.before, r.after)
	switch {
	case v.none && len(v.notFound)+len(r.notRun) > 0:
		b.WriteString("- " + l.T("agent.open_not_run") + "\n")
	case v.none:
		b.WriteString("- " + l.T("agent.open_unverified") + "\n")
	}
	if names := r.decided(); names != "" && !v.none && len(v.red) == 0 {
		b.WriteString("- " + l.T("scan.open", names) + "\n")
	}
	for _, p := range r.judged.Open {
		b.WriteString("- " + cutLine(oneLine(l.Retold(r.Store.Redact(p)))) + "\n")
	}
	for _, c := range v.notFound {
		b.WriteString("- " + l.T("agent.open_not_found", "`"+c.Command+"`") + "\n")
	}
	if left := r.notRunText(l); left != "" {
		b.WriteString("- " + l.T("agent.open_left_out", left) + "\n")
	}
	if left := r.leftOut(l); left != "" {
		b.WriteString("- " + r.Store.Redact(left) + "\n")
	}
	for _, c := range v.red {
		b.WriteString("- " + l.T("agent.open_red", "`"+c.Command+"`") + "\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + l.T("agent.open_points") + "\n\n" + b.String()
}

// mayHand asks the forge whether it would take the branch, so that a run whose
// branch somebody else moved, or that may not push, does not end as completed. A
// forge that cannot be asked now is no reason: the branch waits in the outbox.
func (r *run) mayHand(ctx context.Context) error {
	err := r.Host.wouldTake(ctx, r.ledger.Metadata().TaskKey, r.place, r.ws)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if silent(err) {
		r.log.Warn("The forge cannot be asked about the branch now: " + err.Error())
		return nil
	}
	if barred(err) {
		return &barredError{err}
	}
	return err
}

// wouldTake asks a forge whether it would take the branch of a run.
func (h *Host) wouldTake(ctx context.Context, k task.Key, p place, ws *workspace.Workspace) error {
	opt, err := h.pushing(ctx, k, p)
	if err == nil {
		opt.DryRun = true
		_, err = ws.Push(ctx, opt)
	}
	return err
}

// barredError pauses a run that cannot hand its branch over for as long as
// nobody changes what we may do at the forge.
type barredError struct{ error }

func (e *barredError) Unwrap() error { return e.error }

// barredMark is the mark of runs that a barredError paused.
const barredMark = "barred"

// bar remembers that a barredError pauses the run, or that none does any more.
func (r *run) bar(ctx context.Context, yes bool) error {
	if r.Host == nil {
		return nil
	}
	return r.mark(ctx, r.ledger.UUID(), yes)
}

// StayPaused forgets what a paused run waits for to go on by itself: somebody
// wants it paused.
func (a *Agent) StayPaused(ctx context.Context, uuid string) error {
	return errors.Join(a.mark(ctx, uuid, false), a.Store.StayPaused(ctx, uuid))
}

// mark remembers, or forgets, that a paused run waits for what we may do at its
// forge, so that it goes on by itself.
func (a *Agent) mark(ctx context.Context, uuid string, yes bool) error {
	was, err := a.Store.Mark(ctx, uuid, barredMark)
	if err != nil || (was != "") == yes {
		return err
	}
	value := ""
	if yes {
		value = "1"
	}
	return a.Store.SetMark(ctx, uuid, barredMark, value)
}

// Unbarred reports whether the forge would now take the branch of a run that was
// paused because it would not.
func (a *Agent) Unbarred(ctx context.Context, v contextstore.View) (bool, error) {
	mark, err := a.Store.Mark(ctx, v.Metadata.UUID, barredMark)
	h := a.Hosts[v.Metadata.TaskKey.Source]
	if err != nil || mark == "" || h == nil {
		return false, err
	}
	p, ok, err := readPlace(v.Dir)
	if err != nil || !ok {
		return false, err
	}
	ws, err := workspace.Open(a.Store.WorkspaceDir(v.Metadata.UUID), a.box())
	if err != nil {
		return false, err
	}
	defer func() { _ = ws.Close() }()
	err = h.wouldTake(ctx, v.Metadata.TaskKey, p, ws)
	if silent(err) || barred(err) {
		return false, nil
	}
	return true, nil // whatever else it says is for the run to tell
}

// pushing says where a branch goes, and what must be there.
func (h *Host) pushing(ctx context.Context, k task.Key, p place) (opt workspace.PushOptions, err error) {
	opt.Remote, err = h.remote(ctx, forge.RepoOf(k))
	if opt.Branch = p.Branch; p.There {
		opt.Expect = p.Base
	}
	return opt, err
}

// save commits what an ended run leaves in its workspace and hands the branch
// over without a pull request: nothing that was done is lost on a machine that
// who asked cannot reach. What may not go out stays where it is.
func (r *run) save(ctx context.Context) {
	if r.ws == nil || r.handed || r.door == nil {
		return
	}
	hash, err := r.commit(ctx)
	if err == nil && hash != "" {
		if r.report.Commit = hash; len(r.report.Files) == 0 {
			if changes, cerr := r.ws.ChangedFiles(ctx); cerr == nil {
				r.report.Files = workspace.Paths(changes)
			}
		}
		if err = r.mayPush(ctx); err == nil {
			err = r.mayHand(ctx)
		}
		r.handed = err == nil
	}
	if err != nil {
		r.log.Warn("What was done so far stays in the workspace: " + r.Store.Redact(err.Error()))
	}
}

// Propose delivers a pull request: one, as a draft, ready where it was verified.
func (a *Agent) Propose(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	var p pullEffect
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return "", fmt.Errorf("effect %s: %w", e.Key, err)
	}
	h, key, err := a.hostOf(uuid)
	if err != nil {
		return "", err
	}
	if done, err := a.Store.Delivered(ctx, uuid); err != nil {
		return "", err
	} else if why, is := strings.CutPrefix(done[uuid+"."+EffectPush], NotDelivered); is {
		return NotDelivered + why, nil // there is no branch to propose
	}
	if newer, err := a.superseded(ctx, uuid, key, p.Head); err != nil || newer != "" {
		return newer, err
	}
	it, err := h.Propose(ctx, forge.RepoOf(key), forge.Proposal{Head: p.Head, Base: p.Base, Title: p.Title, Body: p.Body, Marker: uuid, Draft: true})
	if err != nil {
		return "", a.yet(ctx, uuid, err)
	}
	if !it.Open || it.Pull == nil || it.Pull.Marker == "" { // people have decided about it already, or made it theirs
		return it.URL, nil
	}
	if p.Reviewer.Login != "" {
		if err := h.RequestReview(ctx, it.Key, []forge.Person{p.Reviewer}); err != nil && !refused(err) {
			return "", err
		}
	}
	if p.Ready {
		if err := h.Ready(ctx, it.Key); err != nil && !refused(err) {
			return "", err
		}
	}
	return it.URL, nil
}

// refusedMark is the mark of when a forge first refused a run's pull request as
// invalid.
const refusedMark = "pull_refused"

// refusedTime is how long a pull request that is refused as invalid is tried
// again: a forge that has just taken a branch may not know it everywhere yet.
const refusedTime = 10 * time.Minute

// yetError is a refusal that may pass, whatever its kind says elsewhere.
type yetError struct{ said string }

func (e *yetError) Error() string { return e.said }

// yet is why a pull request was not taken, as a passing trouble for as long as it
// may be one.
func (a *Agent) yet(ctx context.Context, uuid string, err error) error {
	if !forge.Is(err, forge.Invalid) {
		return err
	}
	mark, merr := a.Store.Mark(ctx, uuid, refusedMark)
	if merr != nil {
		return merr
	}
	since, perr := time.Parse(time.RFC3339, mark)
	if perr != nil {
		since = a.Now()
		if merr := a.Store.SetMark(ctx, uuid, refusedMark, since.UTC().Format(time.RFC3339)); merr != nil {
			return merr
		}
	}
	if a.Now().Sub(since) < refusedTime {
		return &yetError{a.Lang.Error(err)}
	}
	return err
}

// refused tells that a forge does not allow a nicety, which is done without.
func refused(err error) bool {
	return forge.Is(err, forge.Invalid) || forge.Is(err, forge.Unsupported) || forge.Is(err, forge.Forbidden)
}

// SetLabels delivers the labels: those that the run's status asks for now, which
// may be a later one than that of the effect. A run that is not the newest of
// its task says nothing about it any more.
func (a *Agent) SetLabels(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	h, key, err := a.hostOf(uuid)
	if err != nil {
		return "", err
	}
	newest, ok, err := a.Store.Latest(ctx, key)
	if err != nil {
		return "", err
	}
	if ok && newest.Metadata.UUID != uuid {
		return "a newer run shows how the task stands", nil
	}
	v, err := a.Store.View(uuid)
	if err != nil {
		return "", err
	}
	want := h.Labels.Status[v.Status()]
	var remove []string
	for _, name := range h.Labels.Status {
		if !strings.EqualFold(name, want) {
			remove = append(remove, name)
		}
	}
	if strings.HasPrefix(e.Key, QueuedLabels(uuid).Key) {
		own, err := a.ownTrigger(ctx, h, v)
		if err != nil {
			return "", err
		}
		if own {
			remove = append(remove, h.Labels.Trigger)
		}
	}
	if h.Labels.Create {
		if err := h.EnsureLabels(ctx, forge.RepoOf(key), h.Labels.all()); err != nil && !refused(err) {
			return "", err
		}
	}
	return want, h.SetLabels(ctx, key, []string{want}, remove)
}

// ownTrigger reports whether the label that asks is the one that this very run
// took up: one that was put on since, perhaps while the forge was down, asks for
// another.
func (a *Agent) ownTrigger(ctx context.Context, h *Host, v contextstore.View) (bool, error) {
	taken, err := LastAsk(ctx, a.Store, v)
	if err != nil {
		return false, err
	}
	last, err := h.Asked(ctx, v.Metadata.TaskKey, forge.Trigger{Label: h.Labels.Trigger})
	if errors.Is(err, forge.ErrNotAsked) {
		return false, nil
	}
	return err == nil && !taken.Before(Ask{At: last.At, Event: last.Event}), err
}

// Asking is the label that asks for work, as it is made.
func (l Labels) Asking() forge.Label {
	return forge.Label{Name: l.Trigger, Color: "0E8A16", Description: "Asks tori to work on this"}
}

// all are the labels as they are made, in the colours of former days.
func (l Labels) all() []forge.Label {
	out := []forge.Label{l.Asking()}
	seen := map[string]bool{}
	for _, s := range task.Statuses() {
		name := l.Status[s]
		if look, ok := looks[s]; ok && name != "" && !seen[name] {
			seen[name] = true
			out = append(out, forge.Label{Name: name, Color: look[0], Description: look[1]})
		}
	}
	return out
}

var looks = map[task.Status][2]string{
	task.Running:          {"FBCA04", "tori has this in hand"},
	task.Paused:           {"D93F0B", "tori has paused this"},
	task.AwaitingApproval: {"5319E7", "tori waits for an answer"},
	task.Completed:        {"1D76DB", "tori has completed this"},
	task.Stopped:          {"E99695", "tori was stopped here"},
	task.Failed:           {"B60205", "tori failed here"},
}

// QueuedLabels is the effect of a run that was just enqueued.
func QueuedLabels(uuid string) contextstore.Effect {
	return labelsOf(uuid, string(task.Queued))
}

// labelsOf is the effect that shows a stage of a run by its labels.
func labelsOf(uuid, stage string) contextstore.Effect {
	return contextstore.Effect{Key: uuid + "." + EffectLabels + "." + stage, Kind: EffectLabels, Data: json.RawMessage(`{}`)}
}

// hostOf is the forge of a run, and its task.
func (a *Agent) hostOf(uuid string) (*Host, task.Key, error) {
	m, err := a.Store.Metadata(uuid)
	if err != nil {
		return nil, task.Key{}, err
	}
	h, err := a.host(m.TaskKey)
	return h, m.TaskKey, err
}

func (a *Agent) host(k task.Key) (*Host, error) {
	if h := a.Hosts[k.Source]; h != nil {
		return h, nil
	}
	return nil, i18n.E("agent.no_host", ref(k), k.Source)
}

// pushHosted delivers a branch to the forge.
func (a *Agent) pushHosted(ctx context.Context, uuid string, ws *workspace.Workspace, p pushEffect) (string, error) {
	h, key, err := a.hostOf(uuid)
	if err != nil {
		return "", err
	}
	v, err := a.Store.View(uuid)
	if err != nil {
		return "", err
	}
	at, _, err := readPlace(v.Dir)
	if err != nil {
		return "", err
	}
	opt, err := h.pushing(ctx, key, at)
	if err != nil {
		return "", err
	}
	_, err = ws.Push(ctx, opt)
	return p.Branch + " " + p.Commit, err
}

// postHosted delivers what is said about a run: in its one comment, which is
// edited from stage to stage. What came of the effects before it is added.
func (a *Agent) postHosted(ctx context.Context, m contextstore.Metadata, key, text string) (string, error) {
	h, err := a.host(m.TaskKey)
	if err != nil {
		return "", err
	}
	v, err := a.Store.View(m.UUID)
	if err != nil {
		return "", err
	}
	stage, marker := strings.TrimPrefix(key, m.UUID+"."), m.UUID
	is := strings.HasPrefix(stage, string(v.Status()))
	if strings.HasPrefix(stage, questionStage) { // a comment of its own, so that people are notified
		is, marker = v.Status() == task.AwaitingApproval, key[:strings.LastIndexByte(key, '.')]
	}
	if !is {
		return "what came after says more", nil
	}
	if marker != m.UUID {
		c, err := h.Post(ctx, m.TaskKey, marker, text)
		return c.URL, err
	}
	done, err := a.Store.Delivered(ctx, m.UUID)
	if err != nil {
		return "", err
	}
	for _, kind := range []string{EffectPush, EffectPull} {
		came := done[m.UUID+"."+kind]
		if why, is := strings.CutPrefix(came, NotDelivered); is {
			if text, err = a.undelivered(kind, why, text); err != nil {
				return "", err
			}
			break
		} else if kind == EffectPull && came != "" {
			text += "\n" + a.Lang.T("agent.comment_pull", came) + "\n"
		}
	}
	c, err := h.Post(ctx, m.TaskKey, m.UUID, text)
	return c.URL, err
}

// undelivered puts above what is said of a run that its work did not arrive: who
// reads on may take the rest for a success.
func (a *Agent) undelivered(kind, why, text string) (string, error) {
	key := "agent.comment_undelivered"
	if kind == EffectPull {
		key = "agent.comment_not_proposed"
	}
	said, _, err := a.Door.Filter.Clean(broker.Markdown, a.Lang.T(key, a.public(why))) // a stranger's words
	return said + "\n\n" + text, err
}

// CommentMeanwhile says on a run's item what its comment will say, and why the
// branch or the pull request is not there yet.
func (a *Agent) CommentMeanwhile(ctx context.Context, uuid string, e contextstore.Effect, why error) error {
	var c commentEffect
	if err := json.Unmarshal(e.Data, &c); err != nil {
		return fmt.Errorf("effect %s: %w", e.Key, err)
	}
	m, err := a.Store.Metadata(uuid)
	if err != nil {
		return err
	}
	if job, err := ParseJob(m); err != nil || job.Ask == nil {
		return err // a folder hears of it when it is there
	}
	_, err = a.postHosted(ctx, m, e.Key, c.Body+"\n"+a.Store.Redact(a.Lang.T("agent.comment_meanwhile", a.public(a.Lang.Error(why))))+"\n")
	return err
}

// Held reports whether an effect that failed like this is refused by a forge that
// answers, until somebody mends what we may do there, or concerns git alone: the
// rest of the forge may take what is said all the same.
// So does one that waits for what another run of the task made.
func Held(err error) bool {
	return barred(err) || workspace.Denied(err) || workspace.Unreachable(err) || errors.As(err, new(*yetError)) || errors.As(err, new(*owedError))
}

// Lasting reports whether an effect that failed like this will never be taken,
// so that what stands behind it in the outbox need not wait.
func Lasting(err error) bool {
	return forge.Is(err, forge.Gone) || forge.Is(err, forge.Invalid) || workspace.Refused(err)
}
