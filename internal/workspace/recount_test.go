package workspace

import "testing"

// What models miscount is counted anew, as git apply --recount does; what is right stays.
func TestRecounted(t *testing.T) {
	t.Parallel()
	const second = "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n"
	for name, c := range map[string]struct{ patch, want string }{
		"right":           {goodPatch, goodPatch},
		"too many":        {"--- a/a\n+++ b/a\n@@ -1,9 +1,9 @@ func x\n hello\n+more\n", "--- a/a\n+++ b/a\n@@ -1 +1,2 @@ func x\n hello\n+more\n"},
		"of two files":    {"--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n hello\n+more\n" + second, "--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n hello\n+more\n" + second},
		"a head counted":  {"--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n hello\n+more\n" + second, "--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n hello\n+more\n" + second},
		"blank between":   {"--- a/a\n+++ b/a\n@@ -1,7 +1,7 @@\n hello\n+more\n\n" + second, "--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n hello\n+more\n" + second},
		"blank context":   {"--- a/a\n+++ b/a\n@@ -1,7 +1,7 @@\n hello\n\n+more\n", "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n hello\n\n+more\n"},
		"new file":        {"--- /dev/null\n+++ b/a\n@@ -0,0 +1,7 @@\n+a\n+b\n", "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"no newline":      {"--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n-a\n+b\n\\ No newline at end of file\n", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"},
		"a line of minus": {"--- a/a\n+++ b/a\n@@ -1,5 +1,5 @@\n--- x\n hello\n", "--- a/a\n+++ b/a\n@@ -1,2 +1 @@\n--- x\n hello\n"},
	} {
		got := string(Recounted([]byte(c.patch)))
		if got != c.want {
			t.Errorf("%s:\n%s", name, got)
		}
		if _, err := ParsePatch([]byte(got)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if raw := "I would change the README.\n@@ nothing\n"; string(Recounted([]byte(raw))) != raw {
		t.Error("prose is changed")
	}
}

// Whatever is recounted has the lines that it had.
func FuzzRecounted(f *testing.F) {
	f.Add(goodPatch)
	f.Add("@@ -1 +1 @@\n\n\n")
	f.Fuzz(func(t *testing.T, patch string) {
		if again := Recounted(Recounted([]byte(patch))); string(again) != string(Recounted([]byte(patch))) {
			t.Errorf("%q becomes %q", patch, again)
		}
	})
}
