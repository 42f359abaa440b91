package dialogue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
	"toritsugi/internal/tool"
)

// bridge is a square with threads.
type bridge struct{ square }

func (bridge) Reply(context.Context, task.Key, string, string, string) (forge.Comment, error) {
	return forge.Comment{}, errors.ErrUnsupported
}

// A run answers the remarks on lines that people made who may ask, by their threads: none of
// strangers, none that is settled, none that it was not told.
func TestRemarksToAnswer(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	on := func(n int, who int64, replyTo string, resolved bool) forge.Comment {
		return forge.Comment{ID: fmt.Sprint("line/", n), Kind: forge.Line, Path: "a.go", Line: n, ReplyTo: replyTo, Resolved: resolved,
			Author: forge.Person{ID: who, Login: fmt.Sprint("p", who)}, Body: fmt.Sprintf("Word %d.", n), Edited: at}
	}
	all := []forge.Comment{on(11, 7, "", false), on(12, 7, "line/11", false), on(13, 9, "", false), on(14, 7, "", true), on(15, 7, "line/3", false),
		{ID: "note/16", Kind: forge.Note, Author: forge.Person{ID: 7, Login: "p7"}, Body: "A word.", Edited: at}}
	inbox := slices.Clone(all)
	d := hears(t, bridge{}, &inbox)
	if len(d.Tools()) != 0 {
		t.Error("there is nothing to be answered")
	}
	said, err := d.Heard(t.Context())
	if err != nil || len(said) != 2 {
		t.Fatalf("%+v %v", said, err)
	}
	for _, want := range []string{"p7 (on a.go:11, remark 11):", "p7 (on a.go:12, remark 11):", "p7 (on a.go:14, resolved):", "p7 (on a.go:15, remark 3):"} {
		if !strings.Contains(said[0].Content, want) {
			t.Errorf("%s is not in\n%s", want, said[0].Content)
		}
	}
	tools := d.Tools()
	if len(tools) != 1 || strings.Contains(said[1].Content, "remark") {
		t.Fatalf("%+v\n%s", tools, said[1].Content)
	}
	reader, err := tool.NewArguments(tools[0].Definition())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`{"remark":13,"answer":"x"}`, "There is no remark 13 to be answered. Those are: 11, 3."},
		{`{"remark":3,"answer":" "}`, "The answer is empty."},
		{`{"remark_id":"remark 3","text":"Mended."}`, "People will read it under the remark. Without an answer so far: 11."},
	} {
		args, _, problem := reader.Read(c[0])
		if r, err := tools[0].Call(t.Context(), args); err != nil || r.Text != c[1] || problem != "" {
			t.Errorf("%s: %+v %v %s", c[0], r, err, problem)
		}
	}
	want := []RemarkAnswer{{"line/3", "Mended."}, {"line/11", ""}}
	if got := d.RemarkAnswers(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if _, err := d.Heard(t.Context()); err != nil { // it was told
		t.Fatal(err)
	}
	inbox = []forge.Comment{on(17, 7, "", false)}
	if _, err := d.Heard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil { // before that stood in a message
		t.Fatal(err)
	}
	next := New(d.run, Settings{}, 1<<16)
	if err := next.Open(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Dialogue{d, next} {
		if got := d.RemarkAnswers(); !slices.Equal(got, want) {
			t.Errorf("%+v", got)
		}
	}
}

// Where a forge has no threads nothing is said of them.
func TestNoThreads(t *testing.T) {
	t.Parallel()
	inbox := []forge.Comment{{ID: "line/1", Kind: forge.Line, Path: "a.go", Line: 1, Author: forge.Person{ID: 7, Login: "ken"}, Body: "why?", Edited: time.Now()}}
	d := hears(t, square{}, &inbox)
	said, err := d.Heard(t.Context())
	if err != nil || len(said) != 1 || strings.Contains(said[0].Content, "remark") || len(d.Tools()) != 0 {
		t.Errorf("%+v %v", said, err)
	}
}
