package forgetest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// postReview: a review is there once, with its remarks on their lines; what has no such line is
// in the text or on the line that was named.
func postReview(t *testing.T, f Fixture) {
	self := want[forge.Person](t)(f.Forge.Self(bg))
	p := proposal()
	p.Base = f.Main
	commit := f.World.Push(p.Head)
	k := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p)).Key
	file, better := f.World.File(p.Head), "a better line"
	post := forge.ReviewPost{Commit: commit, Body: "Nearly there. 概要", Marker: "run-1.review", Remarks: []forge.Remark{
		{Path: file, OldPath: file, Line: 1, First: 1, Body: "**here**", Suggestion: &better, Marker: "run-1.aa.bb"},
		{Path: file, OldPath: file, Line: 4711, First: 4711, Body: "nowhere", Marker: "run-1.cc.dd"},
	}}
	first := want[forge.Comment](t)(f.Forge.(forge.Reviewer).Review(bg, k, post))
	again := want[forge.Comment](t)(f.Reopen().(forge.Reviewer).Review(bg, k, post))
	if first.ID == "" || first.ID != again.ID || first.Author != self || first.Marker != post.Marker || !strings.HasPrefix(first.Body, post.Body) {
		t.Errorf("%+v, %+v", first, again)
	}
	here, said, nowhere := 0, 0, 0
	for _, c := range f.comments(t, k) {
		if c.Author != self {
			t.Errorf("%+v", c)
		}
		if c.Kind == forge.Line && c.Marker == "run-1.aa.bb" && c.Path == file && c.Line == 1 && strings.Contains(c.Body, "**here**") && strings.Contains(c.Body, better) {
			here++
		}
		said += strings.Count(c.Body, "**here**")
		nowhere += strings.Count(c.Body, "nowhere")
	}
	if all := f.comments(t, k); here != 1 && !strings.Contains(first.Body, "**here**") || said != 1 || nowhere != 1 || len(all) > 3 {
		t.Errorf("%+v", all)
	}
	post.Marker, post.Remarks = "run-2.review", post.Remarks[:1]
	post.Remarks[0].Marker = "run-2.aa.bb"
	if other := want[forge.Comment](t)(f.Forge.(forge.Reviewer).Review(bg, k, post)); other.ID == first.ID || strings.Contains(other.Body, "here**") {
		t.Errorf("%+v", other)
	}
	post.Commit, post.Marker, post.Remarks[0].Marker = strings.Repeat("ab", 20), "run-3.review", "run-3.aa.bb"
	if _, err := f.Forge.(forge.Reviewer).Review(bg, k, post); err != nil {
		t.Errorf("of a commit that is gone: %v", err)
	}
	_, err := f.Forge.(forge.Reviewer).Review(bg, task.Key{Source: k.Source, Owner: k.Owner, Repo: k.Repo, Type: k.Type, ID: "4711"}, post)
	told(t, err, forge.NotFound)
}

// reply: a remark is answered once, in its thread; where the server takes none there, below the
// item, with the name of the file.
func reply(t *testing.T, f Fixture) {
	self := want[forge.Person](t)(f.Forge.Self(bg))
	ken := f.person("ken", forge.Write)
	p := proposal()
	p.Base = f.Main
	f.World.Push(p.Head)
	k := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p)).Key
	f.World.Review(ken, k.ID, forge.Commented, "", "why?")
	f.World.Review(ken, k.ID, forge.Commented, "", "and this?")
	var lines []forge.Comment
	for _, c := range f.comments(t, k) {
		if c.Kind == forge.Line {
			lines = append(lines, c)
		}
	}
	if len(lines) != 2 {
		t.Fatalf("%+v", lines)
	}
	remark := lines[0].ID
	const text = "/close is no command here\n\n理由は `why.txt` に。"
	var all sync.WaitGroup
	for range 3 { // once in effect
		all.Go(func() {
			c, err := f.Forge.(forge.Threads).Reply(bg, k, remark, "run-1.answer-1", text)
			if err != nil || c.ID == "" || c.Author.ID != self.ID || c.Marker != "run-1.answer-1" || c.Item != k.ID {
				t.Errorf("%v %+v", err, c)
			}
		})
	}
	all.Wait()
	want[forge.Comment](t)(f.Reopen().(forge.Threads).Reply(bg, k, remark, "run-1.answer-1", text))
	want[forge.Comment](t)(f.Forge.(forge.Threads).Reply(bg, k, remark, "run-2.answer-1", "Again."))
	want[forge.Comment](t)(f.Forge.(forge.Threads).Reply(bg, k, lines[1].ID, "run-1.answer-2", "This, too."))
	var ours []forge.Comment
	for _, c := range f.comments(t, k) {
		if c.Author.ID == self.ID {
			ours = append(ours, c)
		}
	}
	slices.SortFunc(ours, func(a, b forge.Comment) int { return strings.Compare(a.Marker, b.Marker) })
	if len(ours) != 3 || ours[0].Marker != "run-1.answer-1" || ours[1].Marker != "run-1.answer-2" || ours[2].Marker != "run-2.answer-1" || !strings.Contains(ours[0].Body, "`why.txt` に。") {
		t.Fatalf("%+v", ours)
	}
	for i, of := range []string{lines[0].ID, lines[1].ID, lines[0].ID} {
		if _, lacks := f.Lacks[Threads]; lacks {
			if ours[i].Kind != forge.Note || !strings.Contains(ours[i].Body, lines[0].Path) {
				t.Errorf("%+v", ours[i])
			}
		} else if ours[i].Kind != forge.Line || ours[i].ReplyTo != of || ours[i].Path != lines[0].Path {
			t.Errorf("%+v is no answer to %s", ours[i], of)
		}
	}
	if it := want[forge.Item](t)(f.Forge.Item(bg, k)); !it.Open {
		t.Error("the answer was carried out")
	}
	_, err := f.Forge.(forge.Threads).Reply(bg, k, "line/987654321", "m", "x")
	told(t, err, forge.Gone)
	_, err = f.Forge.(forge.Threads).Reply(bg, k, remark, "a b", "x")
	told(t, err, forge.Invalid)
}
