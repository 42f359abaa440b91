package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Probe is one attempt to break a wall, and what came of it.
type Probe struct {
	Name    string `json:"name"`
	Wall    string `json:"wall"`    // files, git, daemon, processes, network, kernel, rights, limits
	Outcome string `json:"outcome"` // one of the Outcome constants
	Detail  string `json:"detail"`  // in English, one line
}

// What may come of an attempt.
const (
	OutcomeBlocked     = "blocked"     // refused
	OutcomeContained   = "contained"   // done, and of no effect outside
	OutcomeUnavailable = "unavailable" // nothing here to attack, or nothing the kernel could do about it
	OutcomeEscaped     = "escaped"
)

// attempt is how a probe is made. One with inside runs within the sandbox, in
// the helper; with outside it is made of whole commands.
type attempt struct {
	name, wall string
	// inside returns nil when it got through, a *verdictError where something
	// else than a refusal is to be said, and otherwise why it was refused.
	inside func(t *target) error
	// check looks from outside at what came of inside and may correct it.
	check   func(s *stage, p *Probe)
	outside func(s *stage) (outcome, detail string)
	alone   bool // in a process of its own, which it may harm
}

// verdictError is an outcome that is neither blocked nor escaped.
type verdictError struct{ outcome, detail string }

func (v *verdictError) Error() string { return v.detail }

func contained(detail string) error { return &verdictError{OutcomeContained, detail} }

func unavailable(format string, args ...any) error {
	return &verdictError{OutcomeUnavailable, fmt.Sprintf(format, args...)}
}

// target is what the attempts inside are told of the world outside.
type target struct {
	Data      string   `json:"data"` // a directory as the daemon's: holds canary, mode, tool, sock
	Workspace string   `json:"workspace"`
	Given     string   `json:"given"` // a file that can only be read
	GitDir    string   `json:"git_dir"`
	CanarySum string   `json:"canary_sum"` // SHA-256 of the canary: the environment of the probe must not hold it
	Tmp       string   `json:"tmp"`        // a file in the machine's temporary directory that holds the canary
	Home      string   `json:"home"`
	HomeNames []string `json:"home_names"` // what lies there and is nobody else's business
	Victim    int      `json:"victim"`     // a process of the daemon's user
	Address   uint64   `json:"address"`    // of the canary in its memory
	VictimFD  int      `json:"victim_fd"`  // a descriptor of its that reads the canary
	Daemon    int      `json:"daemon"`
	// Descriptors is how many may be on their way in messages: see RLIMIT_NOFILE.
	Descriptors int      `json:"descriptors"`
	TCP         string   `json:"tcp"`
	TCP6        string   `json:"tcp6"`
	UDP         string   `json:"udp"`
	DNS         string   `json:"dns"`
	Abstract    string   `json:"abstract"`
	Sockets     []string `json:"sockets"` // of services of this machine
	Agent       string   `json:"agent"`   // of an ssh agent
	Disks       []string `json:"disks"`
	Handle      []byte   `json:"handle"` // of the canary's file, as open_by_handle_at takes it
	HandleKin   int32    `json:"handle_kind"`
	ShmKey      int      `json:"shm_key"` // of a System V segment that holds the canary
	ID          string   `json:"id"`      // makes names unlike anybody else's
}

// canaryPattern finds canaries, whoever they belong to.
const canaryPattern = `tori-canary-[0-9a-f]{32}`

// canary reports whether b holds the canary.
func (t *target) canary(b []byte) bool {
	for _, m := range regexp.MustCompile(canaryPattern).FindAll(b, -1) {
		sum := sha256.Sum256(m)
		if hex.EncodeToString(sum[:]) == t.CanarySum {
			return true
		}
	}
	return false
}

// got is nil where b, which could be read, holds the canary.
func (t *target) got(b []byte) error {
	if t.canary(b) {
		return nil
	}
	return errNoCanary
}

var errNoCanary = errors.New("read, but what was there is not the daemon's")

// read is an attempt to read the canary.
func (t *target) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if t.canary(b) {
		return nil
	}
	if err != nil {
		return err
	}
	return errNoCanary
}

// write is an attempt to write a new file.
func write(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close())
}

// opened is an attempt to open a file with these flags, and no more.
func opened(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// each is an attempt at the first of these that works. It is unavailable where
// none exists.
func each(paths []string, try func(string) error) error {
	var first error
	for _, p := range paths {
		err := try(p)
		if err == nil {
			return nil
		}
		if first == nil && !errors.Is(err, os.ErrNotExist) {
			first = err
		}
	}
	if first == nil {
		if len(paths) == 0 {
			return unavailable("there is none on this machine")
		}
		return fmt.Errorf("not to be seen: %s", strings.Join(paths, ", "))
	}
	return first
}

// probeVariable carries the target.
const probeVariable = "TORI_PROBE"

// probeInside makes the attempts that args name and prints what came of them, a line for each.
func probeInside(args []string, out io.Writer) error {
	if len(args) > 0 {
		if work, ok := bombs()[args[0]]; ok {
			return work(args[1:])
		}
	}
	var t target
	if err := json.Unmarshal([]byte(os.Getenv(probeVariable)), &t); err != nil {
		return fmt.Errorf("read the target: %w", err)
	}
	if err := os.Chdir(t.Workspace); err != nil {
		return err
	}
	byName := map[string]attempt{}
	for _, a := range attempts() {
		byName[a.name] = a
	}
	e := json.NewEncoder(out)
	for _, name := range args {
		a, ok := byName[name]
		if !ok || a.inside == nil {
			return fmt.Errorf("no attempt %q", name)
		}
		if err := e.Encode(outcomeOf(name, a.inside(&t))); err != nil {
			return err
		}
	}
	return nil
}

func outcomeOf(name string, err error) Probe {
	f := Probe{Name: name, Outcome: OutcomeEscaped, Detail: "it got through"}
	var v *verdictError
	switch {
	case errors.As(err, &v):
		f.Outcome, f.Detail = v.outcome, v.detail
	case err != nil:
		f.Outcome, f.Detail = OutcomeBlocked, err.Error()
	}
	f.Detail = strings.ToValidUTF8(strings.Join(strings.Fields(f.Detail), " "), "?")
	if len(f.Detail) > 300 {
		f.Detail = strings.ToValidUTF8(f.Detail[:300], "") + "…"
	}
	return f
}

// temporary is a name in the workspace that is free.
func (t *target) temporary(name string) string { return filepath.Join(t.Workspace, "probe-"+name) }

// parseFound reads the lines of probeInside.
func parseFound(out []byte) map[string]Probe {
	all := map[string]Probe{}
	for line := range bytes.Lines(out) {
		var f Probe
		if json.Unmarshal(line, &f) == nil && f.Name != "" {
			all[f.Name] = f
		}
	}
	return all
}
