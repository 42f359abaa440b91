package memory

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/lazyregexp"
)

// Pinned identifiers are what a summary must not lose: the paths that calls
// changed and the latest commands that passed, nothing of calls that failed, and the paths, numbers of issues, commits and quoted names of the
// request as far as the summarised messages mention them. The latest maxPins
// count; those of the summary before are among them.
const (
	maxPins     = 40
	maxPinBytes = 200
	maxRan      = 3  // commands
	maxRanBytes = 80 // of one
)

// pinList collects identifiers, the latest last.
type pinList struct{ list []string }

func (p *pinList) add(ids ...string) {
	for _, id := range ids {
		if id == "" || len(id) > maxPinBytes {
			continue
		}
		if i := slices.Index(p.list, id); i >= 0 {
			p.list = slices.Delete(p.list, i, i+1)
		}
		p.list = append(p.list, id)
	}
	if over := len(p.list) - maxPins; over > 0 {
		p.list = slices.Delete(p.list, 0, over)
	}
}

// identifier is what of a request is meant to the letter: a path, a file's
// name, the number of an issue, a commit, or a name between back quotes.
var identifier = lazyregexp.New("`[^`\\s]{2,80}`" + `|(?:[\w.@+-]+/)+[\w.@+-]*\w|\b\w[\w-]*\.[A-Za-z][A-Za-z0-9]{0,4}\b|#\d{1,9}\b|\b[0-9a-f]{7,40}\b`)

// maxIdentified is how much of a text is searched for identifiers, in bytes.
const maxIdentified = 64 << 10

// identifiers are those of a text, each once.
func identifiers(text string) (all []string) {
	text = text[:min(len(text), maxIdentified)]
	for _, id := range identifier().FindAllString(text, 10*maxPins) {
		id = strings.Trim(id, "`")
		if plain(id) || len(id) > maxPinBytes || slices.Contains(all, id) {
			continue
		}
		all = append(all, id)
	}
	return all
}

// plain reports that what looks like an identifier is a word or a number.
func plain(s string) bool {
	if strings.ContainsAny(s, "/#_.") {
		return s == "e.g" || s == "i.e" || strings.HasPrefix(s, "www.")
	}
	digit, letter := strings.ContainsAny(s, "0123456789"), strings.ContainsFunc(s, unicode.IsLetter)
	hex := strings.Trim(s, "0123456789abcdef") == ""
	return hex && (!digit || !letter)
}

// writers are parts of the names of tools that change a file.
var writers = [...]string{"write", "edit", "patch", "create", "delete", "remove", "move", "rename", "replace"}

// editedPath is the file that a call changes, "" where it names none.
func editedPath(c contextstore.ToolCall) (path string) {
	name := strings.ToLower(c.Name)
	if !slices.ContainsFunc(writers[:], func(w string) bool { return strings.Contains(name, w) }) {
		return ""
	}
	_ = members(c.Arguments, func(member string, value json.RawMessage) { // what is no object names no file
		switch member {
		case "path", "file", "file_path", "filename":
			var s string
			if json.Unmarshal(value, &s) == nil {
				path = strings.TrimSpace(s)
			}
		}
	})
	return path
}

// looking is a command that shows something and proves nothing.
var looking = lazyregexp.New(`^\s*(cd \S+ *(&&|;) *)?(ls|cat|head|tail|grep|rg|find|sed|awk|wc|pwd|echo|git|which|stat|tree|file|diff|true)\b`)

// passed is the command of a call that succeeded, "" where it is no command, a
// long one, or one that only looks.
func passed(c contextstore.ToolCall) (command string) {
	if strings.ToLower(c.Name) != "shell" {
		return ""
	}
	_ = members(c.Arguments, func(member string, value json.RawMessage) {
		if member == "command" && json.Unmarshal(value, &command) != nil {
			command = ""
		}
	})
	if command = strings.TrimSpace(command); len(command) > maxRanBytes || strings.Contains(command, "\n") || looking().MatchString(command) {
		return ""
	}
	return command
}

// looksLikeError reports that a text is rather what a server or a client says
// where it failed than a summary.
func looksLikeError(text string) bool {
	if len(text) < maxFailed && failed().MatchString(text) {
		return true
	}
	text = strings.ToLower(strings.TrimLeft(text, "[({*#` \t\n"))
	return slices.ContainsFunc([]string{"llm error", "api error", "request failed", "timeout", "i can’t"}, func(head string) bool { return strings.HasPrefix(text, head) })
}

// foreign reports that a text is mostly in a script that its source has hardly:
// a summary of Japanese and English is Japanese or English.
func foreign(text, source string) bool {
	got, letters := scripts(text)
	if letters < 20 {
		return false
	}
	has, all := scripts(source)
	for script, n := range got {
		switch script {
		case "latin", "kana", "": // the prompt's own
		case "han":
			// Chinese has no kana between its characters.
			if n > letters/2 && got["kana"] == 0 && n >= 40 && (has["kana"] > 0 || has["han"] < all/20) {
				return true
			}
		default:
			if n > letters*3/10 && has[script] < all/20 {
				return true
			}
		}
	}
	return false
}

// scripts counts the letters of a text by their script.
func scripts(text string) (n map[string]int, letters int) {
	n = map[string]int{}
	for _, r := range text[:min(len(text), maxIdentified)] {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		switch {
		case unicode.Is(unicode.Latin, r):
			n["latin"]++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana) || r == 'ー':
			n["kana"]++
		case unicode.Is(unicode.Han, r):
			n["han"]++
		default:
			n[script(r)]++
		}
	}
	return n, letters
}

// script is the name of a letter's script that is not one of ours.
func script(r rune) string {
	for _, s := range [...]struct {
		name  string
		table *unicode.RangeTable
	}{{"cyrillic", unicode.Cyrillic}, {"hangul", unicode.Hangul}, {"arabic", unicode.Arabic}, {"greek", unicode.Greek}, {"hebrew", unicode.Hebrew}, {"thai", unicode.Thai}, {"devanagari", unicode.Devanagari}} {
		if unicode.Is(s.table, r) {
			return s.name
		}
	}
	return "other"
}
