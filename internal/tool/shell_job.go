package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
)

//go:embed shell_job.md
var shellJobPage string

const shellJobSchema = `{"type":"object","properties":{"id":{"type":"integer","minimum":1},"action":{"type":"string","enum":["output","wait","kill","list"]},` +
	`"offset":{"type":"integer","minimum":0},"wait_seconds":{"$comment":"untold","type":"integer","minimum":1,"maximum":600}},"additionalProperties":false}`

type shellJobArgs struct {
	ID     Number `json:"id"`
	Action string `json:"action"`
	Offset Number `json:"offset"`
	Wait   Number `json:"wait_seconds"`
}

const defaultWait = 60 // seconds

func shellJobTool(c *commands) Tool {
	return builtin[shellJobArgs]{
		def: Describe("shell_job", shellJobPage, shellJobSchema, false, "job", "id", "job_id", "id", "timeout_seconds", "wait_seconds", "timeout", "wait_seconds"),
		call: func(ctx context.Context, a shellJobArgs) (Result, error) {
			if a.Action == "list" {
				return Text(c.jobs.list()), nil
			}
			if a.ID == 0 {
				return Failf("id is missing: give the number of the job. See shell_job with action list."), nil
			}
			one, problem := c.jobs.find(int(a.ID))
			if problem != "" {
				return Failf("%s", problem), nil
			}
			switch a.Action {
			case "wait":
				t := time.NewTimer(time.Duration(cmp.Or(a.Wait, defaultWait)) * time.Second)
				defer t.Stop()
				select {
				case <-one.ended:
				case <-t.C:
				case <-ctx.Done():
					return Result{}, ctx.Err()
				}
			case "kill":
				one.stop(errJobStopped)
				<-one.ended
			}
			return c.jobs.output(one, int64(a.Offset), c.room()), nil
		},
	}
}

// list is a line for each job.
func (j *Jobs) list() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.all) == 0 {
		return "There are no jobs."
	}
	var b strings.Builder
	for _, one := range j.all {
		state := "running"
		if !one.running {
			one.told = true
			state = "ended: " + one.outcome()
		}
		first, _, more := strings.Cut(strings.TrimSpace(one.command), "\n")
		if more {
			first += " ..."
		}
		fmt.Fprintf(&b, "%d\t%s\t%s\n", one.number, state, clip(first, 100))
	}
	return b.String()
}

// output is what a job printed from offset on, in at most most bytes, and how
// it is with it.
func (j *Jobs) output(one *job, offset int64, most int) Result {
	j.mu.Lock()
	running, kept, outcome := one.running, one.kept, ""
	if !running {
		one.told = true
		outcome = one.outcome()
	}
	failed := !running && (one.err != nil || one.end.failed())
	j.mu.Unlock()
	raw, from, total, err := one.log.read(offset, most)
	if err != nil {
		return Failf("The output of job %d cannot be read: %v.", one.number, err)
	}
	text, used := fitHead(raw, most)
	var b strings.Builder
	if from > min(offset, total) {
		fmt.Fprintf(&b, "[bytes %d to %d were not kept]\n", offset, from)
	}
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	state := "running"
	if !running {
		state = "ended: " + outcome
	}
	fmt.Fprintf(&b, "[job %d %s; ", one.number, state)
	next := from + int64(used)
	switch {
	case next < total:
		fmt.Fprintf(&b, "%d of %d bytes are left, continue with offset=%d", total-next, total, next)
	case running:
		fmt.Fprintf(&b, "%d bytes so far, continue with offset=%d", total, next)
	case total == 0:
		b.WriteString("it printed nothing")
	default:
		fmt.Fprintf(&b, "this is the end of %d bytes", total)
	}
	if kept != "" && total > int64(most) {
		fmt.Fprintf(&b, "; recall has it as %s", strings.TrimSuffix(kept, spillExt))
	}
	b.WriteString("]")
	return Result{Text: b.String(), IsError: failed}
}
