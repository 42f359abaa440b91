// Package cli is the command line: one file per verb. It parses, calls app and
// ops, prints, and turns results into exit codes; it decides nothing.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"toritsugi/internal/app"
	"toritsugi/internal/config"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/task"
)

// Exit codes (spec/README "Ctrl-C in tori run").
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitStopped = 3
	exitPaused  = 4
	exitWaiting = 5
)

// version is set by the linker in released builds.
var version = "dev"

// commands is the command line as kong reads it.
type commands struct {
	Run       runCmd       `cmd:"" help:"${run_help}"`
	Demo      demoCmd      `cmd:"" help:"${demo_help}"`
	Eval      evalCmd      `cmd:"" help:"${eval_help}"`
	Serve     serveCmd     `cmd:"" help:"${serve_help}"`
	Worker    workerCmd    `cmd:"" help:"${worker_help}"`
	Pause     pauseCmd     `cmd:"" help:"${pause_help}"`
	Resume    resumeCmd    `cmd:"" help:"${resume_verb_help}"`
	Answer    answerCmd    `cmd:"" help:"${answer_help}"`
	Stop      stopCmd      `cmd:"" help:"${stop_help}"`
	Retry     retryCmd     `cmd:"" help:"${retry_help}"`
	Unlock    unlockCmd    `cmd:"" help:"${unlock_help}"`
	Compress  compressCmd  `cmd:"" help:"${compress_help}"`
	Keep      keepCmd      `cmd:"" help:"${keep_help}"`
	Show      showCmd      `cmd:"" help:"${show_help}"`
	Logs      logsCmd      `cmd:"" help:"${logs_help}"`
	Tail      tailCmd      `cmd:"" help:"${tail_help}"`
	Export    exportCmd    `cmd:"" help:"${export_help}"`
	Import    importCmd    `cmd:"" help:"${import_help}"`
	Tasks     tasksCmd     `cmd:"" help:"${tasks_help}"`
	Search    searchCmd    `cmd:"" help:"${search_verb_help}"`
	Stats     statsCmd     `cmd:"" help:"${stats_verb_help}"`
	Sessions  sessionsCmd  `cmd:"" help:"${sessions_help}"`
	Analyses  analysesCmd  `cmd:"" help:"${analyses_help}"`
	Chat      chatVerbs    `cmd:"" help:"${chat_help}"`
	Channels  channelsCmd  `cmd:"" help:"${channels_help}"`
	Approvals approvalsCmd `cmd:"" help:"${approvals_help}"`
	Link      linkCmd      `cmd:"" help:"${link_help}"`
	Rollback  rollbackCmd  `cmd:"" help:"${rollback_help}"`
	Check     checkCmd     `cmd:"" help:"${check_help}"`
	Reindex   reindexCmd   `cmd:"" help:"${reindex_help}"`
	Migrate   migrateCmd   `cmd:"" help:"${migrate_help}"`
	Cleanup   cleanupCmd   `cmd:"" help:"${cleanup_help}"`
	Maintain  maintainCmd  `cmd:"" help:"${maintain_help}"`
	Backup    backupCmd    `cmd:"" help:"${backup_help}"`
	Restore   restoreCmd   `cmd:"" help:"${restore_help}"`
	Models    modelsCmd    `cmd:"" help:"${models_help}"`
	Health    healthCmd    `cmd:"" help:"${health_help}"`
	Config    configCmd    `cmd:"" help:"${config_help}"`
	MCP       mcpCmd       `cmd:"" name:"mcp" help:"${mcp_help}"`
	Memory    memoryCmd    `cmd:"" help:"${memory_help}"`
	Routes    routesCmd    `cmd:"" help:"${routes_help}"`
	Sandbox   sandboxCmd   `cmd:"" help:"${sandbox_help}"`
	Version   versionCmd   `cmd:"" help:"${version_help}"`
}

// console is what a verb talks to.
type console struct {
	out     io.Writer
	err     io.Writer
	lang    i18n.Lang
	getenv  func(string) string
	environ []string          // before secrets were taken out of it; nil until then
	redact  *redact.Sanitizer // of what is complained of, which may quote a secret; nil until settings were read

	interrupted func() bool // a signal ended what the verb does; nil where none could
}

// env is the world as app is given it by every verb that reads the settings'
// secrets: from here on they are out of the reach of other processes of the user,
// and of the programs that are started. It tells what is to be known by tell.
func (c *console) env(tell func(key string, args ...any)) (app.Env, error) {
	if err := sandbox.Hide(); err != nil {
		return app.Env{}, err
	}
	if c.environ == nil {
		c.environ = os.Environ()
		values, now := map[string]string{}, c.getenv
		for _, kv := range slices.Backward(c.environ) { // of two the first counts
			name, value, _ := strings.Cut(kv, "=")
			values[name] = value
		}
		c.getenv = func(name string) string { return cmp.Or(now(name), values[name]) }
	}
	return app.Env{Getenv: c.getenv, Environ: c.environ, Version: built(), Unset: os.Unsetenv, Log: c.err, Lang: c.lang, Now: time.Now, Notice: tell,
		Sanitizer: func(z *redact.Sanitizer) { c.redact = z }}, nil
}

// note prints a text beside what a verb is asked for.
func (c *console) note(key string, args ...any) {
	_, _ = fmt.Fprintln(c.err, c.lang.T(key, args...))
}

func (c *console) say(key string, args ...any) {
	_, _ = fmt.Fprintln(c.out, c.lang.T(key, args...))
}

// exitError ends the program with a code; its error, if any, is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}
func (e *exitError) Unwrap() error { return e.err }

// usage marks an error as one of usage or configuration, unless it is one of
// writing the answer.
func usage(err error) error {
	var path *fs.PathError
	if err == nil || errors.As(err, &path) && path.Op == "write" {
		return err
	}
	return &exitError{exitUsage, err}
}

// untilSignal is a context that Ctrl-C, SIGTERM or one of also ends. What a verb fails with after
// that is told by ending, in one sentence for all.
func (c *console) untilSignal(also ...os.Signal) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), append(also, syscall.SIGINT, syscall.SIGTERM)...)
	c.interrupted = func() bool { return context.Cause(ctx) != ctx.Err() } //nolint:errorlint // identity: a signal passes for the context.Canceled that stop leaves
	return ctx, stop
}

// untilInterrupted runs a verb that Ctrl-C or SIGTERM ends.
func (c *console) untilInterrupted(verb func(context.Context, app.Env) error) error {
	ctx, stop := c.untilSignal()
	defer stop()
	env, err := c.env(c.note)
	if err == nil {
		err = verb(ctx, env)
	}
	return err
}

// Main runs the command line and returns the exit code.
func Main(args []string) int {
	c := &console{out: os.Stdout, err: os.Stderr, lang: i18n.Detect(os.Getenv), getenv: os.Getenv}
	// A reader that goes away ends the printing by EPIPE, not the run by a
	// signal. Ignoring the signal would be inherited by every command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return c.main(args)
}

func (c *console) main(args []string) int {
	out := onDisplay(c.out)
	c.out, c.err = out, onDisplay(c.err)
	v, err := c.parse(args)
	if err == nil && v != nil {
		err = errors.Join(v.Run(c), app.CloseLedgers())
	}
	return c.ending(err)
}

// ending tells what a verb failed with, and returns the exit code. An exit code without an error
// was told by the verb, unless what it printed was lost.
func (c *console) ending(err error) int {
	var exit *exitError
	if bad := (*app.ConfigError)(nil); !errors.As(err, &exit) && errors.As(err, &bad) { // of any verb
		err = usage(bad.Err)
	}
	isExit := errors.As(err, &exit)
	if s, ok := c.out.(*display); ok && (err == nil || isExit && exit.err == nil) {
		if lost := s.lost(); err == nil {
			err = lost
		} else {
			exit.err = lost
		}
	}
	switch {
	case err == nil || errors.Is(err, syscall.EPIPE):
		return exitOK
	case c.interrupted != nil && c.interrupted() && (!isExit || exit.err != nil):
		c.complain(i18n.E("cli.interrupted"))
		return exitStopped
	case isExit:
		if exit.err != nil {
			c.complain(exit.err)
		}
		return exit.code
	}
	c.complain(err)
	return exitFailed
}

func (c *console) complain(err error) {
	for line := range strings.SplitSeq(strings.TrimSpace(c.masked(err)), "\n") {
		_, _ = fmt.Fprintf(c.err, "tori: %s\n", line)
	}
}

// masked is what an error says, without the secrets it may quote.
func (c *console) masked(err error) string { return c.sanitizer().String(c.lang.Error(err)) }

// sanitizer knows the secrets of the settings, or where none were read those of
// the environment.
func (c *console) sanitizer() *redact.Sanitizer {
	if c.redact == nil {
		c.redact = redact.New(config.EnvSecrets(os.Environ()), nil)
	}
	return c.redact
}

// helped is thrown by kong's exit hook after help was printed.
type helped struct{}

// verb is a command of the command line with its arguments.
type verb interface{ Run(c *console) error }

// grammar is what of the command line has to be known to read args: the verb that they begin
// with, or all verbs.
func grammar(args []string) any {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[commands]()) {
		if name := cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name)); len(args) > 0 && args[0] == name {
			f.Index, f.Offset = nil, 0
			return reflect.New(reflect.StructOf([]reflect.StructField{f})).Interface()
		}
	}
	return new(commands)
}

// parse returns what is to be run, nil where help was printed. Nothing of the parser
// is kept while that runs, which can take days.
func (c *console) parse(args []string) (v verb, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(helped); !ok {
				panic(r)
			}
			v, err = nil, nil
		}
	}()
	parser, err := kong.New(grammar(args), kong.Name("tori"), kong.Description(c.lang.T("cli.description")), kong.PostBuild(c.explain),
		kong.Writers(c.out, c.err), kong.Exit(func(int) { panic(helped{}) }), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 80}))
	if err != nil {
		return nil, err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	for _, a := range args {
		if !utf8.ValidString(a) { // the parser would replace what it cannot read
			return nil, usage(i18n.E("cli.not_utf8", a))
		}
	}
	k, err := parser.Parse(args)
	if err != nil {
		return nil, usage(i18n.E("cli.usage", parserError(err)))
	}
	for _, f := range k.Flags() {
		if s, ok := c.out.(*display); ok && f.Name == "json" {
			s.json = f.Target.Bool()
		}
	}
	if err := filled(k); err != nil {
		return nil, usage(err)
	}
	v, _ = k.Selected().Target.Interface().(verb) // each command is one
	return v, nil
}

// filled refuses an empty value, as of a variable that is not set, where that would mean another place.
func filled(k *kong.Context) error {
	for _, p := range k.Path {
		v, name := p.Positional, ""
		if p.Flag != nil {
			v, name = p.Flag.Value, "--"+p.Flag.Name
		} else if v != nil {
			name = v.Summary()
		}
		if v != nil && v.Tag.Has("filled") && v.Target.String() == "" {
			return i18n.E("cli.usage", i18n.E("cli.usage_no_value", name))
		}
	}
	return nil
}

// explain puts the texts "cli.help.x" where the struct tags say ${x_help}. As
// kong's variables all of them would be interpolated again for each flag.
func (c *console) explain(k *kong.Kong) error {
	return kong.Visit(k.Model.Node, func(v kong.Visitable, next kong.Next) error {
		switch v := v.(type) {
		case *kong.Node:
			v.Help = c.help(v.Help)
		case *kong.Value:
			v.Help = c.help(v.Help)
		}
		return next(nil)
	})
}

// help is the text of a tag, as kong interpolates it; where there is none the
// tag stays, which kong refuses.
func (c *console) help(tag string) string {
	name, isVar := strings.CutPrefix(tag, "${")
	name, isHelp := strings.CutSuffix(name, "_help}")
	if !isVar || !isHelp {
		return tag
	}
	key := "cli.help." + name
	text := c.lang.T(key)
	if text == key {
		return tag
	}
	return strings.ReplaceAll(text, "$", "$$")
}

// exitCode is the exit code of a task's status.
func exitCode(s task.Status) int {
	switch s {
	case task.Completed:
		return exitOK
	case task.Stopped:
		return exitStopped
	case task.Paused, task.Queued, task.Running:
		return exitPaused
	case task.AwaitingApproval:
		return exitWaiting
	}
	return exitFailed
}

type versionCmd struct{}

// Run prints the version and what it was built from.
func (versionCmd) Run(c *console) error {
	_, err := fmt.Fprintln(c.out, "tori "+built())
	return err
}

// built is the version of this program.
func built() string {
	if b, ok := debug.ReadBuildInfo(); ok && version == "dev" && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return version
}
