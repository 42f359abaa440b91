package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/app"
	"toritsugi/internal/eval"
	"toritsugi/internal/i18n"
)

type evalCmd struct {
	Names            []string `arg:"" optional:"" name:"case" help:"${eval_names_help}"`
	Cases            string   `placeholder:"DIR" help:"${eval_cases_help}"`
	Model            string   `placeholder:"PROVIDER/MODEL" help:"${eval_model_help}"`
	Role             string   `placeholder:"ROLE" help:"${role_help}"`
	LocalOnly        bool     `help:"${local_only_help}"`
	Bare             bool     `help:"${eval_bare_help}"`
	Compare          bool     `help:"${eval_compare_help}"`
	Modes            []string `enum:"house,plan,plain,bare" placeholder:"MODE,…" help:"${eval_modes_help}"`
	Jobs             int      `short:"j" default:"1" placeholder:"N" help:"${eval_jobs_help}"`
	MinResolved      int      `placeholder:"N" help:"${eval_min_resolved_help}"`
	Keep             bool     `help:"${eval_keep_help}"`
	Dir              string   `placeholder:"DIR" help:"${eval_dir_help}"`
	List             bool     `help:"${eval_list_help}"`
	JSON             bool     `name:"json" help:"${eval_json_help}"`
	AllowUnsandboxed bool     `help:"${allow_unsandboxed_help}"`
	Config           string   `placeholder:"FILE" help:"${config_file_help}"`
}

// check says what does not go together, before anything is done.
func (e evalCmd) check() error {
	switch {
	case e.Bare && e.Compare, len(e.Modes) > 0 && (e.Bare || e.Compare):
		return i18n.E("eval.both_modes")
	case e.Model != "" && e.Role != "":
		return i18n.E("app.role_and_model")
	case e.Jobs < 1 || e.Jobs > 64:
		return i18n.E("eval.bad_jobs", e.Jobs)
	case e.MinResolved < 0:
		return i18n.E("eval.bad_min", e.MinResolved)
	}
	return nil
}

// Run measures what is resolved.
func (e evalCmd) Run(c *console) error {
	if err := e.check(); err != nil {
		return usage(err)
	}
	cases, err := e.cases()
	if err != nil {
		return usage(err)
	}
	if e.List {
		return e.list(c, cases)
	}
	dir, remove, err := e.place(c)
	if err != nil {
		return err
	}
	defer remove()
	ctx, stop := c.untilSignal()
	defer stop()
	context.AfterFunc(ctx, stop) // whoever presses Ctrl-C again does not want to wait
	env, err := c.env(c.note)
	if err != nil {
		return err
	}
	o := e.options(env, dir)
	var broken error // of writing the answer
	o.Begun = func(name string, m eval.Mode) {
		_, _ = fmt.Fprintln(c.err, c.lang.T("eval.progress", name, m))
	}
	o.Ended = func(r eval.Result) {
		if e.JSON && broken == nil {
			broken = eval.WriteJSON(c.out, r)
		}
	}
	all, by, err := eval.Run(ctx, cases, o)
	if err = cmp.Or(err, broken); err != nil {
		return err
	}
	if err := e.report(c, all, by, o.Modes, len(cases)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &exitError{exitStopped, ctx.Err()}
	}
	return e.judge(all, by, o.Modes)
}

// cases are those that were asked for.
func (e evalCmd) cases() ([]eval.Case, error) {
	load := eval.Shipped
	if e.Cases != "" {
		load = func() ([]eval.Case, error) { return eval.LoadDir(e.Cases) }
	}
	all, err := load()
	if err != nil {
		return nil, err
	}
	return eval.Select(all, e.Names)
}

func (e evalCmd) list(c *console, cases []eval.Case) error {
	for _, k := range cases {
		if _, err := fmt.Fprintf(c.out, "%-24s %-10s %s\n", k.Name, cmp.Or(strings.Join(k.Needs, ","), "-"), k.About); err != nil {
			return err
		}
	}
	return nil
}

// place is the directory for all that is made, and what removes it.
func (e evalCmd) place(c *console) (dir string, remove func(), err error) {
	if e.Dir == "" {
		dir, err = os.MkdirTemp("", "tori-eval-")
	} else {
		dir, err = emptyDir(e.Dir)
	}
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		if e.Keep {
			_, _ = fmt.Fprintln(c.err, c.lang.T("eval.kept", dir))
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			_, _ = fmt.Fprintln(c.err, c.lang.T("eval.remains", dir, err))
		}
	}, nil
}

// emptyDir is a directory that is new or empty.
func emptyDir(name string) (string, error) {
	dir, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return "", usage(i18n.E("cli.demo_exists", dir))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

func (e evalCmd) options(env app.Env, dir string) eval.Options {
	o := eval.Options{Dir: dir, Keep: e.Keep, Jobs: e.Jobs, Modes: []eval.Mode{eval.House},
		Run: app.RunOptions{Config: e.Config, Role: e.Role, Model: e.Model, LocalOnly: e.LocalOnly, AllowUnsandboxed: e.AllowUnsandboxed},
		Env: env}
	switch {
	case e.Bare:
		o.Modes = []eval.Mode{eval.Bare}
	case e.Compare:
		o.Modes = []eval.Mode{eval.House, eval.Bare}
	}
	if len(e.Modes) > 0 {
		o.Modes = nil
	}
	for _, m := range e.Modes {
		if !slices.Contains(o.Modes, eval.Mode(m)) {
			o.Modes = append(o.Modes, eval.Mode(m))
		}
	}
	switch e.Model {
	case "script":
		o.Script, o.Run.Model = eval.Answers, ""
	case "script/bad":
		o.Script, o.Run.Model = eval.BadAnswers, ""
	}
	return o
}

// report prints what became of the cases.
func (e evalCmd) report(c *console, all []eval.Result, by eval.Model, modes []eval.Mode, asked int) error {
	if !e.JSON {
		return eval.Table(c.out, all, by, modes, asked, c.lang)
	}
	for _, m := range modes {
		if err := eval.WriteJSON(c.out, eval.Sum(all, m, by)); err != nil {
			return err
		}
	}
	return nil
}

// judge fails where not all could be run, or too few were resolved.
func (e evalCmd) judge(all []eval.Result, by eval.Model, modes []eval.Mode) error {
	for _, m := range modes {
		t := eval.Sum(all, m, by)
		switch {
		case t.Errors > 0:
			return i18n.E("eval.not_all", t.Errors)
		case t.Ran == 0:
			return i18n.E("eval.none_ran")
		case t.Resolved < e.MinResolved:
			return i18n.E("eval.too_few", string(m), t.Resolved, e.MinResolved)
		}
	}
	return nil
}
