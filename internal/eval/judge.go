package eval

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/sandbox"
)

// maxOutput is the most bytes of what a hidden check prints that are kept.
const maxOutput = 4 << 10

// judge lays the hidden files of a case over a tree, and runs its check there,
// in the sandbox and without network. What the case began with is to be read at
// $BASE. The error is ctx's, or of what could not be run.
func (r *runner) judge(ctx context.Context, c *Case, dir, tree string) (v Verdict, err error) {
	base := filepath.Join(dir, "base")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return v, err
	}
	if err := write(base, c.Repo); err != nil {
		return v, err
	}
	if err := write(tree, c.Hidden); err != nil {
		return v, fmt.Errorf("lay the hidden check over the result: %w", err)
	}
	spec := r.spec(tree, filepath.Join(dir, "check"))
	spec.ReadOnly = append(spec.ReadOnly, base)
	spec.Env["BASE"] = base
	if err := r.warm(ctx, c, spec.Cache); err != nil {
		return v, err
	}
	shell, err := r.bench.Shell(spec)
	if err != nil {
		return v, err
	}
	defer func() { _ = shell.Close() }()
	var out tail
	e, err := shell.Run(ctx, sandbox.Command{Script: c.Check, Timeout: c.Timeout, Output: &out})
	if err != nil {
		return v, err
	}
	return Verdict{Ran: true, ExitCode: e.Code, TimedOut: e.TimedOut, Limit: e.Limit, Output: r.bench.Redact(out.String())}, nil
}

// spec is what commands of ours see of a tree; scratch is for what they build.
func (r *runner) spec(tree, scratch string) sandbox.Spec {
	cfg := r.bench.Config.Sandbox
	env := map[string]string{}
	maps.Copy(env, cfg.Env)
	return sandbox.Spec{Workspace: tree, Cache: filepath.Join(scratch, "cache"), Scratch: filepath.Join(scratch, "scratch"),
		ReadOnly: slices.Clone(cfg.ReadOnlyPaths), Env: env, MemoryMB: cfg.MemoryMB}
}

// tail keeps the last part of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxOutput):]...)
	if n := len(t.text) - maxOutput; n > 0 {
		t.text, t.cut = append(t.text[:0], t.text[n:]...), true
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.ToValidUTF8(string(t.text), "\uFFFD")
	if t.cut {
		s = "[…]\n" + s
	}
	return s
}

// missing are the programs that cases need and that are not seen in the sandbox.
func (r *runner) missing(ctx context.Context, cases []Case) (map[string]bool, error) {
	var all []string
	for _, c := range cases {
		all = append(all, c.Needs...)
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return nil, nil
	}
	var script strings.Builder
	for _, p := range all { // some are there and only say how to install what they are for
		fmt.Fprintf(&script, "command -v %s >/dev/null && { test %[1]s != python3 || python3 -c '' 2>/dev/null; } || echo %[1]s\n", p)
	}
	dir := filepath.Join(r.dir, "probe")
	tree := filepath.Join(dir, "tree")
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return nil, err
	}
	defer func() { _ = removeAll(dir) }() // with the rest at the latest
	shell, err := r.bench.Shell(r.spec(tree, dir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = shell.Close() }()
	var out tail
	if _, err := shell.Run(ctx, sandbox.Command{Script: script.String(), Timeout: defaultTimeout, Output: &out}); err != nil {
		return nil, fmt.Errorf("look for %s: %w", strings.Join(all, ", "), err)
	}
	gone := map[string]bool{}
	for _, p := range strings.Fields(out.String()) {
		gone[p] = true
	}
	return gone, nil
}
