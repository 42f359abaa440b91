package eval

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"toritsugi/internal/config"
	"toritsugi/internal/sandbox"
)

// Each case has build caches of its own, which begin empty: for Go that is the
// standard library, twice for each case. So it is compiled once, before any model
// was asked, and each cache begins with a copy.

// seedFiles are a module that uses what tests use most.
var seedFiles = []File{
	{"go.mod", []byte("module seed\n\ngo 1.21\n")},
	{"seed_test.go", []byte("package seed\n\nimport (\n\t_ \"bufio\"\n\t_ \"encoding/json\"\n\t_ \"sync/atomic\"\n\t\"testing\"\n)\n\nfunc TestSeed(*testing.T) {}\n")},
}

// seed makes the copy, where a case needs Go and nobody has set a cache.
// Without one all goes on, more slowly.
func (r *runner) seed(ctx context.Context, cases []Case) error {
	needed := slices.ContainsFunc(cases, func(c Case) bool { return needsGo(&c) })
	if !needed || r.bench.Config.Sandbox.Env["GOCACHE"] != "" {
		return nil
	}
	tree := filepath.Join(r.dir, "seed", "tree")
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return err
	}
	if err := write(tree, seedFiles); err != nil {
		return err
	}
	spec := r.spec(tree, filepath.Join(r.dir, "seed"))
	shell, err := r.bench.Shell(spec)
	if err != nil {
		return err
	}
	defer func() { _ = shell.Close() }()
	e, err := shell.Run(ctx, sandbox.Command{Script: "go test ./...", Timeout: seedTimeout, Output: &tail{}})
	if err == nil && e.Code == 0 && !e.TimedOut {
		r.seeded = filepath.Join(spec.Cache, "go-build")
	}
	return ctx.Err()
}

const seedTimeout = 5 * defaultTimeout

func needsGo(c *Case) bool { return slices.Contains(c.Needs, "go") }

// warm gives a cache what was compiled beforehand.
func (r *runner) warm(ctx context.Context, c *Case, cache string) error {
	if r.seeded == "" || !needsGo(c) {
		return nil
	}
	to := filepath.Join(cache, "go-build")
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(r.seeded)); err != nil {
		return err
	}
	return ctx.Err()
}

// setup has the house begin with the copy as well: as what a setup command left.
func (r *runner) setup(c *Case, cfg *config.Config) {
	cfg.Setup = nil
	cfg.Forget("setup")
	if r.seeded == "" || !needsGo(c) {
		return
	}
	cfg.Setup = []config.Check{{Name: "build cache", Run: `mkdir -p "$GOCACHE" && cp -R "$SEED/." "$GOCACHE"`}}
	cfg.Sandbox.ReadOnlyPaths = append(slices.Clone(cfg.Sandbox.ReadOnlyPaths), r.seeded)
	env := map[string]string{"SEED": r.seeded}
	maps.Copy(env, cfg.Sandbox.Env)
	cfg.Sandbox.Env = env
}
