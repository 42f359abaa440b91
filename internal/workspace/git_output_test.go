package workspace

import (
	"strings"
	"testing"
)

// TestGitOutputIsBounded: what is collected of a git ends at maxCollected.
func TestGitOutputIsBounded(t *testing.T) {
	t.Parallel()
	out, err := runGit(t.Context(), "stripspace", call{args: []string{"stripspace"}, in: strings.NewReader(strings.Repeat("a line\n", maxCollected/7+1))})
	if err == nil || len(out) > maxCollected {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}
