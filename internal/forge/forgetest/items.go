package forgetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

var bg = context.Background()

func names(t *testing.T, f Fixture) {
	if f.Forge.Source() == "" {
		t.Error("no source")
	}
	self := want[forge.Person](t)(f.Forge.Self(bg))
	if again := want[forge.Person](t)(f.Forge.Self(bg)); self.Login == "" || again != self {
		t.Errorf("%+v, then %+v", self, again)
	}
	for _, pattern := range []string{f.Repo.String(), f.Repo.Owner + "/*"} {
		all, err := f.Forge.Repositories(bg, []string{pattern, f.Repo.String()})
		if err != nil || len(all) != 1 || all[0].Repo != f.Repo || all[0].DefaultBranch != f.Main {
			t.Errorf("%s: %+v, %v", pattern, all, err)
		}
	}
	all, err := f.Forge.Repositories(bg, []string{"nobody/nowhere", f.Repo.String(), "nonsense"})
	if len(all) != 1 || !forge.Is(err, forge.NotFound) || !strings.Contains(err.Error(), "nobody/nowhere") || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("%+v, %v", all, err)
	}
}

func ids(items []forge.Item) string {
	var all []string
	for _, i := range items {
		all = append(all, i.Key.ID)
	}
	return strings.Join(all, " ")
}

func triggered(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	first := f.World.Open(ken, "一つ目", "body\n\nmore", "Coding Agent", "bug")
	f.World.Open(ken, "other", "x", "coding agent done")
	f.World.Pass(2 * time.Second)
	second := f.World.Open(ken, "second", "x", "coding agent")
	f.World.Pass(2 * time.Second)
	f.World.Comment(ken, first, "touched") // may or may not count as an update
	f.World.Label(ken, first, "later")
	f.World.Pass(2 * time.Second)

	list := func() []forge.Item {
		return want[[]forge.Item](t)(f.Forge.Triggered(bg, f.Repo, forge.Trigger{Label: "coding agent"}))
	}
	got := list()
	if ids(got) != second+" "+first {
		t.Fatalf("%q, want %q first", ids(got), second)
	}
	i := got[1]
	if i.Key != f.key("issue", first) || i.Title != "一つ目" || i.Body != "body\n\nmore" || !i.Has("CODING AGENT") || !i.Has("bug") || !i.Open || i.Pull != nil {
		t.Errorf("%+v", i)
	}
	if i.Author.Login != "ken" || i.Author.ID != ken.ID || i.Updated.Before(got[0].Updated) || i.Updated.IsZero() {
		t.Errorf("by %+v at %v, before %v", i.Author, i.Updated, got[0].Updated)
	}
	whole := want[forge.Item](t)(f.Forge.Item(bg, i.Key))
	if whole.Title != i.Title || whole.Body != i.Body || whole.Key != i.Key || whole.Repository.Repo != f.Repo || whole.Repository.DefaultBranch != f.Main {
		t.Errorf("%+v", whole)
	}
	if again := list(); ids(again) != ids(got) {
		t.Errorf("the same again: %q", ids(again))
	}
	f.World.Unlabel(ken, second, "coding agent")
	if now := list(); ids(now) != first {
		t.Errorf("after the label was taken off: %q", ids(now))
	}
	if none := want[[]forge.Item](t)(f.Forge.Triggered(bg, f.Repo, forge.Trigger{Label: "nobody has this"})); len(none) != 0 {
		t.Errorf("%q", ids(none))
	}
	if none := want[[]forge.Item](t)(f.Forge.Triggered(bg, f.Repo, forge.Trigger{})); len(none) != 0 {
		t.Errorf("without a trigger: %q", ids(none))
	}
}

func triggeredByAssignment(t *testing.T, f Fixture) {
	ken, bot := f.person("ken", forge.Write), f.person("worker", forge.Write)
	both := f.World.Open(ken, "both", "x", "agent")
	f.World.Pass(2 * time.Second)
	one := f.World.Open(ken, "one", "x")
	f.World.Open(ken, "none", "x")
	f.World.Pass(2 * time.Second)
	f.World.Assign(ken, both, bot)
	f.World.Pass(2 * time.Second)
	f.World.Assign(ken, one, bot)
	got := want[[]forge.Item](t)(f.Forge.Triggered(bg, f.Repo, forge.Trigger{Label: "agent", Assignee: bot}))
	if ids(got) != both+" "+one || !got[1].AssignedTo(bot) {
		t.Errorf("%q", ids(got))
	}
	a, err := f.Forge.Asked(bg, got[1].Key, forge.Trigger{Label: "agent", Assignee: bot})
	if err != nil || a.By.ID != ken.ID {
		t.Errorf("%+v, %v", a, err)
	}
}

func triggeredMany(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	const many = 203
	var all []string
	for n := range many {
		all = append(all, f.World.Open(ken, fmt.Sprintf("issue %d", n), "x", "agent"))
		if n%7 == 0 {
			f.World.Pass(time.Second)
		}
	}
	got := want[[]forge.Item](t)(f.Forge.Triggered(bg, f.Repo, forge.Trigger{Label: "agent"}))
	seen := map[string]bool{}
	for _, i := range got {
		seen[i.Key.ID] = true
	}
	for _, id := range all {
		if !seen[id] {
			t.Errorf("%s is missing", id)
		}
	}
	if len(got) != many || !slices.IsSortedFunc(got, func(a, b forge.Item) int { return a.Updated.Compare(b.Updated) }) {
		t.Errorf("%d items", len(got))
	}
}

func triggeredClosed(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	id := f.World.Open(ken, "x", "x", "agent")
	f.World.Close(ken, id)
	if got := want[[]forge.Item](t)(f.Forge.Triggered(bg, f.Repo, forge.Trigger{Label: "agent"})); len(got) != 0 {
		t.Errorf("%q", ids(got))
	}
	if i := want[forge.Item](t)(f.Forge.Item(bg, f.key("issue", id))); i.Open {
		t.Error("it is open")
	}
}

// changes has each act that may ask for work be told as a change.
func changes(t *testing.T, f Fixture) {
	ken, bot := f.person("ken", forge.Write), f.person("worker", forge.Write)
	id := f.World.Open(ken, "x", "x", "other")
	c := f.Forge.(forge.Changes)
	for _, act := range []struct {
		name string
		do   func()
	}{
		{"a label", func() { f.World.Label(ken, id, "agent") }},
		{"a label is taken off", func() { f.World.Unlabel(ken, id, "agent") }},
		{"an assignment", func() { f.World.Assign(ken, id, bot) }},
		{"a comment", func() { f.World.Comment(ken, id, "@worker review") }},
		{"it is closed", func() { f.World.Close(ken, id) }},
		{"a comment on what is closed", func() { f.World.Comment(ken, id, "/retry") }},
		{"a new one", func() { f.World.Open(ken, "y", "y", "agent") }},
	} {
		f.World.Pass(2 * time.Second)
		want[forge.Item](t)(f.Forge.Item(bg, f.key("issue", id))) // tells the server's time
		since := f.Forge.(forge.Clock).ServerTime()
		if want[bool](t)(c.Changed(bg, f.Repo, since)) {
			t.Errorf("%s: something changed before", act.name)
		}
		f.World.Pass(time.Second)
		act.do()
		for range 2 { // as it is kept, too
			if !want[bool](t)(c.Changed(bg, f.Repo, since)) {
				t.Errorf("%s: nothing changed", act.name)
			}
		}
		f.World.Pass(2 * time.Second)
		if want[bool](t)(c.Changed(bg, f.Repo, f.Forge.(forge.Clock).ServerTime().Add(-time.Second))) {
			t.Errorf("%s: changed since", act.name)
		}
	}
	_, err := c.Changed(bg, forge.Repo{Owner: f.Repo.Owner, Name: "missing"}, time.Time{})
	told(t, err, forge.NotFound)
}

// told checks that an error is of that kind and speaks both languages.
func told(t *testing.T, err error, kind forge.Kind) {
	t.Helper()
	var e *forge.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("%v, want one of kind %s", err, kind)
		return
	}
	if en, ja := i18n.English.Error(err), i18n.Japanese.Error(err); en == ja || en != err.Error() || strings.Contains(en+ja, "%!") {
		t.Errorf("%s\n%s", en, ja)
	}
}

func unknownItem(t *testing.T, f Fixture) {
	for _, id := range []string{"987654", "no-such", "", "../1", "-1", "1/2", "+1"} {
		k := f.key("issue", id)
		_, err := f.Forge.Item(bg, k)
		told(t, err, forge.NotFound)
		_, _, err = f.Forge.Comments(bg, k)
		told(t, err, forge.NotFound)
		_, err = f.Forge.Asked(bg, k, forge.Trigger{Label: "agent"})
		told(t, err, forge.NotFound)
		told(t, f.Forge.SetLabels(bg, k, []string{"a"}, nil), forge.NotFound)
		_, err = f.Forge.Post(bg, k, "m", "x")
		told(t, err, forge.NotFound)
	}
}

func unknownRepository(t *testing.T, f Fixture) {
	for _, r := range []forge.Repo{{Owner: f.Repo.Owner, Name: "missing"}, {Owner: "nobody", Name: f.Repo.Name}, {}, {Owner: "..", Name: ".."}, {Owner: f.Repo.Owner, Name: f.Repo.Name + "/issues"}} {
		_, err := f.Forge.Triggered(bg, r, forge.Trigger{Label: "x"})
		told(t, err, forge.NotFound)
		_, err = f.Forge.CommentsSince(bg, r, time.Time{})
		told(t, err, forge.NotFound)
	}
}

func setLabels(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	id := f.World.Open(ken, "x", "# Title\n\ntext", "Agent", "bug")
	k := f.key("issue", id)
	for range 2 {
		must(t, f.Forge.SetLabels(bg, k, []string{"agent processing", "BUG"}, []string{"agent", "not there"}))
		if got := sorted(f.World.LabelsOf(id)); got != "agent processing|bug" {
			t.Fatalf("%q", got)
		}
	}
	f.World.Label(ken, id, "by ken")
	for range 2 {
		must(t, f.Forge.SetLabels(bg, k, []string{"done", "both"}, []string{"agent processing", "both"}))
		if got := sorted(f.World.LabelsOf(id)); got != "both|bug|by ken|done" {
			t.Errorf("%q", got)
		}
	}
	must(t, f.Forge.SetLabels(bg, k, nil, []string{"both", "bug", "by ken", "done"}))
	if got := f.World.LabelsOf(id); len(got) != 0 {
		t.Errorf("%q", got)
	}
	must(t, f.Forge.SetLabels(bg, k, []string{"agent"}, nil))
	i := want[forge.Item](t)(f.Forge.Item(bg, k))
	if !i.Has("agent") || !strings.Contains(i.Body, "text") || i.Title != "x" {
		t.Errorf("%+v", i)
	}
}

func sorted(all []string) string {
	all = slices.Clone(all)
	slices.Sort(all)
	return strings.Join(all, "|")
}

func setOddLabels(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	id := f.World.Open(ken, "x", "x")
	odd := []string{"coding agent", "バグ", "area/core", "100% sure?", "a#b&c", "it's", "true", "12", "- dash", "a: b", "[x]", `back\slash`, `"quoted"`, "ünïcödé+plus"}
	must(t, f.Forge.SetLabels(bg, f.key("issue", id), odd, nil))
	if got := sorted(f.World.LabelsOf(id)); got != sorted(odd) {
		t.Errorf("%q", got)
	}
	for _, l := range odd {
		got := want[[]forge.Item](t)(f.Forge.Triggered(bg, f.Repo, forge.Trigger{Label: l}))
		if ids(got) != id {
			t.Errorf("%q triggers %q", l, ids(got))
		}
	}
	for n, l := range odd {
		must(t, f.Forge.SetLabels(bg, f.key("issue", id), nil, []string{l}))
		if got := f.World.LabelsOf(id); len(got) != len(odd)-n-1 {
			t.Fatalf("without %q: %q", l, got)
		}
	}
}

func ensureLabels(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	f.World.Open(ken, "x", "x", "Coding Agent")
	for n := range 120 { // more than a page
		f.World.Open(ken, "x", "x", fmt.Sprintf("label %d", n))
	}
	before := len(f.World.AllLabels())
	all := []forge.Label{{Name: "coding agent", Color: "0e8a16", Description: "x"}, {Name: "label 119", Color: "0e8a16"}, {Name: "完了", Color: "1d76db", Description: "終わり"}}
	for range 2 {
		must(t, f.Forge.EnsureLabels(bg, f.Repo, all))
		if got := f.World.AllLabels(); len(got) != before+1 || !slices.Contains(got, "Coding Agent") || !slices.Contains(got, "完了") {
			t.Fatalf("%d labels before, now %q", before, got)
		}
	}
}

func asked(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	id := f.World.Open(ken, "x", "x", "Agent")
	k := f.key("issue", id)
	a, err := f.Forge.Asked(bg, k, forge.Trigger{Label: "agent"})
	if err != nil || a.By.Login != "ken" || a.By.ID != ken.ID || a.At.IsZero() || a.Event == "" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := f.Forge.Asked(bg, k, forge.Trigger{Label: "other"}); !errors.Is(err, forge.ErrNotAsked) {
		t.Error(err)
	}
	f.World.Pass(2 * time.Second)
	f.World.Unlabel(ken, id, "Agent")
	if _, err := f.Forge.Asked(bg, k, forge.Trigger{Label: "agent"}); !errors.Is(err, forge.ErrNotAsked) {
		t.Error(err)
	}
	f.World.Pass(2 * time.Second)
	f.World.Label(ken, id, "agent")
	b, err := f.Forge.Asked(bg, k, forge.Trigger{Label: "agent"})
	if err != nil || b.Event == a.Event || !b.At.After(a.At) {
		t.Errorf("%+v after %+v, %v", b, a, err)
	}
}

func askedAgain(t *testing.T, f Fixture) {
	ken, eve := f.person("ken", forge.Write), f.person("eve", forge.Triage)
	id := f.World.Open(ken, "x", "x", "agent")
	k, trigger := f.key("issue", id), forge.Trigger{Label: "agent"}
	for range 120 { // more than a page of others
		f.World.Label(eve, id, "noise")
		f.World.Unlabel(eve, id, "noise")
	}
	a := want[forge.Asked](t)(f.Forge.Asked(bg, k, trigger))
	if a.By.ID != ken.ID {
		t.Errorf("%+v", a)
	}
	f.World.Unlabel(ken, id, "agent")
	f.World.Label(eve, id, "agent")
	b := want[forge.Asked](t)(f.Forge.Asked(bg, k, trigger))
	if b.By.ID != eve.ID || b.Event == a.Event {
		t.Errorf("%+v after %+v", b, a)
	}
}

func permission(t *testing.T, f Fixture) {
	roles := []forge.Permission{forge.Read, forge.Triage, forge.Write, forge.Maintain, forge.Admin}
	if _, lacks := f.Lacks[Roles]; lacks {
		roles = []forge.Permission{forge.Read, forge.Write, forge.Admin}
	}
	for _, p := range roles {
		who := f.World.Person("p-"+p.String(), p)
		if got := want[forge.Permission](t)(f.Forge.Permission(bg, f.Repo, who)); got != p {
			t.Errorf("%s has %s", who.Login, got)
		}
	}
	old := f.World.Person("boss", forge.Admin)
	f.World.Rename(old, "retired")
	thief := f.World.Person("boss", forge.None)
	if thief.ID == old.ID {
		t.Fatal("the same number")
	}
	for name, p := range map[string]forge.Person{
		"the name of another": {ID: thief.ID, Login: "retired"}, "a name that was given up": old,
		"no number": {Login: "retired"}, "nobody": {ID: 4711, Login: "no-such-person"}, "a bot's name": {ID: 1, Login: "retired[bot]", Bot: true},
	} {
		if got, err := f.Forge.Permission(bg, f.Repo, p); got != forge.None || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if got := want[forge.Permission](t)(f.Forge.Permission(bg, f.Repo, forge.Person{ID: old.ID, Login: "retired"})); got != forge.Admin {
		t.Errorf("under the new name: %s", got)
	}
}

func unsupported(t *testing.T, f Fixture) {
	_, code := f.Forge.(forge.CodeHost)
	for _, of := range []Feature{Pulls, Checks, Remotes} {
		if _, lacks := f.Lacks[of]; lacks && code {
			t.Errorf("it is a host of code, and lacks %s", of)
		}
	}
	if _, lacks := f.Lacks[Labels]; lacks {
		must(t, f.Forge.EnsureLabels(bg, f.Repo, []forge.Label{{Name: "x"}})) // nothing is missing
	}
}

func ends(t *testing.T, f Fixture) {
	ken := f.person("ken", forge.Write)
	id := f.World.Open(ken, "x", "x", "agent")
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err := f.Forge.Triggered(ctx, f.Repo, forge.Trigger{Label: "agent"})
	_, perr := f.Forge.Post(ctx, f.key("issue", id), "m", "x")
	for _, err := range []error{err, perr, f.Forge.SetLabels(ctx, f.key("issue", id), []string{"x"}, nil)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	if n := len(f.World.Notes(id)); n != 0 {
		t.Errorf("%d notes", n)
	}
}
