// Package folder is the forge that needs no server: an issue is a Markdown
// file, its comments are in the file beside it, and people edit both by hand.
// It reads them with limits; it writes comments, and labels in front matter.
package folder

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// maxIssue is the longest issue file, in bytes.
const maxIssue = 1 << 20

// Issue is one issue as its file says it.
type Issue struct {
	ID     string // fit for a task key: letters, digits, ".", "_" and "-"
	Title  string // one line, not empty
	Author string // "" where the file does not say
	Labels []string
	Body   string // without front matter, LF line ends, trimmed
	Path   string // absolute
}

// ReadIssue reads the issue at path. Front matter in YAML
// (id, title, author, labels) is optional; without it the id comes from the
// file's name and the title from the first heading or line. A byte order mark
// and CRLF are accepted. Every refusal is an i18n error that names the file.
func ReadIssue(path string) (*Issue, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, commentsSuffix) {
		return nil, i18n.E("folder.is_comments", path)
	}
	if strings.HasSuffix(path, progressSuffix) {
		return nil, i18n.E("folder.is_progress", path)
	}
	data, err := readIn(path)
	if err != nil {
		return nil, err
	}
	return parseIssue(path, abs, data)
}

// parseIssue reads an issue from the bytes of its file; path is for errors.
func parseIssue(path, abs string, data []byte) (*Issue, error) {
	data = bytes.TrimPrefix(data, []byte(mark))
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, i18n.E("folder.not_utf8", path)
	}
	text := lf(string(data))
	issue := &Issue{Path: abs}
	body, err := issue.frontMatter(path, text)
	if err != nil {
		return nil, err
	}
	issue.Body = trimText(body)
	if issue.Body == "" {
		return nil, i18n.E("folder.empty", path)
	}
	if issue.Title == "" {
		issue.Title = titleOf(issue.Body)
	}
	if issue.ID == "" {
		issue.ID = idOfName(filepath.Base(abs))
	}
	return issue, nil
}

// mark is what some editors put at the start of a file.
const mark = "\uFEFF"

// readIn reads a whole issue file. A link is none, whoever named it: in a checkout
// a stranger made it, and what it leads to would be sent to a model.
func readIn(path string) ([]byte, error) {
	b, err := besideOf(path)
	if err != nil {
		return nil, unread(path, err)
	}
	defer b.close()
	f, err := disk.OpenIn(b.dir, b.name, os.O_RDONLY)
	if err != nil {
		return nil, unread(path, err)
	}
	defer func() { _ = f.Close() }() // only read from
	data, err := disk.ReadAll(f, path, maxIssue)
	return data, unread(path, err)
}

// unread is the error of an issue file that cannot be read.
func unread(path string, err error) error {
	switch large := new(disk.TooLargeError); {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return i18n.E("folder.missing", path)
	case errors.Is(err, disk.ErrNotPlain), errors.Is(err, disk.ErrLink):
		return i18n.E("folder.not_file", path)
	case errors.As(err, &large):
		return i18n.E("folder.too_large", path, large.Most>>20)
	}
	return i18n.E("folder.unreadable", path, err)
}

func lf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// trimText drops blank lines at both ends and white space at the very end; the
// indentation of the first line means something in Markdown and stays.
func trimText(s string) string {
	s = strings.TrimRightFunc(s, unicode.IsSpace)
	for {
		first, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimSpace(first) != "" {
			return s
		}
		s = rest
	}
}

// titleOf is the first top-level heading outside code, or else the first line
// that says something.
func titleOf(body string) string {
	first, fence := "", ""
	for l := range strings.SplitSeq(body, "\n") {
		t := strings.TrimSpace(l)
		if fence != "" {
			if strings.HasPrefix(t, fence) {
				fence = ""
			}
			continue
		}
		if strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") {
			fence = t[:3]
			continue
		}
		if h, ok := strings.CutPrefix(l, "# "); ok {
			if h = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(h), "#")); h != "" {
				return h
			}
		}
		if first == "" {
			first = strings.TrimSpace(strings.TrimLeft(t, "#"))
		}
	}
	if first == "" { // nothing but code
		first, _, _ = strings.Cut(strings.TrimSpace(body), "\n")
	}
	return first
}

// idOfName gives the number that a file's name begins with (12 of
// "12-fix-x.md"), or else the name without its extension.
func idOfName(base string) string {
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if name == "" {
		name = base
	}
	digits := name[:len(name)-len(strings.TrimLeft(name, "0123456789"))]
	if rest := name[len(digits):]; digits != "" && (rest == "" || strings.ContainsAny(rest[:1], "-_. ")) {
		return digits
	}
	return cleanID(name)
}

// maxID is the length of an id in bytes.
const maxID = 100

// cleanID makes an id fit for a task key, which is shown as owner/repo#id and
// becomes part of branch names.
func cleanID(s string) string {
	id := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, s)
	if len(id) > maxID {
		cut := maxID
		for !utf8.RuneStart(id[cut]) {
			cut--
		}
		id = id[:cut]
	}
	if id = strings.Trim(id, "-."); id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(s))
	return "issue-" + hex.EncodeToString(sum[:4])
}

// CommentsPath is the file beside the issue that holds its comments:
// "12-fix.comments.md" for "12-fix.md".
func CommentsPath(issue string) string {
	return strings.TrimSuffix(issue, filepath.Ext(filepath.Base(issue))) + commentsSuffix
}

// problem is a front matter error: file and line, and what is wrong there.
func problem(path string, lineNo int, key string, args ...any) error {
	return i18n.E("folder.front_matter", path, lineNo, i18n.E(key, args...))
}
