package checks

import (
	"regexp"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// maxMissing is how many things that are not there a Summary names.
const maxMissing = 50

// network is what stands for a network that is not to be had.
const network = "network"

// missing find what a test needs and does not find, which is no doing of the
// code that it tests: a program, a module, the network.
var missing = []struct {
	kind string
	stem string // what every match holds, in lower case
	find func() *regexp.Regexp
}{
	{"program", "executable file not found", lazyregexp.New(`exec: "([^"]+)": executable file not found`)},
	{"program", "not found", lazyregexp.New(`(?:^|[\s:;])([\w./+-]+): (?:command )?not found$`)},
	{"program", "no such file", lazyregexp.New(`FileNotFoundError: \[Errno 2\] No such file or directory: '([\w.+-]+)'`)},
	{"program", "enoent", lazyregexp.New(`spawn (\S+) ENOENT`)},
	{"module", "no module named", lazyregexp.New(`No module named '?([\w.]+)'?`)},
	{"module", "cannot find", lazyregexp.New(`Cannot find (?:module|package) '([^'./][^']*)'`)},
	{"module", "module provid", lazyregexp.New(`(?:no required module provides|missing go\.sum entry for module providing|cannot find module providing) package ([^\s;:]+)`)},
	{"module", "@v", lazyregexp.New(`([\w.~/-]+)@v[\w.+-]+: (?:missing go\.sum entry|module lookup disabled|Get "|reading )`)},
	{"module", "as a dependency", lazyregexp.New("failed to get `([^`]+)` as a dependency")},
	{"module", "no matching package", lazyregexp.New("no matching package named `([^`]+)`")},
	{"module", "artifact", lazyregexp.New(`(?:Could not find artifact|could not be resolved:|artifact descriptor for|dependencies at|offline mode and the artifact) [\w.-]+:([\w.-]+)`)},
	{"module", "could not", lazyregexp.New(`Could not (?:find|resolve) [\w.-]+:([\w.-]+):`)},
	{"module", "could not find", lazyregexp.New(`Could not find gem '([\w-]+)`)},
	{"module", "could not find", lazyregexp.New(`Could not find ([\w-]+)-\d[^\s,]*(?:,| in )`)},
	{"module", "can't find crate", lazyregexp.New("can't find crate for `([^`]+)`")},
	{network, "network", lazyregexp.New(`(?i)\bnetwork is unreachable\b`)},
	{network, "no such host", lazyregexp.New(`(?i)\bno such host\b`)},
	{network, "name", lazyregexp.New(`(?i)temporary failure in name resolution|name or service not known|could not resolve host`)},
	{network, "getaddrinfo", lazyregexp.New(`getaddrinfo (?:ENOTFOUND|EAI_AGAIN)`)},
	{network, "server misbehaving", lazyregexp.New(`lookup \S+.*: server misbehaving`)},
}

// Missing names what a line says is not there, "program docker" or "network"; ""
// where it says nothing of the kind.
func Missing(line string) string {
	low := strings.ToLower(line)
	for _, m := range missing {
		if !strings.Contains(low, m.stem) {
			continue
		}
		found := m.find().FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case found == nil:
		case len(found) == 1:
			return m.kind
		default:
			return m.kind + " " + clip(found[1], 100)
		}
	}
	return ""
}

// Missing is what the failure says is not there, "" for nothing.
func (f Failure) Missing() string {
	if what := Missing(f.Message); what != "" {
		return what
	}
	for line := range strings.Lines(f.Excerpt) {
		if what := Missing(line); what != "" {
			return what
		}
	}
	return ""
}

func addMissing(all []string, what string) []string {
	if i, found := slices.BinarySearch(all, what); what != "" && !found && len(all) < maxMissing {
		all = slices.Insert(all, i, what)
	}
	return all
}
