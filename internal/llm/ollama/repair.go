package ollama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// mend repairs the server if, once nobody else on the machine is at it, it
// still needs it. A warm-up comes before a restart wherever the server answers:
// a restart would take every other model and every answer under way with it.
// Its error says why the server is still broken; it has been told to OnEvent.
func (c *Supervisor) mend(ctx context.Context) (Health, error) {
	unlock, err := c.book.lock(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return c.Snapshot(), ctx.Err()
		}
		err = i18n.E("ollama.state", c.cfg.Dir, err)
		c.event(Event{Kind: EventGaveUp, Err: err})
		return c.Snapshot(), err
	}
	defer unlock()
	h, err := c.confirm(ctx)
	if err != nil || !h.faulty() { // another one mended it meanwhile
		return h, err
	}
	c.event(Event{Kind: EventFault, Err: errors.Join(h.Problems()...)})
	h, err = c.mendAlone(ctx, h)
	if ctx.Err() != nil {
		return h, ctx.Err()
	}
	if err == nil && h.faulty() {
		err = errors.Join(h.Problems()...)
	}
	if saveErr := c.conclude(err); saveErr != nil {
		c.event(Event{Kind: EventFault, Err: i18n.E("ollama.state", c.cfg.Dir, saveErr)})
	}
	if h2, checkErr := c.check(ctx); checkErr == nil { // with what is on record now
		h = h2
	}
	if err != nil {
		c.event(Event{Kind: EventGaveUp, Err: err})
	} else {
		c.event(Event{Kind: EventHealed})
	}
	return h, err
}

func (c *Supervisor) event(e Event) {
	e.Endpoint = c.endpoint
	c.cfg.OnEvent(e)
}

// conclude puts on record how a repair ended.
func (c *Supervisor) conclude(err error) error {
	st, loadErr := c.book.load(c.now())
	if loadErr != nil {
		return loadErr
	}
	if err == nil {
		st.LastError, st.HealedAt = "", c.now().UTC()
		return c.book.save(st)
	}
	words := wire.Short(err.Error())
	if st.LastError == words { // nothing new, and a write for each call that fails
		return nil
	}
	st.LastError = words
	return c.book.save(st)
}

// confirm checks again. A server that is only slow to answer, as on a machine
// whose every core computes, is asked three times before it counts as gone.
func (c *Supervisor) confirm(ctx context.Context) (Health, error) {
	for try := 1; ; try++ {
		h, err := c.check(ctx)
		if err != nil || h.Reachable || try == 3 || !errors.Is(h.why, errSlow) {
			return h, err
		}
	}
}

func (c *Supervisor) mendAlone(ctx context.Context, h Health) (Health, error) {
	if !h.Reachable && len(c.cfg.Restart) > 0 {
		// It may come back by itself, or by its own supervisor.
		if err := c.pause(ctx); err != nil {
			return h, err
		}
		var err error
		if h, err = c.confirm(ctx); err != nil || !h.faulty() {
			return h, err
		}
	}
	if h.Reachable {
		err := c.warmMissing(ctx, h)
		after, checkErr := c.check(ctx)
		if checkErr != nil {
			return h, checkErr
		}
		if !after.faulty() {
			return after, nil
		}
		if err == nil && after.Reachable {
			return after, i18n.E("ollama.does_not_fit", c.names(), c.endpoint)
		}
		if err != nil && !restartHelps(err) || len(c.cfg.Restart) == 0 {
			return after, err
		}
		if err := c.pause(ctx); err != nil {
			return after, err
		}
	}
	if len(c.cfg.Restart) == 0 {
		return h, nil
	}
	return c.restart(ctx)
}

func (c *Supervisor) names() string {
	var all []string
	for _, l := range c.loaders {
		all = append(all, l.model)
	}
	return strings.Join(all, ", ")
}

// restartHelps reports whether a warm-up failed as a broken server makes it
// fail: not for a model that is not there, nor while all is only busy.
func restartHelps(err error) bool {
	var e *llm.Error
	if !errors.As(err, &e) {
		return errors.Is(err, context.DeadlineExceeded)
	}
	switch e.Kind {
	case llm.KindUnreachable, llm.KindTimeout, llm.KindCutStream:
		return true
	case llm.KindServer:
		return e.Status != http.StatusServiceUnavailable && e.Status != 499
	}
	return false
}

// warmMissing loads the models that h misses, within the limit for the window.
func (c *Supervisor) warmMissing(ctx context.Context, h Health) error {
	now := c.now()
	st, err := c.book.load(now)
	if err == nil {
		if len(st.Warmups) >= c.cfg.RestartLimit {
			return errors.Join(h.Problems()...)
		}
		st.Endpoint, st.Warmups = c.endpoint, append(st.Warmups, now.UTC())
		err = c.book.save(st)
	}
	if err != nil {
		return i18n.E("ollama.state", c.cfg.Dir, err)
	}
	return c.warm(ctx, h.missing())
}

// warm loads models by a chat without messages, with the same settings as the
// calls to come. It tries all of them and returns the first failure.
func (c *Supervisor) warm(ctx context.Context, models []int) error {
	var first error
	for _, i := range models {
		l := c.loaders[i]
		err := c.load(ctx, l)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			err = i18n.E("ollama.warmup_failed", l.model, c.endpoint, err)
			if first == nil {
				first = err
			}
		}
		c.event(Event{Kind: EventWarmUp, Model: l.model, Err: err})
	}
	return first
}

func (c *Supervisor) load(ctx context.Context, l *client) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.WarmTimeout)
	defer cancel()
	var answer line
	return c.ask(ctx, "api/chat", append(l.appendOptions(append(l.appendLoad(nil), `,"stream":false,"messages":[]`...), l.maxTokens), '}'), &answer)
}

// pause waits until the next restart may be made, however the last ones were
// made, or fails where none may be.
func (c *Supervisor) pause(ctx context.Context) error {
	now := c.now()
	st, err := c.book.load(now)
	if err != nil {
		return i18n.E("ollama.state", c.cfg.Dir, err)
	}
	n := len(st.Restarts)
	if n >= c.cfg.RestartLimit {
		return i18n.E("ollama.restart_limit", c.endpoint, n, c.cfg.Window.String())
	}
	if n == 0 || len(c.cfg.Waits) == 0 {
		return ctx.Err()
	}
	wait := c.cfg.Waits[min(n, len(c.cfg.Waits)-1)] - now.Sub(slices.MaxFunc(st.Restarts, time.Time.Compare))
	if wait > 0 {
		c.event(Event{Kind: EventWait, Wait: wait})
	}
	return wire.Sleep(ctx, wait)
}

// restart runs the command, waits until the server answers, and warms it up.
// The restart is on record before it is made, so that a crash here counts too.
func (c *Supervisor) restart(ctx context.Context) (Health, error) {
	now := c.now()
	st, err := c.book.load(now)
	if err == nil {
		st.Endpoint, st.Restarts, st.LastRestart = c.endpoint, append(st.Restarts, now.UTC()), now.UTC()
		err = c.book.save(st)
	}
	if err != nil {
		return c.Snapshot(), i18n.E("ollama.state", c.cfg.Dir, err)
	}
	c.event(Event{Kind: EventRestart})
	runErr := c.run(ctx)
	h, err := c.awaitServer(ctx, runErr == nil)
	if err != nil {
		return h, err
	}
	if !h.Reachable {
		return h, runErr // or nil: the health says it
	}
	// Whatever the command said of itself, the server is there.
	if err := c.warm(ctx, h.missing()); err != nil {
		return h, err
	}
	return c.check(ctx)
}

// awaitServer asks until the server answers or the time for its start is over;
// after a failed command it asks once.
func (c *Supervisor) awaitServer(ctx context.Context, patient bool) (Health, error) {
	const poll = 500 * time.Millisecond
	for end := c.now().Add(c.cfg.StartTimeout); ; {
		h, err := c.check(ctx)
		if err != nil || h.Reachable || !patient || !c.now().Before(end) {
			return h, err
		}
		if err := wire.Sleep(ctx, poll); err != nil {
			return h, err
		}
	}
}

// run makes the restart. What the command writes stays in a file beside the
// state: a pipe would be held open by a server that the command leaves running.
func (c *Supervisor) run(ctx context.Context) error {
	path := c.book.path(".log")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, disk.FileMode)
	if err != nil {
		return i18n.E("ollama.state", c.cfg.Dir, err)
	}
	defer func() { _ = out.Close() }() // of no consequence: the command wrote it
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RestartTimeout)
	defer cancel()
	if err := c.cfg.Run(ctx, c.cfg.Restart, out); err != nil {
		return i18n.E("ollama.restart_failed", c.cfg.Restart[0], err, path)
	}
	return nil
}

// Runner runs a program to its end. Its output goes to out.
type Runner func(ctx context.Context, argv []string, out io.Writer) error

// RunCommand is the Runner that starts a process with this program's environment:
// systemctl --user needs some of it. No shell is involved. When ctx ends the process
// is told to, and killed 5 s later.
func RunCommand(ctx context.Context, argv []string, out io.Writer) error {
	if len(argv) == 0 {
		return errors.New("no program is named")
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	// A server that the command starts must not end with a Ctrl-C here.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ended := ctx.Err(); ended != nil && err != nil {
		return fmt.Errorf("%w (%w)", ended, err)
	}
	return err
}
