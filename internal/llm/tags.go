package llm

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// tags are the names of what a prompt puts around texts of others, to tell them
// from its own words and from one another.
var tags = []string{"issue", "pull_request", "comments", "untrusted_comments", "failed_check", "summary", "project_rules", "project_files", "messages", "facts", "log"}

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
