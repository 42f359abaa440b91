package agent

import (
	"strings"
	"testing"
)

const patch = `diff --git a/old.go b/new.go
similarity index 60%
rename from old.go
rename to new.go
index 1..2 100644
--- a/old.go
+++ b/new.go
@@ -10,4 +10,5 @@ func f() {
 	a()
-	b()
+	b(1)
+	c()
 	d()
 }
@@ -40,2 +41,3 @@
 x
+y
 z
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
index 1..0
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/logo b/logo
new file mode 100644
index 0..1
--- /dev/null
+++ b/logo
@@ -0,0 +1 @@
+` + "\x00\xff" + `
`

func readPatch(t *testing.T) change {
	t.Helper()
	c, err := readChange(patch)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The model sees the numbers of the new side, and of what has no room where it is.
func TestTheChangeIsNumbered(t *testing.T) {
	t.Parallel()
	c := readPatch(t)
	want := `new.go (renamed from old.go, +3 -1)
   10   	a()
      - 	b()
   11 + 	b(1)
   12 + 	c()
   13   	d()
   14   }
   ...
   41   x
   42 + y
   43   z

gone.txt (deleted, +0 -1)
      - bye

logo (added, binary)`
	if got := c.show(10_000); got != want {
		t.Errorf("%s", got)
	}
	if got := c.show(60); strings.Contains(got, "b(1)") || !strings.Contains(got, "new.go (renamed from old.go, +3 -1), lines 10-14, 41-43") || !strings.Contains(got, "      - bye") {
		t.Errorf("%s", got)
	}
	if l := c.file("new.go").lines; l[12].old != 0 || l[13].old != 12 || l[43].old != 41 {
		t.Errorf("%+v", l)
	}
	if got := c.file("new.go").telling(12, 14); got != "c()" {
		t.Errorf("%q", got)
	}
}

// A finding stands on lines that the change shows, or the model is told which those are.
func TestWhereFindingsStand(t *testing.T) {
	t.Parallel()
	v := &reviewer{r: &run{Agent: &Agent{}}, change: readPatch(t)}
	bad := "see [EMAIL]"
	v.r.Masking.Masks = func(s string) (string, bool) { return "[EMAIL]", strings.Contains(s, "[EMAIL]") }
	for _, c := range []struct {
		f    finding
		want string
	}{
		{finding{Path: "b/new.go", Line: 12}, ""},
		{finding{Path: "./new.go", Line: 41, EndLine: 43}, ""},
		{finding{Path: "new.go", Line: 15}, "line 15 of new.go is none that the change shows; those are 10-14, 41-43."},
		{finding{Path: "new.go", Line: 14, EndLine: 41}, "line 15 of new.go"},
		{finding{Path: "new.go", Line: 12, EndLine: 11}, "the last one last"},
		{finding{Path: "other.go", Line: 1}, `"other.go" is no file of the change, which has: new.go, gone.txt, logo.`},
		{finding{Path: "gone.txt", Line: 1}, "gone.txt shows no line of the new side: it is deleted, +0 -1."},
		{finding{Path: "new.go", Line: 12, Suggestion: &bad}, "Leave the suggestion out."},
		{finding{Path: "new.go", Line: 12, Body: strings.Repeat("x", mostReview+1)}, "are taken. Keep what matters most."},
	} {
		c.f.Title = "x"
		got := strings.Join(v.wrong(&verdictOf{Findings: []finding{c.f}}), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c.f, got)
		}
	}
}

// Texts are told apart but for spaces and case: what was only indented is what it was.
func TestMarks(t *testing.T) {
	t.Parallel()
	if mark("a.go", "\treturn  X\n") != mark("a.go", "return x") || mark("a.go", "return x") == mark("b.go", "return x") || mark("a", "b") == mark("ab", "") {
		t.Error("marks")
	}
}
