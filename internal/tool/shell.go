package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"toritsugi/internal/checks"
	"toritsugi/internal/lazyregexp"
)

//go:embed shell.md
var shellPage string

const shellSchema = `{"type":"object","properties":{"command":{"type":"string","$comment":"argv"},"timeout_seconds":{"type":"integer","minimum":1,"maximum":3600},` +
	`"dir":{"$comment":"untold","type":"string"},"background":{"type":"boolean"}},"required":["command"],"additionalProperties":false}`

type shellArgs struct {
	Command    string `json:"command"`
	Timeout    Number `json:"timeout_seconds"`
	Dir        string `json:"dir"`
	Background bool   `json:"background"`
}

// Shell runs commands in the sandbox.
type Shell interface {
	// Run runs script with sh in dir, a path with slashes relative to the
	// workspace ("." for itself), with input to read, and blocks until it and all that it started
	// ended. Both outputs go to out as they come. A command that fails, is
	// killed or takes longer than timeout is a ShellExit; the error is for a
	// command that could not be run, or ctx's where ctx ended.
	Run(ctx context.Context, script, input, dir string, timeout time.Duration, out io.Writer) (ShellExit, error)
}

// ShellExit is how a command ended.
type ShellExit struct {
	Code     int    // 0 to 255; -1 where it did not exit by itself
	TimedOut bool   // it was stopped at the timeout
	Limit    string // the limit that it was stopped at, in words, e.g. "memory limit of 2 GiB"; "" for none
	Signal   string // the signal that killed it, e.g. "SIGKILL"; "" where it exited
}

const (
	defaultTimeout = 120  // seconds
	longestTimeout = 600  // seconds, in the foreground
	longestJob     = 3600 // seconds
	maxExitNote    = 1500 // more than what follows the output of a command, in bytes
	maxCommand     = 48 << 10
)

// commands is the shell of one run.
type commands struct {
	w       *workspaceFiles
	sh      Shell
	limit   Limits
	timeout time.Duration
	spill   *spiller
	session *session
	jobs    *Jobs
	git     bool // there is the tool git
	judge   func(ctx context.Context, command, dir string) string
	hosts   []string
}

func newCommands(w *workspaceFiles, env Env) *commands {
	return &commands{w: w, sh: env.Shell, limit: env.Limits, timeout: env.ShellTimeout, spill: newSpiller(env.Limits), session: newSession(w), jobs: env.Jobs, git: env.Git != nil, judge: env.Judge, hosts: env.Hosts}
}

// maxHosts is how many hosts a model is told by name.
const maxHosts = 20

// networked is the page where commands may reach hosts.
func networked(page string, hosts []string) string {
	if len(hosts) == 0 {
		return page
	}
	named := strings.Join(hosts[:min(len(hosts), maxHosts)], ", ")
	if more := len(hosts) - maxHosts; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return strings.NewReplacer("No network, no input;", "Network only to "+named+"; no input;", "There is no network even to other commands", "There is no network between commands").Replace(page)
}

func shellTool(c *commands) Tool {
	return builtin[shellArgs]{
		def: Describe("shell", networked(shellPage, c.hosts), shellSchema, false, "cmd", "command", "script", "command", "timeout", "timeout_seconds", "cwd", "dir", "workdir", "dir", "working_directory", "dir",
			"run_in_background", "background", "description", saysNothing),
		call: func(ctx context.Context, a shellArgs) (Result, error) {
			dir, note, problem := c.check(a)
			if problem != "" {
				return Failf("%s", problem), nil
			}
			if c.judge != nil {
				if problem := c.judge(ctx, a.Command, dir); problem != "" {
					return Failf("%s", problem), nil
				}
			}
			if a.Background {
				return c.startJob(ctx, a, dir, note), nil
			}
			return c.run(ctx, a, dir, note)
		},
	}
}

// room is what the output of a command may take of its result, in bytes.
func (c *commands) room() int { return c.limit.MaxOutput - min(maxExitNote, c.limit.MaxOutput/2) }

// check says what is wrong with a call, or where it runs.
func (c *commands) check(a shellArgs) (dir, note, problem string) {
	switch {
	case strings.TrimSpace(a.Command) == "":
		return "", "", "The command is empty."
	case strings.IndexByte(a.Command, 0) >= 0:
		return "", "", "The command contains a NUL byte."
	case len(a.Command) > maxCommand:
		return "", "", fmt.Sprintf("The command has %d bytes, the most is %d. Write it to a file with write_file and run that.", len(a.Command), maxCommand)
	case a.Background && c.jobs == nil:
		return "", "", "There are no background jobs here. Run the command without background."
	}
	if a.Dir == "" {
		dir, gone := c.session.where()
		if gone != "" {
			note = "the directory " + clip(c.w.shown(gone), 300) + " is gone; this command ran in the workspace"
		}
		return dir, note, ""
	}
	dir, problem = c.w.directory(a.Dir)
	return dir, "", problem
}

// run runs a command and waits for it.
func (c *commands) run(ctx context.Context, a shellArgs, dir, note string) (res Result, err error) {
	out := newCapture(c.limit, c.spill)
	out.tests = checks.Against(checks.Set{}, c.w.dirs[0])
	finished := false
	defer func() {
		if !finished {
			out.Discard()
		}
	}()
	seconds := min(cmp.Or(int(a.Timeout), int(c.timeout.Seconds()), defaultTimeout), longestTimeout)
	cmd := c.session.begin(a.Command, true, out)
	e, err := c.limited(ctx, cmd, dir, time.Duration(seconds)*time.Second)
	if err != nil {
		return ended(ctx, "The command could not be run: "+err.Error()+".")
	}
	finished = true
	if !e.failed() {
		out.tests = nil
	}
	text := out.Finish(c.room())
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	note = join(note, c.session.end(cmd.own))
	if e.failed() && gitLocked().MatchString(text) {
		note = join(note, `the data of git is read-only here: to compare with the last commit, use git diff HEAD, or git show HEAD:./P for a file as it was`)
	}
	if e.failed() && noWorkspace().MatchString(text) {
		note = join(note, "the workspace has another name here, and commands begin in it: use relative paths")
	}
	if !e.failed() && c.git && (text == "" || strings.Contains(text, "working tree clean")) && gitCompares().MatchString(a.Command) {
		note = join(note, `git in a shell compares with the last commit, which may hold your change already: git diff with the branch that you began from (git branch lists it) shows all`)
	}
	if e.brokenPipe(a.Command) {
		e.Code, e.Signal = 0, ""
		note = join(note, "a command in the pipe had more to say than was read")
	}
	switch at, gone := c.session.where(); {
	case gone != "":
		note = join(note, "the directory "+clip(c.w.shown(gone), 300)+" is gone; the next command runs in the workspace")
	case at != ".":
		note = join(note, "now in "+clip(c.w.shown(at), 300))
	}
	if a.Timeout > longestTimeout {
		note = join(note, fmt.Sprintf("timeout_seconds %d was too large for a command that is waited for; %d was used", a.Timeout, longestTimeout))
	}
	text += "[" + join(e.note(seconds), note) + "]"
	if c.jobs != nil {
		text += c.jobs.ended()
	}
	return Result{Text: text, IsError: e.failed()}, nil
}

// gitLocked matches what git says where it cannot write its data.
var gitLocked = lazyregexp.New(`(?m)^(?:fatal|error): .*(?:\.lock'?|\.git|object|repository|index|ref).*(?:Read-only file system|Permission denied|insufficient permission)|insufficient permission for adding an object`)

// gitCompares matches a command that asks git what was changed.
var gitCompares = lazyregexp.New(`\bgit\s+(?:-\S+\s+(?:\S+\s+)?)*(?:diff|status)\b`)

// noWorkspace matches what shells and programs say where the tree has no such name.
var noWorkspace = lazyregexp.New(`/workspace(?:/[^\s:'"]*)?['"]?: No such file|can't cd to /workspace|No such file or directory: ['"]/workspace`)

// ending is how a command ended, seen from here.
type ending struct {
	ShellExit
	flooded bool // it was stopped because it printed too much
	stopped bool // a job that was told to end
}

func (e ending) failed() bool {
	return e.flooded || e.stopped || e.Code != 0 || e.TimedOut || e.Limit != "" || e.Signal != ""
}

// brokenPipe reports the end of a pipe of which only a part was read, as by head:
// with pipefail the shell takes the signal that ended the writer for a failure.
func (e ending) brokenPipe(command string) bool {
	return (e.Signal == "SIGPIPE" || e.Code == 128+int(syscall.SIGPIPE)) && strings.Contains(command, "|")
}

// limited runs a script until it ends, or prints more than it may.
func (c *commands) limited(ctx context.Context, cmd begun, dir string, timeout time.Duration) (ending, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &flood{out: cmd.own, left: c.limit.MaxPrint, stop: func() { cancel(errFlood) }}
	exit, err := c.sh.Run(ctx, cmd.script, cmd.input, dir, timeout, f)
	if errors.Is(context.Cause(ctx), errFlood) {
		return ending{ShellExit: exit, flooded: true}, cmd.own.flush()
	}
	return ending{ShellExit: exit}, errors.Join(err, cmd.own.flush())
}

// errFlood is the cause of the end of a command that printed too much.
var errFlood = errors.New("the command printed too much")

// flood passes on at most left bytes, and then stops the command.
type flood struct {
	out  io.Writer
	left int64
	stop func()
}

func (f *flood) Write(p []byte) (int, error) {
	n := min(int64(len(p)), f.left)
	f.left -= n
	if n < int64(len(p)) {
		f.stop()
	}
	if n > 0 {
		if _, err := f.out.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// note is what the last line of a command's result says of its end.
func (e ending) note(seconds int) string {
	switch {
	case e.flooded:
		return "stopped: it printed too much. Send the output to a file, or print less"
	case e.stopped:
		return "stopped"
	case e.TimedOut && seconds < longestTimeout:
		return fmt.Sprintf("timed out: stopped after %d seconds. Give a larger timeout_seconds (at most %d), run less at once, or set background", seconds, longestTimeout)
	case e.TimedOut:
		return fmt.Sprintf("timed out: stopped after %d seconds. Run less at once", seconds)
	case e.Limit != "":
		return "killed: " + clip(e.Limit, 100)
	case e.Signal == "SIGKILL":
		return "killed by SIGKILL: maybe it needed more memory than the sandbox has"
	case e.Signal != "":
		return "killed by " + clip(e.Signal, 40)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}
