package forgetest

import (
	"strings"
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
	here, nowhere := 0, 0
	for _, c := range f.comments(t, k) {
		if c.Author != self {
			t.Errorf("%+v", c)
		}
		if c.Kind == forge.Line && c.Marker == "run-1.aa.bb" && c.Path == file && c.Line == 1 && strings.Contains(c.Body, "**here**") && strings.Contains(c.Body, better) {
			here++
		}
		nowhere += strings.Count(c.Body, "nowhere")
	}
	if all := f.comments(t, k); here != 1 && !strings.Contains(first.Body, "**here**") || nowhere != 1 || len(all) > 3 {
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
