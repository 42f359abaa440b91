package routing

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
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

// Confusion counts messages by the route that they should go to and the one they went to.
type Confusion map[[2]Route]int

// String is a line for each route that was expected, a column for each that was decided.
func (c Confusion) String() string {
	var used []Route
	for _, r := range routes {
		for k := range c {
			if (k[0] == r || k[1] == r) && !slices.Contains(used, r) {
				used = append(used, r)
			}
		}
	}
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "%-8s", "")
	for _, r := range used {
		_, _ = fmt.Fprintf(&b, " %8s", r)
	}
	for _, want := range used {
		_, _ = fmt.Fprintf(&b, "\n%-8s", want)
		for _, got := range used {
			_, _ = fmt.Fprintf(&b, " %8d", c[[2]Route{want, got}])
		}
	}
	return b.String()
}
