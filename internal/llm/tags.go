package llm

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/lazyregexp"
)

// tags are the names of what a prompt puts around texts of others, to tell them
// from its own words and from one another.
var tags = []string{"issue", "pull_request", "merge_request", "change", "comments", "untrusted_comments", "untrusted_web", "failed_check", "summary", "project_rules", "project_files", "messages", "facts", "log"}

// Tagged puts a text of others between tags. It can neither close them itself nor
// open or close any other of ours, in whatever spelling a model would take for one.
func Tagged(tag, text string) string { return around(tag, Untagged(text)) }

// Untagged is a text that forges none of our tags.
func Untagged(text string) string { return anyTag().ReplaceAllString(text, `<\${1}`) }

// Around is Tagged for what holds tags of ours by right, as messages do: the text
// closes tag no more than others do, and opens none of it.
func Around(tag, text string) string {
	return around(tag, tagOf(tag).ReplaceAllString(text, `<\${1}`))
}

func around(tag, text string) string { return "<" + tag + ">\n" + text + "\n</" + tag + ">" }

// Shortened is a text of which the middle, from head to tail, is left out, with a
// note in its place. A tag of ours that stands open where the head ends is closed
// there, and one that does where the tail begins is opened again: what is told from
// the rest by it still is.
func Shortened(text string, head, tail int, note string) string {
	var b strings.Builder
	head, open := openTags(text, head)
	b.WriteString(text[:head])
	for _, tag := range slices.Backward(open) {
		b.WriteString("\n</" + tag + ">")
	}
	b.WriteString("\n" + note + "\n")
	from, open := openTags(text, tail)
	for _, tag := range open {
		b.WriteString("<" + tag + ">\n")
	}
	b.WriteString(text[from:])
	return b.String()
}

var ourTag = lazyregexp.New("<(/?)(" + strings.Join(tags, "|") + ")>")

// maxTag is more bytes than any of our tags has.
const maxTag = 32

// openTags are those of our tags that stand open at a place in a text, the
// outermost first. The place before is that, or where the tag begins that it is in.
func openTags(text string, at int) (before int, open []string) {
	for _, m := range ourTag().FindAllStringSubmatchIndex(text[:min(at+maxTag, len(text))], -1) {
		switch tag := text[m[4]:m[5]]; {
		case m[1] > at:
			return min(m[0], at), open
		case m[2] == m[3]:
			open = append(open, tag)
		case slices.Contains(open, tag):
			open = open[:slices.Index(open, tag)]
		}
	}
	return at, open
}

var anyTag = sync.OnceValue(func() *regexp.Regexp { return tagOf(tags...) })

// tagOf finds the beginning of what reads like one of these tags; what cannot be
// seen in it counts for nothing.
func tagOf(names ...string) *regexp.Regexp {
	names = slices.Clone(names)
	for i, n := range names {
		names[i] = regexp.QuoteMeta(n)
	}
	const blank = `[\s\p{Cf}]*`
	return regexp.MustCompile(`(?i)<((?:` + blank + `/)?` + blank + `(?:` + strings.Join(names, "|") + `)\b)`)
}
