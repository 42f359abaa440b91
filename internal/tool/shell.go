package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"time"
)

//go:embed shell.md
var shellPage string

const shellSchema = `{"type":"object","properties":{` +
	`"command":{"type":"string","description":"Script for sh; may have several lines."},` +
	`"timeout_seconds":{"type":"integer","minimum":1,"maximum":600,"description":"Seconds until it is stopped; 120 if not given."},` +
	`"dir":{"type":"string","description":"Directory to run in, relative to the workspace; the workspace if not given."}},` +
	`"required":["command"],"additionalProperties":false}`

type shellArgs struct {
	Command string `json:"command"`
	Timeout number `json:"timeout_seconds"`
	Dir     string `json:"dir"`
}

// Shell runs commands in the sandbox.
type Shell interface {
	// Run runs script with sh in dir, a path with slashes relative to the
	// workspace ("." for itself), and blocks until it and all that it started
	// ended. Both outputs go to out as they come. A command that fails, is
	// killed or takes longer than timeout is a ShellExit; the error is for a
	// command that could not be run, or ctx's where ctx ended.
	Run(ctx context.Context, script, dir string, timeout time.Duration, out io.Writer) (ShellExit, error)
}

// ShellExit is how a command ended.
type ShellExit struct {
	Code     int           // 0 to 255; -1 where it did not exit by itself
	TimedOut bool          // it was stopped at the timeout
	Signal   string        // the signal that killed it, e.g. "SIGKILL"; "" where it exited
	Duration time.Duration // wall time; not shown, so that results can be reproduced
}

const (
	defaultTimeout = 120 // seconds
	maxExitNote    = 300 // more than the line about how a command ended, in bytes
)

func shellTool(w *space, sh Shell, limit Limits, timeout time.Duration) Tool {
	spill := newSpiller(limit)
	return builtin[shellArgs]{
		def: describe("shell", shellPage, shellSchema, false),
		call: func(ctx context.Context, a shellArgs) (Result, error) {
			if strings.TrimSpace(a.Command) == "" {
				return Failf("The command is empty."), nil
			}
			if strings.IndexByte(a.Command, 0) >= 0 {
				return Failf("The command contains a NUL byte."), nil
			}
			shown, problem := w.rel(cmp.Or(a.Dir, "."))
			if problem != "" {
				return Failf("%s", problem), nil
			}
			dir, err := w.resolve(shown)
			if err != nil {
				return Failf("%s", w.explain(shown, err)), nil
			}
			info, err := w.root.Stat(dir)
			if err != nil {
				return Failf("%s", w.explain(dir, err)), nil
			}
			if !info.IsDir() {
				return Failf("dir must be a directory, and %s is a file.", dir), nil
			}
			return runShell(ctx, sh, a.Command, dir, cmp.Or(int(a.Timeout), int(timeout.Seconds()), defaultTimeout), newCapture(limit, spill))
		},
	}
}

func runShell(ctx context.Context, sh Shell, script, dir string, seconds int, c *capture) (res Result, err error) {
	finished := false
	defer func() {
		if !finished {
			c.Discard()
		}
	}()
	exit, err := sh.Run(ctx, script, dir, time.Duration(seconds)*time.Second, c)
	if err != nil {
		return ended(ctx, "The command could not be run: "+err.Error()+".")
	}
	finished = true
	text := c.Finish(c.limit.MaxOutput - maxExitNote)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return Result{Text: text + exitNote(exit, seconds), IsError: exit.Code != 0 || exit.TimedOut || exit.Signal != ""}, nil
}

// exitNote is the last line of a command's result.
func exitNote(e ShellExit, seconds int) string {
	switch {
	case e.TimedOut && seconds < 600:
		return fmt.Sprintf("[timed out: stopped after %d seconds. Give a larger timeout_seconds (at most 600), or run less at once; a server must not run in the foreground]", seconds)
	case e.TimedOut:
		return fmt.Sprintf("[timed out: stopped after %d seconds, the most there is. Run less at once]", seconds)
	case e.Signal == "SIGKILL":
		return "[killed by SIGKILL: maybe it needed more memory than the sandbox has]"
	case e.Signal != "":
		return fmt.Sprintf("[killed by %s]", clip(e.Signal, 40))
	}
	return fmt.Sprintf("[exit code %d]", e.Code)
}
