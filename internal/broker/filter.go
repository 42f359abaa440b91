package broker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

// Format says who reads a text, and so what in it does something.
type Format int

// The formats.
const (
	Markdown Format = iota // of a forge's comment
	Merge                  // Markdown of a pull request, where "fixes #7" closes an issue
	Title                  // one line, of a pull request: a squashed commit takes it over, where "fixes #7" closes an issue
	Commit                 // the message of a commit: plain text in which "fixes #7" closes an issue
)

func (f Format) markdown() bool { return f == Markdown || f == Merge }

// The kinds of findings.
const (
	FoundSecret   = "secret"
	FoundHidden   = "hidden text"
	FoundEncoded  = "encoded character"
	FoundControl  = "control characters"
	FoundLong     = "long line"
	FoundGap      = "long gap"
	FoundHTML     = "HTML"
	FoundMarker   = "marker"
	FoundFence    = "code block"
	FoundImage    = "image"
	FoundLink     = "link"
	FoundData     = "data address"
	FoundMention  = "mention"
	FoundCommand  = "command"
	FoundClosing  = "closing keyword"
	FoundStyle    = "style"
	FoundEncoding = "not UTF-8"
)

// What FilterOptions.Mentions may be.
const (
	MentionsKeep   = "keep"
	MentionsGroups = "groups" // @everyone, @org/team and their like are defused
	MentionsAll    = "all"    // every @name is
)

// FilterOptions are what a Filter is made of.
type FilterOptions struct {
	Sanitizer *redact.Sanitizer // nil knows no values
	Hosts     []string          // that may be linked to: names, or *.suffix
	Mentions  string            // "" is MentionsAll
}

// Filter cleans texts. It is immutable: any number of goroutines may use it.
type Filter struct{ o FilterOptions }

// NewFilter returns a filter. The options' slices are not kept.
func NewFilter(o FilterOptions) *Filter {
	o.Sanitizer = cmp.Or(o.Sanitizer, new(redact.Sanitizer))
	o.Mentions = cmp.Or(o.Mentions, MentionsAll)
	o.Hosts = slices.Clone(o.Hosts)
	for i, h := range o.Hosts {
		o.Hosts[i] = strings.ToLower(h)
	}
	return &Filter{o}
}

const (
	// maxInput is the longest text that is looked at, in bytes: what is longer
	// fits nowhere, however it is cleaned.
	maxInput = 256 << 10
	// maxRounds is how often a text is cleaned until there is nothing left to
	// clean. What takes more was made to.
	maxRounds = 40
	// maxFindings bounds how many findings are told one by one.
	maxFindings = 100
)

// edit replaces text[start:end].
type edit struct {
	start, end int
	with       string
	kind       string
}

// step finds what is to be changed in a text.
type step func(f *Filter, format Format, text string) []edit

// steps are the filters, in their order: what hides comes off first, so that
// the others see what a reader would.
var steps = [...]step{hidden, (*Filter).secrets, lengths, fences, entities, tags, markers, links, addresses, mentions, commands, styles}

// Clean returns a text as it may go out, and what was changed. Cleaning it
// again changes nothing, and finds nothing: the steps are repeated until none
// of them does. It is never longer than 4 times the text and 1 KiB. A text over
// 256 KiB, and one that does not come to rest, is an error.
func (f *Filter) Clean(format Format, text string) (string, []Finding, error) {
	if len(text) > maxInput {
		return "", nil, i18n.E("broker.too_long", len(text), maxInput, "broker.max_text_bytes")
	}
	var found []Finding
	clean := text
	if !utf8.ValidString(clean) {
		clean = strings.ToValidUTF8(clean, "\uFFFD")
		found = append(found, Finding{FoundEncoding, "", "line 1"})
	}
	for range maxRounds {
		before := clean
		for _, s := range steps {
			edits := settle(s(f, format, clean))
			if len(edits) == 0 {
				continue
			}
			found = f.tell(found, clean, edits)
			clean = apply(clean, edits)
			if len(clean) > 4*len(text)+1<<10 {
				return "", found, i18n.E("broker.uncleanable")
			}
		}
		if clean == before {
			return clean, found, nil
		}
	}
	return "", found, i18n.E("broker.uncleanable")
}

// settle puts edits in order and drops those that change nothing or overlap an
// earlier one; the next round finds them again.
func settle(edits []edit) []edit {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	out, end := edits[:0], -1
	for _, e := range edits {
		if e.start < end || e.start == e.end && e.with == "" {
			continue
		}
		out = append(out, e)
		end = max(e.end, e.start+1)
	}
	return out
}

func apply(text string, edits []edit) string {
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.start])
		b.WriteString(e.with)
		at = e.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// tell adds what the edits are about to the findings.
func (f *Filter) tell(found []Finding, text string, edits []edit) []Finding {
	line, at := 1, 0
	for _, e := range edits {
		if len(found) >= maxFindings {
			return found
		}
		line += strings.Count(text[at:e.start], "\n")
		at = e.start
		excerpt := e.with
		if e.kind != FoundSecret {
			excerpt = f.shown(cut(text[e.start:min(len(text), max(e.end, e.start+20))], 300))
		}
		found = append(found, Finding{e.kind, excerpt, fmt.Sprintf("line %d", line)})
	}
	return found
}

// shown is a stranger's text as people and records may see it: masked, with
// what cannot be seen spelled out, in one short line.
func (f *Filter) shown(s string) string {
	var b strings.Builder
	for _, r := range f.mask(strings.ToValidUTF8(s, "\uFFFD")) {
		if b.Len() > 100 {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case r < ' ' || r == 0x7f || hiddenRune(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// mask masks the secrets of a text, without cleaning it.
func (f *Filter) mask(s string) string {
	for range 4 {
		edits := settle(f.secrets(Title, s))
		if len(edits) == 0 {
			return s
		}
		s = apply(s, edits)
	}
	return redact.Redacted
}

// cut shortens s to at most n bytes, at a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
