package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/approval"
	"toritsugi/internal/channel"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/contract"
	"toritsugi/internal/conversation"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/i18n"
	"toritsugi/internal/job"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/script"
	"toritsugi/internal/models"
	"toritsugi/internal/order"
	"toritsugi/internal/routing"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// talks is what answers messages: the conversation, what its coders do, and who decides
// about it. Its jobs go on beside the turns.
type talks struct {
	*system
	shell     func(sandbox.Spec) (sandbox.Runner, error)
	here      *conversation.Repository
	engine    *conversation.Engine
	approvals *approval.Jobs
	opened    chan string            // sessions that somebody looks at again
	wake      func()                 // the pool that works on jobs
	works     func(uuid string) bool // whether that is a run that it works on
	lang      i18n.Lang
	since     time.Time // when this process began
	*desk               // begins runs of forges

	*heard
}

// heard is what a process knows of who listens to it, and of what others do for them.
type heard struct {
	mu        sync.Mutex
	givenUp   map[string]bool      // sessions that are to be told of a job that nobody goes on with
	sessions  map[string]bool      // whose people this process speaks with; true where somebody looks at what goes on there
	following map[string]*followed // jobs, by their ids; nil where nobody is shown how far they are
}

// chatSources are the sources of jobs of conversations: the channels.
func chatSources() []string {
	all := []string{string(channel.Terminal)}
	for _, c := range (config.Channels{}).Served() {
		all = append(all, c.Kind)
	}
	return all
}

// talk makes what answers messages, and works on the jobs of its coders. here is the
// repository that the program was started in, nil for none. The caller has a pool work on
// jobs, and calls end.
func (s *system) talk(ctx context.Context, here *workspace.Source) (t *talks, end func(), err error) {
	if !s.cfg.ContextStorage.Enabled {
		return nil, nil, &ConfigError{i18n.E("app.chat_storage")}
	}
	t = &talks{system: s, since: s.env.Now(), lang: s.speaks(), wake: func() {}, works: func(string) bool { return false }, desk: &desk{own: channel.Recent[*dispatch.Watch]{Most: mostAsking}, told: map[string]*toldSession{}}, heard: &heard{sessions: map[string]bool{}}, opened: make(chan string, mostOpened)}
	if t.shell, err = s.shell(ctx); err != nil {
		return nil, nil, &ConfigError{err}
	}
	if err := s.openChatHosts(ctx); err != nil {
		return nil, nil, &ConfigError{err}
	}
	if here != nil {
		t.here = &conversation.Repository{Name: here.Name(), Path: here.Path}
	}
	if t.engine, end, err = s.converse(ctx, t.here); err != nil {
		return nil, nil, err
	}
	if t.approvals, err = s.approvals(); err != nil {
		end()
		return nil, nil, err
	}
	t.engine.People = t
	if len(t.watched()) > 0 {
		t.engine.Issues = t
	}
	t.engine.Jobs, t.engine.Approvals, t.engine.Tree, t.engine.Opened = t, t, t.tree, t.opens
	return t, end, nil
}

// alone makes what works on jobs in a process that is no tori serve. run does so until its
// context ends, and waits for those that it works on; what another process said to the
// sessions of this one is shown meanwhile.
func (t *talks) alone() (run func(context.Context)) {
	sources := map[string]bool{string(channel.Terminal): true} // others' channels are not here
	t.following = map[string]*followed{}
	pool, deliverer, monitor := t.engines(sources, nil, nil, &dispatch.Stats{}, t.work)
	return func(ctx context.Context) {
		var all sync.WaitGroup
		all.Go(func() { monitor.Run(ctx) })
		all.Go(func() { pool.Run(ctx) })
		all.Go(func() { deliverer.Run(ctx) })
		all.Go(func() { every(ctx, hearEvery, t.look) })
		all.Go(func() { t.tellOpened(ctx) })
		t.tellWaiting(ctx, channel.Terminal)
		all.Wait()
	}
}

// engines makes what works on runs of sources, delivers what they owe, and looks after them.
// watches are the forges that some are of; queue wakes it, nil where it looks for work itself.
func (t *talks) engines(sources map[string]bool, queue dispatch.Queue, watches map[string]*dispatch.Watch, stats *dispatch.Stats,
	work func(context.Context, *contextstore.Context) (agent.Report, error),
) (*dispatch.Pool, *dispatch.Deliverer, *dispatch.Monitor) {
	s, cfg, box := t.system, t.cfg, t.outbox()
	limits := dispatch.Limits{Max: cfg.Workers.Max, PerRepository: cfg.Workers.PerRepository, PerUser: cfg.Workers.PerUser}
	if len(watches) > 1 { // a place is left for others where the runs of one all wait for a forge that hangs
		limits.PerSource = max(1, limits.Max-1)
	}
	box.Stats = stats
	deliverer := dispatch.NewDeliverer(&dispatch.Deliverer{Outbox: box, Store: s.store, Sources: sources, Watches: watches, Log: s.log, Now: s.env.Now})
	pool := dispatch.NewPool(dispatch.PoolOptions{Store: s.store, Queue: queue, Sources: sources, Log: s.log, Now: s.env.Now, Stats: stats,
		Limits: limits, Work: tracing(work), Claim: s.claim, Ended: func(task.Key, agent.Report, error) { deliverer.Wake() }})
	t.wake, t.works = func() { pool.Wake(); deliverer.Wake() }, pool.Works
	return pool, deliverer, &dispatch.Monitor{Store: s.store, Sources: sources, Lang: t.lang, Log: s.log, Now: s.env.Now, Wake: t.wake, Stats: stats,
		Every: time.Duration(cfg.Monitor.IntervalMinutes) * time.Minute, Stale: time.Duration(cfg.ContextStorage.StaleSeconds) * time.Second,
		MaxAttempts: cfg.Recovery.MaxAttempts, Fail: cfg.Recovery.Mode == "fail", Settle: t.settle, Left: func(contextstore.View) {}}
}

// settle has done what follows from what was decided, and from time that is over, and tells
// the people whom it is about.
func (t *talks) settle(ctx context.Context) error {
	moved, err := t.approvals.Settle(ctx)
	for _, j := range moved {
		if j.State.Approver == approval.System && j.State.Status == approval.Denied && j.Session != "" {
			to := t.toPeopleOf(j)
			to.event(ctx, j.Session, j)
			to.decided(ctx, j.Session, j, j.Denial(to.lang), "over")
		}
	}
	if len(moved) > 0 {
		t.wake()
	}
	return err
}

// Start implements conversation.Jobs.
func (t *talks) Start(ctx context.Context, j conversation.Job) (string, error) {
	at, err := t.at(ctx, j.Repository)
	if err != nil {
		return "", err
	}
	id, err := approval.NewJob(t.env.Now(), time.Local, rand.Reader)
	if err != nil {
		return "", err
	}
	request, err := jsonl.Marshal(j.Input)
	if err != nil {
		return "", err
	}
	title := contract.Headline(j.Task, maxTitle)
	o := order.Chat{Job: id, Session: j.SessionID, User: j.User, ReplyTo: j.ReplyTo, Route: string(j.Route), Repository: j.Repository.Name, Onto: at.onto, Language: string(t.lang), Deliver: string(t.deliver(j)), Title: title,
		Request: string(request), Prompt: j.Prompt}
	raw, err := json.Marshal(order.Order{Repo: at.repo, Base: at.base, Config: t.cfg.File(), Role: j.Role, LocalOnly: j.LocalOnly, Chat: &o})
	if err != nil {
		return "", err
	}
	spec, err := t.models.Spec(ctx, t.wants(j.Role, string(j.Route), j.LocalOnly))
	if err != nil {
		return "", err
	}
	people, err := t.access(ctx)
	if err != nil {
		return "", err
	}
	t.speaks(j.SessionID)
	t.progress(o, t.lang.T("job.begins"))
	key := task.Key{Source: string(j.Channel), Owner: owner(j.SessionID), Repo: at.name, Type: "chat", ID: id}
	platform, login, _ := strings.Cut(people.Account(j.User), ":")
	_, err = t.store.Enqueue(ctx, contextstore.Metadata{TaskKey: key, Title: title, User: people.User(j.User), Run: raw,
		Config: t.metadataOf(ctx, platform, login, t.wants(j.Role, string(j.Route), j.LocalOnly), t.ofModel(spec))})
	if err != nil {
		t.progress(o, "")
		return "", err
	}
	t.follow(j.SessionID, id)
	t.wake()
	return id, nil
}

// startingPoint is where the work of a job begins: at a commit of a repository of this machine, or
// at a branch of one of a forge, which is looked at when the job begins.
type startingPoint struct{ repo, name, base, onto string }

// at is where a job about a repository begins.
func (t *talks) at(ctx context.Context, r conversation.Repository) (startingPoint, error) {
	if r.URL != "" {
		return startingPoint{repo: r.URL, name: r.URL[strings.LastIndexByte(r.URL, '/')+1:], onto: r.Base}, nil
	}
	src, err := workspace.Inspect(ctx, r.Path, workspace.InspectOptions{NoStatus: true})
	if err != nil {
		return startingPoint{}, err
	}
	p := startingPoint{repo: src.Path, name: src.Name(), base: src.Head}
	if r.Base != "" {
		if p.base, err = src.Tip(ctx, r.Base); err == nil && p.base == "" {
			err = i18n.E("approval.no_branch", r.Base, src.Path)
		}
	}
	return p, err
}

// maxTitle is how long the title of a job may be, in characters.
const maxTitle = 72

// owner is the channel's id in a session's: what stands between its kind and its last part.
func owner(session string) string {
	_, rest, _ := strings.Cut(session, ":")
	return rest
}

func (t *talks) wants(role, route string, localOnly bool) models.Use {
	return models.Use{Role: role, Route: route, LocalOnly: localOnly, Who: "chat"}
}

// deliver is where a granted patch of a job goes (spec/chat §1).
func (t *talks) deliver(j conversation.Job) approval.Deliver {
	if j.Repository.URL != "" {
		return approval.PullRequest
	}
	at := approval.Branch
	if j.Channel == channel.Terminal && t.here != nil && t.here.Path == j.Repository.Path {
		at = approval.Worktree
	}
	if set := approval.Deliver(t.cfg.Chat.Deliver); set != "" && set != approval.PullRequest {
		at = set
	}
	return at
}

// live calls f for each job of a conversation that has not ended and that want takes, the
// oldest first.
func (t *talks) live(ctx context.Context, want func(contextstore.Row) bool, f func(v contextstore.View, o order.Chat) error) error {
	var all []contextstore.View
	if err := t.store.Live(ctx, func(r contextstore.Row) error {
		if r.Key.Type != "chat" || !want(r) {
			return nil
		}
		v, err := t.store.View(r.UUID)
		if err == nil {
			all = append(all, v)
		}
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b contextstore.View) int { return a.Metadata.CreatedAt.Compare(b.Metadata.CreatedAt.Time) })
	for _, v := range all {
		o, err := order.Parse(v.Metadata)
		if err != nil || o.Chat == nil {
			continue
		}
		if err := f(v, *o.Chat); err != nil {
			return err
		}
	}
	return nil
}

// ofSession calls f for each job of a session that has not ended, the oldest first.
func (t *talks) ofSession(ctx context.Context, session string, f func(v contextstore.View, o order.Chat) error) error {
	ofChannel := func(r contextstore.Row) bool { return strings.HasPrefix(session, r.Key.Source+":") }
	return t.live(ctx, ofChannel, func(v contextstore.View, o order.Chat) error {
		if o.Session != session {
			return nil
		}
		return f(v, o)
	})
}

// List implements conversation.Jobs.
func (t *talks) List(ctx context.Context, session string) (all []conversation.Running, err error) {
	err = t.ofSession(ctx, session, func(v contextstore.View, o order.Chat) error {
		state := t.status(v)
		switch here := t.works(v.Metadata.UUID); {
		case v.Status() != task.Running || !v.Held && !here:
		case here:
			state += ": " + job.Stage(v, t.lang)
		default:
			state += ": " + t.standingOf(v)
		}
		all = append(all, conversation.Running{ID: o.Job, Title: o.Title, Route: routing.Route(o.Route), State: state, Waits: v.Status() == task.AwaitingApproval, Since: v.Metadata.CreatedAt.Time, ReplyTo: o.ReplyTo})
		return nil
	})
	if err != nil {
		return nil, err
	}
	runs, err := t.followed(ctx, session)
	for _, v := range runs {
		if m := v.Metadata; !v.Status().Final() {
			all = append(all, conversation.Running{ID: contextstore.Short(m.UUID), Title: order.Ref(m.TaskKey) + " " + m.Title, State: t.status(v), Waits: v.Status() == task.AwaitingApproval, Since: m.CreatedAt.Time})
		}
	}
	return all, err
}

// Stop implements conversation.Jobs.
func (t *talks) Stop(ctx context.Context, session, id, by string) error {
	found := false
	err := t.ofSession(ctx, session, func(v contextstore.View, o order.Chat) error {
		if o.Job != id {
			return nil
		}
		found = true
		_, err := t.store.Control(ctx, v.Metadata.UUID, contextstore.Stop, by)
		return err
	})
	if err == nil && !found {
		found, err = t.stopRun(ctx, session, id, by)
	}
	if err == nil && !found {
		err = approval.UnknownJob(id)
	}
	return err
}

// Decide implements conversation.Approvals.
func (t *talks) Decide(ctx context.Context, m channel.Message, d channel.Decision) (channel.Approval, error) {
	if !approval.IsJob(d.Job) { // the runs of others are nobody's to guess at
		return channel.Approval{}, approval.UnknownJob(d.Job)
	}
	session := m.SessionID
	t.speaks(session)
	if err := t.settle(ctx); err != nil { // whose time is over is denied, and told of that, before somebody comes too late
		t.log.Warn("What follows from decisions is done later: " + err.Error())
	}
	kind, _, _ := strings.Cut(session, ":")
	by, permitted, err := t.permitted(ctx, m.User, d.Job)
	if err != nil {
		return channel.Approval{}, err
	}
	j, err := t.approvals.Decide(ctx, approval.Decision{Job: d.Job, Hash: d.Hash, Grant: d.Grant, By: by, How: "channel", Where: kind, Message: m.ID, Reason: d.Reason, Permitted: permitted})
	var other *approval.OtherHashError
	if errors.As(err, &other) {
		t.requestAgain(ctx, session, other.Job)
	}
	if err != nil {
		return channel.Approval{}, err
	}
	if j.Session == "" { // of a run of a forge, of which tellThreads tells
		j.Session = session
	}
	t.event(ctx, j.Session, j)
	t.engine.Decided(j.Session, j.Job)
	if j.Session != session { // the people who asked for it are told, too
		to := t.toPeopleOf(j)
		to.decided(ctx, j.Session, j, to.lang.T("conversation.decided_"+string(j.State.Status), j.Title, j.Job), "decided")
	}
	return t.approvals.Request(t.lang, j)
}

// Told implements conversation.Approvals.
func (t *talks) Told(ctx context.Context, job string) {
	j, err := t.approvals.Find(ctx, job, contextstore.Viewer{Admin: true})
	if err == nil && j.Session != "" && j.State.Status.Approved() {
		t.progress(order.Chat{Session: j.Session, Job: j.Job, Title: j.Title}, t.lang.T("job.applying"))
		t.follow(j.Session, j.Job)
	}
	t.wake()
}

// Auto implements conversation.Approvals.
func (t *talks) Auto(ctx context.Context, session, user string, a routing.AutoApprove) (string, error) {
	if a.Off {
		n, err := t.approvals.Off(ctx, session, user)
		return t.lang.T("app.auto_off", n), err
	}
	var args []string
	for name, list := range map[string][]string{"scope": a.Paths, "types": a.Types, "tools": a.Tools} {
		if len(list) > 0 {
			args = append(args, name+"="+strings.Join(list, ","))
		}
	}
	if a.TTL > 0 {
		args = append(args, "ttl="+a.TTL.String())
	}
	r, err := approval.ParseAuto(strings.Join(args, " "), t.approvals.Settings.Auto)
	if err != nil {
		return "", err
	}
	kind, _, _ := strings.Cut(session, ":")
	g, err := t.approvals.Allow(ctx, session, user, kind, r, rand.Reader)
	if err != nil {
		return "", err
	}
	return t.lang.T("app.auto_on", g.Until.In(time.Local).Format("15:04"), strings.Join(g.Paths, ", "), fmt.Sprint(g.Types), strings.Join(g.Tools, ", ")), nil
}

// work works on one claimed job.
func (t *talks) work(ctx context.Context, c *contextstore.Context) (agent.Report, error) {
	o, err := order.Parse(c.Metadata())
	if err == nil && o.Chat == nil {
		err = i18n.E("job.no_chat", c.UUID())
	}
	if err != nil {
		return agent.Report{UUID: c.UUID()}, errors.Join(err, c.Close())
	}
	t = t.to(*o.Chat)
	log := t.log.With("uuid", c.UUID(), "job_id", o.Chat.Job)
	var client llm.Client // what was proposed is applied without one
	var spec models.Spec
	var made *approval.Job
	if proposed, err := approval.Read(c.Dir()); err == nil {
		made = &proposed
	}
	theirs, done, unknown := t.forRun(ctx, c.Metadata())
	if unknown == nil {
		defer done()
		with := *t
		with.system, t = theirs, &with
	}
	plan, local := planned(t.cfg), o.LocalOnly || t.engine.LocalOnly(o.Chat.Session)
	if made != nil && local {
		plan = nil // what was proposed is put to people, whoever was to judge it
	}
	if made != nil && made.State.Status.Approved() && made.State.Decided.Before(t.since) { // whoever showed that is gone
		t.progress(*o.Chat, t.lang.T("job.applying"))
	}
	if job.AsksModel(plan, o, made) {
		if err = unknown; err == nil {
			client, spec, err = t.models.Client(ctx, t.wants(o.Role, o.Chat.Route, local))
		}
	}
	if err != nil {
		end := task.Outcome{Status: task.Failed, Reason: t.lang.Error(err)}
		err = c.Transition(context.WithoutCancel(ctx), end)
		t.tell(ctx, standing{order: *o.Chat, status: end.Status, reason: end.Reason})
		return agent.Report{UUID: c.UUID(), Outcome: end}, err
	}
	cfg := t.cfg
	r := &job.Runner{Store: t.store, Client: client, Approvals: t.approvals, Log: log, Now: t.env.Now, Lang: t.lang, ForgeLang: i18n.Lang(cfg.Language),
		Planning: plan, Inheritance: t.inheritance(), Strict: t.redact.Strict().String,
		Window: int(float64(spec.Context) * cfg.ContextStorage.WindowRatio), Memory: t.memory(&spec),
		Budget: budget(cfg, &spec), Days: dayLimits(cfg), Filter: t.redact.Writer, Box: workspace.Box{Shell: t.shell, MemoryMB: cfg.Sandbox.MemoryMB}, Shell: t.shell,
		Spec:    sandbox.Spec{ReadOnly: cfg.Sandbox.ReadOnlyPaths, Env: cfg.Sandbox.Env, MemoryMB: cfg.Sandbox.MemoryMB, Usage: &sandbox.SharedUsage{}},
		Network: t.network(), Project: work(cfg).Settings, Scripted: spec.Provider == script.Provider, Delivery: t.deliveryIn(t.shell),
		Progress: func(o order.Chat, text string) { t.progress(o, text) },
		Branch: func(ctx context.Context, src *workspace.Source, m contextstore.Metadata) (string, error) {
			return workspace.FreeBranch(ctx, src, workspace.BranchName(cfg.Workspace.BranchPattern, m.TaskKey.ID, m.Title))
		}}
	res, err := r.Execute(ctx, c)
	if res.Application.Begun { // whoever proposed it, a worker's hands did it (spec/chat §2)
		log.Info(res.Application.Outcome(i18n.English), "alias", t.engine.Alias(ctx, models.Worker))
	}
	if err == nil && ctx.Err() == nil {
		t.tell(ctx, standing{res.Order, res.Job, res.Outcome.Status, res.Outcome.Reason, res.Err})
		if derr := t.outbox().Deliver(ctx, c.UUID()); derr != nil {
			log.Warn("Not delivered yet: " + derr.Error())
			t.wake()
		}
	}
	return res.Report, err
}

// progress shows how far a job is; "" says that nothing is going on any more.
func (t *talks) progress(o order.Chat, text string) {
	if text != "" && o.Title != "" {
		text = t.lang.T("job.stands", text, o.Title)
	}
	t.goesSo(context.Background(), o.Session, o.Job, text)
}

// tellWaiting shows what waits for a decision in some channels, as far as a session was not
// told of it before the process that should have ended.
func (t *talks) tellWaiting(ctx context.Context, kinds ...channel.Kind) {
	all, err := t.approvals.Waiting(ctx, contextstore.Viewer{Admin: true})
	if err != nil && ctx.Err() == nil {
		t.log.Error("What waits for a decision: " + err.Error())
	}
	for _, j := range all {
		if kind, _, _ := strings.Cut(j.Session, ":"); slices.Contains(kinds, channel.Kind(kind)) {
			t.toPeopleOf(j).request(ctx, j.Session, j)
		}
	}
}

// request asks the people of a session for a decision, once.
func (t *talks) request(ctx context.Context, session string, j approval.Job) {
	t.postAs(ctx, session, j, channel.Request, "", requestKey(j))
}

// requestAgain shows the request to people who decided about another one, whether or not
// they saw it already.
func (t *talks) requestAgain(ctx context.Context, session string, j approval.Job) {
	key := requestKey(j)
	if said, err := t.engine.Said(session, key); err == nil && said {
		key = ""
	}
	t.postAs(ctx, session, j, channel.Request, "", key)
}

// requestKey is that of the post that asks for a decision about a proposal as it is now.
func requestKey(j approval.Job) string { return j.Job + "/" + j.Short() }

// decided tells a session what became of a proposal.
func (t *talks) decided(ctx context.Context, session string, j approval.Job, text, what string) {
	t.postAs(ctx, session, j, channel.Decided, text, j.Job+"/"+what)
}

func (t *talks) postAs(ctx context.Context, session string, j approval.Job, kind channel.PostKind, text, key string) {
	a, err := t.approvals.Request(t.lang, j)
	if err == nil {
		if text == "" {
			text = approval.Markdown(t.lang, a, "/approve", "/deny")
		}
		err = t.engine.Post(ctx, channel.Post{SessionID: session, Key: key, Kind: kind, Text: text, Job: j.Job, Approval: &a})
	}
	if err != nil && ctx.Err() == nil {
		t.log.Error("A session is not told of a job: "+err.Error(), "job_id", j.Job)
	}
}

// approvalEvent is the line of an approval.requested, granted, denied or auto_approved
// (route §7.3).
type approvalEvent struct {
	Event     string     `json:"event"`
	At        time.Time  `json:"at"`
	Session   string     `json:"session_id"`
	Job       string     `json:"job_id"`
	Status    string     `json:"approval_status"`
	Requested time.Time  `json:"approval_requested_at"`
	Decided   *time.Time `json:"approval_decided_at"`
	Approver  *string    `json:"approver"`
	Reason    *string    `json:"reason"`
	Output    string     `json:"coder_output"`
}

// event tells how a job stands.
func (t *talks) event(ctx context.Context, session string, j approval.Job) {
	s := j.State
	e := approvalEvent{Event: "approval." + string(s.Status), At: t.env.Now().UTC(), Session: session, Job: j.Job, Status: string(s.Status), Requested: s.Requested, Output: strings.Join(j.Summary, " / ")}
	if s.Status == approval.Pending {
		e.Event = "approval.requested"
	}
	if !s.Decided.IsZero() {
		e.Decided = &s.Decided
	}
	if s.Approver != "" {
		e.Approver = &s.Approver
	}
	if s.Reason != "" {
		e.Reason = &s.Reason
	}
	t.engine.Event(ctx, session, e)
}
