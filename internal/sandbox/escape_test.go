package sandbox

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// outcomes runs a check and maps names to what came of them.
func outcomes(t *testing.T, s *Sandbox, runner func(Spec) (Runner, error), only []string) map[string]Probe {
	t.Helper()
	guarded := func(spec Spec) (Runner, error) {
		r, err := runner(spec)
		if err == nil && (!r.Confined() || len(s.without) > 0) && os.Getenv(apartVariable) == "" {
			return nil, errors.New("attempts that a wall is missing for are made apart from the machine only: see apart")
		}
		return r, err
	}
	probes, err := check(t.Context(), s, guarded, only)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Probe{}
	for _, p := range probes {
		got[p.Name] = p
	}
	return got
}

func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	boxes(t, func(t *testing.T, s *Sandbox) {
		var only []string
		for _, a := range attempts() {
			if unproved[a.name] != "TestManyFiles" {
				only = append(only, a.name)
			}
		}
		probes, err := s.Check(t.Context(), only...)
		if err != nil {
			t.Fatal(err)
		}
		if len(probes) < 60 {
			t.Errorf("%d attempts", len(probes))
		}
		known := []string{OutcomeBlocked, OutcomeContained, OutcomeUnavailable}
		names := map[string]bool{}
		for _, p := range probes {
			if !slices.Contains(known, p.Outcome) || p.Detail == "" || p.Wall == "" || names[p.Name] {
				t.Errorf("%s (%s): %s: %s", p.Name, p.Wall, p.Outcome, p.Detail)
			}
			names[p.Name] = true
		}
	})
}

// Not parallel: files are counted on the whole file system, and those that one
// check removes would hide those that another makes.
func TestManyFiles(t *testing.T) {
	only := []string{"many-files", "files-of-many-commands"}
	for _, kind := range walls() {
		s := boxOf(t, kind)
		for _, p := range outcomes(t, s, s.Runner, only) {
			if p.Outcome != OutcomeContained {
				t.Errorf("%s: %s: %s: %s", kind, p.Name, p.Outcome, p.Detail)
			}
		}
	}
	s := box(t)
	runner := func(spec Spec) (Runner, error) { spec.Limits.NewFiles = 1 << 40; return s.Runner(spec) }
	for _, p := range outcomes(t, s, runner, only) {
		if p.Outcome != OutcomeEscaped {
			t.Errorf("%s without a limit: %s: %s", p.Name, p.Outcome, p.Detail)
		}
	}
}

// removals are walls that are left out, and the attempts that must get through
// then: each proves that its attempt fails because of that wall. Those after a
// question mark need something of the machine that not every one has, and must
// get through where they do without any wall.
var removals = map[string]string{
	"network": "tcp-loopback udp-loopback ? tcp6-loopback route-outside route6-outside tcp-outside metadata-service dns interfaces abstract-socket",
	"processes": "arguments-of-process arguments-of-all signal signal-group signal-thread signal-by-descriptor signal-by-owner signal-by-socket signal-queued signal-daemon " +
		"signal-helper limits-of-process list survivor-session survivor-double-fork survivor-reaper survivor-shell-chain survivor-comets",
	"mounts": "read-data list-data symlink-to-file symlink-to-directory symlink-chain dot-dot read-tmp watch-data truncate-data remove-data chmod-data " +
		"chmod-by-link touch-data write-data write-by-link write-beside write-tmp write-shm unix-socket unix-datagram unix-pair-datagram unix-pair-raw mode-of-device " +
		"? read-home attribute-data attribute-names mode-of-program write-passwd read-shadow private-keys kernel-settings core-pattern sys-write cgroup-write " +
		"preload-file write-programs write-root ssh-agent services kernel-tables last-to-be-killed",
	"calls":        "own-program own-program-made group-program own-program-nameless file-lease asynchronous-io semaphores messages space-without-a-name keyring key-add memfd shared-segment other-families user-namespace ? large-attribute io-uring host-of-the-machine crypto-socket perf",
	"rights":       "capabilities capability-taken",
	"ipc":          "segment-of-memory",
	"rights,calls": "mount-namespace process-namespace network-namespace unshare chroot",
	"users,rights,calls": "? bpf handle make-device raw-socket packet-socket userfaultfd reboot swap accounting log clock watch-all-files host-name " +
		"mount mount-bind mount-new mount-copy pivot-root become-another join-group priority raise-limit module kexec",
}

// bare are attempts that must get through where there is no wall at all, if
// they are root's: several walls at once keep them from it elsewhere.
const bareOnly = "signals-that-wait descriptors-on-their-way proc-root proc-cwd proc-fd run-tool hard-link move-in git-hook git-fsmonitor git-attributes git-objects git-head " +
	"git-file-written git-file-replaced git-file-moved git-file-in-background environment-of-process environment-of-all memory-file memory-read memory-write trace take-descriptor " +
	"priority-of-process schedule-of-process survivor-session survivor-double-fork " +
	"? watchers-of-files own-data flags-of-given version-of-given project-of-given seal-given device-memory raw-disk kernel-log join-namespace programs-of-owners"

// unproved are attempts that no test of ours gets through, and why.
var unproved = map[string]string{
	"stat-data":              "is never more than contained",
	"proc-init-root":         "the machine's first process is out of reach for most roots, too",
	"environment-of-init":    "the same",
	"trace-helper":           "a wall of its own: it is not dumpable",
	"environment-of-parent":  "the parent outside is this test, which holds no canary",
	"sysrq":                  "not in every kernel",
	"kernel-memory":          "not in every kernel",
	"descriptors-inherited":  "TestDescriptors",
	"terminal":               "tests have no terminal",
	"terminal-input":         "tests have no terminal",
	"name-lookup":            "needs a server that answers; dns is the same way",
	"other-calls":            "not in every kernel",
	"core-dumps":             "whoever starts the tests may have switched them off",
	"wall-time":              "TestTimeoutKillsTree",
	"time-of-check":          "a race that is rarely won",
	"survivor-background":    "in the group, which ends without walls as well",
	"survivor-stubborn":      "the same",
	"survivor-stopped":       "the same",
	"shm-filler":             "see tmp-filler",
	"many-files":             "TestManyFiles",
	"files-of-many-commands": "TestManyFiles",
	"control-groups":         "tells who keeps the limits that others attack",
}

func parts(list string) (always, possible []string) {
	a, b, _ := strings.Cut(list, "?")
	return strings.Fields(a), strings.Fields(b)
}

func TestEveryWallIsNeeded(t *testing.T) {
	t.Parallel()
	s := box(t)
	if os.Getuid() != 0 {
		t.Skip("only root gets everywhere without walls")
	}
	if !apart(t) {
		return
	}
	var inside []string
	for _, a := range attempts() {
		if a.outside == nil {
			inside = append(inside, a.name)
		}
	}
	none := outcomes(t, s, func(spec Spec) (Runner, error) { return Unconfined(spec), nil }, append(inside, "survivor-session", "survivor-double-fork", "git-file-in-background"))
	proved := unlimited(t, s)
	demand := func(t *testing.T, got map[string]Probe, list string, all bool) {
		always, possible := parts(list)
		for _, name := range slices.Concat(always, possible) {
			if got[name].Outcome == OutcomeEscaped {
				proved[name] = true
			} else if slices.Contains(always, name) || all && none[name].Outcome == OutcomeEscaped {
				t.Errorf("%s: %s: %s", name, got[name].Outcome, got[name].Detail)
			}
		}
	}
	demand(t, none, bareOnly, false)
	for walls, list := range removals {
		less := *s
		less.without = map[string]bool{}
		for w := range strings.SplitSeq(walls, ",") {
			less.without[w] = true
		}
		always, possible := parts(list)
		t.Run("without "+walls, func(t *testing.T) { // not parallel: they share what is proved
			demand(t, outcomes(t, &less, less.Runner, slices.Concat(always, possible)), list, walls != "network" && walls != "mounts")
		})
	}
	for _, a := range attempts() {
		if _, excused := unproved[a.name]; !proved[a.name] && !excused && none[a.name].Outcome == OutcomeEscaped {
			t.Errorf("%s: no wall is known to stop it", a.name)
		} else if !proved[a.name] && !excused && a.outside != nil {
			t.Errorf("%s: never seen to get through", a.name)
		}
	}
}

// unlimited makes the attempts at the limits without any, and those at what a
// command is told with something told.
func unlimited(t *testing.T, s *Sandbox) map[string]bool {
	t.Helper()
	huge := Limits{CPU: time.Hour, Memory: 1 << 40, Processes: 1 << 20, FileSize: 1 << 40, OpenFiles: 8192, Disk: 1 << 40, NewFiles: 1 << 40, Output: 1 << 40}
	names := []string{"fork-bomb", "fork-bomb-sessions", "threads", "memory-of-one", "memory-of-many", "memory-of-tables", "memory-of-nobody", "processor", "processor-of-many", "processor-of-nobody", "descriptors", "big-file",
		"sparse-file", "disk-filler", "disk-of-nobody", "output-flood", "tmp-filler"}
	proved := map[string]bool{}
	demand := func(got map[string]Probe) {
		for name, p := range got {
			proved[name] = p.Outcome == OutcomeEscaped
			if !proved[name] {
				t.Errorf("%s without its wall: %s: %s", name, p.Outcome, p.Detail)
			}
		}
	}
	demand(outcomes(t, s, func(spec Spec) (Runner, error) { spec.Limits = huge; return s.Runner(spec) }, names))
	told := os.Environ()
	slices.SortFunc(told, func(a, b string) int { return len(b) - len(a) })
	demand(outcomes(t, s, func(spec Spec) (Runner, error) {
		spec.Env = maps.Clone(spec.Env)
		for _, kv := range told {
			if name, value, _ := strings.Cut(kv, "="); len(value) > 3 && !strings.ContainsAny(value, "\x00") && name != "PATH" && name != "PWD" && name != "TMPDIR" {
				spec.Env[name] = value
			}
		}
		spec.Env["BASH_ENV"] = "/nowhere"
		return s.Runner(spec)
	}, []string{"environment", "preload"}))
	scratch := t.TempDir()
	demand(outcomes(t, s, func(spec Spec) (Runner, error) { spec.Scratch = scratch; return Unconfined(spec), nil }, []string{"startup-files"}))
	return proved
}

func TestChooseRefuses(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Prefer: "no such"}, {Prefer: KindContainer}, {Prefer: KindContainer, Engine: "/no/such/engine"}} {
		if s, err := Choose(t.Context(), o); err == nil {
			t.Errorf("%+v: %s", o, s.Kind())
		}
	}
}

// A program that cannot be a helper has none: it would run itself once more.
func TestNoHelperUnasked(t *testing.T) {
	helping.Store(false)
	defer helping.Store(true)
	for _, kind := range []string{KindNamespaces, KindLandlock} {
		if _, err := Choose(t.Context(), Options{Prefer: kind}); err == nil || !strings.Contains(err.Error(), errNoHelper.Error()) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := (&Sandbox{kind: KindBwrap}).Check(t.Context()); !errors.Is(err, errNoHelper) {
		t.Error(err)
	}
}
