package routing

import (
	"regexp"
	"strings"

	"toritsugi/internal/lazyregexp"
)

const linkCommand = "/link"

// hidden stands for a code where what was said is kept.
const hidden = "…"

// link reads a code, however it was spaced.
func link(rest string) Command {
	code := strings.Join(strings.Fields(halfWidth(rest)), "")
	if code == "" || len(code) > 64 {
		return nil
	}
	return Link{code}
}

// Keepable is what was said as it may be kept: without the code that links accounts.
func Keepable(text string) string {
	switch c := ParseCommand(text).(type) {
	case Link:
		return linkCommand + " " + hidden
	case Malformed:
		if c.Name == linkCommand {
			return linkCommand + " " + hidden
		}
	}
	return text
}

// issueNumber is how issues are named.
var issueNumber = lazyregexp.New(`^#?([1-9][0-9]{0,8})$`)

func issue(rest string) Command {
	f := strings.Fields(halfWidth(rest))
	if len(f) == 0 || len(f) > 2 {
		return nil
	}
	n := issueNumber().FindStringSubmatch(f[0])
	if n == nil {
		return nil
	}
	i := Issue{Number: n[1]}
	if len(f) == 2 {
		i.Repository = f[1]
	}
	return i
}

// The plain words that ask for an issue. Each matches a message as a whole: what says more, asks,
// or denies is no such order.
var plainIssue = []func() *regexp.Regexp{
	lazyregexp.New(`(?i)^(?:please,? )?(?:do|work on|start|take on|handle|fix|solve|implement) (?:the )?issue #?(?P<number>[1-9][0-9]{0,8})(?: (?:in|of|from) (?:the )?(?P<repo>[^\s,;?!]+?)(?: repository| repo)?)?(?:,? please)?[.!]?$`),
	lazyregexp.New(`(?i)^(?:(?P<repo>[^\s、。，,?？!！]+?) ?の ?)?(?:issue|イシュー|課題) ?#?(?P<number>[1-9][0-9]{0,8}) ?(?:番)?(?: ?(?:を|に))? ?(?:お願い|お願いします|おねがい|おねがいします|(?:やって|対応して|着手して|取り掛かって|とりかかって|取り組んで|進めて|直して|始めて)(?:ください|下さい|くれ|ほしい|欲しい|おいて|おいてください|もらえますか)?)[。.!！]?$`),
}

// maxPlain is how long a message may be that asks for an issue in plain words, in bytes.
const maxPlain = 300

// AskedIssue reads a message that asks for an issue in plain words: "do issue 12 in widgets",
// 「widgets の issue 12 をやって」.
func AskedIssue(text string) (i Issue, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) > maxPlain || strings.ContainsAny(text, "\r\n") {
		return i, false
	}
	text = strings.Join(strings.Fields(halfWidth(text)), " ")
	for _, compiled := range plainIssue {
		re := compiled()
		m := re.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		for n, name := range re.SubexpNames() {
			switch name {
			case "number":
				i.Number = m[n]
			case "repo":
				i.Repository = strings.Trim(m[n], "\"'`")
			}
		}
		return i, true
	}
	return i, false
}
