// Package checkrun runs what is run of a project besides the model's commands: its setup, and
// its checks on the base and on the work, each in a sandbox with build caches that the model
// had no hand in. Each run is recorded in the ledger.
package checkrun

import (
	"io"
	"log/slog"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/project"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/workspace"
)

// Settings are what is to be run.
type Settings struct {
	Checks     []Check                  // nil to detect them
	Timeout    time.Duration            // of those that are detected
	Setup      []workspace.SetupCommand // run before the model's first turn
	Registries []string                 // hosts that they may reach
}

// Runner runs setup and checks of one run. Its exported fields are set once, but for
// Checks, NotRun and Before, which it finds out.
type Runner struct {
	Settings  Settings
	Store     *contextstore.Store
	Ledger    *contextstore.Context
	Workspace *workspace.Workspace
	Trusted   string // commit whose word counts on how the project is checked; "" for none
	Log       *slog.Logger
	Now       func() time.Time
	Lang      i18n.Lang // of what the model is told
	Reader    i18n.Lang // of who started the run

	Shell   func(sandbox.Spec) (sandbox.Runner, error)
	Spec    sandbox.Spec                   // of all commands, but for their build caches; SetUp adds to it
	Network sandbox.Network                // the way out of setup commands
	Env     map[string]string              // of the settings
	Filter  func(io.Writer) io.WriteCloser // masks what commands print
	Checked func(contextstore.CheckRun)    // hears of each check that ended

	Checks []Check                 // those of the run
	NotRun []project.Check         // that were detected, and whose programs are not there
	Before []contextstore.CheckRun // what they said of the base

	needs needs
	apart *workspace.CheckTree // the tree that checks run in
	base  *baseline
}

// Close removes the tree that checks ran in.
func (r *Runner) Close() error {
	if r.apart == nil {
		return nil
	}
	return r.apart.Close(true)
}
