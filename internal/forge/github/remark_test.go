package github

import (
	"testing"

	"github.com/google/go-github/v88/github"
)

// The line of a remark is one of the file as it is: a line that was deleted is none.
func TestTheLineOfARemark(t *testing.T) {
	t.Parallel()
	for side, want := range map[string]int{"RIGHT": 7, "LEFT": 0} {
		line, path := 7, "a.go"
		if c := (&call{}).remark(&github.PullRequestComment{Path: &path, Line: &line, Side: &side}); c.Line != want || c.Path != path {
			t.Errorf("%s: %+v", side, c)
		}
	}
}
