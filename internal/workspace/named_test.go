package workspace

import (
	"slices"
	"strings"
	"testing"
)

// Files that a patch calls without a/ and b/ are called as git does, where that is what they are.
func TestNamed(t *testing.T) {
	t.Parallel()
	there := func(p string) bool {
		return slices.Contains([]string{"tags.go", "src", "src/main.go", "c", "c/x.c"}, p)
	}
	const hunk = "@@ -1 +1 @@\n-a\n+b\n"
	for in, want := range map[string]string{
		"--- tags.go\n+++ tags.go\n":                                                     "--- a/tags.go\n+++ b/tags.go\n",
		"--- tags.go\t2024-01-01 10:00\n+++ tags.go\t2024-01-02 10:00\n":                 "--- a/tags.go\t2024-01-01 10:00\n+++ b/tags.go\t2024-01-02 10:00\n",
		"--- src/main.go\n+++ src/main.go\n":                                             "--- a/src/main.go\n+++ b/src/main.go\n",
		"diff --git c/x.c c/x.c\n--- c/x.c\n+++ c/x.c\n":                                 "diff --git a/c/x.c b/c/x.c\n--- a/c/x.c\n+++ b/c/x.c\n",
		"--- tags.go\n+++ /dev/null\n":                                                   "--- a/tags.go\n+++ /dev/null\n",
		"--- /dev/null\n+++ new/x.go\n":                                                  "--- /dev/null\n+++ b/new/x.go\n",
		"--- tags.go\r\n+++ tags.go\r\n":                                                 "--- a/tags.go\r\n+++ b/tags.go\r\n",
		"diff --git n.go n.go\nnew file mode 100644\n--- /dev/null\n+++ n.go\n":          "diff --git a/n.go b/n.go\nnew file mode 100644\n--- /dev/null\n+++ b/n.go\n",
		"--- a/src/main.go\n+++ b/src/main.go\n" + hunk + "--- tags.go\n+++ tags.go\n":   "--- a/src/main.go\n+++ b/src/main.go\n" + hunk + "--- a/tags.go\n+++ b/tags.go\n",
		"diff --git a/tags.go b/tags.go\n--- tags.go\n+++ tags.go\n":                     "diff --git a/tags.go b/tags.go\n--- a/tags.go\n+++ b/tags.go\n",
		"--- a/tags.go\n+++ b/tags.go\n":                                                 "",
		"--- a/tags.go\n+++ a/tags.go\n":                                                 "",
		"--- i/tags.go\n+++ w/tags.go\n":                                                 "",
		"--- structtag/tags.go\n+++ structtag/tags.go\n":                                 "", // as git apply -p1 takes it
		"--- /dev/null\n+++ structtag/new.go\n":                                          "", // likewise
		"--- /dev/null\n+++ b/new.go\n":                                                  "",
		"--- c/x.c\n+++ /dev/null\n":                                                     "", // c/ may be git's
		"--- none.go\n+++ none.go\n":                                                     "",
		"--- ../tags.go\n+++ ../tags.go\n":                                               "",
		"--- /dev/null\n+++ /etc/x\n":                                                    "",
		"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n c\n--- tags.go\n+++ tags.go\n":              "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n c\n--- a/tags.go\n+++ b/tags.go\n", // the next file's head, whose hunk follows
		"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n c\n--- tags.go\n+++ tags.go\n d\n--- x\n":   "",                                                                      // lines that begin with -- and ++
		"--- tags.go\n+++ src/main.go\n":                                                 "",
		strings.Repeat("x", MaxPatch) + "\n--- tags.go\n+++ tags.go\n" + hunk + "more\n": "",
	} {
		in += hunk
		if want == "" {
			want = in
		} else {
			want += hunk
		}
		if got := string(Named([]byte(in), there, "structtag")); got != want {
			t.Errorf("%.200q\n gives %.200q\n want  %.200q", in, got, want)
		}
	}
}
