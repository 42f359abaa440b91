package memory

import (
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
)

// What stands for a summary tells what was done, of bounded length, and repeats
// nothing that people said or an earlier run left.
func TestExtract(t *testing.T) {
	t.Parallel()
	msgs := []contextstore.Message{{Role: "assistant", Content: InheritedPrefix + "PAST"}, {Role: "user", Content: "REQUEST"}}
	for i := range 30 {
		call := calls(fmt.Sprint("c", i), "write_file", fmt.Sprintf(`{"path":"f%d.go","content":"x"}`, i), "written")
		call[0].Content = fmt.Sprintf("step %d %s", i, strings.Repeat("long ", 400))
		msgs = append(msgs, call...)
	}
	msgs = append(msgs, contextstore.Message{Role: "user", Content: "alice: HURRY"}, contextstore.Message{Role: "assistant", Content: "LAST"})
	run := begun(t, msgs...)
	got, err := Extract(run.MessageLog(), nil, "LAST\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"f0.go, f1.go", "f29.go", "> step 29 ", "> step 25 "} {
		if !strings.Contains(got, s) {
			t.Errorf("%q is missing in %s", s, got)
		}
	}
	for _, s := range []string{"PAST", "REQUEST", "HURRY", "LAST", "step 24 "} {
		if strings.Contains(got, s) {
			t.Errorf("%q is in %s", s, got)
		}
	}
	if len(got) > 5000 {
		t.Errorf("%d bytes", len(got))
	}
	s, err := run.AppendSummary(contextstore.Summary{StartSeq: 4, EndSeq: 61, Summary: "Files were written.\nAll of them."})
	if err != nil {
		t.Fatal(err)
	}
	if got, err = Extract(run.MessageLog(), &s, ""); err != nil || !strings.Contains(got, "up to 61") || !strings.Contains(got, "> Files were written.\n> All of them.\n") ||
		strings.Contains(got, "f28.go") || !strings.Contains(got, "f29.go") || !strings.Contains(got, "> LAST") {
		t.Errorf("%v %s", err, got)
	}
	if got, err := Extract(begun(t, contextstore.Message{Role: "user", Content: "REQUEST"}).MessageLog(), nil, ""); got != "" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	if got, err := Extract(begun(t, contextstore.Message{Role: "assistant", Content: InheritedPrefix + "PAST"}).MessageLog(), nil, ""); got != "" || err != nil {
		t.Errorf("%q %v", got, err)
	}
}
