package folder

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

const (
	commentsSuffix = ".comments.md"
	// maxComments is how much of a comments file is read, in bytes from its end.
	maxComments = 4 << 20
)

// Comment is one entry of a comments file.
//
//	## author — 2026-01-02T03:04:05Z
//
//	body
//
//	<!-- tori:marker -->
//
// The marker is ours and ends an entry; people need not write one. Text
// without a heading is a comment of an unknown author. A line of a body that
// looks like a heading or a marker is written with a backslash before it.
type Comment struct {
	Author string    // "" is unknown
	Time   time.Time // second precision, zero is unknown
	Body   string
	Marker string // hidden id of a comment we made, "" for others
}

var (
	headingLine = lazyregexp.New(`^## (.*\S) — ([0-9]{4}-[0-9]{2}-[0-9]{2}T\S+)[ \t]*$`)
	markerLine  = lazyregexp.New(`^<!-- tori:([0-9A-Za-z._-]+) -->[ \t]*$`)
)

// heading reads a separator line.
func heading(l string) (author string, at time.Time, ok bool) {
	m := headingLine().FindStringSubmatch(l)
	if m == nil {
		return "", time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, m[2])
	return m[1], at, err == nil
}

// structural reports whether a line means something to the parser.
func structural(l string) bool {
	_, _, ok := heading(l)
	return ok || markerLine().MatchString(l)
}

// escape and unescape are each other's inverse on every line: the backslashes
// before a structural line are counted, not recognised.
func escape(l string) string {
	if structural(strings.TrimLeft(l, `\`)) {
		return `\` + l
	}
	return l
}

func unescape(l string) string {
	if strings.HasPrefix(l, `\`) && structural(strings.TrimLeft(l, `\`)) {
		return l[1:]
	}
	return l
}

// parseComments splits a comments file. Comments without text are left out,
// unless we made them.
func parseComments(text string) []Comment {
	var all []Comment
	var current Comment
	var body []string
	flush := func() {
		current.Body = trimText(strings.Join(body, "\n"))
		if current.Body != "" || current.Marker != "" {
			all = append(all, current)
		}
		current, body = Comment{}, nil
	}
	for l := range strings.SplitSeq(text, "\n") {
		if author, at, ok := heading(l); ok {
			flush()
			current.Author, current.Time = author, at
		} else if m := markerLine().FindStringSubmatch(l); m != nil {
			current.Marker = m[1]
			flush()
		} else {
			body = append(body, unescape(l))
		}
	}
	flush()
	return all
}

// readComments reads at most the last maxComments bytes of a comments file and
// says how many bytes before them it left out. A missing file has none.
func readComments(path string) (all []Comment, cut int64, err error) {
	b, err := besideOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, i18n.E("folder.unreadable", path, err)
	}
	defer b.close()
	f, err := b.open(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, i18n.E("folder.unreadable", path, err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, i18n.E("folder.unreadable", path, err)
	}
	cut = max(0, st.Size()-maxComments)
	data, err := io.ReadAll(io.NewSectionReader(f, cut, maxComments))
	if err != nil {
		return nil, 0, i18n.E("folder.unreadable", path, err)
	}
	text := lf(strings.ToValidUTF8(strings.TrimPrefix(string(data), "\uFEFF"), "\uFFFD"))
	if cut > 0 {
		text, cut = fromHeading(text, cut)
	}
	return parseComments(text), cut, nil
}

// fromHeading drops the end of a comment whose beginning was cut off, unless
// there is nothing else.
func fromHeading(text string, cut int64) (string, int64) {
	at := 0
	for l := range strings.Lines(text) {
		if _, _, ok := heading(strings.TrimSuffix(l, "\n")); ok && at > 0 {
			return text[at:], cut + int64(at)
		}
		at += len(l)
	}
	return text, cut
}

// changeComments has a comments file, which is made where there is none, changed
// by one process at a time, and returns once that is on disk. One that is larger
// than disk.MaxWhole stays as it is, which is an error.
func changeComments(path string, change func(*os.File, beside) error) error {
	b, err := besideOf(path)
	if err != nil {
		return i18n.E("folder.unwritable", path, err)
	}
	defer b.close()
	f, err := b.openLocked(lockTimeout)
	if err != nil {
		return i18n.E("folder.unwritable", path, err)
	}
	if st, serr := f.Stat(); serr != nil {
		err = serr
	} else if st.Size() > disk.MaxWhole { // all of it is looked through, and some of it moved
		err = i18n.E("folder.comments_too_large", disk.MaxWhole>>20)
	} else {
		err = change(f, b)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = b.sync()
	}
	if err != nil {
		return i18n.E("folder.unwritable", path, err)
	}
	return nil
}

// lockTimeout is how long a comment waits for those of other processes.
const lockTimeout = 10 * time.Second

// openLocked opens a comments file, or makes it, and locks it until it is
// closed: between the look for a marker and the writing nobody else may write.
func (b beside) openLocked(timeout time.Duration) (*os.File, error) {
	for end := time.Now().Add(timeout); ; time.Sleep(5 * time.Millisecond) {
		f, err := b.open(os.O_RDWR | os.O_APPEND | os.O_CREATE)
		if err != nil && !errors.Is(err, fs.ErrExist) { // else another process made it just now
			return nil, err
		}
		if err == nil {
			if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil && b.is(f) {
				return f, nil
			}
			_ = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, err
		}
		if time.Now().After(end) {
			return nil, errors.New("another process holds its lock")
		}
	}
}

// author is how c's author stands in a heading.
func (c Comment) author() string {
	return cmp.Or(strings.Join(strings.Fields(strings.ToValidUTF8(c.Author, "\uFFFD")), " "), login)
}

// format writes c as an entry of the file.
func format(c Comment) ([]byte, error) {
	if c.Marker != "" && !markerLine().MatchString("<!-- tori:"+c.Marker+" -->") {
		return nil, fmt.Errorf("marker %q: letters, digits, '.', '_' and '-' only", c.Marker)
	}
	author := c.author()
	head := "## " + author + " — " + c.Time.Format(time.RFC3339)
	if got, _, ok := heading(head); !ok || got != author || c.Time.IsZero() {
		return nil, fmt.Errorf("author %q and time %s make no heading", author, c.Time)
	}
	var b bytes.Buffer
	b.WriteString(head + "\n\n")
	for l := range strings.SplitSeq(cleanBody(c.Body), "\n") {
		b.WriteString(escape(l) + "\n")
	}
	if c.Marker != "" {
		b.WriteString("\n<!-- tori:" + c.Marker + " -->\n")
	}
	return b.Bytes(), nil
}

// cleanBody is a body as it will be read again.
func cleanBody(s string) string {
	return trimText(strings.ReplaceAll(lf(strings.ToValidUTF8(s, "\uFFFD")), "\x00", "\uFFFD"))
}

// appendEntry writes entry at the end of f in one write, on a new line. A
// write that fails halfway is taken back.
func appendEntry(f *os.File, entry []byte) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	size := st.Size()
	if size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		before := "\n"
		if last[0] != '\n' {
			before = "\n\n" // somebody's last line, or one that a crash cut off
		}
		entry = append([]byte(before), entry...)
	}
	if _, err := f.Write(entry); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	return f.Sync()
}
