// Command bench measures what a turn of tori costs beside the least that a turn
// can cost, in one run and on one disk, against a server without a model; then
// the same led by a plan beside itself without, the clients of models beside bare
// net/http, clones and snapshots of workspaces, conversations,
// and the ledger with a long history beside the naive way. It prints the figures
// with their budgets and judges nothing by its exit code: it fails only where a
// run does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"toritsugi/internal/sandbox"
)

const (
	largeContext = 100_000_000 // tokens: nothing ever leaves the window
	smallContext = 32768       // tokens: full before turn 100
	boxedTurns   = 100
	hellos       = 20
	syncSamples  = 200
)

// smallTurns are the runs whose memory is compared.
var smallTurns = [2]int{100, 1000}

func main() {
	sandbox.Helper(os.Args)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case len(args) == 3 && args[0] == "floor":
		return floorMain(ctx, args[1], args[2])
	case len(args) > 2 && args[0] == "launch":
		return launch(args[1], args[2:])
	case len(args) > 1 && args[0] == "ledger":
		return ledgerMain(ctx, args[1:])
	case len(args) == 3 && args[0] == "workspace":
		return workspaceMain(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == "cluster":
		return clusterMain(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == "dispatch":
		return dispatchMain(ctx, args[1], args[2])
	case len(args) == 5 && args[0] == "chat":
		return chatMain(ctx, args[1], args[2], args[3], args[4])
	case len(args) == 1 && args[0] == "-sandbox-only":
		return sandboxMain(ctx)
	case len(args) == 1 && args[0] == "llm-server":
		return llmServerMain(ctx)
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	b, err := newBench(o.tori, o.dir)
	if err != nil {
		return err
	}
	defer b.remove()
	v := &results{pairs: map[int]pair{}, planned: map[int]sample{}, disk: fileSystem(b.dir)}
	var failed []error
	shapes := treeShapes[:usualShapes]
	if o.huge {
		shapes = treeShapes
	}
	for _, part := range []struct {
		wanted  bool
		measure func() error
	}{
		{o.tori != "" && len(o.turns) > 0, func() error { return b.all(ctx, v, o.turns, o.runs, o.window) }}, // -tokens-only makes none
		{o.tokens, func() (err error) { v.tokens, err = b.tokens(ctx); return err }},
		{o.clients, func() (err error) { v.llm, err = b.llm(ctx, fullLLM()); return err }},
		{o.workspaces, func() (err error) { v.workspace, err = b.workspaces(ctx, shapes); return err }},
		{o.dispatch, func() (err error) { v.dispatch, err = b.dispatch(ctx); return err }},
		{o.chat, func() (err error) { v.chat, err = b.chat(ctx, fullChat()); return err }},
		{o.databases, func() (err error) { v.databases, err = b.databases(ctx, o.runs, o.cluster); return err }},
		{true, func() (err error) { v.ledger, err = b.ledger(ctx, o.parts); return err }}, // those that are named
	} {
		if part.wanted && ctx.Err() == nil {
			failed = append(failed, part.measure())
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if v.syncs == nil && len(o.parts) > 0 {
		if v.syncs, err = syncCosts(b.dir, syncSamples); err != nil {
			return err
		}
	}
	(&report{w: os.Stdout}).print(v)
	return errors.Join(failed...)
}

// options say what is measured, and of what.
type options struct {
	tori       string // the program; "" measures no runs
	dir        string
	turns      []int
	runs       int
	window     bool
	clients    bool
	workspaces bool
	dispatch   bool
	chat       bool
	databases  bool
	cluster    bool // of these, the processes that share a server alone
	huge       bool
	tokens     bool     // what the pairs of tori eval take
	parts      []string // of the ledger
}

func parseOptions(args []string) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.tori, "tori", "./bin/tori", "the `program` to measure")
	turns := flags.String("turns", "10,100,1000", "turns of the runs, a `list`")
	flags.IntVar(&o.runs, "runs", 3, "how often each run is made; medians are printed")
	flags.StringVar(&o.dir, "dir", "", "`directory` on the disk to measure (the system's for temporary files)")
	flags.BoolVar(&o.window, "window", true, "also measure memory with a full window, 100 against 1,000 turns")
	flags.BoolVar(&o.clients, "llm", true, "also measure the clients of models")
	ledger := flags.String("ledger", strings.Join(partNames(), ","), "what to measure of the ledger, a `list`; \"\" for nothing")
	ledgerOnly := flags.Bool("ledger-only", false, "measure the ledger alone, and no runs")
	flags.BoolVar(&o.workspaces, "workspace", true, "also measure clones and snapshots")
	workspaceOnly := flags.Bool("workspace-only", false, "measure clones and snapshots alone, and no runs")
	flags.BoolVar(&o.dispatch, "dispatch", true, "also measure a daemon with many tasks")
	dispatchOnly := flags.Bool("dispatch-only", false, "measure a daemon with many tasks alone, and no runs")
	flags.BoolVar(&o.chat, "chat", true, "also measure conversations")
	chatOnly := flags.Bool("chat-only", false, "measure conversations alone, and no runs")
	flags.BoolVar(&o.databases, "database", true, "also measure turns whose contexts lie in SQLite and PostgreSQL")
	databaseOnly := flags.Bool("database-only", false, "measure those alone")
	clusterOnly := flags.Bool("cluster-only", false, "measure alone how many processes work on tasks in PostgreSQL")
	flags.BoolVar(&o.huge, "huge", false, "with workspaces, also a repository of 1 GB in 100,000 files: minutes, and 5 GB of the disk")
	flags.BoolVar(&o.tokens, "tokens", true, "also count the tokens of the same edits with a plan, without, and in the minimal loop")
	tokensOnly := flags.Bool("tokens-only", false, "count those tokens alone")
	memoryOnly := flags.Bool("memory-only", false, "measure the window of a run alone: its assembly behind a long history, what it takes and what it sends")
	llmOnly := flags.Bool("llm-only", false, "measure the clients of models alone, and no runs")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.turns, err = parseTurns(*turns); err != nil {
		return o, err
	}
	if o.parts, err = parseParts(*ledger); err != nil {
		return o, err
	}
	switch {
	case o.runs < 1 || flags.NArg() > 0:
		return o, errors.New("-runs must be at least 1, and nothing may follow the flags")
	case only(*ledgerOnly, *memoryOnly, *llmOnly, *workspaceOnly, *dispatchOnly, *chatOnly, *tokensOnly, *databaseOnly, *clusterOnly) > 1:
		return o, errors.New("-ledger-only, -memory-only, -llm-only, -workspace-only, -dispatch-only, -chat-only, -tokens-only, -database-only and -cluster-only exclude each other")
	case *tokensOnly:
		o = options{tori: o.tori, dir: o.dir, tokens: true}
	case *chatOnly:
		o = options{tori: o.tori, dir: o.dir, chat: true}
	case *databaseOnly, *clusterOnly:
		o = options{tori: o.tori, dir: o.dir, databases: true, cluster: *clusterOnly, runs: o.runs}
	case *memoryOnly:
		o = options{dir: o.dir, parts: []string{partLong, partMemory}}
	case *ledgerOnly, *llmOnly, *workspaceOnly, *dispatchOnly:
		o.tori, o.tokens, o.chat, o.databases, o.clients, o.workspaces, o.dispatch = "", false, false, false, *llmOnly, *workspaceOnly, *dispatchOnly
		if !*ledgerOnly {
			o.parts = nil
		}
	}
	return o, nil
}

// only counts the flags that are set.
func only(flags ...bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// remove removes all that was written. A process that was killed a moment ago
// may still be writing, so it is tried for a while.
func (b *bench) remove() {
	for range 50 {
		if os.RemoveAll(b.dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	note("not all of %s could be removed", b.dir)
}

func parseTurns(list string) ([]int, error) {
	var all []int
	for field := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-turns %q: want numbers from 1, separated by commas", list)
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func floorMain(ctx context.Context, base, prompt string) error {
	cost, err := runFloor(ctx, base, prompt)
	if err != nil {
		return err
	}
	if cost.selfCPU, err = ownCPU(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(cost)
}

func newBench(tori, dir string) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if tori != "" { // else no runs are made
		if tori, err = filepath.Abs(tori); err != nil {
			return nil, err
		}
		if _, err := os.Stat(tori); err != nil {
			return nil, fmt.Errorf("the program to measure (make build makes it): %w", err)
		}
	}
	if dir, err = os.MkdirTemp(dir, "tori-bench-"); err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	return &bench{self: self, tori: tori, dir: dir}, err
}

// all measures the runs. Floor and tori take turns, so that a disturbance of
// the machine meets both. A run that fails leaves its figures out, and is an
// error beside what else was measured.
func (b *bench) all(ctx context.Context, v *results, turns []int, runs int, window bool) error {
	plans := []plan{{turns: 0, context: largeContext}}
	for _, n := range turns {
		plans = append(plans, plan{turns: n, context: largeContext})
	}
	if window {
		for _, n := range smallTurns {
			plans = append(plans, plan{turns: n, context: smallContext})
		}
	}
	floors, toris := make([][]sample, len(plans)), make([][]sample, len(plans))
	planned := map[int][]sample{}
	failed, ledFailed := make([]error, len(plans)), error(nil)
	for k := range runs {
		costs, err := syncCosts(b.dir, max(1, syncSamples/runs))
		if err != nil {
			return fmt.Errorf("measure fdatasync: %w", err)
		}
		v.syncs = append(v.syncs, costs...)
		for i, p := range plans {
			if failed[i] != nil {
				continue
			}
			note("round %d of %d: %d turns, context of %d tokens", k+1, runs, p.turns, p.context)
			failed[i] = b.once(ctx, p, k%2 == 1, &floors[i], &toris[i])
			if failed[i] == nil && ledFailed == nil && p.context == largeContext && slices.Contains(plannedTurns, p.turns) {
				ledFailed = b.led(ctx, p, planned)
			}
			if ctx.Err() != nil {
				return failed[i]
			}
		}
	}
	var err error
	if v.hello, err = b.version(ctx, hellos); err != nil {
		return err
	}
	if bwrapWorks(ctx) {
		note("%d turns in the sandbox", boxedTurns)
		if v.boxed, err = b.agent(ctx, plan{turns: boxedTurns, context: largeContext, sandboxed: true}); err != nil {
			failed = append(failed, fmt.Errorf("tori in the sandbox: %w", err))
		}
	} else {
		note("bubblewrap does not work here: nothing is measured in the sandbox")
	}
	for i, p := range plans {
		m := pair{medians(floors[i]), medians(toris[i])}
		switch {
		case failed[i] != nil:
		case p.turns == 0:
			v.start = m
		case p.context == largeContext:
			v.turns = append(v.turns, p.turns)
			v.pairs[p.turns] = m
			if all := planned[p.turns]; len(all) > 0 {
				v.planned[p.turns] = medians(all)
			}
		default:
			v.small = append(v.small, m)
		}
	}
	return errors.Join(append(failed, ledFailed)...)
}

// once makes one run of each side, tori first where swapped.
func (b *bench) once(ctx context.Context, p plan, swapped bool, floors, toris *[]sample) error {
	sides := []struct {
		name string
		run  func(context.Context, plan) (sample, error)
		all  *[]sample
	}{{"floor", b.floor, floors}, {"tori", b.agent, toris}}
	if swapped {
		slices.Reverse(sides)
	}
	for _, s := range sides {
		one, err := s.run(ctx, p)
		if err != nil {
			return fmt.Errorf("%s, %d turns, context of %d tokens: %w", s.name, p.turns, p.context, err)
		}
		*s.all = append(*s.all, one)
	}
	return nil
}

// bwrapWorks reports whether this machine lets bubblewrap make a sandbox.
func bwrapWorks(ctx context.Context) bool {
	return exec.CommandContext(ctx, "bwrap", "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "true").Run() == nil
}

// fileSystem names the file system of a directory: where syncs cost nothing,
// the reader should know why.
func fileSystem(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return dir
	}
	// statfs(2) lists the numbers.
	names := map[int64]string{0xEF53: "ext4", 0x9123683E: "btrfs", 0x58465342: "xfs", 0x794C7630: "overlay", 0x2FC12FC1: "zfs",
		0x01021994: "tmpfs, which never reaches a disk: choose another with -dir"}
	name, ok := names[st.Type]
	if !ok {
		name = fmt.Sprintf("file system %#x", st.Type)
	}
	return filepath.Dir(dir) + " on " + name
}

// note tells the one who waits what is going on.
func note(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }
