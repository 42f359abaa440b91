package broker

import (
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// crowds are names that call many at once.
var crowds = []string{"everyone", "here", "channel", "all", "room", "group"}

var mentioned = lazyregexp.New(`@[A-Za-z0-9_](?:[A-Za-z0-9_./-]*[A-Za-z0-9_])?`)

// mentions puts a space behind the sign that would call somebody.
func mentions(f *Filter, format Format, s string) (edits []edit) {
	if f.o.Mentions == MentionsKeep || format == Title || !strings.Contains(s, "@") {
		return nil
	}
	code, stays := codeOf(format, s), f.stays(s)
	for _, m := range mentioned().FindAllStringIndex(s, -1) {
		if code.has(m[0]) || m[0] > 0 && (alnum(s[m[0]-1]) || s[m[0]-1] == '/' && stays.has(m[0])) {
			continue
		}
		name := strings.ToLower(s[m[0]+1 : m[1]])
		if f.o.Mentions == MentionsGroups && !strings.Contains(name, "/") && !slices.Contains(crowds, name) {
			continue
		}
		edits = append(edits, edit{m[0] + 1, m[0] + 1, " ", FoundMention})
	}
	return edits
}

var (
	command = lazyregexp.New(`(?m)^[ \t]{0,3}(/)[A-Za-z_]+(?:[ \t]|$)`)
	closing = lazyregexp.New(`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?)\b:?([ \t]+)(?:(?:issues?|and|,)[ \t]*)*(?:[\w./-]*[#!][0-9]|GH-[0-9]|https?://)`)
)

// commands defuses lines that a forge would carry out with our rights (/close,
// /merge), and words that close other issues when a change is merged.
func commands(_ *Filter, format Format, s string) (edits []edit) {
	if !format.markdown() && format != Commit && format != Title {
		return nil
	}
	code := codeOf(format, s)
	for _, m := range command().FindAllStringSubmatchIndex(s, -1) {
		if format.markdown() && !code.has(m[2]) {
			edits = append(edits, edit{m[2], m[3], `\/`, FoundCommand})
		}
	}
	if format == Merge || format == Commit || format == Title {
		for _, m := range closing().FindAllStringSubmatchIndex(s, -1) {
			edits = append(edits, edit{m[2], m[3], " – ", FoundClosing})
		}
	}
	return edits
}
