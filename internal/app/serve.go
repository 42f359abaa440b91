package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"toritsugi/internal/agent"
	"toritsugi/internal/channel"
	"toritsugi/internal/channel/inbox"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/delivery"
	"toritsugi/internal/dialogue"
	"toritsugi/internal/disk"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/order"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
	"toritsugi/internal/web"
)

// ServeOptions are what tori serve is asked for.
type ServeOptions struct {
	BaseDir, Config  string
	Role             string // whose model works; "" is task
	Model            string // PROVIDER/MODEL
	Script           string
	LocalOnly        bool
	AllowUnsandboxed bool
	Quiet            bool
	// Worker works on what others took up, and is at no door (tori worker).
	Worker bool
	// Listen is the address of a worker's pages, "" for none.
	Listen string
	// Once looks at the forges once, works until nothing is left to do, and returns.
	Once bool
	// Event is a file with an event of a CI job: only the item that it is about is looked at, with Once.
	Event string
	// Ended is called with how each execution of a run on a forge ended, from any goroutine; nil for nobody.
	Ended func(agent.Report)
}

// ServeStarted is what a daemon is when it begins to work.
type ServeStarted struct {
	Sources  []string // of tasks
	Patterns []string // of repositories, and the folder
	Listen   string   // address that it answers at, "" for none
}

// shutdownTime is how long a daemon may take to put down what it works on.
const shutdownTime = 25 * time.Second

// daemon is a system that works for as long as it is let.
type daemon struct {
	*system
	watches    []*dispatch.Watch
	event      string             // file of the event that is worked on; "" for all that is watched
	ended      func(agent.Report) // may be nil
	sources    map[string]bool
	shell      func(sandbox.Spec) (sandbox.Runner, error)
	mailbox    *dispatch.Mailbox
	stats      *dispatch.Stats
	pool       *dispatch.Pool
	deliverer  *dispatch.Deliverer
	intake     *dispatch.Intake
	monitor    *dispatch.Monitor
	talks      *talks // answers messages, and works on what came of them
	endTalks   func()
	inbox      *inbox.Inbox // of channels and webhooks; nil without any
	guard      *guard
	members    []member
	callers    []*caller        // forges whose webhooks are taken
	secretLost channel.Throttle // for complaints that a secret of webhooks cannot be read
	pages      *web.Proposals   // of diffs; nil without serve.public_url or channels
	alarms     *alarms
	sums       atomic.Pointer[figures] // of all runs, nil before they were measured
	down       atomic.Pointer[[]alert] // models that could not be called when they were last asked for
	worker     bool
	listenAt   string
	aside      atomic.Bool // another process is at the doors
}

// Serve takes work from the forges and channels that are set up until ctx ends. started
// is called when it begins.
func Serve(ctx context.Context, env Env, opt ServeOptions, started func(ServeStarted)) error {
	return serve(ctx, env, opt, channels, started)
}

// serve is Serve with the members that open makes.
func serve(ctx context.Context, env Env, opt ServeOptions, open opener, started func(ServeStarted)) error {
	d := newDaemon(env, opt)
	if err := d.prepareDaemon(ctx); errors.Is(err, database.ErrUnreachable) {
		return err // to be started again may help
	} else if err != nil {
		return &ConfigError{err}
	}
	defer func() { _ = d.models.Close() }()
	defer func() { _ = d.store.Close() }()
	defer d.endTalks()
	if d.queue == nil || opt.Once {
		alone, err := d.store.Alone("serve")
		if err != nil {
			return &ConfigError{err}
		}
		defer alone.Release()
	} else {
		d.aside.Store(true)
	}
	d.fillTexts()
	if d.event == "" && !d.worker {
		if err := d.openChannels(ctx, open); err != nil {
			return &ConfigError{err}
		}
	}
	if d.inbox != nil {
		defer d.inbox.Close()
	}
	ctx, traced, err := d.trace(ctx)
	if err != nil {
		return &ConfigError{err}
	}
	defer traced()
	if opt.Once {
		started(d.started(""))
		return d.once(ctx)
	}
	l, err := d.listen(ctx)
	if err != nil {
		return &ConfigError{err}
	}
	at := ""
	if l != nil {
		at = l.Addr().String()
	}
	started(d.started(at))
	return d.serve(ctx, l)
}

func newDaemon(env Env, opt ServeOptions) *daemon {
	s := &system{env: env, fs: &disk.FS{}, opt: RunOptions{BaseDir: opt.BaseDir, Config: opt.Config, Role: opt.Role, Model: opt.Model, Script: opt.Script,
		LocalOnly: opt.LocalOnly, AllowUnsandboxed: opt.AllowUnsandboxed, Quiet: opt.Quiet}}
	d := &daemon{system: s, event: opt.Event, ended: opt.Ended, sources: map[string]bool{}, mailbox: &dispatch.Mailbox{Now: env.Now}, stats: &dispatch.Stats{}, worker: opt.Worker, listenAt: opt.Listen}
	s.rounds = d.rounds
	return d
}

// prepareDaemon makes everything that the daemon is made of, or says which
// setting keeps it from working.
func (d *daemon) prepareDaemon(ctx context.Context) (err error) {
	s := d.system
	if err = s.settle(); err != nil {
		return err
	}
	s.log.Info(s.cfg.InForce().Error())
	if !s.cfg.ContextStorage.Enabled {
		return i18n.E("app.serve_storage")
	}
	if d.worker && s.cfg.Queue.Driver == "local" {
		return i18n.E("app.worker_alone")
	}
	if err := d.openWatches(ctx); err != nil {
		return err
	}
	if err := s.openModels(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.models.Close()
		}
	}()
	var spec models.Spec
	if len(d.watches) > 0 {
		if _, spec, err = s.client(ctx, "tori serve"); err != nil {
			return err
		}
	}
	if d.shell, err = s.shell(ctx); err != nil {
		return err
	}
	if _, err := s.commands(); err != nil {
		return err
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	for _, watch := range d.watches {
		watch.Config = s.ofModel(spec)
	}
	if d.talks, d.endTalks, err = s.talk(ctx, nil); err != nil {
		_ = s.store.Close()
		return err
	}
	d.assemble()
	return nil
}

// openWatches makes the forges that the settings name, and the watches of them.
func (d *daemon) openWatches(ctx context.Context) error {
	if err := d.openHosts(ctx); err != nil {
		return err
	}
	if d.event != "" {
		return d.watchEvent()
	}
	chats := len(d.cfg.Chat.Repositories) > 0 || len(kinds(d.cfg)) > 0
	if len(d.hosts) == 0 && !chats {
		return i18n.E("app.no_door")
	}
	for _, source := range slices.Sorted(maps.Keys(d.hosts)) {
		watch := d.watch(d.hosts[source])
		if len(watch.Patterns) == 0 {
			if !chats && d.cfg.IsSet(source) {
				return i18n.E("app.no_repositories", source)
			}
			continue // a token of the environment alone asks for no work there
		}
		d.sources[source] = true
		d.watches = append(d.watches, watch)
	}
	if len(d.watches) == 0 && !chats {
		return i18n.E("app.no_repositories", slices.Min(slices.Collect(maps.Keys(d.hosts))))
	}
	for _, source := range chatSources() {
		d.sources[source] = true
	}
	return nil
}

// watch is how a forge, or the folder, is watched.
func (s *system) watch(h *delivery.Host) *dispatch.Watch {
	w := &dispatch.Watch{Host: h, Label: h.Labels.Trigger, StopRemoved: s.cfg.TaskStop.Enabled}
	if f, is := s.cfg.Forge(h.Source()); is {
		w.Patterns, w.Assignment, w.FollowUp, w.MaxPerHour = f.Repositories, f.Assignment, f.FollowUp, f.MaxRunsPerHour
	} else {
		w.Patterns, w.MaxPerHour = []string{s.folder.Repo().String()}, math.MaxInt
	}
	if s.users != nil {
		w.Settings = func(ctx context.Context, login string) contextstore.MetadataConfig {
			return s.metadataOf(ctx, h.Source(), login, s.use("tori serve"), w.Config)
		}
	}
	return w
}

// ofModel are the settings of a run that a model works on.
func (s *system) ofModel(spec models.Spec) contextstore.MetadataConfig {
	c := s.cfg.ContextStorage
	return contextstore.MetadataConfig{Provider: spec.Provider, Model: spec.Model, ContextLength: spec.Context, CompressionThreshold: c.CompressionThreshold, MaxMemoryMessages: c.MaxMemoryMessages}
}

// assemble puts the engines together.
func (d *daemon) assemble() {
	s, cfg := d.system, d.cfg
	watches := map[string]*dispatch.Watch{}
	for _, watch := range d.watches {
		watches[watch.Host.Source()] = watch
		watch.StayPaused = s.delivery().StayPaused
	}
	var woken dispatch.Queue
	if d.queue != nil {
		woken, d.mailbox.House, d.mailbox.Log = d.queue, s.store, s.log
	}
	d.pool, d.deliverer, d.monitor = d.talks.engines(d.sources, woken, watches, d.stats, d.work)
	if d.queue != nil {
		d.deliverer.Here = func(uuid string) bool { return !d.aside.Load() || disk.Exists(s.store.WorkspaceDir(uuid)) }
	}
	d.monitor.Permitted = s.delivery().Permitted
	d.monitor.Overdue = func(ctx context.Context, v contextstore.View) (bool, error) {
		return dialogue.AnswerOverdue(ctx, s.store, s.env.Now(), v)
	}
	d.monitor.Renewed = func(ctx context.Context, v contextstore.View) (bool, error) {
		l, err := s.daysOf(ctx, v.Metadata)
		if err != nil {
			return false, err
		}
		return s.store.DayOver(ctx, v.Metadata.UUID, l)
	}
	d.monitor.Left = func(v contextstore.View) {
		s.log.Warn("The owner of a run died; tori run --resume goes on with it", "uuid", v.Metadata.UUID, "task", v.Metadata.TaskKey.String())
	}
	d.monitor.GaveUp = d.talks.gaveUp
	d.alarms = &alarms{store: s.store, now: s.env.Now, wrong: d.wrong, ways: append([]teller{{name: "chat", once: true, tell: d.notify}}, s.outside()...), lang: d.talks.lang, mask: s.redact.Strict().String, log: s.log}
	d.intake = &dispatch.Intake{Store: s.store, Approvals: d.talks.approvals, Watches: d.watches, Mailbox: d.mailbox, Lang: i18n.Lang(cfg.Language), Log: s.log, Now: s.env.Now, Wake: d.talks.wake, Stats: d.stats, Called: d.queue != nil,
		Interval: time.Duration(cfg.Scheduling.Interval) * time.Second, CommentsEvery: time.Duration(cfg.Scheduling.CommentsInterval) * time.Second}
}

func (d *daemon) started(at string) ServeStarted {
	st := ServeStarted{Listen: at}
	for _, watch := range d.watches {
		st.Sources = append(st.Sources, watch.Host.Source())
		if watch.Host.Repository != "" {
			st.Patterns = append(st.Patterns, d.cfg.Folder.Path)
			continue
		}
		st.Patterns = append(st.Patterns, watch.Patterns...)
	}
	if d.event != "" {
		st.Patterns[0] += d.watches[0].Only.Number()
		return st
	}
	if all := d.cfg.Chat.Repositories; len(all) > 0 {
		st.Sources = append(st.Sources, "chat")
		for _, r := range all {
			st.Patterns = append(st.Patterns, r.Name)
		}
	}
	for _, k := range kinds(d.cfg) {
		st.Sources = append(st.Sources, string(k))
	}
	return st
}

// work works on one claimed run with a system of its own.
func (d *daemon) work(ctx context.Context, c *contextstore.Context) (agent.Report, error) {
	one := *d.system
	one.log = d.log.With("uuid", c.UUID())
	one.audit("claim", c.UUID(), "")
	if err := d.talks.adopt(ctx, c.Metadata()); err != nil {
		one.log.Error(err.Error())
	}
	if c.Metadata().TaskKey.Type == "chat" {
		return d.talks.work(ctx, c)
	}
	theirs, done, err := one.forRun(ctx, c.Metadata())
	var client llm.Client
	var spec models.Spec
	if err == nil {
		defer done()
		client, spec, err = theirs.models.Client(ctx, theirs.use("tori serve "+contextstore.Short(c.UUID())))
	}
	if err != nil {
		// It is no fault of the run: it waits until the model is there.
		one.log.Error("No model for the run: " + d.env.Lang.Error(err))
		o := task.Outcome{Status: task.Queued, Reason: err.Error()}
		if werr := one.delivery().Waiting(ctx, c, i18n.Lang(d.cfg.Language).Error(err)); werr != nil {
			one.log.Warn("Why the run waits is not told: " + werr.Error())
		}
		return agent.Report{UUID: c.UUID(), Outcome: o}, c.Transition(context.WithoutCancel(ctx), o)
	}
	a := theirs.agent(client, &spec, c.Metadata().TaskKey, d.shell)
	a.Dialogue.Signals = d.mailbox.Take
	report, err := a.Execute(ctx, c)
	if d.ended != nil && err == nil {
		d.ended(report)
	}
	if err == nil && report.Outcome.Status.Final() {
		// What somebody waits for goes out first; what fails of it, the deliverer tries again.
		if d.deliverer.Outbox.Deliver(ctx, report.UUID) != nil {
			d.deliverer.Wake()
		}
		d.later(ctx, report.UUID, a.Summarise)
	}
	return report, err
}

// serves reports whether a run is one that is looked after here.
func (d *daemon) serves(m contextstore.Metadata) bool {
	return d.sources[m.TaskKey.Source] && !order.ByHand(m)
}

// later delivers what a run owes and nobody waits for. Where the process ends
// meanwhile, the next one does.
func (d *daemon) later(ctx context.Context, uuid string, h delivery.Handler) {
	if err := d.deliverer.Outbox.DeliverLater(ctx, uuid, h); err != nil && ctx.Err() == nil && !errors.Is(err, contextstore.ErrDelivering) {
		d.log.Warn("No final summary by a model yet: "+err.Error(), "uuid", uuid)
	}
}

// owed delivers, one after the other, what runs owe and nobody waits for, whose
// process ended before it was done.
func (d *daemon) owed(ctx context.Context) {
	all, err := d.store.WithUndelivered(ctx)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("outbox: " + err.Error())
	}
	for _, uuid := range all {
		if m, err := d.store.Metadata(uuid); err == nil && d.serves(m) && ctx.Err() == nil {
			d.later(ctx, uuid, d.summarise)
		}
	}
}

// once does all there is to do and returns.
func (d *daemon) once(ctx context.Context) error {
	if err := d.signalled(ctx); err != nil {
		return err
	}
	if err := d.monitor.Look(ctx); err != nil {
		return err
	}
	var all error
	if d.event != "" {
		all = d.intake.Look(ctx, d.watches[0])
	} else {
		all = d.intake.PollAll(ctx, true)
	}
	working, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { d.pool.Run(working) })
	heard, offered := d.env.Now(), time.Time{}
	for idle := 0; idle < 2 && ctx.Err() == nil; {
		d.deliverer.Sweep(ctx)
		if d.queue != nil && d.env.Now().Sub(offered) >= missedEvery { // nobody may be at the doors
			all = errors.Join(all, d.pool.OfferMissed(ctx))
			offered = d.env.Now()
		}
		if d.pool.Busy() > 0 && d.env.Now().Sub(heard) >= d.intake.CommentsEvery {
			if err := d.intake.PollAll(ctx, false); err != nil {
				d.log.Warn("Cannot hear what is said: " + err.Error())
			}
			heard = d.env.Now()
		}
		waiting := false
		if err := d.store.Live(ctx, func(r contextstore.Row) error {
			if r.Status == task.Queued && !waiting && !d.pool.Waits(r.UUID) {
				m, err := d.store.Metadata(r.UUID)
				waiting = err == nil && d.serves(m)
			}
			return nil
		}); err != nil && ctx.Err() == nil {
			all = errors.Join(all, err)
		}
		d.talks.tellThreads(ctx)
		if idle++; waiting || d.pool.Busy() > 0 {
			idle = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(onceLook):
		}
	}
	stop()
	d.pooled(done.Wait)
	if ctx.Err() != nil { // what is owed, the next start delivers
		return all
	}
	d.deliverer.Sweep(ctx)
	d.talks.tellThreads(ctx)
	d.owed(ctx)
	d.clean(ctx)
	owing := 0
	uuids, err := d.store.WithUndelivered(ctx)
	for _, uuid := range uuids {
		if m, merr := d.store.Metadata(uuid); merr != nil || d.serves(m) {
			owing++
		}
	}
	if err == nil && owing > 0 {
		err = &UndeliveredError{i18n.E("app.once_owes", owing)}
	}
	return errors.Join(all, err)
}

// UndeliveredError says that everything is done that can be, and not all of it could be
// delivered.
type UndeliveredError struct{ error }

func (e *UndeliveredError) Unwrap() error { return e.error }

// pooled waits until the pool has put down what it works on, for as long as that
// may take.
func (d *daemon) pooled(wait func()) {
	ended := make(chan struct{})
	go func() { wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(shutdownTime):
		d.log.Error("Not all runs ended in time; the next start takes them up", "runs", d.pool.Busy())
	}
}

const onceLook = 50 * time.Millisecond

// serve runs the engines until ctx ends; what is worked on then goes back into
// the queue.
func (d *daemon) serve(ctx context.Context, l net.Listener) error {
	var engines sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := d.signalled(ctx); err != nil { // before anything is begun
		d.log.Error("pause_resume.signal_file: " + err.Error())
	}
	both := []func(context.Context){d.deliverer.Run, d.pauses, d.cleaning}
	if d.queue == nil {
		both = append(append(both, d.monitor.Run, d.nightly), d.atDoors()...)
	} else {
		both = append(both, d.room)
	}
	for _, run := range both {
		engines.Go(func() { run(ctx) })
	}
	var failed error
	if l != nil {
		engines.Go(func() {
			if err := web.Serve(ctx, l, web.New(d, d.hooks(), d.cfg.Serve.Names()...)); err != nil {
				failed = fmt.Errorf("serve %s: %w", l.Addr(), err)
				stop()
			}
		})
	}
	var pool sync.WaitGroup
	pool.Go(func() { d.pool.Run(ctx) })
	switch {
	case d.queue == nil:
		pool.Go(func() { d.speak(ctx) })
	case !d.worker:
		pool.Go(func() {
			if err := d.lead(ctx); err != nil {
				failed = err
				stop()
			}
		})
	}
	<-ctx.Done()
	d.pooled(pool.Wait)
	engines.Wait()
	return failed
}

// atDoors is what is done by the one process that is at the doors.
func (d *daemon) atDoors() []func(context.Context) {
	return []func(context.Context){d.intake.Run, d.owed, d.talks.threads, d.measuring, d.alarms.run, d.digests, d.store.FillIndex}
}

// room looks at the disk of a process that is at no door until ctx ends; who is at them does so as it
// looks after the runs.
func (d *daemon) room(ctx context.Context) {
	look := func(context.Context) {
		if d.aside.Load() {
			d.monitor.Room()
		}
	}
	look(ctx)
	every(ctx, d.monitor.Every, look)
}

// cleanEvery is how often a daemon removes what the settings no longer keep.
const cleanEvery = time.Hour

func (d *daemon) cleaning(ctx context.Context) {
	d.clean(ctx)
	every(ctx, cleanEvery, d.clean)
}

// every calls f after each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f(ctx)
		}
	}
}

func (d *daemon) listen(ctx context.Context) (net.Listener, error) {
	at := d.cfg.Serve.Listen
	if d.worker {
		at = d.listenAt
	}
	if at == "" {
		return nil, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, i18n.E("app.listen", at, err)
	}
	return l, nil
}
