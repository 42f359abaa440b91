package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// What one of the forge's lists did not show yet is heard with the next look,
// what was heard is not heard again, and where nothing is said the mark follows
// the forge's clock, in steps.
func TestNothingIsSaidUnheard(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	l.hub.now = l.now.Add(-time.Hour) // our clock is ahead
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	l.running(1)
	early := l.hub.now
	l.pass(4 * time.Second)
	l.hub.says("line/2", "1", ken, "later")
	l.hub.late = func() { // the list with this one was read before it was there
		l.hub.said = slices.Insert(l.hub.said, 0, forge.Comment{ID: "note/1", Kind: forge.Note, Item: "1", Author: ken, Body: "earlier", Edited: early})
		l.hub.late = nil
	}
	for _, want := range []string{"[later]", "[earlier]", "[]"} {
		if err := l.look(false, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(l.bodies(1)); got != want {
			t.Errorf("heard %s, not %s", got, want)
		}
	}
	l.hub.said[1].Edited, l.hub.said[1].Body = l.hub.now, "edited"
	for _, want := range []string{"[edited]", "[]"} {
		if err := l.look(false, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(l.bodies(1)); got != want {
			t.Errorf("heard %s, not %s", got, want)
		}
	}
	l.hub.sinces = nil
	different := map[time.Time]bool{}
	for range 60 {
		if err := l.look(false, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		since := l.hub.sinces[len(l.hub.sinces)-1]
		different[since] = true
		if age := l.hub.now.Sub(since); age < overlap || age > overlap+markStep+time.Minute {
			t.Fatalf("what is %s old is read again", age)
		}
	}
	if len(different) > 8 {
		t.Errorf("%d different questions within 30 min", len(different))
	}
	if said := l.bodies(1); said != nil {
		t.Errorf("heard again: %q", said)
	}
}

// Where nobody says anything the same is asked at each look, at the default
// intervals too: a forge counts a question that it was not asked before, and two
// hundred quiet repositories may not use up what it allows in an hour.
func TestAQuietRepositoryIsAskedTheSame(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	for range 24 * 12 {
		if err := l.look(true, 5*time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	different := map[time.Time]bool{}
	for _, since := range l.hub.sinces {
		different[since] = true
	}
	if len(l.hub.sinces) < 24*12-1 || len(different) > 26 {
		t.Errorf("%d different questions among %d within a day", len(different), len(l.hub.sinces))
	}
}

// A mark that a clock ahead of the forge's has left makes nobody deaf.
func TestAMarkOfTheFuture(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	if err := l.Store.SetMark(t.Context(), "github/o/a", commentsMark, l.now.Add(24*time.Hour).Format(time.RFC3339Nano)); err != nil {
		t.Fatal(err)
	}
	l.running(1)
	l.hub.says("note/1", "1", ken, "hello")
	for _, want := range []string{"[hello]", "[]"} {
		if err := l.look(false, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(l.bodies(1)); got != want {
			t.Errorf("heard %s, not %s", got, want)
		}
	}
}

// A command that was carried out is not carried out again because another one
// cannot be judged, and that one is heard later; the order on an item stays.
func TestACommandIsCarriedOutOnce(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]error{"a moment": down(), "a limit": &forge.Error{Kind: forge.RateLimited, Err: errors.New("429")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLobby(t, "a")
			if err := l.look(true, time.Minute); err != nil {
				t.Fatal(err)
			}
			one, two := l.paused(1), l.paused(2)
			jun := forge.Person{ID: 8, Login: "jun"}
			l.hub.says("note/1", "1", ken, "/resume")
			l.pass(time.Second)
			l.hub.says("note/2", "2", jun, "/stop")
			l.hub.says("note/3", "2", ken, "/resume")
			l.running(3)
			l.hub.broken["jun"] = broken
			_ = l.look(true, time.Hour)
			if s := l.status(one); s != task.Queued {
				t.Fatal(s)
			}
			l.pause(one)
			_ = l.look(false, time.Hour)
			if s := l.status(one); s != task.Paused {
				t.Errorf("%s: it was resumed again", s)
			}
			if s := l.status(two); s != task.Paused {
				t.Errorf("%s: what came after was heard first", s)
			}
			delete(l.hub.broken, "jun")
			if err := l.look(false, time.Hour); err != nil || l.status(two) != task.Queued {
				t.Errorf("%v, %s", err, l.status(two))
			}
			if s := l.status(one); s != task.Paused {
				t.Errorf("%s: it was resumed again", s)
			}
		})
	}
}

// A repository or an item that fails keeps nothing behind it waiting, and is
// asked less and less; where several fail in a row, or the only one, it is the
// forge, and the next round goes on behind them.
func TestWhatIsBrokenStarvesNobody(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a", "b")
	l.hub.broken["a"], l.hub.broken["1"] = down(), down()
	for n := range 3 {
		l.hub.items[fmt.Sprint(n)] = forge.Item{Key: key(n), Open: true, Labels: []string{"coding agent"}}
	}
	if err := l.look(true, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := l.look(true, time.Second); err != nil { // the first look at a repository hears nothing yet
		t.Fatal(err)
	}
	for n, want := range []bool{true, false, true} {
		if _, ok, err := l.Store.Latest(t.Context(), key(n)); ok != want || err != nil {
			t.Errorf("%d begun: %v, %v", n, ok, err)
		}
	}
	l.hub.visited = nil
	for range 60 {
		if err := l.look(true, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(slices.DeleteFunc(l.hub.visited, func(r string) bool { return r != "a" })); n < 2 || n > 7 {
		t.Errorf("asked %d times within 10 min", n)
	}

	l = newLobby(t, "a", "b", "c", "d", "e")
	for n := range 5 {
		l.hub.broken[string(rune('a'+n))] = down()
	}
	for _, want := range []string{"[]", "[d e a]"} {
		l.hub.visited = nil
		if want == "[]" {
			_ = l.look(true, 0) // learns how far each was read
			l.hub.visited, l.watch.failing, l.watch.next = nil, retries{}, forge.Repo{}
			want = "[a b c]"
		}
		if err := l.look(true, 0); !forge.Is(err, forge.Unavailable) || fmt.Sprint(l.hub.visited) != want {
			t.Errorf("visited %s, not %s: %v", l.hub.visited, want, err)
		}
		if !l.now.Before(l.watch.heldUntil()) {
			t.Error("the forge is not left alone")
		}
	}
	l = newLobby(t, "a")
	l.hub.broken["a"] = down()
	_ = l.look(true, time.Second)
	if err := l.look(true, 0); !forge.Is(err, forge.Unavailable) {
		t.Errorf("the only one: %v", err)
	}
}

// What was seen stays where the list cannot be read, and the list is asked for
// again soon; a name that is not there any more is given up.
func TestRepositoriesThatCannotBeListed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		unseen error
		want   string
		again  bool
	}{
		"down":      {down(), "[b a]", true},
		"forbidden": {errors.Join(&forge.Error{Kind: forge.Forbidden, Err: errors.New("403")}, &forge.Error{Kind: forge.NotFound, Err: errors.New("404")}), "[b a]", true},
		"not there": {&forge.Error{Kind: forge.NotFound, Err: errors.New("404")}, "[b]", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLobby(t, "a", "b")
			if err := l.look(true, relist); err != nil {
				t.Fatal(err)
			}
			l.hub.repos, l.hub.unseen, l.hub.visited = l.hub.repos[1:], c.unseen, nil
			if err := l.look(true, 2*againList); err != nil || fmt.Sprint(l.hub.visited) != c.want {
				t.Errorf("visited %s, %v", l.hub.visited, err)
			}
			before := l.hub.listings
			if _ = l.look(true, 0); l.hub.listings > before != c.again {
				t.Errorf("listed %d times more", l.hub.listings-before)
			}
		})
	}
}

// What is said while nobody works on a run is not kept for it: it reads that
// from its item when it is taken up.
func TestDeskIsForWhoWorks(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	l.queued(1)
	l.paused(2)
	l.running(3)
	for n, want := range []string{"[]", "[]", "[]", "[hello]"} {
		l.hub.says(fmt.Sprint("note/", n), fmt.Sprint(n), ken, "hello")
		if err := l.look(true, time.Second); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(l.bodies(n)); got != want {
			t.Errorf("%d: %s, not %s", n, got, want)
		}
	}
}

// A run whose files cannot be read does not block its repository; what is said to
// it waits until somebody has mended it.
func TestARunThatCannotBeRead(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	bad := l.paused(1)
	l.hub.items["1"] = forge.Item{Key: key(1), Open: true, Labels: []string{"coding agent"}}
	l.hub.items["2"] = forge.Item{Key: key(2), Open: true, Labels: []string{"coding agent"}}
	l.hub.says("note/1", "1", ken, "/resume")
	paths, err := filepath.Glob(filepath.Join(l.Store.BaseDir, "*", bad, "metadata.json"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	whole, err := os.ReadFile(paths[0])
	if err == nil {
		err = os.WriteFile(paths[0], []byte("{"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.look(true, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := l.Store.Latest(t.Context(), key(2)); !ok || err != nil {
		t.Errorf("the other one was not begun: %v", err)
	}
	delete(l.hub.items, "1")
	if err := os.WriteFile(paths[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.look(true, 0); err != nil || l.status(bad) != task.Queued {
		t.Errorf("%v, %s", err, l.status(bad))
	}
}

// Only a whole look says that the forge was reached, and one that was due while
// the forge was left alone, or failed, is done as soon as it can be.
func TestOnlyAWholeLookCounts(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	step := func(name string, after time.Duration, polls, errs int64, lists int) {
		t.Helper()
		l.pass(after)
		l.hub.visited = nil
		l.Intake.look(t.Context(), l.watch)
		c := l.Stats.Counts()
		if c.Polls["github"].All != polls || c.Polls["github"].Errors != errs || len(l.hub.visited) != lists {
			t.Errorf("%s: %d polls, %d errors, visited %q", name, c.Polls["github"].All, c.Polls["github"].Errors, l.hub.visited)
		}
	}
	step("the first", 0, 1, 0, 0)
	step("nothing goes on", 10*time.Second, 1, 0, 0)
	l.hub.broken["a"] = down()
	step("down", time.Minute, 2, 1, 1)
	step("left alone", time.Second, 2, 1, 0)
	delete(l.hub.broken, "a")
	step("still due", 15*time.Second, 3, 1, 1)
	step("done", 15*time.Second, 3, 1, 0)
}

// Somebody who may not ask is answered once on an item, however often they do.
func TestOneAnswerForEachWhoMayNot(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	l.hub.by = forge.Person{ID: 9, Login: "stranger"}
	l.hub.items["1"] = forge.Item{Key: key(1), Open: true, Labels: []string{"coding agent"}}
	for range 5 {
		if err := l.look(true, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	l.hub.by.ID = 10
	if err := l.look(true, time.Minute); err != nil || len(l.hub.posted) != 2 {
		t.Errorf("%v, %v", l.hub.posted, err)
	}
}

// What is worked on is looked at each time, what waits in turn, what is paused
// not at all.
func TestWhatWaitsIsLookedAtInTurn(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	l.running(1)
	l.paused(2)
	for n := range mostQueued + 5 {
		l.queued(100 + n)
	}
	times := map[string]int{}
	for range 2 {
		l.hub.read = nil
		if err := l.look(true, time.Minute); err != nil {
			t.Fatal(err)
		}
		if n := len(l.hub.read); n != mostQueued+1 {
			t.Errorf("%d items read", n)
		}
		for _, id := range l.hub.read {
			times[id]++
		}
	}
	if times["1"] != 2 || times["2"] != 0 || len(times) != mostQueued+6 {
		t.Errorf("%v", times)
	}
	l.hub.read = nil
	if err := l.look(false, 0); err != nil || fmt.Sprint(l.hub.read) != "[1]" {
		t.Errorf("%v, %v", l.hub.read, err)
	}
}

// Only somebody who takes the label off stops a run: not who gives it another
// name, nor what was taken off before or by ourselves.
func TestALabelOfAnotherName(t *testing.T) {
	t.Parallel()
	begun := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		asked error
		want  task.Status
	}{
		"renamed":         {forge.ErrNotAsked, task.Queued},
		"taken off":       {&forge.TriggerRemoved{By: ken, At: begun}, task.Stopped},
		"in former times": {&forge.TriggerRemoved{By: ken, At: begun.Add(-2 * time.Hour)}, task.Queued},
		"by ourselves":    {&forge.TriggerRemoved{By: forge.Person{ID: 1}, At: begun}, task.Queued},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLobby(t, "a")
			raw, err := json.Marshal(order.Order{Act: &order.Act{By: ken, At: begun.Add(-time.Hour), How: order.ByLabel}})
			if err != nil {
				t.Fatal(err)
			}
			id, err := l.Store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: key(1), User: "ken", Run: raw}, delivery.QueuedLabels)
			if err != nil {
				t.Fatal(err)
			}
			effects, err := l.Store.Undelivered(t.Context(), id)
			if err != nil || len(effects) != 1 {
				t.Fatal(effects, err)
			}
			if err := l.Store.Acknowledge(t.Context(), id, effects[0], "set"); err != nil {
				t.Fatal(err)
			}
			l.hub.items["1"] = forge.Item{Key: key(1), Open: true, Labels: []string{"in the works"}}
			l.hub.asked["processing"] = c.asked
			if err := l.look(true, 0); err != nil || l.status(id) != c.want {
				t.Errorf("%v, %s", err, l.status(id))
			}
		})
	}
}

// A review asks for more only on a pull request that bears our marker: the
// account may be somebody's who opens others.
func TestFollowUpIsForOurs(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	for id, marker := range map[string]string{"1": "", "2": "pull-1"} {
		k := key(0)
		k.Type, k.ID = task.TypePull, id
		l.hub.items[id] = forge.Item{Key: k, Open: true, Author: forge.Person{ID: 1}, Pull: &forge.Pull{Marker: marker}}
		l.hub.said = append(l.hub.said, forge.Comment{ID: "review/" + id, Kind: forge.Review, Item: id, Author: ken, Verdict: forge.ChangesRequested, Edited: l.hub.now})
	}
	if err := l.look(true, 0); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"1": false, "2": true} {
		k := key(0)
		k.Type, k.ID = task.TypePull, id
		if _, ok, err := l.Store.Latest(t.Context(), k); ok != want || err != nil {
			t.Errorf("%s begun: %v, %v", id, ok, err)
		}
	}
}

// A run is its author's, of a pull request of our own the first reviewer's, else that of whoever
// asked.
func TestWhoseRunItIs(t *testing.T) {
	t.Parallel()
	hanako, self, bot := forge.Person{ID: 7, Login: "hanako"}, forge.Person{ID: 1}, forge.Person{ID: 8, Login: "updates", Bot: true}
	for name, c := range map[string]struct {
		author    forge.Person
		pull      bool
		reviewers []forge.Person
		want      string
	}{
		"author":                    {author: hanako, want: "hanako"},
		"account that is gone":      {want: "ken"},
		"app":                       {author: bot, want: "ken"},
		"issue of our own":          {author: self, want: "ken"},
		"pull request":              {author: hanako, pull: true, reviewers: []forge.Person{ken}, want: "hanako"},
		"pull request of our own":   {author: self, pull: true, reviewers: []forge.Person{hanako, ken}, want: "hanako"},
		"nobody is asked to review": {author: self, pull: true, want: "ken"},
		"an app is":                 {author: self, pull: true, reviewers: []forge.Person{bot}, want: "ken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLobby(t, "a")
			l.watch.self = self
			l.watch.Settings = func(_ context.Context, login string) contextstore.MetadataConfig {
				return contextstore.MetadataConfig{Model: "of " + login}
			}
			full := forge.Item{Key: key(1), Open: true, Author: c.author}
			listed := full
			if c.pull {
				full.Pull, listed.Pull = &forge.Pull{Reviewers: c.reviewers}, &forge.Pull{}
			}
			l.hub.items["1"] = full
			v, err := l.consider(t.Context(), l.watch, candidate{key(1), listed, order.Act{By: ken, At: l.hub.now, Event: "e", How: order.ByLabel}})
			if v != Begun || err != nil {
				t.Fatal(v, err)
			}
			run, _, err := l.Store.Latest(t.Context(), key(1))
			if m := run.Metadata; err != nil || m.User != c.want || m.Config.Model != "of "+c.want {
				t.Errorf("%s, %+v, %v", m.User, m.Config, err)
			}
		})
	}
}

// A repository that has another name by now is heard for those that work on it,
// and asked for no more work.
func TestARepositoryOfAnotherName(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "renamed")
	id := l.running(1) // in "a"
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	l.hub.visited = nil
	l.hub.says("note/1", "1", ken, "/stop")
	if err := l.look(false, time.Minute); err != nil || fmt.Sprint(l.hub.visited) != "[a]" {
		t.Errorf("%v, %v", l.hub.visited, err)
	}
	if asked, ok := l.Store.Pending(id); !ok || asked.Action != contextstore.Stop {
		t.Errorf("%+v, %v", asked, ok)
	}
}

// Where issues and pull requests are numbered each on their own, the comment says which
// of them it is on.
func TestItemsThatShareANumber(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	id := l.running(1) // the issue
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind  string
		heard bool
	}{{"merge_request", false}, {"issue", true}} {
		l.hub.says("note/"+c.kind, "1", ken, "/stop")
		l.hub.said[len(l.hub.said)-1].ItemType = c.kind
		if err := l.look(true, time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, ok := l.Store.Pending(id); ok != c.heard {
			t.Errorf("of the %s: stopped %v", c.kind, ok)
		}
	}
}
