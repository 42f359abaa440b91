package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"toritsugi/internal/sandbox"
	"toritsugi/internal/workspace"
)

// A workspace is measured on two repositories: one of 200 MB, most of it
// history, and one of 100,000 small files; with -huge on one that is both, 1 GB
// in 100,000 files. All are made here, of random bytes, and go through a mirror
// as a remote's do.

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
	mirrorPeak   = "git, mirror"
	childrenPeak = "git"
)

// treeShape says what a repository is made of.
type treeShape struct {
	name     string
	files    int // in the tree
	size     int // bytes of each
	versions int // blobs of 64 KiB that only the history has
	clones   int // how often it is cloned; the median counts
}

var treeShapes = []treeShape{
	{"200 MB", 2000, 16 << 10, 2600, 3},
	{"100k files", 100_000, 200, 0, 3},
	{"1 GB, 100k", 100_000, 10 << 10, 0, 1}, // takes minutes and 5 GB of the disk
}

// usualShapes is how many of them are measured without -huge.
const usualShapes = 2

// The parts of a workspace's figures, each measured in a process of its own: the
// memory of git is that of the largest of all that a process started.
const (
	mirrorPart = "mirror"
	treePart   = "tree"
)

// workspaces measures shapes.
func (b *bench) workspaces(ctx context.Context, shapes []treeShape) ([]sample, error) {
	var all []sample
	for _, shape := range shapes {
		note("workspace: %s", shape.name)
		dir, err := os.MkdirTemp(b.dir, "workspace-")
		if err != nil {
			return nil, err
		}
		if err := shape.make(ctx, filepath.Join(dir, "source.git")); err != nil {
			return nil, err
		}
		s := sample{}
		for _, part := range []string{mirrorPart, treePart} {
			figures, _, err := b.part(ctx, dir, "workspace", shape.name+"/"+part, dir)
			if err != nil {
				return nil, fmt.Errorf("workspace, %s: %w", shape.name, err)
			}
			figures[peak] = max(figures[peak], s[peak])
			maps.Copy(s, figures)
		}
		all = append(all, s)
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// workspaceMain is the process of one shape's part.
func workspaceMain(ctx context.Context, name, dir string) error {
	for _, shape := range treeShapes {
		part, ok := strings.CutPrefix(name, shape.name+"/")
		if !ok {
			continue
		}
		do, git := measureTree, childrenPeak
		if part == mirrorPart {
			do, git = measureMirror, mirrorPeak
		}
		s := sample{}
		if err := do(ctx, shape, dir, s); err != nil {
			return err
		}
		for figure, who := range map[string]int{peak: syscall.RUSAGE_SELF, git: syscall.RUSAGE_CHILDREN} {
			var u syscall.Rusage
			if err := syscall.Getrusage(who, &u); err != nil {
				return err
			}
			s[figure] = float64(u.Maxrss) / 1024
		}
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	return fmt.Errorf("workspace: no shape named %q", name)
}

// measureMirror makes the mirror, and brings it up to date where it is.
func measureMirror(ctx context.Context, _ treeShape, dir string, s sample) error {
	packs, err := filepath.Glob(filepath.Join(dir, "source.git", "objects/pack/*.pack"))
	if err != nil {
		return err
	}
	for _, p := range packs {
		st, err := os.Stat(p)
		if err != nil {
			return err
		}
		s[packBytes] += float64(st.Size())
	}
	for _, figure := range []string{mirrorTime, fetchTime} {
		var src *workspace.Source
		if s[figure], err = stopwatch(func() (err error) { src, err = mirrored(ctx, dir); return err }); err != nil {
			return err
		}
		if err := src.Close(); err != nil {
			return err
		}
	}
	return nil
}

func mirrored(ctx context.Context, dir string) (*workspace.Source, error) {
	mirrors := &workspace.Mirrors{Dir: filepath.Join(dir, "mirrors")}
	return mirrors.Source(ctx, workspace.Remote{URL: "file://" + filepath.Join(dir, "source.git")}, "")
}

// measureTree clones from the mirror and works on a clone. None is removed in
// between: ext4 is slow to give out the inodes of files just deleted.
func measureTree(ctx context.Context, shape treeShape, dir string, s sample) error {
	src, err := mirrored(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	walls, err := sandbox.Detect(ctx)
	if err != nil {
		return err
	}
	box := workspace.Box{Shell: walls.Runner}
	var clones []float64
	var w *workspace.Workspace
	for i := range shape.clones {
		opt := workspace.CreateOptions{Box: box, Source: src, Dir: filepath.Join(dir, fmt.Sprint("workspaces/", i)), Branch: "bench"}
		ms, err := stopwatch(func() (err error) { w, err = workspace.Create(ctx, opt); return err })
		if err != nil {
			return err
		}
		clones = append(clones, ms)
	}
	s[cloneTime] = median(clones)
	if err := steps(ctx, w, s); err != nil {
		return err
	}
	if shape.clones == 1 {
		return nil
	}
	// What a task would cost without a mirror on this machine.
	naive := func() error {
		return exec.CommandContext(ctx, "git", "clone", "-q", "--no-hardlinks", filepath.Join(dir, "source.git"), filepath.Join(dir, "naive")).Run()
	}
	if s[naiveTime], err = stopwatch(naive); err != nil {
		return fmt.Errorf("git clone: %w", err)
	}
	return nil
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
	if len(all) < usualShapes {
		return
	}
	figures := func(name string) []float64 {
		var f []float64
		for _, s := range all {
			f = append(f, s[name])
		}
		return f
	}
	var names []string
	for i := range all {
		names = append(names, treeShapes[i].name)
	}
	r.title("Workspace", names...)
	packed, naive := figures(packBytes), figures(naiveTime)
	for i := range all {
		packed[i] /= 1e6
		if naive[i] == 0 {
			naive[i] = math.NaN() // not measured
		}
	}
	r.row("pack, MB", "%.0f", packed, "")
	r.row("mirror made, ms", "%.0f", figures(mirrorTime), "")
	r.row("mirror that has all, ms", "%.0f", figures(fetchTime), "")
	r.row("clone from the mirror, ms", "%.0f", figures(cloneTime), r.verdict(maxClone, " ms", all[0][cloneTime]))
	r.row("  git clone, copying, ms", "%.0f", naive, "")
	for _, f := range []string{firstStep, sameStep, oneStep, restoreTime, commitTime} {
		r.row(f+", ms", "%.0f", figures(f), "")
	}
	r.row("peak memory of the process, MiB", "%.1f", figures(peak), r.verdict(maxPeak, " MiB", figures(peak)...))
	r.row("peak memory of git at the mirror, MiB", "%.1f", figures(mirrorPeak), "")
	r.row("peak memory of git after, MiB", "%.1f", figures(childrenPeak), "")
}
