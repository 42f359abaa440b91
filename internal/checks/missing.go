package checks

import (
	"regexp"
	"slices"
	"strings"
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
	{"program", "executable file not found", pattern(`exec: "([^"]+)": executable file not found`)},
	{"program", "not found", pattern(`(?:^|[\s:;])([\w./+-]+): (?:command )?not found$`)},
	{"program", "no such file", pattern(`FileNotFoundError: \[Errno 2\] No such file or directory: '([\w.+-]+)'`)},
	{"program", "enoent", pattern(`spawn (\S+) ENOENT`)},
	{"module", "no module named", pattern(`No module named '?([\w.]+)'?`)},
	{"module", "cannot find", pattern(`Cannot find (?:module|package) '([^'./][^']*)'`)},
	{"module", "module provid", pattern(`(?:no required module provides|missing go\.sum entry for module providing|cannot find module providing) package ([^\s;:]+)`)},
	{"module", "@v", pattern(`([\w.~/-]+)@v[\w.+-]+: (?:missing go\.sum entry|module lookup disabled|Get "|reading )`)},
	{"module", "as a dependency", pattern("failed to get `([^`]+)` as a dependency")},
	{"module", "no matching package", pattern("no matching package named `([^`]+)`")},
	{"module", "artifact", pattern(`(?:Could not find artifact|could not be resolved:|artifact descriptor for|dependencies at|offline mode and the artifact) [\w.-]+:([\w.-]+)`)},
	{"module", "could not", pattern(`Could not (?:find|resolve) [\w.-]+:([\w.-]+):`)},
	{"module", "could not find", pattern(`Could not find gem '([\w-]+)`)},
	{"module", "could not find", pattern(`Could not find ([\w-]+)-\d[^\s,]*(?:,| in )`)},
	{"module", "can't find crate", pattern("can't find crate for `([^`]+)`")},
	{network, "network", pattern(`(?i)\bnetwork is unreachable\b`)},
	{network, "no such host", pattern(`(?i)\bno such host\b`)},
	{network, "name", pattern(`(?i)temporary failure in name resolution|name or service not known|could not resolve host`)},
	{network, "getaddrinfo", pattern(`getaddrinfo (?:ENOTFOUND|EAI_AGAIN)`)},
	{network, "server misbehaving", pattern(`lookup \S+.*: server misbehaving`)},
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
