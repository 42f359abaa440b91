package rest

import (
	"strings"

	"toritsugi/internal/lazyregexp"
)

// markerEnd is our marker: the last line of a text, so that one that is quoted in
// the text is none. markerLine is our marker on a line of its own: people add to the
// texts of pull requests.
var (
	markerEnd  = lazyregexp.New(`(?:^|\n)<!-- tori:([0-9A-Za-z._-]+) -->\s*$`)
	markerLine = lazyregexp.New(`(?m)^<!-- tori:([0-9A-Za-z._-]+) -->[ \t]*$`)
	markerName = lazyregexp.New(`^[0-9A-Za-z._-]+$`)
)

// IsMarker reports whether a marker can be hidden in a text.
func IsMarker(s string) bool { return markerName().MatchString(s) }

// Mark puts a marker below a text, hidden from readers.
func Mark(body, marker string) string {
	return strings.TrimRight(lf(body), " \t\n") + "\n\n<!-- tori:" + marker + " -->"
}

// Unmark takes our marker off a text; "" where there is none.
func Unmark(body string) (text, marker string) {
	body = lf(body)
	m := markerEnd().FindStringSubmatchIndex(body)
	if m == nil {
		return body, ""
	}
	return strings.TrimRight(body[:m[0]], " \t\n"), body[m[2]:m[3]]
}

// MarkerIn is the first marker on a line of its own, "" where there is none.
func MarkerIn(body string) string {
	if m := markerLine().FindStringSubmatch(lf(body)); m != nil {
		return m[1]
	}
	return ""
}

// BelowMarker is what stands below our marker in a text: what people added.
func BelowMarker(body string) string {
	body = lf(body)
	at := markerLine().FindStringIndex(body)
	if at == nil {
		return ""
	}
	return strings.TrimRight(body[at[1]:], " \t\n")
}

// Same reports whether a server holds what we would write.
func Same(a, b string) bool {
	return strings.TrimRight(lf(a), " \t\n") == strings.TrimRight(lf(b), " \t\n")
}

func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
