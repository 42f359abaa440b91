package conversation

import (
	"strings"

	"toritsugi/internal/lazyregexp"
)

// What the program said stands in the history of models between tags, so that no model takes
// it for its own words. One that copies it from there would speak as the program: what it puts
// between such tags is left out of what it said. Code may name them.
const (
	noticeBegins = `(?i:<\s*notice\s*>)`
	noticeEnds   = `(?i:<\s*/\s*notice\s*>)`
	codeOfAnswer = "```.*?(?:```|$)|`[^`\n]*`"
	// noticeHalf is what may become one of the tags.
	noticeHalf = `(?i:<\s*/?\s*(?:n(?:o(?:t(?:i(?:ce?)?)?)?)?)?\s*$)`
)

var (
	noticeTag = lazyregexp.New(noticeBegins + "|" + noticeEnds)
	// notices finds in an answer code and notices; one that nothing ends
	// goes to the end of its line.
	notices = lazyregexp.New("(?s)" + codeOfAnswer + "|" + noticeBegins + ".*?" + noticeEnds + "|" + noticeBegins + "[^\n]*|" + noticeEnds)
	// begunNotices is notices for an answer that goes on: all behind a tag may be one.
	begunNotices = lazyregexp.New("(?s)" + codeOfAnswer + "|" + noticeBegins + ".*?(?:" + noticeEnds + "|$)|" + noticeEnds + "|" + noticeHalf)
)

// notice puts what the program said between its tags.
func notice(text string) string { return "<notice>" + text + "</notice>" }

// unnoticed is an answer of a model without notices.
func unnoticed(answer string) string {
	if !noticeTag().MatchString(answer) {
		return answer
	}
	return notices().ReplaceAllStringFunc(answer, keepCode)
}

// unnoticedSoFar is what of an answer that is being written can be no part of a notice.
func unnoticedSoFar(begun string) string {
	if !strings.Contains(begun, "<") {
		return begun
	}
	return begunNotices().ReplaceAllStringFunc(begun, keepCode)
}

func keepCode(found string) string {
	if found[0] == '`' {
		return found
	}
	return ""
}
