package workspace

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind says what happened to a file.
type Kind string

// The kinds of change.
const (
	Added      Kind = "added"
	Modified   Kind = "modified"
	Deleted    Kind = "deleted"
	TypeChange Kind = "type" // file, link or submodule became another of them
	Unmerged   Kind = "unmerged"
	Untracked  Kind = "untracked"
	Nested     Kind = "nested" // a git repository inside the tree: not part of what is committed
)

// Change is one changed file. Path is relative to the top level, with slashes,
// and is not quoted: it may hold spaces and newlines.
type Change struct {
	Path string
	Kind Kind
}

func itoa(n int) string { return strconv.Itoa(n) }

// parseStatus reads git status --porcelain=v2 -z (git-status(1)). Renames are
// asked not to be found, and are read as what became of the new path.
func parseStatus(out string) ([]Change, error) {
	var all []Change
	records := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i < len(records); i++ {
		r := records[i]
		if r == "" {
			continue
		}
		var c Change
		var fields int // before the path
		switch r[0] {
		case '#', '!':
			continue
		case '?':
			fields = 1
		case '1':
			fields = 8
		case '2':
			fields = 9
			i++ // the path before the rename
		case 'u':
			fields = 10
		default:
			return nil, fmt.Errorf("git status: record %q", r)
		}
		parts := strings.SplitN(r, " ", fields+1)
		if len(parts) != fields+1 || parts[fields] == "" {
			return nil, fmt.Errorf("git status: record %q", r)
		}
		c.Path = parts[fields]
		switch r[0] {
		case '?':
			c.Kind = Untracked
		case 'u':
			c.Kind = Unmerged
		default:
			if len(parts[1]) != 2 {
				return nil, fmt.Errorf("git status: record %q", r)
			}
			c.Kind = kindOf(parts[1])
		}
		all = append(all, c)
	}
	return all, nil
}

// kindOf joins what the index and what the tree say about one file: the tree
// has the last word, except that a new file that was edited is still new.
func kindOf(xy string) Kind {
	switch {
	case xy[1] == 'D':
		return Deleted
	case xy[0] == 'A' || xy[0] == 'R' || xy[0] == 'C' || xy[1] == 'A':
		return Added
	case xy[0] == 'D':
		return Deleted
	case strings.Contains(xy, "T"):
		return TypeChange
	}
	return Modified
}

// parseNameStatus reads git diff --name-status -z --no-renames.
func parseNameStatus(out string) ([]Change, error) {
	var all []Change
	parts := strings.Split(out, "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		c := Change{Path: parts[i+1]}
		switch parts[i] {
		case "A":
			c.Kind = Added
		case "D":
			c.Kind = Deleted
		case "M":
			c.Kind = Modified
		case "T":
			c.Kind = TypeChange
		default:
			return nil, fmt.Errorf("git diff: status %q of %q", parts[i], c.Path)
		}
		all = append(all, c)
	}
	return all, nil
}

// maxShown is how many files a short text lists.
const maxShown = 200

// ShortText lists changes one per line for a person or a model, with a letter
// as git status --short has it, and says how many were left out.
func ShortText(changes []Change) string {
	letters := map[Kind]string{Added: "A", Modified: "M", Deleted: "D", TypeChange: "T", Unmerged: "U", Untracked: "?", Nested: "!"}
	var b strings.Builder
	for i, c := range changes {
		if i == maxShown {
			fmt.Fprintf(&b, "… and %d more\n", len(changes)-i)
			break
		}
		path := c.Path
		if strings.ContainsAny(path, "\n\r\t\"") {
			path = strconv.Quote(path)
		}
		b.WriteString(letters[c.Kind] + " " + path)
		if c.Kind == Nested {
			b.WriteString(" (a git repository of its own: not part of the commit)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
