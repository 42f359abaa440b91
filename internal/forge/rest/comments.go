package rest

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// CommentID is the id of a comment by its kind and the server's number.
func CommentID(kind forge.CommentKind, n int64) string {
	return string(kind) + "/" + strconv.FormatInt(n, 10)
}

// LastPart is what stands behind the last slash of an address.
func LastPart(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// Ours takes the marker off a comment of ours, which is told by its author, then its marker: others
// can copy the marker.
func Ours(self forge.Person, c forge.Comment) forge.Comment {
	if c.Author.ID == self.ID && self.ID != 0 {
		c.Body, c.Marker = Unmark(c.Body)
	}
	return c
}

// Ghost is who stands for an account that was deleted; it has no number, so it
// has no permission either.
const Ghost = "ghost"

// Said is what was said on an item in order, as forge.Tracker's Comments has it, and how much was
// left out.
func Said(all []forge.Comment, k task.Key) ([]forge.Comment, int) {
	for i := range all {
		all[i].Item = k.ID
	}
	byTime(all, func(c forge.Comment) time.Time { return c.Created })
	left := max(0, len(all)-forge.MaxComments)
	return all[left:], left
}

// News is what was said of late in order, as forge.Tracker's CommentsSince has it.
func News(all []forge.Comment) []forge.Comment {
	byTime(all, func(c forge.Comment) time.Time { return c.Edited })
	all = slices.CompactFunc(all, func(a, b forge.Comment) bool { return a.ID == b.ID })
	return all[:min(len(all), forge.MaxComments)]
}

// byTime orders comments by a time of theirs; of the same second a review comes before its
// remarks, and what is of the same kind by its number.
func byTime(all []forge.Comment, at func(forge.Comment) time.Time) {
	slices.SortStableFunc(all, func(a, b forge.Comment) int {
		if c := at(a).Compare(at(b)); c != 0 {
			return c
		}
		if x, y := a.Kind == forge.Review, b.Kind == forge.Review; x || y { // numbered on their own
			switch {
			case x == y:
				return 0
			case x:
				return -1
			}
			return 1
		}
		return int(number(a.ID) - number(b.ID))
	})
}

// Each is what f makes of each of all that are there: servers list nothing for who is no more.
func Each[T, U any](all []*T, f func(*T) U) []U {
	var each []U
	for _, one := range all {
		if one != nil {
			each = append(each, f(one))
		}
	}
	return each
}

// Contains reports whether a name is among others; case does not matter.
func Contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// LabelChanges are the labels that are to be put on an item which has some, and taken away from it:
// one in both lists stays.
func LabelChanges(have, add, remove []string) (missing, leave []string) {
	for _, l := range add {
		if !Contains(have, l) && !Contains(missing, l) {
			missing = append(missing, l)
		}
	}
	for _, l := range have {
		if Contains(remove, l) && !Contains(add, l) {
			leave = append(leave, l)
		}
	}
	return missing, leave
}

// IsCommit reports whether it can be the name of a commit.
func IsCommit(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// MaxOutput bounds what a failed check prints, bytes.
const MaxOutput = 8 << 10

// CutOutput bounds what a failed check prints without breaking a character.
func CutOutput(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= MaxOutput {
		return s
	}
	const mark = " …"
	n := MaxOutput - len(mark)
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
