package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const prompt = "Count the turns until you are told that they are done."

// A sample is what one run cost, by the names below; times are milliseconds,
// memory is MiB. Samples of equal runs are put together by their medians.
type sample map[string]float64

// The names of a sample.
const (
	overhead  = "overhead"   // median of a turn: end of an answer to next request, tool included
	p95       = "p95"        // of the same
	tool      = "tool"       // mean time in the tool per turn
	own       = "own"        // overhead less tool
	ownMean   = "own mean"   // the same of the mean overhead
	ownLast   = "own last"   // the same of the median of the last tenth, of five turns at least
	ownTenth  = "own tenth"  // the same of the turns 6 to 15
	cpu       = "cpu"        // of the process itself, the whole run
	peak      = "peak"       // memory
	wall      = "wall"       // the whole run
	kept      = "kept"       // share of requests that begin with the request before
	breaks    = "breaks"     // requests that do not
	body      = "body"       // longest request, MiB
	written   = "written"    // bytes to the disk as the kernel counts them
	appended  = "appended"   // bytes that the program appended or replaced
	syncs     = "syncs"      // of files
	rows      = "rows"       // row updates
	fileRatio = "file ratio" // bytes of the context's files per byte of conversation
	events    = "events"     // decisions about the window
	calls     = "calls"      // of the shell, on record; the answers that planning takes are calls, too, and not among them

	stubBatches = "stub batches" // of them, those that made stubs
	summarised  = "summarised"   // of them, summaries, each of which is a call of a model
)

const mib = 1 << 20

// bench runs what is measured.
type bench struct {
	self, tori string // programs
	dir        string // where everything is written
	runs       int    // made so far, to name directories
}

// plan says what one run does.
type plan struct {
	turns     int
	context   int  // context_length, tokens
	sandboxed bool // tori only
	planned   bool // tori only

	backend string // of the contexts, "" for files; tori only
	url     string // of the server
}

// floor makes one run of the floor.
func (b *bench) floor(ctx context.Context, p plan) (sample, error) {
	return b.against(ctx, p, func(dir, base string) (sample, error) {
		out, u, err := b.measure(ctx, dir, b.self, "floor", base, prompt)
		if err != nil {
			return nil, err
		}
		var cost floorCost
		if err := json.Unmarshal(out, &cost); err != nil {
			return nil, fmt.Errorf("floor's report: %w", err)
		}
		s := sample{cpu: ms(cost.total())}
		s.add(u, time.Duration(cost.ToolUS)*time.Microsecond)
		return s, nil
	})
}

// toriCost is what tori run --stats writes.
type toriCost struct {
	Disk struct {
		Syncs int64 `json:"syncs"`
		Bytes int64 `json:"bytes"`
	} `json:"disk"`
	RowUpdates int64 `json:"row_updates"`
	ToolUS     int64 `json:"tool_us"`
	selfCPU
}

// agent makes one run of tori on a repository of its own.
func (b *bench) agent(ctx context.Context, p plan) (sample, error) {
	return b.against(ctx, p, func(dir, base string) (sample, error) {
		repo, contexts := filepath.Join(dir, "repo"), filepath.Join(dir, "contexts")
		if err := newRepo(ctx, repo); err != nil {
			return nil, err
		}
		config := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(config, p.config(base), 0o600); err != nil {
			return nil, err
		}
		stats := filepath.Join(dir, "stats.json")
		args := []string{b.tori, "run", "--repo", repo, "--message", prompt, "--base-dir", contexts, "--config", config, "--stats", stats}
		if !p.sandboxed {
			args = append(args, "--allow-unsandboxed")
		}
		_, u, err := b.measure(ctx, dir, args...)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(stats)
		if err != nil {
			return nil, err
		}
		var cost toriCost
		if err := json.Unmarshal(text, &cost); err != nil {
			return nil, fmt.Errorf("tori's statistics: %w", err)
		}
		s := sample{cpu: ms(cost.total()), syncs: float64(cost.Disk.Syncs), appended: float64(cost.Disk.Bytes), rows: float64(cost.RowUpdates)}
		s.add(u, time.Duration(cost.ToolUS)*time.Microsecond)
		if p.backend != "" {
			return s, nil // the server of the model counted the turns
		}
		if err := s.addFiles(contexts); err != nil {
			return nil, err
		}
		if s[calls] != float64(p.turns) {
			return nil, fmt.Errorf("tori ran %.0f commands, %d were asked for\n%s", s[calls], p.turns, lastWords(filepath.Join(dir, "stderr")))
		}
		return s, nil
	})
}

// against makes one run against a server of its own, in a directory that is
// removed afterwards, and adds what the server saw.
func (b *bench) against(ctx context.Context, p plan, run func(dir, base string) (sample, error)) (sample, error) {
	b.runs++
	dir := filepath.Join(b.dir, fmt.Sprintf("run-%d", b.runs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // all of it lies below b.dir, which goes too
	srv, err := listen(ctx, p.turns)
	if err != nil {
		return nil, err
	}
	srv.planned = p.planned
	s, err := run(dir, srv.base)
	f, cerr := srv.close()
	if err != nil {
		return nil, err
	}
	if cerr != nil {
		return nil, cerr
	}
	if len(f.Overheads) != p.turns {
		return nil, fmt.Errorf("%d turns were taken, %d were asked for", len(f.Overheads), p.turns)
	}
	s.addFigures(f, p.turns)
	return s, nil
}

// add takes in what the kernel counted, and the time in tools, of all turns.
func (s sample) add(u usage, tools time.Duration) {
	s[wall], s[peak], s[written] = float64(u.WallUS)/1e3, float64(u.PeakKiB)/1024, float64(u.OutBytes)
	s[tool] = ms(tools) // of all turns until addFigures knows their number
}

// addFigures takes in what the server saw.
func (s sample) addFigures(f figures, turns int) {
	s[kept], s[breaks], s[body] = 1, float64(f.Compared-f.Kept), float64(f.Body)/mib
	if f.Compared > 0 {
		s[kept] = float64(f.Kept) / float64(f.Compared)
	}
	if turns == 0 {
		return
	}
	s[tool] /= float64(turns)
	all := make([]float64, turns)
	sum := 0.0
	for i, d := range f.Overheads {
		all[i] = ms(d)
		sum += all[i]
	}
	s[ownTenth] = median(all[min(turns/2, 5):min(turns, 15)]) - s[tool]
	s[ownLast] = median(all[turns-max(min(turns, 5), turns/10):]) - s[tool]
	s[overhead], s[p95] = median(all), quantile(all, 0.95)
	s[own], s[ownMean] = s[overhead]-s[tool], sum/float64(turns)-s[tool]
}

// addFiles weighs the files of the one context below base.
func (s sample) addFiles(base string) error {
	found, err := filepath.Glob(filepath.Join(base, "completed", "*", "messages.jsonl"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d completed contexts in %s, want one", len(found), base)
	}
	dir := filepath.Dir(found[0])
	said, err := conversationBytes(found[0])
	if err != nil {
		return err
	}
	var files int64
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			files += info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	s[fileRatio] = float64(files) / float64(max(said, 1))
	decisions, err := os.ReadFile(filepath.Join(dir, "window.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	runs, err := os.ReadFile(filepath.Join(dir, "tools.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	s[calls] = float64(bytes.Count(runs, []byte(`"tool":"shell"`)))
	s[events] = float64(bytes.Count(decisions, []byte("\n")))
	s[stubBatches] = float64(bytes.Count(decisions, []byte(`"type":"mask"`)))
	s[summarised] = float64(bytes.Count(decisions, []byte(`"type":"summary"`)))
	return nil
}

// conversationBytes sums the contents and call arguments of messages.jsonl
// (store-v3 §3.2).
func conversationBytes(path string) (sum int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read from
	d := json.NewDecoder(bufio.NewReader(f))
	for d.More() {
		var m struct {
			Content   string
			ToolCalls []struct{ Arguments string } `json:"tool_calls"`
		}
		if err := d.Decode(&m); err != nil {
			return 0, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		sum += int64(len(m.Content))
		for _, c := range m.ToolCalls {
			sum += int64(len(c.Arguments))
		}
	}
	return sum, nil
}

// config is tori's configuration for a run; JSON is YAML too.
func (p plan) config(base string) []byte {
	type object = map[string]any
	c := object{
		"llm":    object{"provider": "openai", "openai": object{"base_url": base, "api_key": "dummy", "model": "bench", "context_length": p.context}},
		"checks": []string{}, "budget": object{"max_turns": 10*p.turns + 100}, "language": "en",
		"planning": object{"enabled": p.planned}, // without, the server says what the floor hears, too
	}
	if !p.sandboxed {
		c["sandbox"] = object{"mode": "none"}
	}
	if p.backend != "" {
		c["context_storage"] = object{"backend": p.backend, "postgres": object{"url": p.url}}
	}
	b, _ := json.Marshal(c) // plain values always encode
	return b
}

// newRepo makes a repository with one commit.
func newRepo(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# A repository to measure in\n"), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."},
		{"-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "Begin"},
	} {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// version starts tori n times for its shortest verb.
func (b *bench) version(ctx context.Context, n int) (all []sample, err error) {
	dir := filepath.Join(b.dir, "version")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	for range n {
		_, u, err := b.measure(ctx, dir, b.tori, "version")
		if err != nil {
			return nil, err
		}
		s := sample{}
		s.add(u, 0)
		all = append(all, s)
	}
	return all, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median and quantile are of a copy; NaN-free as long as v is not empty.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[int(q*float64(len(v)-1)+0.5)]
}

// medians puts samples of equal runs together.
func medians(all []sample) sample {
	m := sample{}
	if len(all) == 0 {
		return m
	}
	for name := range all[0] {
		var v []float64
		for _, s := range all {
			v = append(v, s[name])
		}
		m[name] = median(v)
	}
	return m
}
