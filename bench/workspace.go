package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"toritsugi/internal/workspace"
)

// A workspace is measured on two repositories: one of 200 MB, most of it
// history, and one of 100,000 small files. Both are made here, of random bytes,
// and go through a mirror as a remote's do.

// maxClone is how long a clone of the first may take, in ms (DESIGN §9).
const maxClone = 1000.0

// The figures of workspaces, ms but for the last two, which are MiB.
const (
	packBytes    = "pack bytes"
	mirrorTime   = "mirror"
	fetchTime    = "fetch"
	cloneTime    = "clone"
	naiveTime    = "git clone"
	firstStep    = "first snapshot"
	sameStep     = "snapshot, nothing changed"
	oneStep      = "snapshot, one file changed"
	restoreTime  = "restore"
	commitTime   = "commit"
	childrenPeak = "git"
)

// treeShape says what a repository is made of.
type treeShape struct {
	name     string
	files    int // in the tree
	size     int // bytes of each
	versions int // blobs of 64 KiB that only the history has
}

var treeShapes = []treeShape{
	{"200 MB", 2000, 16 << 10, 2600},
	{"100,000 files", 100_000, 200, 0},
}

// workspaces measures every shape in a process of its own.
func (b *bench) workspaces(ctx context.Context) ([]sample, error) {
	var all []sample
	for _, shape := range treeShapes {
		note("workspace: %s", shape.name)
		dir, err := os.MkdirTemp(b.dir, "workspace-")
		if err != nil {
			return nil, err
		}
		out, u, err := measure(ctx, b.self, dir, b.self, "workspace", shape.name, dir)
		if err != nil {
			return nil, fmt.Errorf("workspace, %s: %w", shape.name, err)
		}
		s := sample{}
		if err := json.Unmarshal(out, &s); err != nil {
			return nil, fmt.Errorf("workspace, %s: its figures: %w", shape.name, err)
		}
		s[peak] = float64(u.PeakKiB) / 1024
		all = append(all, s)
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// workspaceMain is the process of one shape.
func workspaceMain(ctx context.Context, name, dir string) error {
	for _, shape := range treeShapes {
		if shape.name != name {
			continue
		}
		s, err := measureWorkspace(ctx, shape, dir)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	return fmt.Errorf("workspace: no shape named %q", name)
}

// cloneRuns is how often a clone is made; the median counts. None is removed in
// between: ext4 is slow to give out the inodes of files just deleted.
const cloneRuns = 3

func measureWorkspace(ctx context.Context, shape treeShape, dir string) (sample, error) {
	source := filepath.Join(dir, "source.git")
	if err := shape.make(ctx, source); err != nil {
		return nil, err
	}
	s := sample{}
	packs, err := filepath.Glob(filepath.Join(source, "objects/pack/*.pack"))
	if err != nil {
		return nil, err
	}
	for _, p := range packs {
		st, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		s[packBytes] += float64(st.Size())
	}
	mirrors := &workspace.Mirrors{Dir: filepath.Join(dir, "mirrors")}
	remote := workspace.Remote{URL: "file://" + source}
	var src *workspace.Source
	for _, figure := range []string{mirrorTime, fetchTime} {
		if src != nil {
			if err := src.Close(); err != nil {
				return nil, err
			}
		}
		if s[figure], err = stopwatch(func() (err error) { src, err = mirrors.Source(ctx, remote, ""); return err }); err != nil {
			return nil, err
		}
	}
	defer func() { _ = src.Close() }()
	var clones []float64
	var w *workspace.Workspace
	for i := range cloneRuns {
		opt := workspace.CreateOptions{Source: src, Dir: filepath.Join(dir, fmt.Sprint("workspaces/", i)), Branch: "bench"}
		ms, err := stopwatch(func() (err error) { w, err = workspace.Create(ctx, opt); return err })
		if err != nil {
			return nil, err
		}
		clones = append(clones, ms)
	}
	s[cloneTime] = median(clones)
	if s[naiveTime], err = stopwatch(func() error { // what a task would cost without a mirror on this machine
		return exec.CommandContext(ctx, "git", "clone", "-q", "--no-hardlinks", source, filepath.Join(dir, "naive")).Run()
	}); err != nil {
		return nil, fmt.Errorf("git clone: %w", err)
	}
	if err := steps(ctx, w, s); err != nil {
		return nil, err
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return nil, err
	}
	s[childrenPeak] = float64(u.Maxrss) / 1024
	return s, nil
}

// steps measures snapshots and what follows from them.
func steps(ctx context.Context, w *workspace.Workspace, s sample) error {
	var first workspace.Snapshot
	for _, step := range []struct {
		figure string
		do     func() error
	}{
		{firstStep, func() (err error) { first, err = w.Snapshot(ctx, "first"); return err }},
		{sameStep, func() error { _, err := w.Snapshot(ctx, "same"); return err }},
		{"", func() error { return os.WriteFile(filepath.Join(w.Tree(), "d0", "f0"), []byte("changed\n"), 0o600) }},
		{oneStep, func() error { _, err := w.Snapshot(ctx, "one"); return err }},
		{restoreTime, func() error { _, err := w.RestoreTo(ctx, first.ID); return err }},
		{"", func() error { return os.WriteFile(filepath.Join(w.Tree(), "new"), []byte("new\n"), 0o600) }},
		{commitTime, func() error {
			_, err := w.Commit(ctx, workspace.CommitOptions{Message: "bench", When: time.Now()})
			return err
		}},
	} {
		ms, err := stopwatch(step.do)
		if err != nil {
			return err
		}
		if step.figure != "" {
			s[step.figure] = ms
		}
	}
	return nil
}

func stopwatch(do func() error) (ms float64, err error) {
	start := time.Now()
	err = do()
	return float64(time.Since(start).Microseconds()) / 1000, err
}

// make writes the repository as a stream that git fast-import reads.
func (t treeShape) make(ctx context.Context, path string) (err error) {
	if err := exec.CommandContext(ctx, "git", "init", "-q", "--bare", "-b", "main", path).Run(); err != nil {
		return fmt.Errorf("git init: %w", err)
	}
	cmd := exec.CommandContext(ctx, "git", "--git-dir="+path, "-c", "core.compression=0", "fast-import", "--quiet")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = t.stream(in)
	if cerr := in.Close(); err == nil {
		err = cerr
	}
	if werr := cmd.Wait(); err == nil {
		err = werr
	}
	return err
}

func (t treeShape) stream(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<20)
	random := rand.NewChaCha8([32]byte{1})
	data := func(n int) {
		buf := make([]byte, n)
		_, _ = random.Read(buf)
		_, _ = fmt.Fprintf(w, "data %d\n%s\n", n, buf)
	}
	commit := func() {
		_, _ = fmt.Fprint(w, "commit refs/heads/main\ncommitter bench <bench@example.org> 1700000000 +0000\ndata 1\nx\n")
	}
	commit()
	for i := range t.files {
		_, _ = fmt.Fprintf(w, "M 100644 inline d%d/f%d\n", i/50, i)
		data(t.size)
	}
	for range t.versions {
		commit()
		_, _ = fmt.Fprint(w, "M 100644 inline history\n")
		data(64 << 10)
	}
	return w.Flush()
}

// workspace prints what was measured of workspaces.
func (r *report) workspace(all []sample) {
	if len(all) != len(treeShapes) {
		return
	}
	figures := func(name string) []float64 {
		var f []float64
		for _, s := range all {
			f = append(f, s[name])
		}
		return f
	}
	r.title("Workspace", treeShapes[0].name, "100k files")
	packed := figures(packBytes)
	r.row("pack, MB", "%.0f", []float64{packed[0] / 1e6, packed[1] / 1e6}, "")
	r.row("mirror made, ms", "%.0f", figures(mirrorTime), "")
	r.row("mirror that has all, ms", "%.0f", figures(fetchTime), "")
	r.row("clone from the mirror, ms", "%.0f", figures(cloneTime), r.verdict(maxClone, " ms", all[0][cloneTime]))
	r.row("  git clone, copying, ms", "%.0f", figures(naiveTime), "")
	for _, f := range []string{firstStep, sameStep, oneStep, restoreTime, commitTime} {
		r.row(f+", ms", "%.0f", figures(f), "")
	}
	r.row("peak memory of the process, MiB", "%.1f", figures(peak), r.verdict(maxPeak, " MiB", figures(peak)...))
	r.row("peak memory of git, MiB", "%.1f", append(figures(childrenPeak), math.NaN())[:2], "")
}
