package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Jobs are the commands of one run that run in the background. They end with
// the run: whoever makes Jobs closes them. It is safe for concurrent use.
type Jobs struct {
	mu     sync.Mutex
	all    []*job // by number, from 1
	closed bool
	done   sync.WaitGroup
}

// NewJobs returns the jobs of a run, which has none yet.
func NewJobs() *Jobs { return new(Jobs) }

// Bounds of the jobs of a run.
const (
	maxRunning = 8
	maxJobs    = 200
)

// job is one command in the background. What is not constant is guarded by the
// lock of Jobs, but for the log.
type job struct {
	number  int
	command string
	seconds int
	stop    context.CancelCauseFunc
	ended   chan struct{} // closed once the command and all it started are gone
	log     *jobLog

	running bool
	end     ending
	err     error
	kept    string // what of the output is kept where, "" for none
	told    bool   // the model knows that it ended
}

// errJobStopped is the cause of the end of a job that was told to end.
var errJobStopped = errors.New("the job was stopped")

// Stop ends every job that runs, waits until all it started is gone, and
// returns how many there were. Their output can still be read.
func (j *Jobs) Stop() int {
	j.mu.Lock()
	var running []*job
	for _, one := range j.all {
		if one.running {
			running = append(running, one)
			one.stop(errJobStopped)
		}
	}
	j.mu.Unlock()
	for _, one := range running {
		<-one.ended
	}
	return len(running)
}

// Close ends every job and waits for it; none can be started after it.
func (j *Jobs) Close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.Stop()
	j.done.Wait()
	for _, one := range j.all {
		one.log.close()
	}
}

// add takes a new job in, or says why there is no place for it.
func (j *Jobs) add(one *job) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	running := 0
	for _, other := range j.all {
		if other.running {
			running++
		}
	}
	switch {
	case j.closed:
		return "The run is ending; no job can be started."
	case running == maxRunning:
		return fmt.Sprintf("%d jobs are running, the most there may be. End one with shell_job first.", maxRunning)
	case len(j.all) == maxJobs:
		return fmt.Sprintf("%d jobs were started, the most of one run. Run the command without background.", maxJobs)
	}
	one.number, one.running = len(j.all)+1, true
	j.all = append(j.all, one)
	j.done.Add(1)
	return ""
}

// finish notes how a job ended.
func (j *Jobs) finish(one *job, e ending, err error, kept string) {
	j.mu.Lock()
	one.running, one.end, one.err, one.kept = false, e, err, kept
	j.mu.Unlock()
	close(one.ended)
	j.done.Done()
}

// ended tells which jobs ended since the model was last told, a line each.
func (j *Jobs) ended() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var b strings.Builder
	for _, one := range j.all {
		if !one.running && !one.told {
			one.told = true
			fmt.Fprintf(&b, "\n[job %d ended: %s]", one.number, one.outcome())
		}
	}
	return clip(b.String(), 800)
}

// outcome says how an ended job ended; the lock is held.
func (o *job) outcome() string {
	if o.err != nil {
		return "it could not be run: " + clip(o.err.Error(), 300)
	}
	return o.end.note(o.seconds)
}

// find returns a job by its number.
func (j *Jobs) find(number int) (*job, string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if number < 1 || number > len(j.all) {
		if len(j.all) == 0 {
			return nil, fmt.Sprintf("There is no job %d: none was started since the run began or went on. Jobs end with the run.", number)
		}
		return nil, fmt.Sprintf("There is no job %d; the last is %d. See shell_job with action list.", number, len(j.all))
	}
	return j.all[number-1], ""
}

// unbroken is limited, and turns a panic into an error as the registry does for
// a call: in a goroutine of its own it would end the whole process.
func (c *commands) unbroken(ctx context.Context, cmd begun, dir string, timeout time.Duration) (e ending, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it crashed: %s", clip(fmt.Sprint(v), 500))
		}
	}()
	return c.limited(ctx, cmd, dir, timeout)
}

// startJob starts a command in the background. It sees the session as it is
// now, and changes nothing in it.
func (c *commands) startJob(ctx context.Context, a shellArgs, dir, note string) Result {
	one := &job{command: a.Command, seconds: cmp.Or(int(a.Timeout), longestJob), ended: make(chan struct{}), log: newJobLog(c.limit, c.spill)}
	// The job outlives the call, but not the run: Close ends it.
	ctx, one.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if problem := c.jobs.add(one); problem != "" {
		one.stop(nil)
		one.log.close()
		return Failf("%s", problem)
	}
	cmd := c.session.begin(a.Command, false, one.log)
	go func() {
		defer one.stop(nil)
		e, err := c.unbroken(ctx, cmd, dir, time.Duration(one.seconds)*time.Second)
		if errors.Is(context.Cause(ctx), errJobStopped) {
			e.stopped, err = true, nil
		}
		c.jobs.finish(one, e, err, one.log.finish())
	}()
	text := fmt.Sprintf("Started job %d. See its output with shell_job {\"id\": %d}.", one.number, one.number)
	if note != "" {
		text += "\n[" + note + "]"
	}
	return Text(text + c.jobs.ended())
}
