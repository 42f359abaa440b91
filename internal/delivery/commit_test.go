package delivery

import (
	"strings"
	"testing"

	"toritsugi/internal/task"
)

func TestAddedLines(t *testing.T) {
	t.Parallel()
	patch := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-old ghp_secret\n+new text\n+++ more\n context\n"
	if got := addedLines(patch); got != "++ b/x\nnew text\n++ more\n" {
		t.Errorf("%q", got)
	}
}

func TestSubject(t *testing.T) {
	t.Parallel()
	if s := subject("a\n  b\tc", task.Key{Type: task.TypeIssue, ID: "7"}); s != "a b c (#7)" {
		t.Errorf("%q", s)
	}
	if s := subject("a", task.Key{Type: task.TypeMerge, ID: "7"}); s != "a (!7)" {
		t.Errorf("%q", s)
	}
	if s := subject(strings.Repeat("長", 100), task.Key{ID: "long-name"}); len([]rune(s)) != 60 {
		t.Errorf("%q", s)
	}
}
