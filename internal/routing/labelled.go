package routing

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"toritsugi/internal/i18n"
)

// Labelled is a message with the route that it should go to.
type Labelled struct {
	Line  int // in its file, from 1
	Route Route
	Text  string
}

// maxLabelled is the longest line of a file of labelled messages, in bytes.
const maxLabelled = 1 << 20

// ReadLabelled reads lines ROUTE, tab, message, in which \n, \t, \r and \\ are escapes. Empty lines
// and those that begin with # are left out; file names the source in errors, which are
// *i18n.Error.
func ReadLabelled(file string, from io.Reader) (all []Labelled, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLabelled)
	n := 0
	for lines.Scan() {
		n++
		line := lines.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\uFEFF")
		}
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		name, text, ok := strings.Cut(line, "\t")
		route, known := ParseRoute(name)
		if !ok || !known {
			return nil, i18n.E("routing.labelled", file, n, cutRunes(line, maxFragment))
		}
		all = append(all, Labelled{n, route, unescape.Replace(text)})
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, i18n.E("routing.labelled_long", file, n+1, maxLabelled>>10)
	} else if err != nil {
		return nil, i18n.E("routing.labelled_read", file, err)
	}
	return all, nil
}

var unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r")
