package rest

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/forge"
)

// CommentID is the id of a comment by its kind and the server's number.
func CommentID(kind forge.CommentKind, n int64) string {
	return string(kind) + "/" + strconv.FormatInt(n, 10)
}

// Ghost is who stands for an account that was deleted; it has no number, so it
// has no permission either.
const Ghost = "ghost"

// ByTime orders comments by a time of theirs; of the same second a review comes before its
// remarks, and what is of the same kind by its number.
func ByTime(all []forge.Comment, at func(forge.Comment) time.Time) {
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

// Contains reports whether a name is among others; case does not matter.
func Contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
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
