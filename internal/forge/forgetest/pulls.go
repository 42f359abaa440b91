package forgetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
)

func proposal() forge.Proposal {
	return forge.Proposal{Head: "tori/7-fix", Base: "main", Title: "Fix it", Body: "Closes #7\n\n概要", Marker: "task-7.pr", Draft: true}
}

func propose(t *testing.T, f Fixture) {
	p := proposal()
	p.Base = f.Main
	commit := f.World.Push(p.Head)
	first := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p))
	if first.Key.Type != f.pull("1").Type || !first.Open || first.Pull == nil || !first.Pull.Draft || first.Pull.Head.Name != p.Head ||
		first.Pull.Head.Commit != commit || first.Pull.Base.Name != f.Main || first.Pull.Head.Repo != f.Repo || !strings.Contains(first.Body, "<!-- tori:task-7.pr -->") {
		t.Fatalf("%+v, %+v", first, first.Pull)
	}
	again := want[forge.Item](t)(f.Reopen().(forge.CodeHost).Propose(bg, f.Repo, p))
	p.Title, p.Body = "Fix it now", "Closes #7\n\nmore"
	edited := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p))
	if again.Key != first.Key || edited.Key != first.Key || edited.Title != p.Title || !strings.Contains(edited.Body, "more") || !edited.Pull.Draft {
		t.Errorf("%+v, %+v, %+v", first.Key, again.Key, edited)
	}
	p.Head, p.Draft, p.Marker = "tori/8-other", false, "task-8.pr"
	f.World.Push(p.Head)
	if other := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p)); other.Key == first.Key || other.Pull.Draft {
		t.Errorf("%+v", other)
	}
	whole := want[forge.Item](t)(f.Forge.Item(bg, first.Key))
	if whole.Title != p.Title || whole.Pull == nil || whole.Pull.Head.Commit != commit || whole.Pull.Merged || whole.Repository.Repo != f.Repo {
		t.Errorf("%+v", whole)
	}
	p.Head = "no/such-branch"
	_, err := f.Code.Propose(bg, f.Repo, p)
	told(t, err, forge.Invalid)
}

func proposeAgain(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	p := proposal()
	p.Base = f.Main
	f.World.Push(p.Head)
	first := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p))
	f.World.Close(ken, first.Key.ID)
	p.Title = "Fix it now"
	if same := want[forge.Item](t)(f.Reopen().(forge.CodeHost).Propose(bg, f.Repo, p)); same.Key != first.Key || same.Open || same.Title != first.Title {
		t.Errorf("%+v", same)
	}
	p.Marker = "task-8.pr"
	second := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p))
	if second.Key == first.Key || !second.Open {
		t.Errorf("%+v", second)
	}
	if i := want[forge.Item](t)(f.Forge.Item(bg, first.Key)); i.Open {
		t.Error("it was opened again")
	}
}

func ready(t *testing.T, f Fixture) {
	p := proposal()
	p.Base = f.Main
	f.World.Push(p.Head)
	k := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p)).Key
	for range 2 {
		must(t, f.Code.Ready(bg, k))
		if i := want[forge.Item](t)(f.Forge.Item(bg, k)); i.Pull.Draft {
			t.Fatal("still a draft")
		}
	}
	// What is ready does not become a draft again.
	if i := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p)); i.Pull.Draft || i.Key != k {
		t.Errorf("%+v", i)
	}
	issue := f.World.Open(f.person("ken", forge.Write), "x", "x")
	told(t, f.Code.Ready(bg, f.issuePull(issue)), forge.NotFound)
}

func withdraw(t *testing.T, f Fixture) {
	p := proposal()
	p.Base = f.Main
	commit := f.World.Push(p.Head)
	k := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p)).Key
	for range 2 {
		must(t, f.Code.Withdraw(bg, k))
		if i := want[forge.Item](t)(f.Forge.Item(bg, k)); i.Open || i.Pull.Merged || i.Pull.Head.Commit != commit {
			t.Fatalf("%+v %+v", i, i.Pull)
		}
	}
	issue := f.World.Open(f.person("ken", forge.Write), "x", "x")
	told(t, f.Code.Withdraw(bg, f.issuePull(issue)), forge.NotFound)
}

func persons(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	if p := want[forge.Person](t)(f.Code.Person(bg, f.Repo, "ken")); p != ken {
		t.Errorf("%+v", p)
	}
	_, err := f.Code.Person(bg, f.Repo, "no-such-person")
	told(t, err, forge.NotFound)
}

func requestReview(t *testing.T, f Fixture) {
	self := want[forge.Person](t)(f.Forge.Self(bg))
	ken, eve := f.person("ken", forge.Write), f.person("eve", forge.None)
	p := proposal()
	p.Base = f.Main
	f.World.Push(p.Head)
	k := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p)).Key
	for range 2 {
		must(t, f.Code.RequestReview(bg, k, []forge.Person{self, eve, ken, {ID: 99, Login: "no-such-person"}}))
		if got := f.World.Reviewers(k.ID); !slices.Equal(got, []string{"ken"}) {
			t.Errorf("%q", got)
		}
	}
	must(t, f.Code.RequestReview(bg, k, []forge.Person{eve}))
	must(t, f.Code.RequestReview(bg, k, nil))
}

func reviews(t *testing.T, f Fixture) {
	// Two people: servers may take a review for dismissed when its author gives another.
	ken, eve := f.person("ken", forge.Write), f.person("eve", forge.Write)
	p := proposal()
	p.Base = f.Main
	f.World.Push(p.Head)
	k := want[forge.Item](t)(f.Code.Propose(bg, f.Repo, p)).Key
	began := want[forge.Item](t)(f.Forge.Item(bg, k)).Created
	f.World.Pass(2 * time.Second)
	f.World.Comment(ken, k.ID, "a note")
	f.World.Pass(2 * time.Second)
	f.World.Review(ken, k.ID, forge.ChangesRequested, "not yet", "here")
	f.World.Pass(2 * time.Second)
	f.World.Review(eve, k.ID, forge.Approved, "", "")
	f.World.Pass(2 * time.Second)
	f.World.Review(ken, k.ID, forge.Commented, "", "there")
	describe := func(all []forge.Comment) []string {
		var s []string
		for _, c := range all {
			if (c.Author.ID != ken.ID) != (c.Verdict == forge.Approved) || c.Item != k.ID || (c.Kind == forge.Line) != (c.Path != "") {
				t.Errorf("%+v", c)
			}
			s = append(s, string(c.Kind)+" "+c.Verdict+" "+c.Body)
		}
		return s
	}
	got := describe(f.comments(t, k))
	wanted := []string{"note  a note", "review changes_requested not yet", "line  here", "review approved ", "line  there"}
	if _, lacks := f.Lacks[Summaries]; lacks {
		wanted = []string{"note  a note", "review changes_requested ", "note  not yet", "line  here", "review approved ", "line  there"}
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("%q", got)
	}
	news := describe(want[[]forge.Comment](t)(f.Forge.CommentsSince(bg, f.Repo, began)))
	slices.Sort(news)
	slices.Sort(wanted)
	if !slices.Equal(news, wanted) {
		t.Errorf("since then: %q", news)
	}
}

func checkRuns(t *testing.T, f Fixture) {
	commit := f.World.Push("work")
	if got := want[[]forge.CheckRun](t)(f.Code.CheckRuns(bg, f.Repo, commit)); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	states := []string{forge.CheckPassed, forge.CheckFailed, forge.CheckPending, forge.CheckSkipped}
	for _, s := range states {
		f.World.Check(commit, "ci/"+s, s, strings.Repeat("長い出力 ", 4000))
	}
	got := want[[]forge.CheckRun](t)(f.Code.CheckRuns(bg, f.Repo, commit))
	if len(got) != len(states) {
		t.Fatalf("%+v", got)
	}
	for _, c := range got {
		if c.Name != "ci/"+c.State || (c.Output != "") != (c.State == forge.CheckFailed) || len(c.Output) > 8<<10 {
			t.Errorf("%s is %s, %d bytes of output", c.Name, c.State, len(c.Output))
		}
	}
	_, err := f.Code.CheckRuns(bg, f.Repo, "../../x")
	told(t, err, forge.NotFound)
}

func remote(t *testing.T, f Fixture) {
	r := want[forge.Remote](t)(f.Code.Remote(bg, f.Repo))
	if !strings.Contains(r.URL, f.Repo.Owner+"/"+f.Repo.Name) || strings.Contains(r.URL, "@") || r.User == "" || r.Password == "" {
		t.Errorf("%+v", r)
	}
}
