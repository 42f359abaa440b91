package forgetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/forge"
)

func comments(t *testing.T, f Fixture) {
	ken, eve := f.person("ken", forge.Write), f.person("eve", forge.Read)
	id := f.World.Open(ken, "x", "x", "agent")
	if got := f.comments(t, f.key("issue", id)); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	f.World.Comment(ken, id, "first")
	f.World.Pass(2 * time.Second)
	second := f.World.Comment(eve, id, "二番目\n\n<!-- hidden -->\n\nend")
	f.World.Pass(2 * time.Second)
	f.World.Comment(ken, id, "third")
	f.World.Pass(2 * time.Second)
	f.World.Edit(eve, id, second, "changed")
	got := f.comments(t, f.key("issue", id))
	var texts []string
	seen := map[string]bool{}
	for _, c := range got {
		texts = append(texts, c.Author.Login+": "+c.Body)
		if c.Kind != forge.Note || c.Item != id || c.ID == "" || seen[c.ID] || c.Created.IsZero() || c.Marker != "" {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
	}
	if s := strings.Join(texts, " | "); s != "ken: first | eve: changed | ken: third" {
		t.Fatal(s)
	}
	if got[1].Author.ID != eve.ID || got[1].Created.Before(got[0].Created) || got[1].Edited.Before(got[1].Created) {
		t.Errorf("%+v", got[1])
	}
}

func commentsMany(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	id := f.World.Open(ken, "x", "x", "agent")
	for n := range 100 {
		f.World.Comment(ken, id, fmt.Sprint(n))
	}
	for _, most := range []int{100, 101, 201, forge.MaxComments + 30} {
		for n := len(f.World.Notes(id)); n < most; n++ {
			f.World.Comment(ken, id, fmt.Sprint(n))
		}
		all, cut, err := f.Forge.Comments(bg, f.key("issue", id))
		must(t, err)
		if len(all) != min(most, forge.MaxComments) || cut != most-len(all) || all[0].Body != fmt.Sprint(cut) || all[len(all)-1].Body != fmt.Sprint(most-1) {
			t.Fatalf("of %d: %d comments, %d cut, from %s to %s", most, len(all), cut, all[0].Body, all[len(all)-1].Body)
		}
	}
}

func commentsSince(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	a, b := f.World.Open(ken, "a", "x", "agent"), f.World.Open(ken, "b", "x")
	first := f.World.Comment(ken, a, "old")
	f.World.Comment(ken, b, "old too")
	f.World.Pass(2 * time.Second)
	said := func(since time.Time) (s []string, last time.Time) {
		all := want[[]forge.Comment](t)(f.Forge.CommentsSince(bg, f.Repo, since))
		if !slices.IsSortedFunc(all, func(a, b forge.Comment) int { return a.Edited.Compare(b.Edited) }) {
			t.Errorf("not by time: %+v", all)
		}
		for _, c := range all {
			s = append(s, c.Item+" "+c.Body)
			last = c.Edited
		}
		return s, last
	}
	all, last := said(time.Time{})
	if len(all) != 2 {
		t.Fatalf("%q", all)
	}
	after := last.Add(time.Second)
	if got, _ := said(after); len(got) != 0 {
		t.Errorf("nothing was said, but %q", got)
	}
	f.World.Pass(2 * time.Second)
	f.World.Comment(ken, b, "new")
	f.World.Pass(2 * time.Second)
	f.World.Edit(ken, a, first, "changed")
	got, _ := said(after)
	if strings.Join(got, "|") != b+" new|"+a+" changed" {
		t.Errorf("%q", got)
	}
	if got, _ := said(last); len(got) < 2 {
		t.Errorf("at the time itself: %q", got)
	}
}

func postOnce(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	id := f.World.Open(ken, "x", "x", "agent")
	k := f.key("issue", id)
	self := want[forge.Person](t)(f.Forge.Self(bg))
	const text = "## 進行中\n\n- [x] one\n- [ ] two"
	first := want[forge.Comment](t)(f.Forge.Post(bg, k, "task-1.progress", text))
	if first.ID == "" || first.Body != text || first.Marker != "task-1.progress" || first.Item != id || first.Author.ID != self.ID {
		t.Errorf("%+v", first)
	}
	again := want[forge.Comment](t)(f.Forge.Post(bg, k, "task-1.progress", text))
	edited := want[forge.Comment](t)(f.Forge.Post(bg, k, "task-1.progress", "done"))
	other := want[forge.Comment](t)(f.Forge.Post(bg, k, "task-1.end", "done"))
	if again.ID != first.ID || edited.ID != first.ID || edited.Body != "done" || other.ID == first.ID {
		t.Errorf("%s, %s, %s, %s", first.ID, again.ID, edited.ID, other.ID)
	}
	notes := f.World.Notes(id)
	if len(notes) != 2 || !strings.Contains(notes[0], "<!-- tori:task-1.progress -->") {
		t.Errorf("%q", notes)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			if _, err := f.Forge.Post(bg, k, "at-once", fmt.Sprint("text ", n%2)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if notes := f.World.Notes(id); len(notes) != 3 {
		t.Errorf("%q", notes)
	}
	got := f.comments(t, f.key("issue", id))
	if len(got) != 3 || got[0].Marker != "task-1.progress" || got[0].Body != "done" || got[1].Marker != "task-1.end" {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"", "a b", "x -->", "a\nb", "ü"} {
		_, err := f.Forge.Post(bg, k, bad, "x")
		told(t, err, forge.Invalid)
	}
}

func postAgain(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	id := f.World.Open(ken, "x", "x", "agent")
	k := f.key("issue", id)
	first := want[forge.Comment](t)(f.Forge.Post(bg, k, "m", "one"))
	for n := range 130 {
		f.World.Comment(ken, id, fmt.Sprint(n))
	}
	for n, fg := range []forge.Tracker{f.Reopen(), f.Reopen(), f.Forge} {
		c := want[forge.Comment](t)(fg.Post(bg, k, "m", fmt.Sprint("text ", n)))
		if c.ID != first.ID || len(f.World.Notes(id)) != 131 {
			t.Errorf("%+v, %d notes", c, len(f.World.Notes(id)))
		}
		f.World.Comment(ken, id, "more")
		f.World.Pass(2 * time.Second)
		want[forge.Comment](t)(fg.Post(bg, k, fmt.Sprint("new-", n), "x"))
		if got := len(f.World.Notes(id)); got != 133 {
			t.Fatalf("%d notes", got)
		}
		for _, c := range f.comments(t, f.key("issue", id))[131:] {
			f.World.Delete(ken, id, c.ID)
		}
	}
}

func postCopied(t *testing.T, f Fixture) {
	self := want[forge.Person](t)(f.Forge.Self(bg))
	ken, eve := f.person("ken", forge.Write), f.person("eve", forge.Read)
	id := f.World.Open(ken, "x", "x", "agent")
	k := f.key("issue", id)
	f.World.Comment(eve, id, "mine now\n\n<!-- tori:m -->")
	ours := want[forge.Comment](t)(f.Forge.Post(bg, k, "m", "text\n\n<!-- tori:quoted -->\n\nmore"))
	quoted := want[forge.Comment](t)(f.Forge.Post(bg, k, "quoted", "another"))
	if quoted.ID == ours.ID || len(f.World.Notes(id)) != 3 {
		t.Errorf("%q", f.World.Notes(id))
	}
	for _, fg := range []forge.Tracker{f.Forge, f.Reopen()} {
		if c := want[forge.Comment](t)(fg.Post(bg, k, "m", "changed")); c.ID != ours.ID {
			t.Errorf("%+v, not %s", c, ours.ID)
		}
	}
	for _, c := range f.comments(t, f.key("issue", id)) {
		if (c.Marker != "") != (c.Author.ID == self.ID && c.Author.Login == self.Login) {
			t.Errorf("%+v", c)
		}
	}
	if notes := f.World.Notes(id); !strings.Contains(notes[0], "mine now") {
		t.Errorf("%q", notes)
	}
}

func postDeleted(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Admin)
	id := f.World.Open(ken, "x", "x", "agent")
	k := f.key("issue", id)
	f.World.Comment(ken, id, "before")
	first := want[forge.Comment](t)(f.Forge.Post(bg, k, "m", "one"))
	f.World.Comment(ken, id, "after")
	f.World.Delete(ken, id, first.ID)
	if n := len(f.World.Notes(id)); n != 2 {
		t.Fatalf("%d notes", n)
	}
	want[forge.Comment](t)(f.Forge.Post(bg, k, "m", "two"))
	want[forge.Comment](t)(f.Forge.Post(bg, k, "m", "three"))
	if notes := f.World.Notes(id); len(notes) != 3 || !strings.Contains(notes[2], "three") {
		t.Errorf("%q", notes)
	}
}

func signs(t *testing.T, f Fixture) {
	ken, eve := f.person("ken", forge.Write), f.person("eve", forge.Read)
	r, ok := f.Forge.(forge.Reactions)
	if !ok {
		t.Fatal("it shows no reactions")
	}
	id := f.World.Open(ken, "x", "x", "agent")
	k := f.key("issue", id)
	f.World.Comment(ken, id, "no question")
	note := f.World.Comment(ken, id, "a question")
	comment := f.comments(t, k)[1].ID
	self := want[forge.Person](t)(f.Forge.Self(bg))
	for range 2 { // once in effect
		must(t, r.React(bg, k, "", forge.Seen))
		must(t, r.React(bg, k, comment, forge.Seen))
	}
	f.World.Pass(2 * time.Second)
	f.World.React(eve, id, note, forge.Yes)
	f.World.Pass(2 * time.Second)
	f.World.React(ken, id, note, "heart")
	f.World.React(ken, id, note, forge.No)
	told := func(comment string) (s []string) {
		all := want[[]forge.Reaction](t)(r.Reactions(bg, k, comment))
		for i, one := range all {
			who := fmt.Sprint(one.By.ID)
			for _, p := range []forge.Person{self, ken, eve} {
				if p.ID == one.By.ID && p.Login == one.By.Login {
					who = p.Login
				}
			}
			s = append(s, who+" "+one.Sign)
			if one.At.IsZero() || i > 0 && one.At.Before(all[i-1].At) {
				t.Errorf("%+v", all)
			}
		}
		return s
	}
	if got := told(""); !slices.Equal(got, []string{self.Login + " eyes"}) {
		t.Errorf("on the item: %q", got)
	}
	if got := told(comment); !slices.Equal(got, []string{self.Login + " eyes", "eve +1", "ken -1"}) {
		t.Errorf("on the comment: %q", got)
	}
	if _, err := r.Reactions(bg, k, "note/99999999"); !forge.Is(err, forge.NotFound) {
		t.Errorf("of no comment: %v", err)
	}
}
