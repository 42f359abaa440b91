package workspace

import (
	"fmt"
	"strconv"
	"strings"

	"toritsugi/internal/i18n"
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
	Nested     Kind = "nested"    // a git repository inside the tree: not part of what is committed
	Large      Kind = "large"     // a file that is too large: not part of what is committed
	NotTaken   Kind = "not_taken" // a path that git does not take: not part of what is committed
)

// Change is one changed file. Path is relative to the top level, with slashes,
// and is not quoted: it may hold spaces and newlines.
type Change struct {
	Path string
	Kind Kind
}

// changes are what git says, in bounded memory: a tree may have millions of paths,
// each of 4 KiB.
type changes struct {
	all  []Change
	size int // bytes that all takes, about
}

// maxChanges is what changes may take, in bytes.
const maxChanges = 256 << 20

func (c *changes) add(path string, kind Kind) error {
	if c.size += len(path) + 64; c.size > maxChanges {
		return i18n.E("workspace.too_many_changes", len(c.all), readable(path))
	}
	c.all = append(c.all, Change{path, kind})
	return nil
}

func itoa(n int) string { return strconv.Itoa(n) }

// statusParser reads git status --porcelain=v2 -z (git-status(1)), record by
// record. Renames are asked not to be found, and are read as what became of
// the new path.
type statusParser struct {
	changes
	skip bool // the next record is the path before a rename
}

func (p *statusParser) record(rec []byte) error {
	if p.skip || len(rec) == 0 {
		p.skip = false
		return nil
	}
	var fields int // before the path
	switch rec[0] {
	case '#', '!':
		return nil
	case '?':
		fields = 1
	case '1':
		fields = 8
	case '2':
		fields, p.skip = 9, true
	case 'u':
		fields = 10
	default:
		return fmt.Errorf("git status: record %q", rec)
	}
	parts := strings.SplitN(string(rec), " ", fields+1)
	if len(parts) != fields+1 || parts[fields] == "" {
		return fmt.Errorf("git status: record %q", rec)
	}
	kind := Untracked
	switch rec[0] {
	case '?':
	case 'u':
		kind = Unmerged
	default:
		if len(parts[1]) != 2 {
			return fmt.Errorf("git status: record %q", rec)
		}
		kind = kindOf(parts[1])
	}
	return p.add(parts[fields], kind)
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

// rawParser reads git diff-tree -r -z --raw --no-abbrev --no-renames: modes, ids
// and a letter, and a path, in turn (gitformat "raw output format").
type rawParser struct {
	changes
	links []Entry // those that are submodules now
	kind  Kind    // of the path that follows, "" before its modes
	link  string  // the commit where it is a submodule
}

func (p *rawParser) record(rec []byte) error {
	if p.kind != "" {
		path := string(rec)
		err := p.add(path, p.kind)
		if p.link != "" {
			p.links = append(p.links, Entry{ModeSubmodule, p.link, path})
		}
		p.kind, p.link = "", ""
		return err
	}
	fields := strings.Split(string(rec), " ") // :mode mode id id letter
	if len(fields) != 5 || !strings.HasPrefix(fields[0], ":") {
		return fmt.Errorf("git diff-tree: record %.200q", rec)
	}
	switch fields[4] {
	case "A":
		p.kind = Added
	case "D":
		p.kind = Deleted
	case "M":
		p.kind = Modified
	case "T":
		p.kind = TypeChange
	default:
		return fmt.Errorf("git diff-tree: status %.200q", fields[4])
	}
	if fields[1] == ModeSubmodule {
		p.link = fields[3]
	}
	return nil
}

// maxShown is how many files a short text lists.
const maxShown = 200

// ShortText lists changes one per line for a person or a model, with a letter
// as git status --short has it, and says how many were left out.
func ShortText(changes []Change) string {
	letters := map[Kind]string{Added: "A", Modified: "M", Deleted: "D", TypeChange: "T", Unmerged: "U", Untracked: "?", Nested: "!", Large: "!", NotTaken: "!"}
	var b strings.Builder
	for i, c := range changes {
		if i == maxShown {
			fmt.Fprintf(&b, "… and %d more\n", len(changes)-i)
			break
		}
		b.WriteString(letters[c.Kind] + " " + readable(c.Path))
		switch c.Kind {
		case Nested:
			b.WriteString(" (a git repository of its own: not part of the commit)")
		case Large:
			b.WriteString(" (too large: not part of the commit)")
		case NotTaken:
			b.WriteString(" (git takes no such path: not part of the commit)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
