package workspace

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"toritsugi/internal/i18n"
)

// Bounds of a patch. What is beyond is refused before it is read.
const (
	MaxPatch      = 8 << 20 // bytes
	maxPatchFiles = 1000
	maxPatchPath  = 1 << 10  // bytes of a path
	maxBinary     = 64 << 20 // bytes that the binary files of a patch say they have
)

// Patch is a unified diff as it was proposed: parsed and judged, and never rewritten.
// What git makes of it is compared with what was parsed (see Trial).
type Patch struct {
	Raw    []byte // must not be changed
	SHA256 string // of Raw, in hex
	Files  []PatchFile
}

// PatchAction is what a patch does to a file.
type PatchAction string

// The actions.
const (
	PatchCreate PatchAction = "create"
	PatchModify PatchAction = "modify"
	PatchDelete PatchAction = "delete"
	PatchRename PatchAction = "rename"
	PatchCopy   PatchAction = "copy"
	PatchMode   PatchAction = "mode" // its mode and nothing else
)

// PatchFile is what a patch does to one file.
type PatchFile struct {
	Path           string // after it; of a deleted file before
	From           string // where a renamed or copied file came from, else ""
	Action         PatchAction
	Added, Removed int    // lines
	OldMode        string // as git writes it, "" where the patch does not say
	NewMode        string
	OldID          string // what its header says that it is before, "" for nothing or a part
	Binary         bool
	NewText        string // its added lines, without their sign
	OldText        string // its removed lines, without their sign
}

// Link reports whether it is a symbolic link, before or after.
func (f PatchFile) Link() bool { return f.OldMode == ModeLink || f.NewMode == ModeLink }

// ParsePatch parses a patch and refuses what is never applied, with an *i18n.Error:
// beyond the bounds, malformed, or of paths and modes that have no place in a
// repository's tree. The patch keeps raw.
func ParsePatch(raw []byte) (*Patch, error) {
	if len(raw) > MaxPatch {
		return nil, i18n.E("workspace.patch_large", len(raw)>>10, MaxPatch>>10)
	}
	text, heads, err := prescan(raw)
	if err != nil {
		return nil, err
	}
	files, preamble, err := gitdiff.Parse(bytes.NewReader(text))
	switch {
	case err != nil:
		return nil, cmp.Or(stray(text), error(i18n.E("workspace.patch_syntax", err)))
	case len(files) == 0 || strings.TrimSpace(preamble) != "":
		return nil, i18n.E("workspace.patch_none")
	case heads != 0 && heads != len(files):
		return nil, i18n.E("workspace.patch_mixed")
	}
	p := &Patch{Raw: raw, Files: make([]PatchFile, 0, len(files))}
	sum := sha256.Sum256(raw)
	p.SHA256 = hex.EncodeToString(sum[:])
	seen := map[string]PatchAction{}
	signs := [2]int{} // lines that begin with + and -
	for _, f := range files {
		one, err := patchFile(f, heads == 0)
		if err != nil {
			return nil, err
		}
		for _, name := range []string{one.Path, one.From} {
			if name == "" || one.Action == PatchCopy && name == one.From {
				continue
			}
			// A file that becomes a link goes and comes.
			if before, is := seen[name]; is && (before != PatchDelete || one.Action != PatchCreate) {
				return nil, i18n.E("workspace.patch_twice", name)
			}
			seen[name] = one.Action
		}
		if signs[0], signs[1] = signs[0]+one.Added, signs[1]+one.Removed; len(f.TextFragments) > 0 {
			signs[0], signs[1] = signs[0]+1, signs[1]+1 // its header
		}
		p.Files = append(p.Files, one)
	}
	// A line behind a hunk is shown to whoever approves, and git passes over it.
	if countLines(text, '+') != signs[0] || countLines(text, '-') != signs[1] {
		return nil, cmp.Or(stray(text), error(i18n.E("workspace.patch_loose")))
	}
	return p, nil
}

// stray names the first line of a hunk that has not the form of one, nil where each has: with
// it the hunk ends too early, which would be told as something else.
func stray(text []byte) error {
	within, n := false, 0
	for line := range bytes.Lines(text) {
		n++
		switch line = bytes.TrimRight(line, "\r\n"); {
		case bytes.HasPrefix(line, []byte("diff --git ")):
			within = false
		case hunkHead().Match(line):
			within = true
		case within && len(line) > 0 && !bytes.ContainsAny(line[:1], ` +-\`):
			return i18n.E("workspace.patch_line", n, shorten(string(line)))
		}
	}
	return nil
}

// prescan bounds what the parser reads, and returns the patch without the content of
// binary files, which the parser would unpack whatever its size, and how many files
// have git's header.
func prescan(raw []byte) (text []byte, heads int, err error) {
	text = make([]byte, 0, len(raw))
	files, binary := 0, 0
	lines := bytes.SplitAfter(raw, []byte("\n"))
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		head := bytes.HasPrefix(line, []byte("diff --git "))
		if head || bytes.HasPrefix(line, []byte("--- ")) {
			if files++; len(line) > 2*maxPatchPath+64 {
				return nil, 0, i18n.E("workspace.patch_path", shorten(string(line)), maxPatchPath)
			}
		}
		if head {
			heads++
		}
		if files > 2*maxPatchFiles || heads > maxPatchFiles {
			return nil, 0, i18n.E("workspace.patch_files", maxPatchFiles)
		}
		if string(line) != "GIT binary patch\n" {
			text = append(text, line...)
			continue
		}
		text = append(text, "Binary files differ\n"...)
		for {
			size, ok := binarySize(lines, i+1)
			if !ok {
				break
			}
			if binary += size; binary > maxBinary {
				return nil, 0, i18n.E("workspace.patch_binary", maxBinary>>20)
			}
			i++
			for i+1 < len(lines) && string(lines[i]) != "\n" { // the data of one block, and the empty line behind it
				i++
			}
		}
	}
	return text, heads, nil
}

// binarySize reads the head of a block of a binary file, "literal N" or "delta N".
func binarySize(lines [][]byte, at int) (int, bool) {
	if at >= len(lines) {
		return 0, false
	}
	word, n, _ := strings.Cut(strings.TrimSuffix(string(lines[at]), "\n"), " ")
	if word != "literal" && word != "delta" {
		return 0, false
	}
	size, err := strconv.Atoi(n)
	if err != nil || size < 0 || size > maxBinary {
		size = maxBinary + 1
	}
	return size, true
}

// countLines counts the lines that begin with a sign.
func countLines(text []byte, sign byte) int {
	n := bytes.Count(text, []byte{'\n', sign})
	if len(text) > 0 && text[0] == sign {
		n++
	}
	return n
}

// patchFile judges one file. plain says that the patch has no headers of git's, so
// that the first part of each path is still there.
func patchFile(f *gitdiff.File, plain bool) (PatchFile, error) {
	from, to := f.OldName, f.NewName
	if plain {
		for _, name := range []string{from, to} {
			if name != "" && !strings.Contains(name, "/") {
				return PatchFile{}, i18n.E("workspace.patch_prefix", shorten(name))
			}
		}
		from, to = stripFirst(from), stripFirst(to)
	}
	one := PatchFile{Path: to, Action: PatchModify, Binary: f.IsBinary, OldMode: modeText(uint32(f.OldMode)), NewMode: modeText(uint32(f.NewMode))}
	if isID(f.OldOIDPrefix) {
		one.OldID = f.OldOIDPrefix
	}
	switch {
	case f.IsNew:
		one.Action = PatchCreate
	case f.IsDelete:
		one.Path, one.Action = from, PatchDelete
	case f.IsRename:
		one.From, one.Action = from, PatchRename
	case f.IsCopy:
		one.From, one.Action = from, PatchCopy
	case from != to:
		return one, i18n.E("workspace.patch_names", shorten(from), shorten(to))
	case len(f.TextFragments) == 0 && !f.IsBinary && one.NewMode != "":
		one.Action = PatchMode
	}
	for _, name := range []string{one.Path, one.From} {
		if name == "" && one.Action != PatchRename && one.Action != PatchCopy && one.Path != "" {
			continue
		}
		if err := patchPath(name, one.Link()); err != nil {
			return one, err
		}
	}
	for _, mode := range []string{one.OldMode, one.NewMode} {
		switch mode {
		case "", ModeFile, ModeProgram, ModeLink:
		case ModeSubmodule:
			return one, i18n.E("workspace.patch_submodule", one.Path)
		default:
			return one, i18n.E("workspace.patch_mode", one.Path, mode)
		}
	}
	var added, removed strings.Builder
	for _, h := range f.TextFragments {
		for _, l := range h.Lines {
			switch l.Op {
			case gitdiff.OpAdd:
				one.Added++
				added.WriteString(l.Line)
			case gitdiff.OpDelete:
				one.Removed++
				removed.WriteString(l.Line)
			case gitdiff.OpContext:
			}
		}
	}
	one.NewText, one.OldText = added.String(), removed.String()
	return one, nil
}

// stripFirst takes the first part off a path, as git apply -p1 does.
func stripFirst(name string) string {
	_, rest, _ := strings.Cut(name, "/")
	return rest
}

// modeText is a mode as git writes it, "" for none.
func modeText(mode uint32) string {
	if mode == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(mode), 8)
}

// patchPath refuses a path that is not one of a file in the tree, or that nobody who
// approves can read.
func patchPath(name string, link bool) error {
	if len(name) > maxPatchPath {
		return i18n.E("workspace.patch_path", shorten(name), maxPatchPath)
	}
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return i18n.E("workspace.patch_unreadable", readable(name))
	}
	if path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") {
		return i18n.E("workspace.patch_outside", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if refusedName(part, link) {
			return i18n.E("workspace.patch_git", name)
		}
	}
	return nil
}

// shorten is the beginning of a text, for an error.
func shorten(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return readable(strings.ToValidUTF8(s, "\uFFFD"))
}
